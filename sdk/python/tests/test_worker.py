# SPDX-License-Identifier: Apache-2.0
"""Functions as agents."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import tasuki
from tasuki import AsyncClaim, AsyncClient, Claim, Client, worker
from tasuki.testing import Broker

Name = Callable[[str], str]


def test_what_a_function_returns_is_the_result_and_what_it_raises_the_failure(
    client: Client, name: Name
) -> None:
    agent = name("agent")

    @worker(client, agent=agent, idle=0.2)
    def work(claim: Claim) -> object:
        match claim.payload["n"]:
            case 0:
                return {"type": "answer", "n": 0}
            case 1:
                return "one"
            case 2:
                claim.hand_on(to=name("other"), result="handed on")
                return None
            case _:
                raise ValueError("no such number")

    handoffs = [
        client.handoff(to=agent, from_agent="sender", intent="Count.", payload={"n": n})
        for n in range(4)
    ]
    work.run()
    results = client.results(handoffs[:3], timeout=10)
    assert [result.payload.get("text") for result in results] == [None, "one", "handed on"]
    assert handoffs[3].status().state == "dead_lettered"
    assert client.tasks.get(handoffs[2].task_id).live_handoff


def test_a_worker_that_had_nothing_to_do_can_be_run_again(client: Client, name: Name) -> None:
    agent = name("agent")

    @worker(client, agent=agent, idle=0.1)
    def work(_: Claim) -> str:
        return "done"

    work.run()
    handoff = client.handoff(to=agent, from_agent="sender", intent="x")
    work.run()
    assert handoff.result(timeout=10).payload["text"] == "done"


def test_as_many_are_worked_on_at_once_as_were_allowed(client: Client, name: Name) -> None:
    agent = name("agent")
    # Three must be in the function together before any of them can leave it.
    together = threading.Barrier(3, timeout=30)

    @worker(client, agent=agent, concurrency=3, idle=0.2)
    def work(_: Claim) -> None:
        together.wait()

    handoffs = [client.handoff(to=agent, from_agent="s", intent="x") for _ in range(6)]
    work.run()
    assert {one.state for one in client.wait(handoffs, timeout=10).handoffs} == {"completed"}


def test_a_stop_lets_work_finish_and_takes_no_more(client: Client, name: Name) -> None:
    agent = name("agent")

    @worker(client, agent=agent)
    def work(claim: Claim) -> str:
        work.stop()
        return f"finished {claim.handoff_id}"

    first = client.handoff(to=agent, from_agent="s", intent="x")
    second = client.handoff(to=agent, from_agent="s", intent="y")
    work.run()
    assert first.result(timeout=0).payload["text"].startswith("finished")
    assert second.status().state == "pending"


def test_what_is_not_finished_in_time_is_given_back(client: Client, name: Name) -> None:
    agent = name("agent")
    began, never = threading.Event(), threading.Event()

    @worker(client, agent=agent, grace=0)
    def work(claim: Claim) -> None:
        began.set()
        never.wait()
        with pytest.raises(tasuki.LeaseLost):
            claim.progress("on and on")

    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(work.run)
        began.wait()
        work.stop()
        taken = client.try_claim(agent=agent, wait=20)
        never.set()
        ran.result(timeout=30)
    assert taken
    assert taken.handoff_id == handoff.id
    taken.complete("by somebody else")


async def test_a_coroutine_function_is_an_agent_too(async_client: AsyncClient, name: Name) -> None:
    agent = name("agent")

    @worker(async_client, agent=agent, concurrency=4, idle=0.2)
    async def work(claim: AsyncClaim) -> dict[str, object]:
        await claim.progress("begun")
        if claim.payload["n"] == 3:
            raise tasuki.Permanent("three is too many", hint="send less")
        return {"n": claim.payload["n"]}

    handoffs = [
        await async_client.handoff(to=agent, from_agent="s", intent="x", payload={"n": n})
        for n in range(4)
    ]
    await work.serve()
    states = [(await one.status()).state for one in handoffs]
    assert states == ["completed"] * 3 + ["dead_lettered"]


async def test_a_stopped_coroutine_gives_its_work_back(
    async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")

    @worker(async_client, agent=agent, grace=0)
    async def work(claim: AsyncClaim) -> None:
        work.stop()
        await claim.until_lost()

    handoff = await async_client.handoff(to=agent, from_agent="s", intent="x")
    await work.serve()
    assert (await handoff.status()).state == "pending"


PROGRAM = """
import sys, tasuki
client = tasuki.Client(sys.argv[1])

@tasuki.worker(client, agent=sys.argv[2], concurrency=2)
def work(claim):
    print("working", flush=True)
    sys.stdin.readline()
    return "finished"

print("ready", flush=True)
work.run()
print("stopped", flush=True)
"""


def test_sigterm_drains_a_worker(broker: Broker, client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, broker.url, agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGTERM)
        # It was asked to stop while it worked; what it works on is finished all the same.
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.stdout.readline() == "stopped\n"
        assert process.wait(timeout=30) == 0
    assert handoff.result(timeout=0).payload["text"] == "finished"


def test_the_wrong_kind_of_client_is_told(client: Client) -> None:
    with pytest.raises(TypeError):

        @worker(client, agent="x")
        async def work(_: AsyncClaim) -> None: ...
