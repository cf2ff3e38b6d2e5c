# SPDX-License-Identifier: Apache-2.0
"""CrewAI with a scripted model."""

from __future__ import annotations

import json
import os
import re
from typing import Any

os.environ.update(
    CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true", CREWAI_TRACING_ENABLED="false"
)

from crewai import Agent, BaseLLM, Crew, Task
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script
from suite import Base

import tasuki.crewai as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker

NO_STATE = "a crew has no state that a later process could go on from, and its tools must return"
STOP = "\nObservation:"


class Scripted(BaseLLM):
    """Speaks ReAct, as models without function calling do."""

    script: Any = None

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        listed = [messages] if isinstance(messages, str) else [one["content"] for one in messages]
        texts, said = [str(one) for one in listed], "\n".join(str(one) for one in listed)
        # The first message explains the form; what the model got is in those that follow.
        outputs = [
            found.strip()
            for text in texts[1:]
            for found in re.findall(r"\nObservation:(.*)", text, re.S)
            if "the result of the action" not in found
        ]
        reply = self.script.reply(outputs, said)
        self._track_token_usage_internal(
            {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
        )
        if isinstance(reply, Call):
            arguments = json.dumps(reply.arguments)
            return f"Thought: I call.\nAction: {reply.name}\nAction Input: {arguments}"
        return f"Thought: I now know the final answer\nFinal Answer: {reply}"

    def supports_function_calling(self) -> bool:
        return False

    def supports_stop_words(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 100_000


def crew(script: Script, *tools: Any) -> Crew:
    llm = Scripted(model="scripted", script=script)
    alice = Agent(
        role="alice", goal="Answer.", backstory="-", llm=llm, tools=list(tools), max_retry_limit=0
    )
    task = Task(description="{task}", expected_output="An answer.", agent=alice)
    return Crew(agents=[alice], tasks=[task], cache=False)


class CrewAI(Kit):
    title, package = "CrewAI", "crewai"
    cannot = {"resume_after_the_sender_died": NO_STATE}  # noqa: RUF012
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool",
        "send_a_transfer": "transfer_tool",
        "serve": "serve(make, …)",
        "question": "question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        return {"crewai.LLM": lambda **_: Scripted(model="scripted", script=script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        made = crew(script, adapter.handoff_tool(to, client=client, **sending))
        return str((await made.kickoff_async(inputs={"task": "Go."})).raw)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        made = {
            "call": adapter.handoff_tool,
            "transfer": adapter.transfer_tool,
            "capability": lambda to: adapter.handoff_tool(to, by_capability=True),
            "question": lambda _: adapter.question_tool(),
        }

        def make() -> Crew:
            return crew(script, *(made[kind](to) for to, kind in tools.items()))

        return adapter.serve(make, name, **options)


KIT = CrewAI()


class Own(Base):
    """What only CrewAI has."""

    async def test_an_agent_without_a_crew_serves(self) -> None:
        def make() -> Agent:
            llm = Scripted(model="scripted", script=Script())
            return Agent(role="alice", goal="Answer.", backstory="-", llm=llm)

        worker = adapter.serve(make, "single", client=self.client)
        sent = await self.offer("single")
        (result,) = await self.during(worker, sent.result())
        self.assertEqual(result.payload["text"], "Looks good.")
