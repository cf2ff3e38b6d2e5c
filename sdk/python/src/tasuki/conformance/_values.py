# SPDX-License-Identifier: Apache-2.0
"""Values of the suite's small language: variables put in, functions carried out. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from .._canonical import address, constraint_id

Scope = dict[str, Any]

_NAME = re.compile(r"\$\{([^}]*)\}")
#: Stands for nothing where a pointer leads nowhere; `None` is a value.
MISSING: Any = object()


class Misunderstood(ValueError):
    """The suite says something that this runner does not know."""


def resolve(value: Any, scope: Scope) -> Any:
    """A value with its variables put in and its functions carried out."""
    if isinstance(value, str):
        whole = _NAME.fullmatch(value)
        return look_up(whole[1], scope) if whole else text_with(value, scope)
    if isinstance(value, list):
        return [resolve(item, scope) for item in value]
    if isinstance(value, dict):
        name = next(iter(value), "")
        if len(value) == 1 and name.startswith("$") and not name.startswith("${"):
            return _call(name, resolve(value[name], scope))
        return {text_with(name, scope): resolve(part, scope) for name, part in value.items()}
    return value


def text_with(text: str, scope: Scope) -> str:
    """A text with variables put in as texts."""

    def put(found: re.Match[str]) -> str:
        value = look_up(found[1], scope)
        return value if isinstance(value, str) else json.dumps(value)

    return _NAME.sub(put, text)


def look_up(name: str, scope: Scope) -> Any:
    """`name`, or `name/pointer` for a part of it."""
    variable, slash, rest = name.partition("/")
    if variable not in scope:
        raise Misunderstood(f"nothing is known as {variable!r}")
    found = point(scope[variable], slash + rest)
    if found is MISSING:
        raise Misunderstood(f"{variable!r} has nothing at {slash + rest}")
    return found


def point(value: Any, pointer: str) -> Any:
    """What is at a JSON pointer, or `MISSING`."""
    for raw in pointer.split("/")[1:]:
        step = raw.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def _call(name: str, argument: Any) -> Any:
    if name not in _FUNCTIONS:
        raise Misunderstood(f"there is no function {name}")
    return _FUNCTIONS[name](argument)


def _merge(parts: list[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for part in parts:
        whole.update(part)
    return {name: value for name, value in whole.items() if value is not None}


def _pluck(pair: list[Any]) -> list[Any]:
    items, pointer = pair
    parts = [point(item, pointer) for item in items]
    if any(part is MISSING for part in parts):
        raise Misunderstood(f"an item has nothing at {pointer}")
    return parts


def _concat(lists: list[list[Any]]) -> list[Any]:
    return [item for items in lists for item in items]


def _sum(numbers: list[int]) -> int:
    return sum(numbers)


_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "$merge": _merge,
    "$address": address,
    "$text_id": constraint_id,
    "$pluck": _pluck,
    "$concat": _concat,
    "$sum": _sum,
}
