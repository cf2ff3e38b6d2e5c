# SPDX-License-Identifier: Apache-2.0
"""A lost claim stops the work; steps are found again; waits say why."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

import tasuki
from tasuki import AsyncClaim, AsyncClient, Claim, Client, worker

Name = Callable[[str], str]


async def test_a_lost_claim_cancels_the_coroutine(async_client: AsyncClient, name: Name) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @worker(async_client, agent=name("slow"), lease=1)
    async def work(_: AsyncClaim) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "too late"

    handoff = await async_client.handoff(to=name("slow"), from_agent="s", intent="x")
    serving = asyncio.create_task(work.serve())
    await begun.wait()
    await handoff.cancel(by="s")
    await ended.wait()
    work.stop()
    await serving
    assert (await handoff.status()).state == "cancelled"


def test_a_thread_that_waits_for_a_call_notices_that_its_claim_is_lost(
    client: Client, name: Name
) -> None:
    found: list[BaseException] = []
    calling = threading.Event()

    @worker(client, agent=name("slow"), lease=1)
    def work(claim: Claim) -> None:
        started = claim.start_call(to=name("nobody"), on_parent_end="let_go")
        calling.set()
        try:
            started._result(None, claim.check)
        except tasuki.LeaseLost as lost:
            found.append(lost)
            raise
        finally:
            work.stop()

    handoff = client.handoff(to=name("slow"), from_agent="s", intent="x")
    running = threading.Thread(target=work.run)
    running.start()
    assert calling.wait(30)
    handoff.cancel(by="s")
    running.join(30)
    assert [type(one) for one in found] == [tasuki.LeaseLost]


def test_a_call_that_ended_with_its_callers_claim_is_no_failed_call(
    client: Client, name: Name
) -> None:
    """No heartbeat tells it: the lease is long."""
    handoff = client.handoff(to=name("slow"), from_agent="s", intent="x")
    with pytest.raises(tasuki.LeaseLost), client.claim(agent=name("slow"), lease=600) as claim:
        called = claim.start_call(to=name("nobody"))
        handoff.cancel(by="s")
        assert called.status().state == "cancelled"
        claim._came_of(called, 30)


def test_a_call_that_somebody_cancelled_is_a_failed_call(client: Client, name: Name) -> None:
    client.handoff(to=name("slow"), from_agent="s", intent="x")
    with client.claim(agent=name("slow")) as claim:
        called = claim.start_call(to=name("nobody"))
        called.cancel(by=name("slow"))
        with pytest.raises(tasuki.HandoffFailed):
            claim._came_of(called, 30)
        claim.complete("without it")


def test_a_step_is_found_again_in_whatever_words(client: Client, name: Name) -> None:
    client.handoff(to=name("editor"), from_agent="s", intent="x")
    with client.claim(agent=name("editor")) as claim:
        assert claim.client is client
        started = claim.start_call(step="check", to=name("checker"), payload="Is it true?")
        with client.claim(agent=name("checker")) as below:
            below.complete("It is.")
        claim.release()
    with client.claim(agent=name("editor")) as claim:
        again = claim.start_call(step="check", to=name("checker"), payload="Please verify.")
        assert again.id == started.id
        result = claim.call(step="check", to=name("checker"), payload="Once more.")
        assert result.payload["text"] == "It is."
        assert claim.start_call(step="other", to=name("checker")).id != started.id
        claim.complete()


def failing(client: Client, agent: str) -> None:
    with client.claim(agent=agent) as claim:
        claim.fail("no", kind="permanent", hint="h")


def test_a_redriven_caller_finds_its_steps(client: Client, name: Name) -> None:
    upper, lower = name("upper"), name("lower")
    handoff = client.handoff(to=upper, from_agent="s", intent="x")
    with client.claim(agent=upper) as claim:
        done = claim.start_call(step="done", to=lower, payload="One.")
        with client.claim(agent=lower) as below:
            below.complete("It is.")
        bad = claim.start_call(step="bad", to=lower, payload="Two.")
        failing(client, lower)
        still = claim.start_call(step="open", to=lower, payload="Three.")
        claim.fail("no", kind="permanent", hint="h")
    again = client.dead_letters.redrive(handoff.id, by="s")
    failing(client, upper)
    client.dead_letters.redrive(again.id, by="s")
    with client.claim(agent=upper) as claim:
        assert claim.handoff_id not in (handoff.id, again.id)
        assert claim.call(step="done", to=lower, payload="In other words.").payload == {
            "type": "text",
            "text": "It is.",
        }
        assert claim.start_call(step="open", to=lower).id == still.id
        # What failed is done again: that is what somebody redrove it for.
        anew = claim.start_call(step="bad", to=lower)
        assert anew.id not in (bad.id, done.id)
        assert claim.start_call(step="bad", to=lower).id == anew.id
        claim.complete()


def test_a_step_in_the_form_of_an_older_version_is_found(client: Client, name: Name) -> None:
    upper, lower = name("upper"), name("lower")
    handoff = client.handoff(to=upper, from_agent="s", intent="x")
    with client.claim(agent=upper) as claim:
        old = {"step": f"{handoff.id}:check"}
        started = claim.start_call(to=lower, payload="Check it.", metadata=old)
        claim.release()
    with client.claim(agent=upper) as claim:
        assert claim.start_call(step="check", to=lower).id == started.id
        assert claim.start_call(step="other", to=lower).envelope().metadata == {
            "step": f"{handoff.id}:step:other"
        }
        claim.complete()


def test_a_redriven_call_reaches_its_caller(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x")
    with client.claim(agent=name("coder")) as claim:
        claim.fail("no", kind="permanent", hint="h")
    with pytest.raises(tasuki.TimedOut, match=r"it is a dead letter \(permanent_failure\)"):
        handoff.final(timeout=0)
    client.dead_letters.redrive(handoff.id, by="s")
    with client.claim(agent=name("coder")) as claim:
        claim.complete("at last")
    assert handoff.result(timeout=10).payload["text"] == "at last"
    assert handoff.final(timeout=10).payload["text"] == "at last"


def test_a_wait_says_why(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x")
    with pytest.raises(tasuki.TimedOut, match=f"it waits for {name('coder')}, and no such agent"):
        handoff.result(timeout=0)
    with client.claim(agent=name("coder")) as claim:
        with pytest.raises(tasuki.TimedOut, match=f"is being worked on by {name('coder')} since"):
            handoff.result(timeout=0)
        claim.complete()
    held = client.handoff(to=name("coder"), from_agent="s", intent="x", needs_approval=True)
    with pytest.raises(tasuki.TimedOut, match="it waits for approval"):
        held.acknowledged(timeout=0)


def test_a_failed_call_is_one_dead_letter_for_each_level_and_no_retries(
    client: Client, name: Name
) -> None:
    upper = client.handoff(to=name("upper"), from_agent="s", intent="x")
    with pytest.raises(tasuki.HandoffFailed), client.claim(agent=name("upper")) as claim:
        started = claim.start_call(to=name("lower"))
        with client.claim(agent=name("lower")) as below:
            below.fail("no", kind="permanent", hint="add a suite")
        started.result()
    shown = upper.status()
    assert (shown.state, shown.failures) == ("dead_lettered", 1)
    assert client.dead_letters.get(upper.id).reports[-1].report["hint"] == "add a suite"


def test_usage_is_counted_and_reported_with_the_result(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("coder"), from_agent="s", intent="x")
    with client.claim(agent=name("coder")) as claim:
        claim.usage(input_tokens=10, output_tokens=2, model="small")
        claim.usage(input_tokens=5, output_tokens=1)
        claim.complete()
    used = handoff.result().usage
    assert used
    assert (used.input_tokens, used.output_tokens, used.model) == (15, 3, "small")


def test_what_waits_for_people_is_iterated(client: Client, name: Name) -> None:
    sender = name("sender")
    held = [
        client.handoff(to=name("coder"), from_agent=sender, intent="x", needs_approval=True).id
        for _ in range(3)
    ]
    assert {it.handoff_id for it in client.approvals(from_agent=sender)} == set(held)
    following = client.approvals(from_agent=sender, follow=True)
    assert {next(following).handoff_id for _ in held} == set(held)
    late = client.handoff(to=name("coder"), from_agent=sender, intent="x", needs_approval=True)
    assert next(following).handoff_id == late.id
    assert list(client.questions(from_agent=sender)) == []


def test_several_workers_run_in_one_process(
    client: Client, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASUKI_URL", client.url)
    first = client.handoff(to=name("one"), from_agent="s", intent="x")
    second = client.handoff(to=name("two"), from_agent="s", intent="x")

    @worker(agent=name("one"), idle=0.2)
    def one(_: Claim) -> str:
        return "1"

    @worker(agent=name("two"), idle=0.2)
    async def two(_: AsyncClaim) -> str:
        return "2"

    tasuki.run(one, two)
    assert [it.payload["text"] for it in client.results([first, second])] == ["1", "2"]
