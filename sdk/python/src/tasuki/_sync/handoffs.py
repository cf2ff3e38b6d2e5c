# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/handoffs.py. Do not edit.
"""Handoffs as their sender sees them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._offers import Span
from .._why import awaited, held_by, listens, reason
from .._wire import Deadline, milliseconds, whole
from .base import Wire

log = logging.getLogger("tasuki")

#: After how long somebody who waits without a limit hears why, and how often again.
WARN_S = 60.0
WARN_AGAIN_S = 600.0
#: How often it is looked whether somebody has decided on a dead letter.
DECIDED_S = 1.0
#: How often a wait looks whether it still makes sense.
CHECK_S = 2.0
#: Among how many handoffs it is looked what an agent does.
LOOK_MAX = 100
#: How long a sender waits for an acknowledgment unless it says otherwise.
ACKNOWLEDGED_S = 15.0


class Handoff:
    """One hop of a task to one receiver, from the sender's side."""

    def __init__(self, wire: Wire, offered: m.OfferReply) -> None:
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

    def status(self) -> m.HandoffWithResult:
        """How it stands."""
        return self._wire.send(routes.HANDOFF_SHOW, path={"id": self.id})

    def acknowledged(self, timeout: Span | None = ACKNOWLEDGED_S) -> m.HandoffWithResult:
        """Waits until somebody has claimed it. `TimedOut` says that nobody did, and the offer
        stays; `HandoffFailed` that it ended before anybody did: it was declined by all, expired, or
        was cancelled."""
        found = wait_for(self._wire, [self.id], until="claimed", timeout=timeout)
        if found.open_handoffs:
            shown = self.status()
            timed_out = _unacknowledged(shown, why(self._wire, shown))
            timed_out.handoff = self
            raise timed_out
        claimed = found.handoffs[0]
        if not claimed.attempts:
            raise failed(self._wire, claimed, "nobody has claimed it")
        return claimed

    def result(self, timeout: Span | None = None) -> m.ResultReport:
        """Waits for what came of this hop. Without a `timeout` it waits until there is an end;
        every handoff has one, at the latest when it expires. Raises `HandoffFailed` if there is no
        result."""
        return self._result(timeout, None)

    def _result(self, timeout: Span | None, check: Callable[[], None] | None) -> m.ResultReport:
        deadline = Deadline(timeout)
        id = self.id
        while True:
            left = None if deadline.end is None else deadline.left()
            found = wait_for(self._wire, [id], until="settled", timeout=left, check=check)
            if found.open_handoffs:
                timed_out = errors.TimedOut(
                    f"{id} has no result yet: {why(self._wire, self.status())}",
                    hint="ask for it again: it goes on, and its result is kept",
                )
                timed_out.handoff = self
                raise timed_out
            letter = found.handoffs[0].dead_letter
            if letter is None or not letter.redriven_to:
                return result_of(self._wire, found.handoffs[0])
            # Somebody sent it on its way again: that is the call's result, not the dead letter.
            id = letter.redriven_to

    def final(self, timeout: Span | None = None) -> m.ResultReport:
        """Waits until the whole task has ended, over however many hops and through dead letters,
        and returns the result of its last one."""
        deadline = Deadline(timeout)
        slow = Slow(timeout)
        while True:
            wait = deadline.next_wait()
            body = {"tasks": [self.task_id], "timeout_ms": milliseconds(wait)}
            found = self._wire.send(routes.HANDOFF_WAIT, body=body, wait=wait)
            warn = slow.due()
            if found.open_tasks and not deadline.over() and not warn:
                continue
            task = self._wire.send(routes.TASK_SHOW, path={"id": self.task_id})
            last = max(task.handoffs, key=lambda handoff: (handoff.hop, handoff.offered_at))
            shown = self._wire.send(routes.HANDOFF_SHOW, path={"id": last.handoff_id})
            letter = shown.dead_letter
            # A dead letter holds its task up until somebody decides.
            waits = letter and not (letter.redriven_to or letter.discarded or letter.closed)
            if not found.open_tasks and not waits:
                return result_of(self._wire, shown)
            reason = why(self._wire, shown)
            if deadline.over():
                timed_out = errors.TimedOut(
                    f"{self.task_id} has not ended yet: {last.handoff_id}: {reason}",
                    hint="ask again: it goes on",
                )
                timed_out.handoff = self
                raise timed_out
            if warn:
                log.warning("still waiting for %s: %s: %s", self.task_id, last.handoff_id, reason)
            if waits:
                time.sleep(min(DECIDED_S, deadline.left()))

    def envelope(self) -> m.Envelope:
        """What exactly the receiver gets."""
        return self._wire.send(routes.HANDOFF_ENVELOPE, path={"id": self.id})

    def prompt(
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
        return self._wire.send(routes.HANDOFF_PROMPT, path={"id": self.id}, query=query)

    def cancel(self, *, by: str | None = None, reason: str | None = None) -> m.Moved:
        """Takes it back."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.HANDOFF_CANCEL, path={"id": self.id}, body=body)

    def question(self, timeout: Span | None = 0) -> m.OpenQuestion | None:
        """What its holder asks and waits for, if it asks anything within `timeout`."""
        wait_for(self._wire, [self.id], until="input_required", timeout=timeout)
        found = self._wire.send(routes.QUESTION_LIST, query={"task": self.task_id})
        return next((it for it in found.questions if it.handoff_id == self.id), None)

    def answer(self, answer: Any, *, by: str | None = None, question: str | None = None) -> m.Moved:
        """Answers the question it waits with. An `authorization` wants an object with a boolean
        `granted`."""
        body = {"by": self._wire.core.who(by, "by"), "answer": answer, "question": question}
        return self._wire.send(routes.QUESTION_ANSWER, path={"id": self.id}, body=body)

    def message(
        self, text: str, *, by: str | None = None, details: Mapping[str, Any] | None = None
    ) -> list[m.HolderMessage]:
        """Sends a word to whoever holds the work; it comes with the holder's next heartbeat."""
        said = {"text": text, "details": dict(details or {}) or None}
        body = {"by": self._wire.core.who(by, "by"), **said}
        found = self._wire.send(routes.HANDOFF_MESSAGE, path={"id": self.id}, body=body)
        return found.messages

    def messages(self) -> list[m.HolderMessage]:
        """Words to its holders, and who took note of them."""
        found = self._wire.send(routes.HANDOFF_MESSAGES, path={"id": self.id})
        return found.messages

    def artifacts(self, name: str | None = None) -> list[m.Artifact]:
        """Pieces of work that are there already; with a `name`, that one with its content."""
        path, query = {"id": self.id}, {"name": name}
        found = self._wire.send(routes.HANDOFF_ARTIFACTS, path=path, query=query)
        return found.artifacts


class Slow:
    """Says when somebody who waits without a limit should hear why."""

    def __init__(self, timeout: Span | None) -> None:
        self._next = Deadline(WARN_S if timeout is None else None)

    def due(self) -> bool:
        """Whether it is time to say it, once in a while."""
        if not self._next.over():
            return False
        self._next = Deadline(WARN_AGAIN_S)
        return True


def wait_for(
    wire: Wire,
    handoffs: Sequence[str],
    *,
    until: m.Until = "settled",
    mode: m.Mode = "all",
    timeout: Span | None,
    check: Callable[[], None] | None = None,
) -> m.Waited:
    """Waits for handoffs, in as many requests as it takes. `check` is asked in between, and may end
    it."""
    deadline = Deadline(timeout)
    slow = Slow(timeout)
    while True:
        wait = deadline.next_wait()
        if check:
            check()
            wait = min(wait, CHECK_S)
        body: dict[str, Any] = {
            "handoffs": list(handoffs),
            "until": until,
            "mode": mode,
        }
        body["timeout_ms"] = milliseconds(wait)
        found = wire.send(routes.HANDOFF_WAIT, body=body, wait=wait)
        if found.done or deadline.over():
            return found
        if slow.due():
            for one in found.open_handoffs[:3]:
                shown = wire.send(routes.HANDOFF_SHOW, path={"id": one})
                log.warning("still waiting for %s: %s", one, why(wire, shown))


def why(wire: Wire, handoff: m.HandoffWithResult) -> str:
    """Why a handoff is not further than it is."""
    agent = awaited(handoff)
    if agent is None:
        return reason(handoff)
    try:
        query = {"state": "in_progress", "limit": LOOK_MAX}
        now = wire.send(routes.HANDOFF_LIST, query=query)
        busy = next((it for it in now.handoffs if held_by(it, agent)), None)
        known = busy is not None or listens(handoff) or _known(wire, agent)
    except errors.TasukiError:
        return reason(handoff)
    return reason(handoff, busy=busy, known=known)


def _known(wire: Wire, agent: str) -> bool:
    """Whether the broker has heard of an agent: by its manifest, or by what it did."""
    try:
        wire.send(routes.AGENT_SHOW, path={"id": agent})
        return True
    except errors.NotFound:
        query = {"to_agent": agent, "limit": LOOK_MAX}
        before = wire.send(routes.HANDOFF_LIST, query=query)
        return any(attempt.agent == agent for it in before.handoffs for attempt in it.attempts)


def result_of(wire: Wire, handoff: m.HandoffWithResult) -> m.ResultReport:
    """The result of a handoff that has ended, or why there is none."""
    if handoff.output is not None:
        return handoff.output
    raise failed(wire, handoff)


def failed(
    wire: Wire, handoff: m.HandoffWithResult | m.Sent, more: str = ""
) -> errors.HandoffFailed:
    """Why a handoff has ended without a result."""
    failure: Mapping[str, Any] = {}
    reason = ""
    if handoff.state == "dead_lettered":
        route = routes.DEAD_LETTER_SHOW
        failure = _last_report(whole(route, wire.exchange(route, {"id": handoff.handoff_id})))
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


def _unacknowledged(handoff: m.HandoffWithResult, reason: str) -> errors.TimedOut:
    return errors.TimedOut(
        f"nobody has claimed {handoff.handoff_id} in time: {reason}",
        hint="wait on, offer it to somebody else, or cancel it",
    )
