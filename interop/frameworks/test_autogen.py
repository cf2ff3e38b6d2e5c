# SPDX-License-Identifier: Apache-2.0
"""AutoGen, with a scripted model."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient
from stage import CONSTRAINT, Stage

import tasuki.autogen as adapter


def assistant(*lines: str) -> AssistantAgent:
    return AssistantAgent("alice", model_client=ReplayChatCompletionClient(list(lines)))


def team(*members: Any) -> RoundRobinGroupChat:
    return RoundRobinGroupChat(
        list(members), termination_condition=MaxMessageTermination(len(members) + 1)
    )


class AutoGen(Stage):
    async def test_a_remote_agent_takes_its_turn_in_a_team(self) -> None:
        remote = adapter.RemoteAgent("fact-checker", client=self.client)
        chat = team(assistant("I think so."), remote)
        done, envelope = await asyncio.gather(
            chat.run(task="Is it safe?"), self.answer("fact-checker", "It is.")
        )
        self.assertEqual(done.messages[-1].content, "It is.")
        self.assertIn("> alice: I think so.", envelope["payload"]["text"])

    async def test_serve_answers_and_reports_usage_with_a_fresh_agent_per_claim(self) -> None:
        made: list[Any] = []

        def make() -> AssistantAgent:
            made.append(assistant("Looks good."))
            return made[-1]

        worker = adapter.serve(make, "critic", client=self.client)
        sent = [await self.offer("critic"), await self.offer("critic")]
        results = await self.during(worker, *(one.result() for one in sent))
        self.assertEqual([one.payload["text"] for one in results], ["Looks good."] * 2)
        self.assertEqual(len(made), 2)
        self.assertGreater(results[0].usage.input_tokens, 0)

    async def test_constraints_go_on_whether_or_not_the_program_thinks_of_them(self) -> None:
        def make() -> Any:
            return team(assistant("I ask."), adapter.RemoteAgent("checker-2"))

        worker = adapter.serve(make, "critic-2", client=self.client)
        handoff = await self.offer("critic-2")
        result, envelope = await self.during(
            worker, handoff.result(), self.answer("checker-2", "Fine.")
        )
        self.assertEqual(result.payload["text"], "Fine.")
        self.assertEqual(self.texts(envelope), [CONSTRAINT])

    async def test_a_failed_call_is_said_in_the_team_and_marks_the_result(self) -> None:
        def make() -> Any:
            return team(assistant("I ask."), adapter.RemoteAgent("checker-3"))

        worker = adapter.serve(make, "critic-3", client=self.client)
        handoff = await self.offer("critic-3")
        result, _ = await self.during(worker, handoff.result(), self.refuse("checker-3"))
        self.assertIn("there is no such file", result.payload["text"])
        self.assertEqual(result.action, "needs_review")


if __name__ == "__main__":
    unittest.main()
