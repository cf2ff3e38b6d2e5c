# SPDX-License-Identifier: Apache-2.0
"""LangGraph, with a scripted model."""

from __future__ import annotations

import asyncio
import unittest
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from stage import CONSTRAINT, INTENT, Stage

import tasuki.langgraph as adapter


class Scripted(BaseChatModel):
    """Calls the tool once, then repeats what it returned; without a tool it says its line."""

    tool: str = ""
    seen: list[str] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
        if isinstance(last, ToolMessage):
            said = AIMessage(content=f"They say: {last.content}", usage_metadata=usage)
        elif self.tool:
            call = {"name": self.tool, "args": {"task": "Is it safe?"}, "id": "call-1"}
            said = AIMessage(content="", tool_calls=[call], usage_metadata=usage)
        else:
            self.seen.append(str(last.content))
            said = AIMessage(content="Looks good.", usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=said)])


def built(model: Scripted, *tools: Any, checkpointer: Any = None) -> Any:
    graph = StateGraph(MessagesState)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph.add_node("think", think)
    graph.add_edge(START, "think")
    if tools:
        graph.add_node("tools", ToolNode(list(tools)))
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
    return graph.compile(checkpointer=checkpointer)


class LangGraph(Stage):
    async def test_send_call_returns_the_result_to_the_model(self) -> None:
        tool = adapter.handoff_tool("fact-checker", client=self.client)
        graph = built(Scripted(tool="handoff_to_fact_checker"), tool)
        asked = graph.ainvoke({"messages": [("user", "Check it.")]})
        state, _ = await asyncio.gather(asked, self.answer("fact-checker", "It is."))
        self.assertEqual(state["messages"][-1].content, "They say: It is.")

    async def test_serve_reads_the_brief_and_reports_usage(self) -> None:
        model = Scripted(seen=[])
        worker = adapter.serve(built(model), "planner", client=self.client)
        handoff = await self.offer("planner")
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "Looks good.")
        for words in (INTENT, CONSTRAINT, "users-by-id"):
            self.assertIn(words, model.seen[0])
        self.assertEqual((result.usage.input_tokens, result.usage.output_tokens), (7, 3))

    async def test_constraints_go_on_whether_or_not_the_program_thinks_of_them(self) -> None:
        graph = built(Scripted(tool="handoff_to_checker_2"), adapter.handoff_tool("checker-2"))
        worker = adapter.serve(graph, "planner-2", client=self.client)
        handoff = await self.offer("planner-2")
        result, envelope = await self.during(
            worker, handoff.result(), self.answer("checker-2", "Fine.")
        )
        self.assertEqual(result.payload["text"], "They say: Fine.")
        self.assertEqual(self.texts(envelope), [CONSTRAINT])

    async def test_a_failed_call_is_text_for_the_model_and_a_mark_on_the_result(self) -> None:
        graph = built(Scripted(tool="handoff_to_checker_3"), adapter.handoff_tool("checker-3"))
        worker = adapter.serve(graph, "planner-3", client=self.client)
        handoff = await self.offer("planner-3")
        result, _ = await self.during(worker, handoff.result(), self.refuse("checker-3"))
        self.assertIn("there is no such file", result.payload["text"])
        self.assertEqual(result.action, "needs_review")

    async def test_what_a_graph_asks_is_asked_of_the_sender(self) -> None:
        graph = StateGraph(MessagesState)

        def decide(_: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(content=f"With {interrupt('Which database?')}.")]}

        graph.add_node("decide", decide)
        graph.add_edge(START, "decide")
        graph.add_edge("decide", END)
        compiled = graph.compile(checkpointer=InMemorySaver())
        worker = adapter.serve(compiled, "planner-4", client=self.client)
        handoff = await self.offer("planner-4")

        async def answers() -> None:
            question = await handoff.question(timeout=30)
            self.assertEqual(question.text, "Which database?")
            await handoff.answer("PostgreSQL")

        result, _ = await self.during(worker, handoff.result(), answers())
        self.assertEqual(result.payload["text"], "With PostgreSQL.")

    async def test_a_node_waits_by_interrupt_and_a_later_process_resumes(self) -> None:
        graph = StateGraph(MessagesState)
        graph.add_node("bob", adapter.handoff_node("bob", client=self.client))
        graph.add_edge(START, "bob")
        graph.add_edge("bob", END)
        compiled = graph.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "t-1"}}
        await compiled.ainvoke({"messages": [("user", "Do it.")]}, config)
        await self.answer("bob", "Done.")
        state = await adapter.resume(compiled, config, self.client)
        self.assertEqual(state["messages"][-1].content, "Done.")
        # The node ran twice, and there is one handoff.
        sent = await self.client.handoffs.page(to_agent="bob")
        self.assertEqual(len(sent.handoffs), 1)


if __name__ == "__main__":
    unittest.main()
