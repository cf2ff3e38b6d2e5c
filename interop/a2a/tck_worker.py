# SPDX-License-Identifier: Apache-2.0
"""The agent that the compatibility kit talks to: a worker that pulls, and does what the beginning
of a message's id says (`scenarios/*.feature` of the kit)."""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Any

TEXT = {"text": "Generated text content"}
STREAMED = {"text": "Streamed text content"}
FILE = {
    "raw": base64.b64encode(b"File content from TCK").decode(),
    "filename": "output.txt",
    "mediaType": "text/plain",
}
URL = {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}
DATA = {"data": {"key": "value", "count": 42}}
# The longest beginning that fits counts.
PARTS: dict[str, list[dict[str, Any]]] = {
    "tck-artifact-text": [TEXT],
    "tck-artifact-file": [FILE],
    "tck-artifact-file-url": [URL],
    "tck-artifact-data": [DATA],
    "tck-stream-001": [{"text": "Stream hello from TCK"}],
    "tck-stream-003": [{"text": "Stream task lifecycle"}],
    "tck-stream-ordering-001": [{"text": "Ordered output"}],
    "tck-stream-artifact-text": [STREAMED],
    "tck-stream-artifact-file": [FILE],
    "tck-message-response": [{"text": "Direct message response"}],
    "tck-complete-task": [{"text": "Hello from TCK"}],
}
# Longer than the kit waits for a piece of a stream, twice.
LONG_S = 4


class Worker:
    def __init__(self, url: str, agent: str) -> None:
        self.url, self.agent = url, agent

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        asked = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(asked, timeout=90) as reply:
            said: dict[str, Any] = json.load(reply)
            return said

    def serve(self) -> None:
        while True:
            try:
                wish = {"agent": self.agent, "max": 1, "wait_ms": 50_000}
                for held in self.ask("/v1/claims", wish)["claims"]:
                    self.work(held)
            except urllib.error.HTTPError as error:
                # It was cancelled meanwhile, which is a thing that the kit tries.
                print(error.code, error.read().decode(), file=sys.stderr)
            except OSError:
                return

    def work(self, held: dict[str, Any]) -> None:
        payload = held["envelope"]["payload"]
        kept = held["envelope"].get("metadata", {}).get("a2a", {})
        message = payload.get("message") or kept.get("message") or {}
        said = str(message.get("messageId", ""))
        proof = {"claim_id": held["claim_id"], "fence": held["fence"]}
        at = f"/v1/handoffs/{held['handoff_id']}"

        def act(what: str, **more: Any) -> None:
            self.ask(f"{at}/{what}", {**proof, **more})

        def brought(*artifacts: dict[str, Any]) -> None:
            act("complete", payload={"type": "a2a.artifacts", "artifacts": list(artifacts)})

        if said.startswith("tck-input-required") and not held.get("questions"):
            act("ask", text="What else?")
        elif said.startswith("tck-reject-task"):
            self.ask(f"{at}/decline", {**proof, "agent": self.agent, "reason": "rejected"})
        elif said.startswith("tck-stream-artifact-chunked"):
            chunk = {"name": "chunked", "type": "text/plain"}
            first = {"parts": [{"text": "chunk-1 "}], "last_chunk": False}
            last = {"parts": [{"text": "chunk-2"}], "append": True, "last_chunk": True}
            act("artifacts", **chunk, content=first)
            act("artifacts", **chunk, content=last)
            brought()
        elif said.startswith("test-resubscribe-message-id"):
            time.sleep(LONG_S)
            brought()
        else:
            fits = [name for name in PARTS if said.startswith(name)]
            parts = PARTS[max(fits, key=len)] if fits else [{"text": "Hello from TCK"}]
            brought({"artifactId": "result", "name": "result", "parts": parts})


if __name__ == "__main__":
    url, agent = sys.argv[1:]
    for _ in range(7):
        threading.Thread(target=Worker(url, agent).serve, daemon=True).start()
    Worker(url, agent).serve()
