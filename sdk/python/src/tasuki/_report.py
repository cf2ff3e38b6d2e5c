# SPDX-License-Identifier: Apache-2.0
"""What an agent's program did, as the broker wants to hear it: results from values, failures from
exceptions."""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import httpx
from pydantic import BaseModel

from . import errors
from . import models as m
from ._canonical import address, canonical
from ._wire import encode, milliseconds, plain

FailureClass: TypeAlias = Literal["retryable", "permanent", "unknown"]
#: Says of which class an exception is; `None` leaves it to the SDK.
Classify: TypeAlias = Callable[[BaseException], "FailureClass | None"]

log = logging.getLogger("tasuki")

_TEXT_CHARS_MAX = 4000
_CAUSES_MAX = 8
#: What of a program's details goes along with a failure, and how deep.
_DETAILS_BYTES_MAX = 65_536
_DETAILS_DEPTH_MAX = 16
_INTEGER_MAX = 2**53 - 1
#: A pause that is longer than this is a mistake of whoever asks for it.
_PAUSE_S_MAX = 7 * 86_400.0
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
        return {"type": type(value).__name__, **plain(value, "/payload")}
    if value is None:
        return {"type": default}
    if isinstance(value, str):
        return {"type": "text", "text": value}
    said = plain(value, "/payload")
    if is_dataclass(value):
        return {"type": type(value).__name__, **said}
    return {"type": default, **said} if isinstance(said, dict) else {"type": default, "value": said}


def failure_class(error: BaseException, classify: Classify | None = None) -> FailureClass:
    """Of which class an exception is: `retryable`, `permanent` or `unknown`.

    What the program says itself (`Retryable`, `Permanent`, `classify`) comes first, then what the
    error of a service says about itself (`status_code`, as the clients of model providers have it,
    or `retryable`), then the kind of the exception.
    """
    told = _told_class(error, classify)
    if told is not None:
        return told
    if isinstance(error, errors.Retryable):
        return "retryable"
    if isinstance(error, errors.Permanent):
        return "permanent"
    # A refused result stays refused; a call that failed has used up its own tries, and trying again
    # here would multiply them, level by level.
    if isinstance(error, (errors.InvalidRequest, errors.HandoffFailed)):
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


def _told_class(error: BaseException, classify: Classify | None) -> FailureClass | None:
    """What the program says. If it cannot say, its own error comes first."""
    if classify is None:
        return None
    try:
        told = classify(error)
    except Exception:
        log.exception("classify= has failed; the kind of the exception decides")
        return None
    if told in ("retryable", "permanent", "unknown"):
        return told
    if told is not None:
        log.error("classify= says %r, which is no class of failures", told)
    return None


def failure(error: BaseException, classify: Classify | None = None) -> dict[str, Any]:
    """What to report of an exception. Whatever it is made of, there is something to report: texts
    are shortened and made sendable, details that are no JSON become texts."""
    kind = failure_class(error, classify)
    said = error if isinstance(error, (errors.Retryable, errors.Permanent)) else None
    place = _place(error)
    name = type(error).__name__
    hint = said.hint if said else None
    if isinstance(error, errors.TasukiError):
        hint = error.hint or None
    if kind == "permanent" and not hint:
        where = f" in {place}" if place else ""
        hint = f"fix what raised {name}{where}, then redrive it"
    details = _tame_details(said.details) if said else {}
    if place:
        details.setdefault("raised_in", _sendable(place))
    report: dict[str, Any] = {
        "class": kind,
        "type": _sendable((said.type if said else None) or _snake(name)),
        "message": _shorten(_words(error) or name),
        "hint": None if hint is None else _shorten(str(hint)),
        "attempted": _shorten(str(said.attempted)) if said and said.attempted else None,
        "details": details,
        "causes": _causes(error),
    }
    pause = _pause(error)
    if kind == "retryable" and pause is not None:
        report["retry_after_ms"] = milliseconds(min(pause, _PAUSE_S_MAX))
    return report


def reduced(report: Mapping[str, Any]) -> dict[str, Any]:
    """The least that there is to say, for when the whole of it is refused."""
    kind = report["class"]
    least = {"class": kind, "type": "error", "message": _shorten(report["message"], 500)}
    if kind == "permanent":
        least["hint"] = _shorten(report.get("hint") or "see the log of the agent's program", 500)
    if "retry_after_ms" in report:
        least["retry_after_ms"] = report["retry_after_ms"]
    return least


def _words(error: BaseException) -> str:
    """What an exception says of itself, if it can."""
    try:
        return str(error)
    except Exception:
        return f"{type(error).__name__}, which cannot be shown"


def _sendable(text: str) -> str:
    """A text without halves of characters, which UTF-8 does not have."""
    return text.encode("utf-8", "backslashreplace").decode()


