# SPDX-License-Identifier: Apache-2.0
"""LlamaIndex: hand work to other agents from a tool, and serve an agent or a workflow.

Needs the extra `tasuki[llama-index]`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.agent.workflow import AgentOutput
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent
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
    "handoff_tool",
    "question_tool",
    "resume",
    "serve",
    "transfer_tool",
    "transferred",
]

_WAITS = "tasuki_handoff"


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands a part of the work to another agent and returns its result. LlamaIndex
    gives a tool no id of its call: it is known by its words, and counted."""

    async def call(task: str) -> str:
        return await a.firmly(a.ask(to, task, key=None, **sending))

    return _tool(call, a.tool_name(to), description or a.described(to))


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands the work over and ends the turn. In a served agent the task passes to the
    other one; elsewhere the process may end: see `transferred`."""

    async def call(task: str) -> str:
        if a.pass_on(to, task, **sending):
            return f"The work passes to {to} now."
        return json.dumps({_WAITS: await a.begun(to, task, key=None, **sending)})

    name = a.tool_name(to, "transfer_to")
    return _tool(call, name, description or a.described_transfer(to), ends=True)


def question_tool() -> FunctionTool:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(question: str) -> str:
        return await a.firmly(a.question(question))

    return _tool(call, a.ASK_NAME, a.ASK_DESCRIPTION)


async def transferred(handler: Any, done: Any) -> dict[str, Any]:
    """What a later process needs of a run that ended with a transfer (`done = await handler`): it
    is JSON, to be kept. The process may end."""
    waits = _waits(str(done.response.content))
    if waits is None:
        raise ValueError("this run did not end with a transfer")
    memory = await handler.ctx.store.get("memory", default=None)
    said = await memory.aget_all() if memory else []
    return {"handoff": waits, "messages": [one.model_dump(mode="json") for one in said]}


async def resume(
    agent: Any, kept: Mapping[str, Any], client: AsyncClient, *, timeout: Span | None = None
) -> Any:
    """Goes on with what `transferred` returned, in whatever process and with a new agent: waits for
    the result and runs the agent with it."""
    text = await a.outcome(kept["handoff"], client, timeout=timeout)
    said = f"What you handed over is done. This is the result:\n{text}"
    history = [ChatMessage.model_validate(one) for one in kept["messages"]]
    return await agent.run(user_msg=said, chat_history=history)


def serve(agent: Any, name: str, **options: Unpack[Serving]) -> AsyncWorker:
    """An agent or an `AgentWorkflow` as a worker: `tasuki.llama_index.serve(agent, "coder").run()`;
    each claim has a context of its own. What it waits for with an `InputRequiredEvent` is asked of
    the sender. Usage is reported where the model's client gives it (`raw["usage"]`)."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        handler = agent.run(user_msg=prompt)
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                asked = getattr(event, "prefix", "") or str(event)
                answer = HumanResponseEvent(response=await a.question(asked))
                handler.ctx.send_event(answer)
            elif isinstance(event, AgentOutput):
                claim.usage(**_used(event.raw))
        done = await handler
        held = current_run()
        if held and held.passed:
            return {"type": "handed_on"}
        structured = getattr(done, "structured_response", None)
        return structured or str(getattr(getattr(done, "response", done), "content", done))

    return served(run, name, **options)


def _used(raw: Any) -> dict[str, Any]:
    """As clients of model providers name it."""
    used = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    if used is None:
        return {}
    said: Mapping[str, Any] = used if isinstance(used, Mapping) else vars(used)
    return {
        "input_tokens": int(said.get("prompt_tokens") or said.get("input_tokens") or 0),
        "output_tokens": int(said.get("completion_tokens") or said.get("output_tokens") or 0),
    }


def _waits(text: str) -> str | None:
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said.get(_WAITS) if isinstance(said, dict) else None


def _tool(
    call: Callable[..., Any], name: str, description: str, ends: bool = False
) -> FunctionTool:
    return FunctionTool.from_defaults(
        async_fn=call, name=name, description=description, return_direct=ends
    )
