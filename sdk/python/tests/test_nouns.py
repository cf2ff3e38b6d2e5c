# SPDX-License-Identifier: Apache-2.0
"""Everything around handoffs: memories, shared contexts, dead letters, agents, the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tasuki
from tasuki import AsyncClient, Client
from tasuki.testing import Broker

Name = Callable[[str], str]


def test_memories_have_revisions_pins_and_successors(client: Client, name: Name) -> None:
    project, by = name("web"), name("coder")
    first = client.memories.add(
        "Deploys run from the branch blue.", project=project, by=by, title="Deploys", tags=["ops"]
    )
    second = client.memories.edit(
        first.memory_id, text="Deploys run from green.", revision=1, by=by
    )
    assert second.revision == 2
    assert (
        client.memories.get(first.memory_id, revision=1).text == "Deploys run from the branch blue."
    )
    with pytest.raises(tasuki.Conflict) as caught:
        client.memories.edit(first.memory_id, text="red", revision=1, by=by)
    assert caught.value.code == "revision_conflict"

    found = client.memories.search("which branch do deploys run from", project=project)
    assert [memory.memory_id for memory in found] == [first.memory_id]
    assert client.memories.pin(first.memory_id, by=by).pinned
    assert len(client.memories.page(project=project, pinned=True).memories) == 1
    assert not client.memories.unpin(first.memory_id, by=by).pinned

    newer = client.memories.add("There are no deploys any more.", project=project, by=by)
    old = client.memories.supersede(first.memory_id, successor=newer.memory_id, by=by)
    assert old.superseded_by == newer.memory_id
    client.memories.delete(newer.memory_id, reason="wrong", by=by)
    assert client.memories.erase(newer.memory_id, reason="wrong", by=by).erased
    assert client.memories.get(first.memory_id, detail="stub").line


def test_a_settled_question_is_not_settled_twice(client: Client, name: Name) -> None:
    project = client.project(name("shop"))
    project.write(
        state={"branch": "green", "files": ["src/basket.py"]},
        constraints=[{"kind": "must_not", "text": "deploy on a friday"}],
        by="lead",
    )
    project.decide("database", "SQLite", why="one file", by="lead")
    with pytest.raises(tasuki.Conflict) as caught:
        project.decide("database", "PostgreSQL", by="tester")
    assert caught.value.code == "decision_settled"
    project.decide("database", "PostgreSQL", supersedes=1, by="lead")
    assert [decision.decision for decision in project.decisions()] == ["SQLite", "PostgreSQL"]
    assert project.context().state.branch == "green"
    assert project.context(revision=1).revision == 1


def test_a_context_is_assembled_within_a_budget_and_handed_over(client: Client, name: Name) -> None:
    project, lead, coder = name("p"), name("lead"), name("coder")
    client.memories.add("The basket is in src/basket.py.", id=name("ms"), project=project, by=lead)
    client.memories.add("Never log a card number.", pinned=True, project=project, by=lead)
    built = client.assemble(
        to=coder,
        from_agent=lead,
        intent="Mend the basket.",
        project=project,
        constraints=["No new dependency."],
        memory_refs=[name("ms"), "ms-404"],
        max_tokens=2000,
    )
    assert built.token_count <= 2000
    assert "Never log a card number." in built.prompt
    assert [gone.id for gone in built.receipt.unresolved] == ["ms-404"]
    client.handoff(to=coder, from_agent=lead, intent="Mend the basket.", assembled=built)
    with client.claim(agent=coder) as claim:
        assert [gap.reference for gap in claim.envelope.gaps] == ["ms-404"]
        assert "No new dependency." in claim.prompt().prompt
        claim.complete("mended")
    with pytest.raises(tasuki.Refused) as caught:
        client.assemble(to=coder, from_agent=lead, intent="x" * 400, max_tokens=10)
    assert caught.value.code == "budget_too_small"


def test_a_dead_letter_is_redriven_or_discarded(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="sender", intent="Work.")
    with client.claim(agent=agent) as claim:
        claim.fail("no suite", kind="permanent", type="missing_suite", hint="add tests/api")
    letter = client.dead_letters.get(handoff.id)
    assert letter.reports[0].report["hint"] == "add tests/api"
    assert handoff.id in {one.handoff_id for one in client.dead_letters.page().handoffs}
    again = client.dead_letters.redrive(handoff.id, by="lead")
    with client.claim(agent=agent) as claim:
        assert claim.handoff_id == again.handoff_id
        claim.fail("still none", kind="permanent", hint="add tests/api")
    client.dead_letters.discard(again.handoff_id, reason="not worth it", by="lead")
    assert client.tasks.get(handoff.task_id).state == "failed"


def test_agents_are_found_by_what_they_can_do(client: Client, name: Name) -> None:
    agent, skill = name("agent"), name("translate")
    client.agents.publish(
        {
            "agent_id": agent,
            "capabilities": [{"name": skill, "input_schema": {"text": "string"}}],
        }
    )
    assert [one.agent_id for one in client.discover(capability=skill)] == [agent]
    assert [one.agent_id for one in client.agents.all(capability=skill)] == [agent]
    assert client.agents.drain(agent).standing == "draining"
    assert client.agents.resume(agent).standing == "active"
    assert agent in {one.agent_id for one in client.agents.catalogue().agents}
    with pytest.raises(tasuki.Refused):
        client.handoff(to_capability=skill, from_agent="a", intent="x", payload={"text": 5})
    client.agents.deregister(agent)
    assert client.agents.get(agent).standing == "deregistered"


def test_a_counter_offer_is_settled(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="sender", intent="Work.")
    client.handoffs.counter(
        handoff.id, agent=agent, reason="I need longer", terms={"work_ms": 7_200_000}
    )
    settled = client.handoffs.settle(handoff.id, agent=agent, accept=True, by="sender")
    assert settled.terms.work_ms == 7_200_000


def test_work_waits_for_approval(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="sender", intent="x", needs_approval=True)
    assert client.try_claim(agent=agent) is None
    client.handoffs.approve(handoff.id, by="person")
    assert [one.handoff_id for one in client.handoffs.peek(agent=agent)] == [handoff.id]
    other = client.handoff(to=agent, from_agent="sender", intent="y", needs_approval=True)
    assert client.handoffs.reject(other.id, reason="not now", by="person").state == "dead_lettered"
    client.tasks.cancel(handoff.task_id, by="sender", reason="enough")
    assert client.tasks.page(owner="sender", state="cancelled").tasks


def test_the_log_is_whole_and_can_be_followed(client: Client, name: Name) -> None:
    handoff = client.handoff(to=name("agent"), from_agent="sender", intent="Watch me.")
    handoff.cancel(by="sender")
    kinds = [event.record.kind for event in client.tasks.events(handoff.task_id)]
    assert kinds == ["transfer_offered", "cancelled"]
    stream = client.events(after=0, task=handoff.task_id)
    seen = [next(stream) for _ in range(2)]
    assert [event.record.kind for event in seen] == kinds
    # A position is a text that only the broker reads; given back, it is where to go on.
    stream = client.events(after=seen[0].position, task=handoff.task_id)
    assert next(stream).position == seen[1].position
    # Not followed, it ends where the log ends, also where nothing is there to tell.
    assert list(client.events(after=0, task=handoff.task_id, follow=False)) == seen
    assert list(client.events(after=seen[1].position, task=handoff.task_id, follow=False)) == []
    assert client.audit.verify().intact
    assert client.audit.verify(full=True).verified_before is None
    assert sum(1 for _ in client.audit.export()) >= 2
    assert client.ready().status
    assert client.health().status
    assert client.audit.refusals().count >= 0


async def test_the_async_twin_follows_the_log(async_client: AsyncClient, name: Name) -> None:
    handoff = await async_client.handoff(to=name("agent"), from_agent="sender", intent="Watch.")
    async for event in async_client.events(after=0, task=handoff.task_id):
        assert event.record.task_id == handoff.task_id
        break
    ends = async_client.events(after=0, task=handoff.task_id, follow=False)
    assert [event.record.kind async for event in ends] == ["transfer_offered"]
    assert (await async_client.stats()).head


def test_tenants_have_quotas(client: Client) -> None:
    client.tenants.set("acme", in_flight=10)
    quotas = {tenant.tenant_id: tenant.quotas.in_flight for tenant in client.tenants.all()}
    assert quotas["acme"] == 10


def test_what_is_published_reaches_every_receiver_once(client: Client, name: Name) -> None:
    receivers = [name("coder"), name("tester"), name("writer")]

    def publish() -> tasuki.Publication:
        return client.channel(name("migration")).publish(
            receivers=receivers,
            intent="The research is done.",
            payload={"type": "findings"},
            from_agent=name("researcher"),
            constraints=["Keep the old endpoint."],
            idempotency_key="once",
        )

    published = publish()
    assert published.unheard == receivers
    again = publish()
    assert again.published.repeated
    assert again.task_id == published.task_id
    assert {one.handoff_id for one in again.handoffs.values()} == {
        one.handoff_id for one in published.handoffs.values()
    }
    for receiver in receivers:
        with client.claim(agent=receiver) as claim:
            assert claim.constraints[0].text == "Keep the old endpoint."
            claim.complete(f"{receiver} is ready")
        assert client.try_claim(agent=receiver) is None
    results = published.results(timeout=10)
    assert {name: made["text"] for name, made in results.items()} == {
        receiver: f"{receiver} is ready" for receiver in receivers
    }
    owners = {child.owner for child in client.tasks.get(published.task_id).children}
    assert owners == set(receivers)


async def test_the_async_twin_publishes_too(async_client: AsyncClient, name: Name) -> None:
    channel = async_client.channel(name("news"))
    published = await channel.publish(receivers=[name("a")], intent="News.", from_agent="desk")
    async with async_client.claim(agent=name("a")) as claim:
        await claim.complete("read")
    assert (await published.results())[name("a")]["text"] == "read"
    assert (await published.join(need="any", timeout=1)).satisfied


def test_a_broker_that_asks_for_patience_gets_it(name: Name) -> None:
    with Broker("--limits-requests-per-second", "5") as broker, Client(broker.url) as client:
        made = [client.handoff(to=name("a"), from_agent="b", intent=str(n)) for n in range(12)]
        assert len({handoff.id for handoff in made}) == 12
    with (
        Broker("--limits-requests-per-second", "1") as broker,
        Client(broker.url, retry=tasuki.NO_RETRY) as client,
        pytest.raises(tasuki.Overloaded) as caught,
    ):
        for _ in range(50):
            client.stats()
    assert caught.value.code == "rate_limited"
    assert caught.value.retryable
