# SPDX-License-Identifier: Apache-2.0
"""Whoever waits hears of what happens meanwhile: a redrive, an amendment, a loss, a broker that is
away. Nobody waits in silence, and nobody reads pages of traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tasuki
from tasuki import AsyncClaim, Claim, Client, worker
from tasuki import _wire as wire
from tasuki._sync import client as clients
from tasuki._sync import handoffs as waits
from tasuki.testing import Broker

Name = Callable[[str], str]

DOWN = """
import sys, tasuki
client = tasuki.Client("http://127.0.0.1:9", retry=tasuki.Retry(seconds=2.5))
print("begun", flush=True)
client.handoff(to="a", from_agent="s", intent="x")
"""


def test_a_broker_that_is_down_is_told_soon_and_in_few_lines() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DOWN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "begun\n"
        began = time.monotonic()
        first = process.stderr.readline()
        assert time.monotonic() - began < 2
        assert first.startswith("cannot reach the broker at http://127.0.0.1:9: ")
        assert first.endswith("; trying for 2.5 s\n")
        rest = process.stderr.read().splitlines()
        assert process.wait(timeout=30) == 1
    # The frames of the program and of the SDK, and the error itself: nothing of the connection's.
    assert len(rest) < 25
    assert not any("httpx" in line or "httpcore" in line for line in rest)
    assert rest[-1].startswith("tasuki.errors.Unreachable: cannot reach the broker")
    assert rest[-1].endswith("(start it with `tasuki serve`, or name another with TASUKI_URL)")


def refused(client: Client, agent: str) -> None:
    with client.claim(agent=agent) as claim:
        claim.fail("no", kind="permanent", hint="h")


def until(holds: Callable[[], object]) -> None:
    """Waits for something that comes about by itself."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_final_waits_while_a_dead_letter_is_redriven(
    client: Client,
    name: Name,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(waits, "WARN_S", 0.05)
    monkeypatch.setattr(waits, "WARN_AGAIN_S", 0.05)
    monkeypatch.setattr(wire, "WAIT_S_MAX", 0.1)
    coder = name("coder")
    handoff = client.handoff(to=coder, from_agent="s", intent="x")
    with ThreadPoolExecutor(1) as pool:
        final = pool.submit(handoff.final)
        refused(client, coder)
        # It has seen the dead letter, and goes on.
        letter = f"still waiting for {handoff.task_id}: {handoff.id}: it is a dead letter"
        until(lambda: letter in caplog.text)
        assert not final.done()
        client.dead_letters.redrive(handoff.id, by="s")
        with client.claim(agent=coder) as claim:
            claim.complete("at last")
        assert final.result(timeout=30).payload["text"] == "at last"


def test_an_amended_call_reaches_its_caller(client: Client, name: Name) -> None:
    upper, lower, other = name("upper"), name("lower"), name("other")
    client.handoff(to=upper, from_agent="s", intent="x")
    with client.claim(agent=upper) as claim:
        called = claim.start_call(to=lower, payload="In French.")
        refused(client, lower)
        client.dead_letters.amend(called.id, to=other, payload="In English.", by=upper)
        with client.claim(agent=other) as below:
            assert below.payload["text"] == "In English."
            below.complete("Done.")
        assert called.result(timeout=30).payload["text"] == "Done."
        claim.complete()


def test_questions_that_are_asked_later_are_followed(
    client: Client, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "FOLLOW_S", 0.02)
    sender = name("sender")
    handoffs = [
        client.handoff(to=name("coder"), from_agent=sender, intent="x", terms={"attempts": 1})
        for _ in range(2)
    ]

    def ask(text: str) -> None:
        with (
            pytest.raises(tasuki.LeaseLost),
            Client(client.url) as mine,
            mine.claim(agent=name("coder")) as claim,
        ):
            claim.ask(text, answer_within=60)

    following = client.questions(from_agent=sender, follow=True)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask, "Which branch?")
        assert next(following).text == "Which branch?"
        later = pool.submit(next, following)
        second = pool.submit(ask, "Which file?")
        assert later.result(timeout=30).text == "Which file?"
        for handoff in handoffs:
            handoff.cancel(by=sender)
        first.result(timeout=60)
        second.result(timeout=60)


def test_a_call_ends_with_the_claim_that_it_is_part_of(client: Client, name: Name) -> None:
    upper = name("upper")
    handoff = client.handoff(to=upper, from_agent="s", intent="x")
    began = threading.Event()

    def call() -> None:
        with Client(client.url) as mine, mine.claim(agent=upper, lease=1) as claim:
            began.set()
            claim.call(to=name("nobody"), on_parent_end="let_go")

    with ThreadPoolExecutor(1) as pool:
        calling = pool.submit(call)
        assert began.wait(30)
        until(lambda: client.handoffs.page(to_agent=name("nobody")).handoffs)
        handoff.cancel(by="s")
        with pytest.raises(tasuki.LeaseLost):
            calling.result(timeout=30)


def test_workers_that_run_together_share_a_client_and_one_signal_handler(
    client: Client, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASUKI_URL", client.url)
    made: list[str] = []
    handled: list[int] = []

    class Counted(Client):
        def __init__(self, *given: Any, **more: Any) -> None:
            made.append("plain")
            super().__init__(*given, **more)

    class CountedToo(tasuki.AsyncClient):
        def __init__(self, *given: Any, **more: Any) -> None:
            made.append("in a loop")
            super().__init__(*given, **more)

    def handle(number: int, handler: Any) -> Any:
        handled.append(number)
        return real(number, handler)

    real, module = signal.signal, sys.modules["tasuki.worker"]
    monkeypatch.setattr(module, "Client", Counted)
    monkeypatch.setattr(module, "AsyncClient", CountedToo)
    monkeypatch.setattr(signal, "signal", handle)
    used: set[int] = set()

    def plain(agent: str) -> tasuki.Worker:
        @worker(agent=agent, idle=0.2)
        def work(claim: Claim) -> None:
            used.add(id(claim.client))

        return work

    @worker(agent=name("third"), idle=0.2)
    async def third(claim: AsyncClaim) -> None:
        used.add(id(claim.client))

    for agent in ("first", "second", "third"):
        client.handoff(to=name(agent), from_agent="s", intent="x")
    tasuki.run(plain(name("first")), plain(name("second")), third)
    assert sorted(made) == ["in a loop", "plain"]
    assert len(used) == 2
    # Each of the two signals once, and each given back once.
    assert handled == [signal.SIGTERM, signal.SIGINT] * 2


TOGETHER = """
import sys, tasuki

@tasuki.worker(agent=sys.argv[1])
def one(claim): ...

@tasuki.worker(agent=sys.argv[2])
async def two(claim): ...

print("ready", flush=True)
tasuki.run(one, two)
print("stopped", flush=True)
"""


def test_one_signal_stops_all_of_them(broker: Broker, name: Name) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TOGETHER, name("one"), name("two")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TASUKI_URL": broker.url},
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "ready\n"
        said = [process.stderr.readline(), process.stderr.readline()]
        assert all("is connected to" in line for line in said)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopped\n"
        assert process.wait(timeout=30) == 0
