# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents: hand work to other agents from a tool, and serve an agent.

Needs the extra `tasuki[openai-agents]`.
"""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool, Runner
from agents.tool_context import ToolContext
from typing_extensions import Unpack

from ._adapters import Errors, Serving, ask, current_claim, described, served, tool_name
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from .worker import AsyncWorker

__all__ = ["current_claim", "handoff_tool", "serve"]

_TASK = {
    "type": "object",
    "properties": {"task": {"type": "string", "description": "What is to be done, in full."}},
    "required": ["task"],
    "additionalProperties": False,
}


def handoff_tool(
    to: str,
    *,
    by_capability: bool = False,
    client: AsyncClient | None = None,
    timeout: Span | None = None,
    on_error: Errors = "text",
    description: str | None = None,
) -> FunctionTool:
    """A tool that hands a part of the work to another agent and returns its result. A lost claim
    comes out of it and ends the run: it is no tool that failed."""

    async def call(ctx: ToolContext[Any], arguments: str) -> str:
        return await ask(
            to,
            str(json.loads(arguments)["task"]),
            key=ctx.tool_call_id,
            by_capability=by_capability,
            client=client,
            timeout=timeout,
            on_error=on_error,
        )

    return FunctionTool(
        name=tool_name(to),
        description=description or described(to),
        params_json_schema=_TASK,
        on_invoke_tool=call,
    )


def serve(agent: Any, name: str, *, context: Any = None, **options: Unpack[Serving]) -> AsyncWorker:
    """An agent as a worker: `tasuki.openai_agents.serve(agent, "coder").run()`. Usage is reported;
    an output that is a model is the result's payload."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        done = await Runner.run(agent, prompt, context=context)
        used = done.context_wrapper.usage
        claim.usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens)
        return done.final_output

    return served(run, name, **options)
