# SPDX-License-Identifier: Apache-2.0
"""A worker that is idle stops at once and loses nothing, and says what it does."""

from __future__ import annotations

import asyncio
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from tasuki import AsyncClaim, AsyncClient, Claim, Client, Handoff, worker
from tasuki.testing import Broker

Name = Callable[[str], str]
#: Far less than a request for work waits.
AT_ONCE_S = 1.0


def until(holds: Callable[[], object]) -> None:
    """Waits for something that comes about by itself."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def settled(handoff: Handoff) -> None:
    """Nobody holds it, and no lease of it was lost."""
    shown = handoff.status()
    assert shown.state in ("pending", "completed")
    assert (shown.losses, shown.failures) == (0, 0)


def test_an_idle_worker_stops_at_once(client: Client, name: Name) -> None:
    @worker(client, agent=name("idle"))
    def work(_: Claim) -> None: ...

    running = threading.Thread(target=work.run)
    running.start()
    until(lambda: work._heard)
    time.sleep(0.2)  # It waits at the broker by now.
    began = time.monotonic()
    work.stop()
    running.join(30)
    assert time.monotonic() - began < AT_ONCE_S


async def test_an_idle_coroutine_stops_at_once(async_client: AsyncClient, name: Name) -> None:
    @worker(async_client, agent=name("idle"))
    async def work(_: AsyncClaim) -> None: ...

    serving = asyncio.create_task(work.serve())
    while not work._heard:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    began = time.monotonic()
    work.stop()
    await serving
    assert time.monotonic() - began < AT_ONCE_S


@pytest.mark.parametrize("after_ms", range(0, 12, 2))
def test_what_is_granted_while_a_worker_stops_is_done_or_given_back(
    client: Client, name: Name, after_ms: int
) -> None:
    @worker(client, agent=name("idle"))
    def work(_: Claim) -> str:
        return "done"

    running = threading.Thread(target=work.run)
    running.start()
    until(lambda: work._heard)
    time.sleep(0.1)
    handoff = client.handoff(to=name("idle"), from_agent="s", intent="x")
    time.sleep(after_ms / 1000)
    work.stop()
    running.join(30)
    settled(handoff)


@pytest.mark.parametrize("after_ms", range(0, 12, 2))
async def test_what_is_granted_while_a_coroutine_stops_is_done_or_given_back(
    async_client: AsyncClient, client: Client, name: Name, after_ms: int
) -> None:
    @worker(async_client, agent=name("idle"))
    async def work(_: AsyncClaim) -> str:
        return "done"

    serving = asyncio.create_task(work.serve())
    while not work._heard:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    handoff = await async_client.handoff(to=name("idle"), from_agent="s", intent="x")
    await asyncio.sleep(after_ms / 1000)
    work.stop()
    await serving
    found = Handoff(client._wire, handoff.offered)
    settled(found)


def test_a_worker_says_what_it_does(
    client: Client, name: Name, caplog: pytest.LogCaptureFixture
) -> None:
    agent = name("agent")
    good = client.handoff(to=agent, from_agent="s", intent="Do  it.\nNow.")
    bad = client.handoff(to=agent, from_agent="s", intent="x" * 100)

    @worker(client, agent=agent, idle=0.1)
    def work(claim: Claim) -> str:
        if claim.handoff_id == bad.id:
            raise ZeroDivisionError("by nothing")
        return "done"

    with caplog.at_level(logging.INFO, "tasuki"):
        work.run()
    said = sorted(re.sub(r"\d+\.\d s", "N s", record.message) for record in caplog.records)
    assert said == sorted(
        [
            f"{agent} is connected to {client.url} and waits for work",
            f"{agent} took {good.id}, attempt 1: Do it. Now.",
            f"{agent} finished {good.id} in N s: it is completed",
            f"{agent} took {bad.id}, attempt 1: {'x' * 59}…",
            f"{agent} failed at {bad.id} after N s with ZeroDivisionError: it is dead_lettered",
        ]
    )
    assert 'raise ZeroDivisionError("by nothing")' in caplog.text


PROGRAM = """
import sys, tasuki
if len(sys.argv) > 3:
    import logging
    logging.basicConfig(level=logging.ERROR)

@tasuki.worker(tasuki.Client(sys.argv[1]), agent=sys.argv[2], idle=0.1)
def work(claim):
    raise KeyError("nothing there")

work.run()
"""


def played(broker: Broker, client: Client, *arguments: str) -> str:
    client.handoff(to=arguments[0], from_agent="s", intent="Find it.")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, broker.url, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    return done.stderr


def test_a_program_without_logging_of_its_own_hears_it(
    broker: Broker, client: Client, name: Name
) -> None:
    lines = played(broker, client, name("agent")).splitlines()
    assert re.fullmatch(
        rf"\d\d:\d\d:\d\d tasuki: {name('agent')} is connected to {broker.url} and waits for work",
        lines[0],
    )
    assert lines[1].endswith("attempt 1: Find it.")
    assert lines[-1] == "KeyError: 'nothing there'"


def test_a_program_that_configured_logging_hears_what_it_asked_for(
    broker: Broker, client: Client, name: Name
) -> None:
    assert played(broker, client, name("agent"), "quiet") == ""
