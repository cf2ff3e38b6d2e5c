# SPDX-License-Identifier: Apache-2.0
"""AutoGen with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelInfo,
    RequestUsage,
)
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script, asks
from suite import Base

import tasuki.autogen as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker

INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family="unknown",
    structured_output=False,
)
USAGE = RequestUsage(prompt_tokens=INPUT_TOKENS, completion_tokens=OUTPUT_TOKENS)


class Scripted(ChatCompletionClient):
    def __init__(self, script: Script, repeats: bool = False) -> None:
        self.script, self.repeats = script, repeats

    async def create(self, messages: Sequence[Any], **_: Any) -> CreateResult:
        if self.repeats:
            # What comes back from a transfer is a message, not the output of a tool.
            said = f"They say: {messages[-1].content}"
            return CreateResult(finish_reason="stop", content=said, usage=USAGE, cached=False)
        outputs = [
            one.content
            for message in messages
            if isinstance(message, FunctionExecutionResultMessage)
            for one in message.content
        ]
        said = self.script.reply(outputs, "\n".join(str(one.content) for one in messages))
        content: Any = said
        if isinstance(said, Call):
            arguments = json.dumps(said.arguments)
            content = [FunctionCall(id=said.id, name=said.name, arguments=arguments)]
        return CreateResult(
            finish_reason="function_calls" if isinstance(said, Call) else "stop",
            content=content,
            usage=USAGE,
            cached=False,
        )

    def create_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return USAGE

    def total_usage(self) -> RequestUsage:
        return USAGE

    def count_tokens(self, *_: Any, **__: Any) -> int:
        return 0

    def remaining_tokens(self, *_: Any, **__: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return INFO

    @property
    def model_info(self) -> ModelInfo:
        return INFO


def assistant(script: Script, *tools: Any, repeats: bool = False, **more: Any) -> AssistantAgent:
    model = Scripted(script, repeats)
    more = {"tools": list(tools) or None, "max_tool_iterations": 3, **more}
    return AssistantAgent("alice", model_client=model, **more)


def swarm(script: Script, to: str, repeats: bool = False) -> Swarm:
    alice = assistant(script, handoffs=[adapter.transfer(to)], repeats=repeats)
    ends = HandoffTermination(to) | MaxMessageTermination(8)
    return Swarm([alice], termination_condition=ends)


class AutoGen(Kit):
    title, package = "AutoGen", "autogen-agentchat"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool, RemoteAgent",
        "send_a_transfer": "transfer",
        "resume_after_the_sender_died": "transferred, resume",
        "serve": "serve(make, …)",
        "question": "sender_proxy, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        made = "autogen_ext.models.openai.OpenAIChatCompletionClient"
        return {made: lambda **_: Scripted(script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        alice = assistant(script, adapter.handoff_tool(to, client=client, **sending))
        return str((await alice.run(task="Go.")).messages[-1].content)

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        script.calls = [(name, {}) for name, _ in script.calls]
        team = swarm(script, to)
        done = await team.run(task="Go.")
        found = await adapter.transferred(team, done, client=client)
        kept.write_text(json.dumps(found), "utf-8")

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        team = swarm(script, to, repeats=True)
        done = await adapter.resume(team, json.loads(kept.read_text("utf-8")), client)
        return str(done.messages[-1].content)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        def make() -> Any:
            for to, kind in tools.items():
                if kind == "transfer":
                    script.calls = [(called, {}) for called, _ in script.calls]
                    return swarm(script, to)
                if kind in ("call", "capability"):
                    tool = adapter.handoff_tool(to, by_capability=kind == "capability")
                    return assistant(script, tool)
                return assistant(script, adapter.question_tool())
            return assistant(script)

        return adapter.serve(make, name, **options)


KIT = AutoGen()


class Own(Base):
    """What only AutoGen has."""

    async def test_a_remote_agent_takes_its_turn_in_a_team(self) -> None:
        remote = adapter.RemoteAgent("fact-checker", client=self.client)
        chat = RoundRobinGroupChat(
            [assistant(Script(line="I think so.")), remote],
            termination_condition=MaxMessageTermination(3),
        )
        done, envelope = await self.together(
            chat.run(task="Is it safe?"), self.answer("fact-checker", "It is.")
        )
        self.assertEqual(done.messages[-1].content, "It is.")
        self.assertEqual(envelope["payload"]["text"], "I think so.")
        told = [one["said"] for one in envelope["payload"]["conversation"]]
        self.assertEqual(told, ["Is it safe?"])

    async def test_a_proxy_in_a_team_stands_for_the_sender(self) -> None:
        def make() -> Any:
            return RoundRobinGroupChat(
                [assistant(Script(line="Which database?")), adapter.sender_proxy()],
                termination_condition=MaxMessageTermination(3),
            )

        worker = adapter.serve(make, "team", client=self.client)
        sent = await self.offer("team")

        async def answers() -> None:
            await sent.question(timeout=60)
            await sent.answer("PostgreSQL")

        result, _ = await self.during(worker, sent.result(), answers())
        self.assertEqual(result.payload["text"], "PostgreSQL")

    async def test_a_fresh_agent_is_made_for_each_claim(self) -> None:
        made: list[Script] = []

        def make() -> Any:
            made.append(Script())
            return assistant(made[-1])

        worker = adapter.serve(make, "fresh", client=self.client)
        sent = [await self.offer("fresh"), await self.offer("fresh")]
        await self.during(worker, *(one.result() for one in sent))
        self.assertEqual([len(one.seen) for one in made], [1, 1])

    async def test_an_error_in_a_team_is_classified_by_its_text(self) -> None:
        from stage import ProviderError

        script = asks("nobody", errors=[ProviderError(503)])
        script.calls = []

        def make() -> Any:
            return RoundRobinGroupChat(
                [assistant(script)], termination_condition=MaxMessageTermination(2)
            )

        worker = adapter.serve(make, "flaky-team", client=self.client)
        sent = await self.offer("flaky-team")
        (result,) = await self.during(worker, sent.result())
        self.assertEqual(result.payload["text"], "Looks good.")
        self.assertEqual(len((await sent.status()).attempts), 2)
