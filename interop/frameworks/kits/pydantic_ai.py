# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI with a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter, models
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script
from suite import Base

import tasuki.pydantic_ai as adapter
from tasuki import AsyncClient, HandoffFailed
from tasuki.worker import AsyncWorker

models.ALLOW_MODEL_REQUESTS = False
USAGE = RequestUsage(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)


def scripted(script: Script) -> FunctionModel:
    def reply(messages: list[Any], _: Any) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        outputs = [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]
        heard = "\n".join(str(getattr(part, "content", "")) for part in parts)
        said = script.reply(outputs, heard)
        made: Any = TextPart(said) if isinstance(said, str) else None
        if isinstance(said, Call):
            made = ToolCallPart(said.name, said.arguments, tool_call_id=said.id)
        return ModelResponse(parts=[made], usage=USAGE)

    return FunctionModel(reply)


class PydanticAI(Kit):
    title, package = "Pydantic AI", "pydantic-ai-slim"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "results",
        "serve": "serve(agent, …)",
        "question": "requires_approval, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        return {"pydantic_ai.models.infer_model": lambda *_, **__: scripted(script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        tool = adapter.handoff_tool(to, client=client, **sending)
        return str((await Agent(scripted(script), tools=[tool]).run("Go.")).output)

    def _transferring(self, script: Script, to: str, client: AsyncClient) -> Agent[Any, Any]:
        tool = adapter.transfer_tool(to, client=client)
        return Agent(scripted(script), tools=[tool], output_type=[str, DeferredToolRequests])

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        done = await self._transferring(script, to, client).run("Go.")
        kept.write_bytes(ModelMessagesTypeAdapter.dump_json(done.all_messages()))
        waits = done.output.metadata[done.output.calls[0].tool_call_id]["tasuki_handoff"]
        kept.with_suffix(".id").write_text(f"{done.output.calls[0].tool_call_id} {waits}", "utf-8")

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        history = ModelMessagesTypeAdapter.validate_json(kept.read_bytes())
        call, waits = kept.with_suffix(".id").read_text("utf-8").split()
        requests = DeferredToolRequests(
            calls=[part for part in history[-1].parts if isinstance(part, ToolCallPart)],
            metadata={call: {"tasuki_handoff": waits}},
        )
        found = await adapter.results(requests, client)
        again = self._transferring(script, to, client)
        done = await again.run(message_history=history, deferred_tool_results=found)
        return str(done.output)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        made = {
            "call": adapter.handoff_tool,
            "transfer": adapter.transfer_tool,
            "capability": lambda to: adapter.handoff_tool(to, by_capability=True),
            "question": lambda _: adapter.question_tool(),
        }
        agent = Agent(scripted(script), tools=[made[kind](to) for to, kind in tools.items()])
        return adapter.serve(agent, name, **options)


KIT = PydanticAI()


class Own(Base):
    """What only Pydantic AI has."""

    async def test_a_tool_that_needs_approval_asks_the_sender_for_leave(self) -> None:
        agent = Agent(scripted(Script([("push", {"branch": "main"})])))

        @agent.tool_plain(requires_approval=True)
        def push(branch: str) -> str:
            return f"pushed {branch}"

        worker = adapter.serve(agent, "pusher", client=self.client)
        sent = await self.offer("pusher")

        async def refuses() -> None:
            question = await sent.question(timeout=60)
            self.assertEqual(question.kind, "authorization")
            await sent.answer({"granted": False})

        result, _ = await self.during(worker, sent.result(), refuses())
        self.assertEqual(result.payload["text"], "They say: The sender did not allow it.")

    async def test_what_the_task_may_still_spend_is_the_limit_of_the_run(self) -> None:
        asked: list[int] = []

        def reply(messages: list[Any], _: Any) -> ModelResponse:
            asked.append(len(messages))
            call = ToolCallPart("go_on", {}, tool_call_id=f"call-{len(asked)}")
            return ModelResponse(parts=[call], usage=RequestUsage(input_tokens=400))

        agent = Agent(FunctionModel(reply))

        @agent.tool_plain
        def go_on() -> str:
            return "more"

        worker = adapter.serve(agent, "spender", client=self.client)
        sent = await self.offer("spender", budget={"tokens": 1000})
        with self.assertRaises(HandoffFailed) as raised:
            await self.during(worker, sent.result())
        self.assertEqual(raised.exception.failure["type"], "usage_limit_exceeded")
        self.assertEqual(raised.exception.failure["class"], "permanent")
        self.assertEqual(len(asked), 3)

    async def test_the_conversation_goes_along_as_quoted_data(self) -> None:
        tool = adapter.handoff_tool("reader", client=self.client, history_tokens=100)
        agent = Agent(scripted(Script([("handoff_to_reader", {"task": "Read."})])), tools=[tool])
        _, envelope = await self.together(agent.run("My secret plan."), self.answer("reader", "ok"))
        told = envelope["payload"]["conversation"]
        self.assertEqual(told[0], {"from": "user-prompt", "said": "My secret plan."})
