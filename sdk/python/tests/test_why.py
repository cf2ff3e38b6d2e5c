# SPDX-License-Identifier: Apache-2.0
"""A wait that ends says why, in the words of what the broker knows."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

import tasuki
from tasuki import Client, Handoff
from tasuki._sync import handoffs as waits
from tasuki._why import reason

Name = Callable[[str], str]
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


def offered(client: Client, to: str, **more: object) -> Handoff:
    return client.handoff(to=to, from_agent="s", intent="x", **more)  # type: ignore[arg-type]


def said(handoff: Handoff) -> str:
    with pytest.raises(tasuki.TimedOut) as caught:
        handoff.result(timeout=0)
    start = f"{handoff.id} has no result yet: "
    assert caught.value.message.startswith(start)
    return caught.value.message[len(start) :]


def test_nobody_is_there_or_somebody_is_and_busy(client: Client, name: Name) -> None:
    coder = name("coder")
    first, second = offered(client, coder), offered(client, coder)
    assert said(first) == f"it waits for {coder}, and no such agent is known"
    with client.claim(agent=coder) as claim:
        assert re.fullmatch(f"it is being worked on by {coder} since {TIME}", said(first))
        busy = f"it waits for {coder}, who has been working on {first.id} since {TIME}"
        assert re.fullmatch(busy, said(second))
        claim.complete()
    assert said(second) == f"it waits for {coder} to claim it"
    able = client.handoff(to_capability=name("skill"), from_agent="s", intent="x")
    skill = f"any agent with the capability {name('skill')}"
    assert said(able) == f"it waits for {skill}, and nobody listens for it"


def test_a_pause_and_a_breaker_are_named(client: Client, name: Name) -> None:
    coder = name("coder")
    handoff = offered(client, coder, terms={"attempts": 1})
    client.agents.pause_target(coder)
    assert said(handoff) == f"{coder} is paused, and somebody has to resume it"
    client.agents.resume_target(coder)
    client.agents.pause_target(coder, 60)
    until = rf"{coder} is paused: somebody resumes it, or it goes on in (59|60) s"
    assert re.fullmatch(until, said(handoff))
    client.agents.resume_target(coder)
    client.agents.publish({"agent_id": coder, "name": coder})
    client.agents.set_breaker(coder, {"failures": 1, "open_ms": 60_000})
    other = offered(client, coder)
    with client.claim(agent=coder) as claim:
        claim.fail("no", kind="retryable")
    words = rf"{coder} failed too often: its breaker is open, and gets work again in \d+ s"
    assert re.fullmatch(words, said(other))


def test_a_start_and_a_retry_have_their_time(client: Client, name: Name) -> None:
    coder = name("coder")
    later = offered(client, coder, start_in=90)
    assert re.fullmatch(r"it starts in (89|90) s", said(later))
    handoff = offered(client, coder)
    with client.claim(agent=coder) as claim:
        claim.fail("busy", kind="retryable", retry_after=60)
    assert re.fullmatch(r"it is tried again in \d\d s", said(handoff))


def test_tasks_approvals_and_letters_are_named(client: Client, name: Name) -> None:
    coder = name("coder")
    before = offered(client, coder)
    after = offered(client, coder, after={"tasks": [before.task_id], "need": 1})
    assert said(after).startswith(f"it waits for the task {before.task_id}, which is ")
    held = offered(client, coder, needs_approval=True, approvers=["ann", "bob"])
    assert said(held) == "it waits for approval by ann or bob"
    asked = client.claim_handoff(before.id, agent=coder)
    with asked as claim:
        claim.fail("no", kind="permanent", hint="h")
    with pytest.raises(tasuki.TimedOut) as caught:
        before.final(timeout=0)
    letter = "it is a dead letter (permanent_failure): somebody has to redrive or discard it"
    assert caught.value.message == f"{before.task_id} has not ended yet: {before.id}: {letter}"


def test_a_send_that_timed_out_says_why(client: Client, name: Name) -> None:
    coder = name("coder")
    client.agents.pause_target(coder)
    with pytest.raises(tasuki.TimedOut) as caught:
        client.send(to=coder, from_agent="s", intent="x", timeout=0.1, terms={"ack_ms": 60_000})
    found = caught.value
    assert found.message == (
        f"{found.handoff.id} did not come as far as claimed in 0.1 s: "
        f"{coder} is paused, and somebody has to resume it"
    )


def test_several_results_that_are_missing_say_why_the_first_is(client: Client, name: Name) -> None:
    handoffs = [offered(client, name("coder")) for _ in range(2)]
    with pytest.raises(tasuki.TimedOut) as caught:
        client.results(handoffs, timeout=0)
    assert caught.value.message == (
        f"2 of 2 handoffs have no result yet, the first {handoffs[0].id}: "
        f"it waits for {name('coder')}, and no such agent is known"
    )


def test_a_wait_without_an_end_says_why_after_a_while(
    client: Client,
    name: Name,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(waits, "WARN_S", 0.05)
    monkeypatch.setattr(waits, "CHECK_S", 0.1)
    handoff = offered(client, name("coder"))
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        if asked > 3:
            raise InterruptedError

    with caplog.at_level(logging.WARNING, "tasuki"), pytest.raises(InterruptedError):
        waits.wait_for(client._wire, [handoff.id], timeout=None, check=check)
    words = f"still waiting for {handoff.id}: it waits for {name('coder')}, and no such agent"
    assert [record.message for record in caplog.records] == [f"{words} is known"]


def test_every_kind_of_waiting_has_words(client: Client, name: Name) -> None:
    """Those that take long to bring about are read from an answer as it would be."""
    shown = offered(client, name("coder")).status()
    soon = datetime.now(timezone.utc) + timedelta(hours=1, seconds=5)
    above = {"kind": "letter", "handoff_id": shown.handoff_id}
    for told, words in (
        (above, f"a task above it waits for a decision on the dead letter {shown.handoff_id}"),
        ({"kind": "holder", "agent": "coder"}, "coder has to go on with it"),
        ({"kind": "decision", "reason": "rules"}, "somebody has to decide on it: rules"),
        ({"kind": "time", "until": soon}, "it starts in 60 min"),
        ({"kind": "something new"}, "it waits for something new"),
    ):
        one = shown.model_copy(update={"waits_for": [tasuki.models.WaitsFor.model_validate(told)]})
        assert reason(one) == words
