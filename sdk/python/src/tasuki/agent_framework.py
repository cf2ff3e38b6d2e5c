# SPDX-License-Identifier: Apache-2.0
"""Microsoft Agent Framework: hand work to other agents from a tool or a team, and serve an agent.

Needs the extra `tasuki[agent-framework]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    ResponseStream,
)
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
    "remote_agent",
    "resume",
    "serve",
    "transfer_tool",
    "transferred",
]


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands a part of the work to another agent and returns its result."""

    async def call(task: str, ctx: FunctionInvocationContext) -> str:
        key = str(ctx.metadata.get("call_id") or "") or None
        return await a.firmly(a.ask(to, task, key=key, **sending))

    return _tool(a.tool_name(to), description or a.described(to), "task", call)


class _Transfer(FunctionTool):
    """A tool that nobody executes: the run ends with its call."""

    to: str
    sending: Sending


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands the work over and ends the turn: the run ends with its call. In a served
    agent the task passes to the other one; elsewhere, see `transferred`."""
    name = a.tool_name(to, "transfer_to")
    schema = _schema("task")
    described = description or a.described_transfer(to)
    made = _Transfer(name=name, description=described, input_model=schema)
    made.to, made.sending = to, sending
    return made


def question_tool() -> FunctionTool:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(question: str) -> str:
        return await a.firmly(a.question(question))

    return _tool(a.ASK_NAME, a.ASK_DESCRIPTION, "question", call)


def remote_agent(to: str, **sending: Unpack[Sending]) -> Agent[Any]:
    """An agent that works elsewhere, as a participant of a `HandoffBuilder` or another team: its
    turn is done through the broker. What was said before goes along as quoted data."""
    client: Any = _Remote(to, sending)
    name = a.tool_name(to, "remote")
    return Agent(client=client, name=name, description=a.described_transfer(to))


async def transferred(agent: Agent[Any], asked: Any, done: Any) -> dict[str, Any]:
    """Hands over what a run ended with (`done`, whose last word is a call of a `transfer_tool`),
    and returns what a later process needs: it is JSON, to be kept. The process may end. `asked` is
    what the run began with."""
    waits: dict[str, str] = {}
    for tool, call in _transfers(agent, done):
        task = str(_arguments(call)["task"])
        waits[call.call_id] = await a.begun(tool.to, task, key=call.call_id, **tool.sending)
    if not waits:
        raise ValueError("this run did not end with a transfer")
    said = [*_messages(asked), *done.messages]
    return {"messages": [one.to_dict() for one in said], "waits": waits}


async def resume(
    agent: Agent[Any], kept: Mapping[str, Any], client: AsyncClient, *, timeout: Span | None = None
) -> Any:
    """Goes on with what `transferred` returned, in whatever process: waits for the results and runs
    the agent with them."""
    said = [Message.from_dict(one) for one in kept["messages"]]
    results = [
        Content.from_function_result(call, result=await a.outcome(id, client, timeout=timeout))
        for call, id in kept["waits"].items()
    ]
    return await agent.run([*said, Message("tool", results)])


def serve(agent: Agent[Any], name: str, **options: Unpack[Serving]) -> AsyncWorker:
    """An agent (or `workflow.as_agent()`) as a worker: `tasuki.agent_framework.serve(agent,
    "coder").run()`. Usage is reported; a tool that needs approval asks the sender for leave."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        said, session = [Message("user", [prompt])], agent.create_session()
        while True:
            done = await agent.run(said, session=session)
            used: Any = done.usage_details or {}
            claim.usage(
                input_tokens=used.get("input_token_count") or 0,
                output_tokens=used.get("output_token_count") or 0,
            )
            handed = _transfers(agent, done)
            for tool, call in handed:
                a.pass_on(tool.to, str(_arguments(call)["task"]), **tool.sending)
            if handed:
                return {"type": "handed_on", "to": ", ".join(tool.to for tool, _ in handed)}
            if not done.user_input_requests:
                return done.value if isinstance(done.value, dict) else done.text
            answers: list[Any] = []
            for one in done.user_input_requests:
                what, how = one.function_call.name, str(one.function_call.arguments)
                granted = await a.leave(f"May {what} be called?", arguments=how)
                answers.append(one.to_function_approval_response(granted))
            said = [Message("user", answers)]

    return served(run, name, **options)


class _Remote(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Has the other agent say what a model would."""

    def __init__(self, to: str, sending: Sending) -> None:
        super().__init__()
        self._to, self._sending = to, sending

    def _inner_get_response(
        self,
        *,
        messages: Any,
        stream: bool = False,
        options: Any = None,  # noqa: ARG002
        **_: Any,
    ) -> Any:
        said = [(str(one.author_name or one.role), one.text) for one in messages if one.text]

        async def whole() -> ChatResponse[Any]:
            asked = [one.text for one in messages if one.role == "user"] or [said[-1][1]]
            key = f"turn-{len(said)}" if current_run() else None
            text = await a.firmly(a.ask(self._to, asked[-1], key=key, said=said, **self._sending))
            return ChatResponse(messages=[Message("assistant", [text])])

        async def updates() -> Any:
            done = await whole()
            yield ChatResponseUpdate(role="assistant", contents=list(done.messages[0].contents))

        if stream:
            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)
        return whole()


def _transfers(agent: Any, done: Any) -> list[tuple[_Transfer, Any]]:
    listed: Any = getattr(agent, "default_options", {}).get("tools") or []
    tools = {tool.name: tool for tool in listed if isinstance(tool, _Transfer)}
    calls = [part for one in done.messages for part in one.contents if part.type == "function_call"]
    return [(tools[call.name], call) for call in calls if call.name in tools]


def _arguments(call: Any) -> dict[str, Any]:
    given = call.arguments
    return json.loads(given) if isinstance(given, str) else dict(given)


def _messages(asked: Any) -> list[Message]:
    return [Message("user", [asked])] if isinstance(asked, str) else list(asked)


def _schema(only: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {only: {"type": "string", "description": "All that is needed to know."}},
        "required": [only],
    }


def _tool(name: str, description: str, only: str, call: Any) -> FunctionTool:
    return FunctionTool(name=name, description=description, func=call, input_model=_schema(only))
