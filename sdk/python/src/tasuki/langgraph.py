# SPDX-License-Identifier: Apache-2.0
"""LangGraph: hand work to other agents from a graph, and serve a graph as an agent.

Needs the extra `tasuki[langgraph]`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.types import Command, interrupt
from typing_extensions import Unpack

from ._adapters import Errors, Serving, ask, current_claim, described, served, text_of, tool_name
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from .worker import AsyncWorker

__all__ = ["current_claim", "handoff_node", "handoff_tool", "resume", "serve"]

_WAITS = "tasuki_handoff"


def handoff_tool(
    to: str,
    *,
    by_capability: bool = False,
    client: AsyncClient | None = None,
    timeout: Span | None = None,
    on_error: Errors = "text",
    description: str | None = None,
) -> BaseTool:
    """A tool that hands a part of the work to another agent and returns its result. The id of the
    tool call names it, so that a node that runs again creates nothing twice."""

    async def call(task: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        return await ask(
            to,
            task,
            key=tool_call_id,
            by_capability=by_capability,
            client=client,
            timeout=timeout,
            on_error=on_error,
        )

    def call_and_wait(task: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        return asyncio.run(call(task, tool_call_id))

    return StructuredTool.from_function(
        func=call_and_wait,
        coroutine=call,
        name=tool_name(to),
        description=description or described(to),
    )


def handoff_node(to: str, *, client: AsyncClient, by_capability: bool = False) -> Any:
    """A node that transfers the conversation's last word to another agent and waits by
    `interrupt`: the process may end, and `resume` goes on with the result in a later one. The graph
    needs a checkpointer. A node runs twice around an interrupt; its key makes that one handoff."""

    async def node(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        messages = state["messages"]
        last = messages[-1]
        thread = config["configurable"]["thread_id"]
        handoff = await client.handoff(
            to=None if by_capability else to,
            to_capability=to if by_capability else None,
            intent=str(last.content),
            payload={"type": "request", "text": str(last.content)},
            idempotency_key=f"{thread}:{to}:{len(messages)}",
        )
        return {"messages": [AIMessage(content=str(interrupt({_WAITS: handoff.id})))]}

    return node


async def resume(
    graph: Any, config: dict[str, Any], client: AsyncClient, *, timeout: Span | None = None
) -> Any:
    """Goes on with a graph that waits at a `handoff_node`, in whatever process: waits for the
    result and gives it to the graph. Returns what the graph returns."""
    state = await graph.aget_state(config)
    for one in state.interrupts:
        if isinstance(one.value, dict) and _WAITS in one.value:
            found = await client.results([one.value[_WAITS]], timeout=timeout)
            return await graph.ainvoke(Command(resume=text_of(found[0])), config)
    raise ValueError("this graph does not wait for a handoff")


def serve(graph: Any, agent: str, **options: Unpack[Serving]) -> AsyncWorker:
    """A graph as a worker: `tasuki.langgraph.serve(graph, "planner").run()`. The thread is the
    handoff, so with a checkpointer that lasts a retry goes on where the last attempt was. What the
    graph asks by `interrupt` is asked of the sender, or of a person."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        config = {"configurable": {"thread_id": claim.handoff_id}}
        begun = getattr(graph, "checkpointer", None) and (await graph.aget_state(config)).next
        given: Any = None if begun else {"messages": [HumanMessage(content=prompt)]}
        while True:
            state = await graph.ainvoke(given, config)
            asked = state.get("__interrupt__") if isinstance(state, dict) else None
            if not asked:
                break
            value = asked[0].value
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            given = Command(resume=await claim.ask(text))
        messages = state.get("messages") or []
        for message in messages:
            used = getattr(message, "usage_metadata", None)
            if used:
                claim.usage(input_tokens=used["input_tokens"], output_tokens=used["output_tokens"])
        last = messages[-1].content if messages else state
        return last if isinstance(last, (str, dict)) else json.loads(json.dumps(last, default=str))

    return served(run, agent, **options)
