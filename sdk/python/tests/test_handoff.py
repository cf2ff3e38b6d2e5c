# SPDX-License-Identifier: Apache-2.0
"""Handing work over and taking it, with both clients."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import tasuki
from tasuki import AsyncClient, Client

Name = Callable[[str], str]


def test_a_handoff_is_stored_claimed_completed_and_its_result_comes_back(
    client: Client, name: Name
) -> None:
    coder, reviewer = name("coder"), name("reviewer")
    handoff = client.handoff(
        to=reviewer,
        from_agent=coder,
        intent="Add GET /users/{id}. Do not touch auth.",
        payload={"type": "review_request", "branch": "users-by-id"},
        constraints=["Do not touch auth."],
        expected_output={"criteria": ["every route is looked at"]},
    )
    assert handoff.offered.status == "stored"
    assert not handoff.listening
    assert client.tasks.get(handoff.task_id).owner == coder

    with client.claim(agent=reviewer) as claim:
        assert claim.intent == "Add GET /users/{id}. Do not touch auth."
        assert claim.payload == {"type": "review_request", "branch": "users-by-id"}
        assert [constraint.text for constraint in claim.constraints] == ["Do not touch auth."]
        assert client.tasks.get(handoff.task_id).owner == reviewer
        claim.progress("half of it", percent=50)
        criteria = [{"criterion": "every route is looked at", "met": True, "evidence": "the diff"}]
        claim.complete({"type": "review", "verdict": "approved"}, criteria=criteria)

    result = handoff.result(timeout=10)
    assert result.payload == {"type": "review", "verdict": "approved"}
    assert result.declared[0].met
    assert handoff.acknowledged().state == "completed"


async def test_the_async_twin_does_the_same(async_client: AsyncClient, name: Name) -> None:
    coder, reviewer = name("coder"), name("reviewer")
    handoff = await async_client.handoff(to=reviewer, from_agent=coder, intent="Look at it.")
    async with async_client.claim(agent=reviewer) as claim:
        assert claim.intent == "Look at it."
        await claim.complete("fine")
    result = await handoff.result(timeout=10)
    assert result.payload == {"type": "text", "text": "fine"}


def test_an_offer_that_is_repeated_is_made_once(client: Client, name: Name) -> None:
    coder, reviewer = name("coder"), name("reviewer")
    offers = [
        client.handoff(to=reviewer, from_agent=coder, intent="Once.", idempotency_key="k")
        for _ in range(2)
    ]
    assert offers[0].id == offers[1].id
    with pytest.raises(tasuki.Conflict) as caught:
        client.handoff(to=reviewer, from_agent=coder, intent="Another.", idempotency_key="k")
    assert caught.value.code == "idempotency_conflict"


def test_an_error_says_what_to_do_and_where_to_read_on(client: Client) -> None:
    with pytest.raises(tasuki.NotFound) as caught:
        client.handoffs.get("handoff_01m7j5pb92ev4a7x81xp3dkvm3")
    error = caught.value
    assert error.code == "handoff_not_found"
    assert not error.retryable
    assert error.hint
    assert error.request_id
    assert error.doc_url == f"{client.url}/docs/errors/handoff_not_found"
    assert error.status == 404


def test_a_mistake_names_its_place(client: Client, name: Name) -> None:
    with pytest.raises(tasuki.InvalidRequest) as caught:
        client.handoff(
            to=name("b"), from_agent=name("a"), intent="x", history=[{"deed": "nothing"}]
        )
    assert caught.value.faults[0]["path"].startswith("/history/0")


def test_a_broker_that_is_not_there_is_told_apart() -> None:
    with (
        Client("http://127.0.0.1:9", agent="a", retry=tasuki.NO_RETRY) as client,
        pytest.raises(tasuki.Unreachable) as caught,
    ):
        client.stats()
    assert caught.value.retryable
    assert "tasuki serve" in caught.value.hint


def test_a_call_waits_for_the_result_and_keeps_the_task(client: Client, name: Name) -> None:
    planner, skill = name("planner"), name("skill")
    task = client.tasks.open("Compare two databases", from_agent=planner)

    def research() -> None:
        for claim in client.claims(agent=name("researcher"), capabilities=[skill], idle=5):
            with claim:
                claim.complete({"type": "answer", "about": claim.payload["about"]})
            return

    thread = threading.Thread(target=research)
    thread.start()
    result = client.call(
        to_capability=skill,
        from_agent=planner,
        task_id=task.task_id,
        payload={"type": "question", "about": "sqlite"},
        timeout=10,
    )
    thread.join()
    assert result.payload["about"] == "sqlite"
    assert client.tasks.get(task.task_id).owner == planner


def test_handing_on_is_one_step_and_the_last_result_can_be_waited_for(
    client: Client, name: Name
) -> None:
    coder, tester = name("coder"), name("tester")
    handoff = client.handoff(
        to=coder, from_agent=name("lead"), intent="Build it.", constraints={"language": "python"}
    )
    with client.claim(agent=coder) as claim:
        claim.hand_on(to=tester, payload={"type": "test_request"}, result="built")
    with client.claim(agent=tester) as claim:
        assert claim.intent == "Build it."
        assert [constraint.text for constraint in claim.constraints] == ["language: python"]
        claim.complete({"type": "report", "passed": 3})
    assert handoff.final(timeout=10).payload == {"type": "report", "passed": 3}
    assert handoff.result().payload == {"type": "text", "text": "built"}


def test_many_offers_at_once_are_each_on_their_own(client: Client, name: Name) -> None:
    answers = client.handoff_many(
        [
            {"to": name("b"), "from_agent": name("a"), "intent": "one"},
            {"to": name("b"), "from_agent": name("a")},
            {"to": name("c"), "from_agent": name("a"), "intent": "three"},
        ]
    )
    kinds = [type(answer) for answer in answers]
    assert kinds[0] is kinds[2] is tasuki.Handoff
    assert isinstance(answers[1], tasuki.Refused)


def test_what_nobody_claims_is_a_timeout_and_stays_stored(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("nobody"), from_agent=name("a"), intent="Hello?")
    with pytest.raises(TimeoutError) as caught:
        handoff.acknowledged(timeout=0)
    assert isinstance(caught.value, tasuki.TimedOut)
    assert "nobody has claimed" in str(caught.value)
    assert handoff.status().state == "pending"


def test_nothing_to_do_is_told(client: Client, name: Name) -> None:
    with pytest.raises(tasuki.NoWork), client.claim(agent=name("idle"), wait=0):
        raise AssertionError("there is no work")


def test_a_receiver_repeats_what_binds_if_the_sender_wants_it(client: Client, name: Name) -> None:
    coder = name("coder")
    handoff = client.handoff(
        to=coder,
        from_agent=name("lead"),
        intent="Careful.",
        constraints=["Never touch the production database."],
        expected_output={"format": "text"},
        read_back=True,
    )
    with client.claim(agent=coder) as claim:
        assert client.tasks.get(handoff.task_id).owner == coder
        claim.complete("done")
    assert handoff.status().state == "completed"


def test_a_softened_constraint_is_refused(client: Client, name: Name) -> None:
    coder = name("coder")
    client.handoff(
        to=coder, from_agent=name("lead"), intent="x", constraints=["Do not touch auth."]
    )
    with client.claim(agent=coder) as claim:
        with pytest.raises(tasuki.Refused) as caught:
            claim.hand_on(to=name("t"), constraints=["Try not to touch auth."])
        assert caught.value.code == "constraint_dropped"
        claim.hand_on(to=name("t"), add_constraints=["Run the tests."])
