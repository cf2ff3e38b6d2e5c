# SPDX-License-Identifier: Apache-2.0
"""Google ADK: hand work to other agents from a tool, and serve an agent.

Needs the extra `tasuki[adk]`.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import BaseAgent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.tools import FunctionTool, LongRunningFunctionTool, ToolContext
from google.genai import types
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
]

_APP, _USER = "tasuki", "broker"
_CONFIRM = "adk_request_confirmation"


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands a part of the work to another agent and returns its result."""

    async def call(task: str, tool_context: ToolContext) -> dict[str, Any]:
        key = tool_context.function_call_id
        return {"result": await a.ask(to, task, key=key, **sending)}

    return FunctionTool(_named(call, a.tool_name(to), description or a.described(to)))


class _Transfer(LongRunningFunctionTool):
    """A tool whose result comes later."""

    def __init__(self, func: Any, to: str, sending: Sending) -> None:
        super().__init__(func)
        self.to, self.sending = to, sending


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> LongRunningFunctionTool:
    """A long-running tool that hands the work over: the run ends with its call. In a served agent
    the task passes to the other one. Elsewhere the process may end, and `resume` goes on with the
    result in a later one, if the session service keeps the session."""

    async def call(task: str, tool_context: ToolContext) -> None:
        if not a.pass_on(to, task, **sending):
            await a.begun(to, task, key=tool_context.function_call_id, **sending)

    name = a.tool_name(to, "transfer_to")
    made = _named(call, name, description or a.described_transfer(to))
    return _Transfer(made, to, sending)


def question_tool() -> FunctionTool:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(question: str) -> dict[str, Any]:
        return {"result": await a.question(question)}

    return FunctionTool(_named(call, a.ASK_NAME, a.ASK_DESCRIPTION))


async def resume(
    runner: Runner,
    *,
    user_id: str,
    session_id: str,
    client: AsyncClient,
    timeout: Span | None = None,
) -> str:
    """Goes on with a session that ended with a transfer, in whatever process: waits for the results
    and runs the agent with them. Returns its last word."""
    tools = {one.name: one for one in _tools(runner.agent) if isinstance(one, _Transfer)}
    session = await runner.session_service.get_session(
        app_name=runner.app_name, user_id=user_id, session_id=session_id
    )
    answers: list[types.Part] = []
    for call in _pending(session.events if session else []):
        tool = tools.get(call.name)
        if tool:
            # The same wish has the same key: the broker knows which handoff it was.
            task = str(call.args["task"])
            id = await a.begun(tool.to, task, key=call.id, **tool.sending)
            text = await a.outcome(id, client, timeout=timeout)
            answers.append(_answer(call, {"result": text}))
    if not answers:
        raise ValueError("this session does not wait for a handoff")
    said = types.Content(role="user", parts=answers)
    last, _ = await _turn(runner, user_id, session_id, said)
    return last


def serve(
    agent: BaseAgent,
    name: str,
    *,
    session_service: BaseSessionService | None = None,
    **options: Unpack[Serving],
) -> AsyncWorker:
    """An agent as a worker: `tasuki.adk.serve(agent, "coder").run()`. The session is the handoff,
    so with a session service that lasts a retry has what the last attempt did. Usage is reported; a
    tool that needs confirmation asks the sender for leave; words to the holder are read with the
    next step."""
    sessions = session_service or InMemorySessionService()

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        where = {"app_name": _APP, "user_id": _USER, "session_id": claim.handoff_id}
        if await sessions.get_session(**where) is None:
            await sessions.create_session(**where)
        else:
            prompt = f"You were interrupted. Go on with this:\n\n{prompt}"
        runner = Runner(
            app_name=_APP, agent=agent, session_service=sessions, plugins=[_Plugin(claim)]
        )
        said = types.Content(role="user", parts=[types.Part(text=prompt)])
        while True:
            last, pending = await _turn(runner, _USER, claim.handoff_id, said)
            held = current_run()
            if held and held.passed:
                return {"type": "handed_on"}
            asked = [call for call in pending if call.name == _CONFIRM]
            if not asked:
                return last
            answers: list[types.Part] = []
            for call in asked:
                original = call.args.get("originalFunctionCall") or {}
                what = f"May {original.get('name')} be called?"
                granted = await a.leave(what, arguments=str(original.get("args")))
                answers.append(_answer(call, {"confirmed": granted}))
            said = types.Content(role="user", parts=answers)

    return served(run, name, **options)


class _Plugin(BasePlugin):
    """Counts what every model of the tree used, and tells it what was said to the holder."""

    def __init__(self, claim: AsyncClaim) -> None:
        super().__init__(name="tasuki")
        self._claim = claim
        self._heard: list[str] = []

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:  # noqa: ARG002
        self._heard += [str(message.text) for message in self._claim.messages]
        if self._heard:
            text = "\n".join(f"A message to you, from whom the work is: {it}" for it in self._heard)
            content = types.Content(role="user", parts=[types.Part(text=text)])
            llm_request.contents.append(content)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:  # noqa: ARG002
        used = llm_response.usage_metadata
        if used and not llm_response.partial:
            self._claim.usage(
                input_tokens=used.prompt_token_count or 0,
                output_tokens=used.candidates_token_count or 0,
                model=llm_response.model_version,
            )


async def _turn(
    runner: Runner, user_id: str, session_id: str, said: types.Content
) -> tuple[str, list[Any]]:
    """Runs the agent until it ends, and says what its last word was and what it waits for."""
    last, events = "", list[Any]()
    async for event in runner.run_async(user_id=user_id, session_id=session_id, new_message=said):
        events.append(event)
        parts = event.content.parts if event.content and event.content.parts else []
        texts = [part.text for part in parts if part.text and not part.thought]
        if texts and not event.partial:
            last = "".join(texts)
        if event.error_code:
            raise RuntimeError(f"{event.error_code}: {event.error_message}")
    return last, _pending(events)


def _pending(events: list[Any]) -> list[Any]:
    """Calls that nobody has answered yet."""
    calls = {call.id: call for event in events for call in event.get_function_calls()}
    for event in events:
        for answer in event.get_function_responses():
            calls.pop(answer.id, None)
    return list(calls.values())


def _answer(call: Any, said: dict[str, Any]) -> types.Part:
    response = types.FunctionResponse(id=call.id, name=call.name, response=said)
    return types.Part(function_response=response)


def _tools(agent: Any) -> list[Any]:
    own = list(getattr(agent, "tools", []))
    return own + [tool for below in getattr(agent, "sub_agents", []) for tool in _tools(below)]


def _named(call: Any, name: str, description: str) -> Any:
    """ADK reads name and description from the function."""
    call.__name__, call.__doc__ = name, description
    return call
