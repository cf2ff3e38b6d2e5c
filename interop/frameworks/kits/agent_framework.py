# SPDX-License-Identifier: Apache-2.0
"""Microsoft Agent Framework with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script
from suite import Base

import tasuki.agent_framework as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def _inner_get_response(self, *, messages: Any, stream: bool = False, **_: Any) -> Any:
        async def whole() -> ChatResponse[Any]:
            parts = [part for one in messages for part in one.contents]
            outputs = [str(one.result) for one in parts if one.type == "function_result"]
            heard = "\n".join(str(one.text or one.result or "") for one in parts)
            said = self.script.reply(outputs, heard)
            content = said if isinstance(said, str) else None
            if isinstance(said, Call):
                arguments = json.dumps(said.arguments)
                content = Content.from_function_call(said.id, said.name, arguments=arguments)
            usage = {
                "input_token_count": INPUT_TOKENS,
                "output_token_count": OUTPUT_TOKENS,
            }
            return ChatResponse(messages=[Message("assistant", [content])], usage_details=usage)

        async def updates() -> Any:
            done = await whole()
            yield ChatResponseUpdate(role="assistant", contents=list(done.messages[0].contents))

        if stream:
            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)
        return whole()


def agent(script: Script, *tools: Any, **more: Any) -> Agent[Any]:
    return Agent(client=Scripted(script), name="alice", tools=list(tools), **more)


class AgentFramework(Kit):
    title, package = "Agent Framework", "agent-framework-core"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool, remote_agent",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "transferred, resume",
        "serve": "serve(agent, …)",
        "question": "approval_mode, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        return {"agent_framework.openai.OpenAIChatClient": lambda **_: Scripted(script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        made = adapter.handoff_tool(to, client=client, **sending)
        return str((await agent(script, made).run("Go.")).text)

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        acting = agent(script, adapter.transfer_tool(to, client=client))
        found = await adapter.transferred(acting, "Go.", await acting.run("Go."))
        kept.write_text(json.dumps(found), "utf-8")

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        acting = agent(script, adapter.transfer_tool(to, client=client))
        return str((await adapter.resume(acting, json.loads(kept.read_text("utf-8")), client)).text)

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


KIT = AgentFramework()


class Own(Base):
    """What only Agent Framework has."""

    async def test_a_participant_of_a_handoff_team_works_elsewhere(self) -> None:
        from agent_framework.orchestrations import HandoffBuilder

        remote = adapter.remote_agent("expert", client=self.client)
        triage = agent(
            Script([(f"handoff_to_{remote.name}", {})]),
            require_per_service_call_history_persistence=True,
        )
        remote.require_per_service_call_history_persistence = True
        team = HandoffBuilder(participants=[triage, remote], name="team")
        built = team.with_start_agent(triage).add_handoff(triage, [remote]).build()
        said: list[Any] = []

        async def runs() -> None:
            async for event in built.run("Is it safe?", stream=True):
                said.append(event)

        _, envelope = await self.together(runs(), self.answer("expert", "It is."))
        self.assertEqual(envelope["payload"]["text"], "Is it safe?")
        self.assertTrue(any("It is." in str(getattr(one, "data", "")) for one in said))

    async def test_a_tool_that_needs_approval_asks_the_sender_for_leave(self) -> None:
        pushed: list[str] = []

        @tool(approval_mode="always_require")
        def push(branch: str) -> str:
            """Pushes."""
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
