# SPDX-License-Identifier: Apache-2.0
"""Whether an answer is what a step expects, and if not, in which way. No I/O."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ._values import MISSING, Misunderstood, point

ANY = "<any>"
_SHOWN_CHARS = 300
_FINDINGS_MAX = 5
#: RFC 3339.
_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, float),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}

Schemas = Mapping[str, Any]


def shown(value: Any) -> str:
    """As much of a value as is worth reading."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def findings(
    expect: Mapping[str, Any], status: int | str | None, body: Any, schemas: Schemas
) -> list[str]:
    """Everything that is not as expected. A `status` such as `2xx` is all that is known of it."""
    if not expect:
        raise Misunderstood("it expects nothing")
    found: list[str] = []
    for name, wish in expect.items():
        if name == "status":
            if not _is_status(wish, status):
                found.append(f"status: expected {wish}, got {status}")
        elif name == "code":
            code = body.get("code") if isinstance(body, dict) else None
            if code != wish:
                found.append(f"/code: expected {wish!r}, got {shown(code)}")
        elif name == "body":
            found += _unlike("", wish, body)
        elif name == "replies":
            found += _replies(wish, body)
        elif name == "at":
            found += _conditions("", wish, body, schemas)
        else:
            raise Misunderstood(f"there is no expectation {name}")
    return found[:_FINDINGS_MAX]


def _is_status(wish: Any, status: int | str | None) -> bool:
    if isinstance(wish, list):
        return any(_is_status(one, status) for one in wish)
    # The SDK's methods do not tell one success from another.
    if isinstance(wish, str) or isinstance(status, str):
        return str(status)[:1] == str(wish)[:1]
    return bool(wish == status)


def _replies(wish: Mapping[str, int], body: Any) -> list[str]:
    # By class, for the same reason.
    wanted: Counter[str] = Counter()
    for status, number in wish.items():
        wanted[status[:1]] += number
    came = Counter(str(reply["status"])[:1] for reply in body)
    return [] if came == wanted else [f"replies by class: expected {wanted}, got {came}"]


def _unlike(place: str, wish: Any, value: Any) -> list[str]:
    if wish == ANY:
        return []
    if isinstance(wish, dict) and isinstance(value, dict):
        found: list[str] = []
        for name, part in wish.items():
            if name in value:
                found += _unlike(f"{place}/{name}", part, value[name])
            else:
                found.append(f"{place}/{name}: nothing is there")
        return found
    if isinstance(wish, list) and isinstance(value, list) and len(wish) == len(value):
        pairs = enumerate(zip(wish, value, strict=True))
        return [one for n, (part, item) in pairs for one in _unlike(f"{place}/{n}", part, item)]
    return [] if same(wish, value) else [f"{place}: expected {shown(wish)}, got {shown(value)}"]


def same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _conditions(place: str, all_: Mapping[str, Any], value: Any, schemas: Schemas) -> list[str]:
    found: list[str] = []
    for pointer, condition in all_.items():
        part = point(value, pointer)
        here = place + pointer
        if not condition:
            raise Misunderstood(f"it expects nothing at {here}")
        if condition.get("absent"):
            if part is not MISSING:
                found.append(f"{here}: expected nothing there, got {shown(part)}")
        elif part is MISSING:
            found.append(f"{here}: nothing is there")
        else:
            for name, operand in condition.items():
                found += _condition(here, name, operand, part, schemas)
    return found


def _condition(place: str, name: str, operand: Any, value: Any, schemas: Schemas) -> list[str]:
    if name == "like":
        return _unlike(place, operand, value)
    if name == "each":
        if not isinstance(value, list) or not value:
            return [f"{place}: expected a list with items, got {shown(value)}"]
        every = enumerate(value)
        return [f for n, item in every for f in _conditions(f"{place}/{n}", operand, item, schemas)]
    if name == "some":
        some = isinstance(value, list) and any(
            not _conditions("", operand, item, schemas) for item in value
        )
        return [] if some else [f"{place}: no item fits {shown(operand)} in {shown(value)}"]
    if name == "fits":
        return [f"{place}{fault}" for fault in _unfit(schemas, operand, value)]
    if name not in _SIMPLE:
        raise Misunderstood(f"there is no condition {name}")
    if _SIMPLE[name](value, operand):
        return []
    return [f"{place}: expected {name} {shown(operand)}, got {shown(value)}"]


def _unfit(schemas: Schemas, name: str, value: Any) -> list[str]:
    if name not in schemas:
        raise Misunderstood(f"there is no schema {name}")
    try:
        import jsonschema
    except ImportError as error:
        raise Misunderstood("schemas need jsonschema: pip install tasuki[conformance]") from error
    formats = jsonschema.FormatChecker(formats=())
    # The checker of the package knows dates only if another package is there.
    formats.checks("date-time")(_is_time)
    validator = jsonschema.Draft202012Validator(schemas[name], format_checker=formats)
    return [
        f"/{'/'.join(map(str, fault.absolute_path))}: does not fit {name}: {shown(fault.message)}"
        for fault in validator.iter_errors(value)
    ]


def _is_time(value: Any) -> bool:
    return not isinstance(value, str) or bool(_TIME.fullmatch(value))


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, list):
        return any(not _unlike("", part, item) for item in value)
    return isinstance(value, (str, dict)) and part in value


def _counts(items: Any) -> Counter[str]:
    return Counter(json.dumps(item, sort_keys=True) for item in items)


def _differ(items: Any, pointer: str) -> bool:
    parts = [point(item, pointer) for item in items]
    there = all(part is not MISSING for part in parts)
    return there and max(_counts(parts).values(), default=1) == 1


def _number(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(value: Any, bound: Any) -> bool:
        return isinstance(value, (int, float)) and compare(value, bound)

    return holds


_SIMPLE: dict[str, Callable[[Any, Any], bool]] = {
    "equals": lambda value, other: same(value, other),
    "not": lambda value, other: not same(value, other),
    "type": lambda value, kind: _TYPES[kind](value),
    "contains": _contains,
    "lacks": lambda value, part: not _contains(value, part),
    "starts_with": lambda value, start: isinstance(value, str) and value.startswith(start),
    "one_of": lambda value, words: _one_of(value, words),
    "length": lambda value, length: isinstance(value, (str, list, dict)) and len(value) == length,
    "at_least": _number(lambda value, bound: value >= bound),
    "at_most": _number(lambda value, bound: value <= bound),
    "more_than": _number(lambda value, bound: value > bound),
    "less_than": _number(lambda value, bound: value < bound),
    "has_all": lambda value, items: isinstance(value, list) and not _counts(items) - _counts(value),
    "same_items": lambda value, items: isinstance(value, list) and _counts(items) == _counts(value),
    "unique": lambda value, pointer: isinstance(value, list) and _differ(value, pointer),
}


def _one_of(value: Any, words: list[Any]) -> bool:
    # Where only the class of a status is known, it is enough that one of them is of that class.
    if isinstance(value, str) and value.endswith("xx"):
        return any(str(word)[:1] == value[:1] for word in words)
    return any(same(value, word) for word in words)
