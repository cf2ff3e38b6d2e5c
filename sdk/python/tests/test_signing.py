# SPDX-License-Identifier: Apache-2.0
"""Keys, on a broker that asks everybody who it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import tasuki
from tasuki import AsyncClient, Client, Key
from tasuki import models as m
from tasuki._canonical import address, canonical
from tasuki.keys import authored, verify
from tasuki.testing import Broker

WORKER = [{"permissions": ["send", "claim", "complete", "read", "write_memory"]}]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with Broker("--auth", "required") as broker:
        yield broker


@pytest.fixture(scope="module")
def admin(guarded: Broker) -> Iterator[Client]:
    with Client(guarded.url, agent="admin", token=guarded.admin_token) as client:
        yield client


def enrolled(guarded: Broker, admin: Client, agent: str) -> Key:
    key = Key.generate(agent=agent)
    invitation = admin.tokens.issue(agent, purpose="join", rules=WORKER)
    with Client(guarded.url, retry=tasuki.NO_RETRY) as stranger:
        stranger.keys.join(key, token=invitation.text)
    return key


def test_who_shows_nothing_is_not_let_in(guarded: Broker) -> None:
    with Client(guarded.url, agent="stranger") as client, pytest.raises(tasuki.Unauthenticated):
        client.stats()


async def test_an_agent_joins_signs_and_hands_over(guarded: Broker, admin: Client) -> None:
    coder, reviewer = (enrolled(guarded, admin, name) for name in ("coder", "reviewer"))
    intent = "Prüfe das. 検査して。"
    with Client(guarded.url, key=coder) as sender:
        handoff = sender.handoff(to="reviewer", intent=intent, payload={"n": [1.5, 1e-9, "ä"]})
    async with AsyncClient(guarded.url, key=reviewer) as receiver:
        async with receiver.claim() as claim:
            signed = claim.raw_envelope["signed"]
            said = authored(claim.raw_envelope)
            assert verify(coder.public, signed, "envelope", said)
            assert not verify(reviewer.public, signed, "envelope", said)
            assert not verify(coder.public, signed, "envelope", address({"other": 1}))
            assert address(claim.raw_envelope) == claim.envelope_hash
            await claim.complete("seen")
        log = await receiver.tasks.events(claim.task_id)
        kinds = [event.record.kind for event in log]
        assert kinds.index("acknowledged") == kinds.index("started") - 1
        accepted = log[kinds.index("acknowledged")].record
        assert accepted.signed
        held = (claim.handoff_id, claim.envelope_hash, claim.claim_id, str(claim.fence))
        acts = (*held, "accepted", str(accepted.body))
        assert verify(reviewer.public, accepted.signed.model_dump(), "acknowledgment", *acts)
        done = log[kinds.index("completed") - 1].record
        assert done.signed
        acts = (*held, "completed", str(done.body))
        assert verify(reviewer.public, done.signed.model_dump(), "acknowledgment", *acts)
        page = await receiver.memories.page(q="a word & more", limit=3)
        assert page.memories == []
    with Client(guarded.url, key=coder) as sender:
        assert handoff.id == sender.handoffs.get(handoff.id).handoff_id


def test_a_holder_signs_what_it_says_whatever_the_broker_adds(
    guarded: Broker, admin: Client
) -> None:
    lead, tester = (enrolled(guarded, admin, name) for name in ("lead", "tester"))
    wanted = {"schema": {"required": ["text"]}, "criteria": ["Names the file."]}
    met = {"criterion": "Names the file.", "met": True, "evidence": None}
    with Client(guarded.url, key=lead) as sender, Client(guarded.url, key=tester) as receiver:
        first = sender.handoff(to="tester", intent="Test it.", expected_output=wanted)
        with receiver.claim() as claim:
            claim.complete(
                {"text": "src/ä.rs", "ratio": 0.5},
                action="needs_review",
                criteria=[met],
                gaps=["ms-1"],
                metadata={"n": 1},
            )
        output = first.status().output
        assert output
        assert output.verified == ["schema"]
        handed = [sender.handoff(to="tester", intent=f"Part {n}.") for n in range(3)]
        with receiver.claim() as claim:
            claim.fail(
                "the disk is full",
                kind="permanent",
                type="disk_full",
                hint="make room",
                attempts=2,
                causes=["ENOSPC"],
                details={"free": 0},
            )
        with pytest.raises(ConnectionError), receiver.claim():
            raise ConnectionError("no way there")
        with receiver.claim() as last:
            assert isinstance(receiver.complete_many([(last, {"ok": True})])[0], m.Moved)
        told = [_signed(sender.tasks.events(one.task_id)) for one in (first, *handed)]
    done, failed = ("completed", "completed"), ("failed", "attempt_failed")
    assert told == [[("accepted", "started"), end] for end in (done, failed, failed, done)]


def _signed(log: list[m.Event]) -> list[tuple[str | None, str | None]]:
    """What was signed, and the event that follows, which tells it."""
    records = [event.record for event in log]
    pairs = itertools.pairwise(records)
    return [(said.act, told.kind) for said, told in pairs if said.kind == "acknowledged"]


def test_an_agent_cannot_speak_for_another(guarded: Broker, admin: Client) -> None:
    key = enrolled(guarded, admin, "mallory")
    with Client(guarded.url, key=key) as client, pytest.raises(tasuki.NotPermitted):
        client.handoff(to="reviewer", from_agent="coder", intent="Trust me.")


def test_a_key_is_replaced_and_the_client_goes_on_with_the_new_one(
    guarded: Broker, admin: Client
) -> None:
    old = enrolled(guarded, admin, "rotating")
    new = Key.generate(agent="rotating")
    with Client(guarded.url, key=old) as client:
        client.keys.rotate(new, grace=60)
        shown = client.agents.get("rotating")
    assert new.id in {key.key_id for key in shown.keys}
    admin.keys.revoke("rotating", old.id)
    with Client(guarded.url, key=old) as client, pytest.raises(tasuki.Unauthenticated):
        client.agents.get("rotating")


def test_a_token_that_was_revoked_opens_nothing(guarded: Broker, admin: Client) -> None:
    admin.keys.enroll("plain", Key.generate().public, rules=WORKER)
    token = admin.tokens.issue("plain", rules=WORKER, expires_in=60)
    with Client(guarded.url, agent="plain", token=token.text) as client:
        client.handoff(to="plain", intent="To myself.")
        assert token.token_id in {one.token_id for one in admin.tokens.all()}
        admin.tokens.revoke(token.token_id)
        with pytest.raises(tasuki.Unauthenticated):
            client.agents.get("plain")


def test_a_session_has_the_rights_of_its_token_until_it_is_closed(
    guarded: Broker, admin: Client
) -> None:
    admin.keys.enroll("visitor", Key.generate().public, rules=WORKER)
    token = admin.tokens.issue("visitor", rules=WORKER, expires_in=60)
    with Client(guarded.url, agent="visitor", token=token.text) as client:
        session = client.sessions.open(expires_in=30)
    with Client(guarded.url, agent="visitor", token=session.text) as client:
        shown = client.sessions.show()
        assert (shown.agent_id, shown.authentication) == ("visitor", True)
        assert "handoff_claim" in shown.operations
        assert "tenant_set" not in shown.operations
        client.sessions.close()
        with pytest.raises(tasuki.Unauthenticated):
            client.sessions.show()


def test_a_manifest_is_signed_with_the_agents_key(guarded: Broker, admin: Client) -> None:
    key = enrolled(guarded, admin, "publisher")
    manifest = {"agent_id": "publisher", "capabilities": [{"name": "web_research"}]}
    with Client(guarded.url, key=key) as client:
        shown = client.agents.publish(manifest)
    assert shown.signed
    assert shown.manifest_hash
    assert verify(key.public, shown.signed.model_dump(), "manifest", shown.manifest_hash)


def test_a_key_file_is_private_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "coder.key"
    key = Key.generate(agent="coder")
    key.save(path)
    read = Key.load(path)
    assert (read.id, read.public, read.agent) == (key.id, key.public, "coder")
    with pytest.raises(FileExistsError):
        key.save(path)
    path.chmod(0o644)
    with pytest.raises(PermissionError):
        Key.load(path)
    assert "ed25519-secret" not in repr(key)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (1.5e-7, "1.5e-7"),
        (0.000001, "0.000001"),
        (333333333.33333329, "333333333.3333333"),
        (4.5, "4.5"),
        (2e-3, "0.002"),
        (-1e-27, "-1e-27"),
        (123456789012345680.0, "123456789012345680"),
    ],
)
def test_numbers_have_one_spelling(value: float, text: str) -> None:
    assert canonical(value).decode() == text


def test_names_are_in_the_order_of_utf_16() -> None:
    value = {"\ufb33": 1, "\U0001f600": 2, "a": 3, "\r": 4}
    assert canonical(value).decode() == '{"\\r":4,"a":3,"\U0001f600":2,"\ufb33":1}'


def test_what_is_signed_is_for_one_broker_and_no_other(
    guarded: Broker, admin: Client, tmp_path: Path
) -> None:
    key = enrolled(guarded, admin, "pinned")
    with Client(guarded.url, key=key) as client:
        client.stats()
        here = client._wire.core.broker
    assert here
    assert here.startswith("key_")
    other = Key.generate().id
    with (
        Client(guarded.url, key=key, broker=other, retry=tasuki.NO_RETRY) as client,
        pytest.raises(tasuki.Unauthenticated) as refused,
    ):
        client.stats()
    assert refused.value.code == "signature_audience"
    # A key file remembers where the key was enrolled, and is believed before the broker is.
    for named, taken in ((here, True), (other, False)):
        key.broker = named
        place = tmp_path / f"{named}.key"
        key.save(place)
        loaded = Key.load(place)
        assert (loaded.broker, loaded.agent) == (named, "pinned")
        with Client(guarded.url, key=loaded, retry=tasuki.NO_RETRY) as client:
            if taken:
                client.stats()
            else:
                with pytest.raises(tasuki.Unauthenticated):
                    client.stats()
