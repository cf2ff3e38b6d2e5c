# SPDX-License-Identifier: Apache-2.0
"""Work as its receiver sees it: a claim, kept alive while it is worked on."""

from __future__ import annotations

import asyncio  # async only
import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx
from typing_extensions import Self, Unpack

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._canonical import address, constraint_id
from .._heart import Heart
from .._misuse import listed
from .._offers import Hop, JsonObject, Span, follow_up, new_key, offer
from .._report import (
    Classify,
    Steps,
    add_usage,
    failure,
    failure_address,
    reduced,
    result_address,
    used,
)
from .._report import payload as as_payload
from .._wire import (
    Deadline,
    Route,
    fit,
    milliseconds,
    parts,
    plain,
    seconds,
    timestamp,
    unexpected,
)
from .base import AsyncWire, unhindered
from .handoffs import AsyncHandoff
from .recorded import AsyncRecorded

if TYPE_CHECKING:
    from .client import AsyncClient

log = logging.getLogger("tasuki")

#: How long a program waits for work unless it says otherwise.
WORK_S = 30.0
#: Stands for the answer that is not there.
NO_DEFAULT: Any = object()
#: What the broker says when there is nothing to go on with.
_GONE = frozenset({"already_claimed", "wrong_state", "not_target", "kept_for_asker"})


