# SPDX-License-Identifier: Apache-2.0
"""Claude Agent SDK: hand work to other agents from a tool, and serve an agent.

Needs the extra `tasuki[claude]`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SdkMcpTool,
    create_sdk_mcp_server,
    query,
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
    "ask_for_leave",
    "current_claim",
    "current_run",
    "handoff_tool",
    "question_tool",
    "resume",
    "serve",
    "transfer_tool",
    "transferred",
    "with_tools",
]

_SERVER = "tasuki"
_RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> SdkMcpTool[Any]:
    """A tool that hands a part of the work to another agent and returns its result. The SDK gives a
    tool no id of its call: it is known by its words, and counted."""

    async def call(given: dict[str, Any]) -> dict[str, Any]:
        return await _until_over(a.ask(to, given["task"], key=None, **sending))

    return SdkMcpTool(a.tool_name(to), description or a.described(to), {"task": str}, call)


@dataclasses.dataclass
class _Transfer(SdkMcpTool[Any]):
    """A tool whose call is deferred: the run ends with it."""

    to: str = ""
    sending: Sending = dataclasses.field(default_factory=Sending)


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> SdkMcpTool[Any]:
    """A tool that hands the work over and ends the turn: its call is deferred by a hook. In a
    served agent the task passes to the other one; elsewhere, see `transferred`."""

    async def call(_: dict[str, Any]) -> dict[str, Any]:
        return _said("This was handed over. There is nothing left to do.")

    name = a.tool_name(to, "transfer_to")
    described = description or a.described_transfer(to)
    return _Transfer(name, described, {"task": str}, call, to=to, sending=sending)


def question_tool() -> SdkMcpTool[Any]:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(given: dict[str, Any]) -> dict[str, Any]:
        return await _until_over(a.question(given["question"]))

    return SdkMcpTool(a.ASK_NAME, a.ASK_DESCRIPTION, {"question": str}, call)


async def ask_for_leave(name: str, given: dict[str, Any], _: Any) -> Any:
    """For `can_use_tool`: asks whoever the work is from whether a tool may be used."""
    if await a.leave(f"May {name} be used?", arguments=str(given)):
        return PermissionResultAllow()
    return PermissionResultDeny(message="The sender did not allow it.")


def with_tools(options: ClaudeAgentOptions, *tools: SdkMcpTool[Any]) -> ClaudeAgentOptions:
    """The same options, with these tools."""
    if not tools:
        return options
    servers = dict(options.mcp_servers) if isinstance(options.mcp_servers, Mapping) else {}
    servers[_SERVER] = create_sdk_mcp_server(_SERVER, tools=list(tools))
    allowed = [*options.allowed_tools, *(_full(tool) for tool in tools)]
    transfers = [_full(tool) for tool in tools if isinstance(tool, _Transfer)]
    hooks: dict[Any, Any] = dict(options.hooks or {})
    if transfers:
        matcher = HookMatcher(matcher="|".join(transfers), hooks=[_defer])
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", ()), matcher]
    return dataclasses.replace(
        options, mcp_servers=servers, allowed_tools=allowed, hooks=hooks or None
    )


async def transferred(result: ResultMessage, *tools: SdkMcpTool[Any]) -> dict[str, str]:
    """Hands over what a run ended with (`result`, whose last word calls a `transfer_tool`), and
    returns what a later process needs: it is JSON, to be kept. The process may end; Claude Code's
    own session has the rest."""
    tool, call = _handed(result, tools)
    if tool is None:
        raise ValueError("this run did not end with a transfer")
    id = await a.begun(tool.to, str(call.input["task"]), key=call.id, **tool.sending)
    return {"session": result.session_id, "tool": tool.name, "handoff": id}


async def resume(
    options: ClaudeAgentOptions,
    kept: Mapping[str, str],
    client: AsyncClient,
    *,
    timeout: Span | None = None,
) -> ResultMessage:
    """Goes on with what `transferred` returned, in whatever process: waits for the result and
    resumes the session, in which the deferred tool has it for an answer. `options` are those
    without tools of this module."""
    text = await a.outcome(kept["handoff"], client, timeout=timeout)

    async def call(_: dict[str, Any]) -> dict[str, Any]:
        return _said(text)

    answers = SdkMcpTool(kept["tool"], "Has the result.", {"task": str}, call)
    again = dataclasses.replace(with_tools(options, answers), resume=kept["session"])
    return await _result("", again)


def serve(
    options: ClaudeAgentOptions | Callable[[AsyncClaim], ClaudeAgentOptions],
    name: str,
    *,
    tools: list[SdkMcpTool[Any]] | None = None,
    **serving: Unpack[Serving],
) -> AsyncWorker:
    """An agent as a worker: `tasuki.claude.serve(ClaudeAgentOptions(…), "coder").run()`; each claim
    is a session of its own. Usage and cost are reported; the expected output is the output
    format; with `can_use_tool=ask_for_leave`, permissions are asked of the sender."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        made = with_tools(options(claim) if callable(options) else options, *(tools or ()))
        schema = expected_schema(claim)
        if schema and made.output_format is None:
            wanted = {"type": "json_schema", "schema": schema}
            made = dataclasses.replace(made, output_format=wanted)
        result = await _result(prompt, made)
        used = result.usage or {}
        claim.usage(
            input_tokens=int(used.get("input_tokens") or 0),
            output_tokens=int(used.get("output_tokens") or 0),
            cost=result.total_cost_usd,
            model=next(iter(result.model_usage or {}), None),
        )
        if result.is_error:
            raise _failure(result)
        tool, call = _handed(result, tools or ())
        if tool is not None:
            a.pass_on(tool.to, str(call.input["task"]), **tool.sending)
            return {"type": "handed_on", "to": tool.to}
        return result.structured_output or result.result

    return served(run, name, **serving)


async def _result(prompt: str, options: ClaudeAgentOptions) -> ResultMessage:
    """The first result of a session; the program that makes it ends with that."""

    async def said() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": prompt}}

    asked: Any = said() if options.can_use_tool else prompt
    messages = query(prompt=asked, options=options)
    try:
        async for message in messages:
            if isinstance(message, ResultMessage):
                return message
    finally:
        await messages.aclose()  # type: ignore[attr-defined]
    raise errors.Retryable("Claude Code ended without a result", type="no_result")


def _failure(result: ResultMessage) -> Exception:
    text = result.result or "; ".join(result.errors or ()) or result.subtype
    status = result.api_error_status
    if status is None or status in _RETRY_STATUS:
        return errors.Retryable(text, type=result.subtype if status is None else "api_error")
    return errors.Permanent(text, type="api_error", hint="fix what the provider refuses")


def _handed(result: ResultMessage, tools: Any) -> tuple[_Transfer | None, Any]:
    call = result.deferred_tool_use
    for tool in tools:
        if call is not None and isinstance(tool, _Transfer) and _full(tool) == call.name:
            return tool, call
    return None, call


async def _defer(*_: Any) -> dict[str, Any]:
    said = {"hookEventName": "PreToolUse", "permissionDecision": "defer"}
    return {"hookSpecificOutput": said}


async def _until_over(work: Awaitable[str]) -> dict[str, Any]:
    """What a tool answers. With a lost claim the worker ends the session; until it has, the model
    gets no answer that it could go on with."""
    try:
        return _said(await work)
    except errors.LeaseLost:
        if current_run() is None:
            raise
        return await asyncio.get_running_loop().create_future()


def _full(tool: SdkMcpTool[Any]) -> str:
    return f"mcp__{_SERVER}__{tool.name}"


def _said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
