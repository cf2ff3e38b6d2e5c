# SPDX-License-Identifier: Apache-2.0
"""CrewAI: hand work to other agents from a tool, and serve a crew or an agent.

Needs the extra `tasuki[crewai]`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from crewai.hooks import register_before_llm_call_hook
from crewai.tools import BaseTool
from pydantic import BaseModel, PrivateAttr
from typing_extensions import Unpack

from . import _adapters as a
from . import errors
from ._adapters import Sending, current_claim, current_run
from ._async.claims import AsyncClaim
from ._serving import Serving, served
from .worker import AsyncWorker

__all__ = [
    "current_claim",
    "current_run",
    "handoff_tool",
    "question_tool",
    "serve",
    "transfer_tool",
]


class _Task(BaseModel):
    task: str


class _Question(BaseModel):
    question: str


class _Tool(BaseTool):
    """A tool whose answers are not cached: the same question may have another answer."""

    _work: Any = PrivateAttr()

    def __init__(self, name: str, description: str, takes: type[BaseModel], work: Any) -> None:
        super().__init__(
            name=name, description=description, args_schema=takes, cache_function=_never
        )
        self._work = work

    def _run(self, **given: str) -> str:
        return a.waited(lambda: self._arun(**given))

    async def _arun(self, **given: str) -> str:
        return await a.firmly(self._work(str(next(iter(given.values())))))


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> BaseTool:
    """A tool that hands a part of the work to another agent and returns its result. CrewAI gives a
    tool no id of its call: it is known by its words, and counted."""

    async def call(task: str) -> str:
        return await a.ask(to, task, key=None, **sending)

    return _Tool(a.tool_name(to), description or a.described(to), _Task, call)


def transfer_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> BaseTool:
    """A tool that hands the work over and ends the task of the crew that calls it. In a served crew
    the task at the broker passes to the other agent; elsewhere its answer is the handoff's id."""

    async def call(task: str) -> str:
        if a.pass_on(to, task, **sending):
            return f"The work passes to {to} now."
        return await a.begun(to, task, key=None, **sending)

    name = a.tool_name(to, "transfer_to")
    made = _Tool(name, description or a.described_transfer(to), _Task, call)
    made.result_as_answer = True
    return made


def question_tool() -> BaseTool:
    """A tool with which a served crew asks whoever the work is from."""
    return _Tool(a.ASK_NAME, a.ASK_DESCRIPTION, _Question, a.question)


def serve(make: Callable[[], Any], name: str, **options: Unpack[Serving]) -> AsyncWorker:
    """A crew or an agent as a worker: `tasuki.crewai.serve(make_crew, "researcher").run()`. `make`
    is called for each claim, because crews remember. What the claim is about is the crew's input
    `{task}`; an agent gets it as it is. It runs in a thread of its own; a lost claim ends it at its
    next step. Usage is reported; words to the holder are read with the next step."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        made = make()
        if hasattr(made, "tasks"):
            done = await asyncio.to_thread(made.kickoff, inputs={"task": prompt})
            used = done.token_usage
        else:
            done = await asyncio.to_thread(made.kickoff, prompt)
            used = done.usage_metrics
        held = current_run()
        said = used if isinstance(used, dict) else (used.model_dump() if used else {})
        claim.usage(
            input_tokens=said.get("prompt_tokens") or 0,
            output_tokens=said.get("completion_tokens") or 0,
        )
        if held and held.passed:
            return {"type": "handed_on"}
        return done.pydantic or done.raw

    return served(run, name, **options)


def _never(*_: Any) -> bool:
    return False


def _before_model(context: Any) -> None:
    """Ends what nobody wants any more, and tells the model what was said to the holder."""
    run = current_run()
    if run is None:
        return
    if run.claim.lost.is_set():
        raise a.ClaimOver from errors.LeaseLost("the claim is over")
    for message in run.claim.messages:
        said = f"A message to you, from whom the work is: {message.text}"
        context.messages.append({"role": "user", "content": said})


register_before_llm_call_hook(_before_model)
