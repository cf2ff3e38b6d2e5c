# SPDX-License-Identifier: Apache-2.0
"""Five agents in five processes, one of them killed in the middle of its work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from conftest import HERE
from tasuki import Client, Handoff, address
from tasuki._canonical import constraint_id
from tasuki.testing import Broker

STAGES = 5
KILLED = 2
INTENT = "Schreibe fünf Wörter. Verändere kein einziges. 五つの言葉。"

Process = subprocess.Popen[str]


@pytest.fixture
def start(broker: Broker, name: Callable[[str], str]) -> Iterator[Callable[[int], Process]]:
    running: list[Process] = []

    def begin(stage: int) -> Process:
        program = [sys.executable, str(HERE / "programs" / "stage.py")]
        arguments = [broker.url, name("stage"), str(stage), str(STAGES - 1)]
        process = subprocess.Popen(
            [*program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def says(process: Process) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def go_on(process: Process) -> None:
    assert process.stdin
    process.stdin.write("go on\n")
    process.stdin.flush()
    assert process.wait(timeout=60) == 0


def test_a_chain_with_a_killed_stage_ends_right_and_whole(
    start: Callable[[int], Process], client: Client, name: Callable[[str], str]
) -> None:
    stages = [start(stage) for stage in range(STAGES)]
    first = client.handoff(
        to=f"{name('stage')}-0",
        from_agent="user",
        intent=INTENT,
        payload={"type": "text", "text": []},
        constraints=["Do not change a word.", {"kind": "must_not", "text": "Do not sort."}],
    )
    for stage, process in enumerate(stages):
        assert says(process) == "working on attempt 1"
        if stage == KILLED:
            process.kill()
            replacement = start(stage)
            assert says(replacement) == "working on attempt 2"
            process = replacement
        go_on(process)

    result = first.final(timeout=30)
    assert result.payload["text"] == ["the", "sash", "arrives", "whole", "always"]
    bound = ["Do not change a word.", "Do not sort."]
    bound += [f"Stage {stage} says: keep word {stage}." for stage in range(STAGES - 1)]
    assert result.payload["bound"] == bound
    check_the_ledger(client, first, bound)


def check_the_ledger(client: Client, first: Handoff, bound: list[str]) -> None:
    task = client.tasks.get(first.task_id)
    hops = sorted(task.handoffs, key=lambda handoff: handoff.hop)
    assert [hop.hop for hop in hops] == list(range(STAGES))
    assert [hop.losses for hop in hops] == [int(stage == KILLED) for stage in range(STAGES)]
    previous = None
    for number, hop in enumerate(hops):
        envelope = client.handoffs.envelope(hop.handoff_id)
        # Each envelope names the one before it, and is what its own name says.
        assert envelope.previous == previous
        assert address(client.handoffs.raw_envelope(hop.handoff_id)) == hop.envelope
        previous = hop.envelope
        assert envelope.intent == INTENT
        texts = [constraint.text for constraint in envelope.constraints]
        assert texts == bound[: 2 + number]
        assert all(one.id == constraint_id(one.text) for one in envelope.constraints)
        assert [step.action for step in envelope.history][:1] == ["added the"][:number]
    assert task.state == "completed"
    assert client.audit.verify().intact
