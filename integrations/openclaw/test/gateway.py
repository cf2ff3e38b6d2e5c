# SPDX-License-Identifier: Apache-2.0
"""A gateway of OpenClaw with the plugin, on loopback, and a model that does what a test says."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ENVIRONMENT = Path(os.environ["OPENCLAW_ENVIRONMENT"])
NODE = next(ENVIRONMENT.glob("node_modules/node-linux-*/bin/node"))
PROGRAM = ENVIRONMENT / "node_modules" / "openclaw" / "openclaw.mjs"
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "frameworks" / "openclaw.md"
STARTS_S = 300
TOKEN = "for-tests"


class Model:
    """A server with the interface of OpenAI's. `reply` gets the messages, and returns a text or the
    name and the arguments of a tool; while it does not return, the model thinks."""

    def __init__(self) -> None:
        self.reply: Callable[[list[dict[str, Any]]], str | tuple[str, dict[str, Any]]]
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                said = model.reply(asked["messages"])
                # A gateway that was killed meanwhile does not read it.
                with suppress(ConnectionError):
                    self._say(said)

            def _say(self, said: str | tuple[str, dict[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                if isinstance(said, str):
                    delta: dict[str, Any] = {"content": said}
                else:
                    function = {"name": said[0], "arguments": json.dumps(said[1])}
                    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
                    delta = {"tool_calls": [call]}
                ends = "stop" if isinstance(said, str) else "tool_calls"
                self._chunk([{"index": 0, "delta": {"role": "assistant", **delta}}])
                self._chunk([{"index": 0, "delta": {}, "finish_reason": ends}])
                usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
                self._chunk([], usage=usage)
                self.wfile.write(b"data: [DONE]\n\n")

            def _chunk(self, choices: list[Any], **more: Any) -> None:
                chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1}
                said = json.dumps({**chunk, "model": "scripted", "choices": choices, **more})
                self.wfile.write(f"data: {said}\n\n".encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def texts(messages: list[dict[str, Any]], *roles: str) -> list[str]:
    """What was said by these."""
    found: list[str] = []
    for message in messages:
        if message["role"] in roles:
            content = message.get("content") or ""
            parts = (
                [content] if isinstance(content, str) else [it.get("text", "") for it in content]
            )
            found.append("\n".join(parts))
    return found


def versions() -> dict[str, str]:
    """Of the gateway, and of the Node that it runs in."""
    places = {"OpenClaw": PROGRAM.parent, "Node": NODE.parents[1]}
    return {
        name: str(json.loads((place / "package.json").read_text("utf-8"))["version"])
        for name, place in places.items()
    }


def guided(plugin: dict[str, Any]) -> dict[str, Any]:
    """The set-up of the guide, with the plugin where it was built and other settings of its own."""
    text = GUIDE.read_text("utf-8").split("```json\n", 1)[1].split("```", 1)[0]
    config: dict[str, Any] = json.loads(text)
    config["plugins"]["load"]["paths"] = [str(ENVIRONMENT / "plugin")]
    config["plugins"]["entries"]["tasuki"]["config"] |= plugin
    return config


class Gateway:
    """A gateway with a state of its own, that can be killed and started again."""

    def __init__(self, place: Path, model: str, plugin: dict[str, Any]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._place = place
        price = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        scripted = {"id": "scripted", "name": "scripted", "reasoning": False, "input": ["text"]}
        scripted |= {"cost": price, "contextWindow": 100_000, "maxTokens": 4000}
        provider = {"baseUrl": model, "apiKey": "none", "api": "openai-completions"}
        config = {
            "gateway": {
                "mode": "local",
                "bind": "loopback",
                "port": self.port,
                "auth": {"mode": "token", "token": TOKEN},
                "controlUi": {"enabled": False},
                "http": {"endpoints": {"chatCompletions": {"enabled": True}}},
                # Over HTTP this tool is off otherwise.
                "tools": {"allow": ["sessions_send"]},
            },
            "agents": {
                "defaults": {
                    "workspace": str(place / "workspace"),
                    "model": {"primary": "fake/scripted"},
                    "skipBootstrap": True,
                }
            },
            "models": {
                "mode": "merge",
                "providers": {"fake": {**provider, "models": [scripted]}},
            },
        }
        config |= guided(plugin)
        (place / "openclaw.json").write_text(json.dumps(config), "utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._log = (self._place / "log").open("ab")
        self._process = subprocess.Popen(
            [NODE, PROGRAM, "gateway", "run"],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        ends = time.monotonic() + STARTS_S
        while time.monotonic() < ends:
            if self._process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError(f"the gateway did not start:\n{self.log()[-4000:]}")

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._place),
            "OPENCLAW_STATE_DIR": str(self._place / "state"),
            "OPENCLAW_CONFIG_PATH": str(self._place / "openclaw.json"),
        }

    def kill(self) -> None:
        """As the power would."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._log.close()
            self._process = None

    def log(self) -> str:
        return (self._place / "log").read_text("utf-8", errors="replace")

    def ask(self, text: str, session: str) -> str:
        """A turn of the gateway's agent."""
        body = {"model": "openclaw", "messages": [{"role": "user", "content": text}]}
        said = self._post("/v1/chat/completions", body, {"x-openclaw-session-key": session})
        return str(said["choices"][0]["message"]["content"])

    def invoke(self, tool: str, session: str = "main", **arguments: Any) -> Any:
        """Calls a tool as the agent of a session would, without a model."""
        body = {"tool": tool, "sessionKey": session, "args": arguments}
        return self._post("/tools/invoke", body, {})["result"]

    def came_of(self, run: str) -> dict[str, Any]:
        """What the gateway knows of a run, by its id."""
        command = [NODE, PROGRAM, "gateway", "call", "agent.wait", "--json", "--token", TOKEN]
        command += ["--params", json.dumps({"runId": run, "timeoutMs": 1000})]
        done = subprocess.run(
            command,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=STARTS_S,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{done.stdout}\n{done.stderr}")
        said = json.loads(done.stdout[done.stdout.index("{") :])
        assert isinstance(said, dict)
        return said

    def _post(self, path: str, body: Any, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers},
        )
        with urllib.request.urlopen(request, timeout=STARTS_S) as response:
            return json.load(response)
