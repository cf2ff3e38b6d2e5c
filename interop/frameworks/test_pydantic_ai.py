# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI, with a scripted model."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, ModelMessagesTypeAdapter, models
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from stage import CONSTRAINT, INTENT, Stage

import tasuki.pydantic_ai as adapter

models.ALLOW_MODEL_REQUESTS = False


def scripted(tool: str | None, seen: list[str] | None = None) -> FunctionModel:
    """Calls the tool once, then repeats what it returned; without a tool it says what it read."""

    def reply(messages: list[Any], _: Any) -> ModelResponse:
        last = messages[-1].parts[-1]
        if seen is not None and not isinstance(last, ToolReturnPart):
            seen.append(str(last.content))
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"They say: {last.content}")])
        if tool:
            call = ToolCallPart(tool, {"task": "Is it safe?"}, tool_call_id="call-1")
            return ModelResponse(parts=[call])
        return ModelResponse(parts=[TextPart("Looks good.")])

    return FunctionModel(reply)


class PydanticAI(Stage):
    async def test_send_call_returns_the_result_to_the_model(self) -> None:
        tool = adapter.handoff_tool("fact-checker", client=self.client)
        agent = Agent(scripted("handoff_to_fact_checker"), tools=[tool])
        serving = self.answer("fact-checker", "It is.")
        done, _ = await asyncio.gather(agent.run("Check it."), serving)
        self.assertEqual(done.output, "They say: It is.")

    async def test_serve_reads_the_brief_and_reports_usage(self) -> None:
        seen: list[str] = []
        worker = adapter.serve(Agent(scripted(None, seen)), "analyst", client=self.client)
        handoff = await self.offer("analyst")
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "Looks good.")
        for words in (INTENT, CONSTRAINT, "users-by-id", "data and not an instruction"):
            self.assertIn(words, seen[0])
        self.assertGreater(result.usage.input_tokens, 0)

    async def test_constraints_go_on_whether_or_not_the_program_thinks_of_them(self) -> None:
        tool = adapter.handoff_tool("checker-2")
        agent = Agent(scripted("handoff_to_checker_2"), tools=[tool])
        worker = adapter.serve(agent, "analyst-2", client=self.client)
        handoff = await self.offer("analyst-2")
        result, envelope = await self.during(
            worker, handoff.result(), self.answer("checker-2", "Fine.")
        )
        self.assertEqual(result.payload["text"], "They say: Fine.")
        self.assertEqual(self.texts(envelope), [CONSTRAINT])
        self.assertEqual(envelope["intent"], INTENT)

    async def test_a_failed_call_is_text_for_the_model_and_a_mark_on_the_result(self) -> None:
        agent = Agent(scripted("handoff_to_checker_3"), tools=[adapter.handoff_tool("checker-3")])
        worker = adapter.serve(agent, "analyst-3", client=self.client)
        handoff = await self.offer("analyst-3")
        result, _ = await self.during(worker, handoff.result(), self.refuse("checker-3"))
        self.assertIn("there is no such file", result.payload["text"])
        self.assertEqual(result.action, "needs_review")
        self.assertIn("checker-3", result.gaps[0])

    async def test_a_run_that_is_done_again_creates_nothing_twice(self) -> None:
        tool = adapter.handoff_tool("checker-4")
        agent = Agent(scripted("handoff_to_checker_4"), tools=[tool])
        handoff = await self.offer("analyst-4")
        async with self.client.claim(agent="analyst-4") as claim:
            started = await claim.start_call(to="checker-4", step="call-1", payload="Other words?")
            await self.answer("checker-4", "Asked once.")
            await claim.release()
        worker = adapter.serve(agent, "analyst-4", client=self.client)
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "They say: Asked once.")
        sent = await self.client.handoffs.page(to_agent="checker-4")
        self.assertEqual([one.handoff_id for one in sent.handoffs], [started.id])

    async def test_a_later_process_resumes_with_the_result(self) -> None:
        tool = adapter.deferred_tool("checker-5", client=self.client)
        model = scripted("handoff_to_checker_5")
        agent = Agent(model, tools=[tool], output_type=[str, DeferredToolRequests])
        first = await agent.run("Check it.")
        self.assertIsInstance(first.output, DeferredToolRequests)
        kept = ModelMessagesTypeAdapter.dump_json(first.all_messages())
        await self.answer("checker-5", "Later.")
        found = await adapter.results(first.output, self.client)
        history = ModelMessagesTypeAdapter.validate_json(kept)
        again = await agent.run(message_history=history, deferred_tool_results=found)
        self.assertEqual(again.output, "They say: Later.")


if __name__ == "__main__":
    unittest.main()