def _tame_details(details: Mapping[str, Any]) -> dict[str, Any]:
    try:
        tame = {_sendable(str(name)): _tame(value, 1) for name, value in details.items()}
        size = len(encode(tame))
    except Exception as error:
        return {"left_out": f"the details cannot be sent: {type(error).__name__}"}
    if size > _DETAILS_BYTES_MAX:
        return {"left_out": f"the details are {size} bytes long"}
    return tame


def _tame(value: Any, depth: int) -> Any:
    if depth > _DETAILS_DEPTH_MAX:
        return "…"
    if isinstance(value, str):
        return _sendable(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _INTEGER_MAX else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, BaseModel):
        return _tame(plain(value), depth)
    if isinstance(value, Mapping):
        return {_sendable(str(name)): _tame(part, depth + 1) for name, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items: Iterable[Any] = value
        return [_tame(item, depth + 1) for item in items]
    return _shorten(str(value))


def result_address(handoff_id: str, said: Mapping[str, Any]) -> str:
    """The address of what a holder says of its result, which is what its signature covers."""
    told = {
        "handoff_id": handoff_id,
        "action": said.get("action") or "completed",
        "payload": said["payload"],
        "metadata": said.get("metadata") or {},
        "declared": [_told(plain(one)) for one in said.get("criteria") or ()] or None,
        "gaps": said.get("gaps") or None,
        "usage": said.get("usage"),
    }
    return address(_told(told))


def used(usage: m.WorkUsage | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What an attempt used, in the words that the broker keeps."""
    if usage is None:
        return None
    given = {name: value for name, value in plain(usage).items() if value is not None}
    return {"input_tokens": 0, "output_tokens": 0, **given}


def failure_address(handoff_id: str, said: Mapping[str, Any]) -> str:
    """The same for a failure."""
    told = {**said, "causes": said.get("causes") or None, "details": said.get("details") or {}}
    return address(_told({**told, "handoff_id": handoff_id, "action": "failed"}))


def _told(report: Mapping[str, Any]) -> Any:
    return plain({name: value for name, value in report.items() if value is not None})


def add_usage(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What was used, and more of it."""
    total = dict(before)
    for name in ("input_tokens", "output_tokens", "cost"):
        if more.get(name) is not None:
            total[name] = (total.get(name) or 0) + more[name]
    if more.get("model"):
        total["model"] = more["model"]
    return total


class Steps:
    """The idempotency keys of what is made while a handoff is worked on.

    A key follows from the handoff and from what is sent, not from chance: if the work is lost and
    done again, the same step is the same step, and its result is there already. A step that is
    done twice on purpose is told apart by its number. A step of which it is not known whether it
    was stored gives its number back, so that doing it again is the same step.
    """

    def __init__(self, handoff_id: str) -> None:
        self._handoff_id = handoff_id
        self._taken: dict[str, set[int]] = {}
        self._lock = threading.Lock()

    def take(self, body: Mapping[str, Any]) -> str:
        """The key of the next step that sends this."""
        said = {
            name: milliseconds(value) if isinstance(value, timedelta) else value
            for name, value in body.items()
        }
        digest = hashlib.sha256(canonical(plain(said))).hexdigest()[:32]
        with self._lock:
            taken = self._taken.setdefault(digest, set())
            number = 1
            while number in taken:
                number += 1
            taken.add(number)
        return f"{self._handoff_id}:{digest}:{number}"

    def give_back(self, key: str) -> None:
        """The step may not have come about."""
        _, digest, number = key.rsplit(":", 2)
        with self._lock:
            self._taken[digest].discard(int(number))


def _causes(error: BaseException) -> list[str]:
    found: list[str] = []
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while cause is not None and len(found) < _CAUSES_MAX:
        found.append(_shorten(f"{type(cause).__name__}: {_words(cause)}", 500))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return found


def _pause(error: BaseException) -> float | None:
    told = getattr(error, "retry_after", None)
    if isinstance(told, timedelta):
        told = told.total_seconds()
    if not isinstance(told, (int, float)):
        headers = getattr(getattr(error, "response", None), "headers", None)
        try:
            told = None if headers is None else float(headers.get("retry-after"))
        except (AttributeError, TypeError, ValueError):
            return None
    return max(0.0, float(told)) if told is not None and math.isfinite(told) else None


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    last = frames[-1]
    return f"{last.filename.rsplit('/', 1)[-1]}:{last.lineno} ({last.name})"


def _shorten(text: str, most: int = _TEXT_CHARS_MAX) -> str:
    text = _sendable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _snake(name: str) -> str:
    parts: list[str] = []
    for place, letter in enumerate(name):
        if letter.isupper() and place and not name[place - 1].isupper():
            parts.append("_")
        parts.append(letter.lower())
    return "".join(parts)[:64]
