# SPDX-License-Identifier: Apache-2.0
"""What happens when something is between a program and the broker, or the broker is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import tasuki
from tasuki import Claim, Client, Retry, errors, worker
from tasuki._heart import Heart
from tasuki.testing import Broker
from way import Answer, Way, once

Name = Callable[[str], str]
PATIENT = Retry(seconds=20, base=0.01, cap=0.05)

STRANGE: dict[str, Answer] = {
    "429": (429, "text/html", b"slow down"),
    "500": (500, "text/html", b"<html>oops</html>"),
    "404": (404, "text/html", b"default backend"),
    "401": (401, "text/html", b"who are you"),
    "302": (302, "text/html", b"over there"),
    "200": (200, "text/html", b"<html>log in</html>"),
    "empty": (200, "application/json", b""),
    "other-json": (429, "application/json", b'{"message": "Too Many Requests"}'),
    "a-list-of-details": (
        503,
        "application/json",
        b'{"code": "x", "message": "m", "hint": "h", "retryable": true, "details": [1]}',
    ),
}
strange = pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE.keys())


@pytest.fixture
def way(broker: Broker) -> Iterator[Way]:
    with Way(broker.url) as made:
        yield made


@strange
def test_an_answer_that_is_no_brokers_is_said_to_be_none_and_may_pass(
    way: Way, answer: Answer
) -> None:
    way.instead = lambda _: answer
    with Client(way.url, retry=Retry(seconds=0)) as client:
        for ask in (
            client.health,
            lambda: client.try_claim(agent="x"),
            lambda: client.handoff(to="x", from_agent="s", intent="x"),
            lambda: client.handoff_many([{"to": "x", "from_agent": "s", "intent": "x"}]),
        ):
            with pytest.raises((errors.NotABroker, errors.Unavailable)) as caught:
                ask()
            assert caught.value.retryable


def test_what_passes_is_waited_for(way: Way, name: Name) -> None:
    answers = iter([STRANGE["200"], STRANGE["404"], STRANGE["500"]])
    way.instead = lambda _: next(answers, None)
    with Client(way.url, retry=PATIENT) as client:
        assert client.handoff(to=name("x"), from_agent="s", intent="x").id


def test_content_that_cannot_be_decoded_is_an_error_of_the_sdk() -> None:
    class Broken(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            headers = {"content-encoding": "gzip"}
            return httpx.Response(
                200, headers=headers, stream=httpx.ByteStream(b"none"), request=request
            )

    with (
        Client("http://127.0.0.1:9", transport=Broken(), retry=tasuki.NO_RETRY) as client,
        pytest.raises(errors.Unreachable),
    ):
        client.health()


@strange
def test_a_heartbeat_that_something_else_answers_costs_nobody_a_claim(
    way: Way, client: Client, name: Name, answer: Answer
) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    beats, disturbed, passed = 0, threading.Event(), threading.Event()

    def instead(path: str) -> Answer | None:
        nonlocal beats
        if not path.endswith("/heartbeat"):
            return None
        beats += 1
        if beats <= 2:
            disturbed.set()
            return answer
        passed.set()
        return None

    way.instead = instead
    with Client(way.url) as there, there.claim(agent=agent, lease=3) as claim:
        assert disturbed.wait(30)
        assert passed.wait(30)
        assert not claim.lost.is_set()
        claim.complete("done")
    assert handoff.result(timeout=10).payload["text"] == "done"


def test_a_heart_that_stops_is_told(
    client: Client, name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")

    def broken(*_: object) -> float:
        raise ArithmeticError("never to happen")

    monkeypatch.setattr(Heart, "_unheard", broken)
    monkeypatch.setattr(Heart, "_beat", broken)
    with pytest.raises(tasuki.LeaseLost), client.claim(agent=agent, lease=0.3) as claim:
        assert claim.lost.wait(30)
        claim.check()
    handoff.cancel(by="s")


@pytest.mark.parametrize("kind", ["404", "401", "200"])
def test_a_worker_outlives_a_disturbance(way: Way, client: Client, name: Name, kind: str) -> None:
    agent = name("agent")
    with Client(way.url, retry=Retry(seconds=0.1, base=0.01, cap=0.02)) as there:

        @worker(there, agent=agent)
        def work(_: Claim) -> str:
            work.stop()
            return "done"

        disturbed = threading.Event()
        count = 0

        def instead(path: str) -> Answer | None:
            nonlocal count
            count += path.endswith("/claims")
            if count > 5:
                disturbed.set()
                return None
            return STRANGE[kind]

        way.instead = instead
        with ThreadPoolExecutor(1) as pool:
            ran = pool.submit(work.run)
            assert disturbed.wait(30)
            handoff = client.handoff(to=agent, from_agent="s", intent="x")
            ran.result(timeout=30)
    assert handoff.result(timeout=10).payload["text"] == "done"


def test_work_whose_grant_was_lost_on_the_way_comes_with_the_next_answer(
    way: Way, client: Client, name: Name
) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    lose = once()
    way.lose = lambda path: path.endswith("/claims") and lose(path)
    with Client(way.url, retry=PATIENT) as there:

        @worker(there, agent=agent)
        def work(_: Claim) -> str:
            work.stop()
            return "done"

        work.run()
    assert len(handoff.status().attempts) == 1


def test_a_stream_that_is_none_ends_with_an_error(way: Way) -> None:
    way.instead = lambda _: STRANGE["200"]
    with (
        Client(way.url, retry=Retry(seconds=0.3, base=0.05)) as client,
        pytest.raises(errors.NotABroker),
    ):
        next(iter(client.events()))
    assert len(way.asked) < 50


def test_a_stream_that_may_have_missed_something_says_so_and_from_where_to_go_on(way: Way) -> None:
    missed = b'id: 1-380\nevent: missed\ndata: {"after":"1-412","resume_after":"1-380"}\n\n'
    way.instead = lambda _: (200, "text/event-stream", missed)
    with Client(way.url) as client, pytest.raises(errors.EventsMissed) as found:
        next(iter(client.events(after=412)))
    assert found.value.resume_after == "1-380"


IDLE = """
import sys, tasuki
client = tasuki.Client(sys.argv[1])

