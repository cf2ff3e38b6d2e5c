# SPDX-License-Identifier: Apache-2.0
"""LangGraph with a scripted model."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, ProviderError, Script
from suite import Base

import tasuki.langgraph as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker


class Scripted(BaseChatModel):
    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
        outputs = [str(one.content) for one in messages if isinstance(one, ToolMessage)]
        said = self.script.reply(outputs, "\n".join(str(one.content) for one in messages))
        usage: Any = {
            "input_tokens": INPUT_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        if isinstance(said, Call):
            call: Any = {"name": said.name, "args": said.arguments, "id": said.id}
            message = AIMessage(content="", tool_calls=[call], usage_metadata=usage)
        else:
            message = AIMessage(content=said, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def built(script: Script, *tools: Any, checkpointer: Any = None) -> Any:
    graph = StateGraph(MessagesState)
    model = Scripted(script=script)

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph.add_node("think", think)
    graph.add_edge(START, "think")
    if tools:
        graph.add_node("tools", ToolNode(list(tools)))
        graph.add_conditional_edges("think", tools_condition)
        graph.add_edge("tools", "think")
    return graph.compile(checkpointer=checkpointer)


class File(InMemorySaver):
    """A checkpointer that lasts: what it has is in a file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        if path.exists():
            kept = pickle.loads(path.read_bytes())
            for thread, spaces in kept["storage"].items():
                for space, points in spaces.items():
                    self.storage[thread][space] = points
            self.writes.update(kept["writes"])
            self.blobs.update(kept["blobs"])

    def keep(self) -> None:
        storage = {thread: dict(spaces) for thread, spaces in self.storage.items()}
        kept = {
            "storage": storage,
            "writes": dict(self.writes),
            "blobs": dict(self.blobs),
        }
        self._path.write_bytes(pickle.dumps(kept))


THREAD: Any = {"configurable": {"thread_id": "one"}}


class LangGraph(Kit):
    title, package = "LangGraph", "langgraph"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "resume",
        "serve": "serve(graph, …)",
        "question": "interrupt, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        return {"langchain.chat_models.init_chat_model": lambda _: Scripted(script=script)}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        graph = built(script, adapter.handoff_tool(to, client=client, **sending))
        return str((await graph.ainvoke({"messages": [("user", "Go.")]}))["messages"][-1].content)

    def _transferring(self, script: Script, to: str, client: AsyncClient, kept: Path) -> Any:
        tool = adapter.transfer_tool(to, client=client)
        return built(script, tool, checkpointer=File(kept))

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        graph = self._transferring(script, to, client, kept)
        await graph.ainvoke({"messages": [("user", "Go.")]}, THREAD)
        graph.checkpointer.keep()

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        graph = self._transferring(script, to, client, kept)
        return str((await adapter.resume(graph, THREAD, client))["messages"][-1].content)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        made = {
            "call": adapter.handoff_tool,
            "transfer": adapter.transfer_tool,
            "capability": lambda to: adapter.handoff_tool(to, by_capability=True),
            "question": lambda _: adapter.question_tool(),
        }
        graph = built(script, *(made[kind](to) for to, kind in tools.items()))
        return adapter.serve(graph, name, **options)


KIT = LangGraph()


class Own(Base):
    """What only LangGraph has."""

    async def test_what_a_graph_asks_by_interrupt_is_asked_of_the_sender(self) -> None:
        graph = StateGraph(MessagesState)

        def decide(_: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(content=f"With {interrupt('Which database?')}.")]}

        graph.add_node("decide", decide)
        graph.add_edge(START, "decide")
        graph.add_edge("decide", END)
        worker = adapter.serve(graph.compile(), "decider", client=self.client)
        handoff = await self.offer("decider")

        async def answers() -> None:
            question = await handoff.question(timeout=30)
            self.assertEqual(question.text, "Which database?")
            await handoff.answer("PostgreSQL")

        result, _ = await self.during(worker, handoff.result(), answers())
        self.assertEqual(result.payload["text"], "With PostgreSQL.")

    async def test_a_node_waits_and_passes_the_conversation_as_quoted_data(
        self,
    ) -> None:
        def node_in(client: AsyncClient | None) -> Any:
            graph = StateGraph(MessagesState)
            graph.add_node("bob", adapter.handoff_node("bob", client=client, history_tokens=5))
            graph.add_edge(START, "bob")
            graph.add_edge("bob", END)
            return graph.compile(checkpointer=InMemorySaver())

        graph = node_in(self.client)
        said = [("user", "x" * 99), ("user", "Be quick."), ("user", "Do it.")]
        await graph.ainvoke({"messages": said}, THREAD)
        envelope = await self.answer("bob", "Done.")
        state = await adapter.resume(graph, THREAD, self.client)
        self.assertEqual(state["messages"][-1].content, "Done.")
        told = [one["said"] for one in envelope["payload"]["conversation"]]
        self.assertEqual(told[1:], ["Be quick."])
        self.assertIn("1 earlier messages are left out", told[0])
        # The node ran twice, and there is one handoff.
        sent = await self.client.handoffs.page(to_agent="bob")
        self.assertEqual(len(sent.handoffs), 1)
        # Below a claim the same node waits for the result.
        worker = adapter.serve(node_in(None), "boss", client=self.client)
        handoff = await self.offer("boss")
        result, below = await self.during(worker, handoff.result(), self.answer("bob", "Twice."))
        self.assertEqual(result.payload["text"], "Twice.")
        self.assertEqual(below["intent"], (await handoff.envelope()).intent)

    async def test_a_retry_goes_on_from_the_last_checkpoint(self) -> None:
        ran: list[str] = []
        graph = StateGraph(MessagesState)

        def first(_: MessagesState) -> dict[str, Any]:
            ran.append("first")
            return {}

        def second(_: MessagesState) -> dict[str, Any]:
            ran.append("second")
            if ran.count("second") == 1:
                raise ProviderError(529)
            return {"messages": [AIMessage(content="Done.")]}

        graph.add_node("first", first)
        graph.add_node("second", second)
        graph.add_edge(START, "first")
        graph.add_edge("first", "second")
        worker = adapter.serve(
            graph.compile(checkpointer=InMemorySaver()), "retrier", client=self.client
        )
        handoff = await self.offer("retrier")
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "Done.")
        self.assertEqual(ran, ["first", "second", "second"])

    async def test_a_synchronous_graph_calls_too(self) -> None:
        import asyncio

        tool = adapter.handoff_tool("sync-helper", client=self.client)
        call = {
            "name": tool.name,
            "args": {"task": "Sync?"},
            "id": "s-1",
            "type": "tool_call",
        }
        said, _ = await self.together(
            asyncio.to_thread(tool.invoke, call),
            self.answer("sync-helper", "It works."),
        )
        self.assertEqual(said.content, "It works.")
