# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents: hand work to other agents from a tool or a native handoff, and serve an agent.

Needs the extra `tasuki[openai-agents]`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from agents import (
    Agent,
    AgentOutputSchemaBase,
    FunctionTool,
    Model,
    ModelResponse,
    RunConfig,
    RunHooks,
    Runner,
    StopAtTools,
    Usage,
)
from agents.tool_context import ToolContext
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from typing_extensions import Unpack

from . import _adapters as a
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
    "remote_agent",
    "resume",
    "serve",
    "stopping",
    "transfer_tool",
]

_WAITS = "tasuki_handoff"
_TRANSFER = "transfer_to_"


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands a part of the work to another agent and returns its result. A lost claim
    comes out of it and ends the run: it is no tool that failed."""

    async def call(ctx: ToolContext[Any], arguments: str) -> str:
        return await a.ask(to, _only(arguments), key=ctx.tool_call_id, **sending)

    return _tool(a.tool_name(to), description or a.described(to), "task", call)


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> FunctionTool:
    """A tool that hands the work over and ends the turn, in an agent that is `stopping`. In a
    served agent the task passes to the other one. Elsewhere the run ends, and the process may:
    `resume(agent, run.to_input_list(), client)` goes on with the result in a later one."""

    async def call(ctx: ToolContext[Any], arguments: str) -> str:
        task = _only(arguments)
        if a.pass_on(to, task, **sending):
            return f"The work passes to {to} now. There is nothing left to do."
        id = await a.begun(to, task, key=ctx.tool_call_id, **sending)
        return json.dumps({_WAITS: id})

    name = a.tool_name(to, "transfer_to")
    return _tool(name, description or a.described_transfer(to), "task", call)


def question_tool() -> FunctionTool:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(_: ToolContext[Any], arguments: str) -> str:
        return await a.question(_only(arguments))

    return _tool(a.ASK_NAME, a.ASK_DESCRIPTION, "question", call)


def remote_agent(to: str, **sending: Unpack[Sending]) -> Agent[Any]:
    """An agent that works elsewhere, for `handoffs=[…]`: its turn is done through the broker. What
    was said before goes along as quoted data."""
    return Agent(name=to, model=_Remote(to, sending), handoff_description=a.described_transfer(to))


def stopping(agent: Agent[Any]) -> Agent[Any]:
    """The same agent, whose turn ends when it transfers its work."""
    names = [tool.name for tool in agent.tools if tool.name.startswith(_TRANSFER)]
    if not names or agent.tool_use_behavior != "run_llm_again":
        return agent
    return agent.clone(tool_use_behavior=StopAtTools(stop_at_tool_names=names))


async def resume(
    agent: Agent[Any],
    items: list[Any],
    client: AsyncClient,
    *,
    timeout: Span | None = None,
    **options: Any,
) -> Any:
    """Goes on with a run that ended with a transfer, in whatever process: waits for the result, and
    runs the agent with it. `items` is what `to_input_list()` of that run was."""
    found = [dict(item) for item in items]
    waits = 0
    for item in found:
        id = _waits(item)
        if id:
            waits += 1
            item["output"] = await a.outcome(id, client, timeout=timeout)
    if not waits:
        raise ValueError("this run does not wait for a handoff")
    return await Runner.run(stopping(agent), found, **options)


def serve(
    agent: Agent[Any],
    name: str,
    *,
    context: Any = None,
    session: Callable[[AsyncClaim], Any] | None = None,
    run_config: RunConfig | None = None,
    **options: Unpack[Serving],
) -> AsyncWorker:
    """An agent as a worker: `tasuki.openai_agents.serve(agent, "coder").run()`. Usage is reported;
    the expected output is the output type; a tool that needs approval asks the sender for leave;
    words to the holder are read with the next step. `session` makes the memory of a claim's run."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        acting, schema = stopping(agent), expected_schema(claim)
        if schema and acting.output_type is None:
            acting = acting.clone(output_type=_Expected(schema))
        given: dict[str, Any] = {
            "context": context,
            "hooks": _Counts(claim),
            "run_config": _hearing(claim, run_config or RunConfig()),
            "session": session(claim) if session else None,
        }
        done = await Runner.run(acting, prompt, **given)
        while done.interruptions:
            state = done.to_state()
            for one in done.interruptions:
                what = f"May {one.name} be called?"
                if await a.leave(what, arguments=str(one.arguments)):
                    state.approve(one)
                else:
                    state.reject(one)
            done = await Runner.run(acting, state, **{**given, "context": None})
        return done.final_output

    return served(run, name, **options)


class _Counts(RunHooks[Any]):
    """Counts what each model used, also in a run that fails later."""

    def __init__(self, claim: AsyncClaim) -> None:
        self._claim = claim

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:  # noqa: ARG002
        used, model = response.usage, agent.model
        self._claim.usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            model=model if isinstance(model, str) else None,
        )


def _hearing(claim: AsyncClaim, config: RunConfig) -> RunConfig:
    """Gives the model what was said to the holder meanwhile."""
    heard: list[Any] = []
    theirs = config.call_model_input_filter

    async def filtered(data: Any) -> Any:
        for message in claim.messages:
            said = f"A message to you, from whom the work is: {message.text}"
            heard.append({"role": "user", "content": said})
        data.model_data.input.extend(heard)
        if theirs is None:
            return data.model_data
        found: Any = theirs(data)
        return await found if hasattr(found, "__await__") else found

    return dataclasses.replace(config, call_model_input_filter=filtered)


class _Remote(Model):
    """Has the other agent say what a model would."""

    def __init__(self, to: str, sending: Sending) -> None:
        self._to, self._sending = to, sending

    async def get_response(
        self,
        system_instructions: str | None,  # noqa: ARG002
        input: Any,
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        said = [(str(it.get("role") or it.get("type")), _words(it)) for it in items]
        asked = [text for role, text in said if role == "user"] or [said[-1][1]]
        text = await a.ask(self._to, asked[-1], key=f"turn-{len(said)}", said=said, **self._sending)
        part = ResponseOutputText(annotations=[], text=text, type="output_text")
        message = ResponseOutputMessage(
            id="tasuki", content=[part], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"what {self._to} says comes whole: run this without streaming")


class _Expected(AgentOutputSchemaBase):
    """The schema that the sender wants the result to fit."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema

    def is_plain_text(self) -> bool:
        return False

    def name(self) -> str:
        return "expected_output"

    def json_schema(self) -> dict[str, Any]:
        return self._schema

    def is_strict_json_schema(self) -> bool:
        return False

    def validate_json(self, json_str: str) -> Any:
        try:
            return json.loads(json_str)
        except ValueError:
            return json_str


def _tool(name: str, description: str, only: str, call: Any) -> FunctionTool:
    schema = {
        "type": "object",
        "properties": {only: {"type": "string", "description": "All that is needed to know."}},
        "required": [only],
        "additionalProperties": False,
    }
    return FunctionTool(
        name=name, description=description, params_json_schema=schema, on_invoke_tool=call
    )


def _only(arguments: str) -> str:
    return str(next(iter(json.loads(arguments).values())))


def _words(item: dict[str, Any]) -> str:
    content = item.get("content", item.get("output", item.get("arguments", "")))
    if isinstance(content, list):
        content = " ".join(str(part.get("text", "")) for part in content)
    return str(content)


def _waits(item: dict[str, Any]) -> str | None:
    if item.get("type") != "function_call_output":
        return None
    try:
        said = json.loads(item["output"])
    except (TypeError, ValueError):
        return None
    return said.get(_WAITS) if isinstance(said, dict) else None
