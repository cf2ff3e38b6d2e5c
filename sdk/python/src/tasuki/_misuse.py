# SPDX-License-Identifier: Apache-2.0
"""Wrong use, caught where it happens: what was given, what is wanted, and in which file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

E = TypeVar("E", TypeError, ValueError)

_OWN = str(Path(__file__).resolve().parent) + os.sep
_STANDARD = str(Path(os.__file__).resolve().parent) + os.sep
_SHOWN_CHARS_MAX = 60


def wrong(kind: type[E], words: str) -> E:
    """An exception that names the line of the program that led to it."""
    place = _caller()
    return kind(f"{words} ({place})" if place else words)


def _caller() -> str:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    if frame is None:
        return ""
    file = frame.f_code.co_filename
    if file.startswith((_STANDARD, "<frozen")) and "site-packages" not in file:
        return ""  # A thread or an event loop: nobody's line.
    return f"{file.rsplit(os.sep, 1)[-1]}:{frame.f_lineno}"


def shown(value: object) -> str:
    """What was given, in short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else text[: _SHOWN_CHARS_MAX - 1] + "…"


def listed(value: Iterable[Any], what: str) -> list[Any]:
    """Several things; a text by itself is no list of its letters."""
    if isinstance(value, (str, bytes)):
        raise wrong(TypeError, f"{what} is a list: [{shown(value)}], not {shown(value)}")
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise wrong(TypeError, f"{what} is a list, not {shown(value)}")
    return list(value)


def text(value: object, what: str, example: str = "a text") -> None:
    """A text, or nothing."""
    if value is not None and not isinstance(value, str):
        raise wrong(TypeError, f"{what} is {example}, not {shown(value)}")


def number(value: object, what: str, least: int, most: int | None = None) -> None:
    """A whole number, or nothing."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(TypeError, f"{what} is a whole number, not {shown(value)}")
    if value < least or (most is not None and value > most):
        span = f"at least {least}" if most is None else f"{least} to {most}"
        raise wrong(ValueError, f"{what} is {span}, not {value}")


def moment(value: object, what: str) -> None:
    """A point in time, or nothing."""
    if value is None or isinstance(value, (datetime, str)):
        return
    hint = (
        " (a span from now is expires_in=…)" if isinstance(value, (int, float, timedelta)) else ""
    )
    raise wrong(TypeError, f"{what} is a datetime or its text, not {shown(value)}{hint}")


#: What a hop says in lists.
_LISTS = (
    "tried",
    "alternatives",
    "deferred",
    "assumptions",
    "lift_constraints",
    "decisions",
    "open_decisions",
    "history",
    "gaps",
    "resolved_gaps",
    "memory_refs",
    "context",
    "fallbacks",
    "approvers",
    "majors",
)
_TEXTS = ("ask", "summary", "capability", "ordering_key", "project", "envelope_version", "intent")
_FLAGS = ("read_back", "needs_approval")


def hop(parts: Mapping[str, Any]) -> None:
    """What a sender says of a hop, as far as Python can see that it does not fit."""
    for name in _LISTS:
        if parts.get(name) is not None:
            listed(parts[name], name)
    for name in ("constraints", "add_constraints"):
        given = parts.get(name)
        if isinstance(given, (str, bytes)):
            raise wrong(TypeError, f"{name} is a list of texts: [{shown(given)}]")
        if given is not None and not isinstance(given, Iterable):
            raise wrong(TypeError, f"{name} is a list of texts or a mapping, not {shown(given)}")
    for name in _TEXTS:
        text(parts.get(name), name)
    for name in _FLAGS:
        if not isinstance(parts.get(name), (bool, type(None))):
            raise wrong(TypeError, f"{name} is True or False, not {shown(parts[name])}")
    number(parts.get("priority"), "priority", 0, 9)
    number(parts.get("budget_tokens"), "budget_tokens", 0)
    moment(parts.get("deadline"), "deadline")
