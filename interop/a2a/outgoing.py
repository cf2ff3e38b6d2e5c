# SPDX-License-Identifier: Apache-2.0
"""The broker hands work to agents that are A2A servers elsewhere: the same stories for each SDK."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

import httpx
from stage import PATIENCE, Broker, free_port

PROGRAM = Path(__file__).with_name("remote.py")
TOKEN = "t-0123456789"


class Remote:
    """A server of the SDK in a process of its own, on a port that stays the same."""

    def __init__(self, binding: str, token: str = "", at: str = "", bearer: bool = False) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.said = {
            "port": self.port,
            "url": at or self.url,
            "binding": binding,
            "token": token,
            "bearer": bearer or bool(token),
        }
        self.start()

    def start(self) -> None:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), json.dumps(self.said)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.process = process
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.seen: list[dict[str, Any]] = []
        lines = self.lines

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                lines.put(json.loads(line))

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        self.says("ready")

    def says(self, event: str, **members: Any) -> dict[str, Any]:
        """Waits until it says something."""
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"no {event}, but {self.seen}") from None
            self.seen.append(line)
            if line["event"] == event and all(line[name] == it for name, it in members.items()):
                return line

    def all(self, event: str) -> list[dict[str, Any]]:
        while not self.lines.empty():
            self.seen.append(self.lines.get())
        return [line for line in self.seen if line["event"] == event]

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Outgoing:
    """What the broker and an agent elsewhere do together."""

    binding = "JSONRPC"
    broker: Broker
    addCleanup: Any

    def begin(self, remote: Remote, *more: str) -> None:
        self.remote = remote
        self.addCleanup(remote.kill)
        self.broker = Broker("--webhook-allow", "127.0.0.0/8", *more)
        self.addCleanup(self.broker.end)
        delivery = {"mode": "a2a", "url": remote.url}
        manifest = {"agent_id": "remote", "description": "Elsewhere.", "delivery": delivery}
        self.post("/v1/agents", {"manifest": manifest})

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = httpx.post(self.broker.url + path, json=body, timeout=PATIENCE)
        assert reply.is_success, reply.text
        said: dict[str, Any] = reply.json()
        return said

    def get(self, path: str) -> dict[str, Any]:
        reply = httpx.get(self.broker.url + path, timeout=PATIENCE)
        assert reply.is_success, reply.text
        said: dict[str, Any] = reply.json()
        return said

    def offer(self, doing: str, attempts: int = 3) -> str:
        terms = {"attempts": attempts, "backoff_ms": 100}
        to = {"agent": "remote"}
        asked: dict[str, Any] = {"from_agent": "planner", "to": to, "intent": doing, "terms": terms}
        asked["payload"] = {"type": "order", "n": 1}
        return str(self.post("/v1/handoffs", asked)["handoff_id"])

    def until(self, id: str, state: str) -> dict[str, Any]:
        """Waits for a state of a handoff in the log."""
        shown: dict[str, Any] = {}
        for _ in range(PATIENCE):
            shown = self.get(f"/v1/handoffs/{id}?until=settled&wait_ms=1000")
            if shown["state"] == state:
                return shown
        raise AssertionError(shown)

    def completed(self, id: str) -> str:
        """The texts of the result."""
        payload = self.until(id, "completed")["output"]["payload"]
        if payload["type"] == "text":
            return str(payload["text"])
        assert payload["type"] == "a2a.artifacts", payload
        parts = [part for one in payload["artifacts"] for part in one["parts"]]
        return "".join(part["text"] for part in parts)

    def log(self) -> str:
        return httpx.get(f"{self.broker.url}/v1/audit/export", timeout=PATIENCE).text

    def test_what_is_done_at_once_comes_back(self) -> None:
        self.begin(Remote(self.binding))
        assert self.completed(self.offer("complete it")) == "done"

    def test_what_takes_a_while_is_followed_by_its_stream(self) -> None:
        self.begin(Remote(self.binding))
        id = self.offer("hold it")
        self.remote.says("asked", streams=True)
        self.remote.go()
        result = self.completed(id)
        assert result == "done and written", result
        assert len(self.remote.all("received")) == 1

    def test_a_server_that_forgot_its_task_gets_another_one(self) -> None:
        self.begin(Remote(self.binding))
        id = self.offer("hold it")
        first = self.remote.says("received")["message"]
        self.remote.says("asked", streams=True)
        self.remote.kill()
        self.remote.start()
        second = self.remote.says("received")["message"]
        assert (first, second) == (f"{id}-1", f"{id}-2")
        self.remote.go()
        assert self.completed(id) == "done and written"

    def test_a_broker_that_is_killed_goes_on_with_the_same_task(self) -> None:
        self.begin(Remote(self.binding))
        id = self.offer("hold it")
        self.remote.says("asked", streams=True)
        self.broker.kill()
        self.remote.go()
        self.broker.start()
        assert self.completed(id) == "done and written"
        assert len(self.remote.all("received")) == 1

    def test_a_question_goes_to_the_sender_and_the_answer_back(self) -> None:
        self.begin(Remote(self.binding))
        id = self.offer("ask first")
        question = self.asked()
        assert question["text"] == "Which path?", question
        self.broker.restart()
        answer = {"by": "planner", "answer": "/users"}
        self.post(f"/v1/handoffs/{id}/answer", answer)
        assert self.completed(id) == "done /users"

    def asked(self) -> dict[str, Any]:
        for _ in range(PATIENCE * 10):
            questions = self.get("/v1/questions")["questions"]
            if questions:
                question: dict[str, Any] = questions[0]
                return question
            threading.Event().wait(0.1)
        raise AssertionError("nobody asked")

    def test_a_rejection_is_a_refusal_and_a_failure_an_attempt(self) -> None:
        self.begin(Remote(self.binding))
        shown = self.until(self.offer("reject it"), "dead_lettered")
        assert shown["dead_letter"]["reason"] == "declined", shown
        assert "not mine" in self.log()
        assert len(self.remote.all("received")) == 1
        id = self.offer("fail at it", attempts=2)
        assert self.until(id, "dead_lettered")["failures"] == 2
        assert "no suite" in self.log()
        sent = [line["message"] for line in self.remote.all("received")][1:]
        assert sent == [f"{id}-1", f"{id}-2"]

    def credentials(self, origin: str) -> list[str]:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        secret, file = Path(directory.name, "token"), Path(directory.name, "credentials.toml")
        secret.touch(0o600)
        secret.write_text(TOKEN)
        file.touch(0o600)
        told = ["[[remote]]", 'agent = "remote"', f'origin = "{origin}"']
        file.write_text("\n".join([*told, f'bearer = {{ file = "{secret}" }}', ""]))
        return ["--a2a-credentials", os.fspath(file)]

    def test_a_token_is_shown_where_it_belongs(self) -> None:
        remote = Remote(self.binding, token=TOKEN)
        self.begin(remote, *self.credentials(remote.url))
        id = self.offer("complete it")
        assert self.completed(id) == "done"
        assert {line["shown"] for line in remote.all("asked")} == {f"Bearer {TOKEN}"}
        assert TOKEN not in self.log()

    def test_a_card_that_points_elsewhere_does_not_get_the_token_there(self) -> None:
        elsewhere = Remote(self.binding)
        self.addCleanup(elsewhere.kill)
        remote = Remote(self.binding, at=elsewhere.url, bearer=True)
        self.begin(remote, *self.credentials(remote.url))
        self.until(self.offer("complete it"), "dead_lettered")
        assert "a2a_credentials" in self.log()
        assert not remote.all("asked") and not elsewhere.all("asked")


class Stories(Outgoing, unittest.TestCase):
    """Where the server speaks JSON-RPC."""


class HttpJson(Outgoing, unittest.TestCase):
    """Where it speaks HTTP+JSON."""

    binding = "HTTP+JSON"
