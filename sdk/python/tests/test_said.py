# SPDX-License-Identifier: Apache-2.0
"""What a program says is what is sent: whole, and nothing else. What cannot be sent is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import tasuki
from tasuki import Client, MemorySpine
from tasuki.testing import Broker

Name = Callable[[str], str]


class Report(BaseModel):
    passed: int = 0
    failed: int = 0
    note: str | None = None


def test_a_model_is_sent_whole(client: Client, name: Name) -> None:
    agent = name("agent")
    whole = {"passed": 3, "failed": 0, "note": None}
    handoff = client.handoff(to=agent, from_agent="s", intent="x", payload=Report(passed=3))
    assert handoff.envelope().payload == {"type": "Report", **whole}
    with client.claim(agent=agent) as claim:
        claim.complete({"reports": [Report(passed=3)]})
    assert handoff.result(timeout=10).payload["reports"] == [whole]


def test_what_is_empty_on_purpose_is_sent(client: Client, name: Name) -> None:
    memory = client.memories.add("x", tags=["secret"], by="s")
    assert client.memories.edit(memory.memory_id, text="y", tags=[], by="s").tags == []
    project = client.project(name("project"))
    project.write(
        constraints=[{"text": "Do not x.", "kind": "must_not"}], state={"summary": "s"}, by="s"
    )
    assert project.write(constraints=[], by="s").constraints == []
    assert not project.write(state={}, by="s").state.summary


def test_rules_can_be_taken_away() -> None:
    with (
        Broker("--auth", "required") as broker,
        Client(broker.url, agent="admin", token=broker.admin_token) as admin,
    ):
        key = tasuki.Key.generate(agent="agent")
        rules = [{"permissions": ["send", "read"]}]
        admin.keys.enroll("agent", key.public, rules=rules)
        admin.agents.set_rules("agent", [])
        with Client(broker.url, key=key) as agent, pytest.raises(tasuki.NotPermitted):
            agent.handoff(to="x", intent="x")


@pytest.mark.parametrize("call", ["handoff", "call", "send", "assemble"])
def test_a_misspelt_keyword_is_told(client: Client, call: str) -> None:
    said: dict[str, Any] = {"to": "x", "from_agent": "s", "intent": "x", "contraints": ["Do not."]}
    with pytest.raises(TypeError, match="'contraints'; did you mean 'constraints'"):
        getattr(client, call)(**said)


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize("value", [{1: "a", "1": "b"}, deep(), float("nan")], ids=["1", "2", "3"])
def test_what_json_cannot_hold_is_told(client: Client, value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON"):
        client.handoff(to="x", from_agent="s", intent="x", payload={"v": value})


def test_a_span_without_end_is_told(client: Client) -> None:
    with pytest.raises(ValueError, match="no span"):
        client.send(to="x", from_agent="s", intent="x", timeout=float("inf"))


def test_nobody_has_acknowledged_what_nobody_took(client: Client, name: Name) -> None:
    agent = name("agent")
    declined = client.handoff(to=agent, from_agent="s", intent="x")
    client.handoffs.decline(declined.id, agent=agent, reason="no way")
    cancelled = client.handoff(to=agent, from_agent="s", intent="x")
    cancelled.cancel(by="s")
    expired = client.handoff(to=agent, from_agent="s", intent="x", expires_in=0.05)
    for handoff, state in (
        (declined, "dead_lettered"),
        (cancelled, "cancelled"),
        (expired, "dead_lettered"),
    ):
        with pytest.raises(tasuki.HandoffFailed, match="nobody has claimed it") as caught:
            handoff.acknowledged(30)
        assert caught.value.state == state


def test_what_was_taken_and_failed_was_acknowledged(client: Client, name: Name) -> None:
    agent = name("agent")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with client.claim(agent=agent) as claim:
        claim.fail("no", kind="permanent", hint="h")
    assert handoff.acknowledged(10).attempts[0].agent == agent


def test_a_delivery_that_is_declined_has_no_acknowledgment(broker: Broker, name: Name) -> None:
    agent = name("agent")
    spine = MemorySpine(broker.url)
    envelope = spine.agent_handoff(agent, task_summary="x", constraints=["Do not touch auth."])
    waits = threading.Timer(0.2, lambda: spine.park_envelope(envelope, "gone"))
    waits.start()
    with pytest.raises((tasuki.HandoffFailed, TimeoutError)):
        spine.deliver_handoff(envelope, agent, timeout=5)
    waits.join()
    with pytest.raises(tasuki.HandoffFailed):
        spine.deliver_handoff(envelope, agent, timeout=5)
    spine.close()


def test_an_envelope_is_published_wherever_it_is_wanted(broker: Broker, name: Name) -> None:
    spine = MemorySpine(broker.url)
    a, b, c = name("a"), name("b"), name("c")
    envelope = spine.agent_handoff("broadcast", task_summary="x")
    channel = spine.get_channel(name("channel"))
    first = channel.publish(envelope, receivers=[a, b])
    again = channel.publish(envelope, receivers=[b, a, b])
    assert {one.handoff_id for one in again} == {one.handoff_id for one in first}
    assert [one.receiver for one in again] == [b, a]
    assert len(channel.publish(envelope, receivers=[a, b, c])) == 3
    assert len(spine.get_channel(name("other")).publish(envelope, receivers=[a, b])) == 2
    with pytest.raises(TypeError):
        channel.publish(envelope, receivers="abc")
    with pytest.raises(ValueError, match="task_summary"):
        spine.agent_handoff(a)
    spine.close()


def test_a_decision_on_a_dead_letter_is_a_handoff_again(client: Client, name: Name) -> None:
    agent, other = name("agent"), name("other")
    handoff = client.handoff(to=agent, from_agent="s", intent="x")
    with client.claim(agent=agent) as claim:
        claim.fail("no", kind="permanent", hint="h")
    again = client.dead_letters.reroute(handoff.id, to=other, by="s")
    assert again.to.agent == other
    with client.claim(agent=other) as claim:
        claim.complete("done")
    assert again.result(timeout=10).payload["text"] == "done"


def test_a_prompt_is_its_text_and_quotes_the_payload(client: Client, name: Name) -> None:
    agent = name("agent")
    payload = {"type": "t", "note": "for whoever reads it"}
    handoff = client.handoff(to=agent, from_agent="s", intent="Say it.", payload=payload)
    prompt = client.handoffs.prompt(handoff.id, max_tokens=2000)
    assert str(prompt) == prompt.prompt
    assert "Say it." in str(prompt)
    assert "for whoever reads it" in str(prompt)


def test_a_key_file_that_is_there_is_not_overwritten_and_it_is_said_what_to_do(
    tmp_path: Path,
) -> None:
    tasuki.Key.generate(agent="a").save(tmp_path / "a.key")
    with pytest.raises(FileExistsError, match=r"Key\.load"):
        tasuki.Key.generate(agent="a").save(tmp_path / "a.key")
