# SPDX-License-Identifier: Apache-2.0
"""A real broker that can be restarted, and workers that pull: in processes of their own."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TASUKI_BIN", str(ROOT / "target" / "debug" / "tasuki"))
EXTENSION = "https://w3id.org/tasuki/a2a/handoff/v1"
PATIENCE = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Broker:
    """`tasuki serve` on a directory and a port that stay the same when it is started again."""

    def __init__(self, *more: str) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.more = more
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                BINARY,
                "serve",
                "--listen",
                f"127.0.0.1:{self.port}",
                "--data",
                self.directory.name + "/data",
                "--until-stdin-closes",
                *self.more,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(PATIENCE * 10):
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError(f"the broker ended with {self.process.returncode}")
            try:
                self.process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        raise RuntimeError("the broker is not ready")

    def kill(self) -> None:
        """Nothing is written down before it ends."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    def end(self) -> None:
        self.kill()
        self.directory.cleanup()

    def register(self, agent: str) -> None:
        skill = {"name": "code", "description": "Writes code.", "tags": ["rust"]}
        manifest = {"agent_id": agent, "description": "Writes code.", "capabilities": [skill]}
        reply = httpx.post(f"{self.url}/v1/agents", json={"manifest": manifest})
        reply.raise_for_status()


class Hook:
    """Whoever wants to be told: a server on loopback that keeps what it hears."""

    def __init__(self) -> None:
        heard: queue.Queue[tuple[dict[str, str], Any]] = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = json.loads(self.rfile.read(length))
                heard.put(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.heard = heard
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    async def hears(self) -> tuple[dict[str, str], Any]:
        return await asyncio.to_thread(self.heard.get, True, PATIENCE)

    def end(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Worker:
    """A process that claims one piece of work and does as it is told."""

    def __init__(self, broker: Broker, agent: str, *doing: str) -> None:
        program = [sys.executable, __file__, broker.url, agent, *doing]
        self.process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    async def says(self, word: str) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        line = await asyncio.wait_for(asyncio.to_thread(stdout.readline), PATIENCE)
        assert line.strip() == word, line

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.close()

    async def done(self) -> None:
        code = await asyncio.wait_for(asyncio.to_thread(self.process.wait), PATIENCE)
        assert code == 0, code
        self.close()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Stage(unittest.IsolatedAsyncioTestCase):
    """A broker of its own for each story."""

    def setUp(self) -> None:
        self.broker = Broker("--webhook-allow", "127.0.0.0/8")
        self.broker.register("coder")

    def tearDown(self) -> None:
        self.broker.end()

    def worker(self, *doing: str) -> Worker:
        return Worker(self.broker, "coder", *doing)


def work(url: str, agent: str, doing: list[str]) -> None:
    """What a worker does: `complete`, `ask`, or `hold`: to hold it until somebody kills it."""
    with httpx.Client(base_url=url, timeout=90) as http:

        def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
            for _ in range(PATIENCE):
                try:
                    reply = http.post(path, json=body)
                except httpx.TransportError:
                    # The broker is being started again: a worker that pulls comes back.
                    time.sleep(0.5)
                    continue
                reply.raise_for_status()
                said: dict[str, Any] = reply.json()
                return said
            sys.exit("the broker is gone")

        for what in doing:
            wish = {"agent": agent, "max": 1, "wait_ms": 50_000}
            held = ask("/v1/claims", wish)["claims"][0]
            proof = {"claim_id": held["claim_id"], "fence": held["fence"]}
            at = f"/v1/handoffs/{held['handoff_id']}"
            print("claimed", flush=True)
            match what:
                case "hold":
                    sys.stdin.read()
                    return
                case "ask":
                    ask(f"{at}/ask", {**proof, "text": "Which path?"})
                case "complete":
                    answers = [one.get("answer") for one in held.get("questions", [])]
                    text = f"done {answers[-1]}" if answers else "done"
                    ask(f"{at}/complete", {**proof, "payload": {"type": "text", "text": text}})


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], sys.argv[3:])
