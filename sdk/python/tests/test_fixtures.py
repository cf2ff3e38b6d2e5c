# SPDX-License-Identifier: Apache-2.0
"""The protocol of coder, reviewer and tester: its files fit each other, and a broker agrees."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from conftest import EXAMPLES
from tasuki import Client
from tasuki.testing import Broker

TEAM = EXAMPLES / "coder-reviewer-tester"
FAILURES = sorted((TEAM / "errors" / "malformed").glob("*.json"))
HOPS = sorted((TEAM / "malformed").glob("*.json"))


def load(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def validator(name: str) -> Draft202012Validator:
    schema = load(TEAM / "schemas" / f"{name}.json")
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.fixture(scope="module")
def walk() -> ModuleType:
    spec = importlib.util.spec_from_file_location("walk", TEAM / "walk.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["walk"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def fresh() -> Iterator[Broker]:
    """The walk names its agents and its project, so it gets a broker of its own."""
    with Broker() as broker:
        yield broker


def test_the_walk_goes_as_written_and_every_message_fits_its_schema(
    walk: ModuleType, fresh: Broker
) -> None:
    steps = load(TEAM / "walk.json")["steps"]
    with httpx.Client(base_url=fresh.url, timeout=60, trust_env=False) as client:
        play = walk.Walk(client)
        answers: list[tuple[str, Any]] = [(step["id"], play.play(step)) for step in steps]
    message, context = validator("message"), validator("shared-context")
    received = [answer["claims"][0]["envelope"] for id, answer in answers if "claim" in id]
    for envelope in received:
        message.validate(envelope)
    context.validate(dict(answers)["context-read"])
    # What the user said is the same for everybody, and so is what binds those who do the work.
    assert len({envelope["intent"] for envelope in received}) == 1
    assert len({json.dumps(one["constraints"]) for one in received if "constraints" in one}) == 1
    assert len(received) == 7


def test_the_two_failures_fit_their_schema() -> None:
    failure = validator("failure")
    for name in ("retryable", "permanent"):
        failure.validate(load(TEAM / "errors" / f"{name}.json"))


def test_there_are_enough_malformed_messages() -> None:
    assert len(FAILURES) >= 8
    assert len(HOPS) >= 8


@pytest.mark.parametrize("path", FAILURES, ids=lambda path: path.stem)
def test_a_malformed_failure_is_refused_and_changes_nothing(client: Client, path: Path) -> None:
    case = load(path)
    assert not validator("failure").is_valid(case["body"])
    refused(client, "fail", case["body"], case["expect"])


@pytest.mark.parametrize("path", HOPS, ids=lambda path: path.stem)
def test_a_malformed_handoff_is_refused_and_changes_nothing(client: Client, path: Path) -> None:
    case = load(path)
    body = {"payload": {"type": "code_change"}, "follow_ups": [case["hop"]]}
    refused(client, "complete", body, case["expect"])


def refused(client: Client, act: str, body: dict[str, Any], expect: dict[str, Any]) -> None:
    first = load(TEAM / "messages" / "1-lead-to-coder.sent.json")
    offered = httpx.post(f"{client.url}/v1/handoffs", json=first, trust_env=False).json()
    claim = client.claim_handoff(offered["handoff_id"], agent="coder")
    held = {"claim_id": claim.claim_id, "fence": claim.fence}
    url = f"{client.url}/v1/handoffs/{claim.handoff_id}/{act}"
    before = client.stats().head
    answer = httpx.post(url, json={**body, **held}, trust_env=False)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (expect["status"], expect["code"]), problem
    faults = problem["details"].get("faults") or [{"path": f"/{problem['details']['field']}"}]
    assert faults[0]["path"] == expect["path"], problem
    assert problem["hint"]
    # That something binding was left out is noted, once in a while of one sender; nothing else is.
    if client.stats().head != before:
        noted = next(iter(client.events(after=before)))
        assert noted.position == client.stats().head
        assert (noted.record.change, noted.record.code) == ("access_denied", problem["code"])
        assert problem["code"].startswith("constraint_")
    claim.complete()
