# SPDX-License-Identifier: Apache-2.0
"""The members of a step, taken one by one."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class Unmapped(Exception):
    """The SDK has no method that would say just this."""


class Said:
    """The members of a step, each of which must be taken."""

    def __init__(self, members: Json) -> None:
        self.left = dict(members)

    def take(self, *names: str) -> list[Any]:
        """Members that must be there."""
        if any(name not in self.left for name in names):
            raise Unmapped
        return [self.left.pop(name) for name in names]

    def maybe(self, **names: str) -> Json:
        """Those of these members that are there, by the names that the SDK has for them."""
        return {ours: self.left.pop(name) for name, ours in names.items() if name in self.left}

    def seconds(self, **names: str) -> Json:
        """The same for spans, which the SDK has in seconds."""
        return {ours: span / 1000 for ours, span in self.maybe(**names).items()}

    def target(self) -> Json:
        """Who is meant."""
        (to,) = self.take("to")
        if not isinstance(to, dict) or len(to) != 1:
            raise Unmapped
        ((kind, name),) = to.items()
        return {"to": name} if kind == "agent" else {"to_capability": name}

    def payload(self) -> Json:
        """A payload that the SDK passes on as it is."""
        (payload,) = self.take("payload")
        if not isinstance(payload, dict) or not isinstance(payload.get("type"), str):
            raise Unmapped
        return payload

    def rest(self, *known: str) -> Json:
        """All that is left, which the SDK has by the same names."""
        if set(self.left) - set(known):
            raise Unmapped
        left, self.left = self.left, {}
        return left

    def end(self) -> None:
        """Nothing may be left."""
        self.rest()
