# SPDX-License-Identifier: Apache-2.0
"""Listings from elsewhere run with nothing changed but their import line.

They are read from where they were published. That text has lost the indentation of its third
listing, so the columns are given here; the words are not touched.
"""

from __future__ import annotations

import re
import types
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tasuki
from conftest import ROOT
from tasuki import Client
from tasuki.testing import Broker

SEED = next((ROOT.parent / "shared" / "seeds").glob("001_*"), None) or next(
    (ROOT.parent.parent / "shared" / "seeds").glob("001_*"), None
)
# Each listing begins with its first comment and ends before the prose goes on.
BEGINNINGS = [
    "# Initiate a handoff",
    "# Broadcast handoff: one sender",
    "# Robust handoff with retry",
]
# For each line of the third listing, how many levels it is indented.
LEVELS = [
    *(0, 0, 0, 1, 0, 1, 0),
    *(1, 2, 2, 2, 2, 2, 2),
    *(1, 2, 2, 3, 4, 5, 5, 4, 3, 3),
    *(2, 2, 3, 4, 5, 5, 5, 4, 4, 4, 3, 4, 4, 4),
    *(2, 2, 2, 3, 3, 2, 2, 2, 3, 3, 2),
]


def listings() -> list[str]:
    if SEED is None:
        pytest.skip("the listings were published apart from this repository, and are not here")
    lines = SEED.read_text("utf-8").splitlines()
    found: list[str] = []
    for beginning in BEGINNINGS:
        at = next(number for number, line in enumerate(lines) if line.startswith(beginning))
        end = next(n for n in range(at, len(lines)) if re.match(r"[A-Z][a-z]+ [A-Za-z]+", lines[n]))
        found.append("\n".join(lines[at:end]))
    indented = zip(LEVELS, found[2].splitlines(), strict=True)
    found[2] = "\n".join("    " * level + line for level, line in indented)
    return found


def changed(source: str, url: str) -> str:
    """The import line, and where this test's broker is: the one in the listing is the default."""
    source = source.replace(
        "from memory_spine import MemorySpine", "from tasuki import MemorySpine"
    )
    return source.replace("http://127.0.0.1:8788", url)


@pytest.fixture
def ran(broker: Broker) -> Iterator[dict[str, Any]]:
    """The names of a program that has run all three listings."""
    names: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for listing in listings():
            exec(compile(changed(listing, broker.url), "listing", "exec"), names)
    names["told"] = [str(one.message) for one in told]
    yield names
    names["spine"].close()


def test_an_envelope_is_assembled(ran: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    handoff = ran["handoff"]
    assert handoff.envelope_version == "2"
    assert 0 < handoff.token_count <= 4000
    assert handoff.memory_refs == [f"ms-{number}" for number in range(4821, 4826)]
    texts = {constraint.text for constraint in handoff.assembled.envelope.constraints}
    assert "no plaintext credentials" in texts
    assert "language: python" in texts
    assert handoff.receipt.budget == 4000


def test_a_broadcast_reaches_every_receiver_once(ran: dict[str, Any], client: Client) -> None:
    receivers = ["code-generator", "test-writer", "doc-writer"]
    envelope, channel = ran["handoff_envelope"], ran["channel"]
    again = channel.publish(envelope=envelope, receivers=receivers, delivery="at-least-once")
    assert [one.receiver for one in again] == receivers
    assert {one.status for one in again} == {"stored; nobody is listening"}
    for one in again:
        waiting = client.handoffs.peek(agent=one.receiver, max=100)
        mine = [w for w in waiting if w.task_id == one.task_id]
        assert [w.handoff_id for w in mine] == [one.handoff_id]
        client.tasks.cancel(one.task_id, by="memory-spine")
    assert any("2026-01-30" in text for text in ran["told"])


def test_a_delivery_is_acknowledged(ran: dict[str, Any], client: Client) -> None:
    sender = ran["HandoffClient"](ran["spine"])
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(sender.send_handoff, ran["handoff"], "listener")
        with client.claim(agent="listener") as claim:
            assert claim.intent == ran["handoff"].intent
            ack = sent.result(timeout=30)
            claim.complete("done")
    assert ack.agent == "listener"
    assert ack.handoff_id == claim.handoff_id
    assert sender.failure_count == 0


def test_a_delivery_that_nobody_acknowledges_is_a_timeout(ran: dict[str, Any]) -> None:
    with pytest.raises(TimeoutError, match="nobody is listening") as caught:
        ran["spine"].deliver_handoff(envelope=ran["handoff"], target="never-registered", timeout=0)
    assert isinstance(caught.value, tasuki.TimedOut)


def test_what_nobody_takes_is_parked_and_the_circuit_opens(
    ran: dict[str, Any], client: Client
) -> None:
    # The listing pauses between its tries; here it only says for how long.
    pauses: list[float] = []
    ran["time"] = types.SimpleNamespace(time=ran["time"].time, sleep=pauses.append)
    sender = ran["HandoffClient"](ran["spine"], timeout=0)
    assemble = ran["spine"].agent_handoff
    envelopes = [assemble(target_agent="away", task_summary=f"Try {n}.") for n in range(3)]
    for envelope in envelopes:
        with pytest.raises(ran["HandoffError"], match="failed after 3 attempts"):
            sender.send_handoff(envelope, "away")
    with pytest.raises(ran["CircuitOpenError"]):
        sender.send_handoff(envelopes[0], "away")
    assert pauses == [2, 4, 8] * 3
    page = client.dead_letters.page(limit=100).handoffs
    parked = [one for one in page if _says(client, one.task_id, "nobody is listening")]
    assert len(parked) == 3
    # Nobody declined in the name of the one who is not there.
    assert all("away" not in letter.declined_by for letter in parked)
    # The offers that were parked are not there a second time.
    assert client.handoffs.peek(agent="away", max=10) == []
    # Whoever reviews them sends the same envelope to the same receiver again.
    again = client.dead_letters.reroute(parked[0].handoff_id, to="away", by="person")
    assert again.to.agent == "away"


def _says(client: Client, task_id: str, words: str) -> bool:
    return any(words in str(event.body) for event in client.tasks.events(task_id))


def test_what_was_never_sent_can_be_parked(ran: dict[str, Any], client: Client) -> None:
    parked = ran["spine"].park_envelope(ran["handoff"], reason="not today")
    assert client.handoffs.get(parked).state == "dead_lettered"
