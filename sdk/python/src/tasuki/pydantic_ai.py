# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI: hand work to other agents from a tool, and serve an agent.

Needs the extra `tasuki[pydantic-ai]`.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import (
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    RunUsage,
    StructuredDict,
    Tool,
    ToolDenied,
    UsageLimits,
)
from typing_extensions import Unpack

from . import _adapters as a
from . import errors
from ._adapters import Sending, current_claim, current_run
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from ._serving import Serving, expected_schema, served
from .worker import AsyncWorker

__all__ = [
    "current_claim",
    "current_run",
    "handoff_tool",
    "question_tool",
    "results",
    "serve",
    "transfer_tool",
]

_WAITS = "tasuki_handoff"


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> Tool[Any]:
    """A tool that hands a part of the work to another agent and returns its result. With
    `history_tokens`, so much of the conversation goes along as quoted data."""

    async def call(ctx: RunContext[Any], task: str) -> str:
        said = _said(ctx) if sending.get("history_tokens") else ()
        return await a.ask(to, task, key=ctx.tool_call_id, said=said, **sending)

    return Tool(call, name=a.tool_name(to), description=description or a.described(to))


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> Tool[Any]:
    """A tool that hands the work over and ends the turn. In a served agent the task passes to the
    other one. Elsewhere the run ends with `DeferredToolRequests`, which the agent's output type
    must have; the process may end, and `results` gives what a later one goes on with."""

    async def call(ctx: RunContext[Any], task: str) -> str:
        if a.pass_on(to, task, **sending):
            raise CallDeferred
        id = await a.begun(to, task, key=ctx.tool_call_id, **sending)
        raise CallDeferred(metadata={_WAITS: id})

    name = a.tool_name(to, "transfer_to")
    return Tool(call, name=name, description=description or a.described_transfer(to))


def question_tool() -> Tool[Any]:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(question: str) -> str:
        return await a.question(question)

    return Tool(call, name=a.ASK_NAME, description=a.ASK_DESCRIPTION)


async def results(
    requests: Any, client: AsyncClient, *, timeout: Span | None = None
) -> DeferredToolResults:
    """Waits for what `transfer_tool` handed over: `agent.run(message_history=…,
    deferred_tool_results=await results(requests, client))`. `requests` is the output of the run."""
    calls: dict[str, Any] = {}
    for one in requests.calls:
        waits = (requests.metadata.get(one.tool_call_id) or {}).get(_WAITS)
        if waits:
            calls[one.tool_call_id] = await a.outcome(waits, client, timeout=timeout)
    return DeferredToolResults(calls=calls)


def serve(agent: Any, name: str, *, deps: Any = None, **options: Unpack[Serving]) -> AsyncWorker:
    """An agent as a worker: `tasuki.pydantic_ai.serve(agent, "analyst").run()`. Its tools find the
    claim by `current_claim()`, so `deps` stay the program's own. Usage is reported, and what the
    task may still spend is the run's limit; the expected output is the output type; a tool that
    needs approval asks the sender for leave."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        schema, budget = expected_schema(claim), claim.envelope.budget
        kind = agent.output_type
        if schema and kind is str:
            kind = StructuredDict(schema, name="expected_output")
        used = RunUsage()
        given: dict[str, Any] = {
            "deps": deps,
            "usage": used,
            "output_type": [kind, DeferredToolRequests],
            "usage_limits": UsageLimits(total_tokens_limit=budget.tokens if budget else None),
        }
        try:
            done = await agent.run(prompt, **given)
            while isinstance(done.output, DeferredToolRequests):
                held = current_run()
                if held and held.passed:
                    return {"type": "handed_on"}
                found = await _decided(done.output)
                history = done.all_messages()
                done = await agent.run(
                    message_history=history, deferred_tool_results=found, **given
                )
        finally:
            claim.usage(
                input_tokens=used.input_tokens or 0,
                output_tokens=used.output_tokens or 0,
                model=getattr(agent.model, "model_name", None),
            )
        return done.output

    return served(run, name, **options)


async def _decided(requests: DeferredToolRequests) -> DeferredToolResults:
    """What the sender lets the agent do."""
    if requests.calls:
        names = ", ".join(one.tool_name for one in requests.calls)
        hint = "serve an agent whose tools are executed where it runs"
        raise errors.Permanent(f"nobody executes the deferred tools {names}", hint=hint)
    found = DeferredToolResults()
    for one in requests.approvals:
        granted = await a.leave(f"May {one.tool_name} be called?", arguments=str(one.args))
        found.approvals[one.tool_call_id] = granted or ToolDenied("The sender did not allow it.")
    return found


def _said(ctx: RunContext[Any]) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    for message in ctx.messages:
        for part in message.parts:
            content = getattr(part, "content", None)
            if content:
                said.append((part.part_kind, str(content)))
    return said