class AsyncClaim:
    """Work that is this agent's until it says what became of it.

    In a `with` block the lease is kept by heartbeats from a thread of its own. At the end of the
    block:

    - it was completed, failed, released or declined in the block: nothing more happens;
    - an exception left the block: it is reported as a failure (see `tasuki.failure_class` for its
      class) and goes on its way; an interruption (Ctrl-C, a cancelled coroutine, `sys.exit`)
      releases the work, and does not wait long for a broker that is away;
    - nothing was said: the work is released, so that somebody else does it, and a warning says so.
      Only the program knows whether it is done, and a guess would be a lie in the log.

    A process that was forked in the block leaves it without a word: the claim is its parent's.
    """

    def __init__(
        self,
        client: AsyncClient,
        reply: m.ClaimReply,
        raw: Mapping[str, Any],
        *,
        agent: str,
        classify: Classify | None = None,
        auto_start: bool = True,
    ) -> None:
        self._client = client
        self._wire: AsyncWire = client._wire
        self._reply = reply
        self._classify = classify
        self._auto_start = auto_start
        self._reported = False
        self._became = ""
        self._started = False
        self._forgotten = False
        self._process = os.getpid()
        self._steps = Steps(reply.handoff_id)
        self._recorded = AsyncRecorded(client, reply.handoff_id, reply.task_id)
        self._used: dict[str, Any] = {}
        self._heart = Heart(self._wire.core, reply, http=self._wire.beats)
        #: Who claimed it.
        self.agent = agent
        self.handoff_id = reply.handoff_id
        self.task_id = reply.task_id
        self.claim_id = reply.claim_id
        #: Higher than that of every earlier claim. Pass it on with what you write elsewhere.
        self.fence = reply.fence
        #: The how manieth try this is.
        self.attempt = reply.attempt
        self.envelope_hash = reply.envelope_hash
        #: Handoffs on which this is built and whose results no longer hold.
        self.taints = reply.taints
        #: Questions that holders of this work asked, with their answers.
        self.questions: list[m.HolderQuestion] = list(reply.questions or [])
        #: What attempts before this one said, and why they ended.
        self.earlier_attempts: list[m.EarlierAttempt] = list(reply.earlier_attempts or [])
        #: Pieces of work that earlier holders left, with their content as far as there was room.
        self.artifacts: list[m.Artifact] = list(reply.artifacts or [])
        #: What the tasks came to that this work waited for, with their results.
        self.joined: list[m.JoinedResult] = list(reply.joined or [])
        #: What is missing of those tasks, besides the gaps of the envelope.
        self.gaps: list[m.JoinGap] = list(reply.gaps or [])
        #: The envelope exactly as it came; `envelope` is the same as a model.
        self.raw_envelope: dict[str, Any] = dict(raw)
        self.envelope = fit(routes.HANDOFF_CLAIM, m.Envelope, self.raw_envelope)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.handoff_id} attempt {self.attempt}>"

    @property
    def client(self) -> AsyncClient:
        """The client that claimed it."""
        return self._client

    @property
    def intent(self) -> str:
        """The user's own words."""
        return self.envelope.intent

    @property
    def payload(self) -> dict[str, Any]:
        """What to work on."""
        return dict(self.raw_envelope["payload"])

    @property
    def constraints(self) -> list[m.Constraint]:
        """What binds everybody who works on this task."""
        return self.envelope.constraints

    @property
    def lost(self) -> threading.Event:
        """Set once the claim is over although nothing was reported: the lease ran out, the task was
        cancelled, the time for the attempt is over."""
        return self._heart.lost

    @property
    def in_doubt(self) -> bool:
        """Whether the broker was not heard for as long as the lease lasts. If it was away, it
        grants a full lease when it is back; if only the way to it was cut, somebody else may work
        by now."""
        return self._heart.in_doubt

    @property
    def reported(self) -> bool:
        """Whether it was said what became of it."""
        return self._reported

    def usage(
        self,
        *,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost: float | None = None,
        model: str | None = None,
    ) -> None:
        """Counts what was used. It is reported with the result or the failure, and summed up the
        tree."""
        more = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        self._used = add_usage(self._used, {**more, "cost": cost, "model": model})

    def on_lost(self, tell: Callable[[], None]) -> None:
        """Calls something when the claim is lost, from the thread that notices it."""
        self._heart.tell(tell)

    def check(self) -> None:
        """Raises `LeaseLost` if the claim is lost. For the middle of long work."""
        self._heart.check()

    async def until_lost(self) -> None:  # async only
        """Waits until the claim is lost."""  # async only
        loop = asyncio.get_running_loop()  # async only
        event = asyncio.Event()  # async only
        self.on_lost(lambda: _ignore(loop.call_soon_threadsafe(event.set)))  # async only
        await event.wait()  # async only

    async def start(self) -> None:
        """Says that the work has begun. Repeats what binds, as a sender may ask for: the ids are
        made anew from the texts that came, so that they prove what was received. With a key, the
        agent signs that it accepts this very envelope; the signature stands in the log."""
        self.check()
        repeated = self._read_back()
        unordered = {**repeated, "constraints": sorted(set(repeated["constraints"]))}
        signed = self._signed("accepted", address(unordered))
        await self._act(routes.HANDOFF_START, {"read_back": repeated, "signed": signed})
        self._started = True

    async def progress(self, note: str | None = None, *, percent: int | None = None) -> None:
        """Reports progress. It is kept in the log, and extends the lease. If an answer is lost on
        the way, it may stand there twice."""
        self.check()
        await self._act(routes.HANDOFF_PROGRESS, {"note": note, "percent": percent})

    @property
    def messages(self) -> list[m.HolderMessage]:
        """Words to the holder since this was asked last, with heartbeats or with the claim.
        Asking acknowledges them."""
        return self._heart.messages()

    def on_message(self, tell: Callable[[m.HolderMessage], None]) -> None:
        """Calls something with each word to the holder, from the heartbeats' thread. Those are
        acknowledged."""
        self._heart.hear(tell)

    async def ask(
        self,
        text: str,
        *,
        kind: m.QuestionKind = "input",
        schema: JsonObject | None = None,
        details: JsonObject | None = None,
        answer_within: Span | None = None,
        default: Any = NO_DEFAULT,
        keep: Span | None = None,
    ) -> Any:
        """Asks the sender, or a person, and returns the answer. While it waits no lease runs and no
        attempt is used up; the hard deadline stands. The answer comes with a new claim and a new
        fence, which this object has from then on.

        `authorization` asks for leave: the answer is an object with a boolean `granted`. `schema`
        is what the answer must fit. If nobody answers within `answer_within`, `default` is the
        answer; without one the attempt has failed, and `LeaseLost` is raised. `keep` is how long
        the answer waits for this process before anybody may go on."""
        self.check()
        said = {
            "kind": kind,
            "text": text,
            "schema": schema,
            "details": dict(details or {}) or None,
            "answer_ms": milliseconds(answer_within, "answer_within"),
            "keep_ms": milliseconds(keep, "keep"),
            "by_id": True,
        }
        body = {name: value for name, value in said.items() if value is not None}
        if default is not NO_DEFAULT:
            body["default"] = default
        held = {**body, "claim_id": self.claim_id, "fence": self.fence}
        self._heart.pause(True)
        try:
            path = {"id": self.handoff_id}
            asked = await self._wire.send(routes.HANDOFF_ASK, path=path, body=held)
        except errors.LeaseLost as error:
            self._heart.lose(error)
            raise
        except BaseException:
            # Nothing was asked, as far as is known: the claim must go on.
            self._heart.pause(False)
            raise
        try:
            await self._resume()
        except errors.LeaseLost as error:
            self._heart.lose(error)
            raise
        for question in reversed(self.questions):
            if question.question == asked.question:
                return question.answer
        raise unexpected(routes.HANDOFF_CLAIM_ONE)

    async def _resume(self) -> None:
        """Waits for the answer, and goes on with the claim that it brings."""
        route, path = routes.HANDOFF_CLAIM_ONE, {"id": self.handoff_id}
        wait = 30.0
        body = {"agent": self.agent, "majors": [2], "request_id": new_key()}
        while True:
            asked = {**body, "wait_ms": milliseconds(wait)}
            try:
                reply = await self._wire.send(route, path=path, body=asked, wait=wait)
                break
            except errors.Refused as refused:
                if (
                    refused.code == "wrong_state"
                    and refused.details.get("state") == "input_required"
                ):
                    continue
                if refused.code in _GONE:
                    raise errors.LeaseLost(
                        f"the question of {self.handoff_id} was not answered: {refused.message}",
                        code="stale_claim",
                        hint="stop working on it; claim again if you want more work",
                    ) from refused
                raise
        self._reply = reply
        self.claim_id, self.fence = reply.claim_id, reply.fence
        self.questions = list(reply.questions or [])
        self.earlier_attempts = list(reply.earlier_attempts or [])
        self._heart.resume(reply)
        self._started = False
        if self._auto_start:
            await self.start()

    async def attach(self, name: str, content: Any, *, type: str = "application/json") -> m.Moved:
        """Leaves a piece of work that is there already, under a name; another one of the same name
        takes its place. Those who watch see it, and it outlives this claim."""
        self.check()
        body = {"name": name, "type": type, "content": plain(content)}
        return await self._act(routes.HANDOFF_ATTACH, body)

    async def put_back(
        self,
        delay: Span | None = None,
        reason: str | None = None,
        *,
        until: datetime | str | None = None,
    ) -> m.Moved:
        """Gives the work back, to be claimed again after a delay or at a time (`until`). That is no
        failure and uses up no attempt."""
        when = timestamp(until) if isinstance(until, datetime) else until
        span = None if delay is None else milliseconds(delay, "delay")
        body = {"for_ms": span, "until": when, "reason": reason}
        return await self._end(routes.HANDOFF_PUT_BACK, body)

    async def complete(
        self,
        payload: Any = None,
        *,
        action: m.Action = "completed",
        follow_ups: Sequence[JsonObject] = (),
        criteria: Sequence[m.CriterionReport | JsonObject] = (),
        gaps: Sequence[str] = (),
        resolved_gaps: Sequence[str] = (),
        usage: m.WorkUsage | JsonObject | None = None,
        metadata: JsonObject | None = None,
    ) -> m.Moved:
        """Says that the work is done and what came of it. `follow_ups` (see `tasuki.follow_up`)
        come to be in the same atomic step. Gaps that came with the work are in its result unless
        `resolved_gaps` names them. A result that does not fit what was expected is
        refused, and the claim goes on. `usage` (`input_tokens`, `output_tokens`, `cost`, `model`)
        makes the budget of the task, and of those above it, less. With a key, the agent signs what
        it says."""
        said = {
            "action": None if action == "completed" else action,
            "criteria": listed(criteria, "criteria") or None,
            "gaps": listed(gaps, "gaps") or None,
            "usage": used(usage or self._used or None),
            "metadata": dict(metadata or {}) or None,
        }
        body = {
            **self._completion(payload, said),
            "follow_ups": listed(follow_ups, "follow_ups") or None,
        }
        body["resolved_gaps"] = listed(resolved_gaps, "resolved_gaps") or None
        return await self._end(routes.HANDOFF_COMPLETE, body)

    def _completion(self, payload: Any, said: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = {**(said or {}), "payload": as_payload(payload)}
        body["signed"] = self._signed("completed", result_address(self.handoff_id, body))
        return body

    async def hand_on(
        self,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        result: Any = None,
        **hop: Unpack[Hop],
    ) -> m.Moved:
        """Completes with `result` and hands the task on, in one atomic step."""
        following = follow_up(to=to, to_capability=to_capability, payload=payload, **hop)
        return await self.complete(result, follow_ups=[following])

    async def fail(
        self,
        message: str,
        *,
        kind: m.FailureClass = "unknown",
        type: str = "error",
        hint: str | None = None,
        attempted: str | None = None,
        attempts: int | None = None,
        causes: Sequence[str] = (),
        retry_after: Span | None = None,
        details: JsonObject | None = None,
        usage: m.WorkUsage | JsonObject | None = None,
    ) -> m.Moved:
        """Says that the work failed: `retryable` will be tried again, perhaps not before
        `retry_after`; `permanent` will not, and must have a `hint` at what would fix it. `causes`
        is what led to it, the nearest first."""
        body = {
            "class": kind,
            "type": type,
            "message": message,
            "hint": hint,
            "attempted": attempted,
            "attempts": attempts,
            "causes": listed(causes, "causes") or None,
            "retry_after_ms": milliseconds(retry_after, "retry_after"),
            "details": dict(details or {}) or None,
            "usage": used(usage or self._used or None),
        }
        return await self._end(routes.HANDOFF_FAIL, self._failure(body))

    async def reserve(self, *resources: str) -> list[m.Reservation]:
        """Takes files or other resources for this claim: paths, or patterns (`*` within a step,
        `**` for any number). They are free again when the claim ends. Raises `Conflict` if another
        holder has one."""
        return await self._reserve(routes.HANDOFF_RESERVE, resources)

    async def unreserve(self, *resources: str) -> list[m.Reservation]:
        """Gives some up before the claim ends."""
        return await self._reserve(routes.HANDOFF_UNRESERVE, resources)

    async def _reserve(
        self, route: Route[m.Reservations], resources: Sequence[str]
    ) -> list[m.Reservation]:
        self.check()
        held = {"claim_id": self.claim_id, "fence": self.fence, "resources": list(resources)}
        found = await self._wire.send(route, path={"id": self.handoff_id}, body=held)
        return found.reservations

    async def release(self) -> m.Moved:
        """Gives the work back unfinished, for somebody else."""
        return await self._end(routes.HANDOFF_RELEASE, {})

    async def decline(self, reason: str | None = None) -> m.Moved:
        """Says that this agent will not do it. It does not get it again."""
        return await self._end(routes.HANDOFF_DECLINE, {"agent": self.agent, "reason": reason})

    async def call(
        self,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        timeout: Span | None = None,
        step: str | None = None,
        idempotency_key: str | None = None,
        **hop: Unpack[Hop],
    ) -> m.ResultReport:
        """Has somebody else do a part, and waits for the result. The task stays this agent's. With
        a `step`, work that is lost and done again finds the recorded result of that step, whatever
        words it is asked in this time. Raises `LeaseLost` when this claim is lost meanwhile."""
        seconds(timeout, "timeout")
        called = await self.start_call(
            to=to,
            to_capability=to_capability,
            payload=payload,
            step=step,
            idempotency_key=idempotency_key,
            **hop,
        )
        return await self._came_of(called, timeout)

    async def _came_of(self, called: AsyncHandoff, timeout: Span | None) -> m.ResultReport:
        """The result of a call. One that was cancelled may have been so because this claim is
        over, which the next heartbeat would tell only later."""
        try:
            return await called._result(timeout, self.check)
        except errors.HandoffFailed as failed:
            if failed.state == "cancelled":
                await self._still_held()
            raise

    async def _still_held(self) -> None:
        shown = await self._wire.send(routes.HANDOFF_SHOW, path={"id": self.handoff_id})
        last = shown.attempts[-1] if shown.attempts else None
        held = shown.state in ("claimed", "in_progress")
        if not held or last is None or last.fence != self.fence:
            lost = errors.LeaseLost(
                f"the claim of {self.handoff_id} is over: it is {shown.state}",
                hint="stop working on it; claim again if you want more work",
            )
            self._heart.lose(lost)
            raise lost

    async def start_call(
        self,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        step: str | None = None,
        idempotency_key: str | None = None,
        **hop: Unpack[Hop],
    ) -> AsyncHandoff:
        """The same without waiting. If this work is lost and done again, the same call finds what
        was started before, instead of starting it a second time. So does the same call after one
        whose answer was lost."""
        self.check()
        said: dict[str, Any] = {"to": to, "to_capability": to_capability, "payload": payload, **hop}
        marked: dict[str, Any] = dict(hop)
        named = self._recorded.name(step) if step else None
        before = await self._recorded.find(step) if step and not idempotency_key else None
        if before:
            return before
        if named:
            marked["metadata"] = {**dict(hop.get("metadata") or {}), "step": named}
        derived = None if idempotency_key or named else self._steps.take(said)
        try:
            body = offer(
                self._wire.core,
                from_agent=self.agent,
                to=to,
                to_capability=to_capability,
                payload=payload,
                intent=None,
                task_id=self.task_id,
                control="awaited",
                correlation_id=None,
                idempotency_key=idempotency_key or named or derived,
                hop=marked,
            )
            offered = await self._wire.send(routes.HANDOFF_OFFER, body=body)
        except BaseException as error:
            if derived:
                self._steps.give_back(derived)
            if isinstance(error, errors.Conflict):
                before = await self._before(error, step)
                if before:
                    return before
            raise
        return AsyncHandoff(self._wire, offered)

    async def _before(self, refused: errors.Conflict, step: str | None) -> AsyncHandoff | None:
        """What was started as this step already, in other words."""
        if refused.code == "task_finished":
            lost = errors.LeaseLost(refused.message, hint=refused.hint)
            self._heart.lose(lost)
            raise lost from refused
        if refused.code != "idempotency_conflict" or step is None:
            return None
        self._recorded = AsyncRecorded(self._client, self.handoff_id, self.task_id)
        return await self._recorded.find(step, conflict=True)

    async def memory(
        self, id: str, *, revision: int | None = None, detail: m.Detail | None = None
    ) -> m.Memory:
        """Fetches more of a memory than the envelope passed; the broker counts what was missed."""
        return await self._client.memories.get(
            id, revision=revision, detail=detail, handoff=self.handoff_id
        )

    async def prompt(
        self,
        *,
        tokenizer: str | None = None,
        max_tokens: int | None = None,
        form: m.PromptStyle | None = None,
        payload_apart: bool = False,
        all: bool = False,
    ) -> m.Prompt:
        """The envelope as a model reads it (`.prompt`, or `str()` of it), and how many tokens that
        is. The payload is in it as quoted data, unless it is `payload_apart`. `form` is `markdown`,
        `xml`, or `messages` (`.messages`: one for the system, one for the user). `all` is all that
        the envelope has, whatever was chosen and whatever the bound."""
        query = {
            "tokenizer": tokenizer,
            "max_tokens": max_tokens,
            "form": form,
            "payload_apart": payload_apart or None,
            "all": all or None,
        }
        return await self._wire.send(
            routes.HANDOFF_PROMPT, path={"id": self.handoff_id}, query=query
        )

    async def __aenter__(self) -> Self:
        self._heart.start()
        if self._auto_start and not self._started:
            try:
                await self.start()
            except BaseException:
                self._heart.stop()
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._exit(error, 3)

    async def _exit(self, error: BaseException | None, stacklevel: int) -> None:
        if os.getpid() != self._process:
            return
        try:
            if self._reported:
                return
            if error is None:
                self.check()
                self._forgotten = True
                await unhindered(self.release)
            else:
                await unhindered(lambda: self._leave(error))
                return
        finally:
            self._heart.stop()
        warnings.warn(
            f"{self.handoff_id} was left without complete() or fail(), and was released",
            errors.UnreportedClaim,
            stacklevel=stacklevel,
        )

    async def _leave(self, error: BaseException) -> None:
        """Says what became of it. Whatever comes of that, the exception goes on its way."""
        if self.lost.is_set() and isinstance(error, errors.LeaseLost):
            return
        try:
            if isinstance(error, Exception):
                await self._report(error)
            else:
                await self._end(routes.HANDOFF_RELEASE, {}, brief=True)
        except Exception as unheard:
            # What went wrong first matters more; without a report the lease runs out by itself.
            log.warning("cannot report what became of %s: %s", self.handoff_id, unheard)

    async def _report(self, error: Exception) -> None:
        said = failure(error, self._classify)
        if self._used:
            said["usage"] = used(self._used)
        try:
            await self._end(routes.HANDOFF_FAIL, self._failure(said))
        except (errors.InvalidRequest, ValueError, TypeError) as refused:
            log.warning("a shorter report of %s is sent: %s", self.handoff_id, refused)
            await self._end(routes.HANDOFF_FAIL, self._failure(reduced(said)))

    def _failure(self, said: Mapping[str, Any]) -> dict[str, Any]:
        return {**said, "signed": self._signed("failed", failure_address(self.handoff_id, said))}

    def _signed(self, act: str, body: str) -> dict[str, str] | None:
        """What an agent with a key signs, so that it stands by what it did."""
        key = self._wire.core.key
        held = (self.handoff_id, self.envelope_hash, self.claim_id, str(self.fence))
        return key.statement("acknowledgment", *held, act, body) if key else None

    async def _act(
        self, route: Route[m.Moved], body: Mapping[str, Any], brief: bool = False
    ) -> m.Moved:
        held = {**body, "claim_id": self.claim_id, "fence": self.fence}
        path = {"id": self.handoff_id}
        try:
            return await self._wire.send(route, path=path, body=held, brief=brief)
        except errors.LeaseLost as error:
            self._heart.lose(error)
            raise

    async def _end(
        self, route: Route[m.Moved], body: Mapping[str, Any], brief: bool = False
    ) -> m.Moved:
        # Sent even if the claim is lost: the broker refuses it, and keeps it in the log as late.
        moved = await self._act(route, body, brief)
        self._reported = True
        self._became = moved.state
        self._heart.finish()
        return moved

    def _read_back(self) -> dict[str, Any]:
        ids = [constraint_id(constraint.text) for constraint in self.constraints]
        expected = self.raw_envelope.get("expected_output")
        return {
            "constraints": ids,
            "expected_output": address(plain(expected)) if expected else None,
        }


class AsyncClaiming:
    """Asks for work when its block begins."""

    def __init__(self, client: AsyncClient, ask: Mapping[str, Any], wait: Span | None) -> None:
        self._client = client
        self._ask = dict(ask)
        self._wait = wait
        self._claim: AsyncClaim | None = None

    async def __aenter__(self) -> AsyncClaim:
        deadline = Deadline(self._wait, "wait")
        while True:
            found = await self._client.try_claim(wait=deadline.next_wait(), **self._ask)
            if found:
                self._claim = found
                return await found.__aenter__()
            if deadline.over():
                raise errors.NoWork(
                    f"there was nothing for {self._ask.get('agent') or 'this agent'} to do in time",
                    hint="ask again; `wait=None` waits for as long as it takes",
                )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._claim is not None
        await self._claim._exit(error, 3)


async def take(
    client: AsyncClient,
    *,
    agent: str,
    capabilities: Sequence[str],
    most: int,
    lease: Span | None,
    wait: float,
    classify: Classify | None,
    auto_start: bool,
    request_id: str | None = None,
    brief: bool = False,
    patience: float | None = None,
    line: httpx.AsyncClient | None = None,
) -> list[AsyncClaim]:
    """Claims as much as there is, up to `most`. The request has an id, so a lost answer is asked
    for again and the same work comes. What was granted to somebody who was interrupted while he
    waited is given back."""
    ask: dict[str, Any] = {
        "agent": agent,
        "capabilities": listed(capabilities, "capabilities") or None,
        "lease_ms": milliseconds(lease, "lease"),
        "majors": [2],
        "max": most,
        "request_id": request_id or new_key(),
        "wait_ms": milliseconds(wait, "wait"),
    }
    body = {name: plain(value) for name, value in ask.items() if value is not None}
    route = routes.HANDOFF_CLAIM
    options: dict[str, Any] = {"agent": agent, "classify": classify, "auto_start": auto_start}
    try:
        content = await client._wire.exchange(
            route, body=body, wait=wait, brief=brief, patience=patience, line=line
        )
    except Exception:
        raise
    except BaseException:
        # Interrupted: the answer may be on its way.
        await unhindered(lambda: _take_back(client, body, options))
        raise
    return [made(client, route, part, options) for part in parts(route, content, "claims")]


def made(
    client: AsyncClient, route: Route[Any], part: Mapping[str, Any], options: Mapping[str, Any]
) -> AsyncClaim:
    """A claim, from an answer."""
    reply, raw = fit(route, m.ClaimReply, part), part.get("envelope")
    if not isinstance(raw, dict):
        raise unexpected(route)
    return AsyncClaim(client, reply, raw, **options)


async def _take_back(
    client: AsyncClient, body: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Asks once more for what a request was granted, and gives it back."""
    route = routes.HANDOFF_CLAIM
    with contextlib.suppress(Exception):
        again = {**body, "wait_ms": 0}
        content = await client._wire.exchange(route, body=again, brief=True)
        for part in parts(route, content, "claims"):
            claim = made(client, route, part, options)
            await claim._end(routes.HANDOFF_RELEASE, {}, brief=True)


def _ignore(_: object) -> None:  # async only
    """For what returns something that nobody wants."""  # async only
