# SPDX-License-Identifier: Apache-2.0
"""LangGraph: hand work to other agents from a graph, and serve a graph as an agent.

Needs the extra `tasuki[langgraph]`.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from typing_extensions import Unpack

from . import _adapters as a
from ._adapters import Sending, current_claim, current_run
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from ._serving import Serving, served
from .worker import AsyncWorker

__all__ = [
    "current_claim",
    "current_run",
    "handoff_node",
    "handoff_tool",
    "question_tool",
    "resume",
    "serve",
    "transfer_tool",
]

_WAITS, _PASSED = "tasuki_handoff", "tasuki_passed"


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> BaseTool:
    """A tool that hands a part of the work to another agent and returns its result. The id of the
    tool call names it, so that a node that runs again creates nothing twice."""

    async def call(task: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        return await a.ask(to, task, key=tool_call_id, **sending)

    def call_and_wait(task: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        return a.waited(lambda: call(task, tool_call_id))

    return _tool(call, call_and_wait, a.tool_name(to), description or a.described(to))


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> BaseTool:
    """A tool that hands the work over and ends the turn. In a served graph the task passes to the
    other agent when the graph stops. Elsewhere the graph waits by `interrupt`: the process may end,
    and `resume` goes on with the result in a later one. The graph needs a checkpointer then."""

    async def call(
        task: str, tool_call_id: Annotated[str, InjectedToolCallId], config: RunnableConfig
    ) -> str:
        if a.pass_on(to, task, **sending):
            return str(interrupt({_PASSED: to}))
        thread = config.get("configurable", {}).get("thread_id")
        id = await a.begun(to, task, key=f"{thread}:{tool_call_id}", **sending)
        return str(interrupt({_WAITS: id}))

    def call_and_wait(
        task: str, tool_call_id: Annotated[str, InjectedToolCallId], config: RunnableConfig
    ) -> str:
        return a.waited(lambda: call(task, tool_call_id, config))

    name = a.tool_name(to, "transfer_to")
    return _tool(call, call_and_wait, name, description or a.described_transfer(to))


def question_tool() -> BaseTool:
    """A tool with which a served graph's model asks whoever the work is from."""

    async def call(question: str) -> str:
        return await a.question(question)

    def call_and_wait(question: str) -> str:
        return a.waited(lambda: call(question))

    return _tool(call, call_and_wait, a.ASK_NAME, a.ASK_DESCRIPTION)


def handoff_node(to: str, **sending: Unpack[Sending]) -> Any:
    """A node that has another agent answer the conversation's last word, and waits by `interrupt`:
    the process may end, and `resume` goes on with the result in a later one. What was said before
    goes along as quoted data. A node runs twice around an interrupt; its key makes that one
    handoff."""

    async def node(state: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        messages = state["messages"]
        key = f"{config['configurable']['thread_id']}:{len(messages)}"
        said = [(one.type, _text(one)) for one in messages[:-1]]
        id = await a.begun(to, _text(messages[-1]), key=key, said=said, **sending)
        return {"messages": [AIMessage(content=str(interrupt({_WAITS: id})))]}

    return node


async def resume(
    graph: Any, config: dict[str, Any], client: AsyncClient, *, timeout: Span | None = None
) -> Any:
    """Goes on with a graph that waits for handoffs, in whatever process: waits for their results
    and gives them to the graph. Returns what the graph returns."""
    state = await graph.aget_state(config)
    waits = [one for one in state.interrupts if _WAITS in _asked(one)]
    if not waits:
        raise ValueError("this graph does not wait for a handoff")
    found = {one.id: await a.outcome(_asked(one)[_WAITS], client, timeout=timeout) for one in waits}
    return await graph.ainvoke(Command(resume=found), config)


def serve(graph: Any, agent: str, **options: Unpack[Serving]) -> AsyncWorker:
    """A graph as a worker: `tasuki.langgraph.serve(graph, "planner").run()`. The thread is the
    handoff, so with a checkpointer that lasts a retry goes on where the last attempt was. What the
    graph asks by `interrupt` is asked of the sender, or of a person. State that the graph has a
    place for (`intent`, `constraints`, `payload`, `ask`) is filled in from the envelope."""
    known = set(graph.get_input_jsonschema().get("properties") or ())
    if not getattr(graph, "checkpointer", None):
        graph = graph.copy({"checkpointer": InMemorySaver()})

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        thread = {"thread_id": claim.handoff_id}
        config: Any = {"configurable": thread, "callbacks": [_Usage(claim)]}
        given: Any = {"messages": [HumanMessage(content=prompt)]}
        given |= {name: it for name, it in _parts(claim).items() if name in known}
        if (await graph.aget_state(config)).next:
            given = None
        while True:
            state = await graph.ainvoke(given, config)
            asked = state.get("__interrupt__") if isinstance(state, dict) else None
            passed = [to for one in asked or () if (to := _asked(one).get(_PASSED))]
            if passed:
                return {"type": "handed_on", "to": ", ".join(passed)}
            if not asked:
                return _last(state)
            given = Command(resume={one.id: await _answer(claim, one) for one in asked})

    return served(run, agent, **options)


class _Usage(BaseCallbackHandler):
    """Counts what every model of the graph used, also where its message is not kept."""

    def __init__(self, claim: AsyncClaim) -> None:
        self._claim = claim

    def on_llm_end(self, response: Any, **_: Any) -> None:
        for generation in (one for some in response.generations for one in some):
            message = getattr(generation, "message", None)
            used = getattr(message, "usage_metadata", None)
            if used:
                model = getattr(message, "response_metadata", {}).get("model_name")
                tokens = {name: used[name] for name in ("input_tokens", "output_tokens")}
                self._claim.usage(**tokens, model=model)


async def _answer(claim: AsyncClaim, asked: Any) -> Any:
    if _WAITS in _asked(asked):
        return await a.outcome(_asked(asked)[_WAITS], claim.client)
    value = asked.value
    return await a.question(value if isinstance(value, str) else json.dumps(value, default=str))


def _asked(one: Any) -> dict[str, Any]:
    return one.value if isinstance(one.value, dict) else {}


def _parts(claim: AsyncClaim) -> dict[str, Any]:
    envelope = claim.raw_envelope
    texts = [one.text for one in claim.constraints]
    return {**{n: envelope.get(n) for n in ("intent", "ask", "payload")}, "constraints": texts}


def _text(message: Any) -> str:
    content = message.content
    return content if isinstance(content, str) else json.dumps(content, default=str)


def _last(state: Any) -> Any:
    messages = state.get("messages") if isinstance(state, dict) else None
    last = messages[-1].content if messages else state
    return last if isinstance(last, (str, dict)) else json.loads(json.dumps(last, default=str))


def _tool(call: Any, call_and_wait: Any, name: str, description: str) -> BaseTool:
    return StructuredTool.from_function(
        func=call_and_wait, coroutine=call, name=name, description=description
    )
