# SPDX-License-Identifier: Apache-2.0
"""Everything that can go wrong, in one family.

Each error has `code`, `message`, `hint`, `retryable`, `doc_url` and `request_id`, whether the
broker said so or the SDK found out by itself. Codes of the broker have a page each under
`/docs/errors/<code>`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar


class TasukiError(Exception):
    """The base of them all."""

    code: str = "error"
    retryable: bool = False
    #: Whether an earlier try of the same call may have been carried out: its answer was lost.
    in_doubt: bool = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str = "",
        retryable: bool | None = None,
        details: Mapping[str, Any] | None = None,
        request_id: str | None = None,
        doc_url: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        self.request_id = request_id
        self.doc_url = doc_url
        self.status = status
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable

    def __str__(self) -> str:
        text = f"{self.message} [{self.code}]"
        return f"{text} ({self.hint})" if self.hint else text


class Refused(TasukiError):
    """The broker said no. `details.faults`, where there are any, says what does not fit and
    where."""

    @property
    def faults(self) -> list[dict[str, Any]]:
        """What does not fit, each with its path."""
        found = self.details.get("faults")
        return list(found) if isinstance(found, list) else []


class InvalidRequest(Refused):
    """What was sent is malformed or does not fit (400, 413, 415, 422)."""


class Unauthenticated(Refused):
    """The request does not show who it is from, or not well enough (401)."""


class NotPermitted(Refused):
    """The caller may not do this (403)."""


class NotFound(Refused):
    """There is no such thing, or none that the caller may see (404, 410)."""


class Conflict(Refused):
    """It does not go together with how things stand (409)."""


class LeaseLost(Conflict):
    """The claim is over: somebody else may have the work by now. Stop working on it."""

    code = "stale_claim"


class Overloaded(Refused):
    """Too much at once (429): the caller's share is used up for now."""


class Unavailable(Refused):
    """The broker could not do it just now (5xx)."""


class Unreachable(TasukiError):
    """The broker did not answer, however often it was asked."""

    code = "unreachable"
    retryable = True


class NotABroker(Unreachable):
    """Something answered, and it is not a broker: a proxy in between, a page to log in, another
    program at this address. `status` is what it said."""

    code = "not_a_broker"


class TimedOut(TasukiError, TimeoutError):
    """Something did not happen in time. It may still happen: nothing was cancelled. `handoff` is
    what was waited for, where that is one handoff."""

    code = "timed_out"
    retryable = True
    handoff: Any = None


class NoWork(TimedOut):
    """There was nothing to claim in time."""

    code = "no_work"


class EventsMissed(TasukiError):
    """A stream of events cannot promise that it told everything. What is known from events after
    `resume_after` has to be read again; `events(after=resume_after)` goes on from there."""

    code = "events_missed"
    resume_after: str = ""

    @classmethod
    def told(cls, data: str) -> EventsMissed:
        """As the broker says it on the stream."""
        said = json.loads(data)
        hint = f"read again what follows {said['resume_after']}"
        missed = cls("the stream may have missed events", hint=hint, details=said)
        missed.resume_after = said["resume_after"]
        return missed


class HandoffFailed(TasukiError):
    """A handoff ended without a result: failed, dead-lettered or cancelled."""

    code = "handoff_failed"

    def __init__(
        self,
        message: str,
        *,
        handoff_id: str,
        state: str,
        failure: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message, **more)
        #: The handoff as its sender has it, where it was made by the call that raised this.
        self.handoff: Any = None
        self.handoff_id = handoff_id
        self.state = state
        #: The last report of a failure, as its agent made it: class, type, message, hint.
        self.failure: dict[str, Any] = dict(failure or {})


class UnreportedClaim(RuntimeWarning):
    """A block ended without saying what became of its claim, so the work was given back."""


class DeadlinePassed(RuntimeWarning):
    """A deadline that had passed already was passed on as a text, and ends nothing."""


class _Failure(Exception):
    """What an agent raises to say of which kind a failure is."""

    kind: ClassVar[str]

    def __init__(
        self,
        message: str,
        *,
        type: str | None = None,
        hint: str | None = None,
        attempted: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.type = type
        self.hint = hint
        self.attempted = attempted
        self.retry_after = retry_after
        self.details = dict(details or {})


class Retryable(_Failure):
    """Raised in an agent: it went wrong this time, and may go well the next."""

    kind = "retryable"


class Permanent(_Failure):
    """Raised in an agent: it will go wrong every time, until somebody does what `hint` says."""

    kind = "permanent"

    def __init__(
        self,
        message: str,
        *,
        hint: str,
        type: str | None = None,
        attempted: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, type=type, hint=hint, attempted=attempted, details=details)


_BY_STATUS: dict[int, type[Refused]] = {
    401: Unauthenticated,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    410: NotFound,
    429: Overloaded,
}


#: What something in between says when trying again may help: it is not the broker's word.
_PASSING = frozenset({401, 404, 407, 408, 421, 425, 429})


def refusal(status: int, problem: Any, base_url: str) -> Refused | NotABroker:
    """The error for an answer that is not a success. What is not a broker's problem object says
    nothing about the request, whatever its status."""
    if not is_problem(problem):
        return not_a_broker(status, base_url)
    code: str = problem["code"]
    kind: type[Refused] = LeaseLost if code == "stale_claim" else _BY_STATUS.get(status, Refused)
    if kind is Refused:
        kind = Unavailable if status >= 500 else InvalidRequest
    details, request_id = problem.get("details"), problem.get("request_id")
    return kind(
        problem["message"],
        code=code,
        hint=str(problem.get("hint") or ""),
        retryable=problem["retryable"],
        details=details if isinstance(details, Mapping) else None,
        request_id=request_id if isinstance(request_id, str) else None,
        doc_url=f"{base_url}/docs/errors/{code}",
        status=status,
    )


def is_problem(problem: Any) -> bool:
    """Whether something is what every error of a broker looks like."""
    return (
        isinstance(problem, Mapping)
        and isinstance(problem.get("code"), str)
        and isinstance(problem.get("message"), str)
        and isinstance(problem.get("retryable"), bool)
    )


def not_a_broker(status: int, base_url: str) -> NotABroker:
    """The error for an answer that no broker gives."""
    return NotABroker(
        f"the answer of {base_url} is not a broker's (HTTP {status})",
        hint="a proxy may be in between, or the address may be another program's",
        retryable=status < 400 or status in _PASSING or status >= 500,
        status=status,
    )
