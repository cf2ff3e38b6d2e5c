# SPDX-License-Identifier: Apache-2.0
"""Wrong use is caught where it happens, before anything is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Any, cast
from uuid import UUID

import pytest

import tasuki
from tasuki import Claim, Client, worker

Name = Callable[[str], str]


class Colour(Enum):
    RED = "red"


@dataclass
class Review:
    verdict: str
    on: date
    tags: set[str]


def test_what_stands_for_json_is_taken(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x")

    @worker(client, agent=name("coder"), idle=0.1)
    def work(_: Claim) -> object:
        return Review("ok", date(2026, 1, 2), {"b", "a"})

    work.run()
    wanted = {"type": "Review", "verdict": "ok", "on": "2026-01-02", "tags": ["a", "b"]}
    assert handoff.result(timeout=10).payload == wanted
    sent = {"c": Colour.RED, "u": UUID(int=0)}
    other = client.handoff(to=name("coder"), from_agent="s", intent="x", payload=sent)
    assert other.envelope().payload.get("c") == "red"


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"a": [1, b"x"]}, "/payload/a/1 cannot be sent: a bytes is not JSON"),
        ({"a": {"b": object()}}, "/payload/a/b cannot be sent: an object is not JSON"),
        ({"a": float("nan")}, "/payload/a cannot be sent: JSON has no number nan"),
        ({"a": 2**60}, "/payload/a cannot be sent: .* is beyond 2\\^53"),
    ],
)
def test_a_payload_that_is_no_json_names_the_place(
    client: Client, payload: Any, words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        client.handoff(to="a", from_agent="s", intent="x", payload=payload)


def test_a_result_that_is_no_json_is_permanent_and_names_the_function(
    client: Client, name: Name
) -> None:
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x")

    @worker(client, agent=name("coder"), idle=0.1)
    def work(_: Claim) -> object:
        return {"a": [object()]}

    work.run()
    with pytest.raises(tasuki.HandoffFailed) as caught:
        handoff.result(timeout=10)
    said = caught.value.failure["message"]
    assert "work (test_misuse.py:" in said
    assert "/payload/a/0" in said
    assert handoff.status().failures == 1


def test_a_refused_result_is_permanent(client: Client, name: Name) -> None:
    schema = {"type": "object", "required": ["verdict"]}
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x", output_schema=schema)

    @worker(client, agent=name("coder"), idle=0.1)
    def work(_: Claim) -> str:
        return "fine"

    work.run()
    with pytest.raises(tasuki.HandoffFailed) as caught:
        handoff.result(timeout=10)
    assert caught.value.failure["type"] == "result_refused"
    assert handoff.status().failures == 1


def generator(_: Claim) -> Iterator[int]:
    yield 1


def nothing() -> None: ...


Make = Callable[[], object]
MISUSES: dict[str, tuple[Make, str]] = {
    "no parentheses": (lambda: worker(cast(Any, generator)), "with parentheses"),
    "no parameter": (
        lambda: worker(agent="a")(cast(Callable[[Claim], Any], nothing)),
        r"nothing \(test_misuse.py:\d+\) must take one argument, the claim",
    ),
    "generator": (
        lambda: worker(agent="a")(generator),
        r"generator \(test_misuse.py:\d+\) is a gen",
    ),
    "no function": (
        lambda: worker(agent="a")(cast(Callable[[Claim], Any], 3)),
        "made of a function",
    ),
    "lease": (lambda: worker(agent="a", lease=cast(Any, "10s")), "a span is a number of seconds"),
    "concurrency": (lambda: worker(agent="a", concurrency=cast(Any, "2")), "is a whole number"),
    "capabilities": (lambda: worker(agent="a", capabilities="code"), "is a list of names"),
    "client": (lambda: worker(cast(Any, "http://x")), "is a Client or an AsyncClient"),
    "run": (lambda: tasuki.run(cast(Any, nothing)), "is no worker"),
    "no workers": (lambda: tasuki.run(), "say which workers"),
}


@pytest.mark.parametrize(("make", "words"), MISUSES.values(), ids=MISUSES.keys())
def test_a_misuse_says_what_to_write(make: Make, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_a_timeout_that_is_no_span_is_refused_before_anything_is_sent(
    client: Client, name: Name
) -> None:
    with pytest.raises(TypeError, match="a span is a number of seconds"):
        client.call(to=name("a"), from_agent=name("s"), intent="x", timeout=cast(Any, "5"))
    assert client.handoffs.page(from_agent=name("s")).handoffs == []
