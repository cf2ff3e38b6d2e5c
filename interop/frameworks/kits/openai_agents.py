# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    Usage,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script
from suite import Base

import tasuki.openai_agents as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker

set_tracing_disabled(True)


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        input = named["input"] if "input" in named else given[1]
        items = [{"content": input}] if isinstance(input, str) else input
        outputs = [it["output"] for it in items if it.get("type") == "function_call_output"]
        heard = "\n".join(str(it.get("content", it.get("output", ""))) for it in items)
        said = self.script.reply(outputs, heard)
        item: Any
        if isinstance(said, Call):
            item = ResponseFunctionToolCall(
                arguments=json.dumps(said.arguments),
                call_id=said.id,
                name=said.name,
                type="function_call",
            )
        else:
            part = ResponseOutputText(annotations=[], text=said, type="output_text", logprobs=[])
            item = ResponseOutputMessage(
                id="m",
                content=[part],
                role="assistant",
                status="completed",
                type="message",
            )
        total = INPUT_TOKENS + OUTPUT_TOKENS
        usage = Usage(
            requests=1,
            input_tokens=INPUT_TOKENS,
            output_tokens=OUTPUT_TOKENS,
            total_tokens=total,
        )
        return ModelResponse(output=[item], usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def agent(script: Script, *tools: Any, **more: Any) -> Agent[Any]:
    return Agent(name="a", model=Scripted(script), tools=list(tools), **more)


class OpenAIAgents(Kit):
    title, package = "OpenAI Agents", "openai-agents"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool, remote_agent",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "resume",
        "serve": "serve(agent, …)",
        "question": "needs_approval, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        made = "agents.models.multi_provider.MultiProvider.get_model"
        return {made: lambda *_: Scripted(script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        tool = adapter.handoff_tool(to, client=client, **sending)
        return str((await Runner.run(agent(script, tool), "Go.")).final_output)

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        acting = adapter.stopping(agent(script, adapter.transfer_tool(to, client=client)))
        done = await Runner.run(acting, "Go.")
        kept.write_text(json.dumps(done.to_input_list()), "utf-8")

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        acting = agent(script, adapter.transfer_tool(to, client=client))
        done = await adapter.resume(acting, json.loads(kept.read_text("utf-8")), client)
        return str(done.final_output)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        made = {
            "call": adapter.handoff_tool,
            "transfer": adapter.transfer_tool,
            "capability": lambda to: adapter.handoff_tool(to, by_capability=True),
            "question": lambda _: adapter.question_tool(),
        }
        acting = agent(script, *(made[kind](to) for to, kind in tools.items()))
        return adapter.serve(acting, name, **options)


KIT = OpenAIAgents()


class Own(Base):
    """What only OpenAI Agents has."""

    async def test_a_native_handoff_goes_to_an_agent_that_works_elsewhere(self) -> None:
        remote = adapter.remote_agent("expert")
        script = Script([("transfer_to_expert", {})])
        triage = agent(script, handoffs=[handoff(remote)])
        worker = adapter.serve(triage, "triage", client=self.client)
        sent = await self.offer("triage")
        result, envelope = await self.during(worker, sent.result(), self.answer("expert", "So."))
        self.assertEqual(result.payload["text"], "So.")
        self.assertEqual(envelope["intent"], (await sent.envelope()).intent)
        self.assertIn("conversation", envelope["payload"])

    async def test_a_tool_that_needs_approval_asks_the_sender_for_leave(self) -> None:
        pushed: list[str] = []

        @function_tool(needs_approval=True)
        def push(branch: str) -> str:
            pushed.append(branch)
            return "pushed"

        script = Script([("push", {"branch": "main"})])
        worker = adapter.serve(agent(script, push), "pusher", client=self.client)
        sent = await self.offer("pusher")

        async def allows() -> None:
            question = await sent.question(timeout=60)
            self.assertEqual((question.kind, pushed), ("authorization", []))
            await sent.answer({"granted": True})

        result, _ = await self.during(worker, sent.result(), allows())
        self.assertEqual((result.payload["text"], pushed), ("They say: pushed", ["main"]))

    async def test_the_expected_output_is_the_output_type(self) -> None:
        schema = {
            "type": "object",
            "properties": {"type": {"type": "string"}, "safe": {"type": "boolean"}},
            "required": ["safe"],
        }
        script = Script(line='{"type": "verdict", "safe": true}')
        worker = adapter.serve(agent(script), "judge", client=self.client)
        sent = await self.offer("judge", output_schema=schema)
        (result,) = await self.during(worker, sent.result())
        self.assertEqual(result.payload, {"type": "verdict", "safe": True})
