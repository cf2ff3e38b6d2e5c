# SPDX-License-Identifier: Apache-2.0
"""How the adapters of all frameworks hand work over: the claim that a run works on, calls and
transfers from its tools, and one policy for what goes wrong. `_serving` is the other half.

- `LeaseLost` always comes out: it ends the run, and what it waits for.
- A call that failed, was refused or took too long becomes text for the model, or an exception
  (`on_error="raise"`). The text alone would let a chain "complete" with an error inside it, so the
  result of a served run is then marked: `needs_review`, with what failed among its gaps. So is one
  that was built on a result that was marked itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

from typing_extensions import Unpack

from . import errors
from . import models as m
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._async.handoffs import AsyncHandoff
from ._offers import Constraints, Span, follow_up
from ._sync.client import Client

T = TypeVar("T")
Errors = Literal["text", "raise"]
#: Who said what, in the order in which it was said.
Conversation: TypeAlias = Sequence[tuple[str, str]]
_NAME_CHARS_MAX = 64
_GAP_CHARS_MAX = 500
#: How much of a conversation goes along, and how long a token is at least on average.
HISTORY_TOKENS_MAX = 2000
_TOKEN_CHARS = 4
#: A conversation takes no larger part of what the work may use.
_HISTORY_PART = 4


@dataclass
class Run:
    """What a served run of a framework's agent has to do with the broker."""

    claim: AsyncClaim
    loop: asyncio.AbstractEventLoop
    #: What went wrong below it. It marks the result.
    gaps: list[str] = field(default_factory=list[str])
    #: Decisions that go along with whatever is handed on from here.
    decisions: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    #: To whom the task passes when the run ends.
    passed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    calls: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def __post_init__(self) -> None:
        #: What attempts before this one asked, and was answered.
        self.answered = [one for one in self.claim.questions if one.answered_at is not None]

    def gap(self, text: str) -> None:
        """Says that something is missing, or is not as it should be: the result says so."""
        self.gaps.append(text[:_GAP_CHARS_MAX])

    def decide(self, decision: str, why: str | None = None) -> None:
        """Notes a decision: whoever gets work from this run from now on is bound by it."""
        self.decisions.append({"decision": decision, **({"why": why} if why else {})})

    def step(self, digest: str, key: str | None) -> str | None:
        """The name of a call. The same tool call, executed again, is the same step; so is the same
        call of a run that is done again after a crash, although its model made up a new id for it.
        The same words on purpose a second time are the next step."""
        if key is None:
            return None
        keys = self.calls.setdefault(digest, [])
        if key not in keys:
            keys.append(key)
        return f"{digest}:{keys.index(key) + 1}"


_run: ContextVar[Run | None] = ContextVar("tasuki_run", default=None)
_elsewhere: ContextVar[bool] = ContextVar("tasuki_elsewhere", default=False)


class ClaimOver(BaseException):
    """What a lost claim is where a framework makes text for the model of every exception: it must
    not go on."""


def current_run() -> Run | None:
    """The run that this code is part of, in a tool of the program's own."""
    return _run.get()


def current_claim() -> AsyncClaim | None:
    """The claim that this run works on, in a tool of the program's own."""
    run = _run.get()
    return run.claim if run else None


class Sending(TypedDict, total=False):
    """How a tool hands work over."""

    #: Whether `to` is a capability: any agent that has it may take the work.
    by_capability: bool
    #: The way to the broker where there is no claim; without it, one from the environment.
    client: AsyncClient | Client | None
    #: In whose name, where there is no claim.
    from_agent: str | None
    #: How long to wait for a result.
    timeout: Span | None
    #: What becomes of a failure: text for the model, or an exception.
    on_error: Errors
    #: What binds from here on, besides what binds already.
    constraints: Constraints | None
    #: How much of the conversation goes along, where there is one.
    history_tokens: int


