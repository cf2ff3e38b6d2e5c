# SPDX-License-Identifier: Apache-2.0
"""Google ADK with a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools import FunctionTool
from google.genai import types
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script
from suite import Base

import tasuki.adk as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker

USER, SESSION = "u", "s"


class Scripted(BaseLlm):
    script: Any

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        assert not stream
        parts = [part for one in llm_request.contents for part in one.parts or []]
        answers = [part.function_response for part in parts if part.function_response]
        outputs = [str((it.response or {}).get("result", it.response)) for it in answers]
        heard = "\n".join([*(str(part.text) for part in parts if part.text), *outputs])
        said = self.script.reply(outputs, heard)
        part = types.Part(text=said) if isinstance(said, str) else None
        if isinstance(said, Call):
            call = types.FunctionCall(id=said.id, name=said.name, args=said.arguments)
            part = types.Part(function_call=call)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=INPUT_TOKENS, candidates_token_count=OUTPUT_TOKENS
        )
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=usage)


def agent(script: Script, *tools: Any) -> LlmAgent:
    model = Scripted(model="scripted", script=script)
    return LlmAgent(name="alice", model=model, tools=list(tools))


class ADK(Kit):
    title, package = "Google ADK", "google-adk"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "resume",
        "serve": "serve(agent, …)",
        "question": "require_confirmation, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        found = "google.adk.models.registry.LLMRegistry.new_llm"
        return {found: lambda *_: Scripted(model="scripted", script=script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        sessions = InMemorySessionService()
        runner = self._runner(
            agent(script, adapter.handoff_tool(to, client=client, **sending)), sessions
        )
        return await self._run(runner)

    def _runner(self, acting: LlmAgent, sessions: Any) -> Runner:
        return Runner(
            app_name="app",
            agent=acting,
            session_service=sessions,
            auto_create_session=True,
        )

    async def _run(self, runner: Runner) -> str:
        said, last = types.Content(role="user", parts=[types.Part(text="Go.")]), ""
        async for event in runner.run_async(user_id=USER, session_id=SESSION, new_message=said):
            for part in event.content.parts if event.content else []:
                last = part.text or last
        return last

    def _transferring(self, script: Script, to: str, client: AsyncClient, kept: Path) -> Runner:
        acting = agent(script, adapter.transfer_tool(to, client=client))
        return self._runner(acting, SqliteSessionService(str(kept)))

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        await self._run(self._transferring(script, to, client, kept))

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        runner = self._transferring(script, to, client, kept)
        return await adapter.resume(runner, user_id=USER, session_id=SESSION, client=client)

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


KIT = ADK()


class Own(Base):
    """What only ADK has."""

    async def test_a_tool_that_needs_confirmation_asks_the_sender_for_leave(
        self,
    ) -> None:
        pushed: list[str] = []

        def push(branch: str) -> dict[str, str]:
            """Pushes."""
            pushed.append(branch)
            return {"result": "pushed"}

        script = Script([("push", {"branch": "main"})])
        acting = agent(script, FunctionTool(push, require_confirmation=True))
        worker = adapter.serve(acting, "pusher", client=self.client)
        sent = await self.offer("pusher")

        async def allows() -> None:
            question = await sent.question(timeout=60)
            self.assertEqual((question.kind, pushed), ("authorization", []))
            await sent.answer({"granted": True})

        await self.during(worker, sent.result(), allows())
        self.assertEqual(pushed, ["main"])
