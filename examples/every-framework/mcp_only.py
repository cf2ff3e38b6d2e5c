# SPDX-License-Identifier: Apache-2.0
"""Somebody who speaks MCP and nothing else: takes work by a capability, asks, and answers. With
the official client and `tasuki mcp`, in an environment of its own; a model would call the same
tools."""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

WAIT_MS = 30_000
WITHIN_S, PAUSE_S = 120, 0.5
QUESTION = "Which database?"


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Calls a tool, again while the broker is away: what has a key or a claim is safe to repeat."""
    ends = time.monotonic() + WITHIN_S
    while True:
        result = await client.call_tool(tool, arguments)
        if not result.is_error:
            value = result.structured_content
            assert isinstance(value, dict)
            return value
        problem = (result.meta or {}).get("tasuki/problem", {})
        if not problem.get("retryable") or time.monotonic() > ends:
            raise RuntimeError(result.content[0].text)
        await asyncio.sleep(PAUSE_S)


async def main() -> int:
    args = ["mcp", "--agent", "archivist", "--url", os.environ["TASUKI_URL"]]
    server = StdioServerParameters(command=os.environ["TASUKI_BIN"], args=args)
    async with Client(server) as client:
        print("ready", flush=True)
        while True:
            wanted = {"capabilities": ["facts"], "request_id": str(uuid.uuid4())}
            held = await call(client, "claim", **wanted, wait_ms=WAIT_MS)
            if "claim" not in held:
                continue
            answers = [one["answer"] for one in held.get("questions", []) if "answer" in one]
            if not answers:
                print("begun", flush=True)
                await call(client, "ask", claim=held["claim"], text=QUESTION)
                continue
            payload = {"type": "answer", "text": str(answers[-1])}
            await call(client, "complete", claim=held["claim"], payload=payload)
            print("done", flush=True)
            return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
