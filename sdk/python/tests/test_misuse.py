# SPDX-License-Identifier: Apache-2.0
"""Wrong use is caught where it happens, before anything is stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from typing import Any, cast
from uuid import UUID

import pytest
from pydantic import BaseModel

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
    "lease": (lambda: worker(agent="a", lease=cast(Any, "10s")), "lease is a number of seconds"),
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
    with pytest.raises(TypeError, match="timeout is a number of seconds"):
        client.call(to=name("a"), from_agent=name("s"), intent="x", timeout=cast(Any, "5"))
    assert client.handoffs.page(from_agent=name("s")).handoffs == []


class Blob(BaseModel):
    name: str
    content: bytes


class Held(BaseModel):
    blobs: list[Blob]


#: What is said of a hop, and the exact words before the place.
HOPS: dict[str, tuple[dict[str, Any], str]] = {
    "fallbacks": ({"fallbacks": "abc"}, "fallbacks is a list: ['abc'], not 'abc'"),
    "approvers": ({"approvers": "ann"}, "approvers is a list: ['ann'], not 'ann'"),
    "gaps": ({"gaps": {"ref": "x"}}, "gaps is a list, not {'ref': 'x'}"),
    "majors": ({"majors": 2}, "majors is a list, not 2"),
    "constraints": ({"constraints": "Do not."}, "constraints is a list of texts: ['Do not.']"),
    "add": ({"add_constraints": 5}, "add_constraints is a list of texts or a mapping, not 5"),
    "priority": ({"priority": "high"}, "priority is a whole number, not 'high'"),
    "priority-10": ({"priority": 10}, "priority is 0 to 9, not 10"),
    "to": ({"to": 5}, "to is the name of an agent, not 5"),
    "both": ({"to_capability": "c"}, "say either to=… (an agent) or to_capability=… (any agent"),
    "intent": ({"intent": 5}, "intent is a text, not 5"),
    "from": ({"from_agent": 5}, "from_agent is the name of an agent, not 5"),
    "deadline": (
        {"deadline": 5},
        "deadline is a datetime or its text, not 5 (a span from now is expires_in=…)",
    ),
    "flag": ({"needs_approval": "yes"}, "needs_approval is True or False, not 'yes'"),
    "expires_in": (
        {"expires_in": "1h"},
        "expires_in is a number of seconds or a timedelta, not '1h'",
    ),
    "negative": (
        {"start_in": timedelta(seconds=-2)},
        "start_in is not negative, but it is -2 s",
    ),
    "surrogate": (
        {"payload": {"files": ["a", "b\udcff"]}},
        "/payload/files/1 cannot be sent: '\\udcff' at 1 is half a character, which UTF-8 does not",
    ),
    "name": (
        {"payload": {"b\udcff": 1}},
        "/payload cannot be sent: '\\udcff' at 1 is half a character, which UTF-8 does not have",
    ),
    "summary": (
        {"summary": "\ud800"},
        "/summary cannot be sent: '\\ud800' at 0 is half a character, which UTF-8 does not have",
    ),
    "model": (
        {"payload": Held(blobs=[Blob(name="a", content=b"\xff")])},
        "/payload/blobs/0/content cannot be sent: a bytes is not JSON",
    ),
}


@pytest.mark.parametrize(("more", "words"), HOPS.values(), ids=HOPS.keys())
@pytest.mark.parametrize("call", ["handoff", "call", "send"])
def test_what_does_not_fit_is_told_before_anything_is_stored(
    client: Client, name: Name, call: str, more: dict[str, Any], words: str
) -> None:
    given = {"to": name("a"), "from_agent": name("s"), "intent": "x", **more}
    with pytest.raises((TypeError, ValueError)) as caught:
        getattr(client, call)(**given)
    assert str(caught.value).startswith(words)
    assert re.search(r"\(test_misuse\.py:\d+\)$", str(caught.value))
    assert client.handoffs.page(from_agent=name("s")).handoffs == []


@pytest.mark.parametrize(
    ("timeout", "words"),
    [
        (-1, "timeout is not negative, but it is -1 s"),
        (float("inf"), "timeout is no span of inf s: None is for no end"),
        (float("nan"), "timeout is no span of nan s: None is for no end"),
        (True, "timeout is a number of seconds or a timedelta, not True"),
    ],
)
def test_a_timeout_that_is_none_is_told_before_anything_is_stored(
    client: Client, name: Name, timeout: float, words: str
) -> None:
    said: dict[str, Any] = {"to": name("a"), "from_agent": name("s"), "intent": "x"}
    for wait in (
        lambda: client.call(**said, timeout=timeout),
        lambda: client.send(**said, timeout=timeout),
        lambda: client.wait([], timeout=timeout),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            wait()
        assert str(caught.value).startswith(f"{words} (test_misuse.py:")
    assert client.handoffs.page(from_agent=name("s")).handoffs == []


def test_a_call_of_a_claim_with_a_bad_timeout_makes_nothing(client: Client, name: Name) -> None:
    client.handoff(to=name("upper"), from_agent="s", intent="x")
    with client.claim(agent=name("upper")) as claim:
        with pytest.raises(ValueError, match="timeout is not negative, but it is -1 s"):
            claim.call(to=name("lower"), timeout=-1)
        assert client.handoffs.page(to_agent=name("lower")).handoffs == []
        claim.complete()


def test_one_of_several_offers_is_named(client: Client, name: Name) -> None:
    good: dict[str, Any] = {"to": name("a"), "from_agent": name("s"), "intent": "x"}
    for bad, words in (
        ({**good, "fallback": ["b"]}, "got an unexpected keyword 'fallback'; did you mean"),
        ({**good, "fallbacks": "b"}, "fallbacks is a list: ['b'], not 'b'"),
        ({"intent": "x", "from_agent": "s"}, "say either to=… (an agent) or"),
        ("x", "is a mapping of what `handoff` takes, not 'x'"),
    ):
        with pytest.raises(TypeError) as caught:
            client.handoff_many([good, cast(Any, bad)])
        found = str(caught.value).replace("offers[1] is", "offers[1]: is")
        assert found.startswith(f"offers[1]: {words}")
    with pytest.raises(TypeError, match="offers is a list, not"):
        client.handoff_many(cast(Any, good))
    assert client.handoffs.page(from_agent=name("s")).handoffs == []


CLAIMS: dict[str, tuple[Callable[[Client], object], str]] = {
    "try_claim": (
        lambda it: it.try_claim(agent="a", capabilities="code"),
        "capabilities is a list: ['code'], not 'code'",
    ),
    "claim": (
        lambda it: it.claim(agent="a", capabilities="code").__enter__(),
        "capabilities is a list: ['code'], not 'code'",
    ),
    "claims": (
        lambda it: next(it.claims(agent="a", capabilities="code")),
        "capabilities is a list: ['code'], not 'code'",
    ),
    "wait": (
        lambda it: it.try_claim(agent="a", wait=cast(Any, "5")),
        "wait is a number of seconds or a timedelta, not '5'",
    ),
    "lease": (
        lambda it: it.try_claim(agent="a", lease=-1),
        "lease is not negative, but it is -1 s",
    ),
    "peek": (
        lambda it: it.handoffs.peek(agent="a", capabilities="code"),
        "capabilities is a list: ['code'], not 'code'",
    ),
    "agent": (lambda it: it.try_claim(agent=cast(Any, 5)), "agent is the name of an agent, not 5"),
    "worker": (lambda _: worker(agent=cast(Any, 5)), "agent is the name of an agent, not 5"),
    "worker lease": (
        lambda _: worker(agent="a", lease=-1),
        "lease is not negative, but it is -1 s",
    ),
    "no lease": (
        lambda _: worker(agent="a", lease=0),
        "lease is how long a claim lasts without a heartbeat, not 0 s",
    ),
    "worker idle": (
        lambda _: worker(agent="a", idle=float("inf")),
        "idle is no span of inf s: None is for no end",
    ),
    "client timeout": (
        lambda _: Client(timeout=cast(Any, "5")),
        "timeout is a number of seconds or a timedelta, not '5'",
    ),
    "no timeout": (
        lambda _: Client(timeout=0),
        "timeout is how long an answer may take: more than 0 s",
    ),
    "client retry": (
        lambda _: Client(retry=cast(Any, 5)),
        "retry is a tasuki.Retry, such as Retry(seconds=5), not 5",
    ),
    "client url": (lambda _: Client(cast(Any, 5)), "url is the address of a broker, not 5"),
    "client agent": (
        lambda _: Client(agent=cast(Any, 5)),
        "agent is the name of an agent, not 5",
    ),
}


@pytest.mark.parametrize(("make", "words"), CLAIMS.values(), ids=CLAIMS.keys())
def test_a_misuse_names_what_was_given_and_where(
    client: Client, make: Callable[[Client], object], words: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        make(client)
    assert re.fullmatch(re.escape(words) + r" \(test_misuse\.py:\d+\)", str(caught.value))


def test_a_result_with_half_a_character_names_its_place(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x")

    @worker(client, agent=name("coder"), idle=0.1)
    def work(_: Claim) -> object:
        return {"files": ["a\udcff"]}

    work.run()
    with pytest.raises(tasuki.HandoffFailed) as caught:
        handoff.result(timeout=10)
    said = caught.value.failure["message"]
    place = r"work \(test_misuse\.py:\d+\) is not JSON: /payload/files/0 cannot be sent"
    assert re.search(place, said.replace("test_a_result_with_half_a_character_names_its_place", ""))
    assert handoff.status().failures == 1
