# SPDX-License-Identifier: Apache-2.0
"""What an agent's program did, as the broker wants to hear it: results from values, failures from
exceptions."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import httpx
from pydantic import BaseModel

from . import errors
from ._canonical import address, canonical
from ._wire import plain

FailureClass: TypeAlias = Literal["retryable", "permanent", "unknown"]
#: Says of which class an exception is; `None` leaves it to the SDK.
Classify: TypeAlias = Callable[[BaseException], "FailureClass | None"]

_TEXT_CHARS_MAX = 4000
_CAUSES_MAX = 8
#: What somebody else's service answers when trying again may help.
_RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})

# A program's mistake and input that does not fit stay the same however often they are tried.
_PERMANENT: tuple[type[BaseException], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    SyntaxError,
    TypeError,
    ValueError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_RETRYABLE: tuple[type[BaseException], ...] = (
    TimeoutError,
    ConnectionError,
    BlockingIOError,
    InterruptedError,
    MemoryError,
    httpx.TransportError,
)


def payload(value: Any, *, default: str = "result") -> dict[str, Any]:
    """A value as a payload, which is an object that names its type."""
    if isinstance(value, BaseModel):
        return {"type": type(value).__name__, **plain(value)}
    if value is None:
        return {"type": default}
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if isinstance(value, Mapping):
        return {"type": default, **plain(value)}
    return {"type": default, "value": plain(value)}


def failure_class(error: BaseException, classify: Classify | None = None) -> FailureClass:
    """Of which class an exception is: `retryable`, `permanent` or `unknown`.

    What the program says itself (`Retryable`, `Permanent`, `classify`) comes first, then what the
    error of a service says about itself (`status_code`, as the clients of model providers have it,
    or `retryable`), then the kind of the exception.
    """
    told = classify(error) if classify else None
    if told is not None:
        return told
    if isinstance(error, errors.Retryable):
        return "retryable"
    if isinstance(error, errors.Permanent):
        return "permanent"
    if isinstance(error, errors.TasukiError):
        return "retryable" if error.retryable else "unknown"
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int) and status >= 400:
        return "retryable" if status in _RETRY_STATUS else "permanent"
    if isinstance(error, _RETRYABLE):
        return "retryable"
    if isinstance(error, _PERMANENT):
        return "permanent"
    return "unknown"


def failure(error: BaseException, classify: Classify | None = None) -> dict[str, Any]:
    """What to report of an exception."""
    kind = failure_class(error, classify)
    said = error if isinstance(error, (errors.Retryable, errors.Permanent)) else None
    place = _place(error)
    hint = said.hint if said else None
    if kind == "permanent" and not hint:
        where = f" in {place}" if place else ""
        hint = f"mend what raised {type(error).__name__}{where}, then redrive it"
    details = dict(said.details) if said else {}
    if place:
        details.setdefault("raised_in", place)
    report: dict[str, Any] = {
        "class": kind,
        "type": (said.type if said else None) or _snake(type(error).__name__),
        "message": _shorten(str(error) or type(error).__name__),
        "hint": hint,
        "attempted": said.attempted if said else None,
        "details": details,
        "causes": _causes(error),
    }
    pause = _pause(error)
    if kind == "retryable" and pause is not None:
        report["retry_after_ms"] = round(pause * 1000)
    return report


def result_address(handoff_id: str, said: Mapping[str, Any]) -> str:
    """The address of what a holder says of its result, which is what its signature covers."""
    told = {
        "handoff_id": handoff_id,
        "action": said.get("action") or "completed",
        "payload": said["payload"],
        "metadata": said.get("metadata") or {},
        "declared": [_told(plain(one)) for one in said.get("criteria", ())] or None,
        "gaps": said.get("gaps") or None,
    }
    return address(_told(told))


def failure_address(handoff_id: str, said: Mapping[str, Any]) -> str:
    """The same for a failure."""
    told = {**said, "causes": said.get("causes") or None, "details": said.get("details") or {}}
    return address(_told({**told, "handoff_id": handoff_id, "action": "failed"}))


def _told(report: Mapping[str, Any]) -> Any:
    return plain({name: value for name, value in report.items() if value is not None})


def derived_key(handoff_id: str, body: Mapping[str, Any], seen: dict[str, int]) -> str:
    """The idempotency key of something that is made while a handoff is worked on.

    It follows from the handoff and from what is sent, not from chance: if the work is lost and done
    again, the same step is the same step, and its result is there already. A step that is done
    twice on purpose is told apart by its number.
    """
    digest = hashlib.sha256(canonical(plain(body))).hexdigest()[:32]
    seen[digest] = seen.get(digest, 0) + 1
    return f"{handoff_id}:{digest}:{seen[digest]}"


def _causes(error: BaseException) -> list[str]:
    found: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(found) < _CAUSES_MAX:
        found.append(_shorten(f"{type(cause).__name__}: {cause}", 500))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return found


def _pause(error: BaseException) -> float | None:
    told = getattr(error, "retry_after", None)
    if isinstance(told, (int, float)):
        return max(0.0, float(told))
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    try:
        return max(0.0, float(headers.get("retry-after")))
    except (TypeError, ValueError):
        return None


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} ({last.name})"


def _shorten(text: str, most: int = _TEXT_CHARS_MAX) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _snake(name: str) -> str:
    parts: list[str] = []
    for place, letter in enumerate(name):
        if letter.isupper() and place and not name[place - 1].isupper():
            parts.append("_")
        parts.append(letter.lower())
    return "".join(parts)[:64]
