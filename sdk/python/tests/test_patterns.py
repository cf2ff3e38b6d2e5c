# SPDX-License-Identifier: Apache-2.0
"""Beyond one hop: sending and knowing, joining, declared routes, coordinators, taints, files."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tasuki
from tasuki import Client
from tasuki.testing import Broker

Name = Callable[[str], str]


def test_a_send_says_how_far_it_came(client: Client, name: Name) -> None:
    agent = name("agent")
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(client.send, to=agent, from_agent="s", intent="Now.", timeout=30)
        with client.claim(agent=agent) as claim:
            reached = sent.result(timeout=30)
            claim.complete("done")
    assert reached.reached
    assert reached.handoff_id == claim.handoff_id
    assert reached.status in ("claimed", "in_progress", "done")


def test_what_nobody_claims_goes_to_the_next_and_then_to_the_dead_letters(
    client: Client, name: Name
) -> None:
    away, spare = name("away"), name("spare")
    with pytest.raises(tasuki.TimedOut) as caught:
        client.send(
            to=away, from_agent="s", intent="Now.", timeout=0.1, fallbacks=[spare], until="settled"
        )
    sent = caught.value.handoff
    assert not sent.listening
    ended = client.wait([sent], timeout=30).handoffs[0]
    assert ended.state == "dead_lettered"
    assert [one.agent for one in ended.tried] == [away, spare] or ended.to.agent == spare


def test_a_join_names_who_is_missing(client: Client, name: Name) -> None:
    receivers = [name("a"), name("b"), name("c")]
    channel = client.channel(name("news"))
    for receiver in receivers:
        channel.subscribe(receiver)
    assert {one.agent for one in channel.subscribers()} == set(receivers)
    published = channel.publish(intent="Vote.", from_agent="chair", payload={"type": "question"})
    for receiver in receivers[:2]:
        with client.claim(agent=receiver) as claim:
            claim.complete("yes")
    gathered = published.join(need=2, timeout=30)
    assert gathered.satisfied
    assert (gathered.completed, gathered.open) == (2, 1)
    missing = [one.to.agent for one in gathered.members if one.to and one.state == "open"]
    assert missing == receivers[2:]
    assert client.tasks.join(published.task_id, need="any").satisfied
    with pytest.raises(tasuki.TimedOut):
        published.results(timeout=0)
    assert [one.intent for one in channel.messages().messages] == ["Vote."]
    assert len(channel.unsubscribe(receivers[0]).subscribers) == 2


def test_a_coordinator_is_told_and_decides(client: Client, name: Name) -> None:
    agent, lead = name("agent"), name("lead")
    handoff = client.handoff(to=agent, from_agent="s", intent="Work.", coordinator=lead)
    with client.claim(agent=agent) as claim:
        claim.fail(
            "no suite",
            kind="permanent",
            type="missing_suite",
            hint="add tests/api",
            attempted="the tests",
            attempts=1,
            causes=["FileNotFoundError: tests/api"],
        )
    with client.claim(agent=lead) as told:
        assert told.envelope.action == "failed"
        assert told.payload["hint"] == "add tests/api"
        again = client.dead_letters.amend(
            told.payload["handoff_id"], by=lead, payload={"suite": "tests/all"}
        )
        told.complete({"type": "decision", "decision": "amend"})
    assert again.task_id == handoff.task_id
    with client.claim(agent=agent) as claim:
        assert claim.payload["suite"] == "tests/all"
        claim.complete("green")
    assert handoff.final(timeout=10).payload["text"] == "green"


def test_dead_letters_are_decided_on_together(client: Client, name: Name) -> None:
    agent, other = name("agent"), name("other")
    for number in range(3):
        client.handoff(to=agent, from_agent="s", intent=f"Work {number}.")
        with client.claim(agent=agent) as claim:
            claim.fail("no suite", kind="permanent", type=name("missing"), hint="add it")
    group = next(one for one in client.dead_letters.groups() if one.type == name("missing"))
    assert group.count == 3
    would = client.dead_letters.decide_many(
        "retry", fingerprint=group.fingerprint, dry_run=True, by="lead"
    )
    assert len(would.results) == 3
    first, second, third = group.handoffs
    client.dead_letters.take(first, by="lead", span=60)
    client.dead_letters.reroute(first, to=other, by="lead")
    client.dead_letters.answer(second, {"decision": "Use tests/all."}, by="lead")
    abort = {"abort": "not worth it"}
    done = client.dead_letters.decide_many(abort, handoffs=[third], by="lead")
    assert done.results[0].error is None
    assert client.try_claim(agent=other)


def test_a_result_that_is_taken_back_taints_what_follows(client: Client, name: Name) -> None:
    first, second = name("first"), name("second")
    handoff = client.handoff(to=first, from_agent="s", intent="Work.", coordinator="s")
    with client.claim(agent=first) as claim:
        claim.hand_on(to=second, result="a wrong number")
    client.handoffs.retract(handoff.id, reason="the number is wrong", by="s")
    with client.claim(agent=second) as claim:
        assert claim.taints == [handoff.id]
        client.tasks.clear_taint(claim.task_id, handoff.id, reason="not used", by="s")
        claim.complete("done without it")
    assert client.tasks.get(handoff.task_id).taints == []


def test_a_resource_has_one_holder(client: Client, name: Name) -> None:
    one, two = name("one"), name("two")
    for agent in (one, two):
        client.handoff(to=agent, from_agent="s", intent="Edit.")
    path = f"{name('src')}/app.py"
    with client.claim(agent=one) as first, client.claim(agent=two) as second:
        assert first.reserve(path)
        assert any(path in held.resources for held in client.reservations())
        with pytest.raises(tasuki.Conflict) as caught:
            second.reserve(f"{name('src')}/*")
        assert caught.value.code == "resource_reserved"
        first.unreserve(path)
        second.reserve(f"{name('src')}/*")
        first.complete()
        second.complete()
    assert not any(path in held.resources for held in client.reservations())
    assert isinstance(client.targets(), list)


def test_a_constraint_is_lifted_by_who_issued_it(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x", constraints=["Be brief."])
    with client.claim(agent=agent) as claim:
        client.tasks.lift(handoff.task_id, claim.constraints[0].id, reason="no need", by="s")
        claim.hand_on(to=name("next"))
    with client.claim(agent=name("next")) as claim:
        assert claim.constraints == []
        claim.complete()


def test_a_chain_is_exported_read_elsewhere_and_begun_anew(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x", project=name("p"))
    with client.claim(agent=agent) as claim:
        claim.complete("done")
    assert [task.task_id for task in client.tasks.page(project=name("p")).tasks] == [
        handoff.task_id
    ]
    file = client.tasks.export(handoff.task_id)
    with Broker() as elsewhere, Client(elsewhere.url, agent="reader") as reader:
        kept = reader.chains.add(file)
        assert kept.task_id == handoff.task_id
        assert reader.chains.get(kept.chain_id).verdict
        assert len(reader.chains.page().chains) == 1
    branch = client.tasks.branch(handoff.task_id, hop=0, to=name("another"), by="s")
    with client.claim(agent=name("another")) as claim:
        assert claim.handoff_id == branch.id
        claim.complete()


def test_what_was_trimmed_can_be_fetched_and_is_counted(client: Client, name: Name) -> None:
    agent, lead, id = name("agent"), name("lead"), name("ms")
    client.memories.add("A long story. " * 200, id=id, by=lead, title="A story")
    built = client.assemble(
        to=agent, from_agent=lead, intent="Read.", memory_refs=[id], strategy="lazy"
    )
    handoff = client.handoff(to=agent, from_agent=lead, intent="Read.", assembled=built)
    with client.claim(agent=agent) as claim:
        assert claim.memory(id).text
        claim.complete()
    assert handoff.status().trim_regret == [id]


PIPELINES = {
    "pipelines": [
        {
            "name": "endpoint",
            "version": 1,
            "first": "code",
            "stages": [
                {"name": "code", "to": {"agent": "coder"}, "next": [{"to": "review"}]},
                {"name": "review", "to": {"agent": "reviewer"}, "next": [{"to": "end"}]},
            ],
        }
    ]
}


def test_a_declared_route_leads_from_stage_to_stage(tmp_path: Path) -> None:
    file = tmp_path / "pipelines.json"
    file.write_text(json.dumps(PIPELINES), "utf-8")
    with Broker("--pipelines", str(file)) as broker, Client(broker.url, agent="s") as client:
        assert [one.name for one in client.pipelines().pipelines] == ["endpoint"]
        begun = client.start_pipeline("endpoint", intent="Build it.", constraints=["Be brief."])
        for agent in ("coder", "reviewer"):
            with client.claim(agent=agent) as claim:
                assert claim.constraints[0].text == "Be brief."
                claim.complete(f"{agent} is done")
        assert begun.final(timeout=10).payload["text"] == "reviewer is done"


def test_a_target_that_fails_again_and_again_is_not_tried_for_a_while(
    client: Client, name: Name
) -> None:
    away = name("away")
    for number in range(3):
        once = {"attempts": 1}
        client.handoff(to=away, from_agent="s", intent=f"Try {number}.", terms=once)
        with client.claim(agent=away) as claim:
            claim.fail("busy", kind="retryable", type="busy")
    with pytest.raises(tasuki.Refused) as caught:
        client.handoff(to=away, from_agent="s", intent="Once more.")
    assert caught.value.code == "target_unavailable"
    assert away in caught.value.message
    assert caught.value.retryable
    shown = next(one for one in client.targets() if one.target.agent == away)
    assert shown.breaker == "open"
    assert shown.reset_in_ms


def test_a_thousand_and_more_results_are_all_there(client: Client, name: Name) -> None:
    receivers = [f"{name('r')}-{number}" for number in range(1001)]
    published = client.channel(name("all")).publish(
        receivers=receivers, intent="Everybody.", from_agent="s"
    )
    assert len(published.handoffs) == 1001
    held = [
        client.claim_handoff(told.handoff_id, agent=who) for who, told in published.handoffs.items()
    ]
    for start in range(0, len(held), 100):
        done = client.complete_many((claim, {"n": 1}) for claim in held[start : start + 100])
        assert not any(isinstance(one, tasuki.Refused) for one in done)
    assert set(published.results(timeout=60)) == set(receivers)
