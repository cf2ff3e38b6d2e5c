# SPDX-License-Identifier: Apache-2.0
"""One task through six frameworks and two protocols, and back: `interop/frameworks/run --chain`
prepares their environments and plays it. Prints

    the gateway of OpenClaw is ready
    a customer, who speaks only A2A, sends the task to whoever can plan
    planner (LangGraph) has begun
    researcher (CrewAI) has begun
    critic (AutoGen) has begun
    the broker is killed, and is there again
    coder (OpenAI Agents) has begun
    coder tried to soften the constraint: constraint_dropped
    analyst (Pydantic AI) is killed in the middle of its work
    another analyst has begun
    reviewer (OpenClaw) has begun
    archivist, who speaks only MCP, has begun
    it asks: Which database?
    a person answers: PostgreSQL
    the customer gets: They say: They say: They say: They say: They say: They say: PostgreSQL
    seven envelopes, one intent, one constraint in each
    attempts: planner 1, researcher 1, critic 1, coder 1, analyst 2, reviewer 1, archivist 2
    explain: each of them completed its part, the constraint intact
    the log is whole
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import tasuki
from tasuki.testing import Broker, find_binary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INTEROP = ROOT / "interop"
FRAMEWORKS = INTEROP / "frameworks"
# Where OpenClaw's own tests have what starts a gateway.
GATEWAY = ROOT / "integrations" / "openclaw" / "test"
INTENT = "Move the users table. Never touch the auth module."
CONSTRAINT = "Never touch the auth module."
WITHIN_S = 180
WHO = ("planner", "researcher", "critic", "coder", "analyst", "reviewer", "archivist")


class Process:
    """An agent in an environment of its own."""

    def __init__(self, environment: Path, url: str, program: str, *more: str) -> None:
        path = os.pathsep.join((os.environ["PYTHONPATH"], str(GATEWAY)))
        self._process = subprocess.Popen(
            [str(environment / ".venv" / "bin" / "python"), str(HERE / program), *more],
            env={**os.environ, "TASUKI_URL": url, "TASUKI_BIN": find_binary(), "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            # What it starts ends with it.
            start_new_session=True,
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
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ends(self) -> str:
        """Waits until it ends, and returns its last line."""
        assert self._process.stdout
        last = ""
        for line in self._process.stdout:
            last = line.strip()
        return last

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
        print(f"watch it: {broker.url}/ui/", file=sys.stderr, flush=True)
        person = ends.enter_context(tasuki.Client(broker.url, agent="person"))

        def agent(framework: str, *more: str) -> Process:
            place, url = FRAMEWORKS / framework, broker.url
            return ends.enter_context(Process(place, url, "agent.py", framework, *more))

        def other(environment: Path, program: str, *more: str) -> Process:
            return ends.enter_context(Process(environment, broker.url, program, *more))

        # The gateway's program plays in an environment of Python; the gateway brings its own Node.
        gateway = other(FRAMEWORKS / "pydantic_ai", "openclaw.py")
        gateway.says("ready")
        print("the gateway of OpenClaw is ready", flush=True)
        order = ("langgraph", "crewai", "autogen", "openai_agents")
        agents = {name: agent(name) for name in order}
        stuck = agent("pydantic_ai", "stuck")
        archivist = other(INTEROP / "mcp" / "mcp2", "mcp_only.py")

        customer = other(INTEROP / "a2a" / "py1", "a2a_only.py", INTENT, CONSTRAINT)
        task_id = customer.says("sent").removeprefix("sent ")
        told = "a customer, who speaks only A2A, sends the task to whoever can plan"
        print(told, flush=True)
        agents["langgraph"].says("begun")
        print("planner (LangGraph) has begun", flush=True)
        agents["crewai"].says("begun")
        print("researcher (CrewAI) has begun", flush=True)
        agents["autogen"].says("begun")
        print("critic (AutoGen) has begun", flush=True)
        broker.kill()
        broker.start()
        print("the broker is killed, and is there again", flush=True)
        agents["openai_agents"].says("begun")
        print("coder (OpenAI Agents) has begun", flush=True)
        refused = agents["openai_agents"].says("refused").removeprefix("refused: ")
        print(f"coder tried to soften the constraint: {refused}", flush=True)
        stuck.says("stuck")
        stuck.kill()
        print("analyst (Pydantic AI) is killed in the middle of its work", flush=True)
        agent("pydantic_ai").says("begun")
        print("another analyst has begun", flush=True)
        gateway.says("begun")
        print("reviewer (OpenClaw) has begun", flush=True)
        archivist.says("begun")
        print("archivist, who speaks only MCP, has begun", flush=True)
        question = next(person.questions(follow=True))
        print(f"it asks: {question.text}", flush=True)
        person.answer(question.handoff_id, "PostgreSQL", by="person")
        print("a person answers: PostgreSQL", flush=True)
        state, _, result = customer.ends().partition(": ")
        assert state == "TASK_STATE_COMPLETED", (state, result)
        print(f"the customer gets: {result}", flush=True)
        explained(broker.url, check(person, task_id))
        assert person.audit.verify().intact
        print("the log is whole", flush=True)
    return 0


def explained(url: str, tasks: list[str]) -> None:
    """What a person asks afterwards: of each hop, who did it and whether what binds arrived."""
    for who, task_id in zip(WHO, tasks, strict=True):
        told = asked(url, "explain", task_id)
        assert f"{who} completed it." in told, (who, told)
        assert "Are all constraints intact?\n   Yes: 1 that bind, word for word" in told, told
    print("explain: each of them completed its part, the constraint intact", flush=True)
    tree = asked(url, "task", "tree", tasks[0])
    missing = [who for who in WHO if who not in tree]
    assert not missing, (missing, tree)
    if sys.stdout.isatty() or "--explain" in sys.argv:
        print(asked(url, "explain", tasks[0]), tree, sep="\n", flush=True)


def asked(url: str, *command: str) -> str:
    """What the command line says."""
    whole = [find_binary(), *command, "--url", url]
    return subprocess.run(whole, check=True, capture_output=True, text=True).stdout


def check(person: tasuki.Client, task_id: str) -> list[str]:
    """The ledger of constraints is whole. Returns the tasks, one below the other."""
    found: list[Any] = []
    tasks = [task_id]
    for id in tasks:
        shown = person.tasks.get(id)
        found += shown.handoffs
        tasks += [child.task_id for child in shown.children]
    envelopes = [person.handoffs.envelope(one.handoff_id) for one in found]
    kept = [[one.text for one in envelope.constraints] for envelope in envelopes]
    assert kept == [[CONSTRAINT]] * len(WHO), kept
    assert {envelope.intent for envelope in envelopes} == {INTENT}
    print("seven envelopes, one intent, one constraint in each")
    # One analyst was killed; asking ends a claim, and the answer comes with a new one.
    tries = [person.handoffs.get(one.handoff_id).attempts for one in found]
    told = ", ".join(f"{attempts[-1].agent} {len(attempts)}" for attempts in tries)
    print(f"attempts: {told}", flush=True)
    return tasks


if __name__ == "__main__":
    sys.exit(main())
