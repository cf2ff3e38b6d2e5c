# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI: hand work to other agents from a tool, and serve an agent.

Needs the extra `tasuki[pydantic-ai]`.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import CallDeferred, DeferredToolResults, RunContext, Tool
from typing_extensions import Unpack

from ._adapters import Errors, Serving, ask, current_claim, described, served, text_of, tool_name
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from .worker import AsyncWorker

__all__ = ["current_claim", "deferred_tool", "handoff_tool", "results", "serve"]

_WAITS = "tasuki_handoff"


def handoff_tool(
    to: str,
    *,
    by_capability: bool = False,
    client: AsyncClient | None = None,
    timeout: Span | None = None,
    on_error: Errors = "text",
    description: str | None = None,
) -> Tool[Any]:
    """A tool that hands a part of the work to another agent and returns its result."""

    async def call(ctx: RunContext[Any], task: str) -> str:
        return await ask(
            to,
            task,
            key=ctx.tool_call_id,
            by_capability=by_capability,
            client=client,
            timeout=timeout,
            on_error=on_error,
        )

    return Tool(call, name=tool_name(to), description=description or described(to))


def deferred_tool(to: str, *, client: AsyncClient, description: str | None = None) -> Tool[Any]:
    """The same without waiting: the run ends with `DeferredToolRequests`, the process may end, and
    `results` gives what a later one goes on with. The agent's output type must have
    `DeferredToolRequests`."""

    async def call(ctx: RunContext[Any], task: str) -> str:
        said = {"type": "request", "text": task}
        key = f"deferred:{ctx.tool_call_id}"
        handoff = await client.handoff(to=to, intent=task, payload=said, idempotency_key=key)
        raise CallDeferred(metadata={_WAITS: handoff.id})

    return Tool(call, name=tool_name(to), description=description or described(to))


async def results(
    requests: Any, client: AsyncClient, *, timeout: Span | None = None
) -> DeferredToolResults:
    """Waits for what `deferred_tool` handed over: `agent.run(message_history=…,
    deferred_tool_results=await results(requests, client))`. `requests` is the output of the run."""
    calls: dict[str, Any] = {}
    for one in requests.calls:
        waits = (requests.metadata.get(one.tool_call_id) or {}).get(_WAITS)
        if waits:
            found = await client.results([waits], timeout=timeout)
            calls[one.tool_call_id] = text_of(found[0])
    return DeferredToolResults(calls=calls)


def serve(agent: Any, name: str, *, deps: Any = None, **options: Unpack[Serving]) -> AsyncWorker:
    """An agent as a worker: `tasuki.pydantic_ai.serve(agent, "analyst").run()`. Its tools find the
    claim by `current_claim()`, so `deps` stay the program's own. Usage is reported; an output that
    is a model is the result's payload."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        done = await agent.run(prompt, deps=deps)
        used = done.usage
        if not hasattr(used, "input_tokens"):  # It was a method before it was a property.
            used = used()
        claim.usage(
            input_tokens=used.input_tokens or 0,
            output_tokens=used.output_tokens or 0,
            model=getattr(agent.model, "model_name", None),
        )
        return done.output

    return served(run, name, **options)
