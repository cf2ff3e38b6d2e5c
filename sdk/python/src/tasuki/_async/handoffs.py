# SPDX-License-Identifier: Apache-2.0
"""Handoffs as their sender sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._offers import Span
from .._wire import Deadline, milliseconds, whole
from .base import AsyncWire

#: How long a sender waits for an acknowledgment unless it says otherwise.
ACKNOWLEDGED_S = 15.0


class AsyncHandoff:
    """One hop of a task to one receiver, from the sender's side."""

    def __init__(self, wire: AsyncWire, offered: m.OfferReply) -> None:
        self._wire = wire
        #: What the broker answered to the offer.
        self.offered = offered
        self.id = offered.handoff_id
        self.task_id = offered.task_id
        #: Whether anybody is there who takes such work. If not, it is stored and waits.
        self.listening = offered.listening

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    @property
    def handoff_id(self) -> str:
        """Its id, by the name that the API has for it."""
        return self.id

    @property
    def to(self) -> m.Target:
        """Who is to do the work; the agent that was chosen, if one was."""
        return self.offered.to

    async def status(self) -> m.HandoffWithResult:
        """How it stands."""
        return await self._wire.send(routes.HANDOFF_SHOW, path={"id": self.id})

    async def acknowledged(self, timeout: Span | None = ACKNOWLEDGED_S) -> m.HandoffWithResult:
        """Waits until somebody has claimed it. `TimedOut` says that nobody did, and the offer
        stays; `HandoffFailed` that it ended before anybody did: it was declined by all, expired, or
        was cancelled."""
        found = await wait_for(self._wire, [self.id], until="claimed", timeout=timeout)
        if found.open_handoffs:
            timed_out = _unacknowledged(await self.status())
            timed_out.handoff = self
            raise timed_out
        claimed = found.handoffs[0]
        if not claimed.attempts:
            raise await failed(self._wire, claimed, "nobody has claimed it")
        return claimed

    async def result(self, timeout: Span | None = None) -> m.ResultReport:
        """Waits for what came of this hop. Without a `timeout` it waits until there is an end;
        every handoff has one, at the latest when it expires. Raises `HandoffFailed` if there is no
        result."""
        found = await wait_for(self._wire, [self.id], until="settled", timeout=timeout)
        if found.open_handoffs:
            timed_out = errors.TimedOut(
                f"{self.id} has no result yet",
                hint="ask for it again: it goes on, and its result is kept",
            )
            timed_out.handoff = self
            raise timed_out
        return await result_of(self._wire, found.handoffs[0])

    async def final(self, timeout: Span | None = None) -> m.ResultReport:
        """Waits until the whole task has ended, over however many hops, and returns the result of
        its last one."""
        deadline = Deadline(timeout)
        while True:
            wait = deadline.next_wait()
            body = {"tasks": [self.task_id], "timeout_ms": milliseconds(wait)}
            found = await self._wire.send(routes.HANDOFF_WAIT, body=body, wait=wait)
            task = await self._wire.send(routes.TASK_SHOW, path={"id": self.task_id})
            last = max(task.handoffs, key=lambda handoff: (handoff.hop, handoff.offered_at))
            # A dead letter keeps its task open until somebody decides; whoever waits should know.
            if not found.open_tasks or last.state == "dead_lettered":
                shown = await self._wire.send(routes.HANDOFF_SHOW, path={"id": last.handoff_id})
                return await result_of(self._wire, shown)
            if deadline.over():
                timed_out = errors.TimedOut(
                    f"{self.task_id} has not ended yet; {last.handoff_id} is {last.state}",
                    hint="ask again: it goes on",
                )
                timed_out.handoff = self
                raise timed_out

    async def envelope(self) -> m.Envelope:
        """What exactly the receiver gets."""
        return await self._wire.send(routes.HANDOFF_ENVELOPE, path={"id": self.id})

    async def prompt(
        self, *, tokenizer: str | None = None, max_tokens: int | None = None
    ) -> m.Prompt:
        """The envelope as a model reads it (`.prompt`, or `str()` of it), and how many tokens that
        is. The payload is not in it: that is for the receiver's program."""
        query = {"tokenizer": tokenizer, "max_tokens": max_tokens}
        return await self._wire.send(routes.HANDOFF_PROMPT, path={"id": self.id}, query=query)

    async def cancel(self, *, by: str | None = None, reason: str | None = None) -> m.Moved:
        """Takes it back."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return await self._wire.send(routes.HANDOFF_CANCEL, path={"id": self.id}, body=body)

    async def question(self, timeout: Span | None = 0) -> m.OpenQuestion | None:
        """What its holder asks and waits for, if it asks anything within `timeout`."""
        await wait_for(self._wire, [self.id], until="input_required", timeout=timeout)
        found = await self._wire.send(routes.QUESTION_LIST, query={"task": self.task_id})
        return next((it for it in found.questions if it.handoff_id == self.id), None)

    async def answer(
        self, answer: Any, *, by: str | None = None, question: str | None = None
    ) -> m.Moved:
        """Answers the question it waits with. An `authorization` wants an object with a boolean
        `granted`."""
        body = {"by": self._wire.core.who(by, "by"), "answer": answer, "question": question}
        return await self._wire.send(routes.QUESTION_ANSWER, path={"id": self.id}, body=body)

    async def message(
        self, text: str, *, by: str | None = None, details: Mapping[str, Any] | None = None
    ) -> list[m.HolderMessage]:
        """Sends a word to whoever holds the work; it comes with the holder's next heartbeat."""
        said = {"text": text, "details": dict(details or {}) or None}
        body = {"by": self._wire.core.who(by, "by"), **said}
        found = await self._wire.send(routes.HANDOFF_MESSAGE, path={"id": self.id}, body=body)
        return found.messages

    async def messages(self) -> list[m.HolderMessage]:
        """Words to its holders, and who took note of them."""
        found = await self._wire.send(routes.HANDOFF_MESSAGES, path={"id": self.id})
        return found.messages

    async def artifacts(self, name: str | None = None) -> list[m.Artifact]:
        """Pieces of work that are there already; with a `name`, that one with its content."""
        path, query = {"id": self.id}, {"name": name}
        found = await self._wire.send(routes.HANDOFF_ARTIFACTS, path=path, query=query)
        return found.artifacts