def tool_name(to: str, before: str = "handoff_to") -> str:
    """A name that every model provider takes, from the name of an agent or a capability."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{before}_{to}")[:_NAME_CHARS_MAX].rstrip("_")


def described(to: str) -> str:
    """What a model reads about the tool that calls."""
    return f"Hand a part of the work to {to}, and get its result. Say all that it needs to know."


def described_transfer(to: str) -> str:
    """What a model reads about the tool that ends the turn."""
    return f"Hand the work over to {to}, who goes on with it. Say all that it needs to know."


ASK_NAME = "ask_the_sender"
ASK_DESCRIPTION = "Ask whoever this work is from, where only they can know. Waits for the answer."


@asynccontextmanager
async def way(given: AsyncClient | Client | None) -> AsyncGenerator[AsyncClient]:
    """A client for this event loop."""
    if isinstance(given, AsyncClient) and not _elsewhere.get():
        yield given
        return
    if given is None:
        made = AsyncClient()
    else:
        core = given._wire.core
        made = AsyncClient(
            core.base_url,
            agent=core.agent,
            token=core.token,
            key=core.key,
            timeout=core.timeout,
            retry=core.retry,
            **core.tls,
        )
    async with made:
        yield made


async def on_claim(run: Run, work: Callable[[], Awaitable[T]]) -> T:
    """Does something with the claim in its own event loop: frameworks may have others."""

    async def within() -> T:
        return await work()

    if asyncio.get_running_loop() is run.loop:
        return await within()
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(within(), run.loop))


def waited(work: Callable[[], Awaitable[T]]) -> T:
    """Waits for something in a framework's synchronous code."""

    async def within() -> T:
        return await work()

    token = _elsewhere.set(True)
    try:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(within())
        run = _run.get()
        if run and run.loop is loop:
            raise RuntimeError("this would stop the claim's event loop: use the asynchronous form")
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(context.run, lambda: asyncio.run(within())).result()
    finally:
        _elsewhere.reset(token)