@tasuki.worker(client, agent=sys.argv[2])
def work(claim):
    print("working", flush=True)
    sys.stdin.readline()

print("ready", flush=True)
work.run()
print("stopped", flush=True)
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_an_idle_worker_stops_although_the_broker_is_gone(name: Name, signals: int) -> None:
    with (
        Broker() as broker,
        subprocess.Popen(
            [sys.executable, "-c", IDLE, broker.url, name("agent")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        broker.kill()
        began = time.monotonic()
        for _ in range(signals):
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) in (0, -signal.SIGTERM)
        assert time.monotonic() - began < 8


def test_a_second_signal_does_not_wait_for_a_broker_that_is_gone(name: Name) -> None:
    agent = name("agent")
    with Broker() as broker:
        with Client(broker.url) as client:
            client.handoff(to=agent, from_agent="s", intent="x")
        with subprocess.Popen(
            [sys.executable, "-c", IDLE, broker.url, agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            assert process.stdout.readline() == "working\n"
            broker.kill()
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=40) == 0
            assert time.monotonic() - began < 10


def test_an_interruption_does_not_wait_for_a_broker_that_is_gone(name: Name) -> None:
    agent = name("agent")
    with Broker() as broker, Client(broker.url) as client:
        client.handoff(to=agent, from_agent="s", intent="x")
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt), client.claim(agent=agent):
            broker.kill()
            began = time.monotonic()
            raise KeyboardInterrupt
        assert time.monotonic() - began < 8


def test_a_call_whose_answer_was_lost_is_the_same_call_when_it_is_made_again(
    way: Way, client: Client, name: Name
) -> None:
    agent, helper = name("agent"), name("helper")
    client.handoff(to=agent, from_agent="s", intent="x")
    with Client(way.url, retry=tasuki.NO_RETRY) as there, there.claim(agent=agent) as claim:
        way.lose = lambda path: path == "/v1/handoffs"
        with pytest.raises(errors.Unreachable) as caught:
            claim.start_call(to=helper, payload={"type": "pay"})
        assert caught.value.in_doubt
        assert "may have been done" in caught.value.hint
        way.lose = lambda _: False
        claim.start_call(to=helper, payload={"type": "pay"})
        assert len(client.handoffs.page(to_agent=helper).handoffs) == 1
        claim.start_call(to=helper, payload={"type": "pay"})
        assert len(client.handoffs.page(to_agent=helper).handoffs) == 2
        claim.complete()


def test_a_lost_answer_does_not_become_a_conflict(way: Way, client: Client, name: Name) -> None:
    agent = name("agent")
    with Client(way.url, agent="boss", retry=PATIENT) as there:
        task = there.handoff(to=name("x"), intent="x").task_id
        way.lose = once()
        assert there.tasks.cancel(task).state == "cancelled"

        project = there.project(name("project"))
        way.lose = once()
        assert project.decide("db", "SQLite").decisions[-1].decision == "SQLite"
        with pytest.raises(tasuki.Conflict):
            project.decide("db", "PostgreSQL")

        for accept in (True, False):
            handoff = there.handoff(to=agent, intent="x")
            client.handoffs.counter(handoff.id, agent=agent, reason="more time")
            way.lose = once()
            assert there.handoffs.settle(handoff.id, agent=agent, accept=accept).counters == []


def test_somebody_elses_decision_is_a_conflict_although_an_answer_was_lost(
    way: Way, client: Client, name: Name
) -> None:
    project = name("project")
    client.project(project).decide("db", "PostgreSQL", by="other")
    with Client(way.url, agent="boss", retry=PATIENT) as there:
        way.lose = once()
        with pytest.raises(tasuki.Conflict):
            there.project(project).decide("db", "SQLite")
