# SPDX-License-Identifier: Apache-2.0
"""Canonical JSON (RFC 8785) and the addresses made from it."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any

_INTEGER_MAX = 2**53 - 1


def canonical(value: Any) -> bytes:
    """The one spelling of a JSON value that is hashed and signed."""
    try:
        return _write(value).encode()
    except RecursionError:
        raise ValueError("this is nested too deeply for JSON, or contains itself") from None


def address(value: Any) -> str:
    """Where a JSON value is found: the hash of its one spelling."""
    return f"sha256:{hashlib.sha256(canonical(value)).hexdigest()}"


def constraint_id(text: str) -> str:
    """What a constraint is known by: the hash of its text in Unicode's composed form."""
    composed = unicodedata.normalize("NFC", text)
    return f"sha256:{hashlib.sha256(composed.encode()).hexdigest()}"


def _write(value: Any) -> str:
    if isinstance(value, dict):
        # Names are in the order of UTF-16, whatever else sorts them otherwise.
        members = sorted(value.items(), key=_by_name)
        return "{" + ",".join(f"{_write(str(name))}:{_write(part)}" for name, part in members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_write(item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        if abs(value) > _INTEGER_MAX:
            raise ValueError(f"{value} is beyond 2^53: not every JSON reader keeps it")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _by_name(member: tuple[Any, Any]) -> bytes:
    return str(member[0]).encode("utf-16-be")


def _number(value: float) -> str:
    """As ECMAScript writes numbers: the shortest digits that are read back as the same one."""
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("JSON has no such number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(power or 0)
    point -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exponent = point - 1
    shown = f"e{'+' if exponent >= 0 else '-'}{abs(exponent)}"
    return sign + digits[0] + (f".{digits[1:]}" if count > 1 else "") + shown
