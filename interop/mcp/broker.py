# SPDX-License-Identifier: Apache-2.0
"""A real broker on loopback, for as long as a test needs it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TASUKI = os.environ.get("TASUKI_BIN", str(ROOT / "target" / "debug" / "tasuki"))


class Broker:
    """Starts on a free port, and again on the same one."""

    def __init__(self) -> None:
        self.data = tempfile.TemporaryDirectory()
        self.address = "127.0.0.1:0"
        self.url = ""

    def start(self) -> None:
        command = [TASUKI, "serve", "--json", "--data", self.data.name]
        command += ["--listen", self.address, "--until-stdin-closes"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["api"].removesuffix("/v1")
        self.address = self.url.removeprefix("http://")

    def stop(self) -> None:
        """As its operator does: what is under way may finish."""
        self.process.terminate()
        self.process.communicate(timeout=60)

    def crash(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=60)

    def mcp(self, agent: str) -> str:
        """The address for an agent's client."""
        return f"{self.url}/mcp?agent={agent}"

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.data.cleanup()
