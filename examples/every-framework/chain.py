# SPDX-License-Identifier: Apache-2.0
"""One task through five frameworks and back: `interop/frameworks/run --chain` prepares their
environments and plays it. Prints

    a person hands the task to the planner (LangGraph)
    researcher (CrewAI) has begun
    critic (AutoGen) has begun
    the broker is killed, and is there again
    coder (OpenAI Agents) has begun
    coder tried to soften the constraint: constraint_dropped
    analyst (Pydantic AI) is killed in the middle of its work
    another analyst has begun
    the analyst asks: Which database?
    a person answers: PostgreSQL
    the planner says: They say: They say: They say: They say: They say: PostgreSQL
    five envelopes, one intent, one constraint in each
    attempts: planner 1, researcher 1, critic 1, coder 1, analyst 3
    the log is whole
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import tasuki
from tasuki.testing import Broker, find_binary

HERE = Path(__file__).resolve().parent
FRAMEWORKS = HERE.parents[1] / "interop" / "frameworks"
INTENT = "Move the users table. Never touch the auth module."
CONSTRAINT = "Never touch the auth module."
WITHIN_S = 180


class Process:
    """An agent in an environment of its own."""

    def __init__(self, framework: str, url: str, *more: str) -> None:
        python = FRAMEWORKS / framework / ".venv" / "bin" / "python"
        self._process = subprocess.Popen(
            [str(python), str(HERE / "agent.py"), framework, *more],
            env={**os.environ, "TASUKI_URL": url, "PYTHONPATH": os.environ["PYTHONPATH"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def says(self, beginning: str) -> str:
        """Waits until it says something."""
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith(beginning):
                return line.strip()
        raise RuntimeError(f"it ended before it said {beginning!r}")

    def kill(self) -> None:
        """As the power would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def main() -> int:
    """Plays it, and checks what it says."""
    with tempfile.TemporaryDirectory(prefix="tasuki-chain-") as data, ExitStack() as ends:
        broker = Broker(data=data)
        broker.start()
        ends.callback(lambda: broker.stop())
        person = ends.enter_context(tasuki.Client(broker.url, agent="person"))
        order = ("langgraph", "crewai", "autogen", "openai_agents")
        agents = {name: ends.enter_context(Process(name, broker.url)) for name in order}
        stuck = ends.enter_context(Process("pydantic_ai", broker.url, "stuck"))

        handoff = person.handoff(
            to="planner",
            intent=INTENT,
            constraints=[{"kind": "must_not", "text": CONSTRAINT}],
            payload={"type": "request", "table": "users"},
        )
        print("a person hands the task to the planner (LangGraph)")
        agents["crewai"].says("begun")
        print("researcher (CrewAI) has begun")
        agents["autogen"].says("begun")
        print("critic (AutoGen) has begun")
        broker.kill()
        broker.start()
        print("the broker is killed, and is there again")
        agents["openai_agents"].says("begun")
        print("coder (OpenAI Agents) has begun")
        refused = agents["openai_agents"].says("refused").removeprefix("refused: ")
        print(f"coder tried to soften the constraint: {refused}")
        stuck.says("stuck")
        stuck.kill()
        print("analyst (Pydantic AI) is killed in the middle of its work")
        ends.enter_context(Process("pydantic_ai", broker.url)).says("begun")
        print("another analyst has begun")
        question = next(person.questions(follow=True))
        print(f"the analyst asks: {question.text}")
        person.answer(question.handoff_id, "PostgreSQL", by="person")
        print("a person answers: PostgreSQL")
        result = handoff.final(timeout=WITHIN_S)
        print(f"the planner says: {result.payload['text']}")
        check(person, handoff.task_id)
        if sys.stdout.isatty() or "--explain" in sys.argv:
            subprocess.run([find_binary(), "explain", handoff.task_id, "--url", broker.url])
    return 0


def check(person: tasuki.Client, task_id: str) -> None:
    """The ledger of constraints is whole, and so is the log."""
    found: list[Any] = []
    tasks = [task_id]
    for id in tasks:
        shown = person.tasks.get(id)
        found += shown.handoffs
        tasks += [child.task_id for child in shown.children]
    envelopes = [person.handoffs.envelope(one.handoff_id) for one in found]
    kept = [[one.text for one in envelope.constraints] for envelope in envelopes]
    assert kept == [[CONSTRAINT]] * 5, kept
    assert {envelope.intent for envelope in envelopes} == {INTENT}
    print("five envelopes, one intent, one constraint in each")
    # One analyst was killed, and asking ends a claim: the answer comes with a new one.
    tries = [person.handoffs.get(one.handoff_id).attempts for one in found]
    told = ", ".join(f"{attempts[-1].agent} {len(attempts)}" for attempts in tries)
    print(f"attempts: {told}")
    assert person.audit.verify().intact
    print("the log is whole")


if __name__ == "__main__":
    sys.exit(main())
