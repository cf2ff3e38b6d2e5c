# SPDX-License-Identifier: Apache-2.0
"""Whatever leaves the block of a claim, the broker hears of it, and only that comes out."""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections.abc import Callable
from datetime import date, timedelta

import pytest

import tasuki
from tasuki import AsyncClaim, AsyncClient, Claim, Client, worker

Name = Callable[[str], str]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Answer:
    status_code = 429
    headers = {"retry-after": "inf"}  # noqa: RUF012


class Throttled(Exception):
    response = Answer()


def broken(_: BaseException) -> None:
    raise ZeroDivisionError


AWKWARD: dict[str, Exception] = {
    "half a character": ValueError("file \udcff.txt"),
    "for ever": tasuki.Retryable("later", retry_after=float("inf")),
    "for ever by header": Throttled("later"),
    "too long a pause": tasuki.Retryable("later", retry_after=1e12),
    "no number": tasuki.Permanent("x", hint="h", details={"n": float("nan"), "s": {2, 3}}),
    "no JSON": tasuki.Permanent("x", hint="h", details={"day": date(2026, 1, 1), "big": 2**80}),
    "no words": Unspeakable(),
    "a long hint": tasuki.Permanent("x", hint="語" * 100_000, attempted="\udcff" * 50_000),
    "long details": tasuki.Permanent("x", hint="h", details={"a": "b" * 2_000_000}),
    "a strange type": tasuki.Permanent("x", hint="h", type="not a type! " * 100),
    "a strange class": type("Ünïcode Fehler", (Exception,), {})("x"),
}


@pytest.mark.parametrize("error", AWKWARD.values(), ids=AWKWARD.keys())
def test_an_awkward_exception_is_reported_and_comes_out_itself(
    client: Client, name: Name, error: Exception
) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with pytest.raises(type(error)) as caught, client.claim(agent=agent):
        raise error
    assert caught.value is error
    assert handoff.status().failures == 1


def test_a_classification_that_fails_does_not_hide_what_went_wrong(
    client: Client, name: Name
) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with pytest.raises(ValueError, match="first"), client.claim(agent=agent, classify=broken):
        raise ValueError("first")
    assert handoff.status().state == "dead_lettered"


def test_a_loss_of_another_claim_is_a_failure_of_this_one(client: Client, name: Name) -> None:
    outer, inner = name("outer"), name("inner")
    first = client.handoff(to=outer, from_agent="s", intent="x")
    second = client.handoff(to=inner, from_agent="s", intent="x")
    with (
        pytest.raises(tasuki.LeaseLost),
        client.claim(agent=outer),
        client.claim(agent=inner) as lost,
    ):
        second.cancel(by="s")
        lost.complete("too late")
    assert first.status().failures == 1


def test_a_forked_child_leaves_the_claim_to_its_parent(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with client.claim(agent=agent) as claim:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                claim.__exit__(SystemExit, SystemExit(0), None)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert handoff.status().state == "in_progress"
        claim.complete("by the parent")
    assert handoff.result(timeout=10).payload["text"] == "by the parent"


def test_work_that_is_left_without_a_word_does_not_come_in_a_hot_loop(
    client: Client, name: Name
) -> None:
    agent = name("agent")
    client.handoff(to=agent, from_agent="s", intent="x")

    def work() -> None:
        for rounds, claim in enumerate(client.claims(agent=agent), 1):
            with claim:
                if rounds == 4:
                    claim.complete()
                    return

    began = time.monotonic()
    with pytest.warns(tasuki.UnreportedClaim):
        work()
    assert time.monotonic() - began > 1


def test_a_function_that_exits_ends_its_worker(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    runs = 0

    @worker(client, agent=agent)
    def work(_: Claim) -> None:
        nonlocal runs
        runs += 1
        raise SystemExit(3)

    with pytest.raises(SystemExit) as caught:
        work.run()
    assert caught.value.code == 3
    assert runs == 1
    assert handoff.status().state == "pending"


async def test_a_coroutine_that_exits_ends_its_worker(
    async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")
    handoff = await async_client.handoff(to=agent, from_agent="s", intent="x")

    @worker(async_client, agent=agent)
    async def work(_: AsyncClaim) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await work.serve()
    assert (await handoff.status()).state == "pending"


async def test_a_coroutine_that_is_cancelled_twice_gives_its_work_back(
    async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")
    handoff = await async_client.handoff(to=agent, from_agent="s", intent="x")
    began = asyncio.Event()

    async def work() -> None:
        async with async_client.claim(agent=agent):
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await handoff.status()).state == "pending"


async def test_what_is_granted_to_a_coroutine_that_is_cancelled_is_given_back(
    async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")

    async def work() -> None:
        async with async_client.claim(agent=agent):
            await asyncio.Event().wait()

    for _ in range(5):
        task = asyncio.create_task(work())
        await asyncio.sleep(0.05)
        handoff = await async_client.handoff(to=agent, from_agent="s", intent="x")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await handoff.status()).state == "pending"
        await handoff.cancel(by="s")


def test_a_call_takes_spans_as_spans(client: Client, name: Name) -> None:
    agent = name("agent")
    client.handoff(to=agent, from_agent="s", intent="x")
    with client.claim(agent=agent) as claim:
        minutes, second = timedelta(minutes=5), timedelta(seconds=1)
        called = claim.start_call(to=name("x"), expires_in=minutes, start_in=second)
        assert called.status().state == "scheduled"
        claim.complete()