def quoted(
    said: Conversation, tokens: int, claim: AsyncClaim | None = None
) -> list[dict[str, str]]:
    """The end of a conversation, as data: as much of it as there is room for, the newest whole."""
    budget = claim.envelope.budget if claim else None
    if budget and budget.tokens is not None:
        tokens = min(tokens, budget.tokens // _HISTORY_PART)
    room, kept = tokens * _TOKEN_CHARS, list[dict[str, str]]()
    for source, text in reversed(said):
        if len(text) > room:
            break
        room -= len(text)
        kept.append({"from": source, "said": text})
    if len(kept) < len(said):
        left = f"{len(said) - len(kept)} earlier messages are left out: there is no room for them"
        kept.append({"from": "tasuki", "said": left})
    return kept[::-1]


def _said(
    to: str, task: str, said: Conversation, run: Run | None, sending: Sending
) -> tuple[dict[str, Any], str]:
    """What is sent, and what names it."""
    capability = bool(sending.get("by_capability"))
    target: dict[str, Any] = {"to_capability" if capability else "to": to}
    payload: dict[str, Any] = {"type": "request", "text": task}
    digest = hashlib.sha256(json.dumps([to, capability, task]).encode()).hexdigest()[:24]
    if said:
        room = sending.get("history_tokens", HISTORY_TOKENS_MAX)
        payload["conversation"] = quoted(said, room, run.claim if run else None)
    hop: dict[str, Any] = {**target, "payload": payload}
    if run and run.decisions:
        hop["decisions"] = list(run.decisions)
    binding = sending.get("constraints")
    if binding:
        hop["add_constraints" if run else "constraints"] = binding
    return hop, digest


async def _begin(
    to: str,
    task: str,
    key: str | None,
    said: Conversation,
    sending: Sending,
    client: AsyncClient | None,
    passes: bool = False,
) -> AsyncHandoff:
    """Hands something over and does not wait. Below a claim, intent and constraints travel along
    whether anybody thinks of them or not."""
    run = _run.get()
    hop, digest = _said(to, task, said, run, sending)
    if run:
        claim, step = run.claim, run.step(digest, key)
        return await on_claim(run, lambda: claim.start_call(**hop, ask=task, step=step))
    assert client is not None
    return await client.handoff(
        **hop,
        intent=task,
        control="passed" if passes else "awaited",
        from_agent=sending.get("from_agent") or client.agent or "program",
        idempotency_key=f"{key}:{digest}"[-200:] if key else None,
    )


async def begun(
    to: str,
    task: str,
    *,
    key: str | None,
    said: Conversation = (),
    **sending: Unpack[Sending],
) -> str:
    """The id of something that was handed over, whose result a later process may ask for
    (`outcome`). `key` names the call (a tool-call id), so that what is executed again creates
    nothing twice."""
    if _run.get():
        return (await _begin(to, task, key, said, sending, None)).id
    async with way(sending.get("client")) as client:
        return (await _begin(to, task, key, said, sending, client, passes=True)).id


async def ask(
    to: str,
    task: str,
    *,
    key: str | None,
    said: Conversation = (),
    **sending: Unpack[Sending],
) -> str:
    """Has somebody else do something, and returns what a model reads of the result."""
    run = _run.get()
    timeout, on_error = sending.get("timeout"), sending.get("on_error", "text")
    try:
        if run:
            called = await _begin(to, task, key, said, sending, None)
            claim = run.claim
            result = await on_claim(run, lambda: claim._came_of(called, timeout))
        else:
            async with way(sending.get("client")) as client:
                called = await _begin(to, task, key, said, sending, client)
                result = await called.result(timeout)
    except (errors.HandoffFailed, errors.TimedOut, errors.Refused) as error:
        return missing(to, error, on_error)
    return heard(run, text_of(result, to))


async def firmly(work: Awaitable[T]) -> T:
    """For tools of frameworks that make text of every exception: a lost claim ends the run."""
    try:
        return await work
    except errors.LeaseLost as lost:
        if _run.get() is None:
            raise
        raise ClaimOver from lost


def missing(to: str, error: errors.TasukiError, on_error: Errors = "text") -> str:
    """What a model reads of a call that came to nothing, and the mark on what is made of it."""
    if isinstance(error, errors.LeaseLost):
        raise error
    run = _run.get()
    if run:
        run.gap(f"{to}: {error.message}")
    if on_error == "raise":
        raise error
    return f"{to} has no result for this. {error}"


def text_of(result: m.ResultReport, to: str = "") -> str:
    """What a model reads of a result. One that is marked is not taken for a whole one."""
    payload = result.payload
    text = payload.get("text")
    if not isinstance(text, str):
        text = json.dumps(payload, ensure_ascii=False, default=str)
    if result.action == "completed" and not result.gaps:
        return text
    why = "; ".join(result.gaps) or str(result.action).replace("_", " ")
    run = _run.get()
    if run:
        run.gap(f"{to or 'a call'}: {why}")
    return f"{text}\n\n(This is not the whole result: {why}.)"


def heard(run: Run | None, text: str) -> str:
    """The same, and what was said to the holder meanwhile: its model reads it with the next
    answer of a tool."""
    words = [message.text for message in run.claim.messages if message.text] if run else []
    return text + "".join(f"\n\nA message to you, from whom the work is: {one}" for one in words)


def pass_on(to: str, task: str, *, said: Conversation = (), **sending: Unpack[Sending]) -> bool:
    """Below a claim: when the run ends, the task passes to somebody else, in the same atomic step.
    Elsewhere there is no task to pass on, and this says so."""
    run = _run.get()
    if run is None:
        return False
    hop, _ = _said(to, task, said, run, sending)
    one = follow_up(**hop, ask=task)
    if one not in run.passed:
        run.passed.append(one)
    return True


async def outcome(
    waits: str, client: AsyncClient, *, timeout: Span | None = None, on_error: Errors = "text"
) -> str:
    """What a model reads of a handoff that was made without waiting, perhaps by another process."""
    run = _run.get()
    try:
        if run:
            claim, handoff = run.claim, _known(run.claim.client, waits)
            result = await on_claim(run, lambda: claim._came_of(handoff, timeout))
        else:
            result = await _known(client, waits)._result(timeout, None)
    except (errors.HandoffFailed, errors.TimedOut, errors.Refused) as error:
        return missing(waits, error, on_error)
    return heard(run, text_of(result, waits))


def _known(client: AsyncClient, id: str) -> AsyncHandoff:
    """A handoff of which only the id was kept."""
    known = AsyncHandoff.__new__(AsyncHandoff)
    known._wire, known.id = client._wire, id
    return known


async def question(text: str) -> str:
    """Asks whoever the work is from, and returns the answer. The claim is given up meanwhile."""
    run = _run.get()
    if run is None:
        return "There is nobody to ask: this work is from no one else."
    answer = await _asked(run, text, {})
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


async def leave(text: str, **details: Any) -> bool:
    """Asks for leave to do something, and returns whether it was granted."""
    run = _run.get()
    if run is None:
        return False
    answer = await _asked(run, text, {"kind": "authorization", "details": details or None})
    return bool(isinstance(answer, dict) and answer.get("granted"))


async def _asked(run: Run, text: str, more: dict[str, Any]) -> Any:
    """An attempt that ended while it waited, or after it, need not ask again."""
    for one in run.answered:
        if one.text == text:
            run.answered.remove(one)
            return one.answer
    return await on_claim(run, lambda: run.claim.ask(text, **more))
