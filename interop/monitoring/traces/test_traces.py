# SPDX-License-Identifier: Apache-2.0
"""A receiver of OpenTelemetry's protocol that reads what the real broker sends with
OpenTelemetry's own classes. A field that they do not know is a mistake, and so is a request that
they cannot read."""

from __future__ import annotations

import http.server
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from google.protobuf import unknown_fields
from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

ROOT = Path(__file__).resolve().parents[3]
BINARY = os.environ.get("TASUKI_BIN", str(ROOT / "target" / "debug" / "tasuki"))
PATIENCE = 60.0
MINE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def all_known(message: Message) -> None:
    """Fails on a field that the classes do not know, wherever it is."""
    assert not len(unknown_fields.UnknownFieldSet(message)), f"unknown fields in {type(message)}"
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in [value] if isinstance(value, Message) else value:
                all_known(inner)


class Receiver:
    """Takes spans; answers with an error as often as it is told to. Also an agent with a URL."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.seen: list[dict[str, str]] = []
        self.failures = 0
        self.wrong: list[str] = []
        self.changed = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/inbox":
                    receiver.note(dict(self.headers))
                    self.answer(200, b'{"payload": {"type": "done"}}', "application/json")
                elif receiver.take(self.path, dict(self.headers), body):
                    self.answer(200, b"", "application/x-protobuf")
                else:
                    self.answer(503, b"", "text/plain")

            def answer(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def note(self, headers: dict[str, str]) -> None:
        with self.changed:
            self.seen.append({name.lower(): value for name, value in headers.items()})
            self.changed.notify_all()

    def take(self, path: str, headers: dict[str, str], body: bytes) -> bool:
        with self.changed:
            if self.failures > 0:
                self.failures -= 1
                self.changed.notify_all()
                return False
            try:
                assert path == "/v1/traces", path
                kind = {name.lower(): value for name, value in headers.items()}["content-type"]
                assert kind == "application/x-protobuf", kind
                request = ExportTraceServiceRequest()
                request.ParseFromString(body)
                all_known(request)
                for of_resource in request.resource_spans:
                    told = {
                        one.key: one.value.string_value for one in of_resource.resource.attributes
                    }
                    self.services.add(told["service.name"])
                    for of_scope in of_resource.scope_spans:
                        self.spans.extend(of_scope.spans)
            except Exception as error:  # Told by the test, not by the thread of a server.
                self.wrong.append(f"{type(error).__name__}: {error}")
            self.changed.notify_all()
            return True

    def wait_for(self, what: str, found: Any) -> Any:
        """Waits until something has come."""
        until = time.monotonic() + PATIENCE
        with self.changed:
            while not (result := found()):
                left = until - time.monotonic()
                names = [span.name for span in self.spans]
                assert left > 0, f"{what} did not come; there are {names}, wrong: {self.wrong}"
                self.changed.wait(left)
            assert not self.wrong, self.wrong
            return result

    def span(self, trace: str, name: str) -> Span:
        def found() -> Span | None:
            for span in self.spans:
                if span.trace_id.hex() == trace and span.name == name:
                    return span
            return None

        return self.wait_for(f"{name} in {trace}", found)


class Broker:
    def __init__(self, *words: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.words = words
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                BINARY,
                "serve",
                "--listen",
                f"127.0.0.1:{self.port}",
                "--data",
                self.folder.name + "/data",
                "--until-stdin-closes",
                "--webhook-allow",
                "127.0.0.0/8",
                *self.words,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, f"the broker ended: {self.process.returncode}"
                time.sleep(0.05)
        raise AssertionError("the broker is not ready")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdin
        self.process.stdin.close()

    def stop(self) -> None:
        self.kill()
        self.folder.cleanup()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        if data:
            request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return json.loads(reply.read())

    def publish(self, manifest: Any) -> None:
        words = [BINARY, "agent", "publish", json.dumps(manifest)]
        done = subprocess.run(
            words, env={**os.environ, "TASUKI_URL": self.url}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def offer(self, to: str, more: Any = None, **headers: str) -> Any:
        offer = {
            "from_agent": "planner",
            "to": {"agent": to},
            "intent": "Ship it",
            "payload": {"type": "change"},
        }
        return self.ask("POST", "/v1/handoffs", {**offer, **(more or {})}, **headers)

    def claim(self, agent: str) -> Any:
        return self.ask("POST", "/v1/claims", {"agent": agent, "wait_ms": 10_000})["claims"][0]

    def complete(self, claim: Any, **more: Any) -> None:
        proof = {
            "claim_id": claim["claim_id"],
            "fence": claim["fence"],
            "payload": {"type": "done"},
        }
        self.ask("POST", f"/v1/handoffs/{claim['handoff_id']}/complete", {**proof, **more})


def digits(name: str) -> str:
    """The trace of a task: the number in its id."""
    value = 0
    for digit in name.split("_")[1]:
        value = value << 5 | DIGITS.index(digit)
    return f"{value:032x}"


def told(span: Span) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


class Traces(unittest.TestCase):
    def setUp(self) -> None:
        self.receiver = Receiver()
        self.addCleanup(self.receiver.server.shutdown)

    def broker(self, *words: str) -> Broker:
        broker = Broker("--otlp-url", self.receiver.url, *words)
        self.addCleanup(broker.stop)
        return broker

    def test_a_task_of_two_hops_is_one_trace_whose_links_lead_back(self) -> None:
        broker = self.broker()
        task = digits(broker.offer("coder")["task_id"])
        claim = broker.claim("coder")
        broker.complete(
            claim, follow_ups=[{"to": {"agent": "reviewer"}, "payload": {"type": "change"}}]
        )
        broker.complete(broker.claim("reviewer"))
        root = self.receiver.span(task, "task coder")
        names = sorted(span.name for span in self.receiver.spans)
        steps = ["ack", "process", "queue", "receive", "send"]
        self.assertEqual(
            names,
            [
                *sorted(f"{step} {who}" for step in steps for who in ("coder", "reviewer")),
                "task coder",
            ],
        )
        self.assertEqual({span.trace_id.hex() for span in self.receiver.spans}, {task})
        self.assertEqual(self.receiver.services, {"tasuki"})
        first, second = (
            self.receiver.span(task, "send coder"),
            self.receiver.span(task, "send reviewer"),
        )
        self.assertEqual(
            [root.kind, first.kind], [Span.SPAN_KIND_INTERNAL, Span.SPAN_KIND_PRODUCER]
        )
        self.assertEqual((root.parent_span_id, first.parent_span_id), (b"", root.span_id))
        self.assertEqual([link.span_id for link in second.links], [first.span_id])
        process = self.receiver.span(task, "process reviewer")
        self.assertEqual(
            (process.kind, process.parent_span_id), (Span.SPAN_KIND_CONSUMER, second.span_id)
        )
        attributes = told(process)
        self.assertEqual(attributes["messaging.system"], "tasuki")
        self.assertEqual(attributes["gen_ai.agent.name"], "reviewer")
        self.assertEqual((attributes["handoff.hop"], attributes["handoff.attempt"]), (1, 1))
        self.assertLessEqual(root.start_time_unix_nano, process.start_time_unix_nano)
        self.assertLessEqual(process.end_time_unix_nano, root.end_time_unix_nano)
        # Whoever worked on it finds the trace in the envelope.
        self.assertEqual(
            claim["envelope"]["metadata"]["traceparent"], f"00-{task}-{first.span_id.hex()}-01"
        )

    def test_a_context_is_taken_at_every_door(self) -> None:
        # Of what nobody says anything about, nothing is recorded.
        broker = self.broker("--trace-ratio", "0")
        broker.publish({"agent_id": "coder", "capabilities": [{"name": "write-code"}]})
        silent = broker.offer("coder")
        broker.complete(broker.claim("coder"))
        traces = {}
        for number, door in enumerate(("header", "metadata", "mcp", "a2a")):
            traces[door] = MINE.replace("0e0e4736", f"0e0e473{number}")
        broker.offer("coder", traceparent=traces["header"], tracestate="a=1")
        broker.offer(
            "coder", {"metadata": {"traceparent": traces["metadata"]}}, traceparent=traces["header"]
        )
        self.call_mcp(broker, traces["mcp"])
        broker.ask(
            "POST",
            "/agents/coder/message:send",
            {
                "message": {
                    "messageId": "m-1",
                    "role": "ROLE_USER",
                    "parts": [{"text": "Ship it"}],
                    "metadata": {"traceparent": traces["a2a"]},
                },
                "configuration": {"returnImmediately": True},
            },
        )
        for door, context in traces.items():
            trace, parent = context.split("-")[1:3]
            span = self.receiver.span(trace, "send coder")
            self.assertEqual(span.parent_span_id.hex(), parent, door)
        first = broker.claim("coder")["envelope"]["metadata"]
        self.assertEqual(first, {"traceparent": traces["header"], "tracestate": "a=1"})
        recorded = {span.trace_id.hex() for span in self.receiver.spans}
        self.assertNotIn(digits(silent["task_id"]), recorded)

    def call_mcp(self, broker: Broker, context: str) -> None:
        request = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "send",
                "_meta": {"traceparent": context},
                "arguments": {
                    "to": {"agent": "coder"},
                    "intent": "Ship it",
                    "payload": {"type": "change"},
                },
            },
        }
        body = json.dumps(request).encode()
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-06-18",
        }
        url = f"{broker.url}/mcp?agent=planner"
        with urllib.request.urlopen(
            urllib.request.Request(url, data=body, headers=headers), timeout=PATIENCE
        ) as reply:
            answer = reply.read().decode()
        self.assertNotIn('"isError":true', answer)

    def test_work_that_is_brought_to_an_agent_brings_its_trace(self) -> None:
        broker = self.broker()
        broker.publish(
            {
                "agent_id": "hook",
                "delivery": {"mode": "webhook", "url": f"{self.receiver.url}/inbox"},
            }
        )
        broker.offer("hook", traceparent=MINE, tracestate="a=1")
        headers = self.receiver.wait_for("the delivery", lambda: self.receiver.seen)[0]
        self.assertEqual((headers["traceparent"], headers["tracestate"]), (MINE, "a=1"))
        self.receiver.span(MINE.split("-")[1], "task hook")

    def test_a_receiver_that_fails_and_a_broker_that_is_killed_lose_no_span(self) -> None:
        self.receiver.failures = 10**9
        broker = self.broker()
        task = digits(broker.offer("coder")["task_id"])
        claim = broker.claim("coder")
        proof = {"claim_id": claim["claim_id"], "fence": claim["fence"]}
        failure = {
            "class": "permanent",
            "type": "missing",
            "message": "no such file",
            "hint": "add it",
        }
        broker.ask("POST", f"/v1/handoffs/{claim['handoff_id']}/fail", {**proof, **failure})
        self.receiver.wait_for("a try", lambda: self.receiver.failures < 10**9)
        self.assertEqual(self.receiver.spans, [])
        broker.kill()
        self.receiver.failures = 0
        broker.start()
        dead = self.receiver.span(task, "dead_letter coder")
        self.assertEqual(
            (dead.status.code, dead.status.message), (Status.STATUS_CODE_ERROR, "permanent_failure")
        )
        process = self.receiver.span(task, "process coder")
        self.assertEqual(told(process)["error.type"], "failed_permanent")
        send = self.receiver.span(task, "send coder")
        self.assertEqual(process.parent_span_id, send.span_id)


if __name__ == "__main__":
    unittest.main()
