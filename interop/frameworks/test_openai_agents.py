# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import unittest
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from stage import CONSTRAINT, INTENT, Stage

import tasuki.openai_agents as adapter

set_tracing_disabled(True)


class Scripted(Model):
    """Calls the tool once, then repeats what it returned; without a tool it says its line."""

    def __init__(self, tool: str = "") -> None:
        self.tool = tool
        self.seen: list[str] = []

    async def get_response(self, *given: Any, **named: Any) -> ModelResponse:
        input = named["input"] if "input" in named else given[1]
        last = input if isinstance(input, str) else input[-1]
        if isinstance(last, dict) and last.get("type") == "function_call_output":
            return self._said(f"They say: {last['output']}")
        self.seen.append(last if isinstance(last, str) else str(last["content"]))
        if not self.tool:
            return self._said("Looks good.")
        arguments = json.dumps({"task": "Is it safe?"})
        call = ResponseFunctionToolCall(
            arguments=arguments, call_id="call-1", name=self.tool, type="function_call"
        )
        return self._replied(call)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def _said(self, text: str) -> ModelResponse:
        part = ResponseOutputText(annotations=[], text=text, type="output_text", logprobs=[])
        return self._replied(
            ResponseOutputMessage(
                id="m", content=[part], role="assistant", status="completed", type="message"
            )
        )

    def _replied(self, item: Any) -> ModelResponse:
        usage = Usage(requests=1, input_tokens=7, output_tokens=3, total_tokens=10)
        return ModelResponse(output=[item], usage=usage, response_id=None)


class OpenAIAgents(Stage):
    async def test_send_call_returns_the_result_to_the_model(self) -> None:
        tool = adapter.handoff_tool("fact-checker", client=self.client)
        agent = Agent(name="a", model=Scripted("handoff_to_fact_checker"), tools=[tool])
        done, _ = await asyncio.gather(
            Runner.run(agent, "Check it."), self.answer("fact-checker", "It is.")
        )
        self.assertEqual(done.final_output, "They say: It is.")

    async def test_serve_reads_the_brief_and_reports_usage(self) -> None:
        model = Scripted()
        worker = adapter.serve(Agent(name="a", model=model), "coder", client=self.client)
        handoff = await self.offer("coder")
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "Looks good.")
        for words in (INTENT, CONSTRAINT, "users-by-id"):
            self.assertIn(words, model.seen[0])
        self.assertEqual((result.usage.input_tokens, result.usage.output_tokens), (7, 3))

    async def test_constraints_go_on_whether_or_not_the_program_thinks_of_them(self) -> None:
        tool = adapter.handoff_tool("checker-2")
        agent = Agent(name="a", model=Scripted("handoff_to_checker_2"), tools=[tool])
        worker = adapter.serve(agent, "coder-2", client=self.client)
        handoff = await self.offer("coder-2")
        result, envelope = await self.during(
            worker, handoff.result(), self.answer("checker-2", "Fine.")
        )
        self.assertEqual(result.payload["text"], "They say: Fine.")
        self.assertEqual(self.texts(envelope), [CONSTRAINT])

    async def test_a_failed_call_is_text_for_the_model_and_a_mark_on_the_result(self) -> None:
        tool = adapter.handoff_tool("checker-3")
        agent = Agent(name="a", model=Scripted("handoff_to_checker_3"), tools=[tool])
        worker = adapter.serve(agent, "coder-3", client=self.client)
        handoff = await self.offer("coder-3")
        result, _ = await self.during(worker, handoff.result(), self.refuse("checker-3"))
        self.assertIn("there is no such file", result.payload["text"])
        self.assertEqual(result.action, "needs_review")

    async def test_a_lost_claim_ends_the_run_and_is_no_failed_tool(self) -> None:
        tool = adapter.handoff_tool("nobody-4")
        model = Scripted("handoff_to_nobody_4")
        worker = adapter.serve(
            Agent(name="a", model=model, tools=[tool]), "coder-4", client=self.client, lease=1
        )
        handoff = await self.offer("coder-4")

        async def cancels() -> None:
            # The call is there, so the run waits for it.
            while not (await self.client.handoffs.page(to_agent="nobody-4")).handoffs:
                await asyncio.sleep(0)
            await handoff.cancel()

        await self.during(worker, cancels())
        self.assertEqual(len(model.seen), 1)
        self.assertEqual((await handoff.status()).state, "cancelled")


if __name__ == "__main__":
    unittest.main()
