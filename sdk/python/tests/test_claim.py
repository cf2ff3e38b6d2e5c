# SPDX-License-Identifier: Apache-2.0
"""What holds while a claim is worked on, and what happens when its block ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import tasuki
from tasuki import AsyncClient, Client
from tasuki.testing import Broker

Name = Callable[[str], str]


def offered(client: Client, to: str, **more: object) -> tasuki.Handoff:
    return client.handoff(to=to, from_agent="sender", intent="Work.", **more)  # type: ignore[arg-type]


def test_a_blocked_thread_keeps_its_lease(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with client.claim(agent=agent, lease=1.0) as claim:
        # This thread does nothing else for three leases: it asks for the same work and gets none.
        assert client.try_claim(agent=agent, wait=3.0) is None
        assert not claim.lost.is_set()
        claim.complete("done")
    assert handoff.status().losses == 0


async def test_a_blocked_event_loop_keeps_its_lease(
    broker: Broker, async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")
    handoff = await async_client.handoff(to=agent, from_agent="sender", intent="Work.")
    async with async_client.claim(agent=agent, lease=1.0) as claim:
        with Client(broker.url) as blocking:
            assert blocking.try_claim(agent=agent, wait=3.0) is None
        assert not claim.lost.is_set()
        await claim.complete("done")
    assert (await handoff.status()).losses == 0


def test_a_claim_that_is_lost_is_told_and_its_late_result_is_refused(
    client: Client, name: Name
) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with pytest.raises(tasuki.LeaseLost), client.claim(agent=agent, lease=0.3) as claim:
        handoff.cancel(by="sender", reason="not needed any more")
        assert claim.lost.wait(timeout=30)
        with pytest.raises(tasuki.LeaseLost):
            claim.progress("I go on")
        claim.complete("too late")
    assert handoff.status().state == "cancelled"


async def test_a_coroutine_can_wait_for_the_loss(async_client: AsyncClient, name: Name) -> None:
    agent = name("agent")
    handoff = await async_client.handoff(to=agent, from_agent="sender", intent="Work.")
    with pytest.raises(tasuki.LeaseLost):
        async with async_client.claim(agent=agent, lease=0.3) as claim:
            await handoff.cancel(by="sender")
            await asyncio.wait_for(claim.until_lost(), timeout=30)
            claim.check()


def test_who_was_replaced_cannot_finish(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    # Without its block a claim has no heartbeats, as if its process had been stopped.
    stopped = client.try_claim(agent=agent, lease=0.1)
    assert stopped
    with client.claim(agent=agent) as claim:
        assert claim.fence > stopped.fence
        with pytest.raises(tasuki.LeaseLost):
            stopped.complete("from the past")
        assert stopped.lost.is_set()
        claim.complete("from now")
    assert handoff.result().payload["text"] == "from now"


def test_a_block_that_says_nothing_gives_the_work_back(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with pytest.warns(tasuki.UnreportedClaim), client.claim(agent=agent):
        pass
    assert handoff.status().state == "pending"
    assert handoff.status().failures == 0


def test_an_interruption_gives_the_work_back(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with pytest.raises(KeyboardInterrupt), client.claim(agent=agent):
        raise KeyboardInterrupt
    assert handoff.status().state == "pending"


async def test_a_cancelled_coroutine_gives_the_work_back(
    async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")
    handoff = await async_client.handoff(to=agent, from_agent="sender", intent="Work.")
    began = asyncio.Event()

    async def work() -> None:
        async with async_client.claim(agent=agent):
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await handoff.status()).state == "pending"


class Throttled(Exception):
    """As the clients of model providers raise it."""

    status_code = 429
    retry_after = 60


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (ValueError("no such branch"), "dead_lettered"),
        (KeyError("branch"), "dead_lettered"),
        (tasuki.Permanent("no suite", hint="add tests/api"), "dead_lettered"),
        (TimeoutError("the model did not answer"), "scheduled"),
        (ConnectionResetError("gone"), "scheduled"),
        (Throttled("slow down"), "scheduled"),
        (RuntimeError("who knows"), "scheduled"),
        (tasuki.Retryable("later", retry_after=60), "scheduled"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_exception_becomes_a_failure_of_its_class(
    client: Client, name: Name, error: Exception, state: str
) -> None:
    agent = name("agent")
    handoff = offered(client, agent, terms={"backoff_ms": 60_000})
    with pytest.raises(type(error)), client.claim(agent=agent):
        raise error
    # Without a pause that somebody asked for, a retry may be due at once.
    allowed = {state, "pending"} if state == "scheduled" else {state}
    assert handoff.status().state in allowed
    assert handoff.status().failures == 1


def test_a_permanent_failure_says_what_would_mend_it(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with pytest.raises(ValueError, match="no such branch"), client.claim(agent=agent):
        try:
            {}["users"]  # type: ignore[index]
        except KeyError as missing:
            raise ValueError("no such branch") from missing
    with pytest.raises(tasuki.HandoffFailed) as caught:
        handoff.result(timeout=10)
    failure = caught.value.failure
    assert failure["class"] == "permanent"
    assert failure["type"] == "value_error"
    assert failure["message"] == "no such branch"
    assert "test_claim.py" in caught.value.hint
    assert "KeyError" in str(failure) or "key_error" in str(failure)


def test_the_program_has_the_last_word_on_the_class(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with (
        pytest.raises(ValueError, match="odd"),
        client.claim(agent=agent, classify=lambda _: "retryable"),
    ):
        raise ValueError("odd")
    assert handoff.status().state in ("scheduled", "pending")


def test_a_step_that_is_done_again_is_not_done_twice(client: Client, name: Name) -> None:
    agent, helper = name("agent"), name("helper")
    offered(client, agent)
    first = client.try_claim(agent=agent, lease=0.1)
    assert first
    asked = first.start_call(to=helper, payload={"type": "question", "about": "x"})
    with client.claim(agent=agent) as again:
        same = again.start_call(to=helper, payload={"type": "question", "about": "x"})
        other = again.start_call(to=helper, payload={"type": "question", "about": "y"})
        twice = again.start_call(to=helper, payload={"type": "question", "about": "x"})
        again.complete()
    assert same.id == asked.id
    assert len({asked.id, other.id, twice.id}) == 3


def test_a_broker_that_restarts_costs_nobody_a_claim(name: Name, tmp_path: object) -> None:
    agent = name("agent")
    with Broker(data=f"{tmp_path}/data") as broker, Client(broker.url) as client:
        handoff = offered(client, agent)
        with client.claim(agent=agent, lease=2) as claim:
            broker.kill()
            broker.start()
            claim.progress("still here")
            claim.complete("done")
        assert handoff.result().payload["text"] == "done"
        assert client.audit.verify().intact


def test_who_waits_for_work_goes_on_waiting_when_the_broker_comes_back(
    name: Name, tmp_path: object
) -> None:
    agent = name("agent")
    with Broker(data=f"{tmp_path}/data") as broker, Client(broker.url) as client:

        def work() -> None:
            for claim in client.claims(agent=agent):
                with claim:
                    claim.complete("done")
                return

        with ThreadPoolExecutor(1) as pool:
            worked = pool.submit(work)
            broker.kill()
            broker.start()
            handoff = offered(client, agent)
            assert handoff.result(timeout=30).payload["text"] == "done"
            worked.result()
