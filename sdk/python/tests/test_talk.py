# SPDX-License-Identifier: Apache-2.0
"""Questions and answers, words to the holder, pieces of work, and what earlier attempts learned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import tasuki
from tasuki import AsyncClient, Client
from tasuki.testing import Broker

Name = Callable[[str], str]


def offered(client: Client, to: str, **more: object) -> tasuki.Handoff:
    return client.handoff(to=to, from_agent="sender", intent="Work.", **more)  # type: ignore[arg-type]


def test_a_claim_asks_and_goes_on_with_the_answer(
    broker: Broker, client: Client, name: Name
) -> None:
    agent = name("agent")
    handoff = offered(client, agent)

    def answers() -> None:
        with Client(broker.url) as other:
            found = handoff.question(timeout=30)
            assert found is not None
            assert found.text == "Which branch?"
            other.answer(handoff.id, "main", by="sender")

    with ThreadPoolExecutor() as pool, client.claim(agent=agent, lease=0.5) as claim:
        answering = pool.submit(answers)
        first = claim.fence
        assert claim.ask("Which branch?", schema={"type": "string"}) == "main"
        answering.result(timeout=30)
        assert claim.fence > first
        assert claim.attempt == 1
        claim.progress("I go on")
        claim.complete("done")
    shown = handoff.status()
    assert (shown.state, shown.losses, shown.failures) == ("completed", 0, 0)


async def test_a_question_without_an_answer_has_its_default(
    async_client: AsyncClient, name: Name
) -> None:
    agent = name("agent")
    await async_client.handoff(to=agent, from_agent="sender", intent="Work.")
    async with async_client.claim(agent=agent) as claim:
        leave = await claim.ask(
            "May I push?", kind="authorization", answer_within=0.2, default={"granted": False}
        )
        assert leave == {"granted": False}
        await claim.complete("done")


def test_a_question_that_nobody_answers_is_the_end_of_the_claim(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent, terms={"attempts": 1})
    with pytest.raises(tasuki.LeaseLost), client.claim(agent=agent) as claim:
        claim.ask("Which branch?", answer_within=0.2)
    assert handoff.status().state == "dead_lettered"


def test_a_bad_question_is_refused_and_the_claim_goes_on(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with client.claim(agent=agent) as claim:
        with pytest.raises(tasuki.InvalidRequest):
            claim.ask(" ")
        claim.complete("done")
    assert handoff.status().state == "completed"


def test_a_word_to_the_holder_is_handed_to_the_code(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    heard, came = list[str](), threading.Event()

    def hear(message: tasuki.models.HolderMessage) -> None:
        heard.append(message.text or "")
        came.set()

    with client.claim(agent=agent, lease=0.6) as claim:
        claim.on_message(hear)
        handoff.message("stop after this file", by="sender")
        assert came.wait(timeout=30)
        for _ in range(100):
            if handoff.messages()[0].acknowledged_by == agent:
                break
            assert not claim.lost.wait(timeout=0.1)
        claim.complete("done")
    assert heard == ["stop after this file"]
    assert handoff.messages()[0].acknowledged_by == agent


def test_pieces_and_notes_outlive_their_holder(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = offered(client, agent)
    with client.claim(agent=agent) as claim:
        claim.attach("draft", "# Draft", type="text/markdown")
        claim.progress("the tests need a database")
        claim.put_back(0.2, "the service is away")
    assert [piece.name for piece in handoff.artifacts()] == ["draft"]
    assert handoff.artifacts("draft")[0].content == "# Draft"
    with client.claim(agent=agent, wait=30) as claim:
        assert claim.attempt == 1
        assert claim.artifacts[0].content == "# Draft"
        assert claim.earlier_attempts[0].notes[0].note == "the tests need a database"
        claim.complete("done")