async def wait_for(
    wire: AsyncWire,
    handoffs: Sequence[str],
    *,
    until: m.Until = "settled",
    mode: m.Mode = "all",
    timeout: Span | None,
) -> m.Waited:
    """Waits for handoffs, in as many requests as it takes."""
    deadline = Deadline(timeout)
    while True:
        wait = deadline.next_wait()
        body: dict[str, Any] = {"handoffs": list(handoffs), "until": until, "mode": mode}
        body["timeout_ms"] = milliseconds(wait)
        found = await wire.send(routes.HANDOFF_WAIT, body=body, wait=wait)
        if found.done or deadline.over():
            return found


async def result_of(wire: AsyncWire, handoff: m.HandoffWithResult) -> m.ResultReport:
    """The result of a handoff that has ended, or why there is none."""
    if handoff.output is not None:
        return handoff.output
    raise await failed(wire, handoff)


async def failed(
    wire: AsyncWire, handoff: m.HandoffWithResult | m.Sent, more: str = ""
) -> errors.HandoffFailed:
    """Why a handoff has ended without a result."""
    failure: Mapping[str, Any] = {}
    reason = ""
    if handoff.state == "dead_lettered":
        route = routes.DEAD_LETTER_SHOW
        failure = _last_report(whole(route, await wire.exchange(route, {"id": handoff.handoff_id})))
        reason = f" ({handoff.dead_letter.reason})" if handoff.dead_letter else ""
    said = "".join(f": {words}" for words in (more, failure.get("message")) if words)
    decide = "somebody has to redrive or discard it" if handoff.state == "dead_lettered" else ""
    return errors.HandoffFailed(
        f"{handoff.handoff_id} is {handoff.state}{reason}{said}",
        handoff_id=handoff.handoff_id,
        state=handoff.state,
        failure=failure,
        hint=str(failure.get("hint") or decide),
    )


def _last_report(letter: Mapping[str, Any]) -> Mapping[str, Any]:
    reports = letter.get("reports")
    last = reports[-1] if isinstance(reports, list) and reports else None
    report = last.get("report") if isinstance(last, dict) else None
    return report if isinstance(report, dict) else {}


def _unacknowledged(handoff: m.HandoffWithResult) -> errors.TimedOut:
    name = handoff.to.agent or f"the capability {handoff.to.capability}"
    seen = "it was seen and not accepted" if handoff.status == "delivered" else "it is stored"
    return errors.TimedOut(
        f"nobody has claimed {handoff.handoff_id} for {name} in time; {seen}",
        hint="wait on, offer it to somebody else, or cancel it",
    )
