# SPDX-License-Identifier: Apache-2.0
"""The official Python client, version 2: it speaks 2026-07-28."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from story import PATIENCE, WORK, Stories, failed, only


class Two:
    """The client as the stories use it."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return only(await self.client.call_tool(tool, arguments))

    async def fails(self, tool: str, arguments: dict[str, Any]) -> str:
        return failed(await self.client.call_tool(tool, arguments))

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri)).contents[0].text

    async def names(self) -> dict[str, list[str]]:
        tools = await self.client.list_tools()
        templates = await self.client.list_resource_templates()
        prompts = await self.client.list_prompts()
        return {
            "tools": [one.name for one in tools.tools],
            "templates": [one.name for one in templates.resource_templates],
            "prompts": [one.name for one in prompts.prompts],
        }


@asynccontextmanager
async def over_http(url: str) -> AsyncIterator[Two]:
    async with Client(url) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        yield Two(client)


@asynccontextmanager
async def over_stdio(command: str, args: list[str]) -> AsyncIterator[Two]:
    async with Client(StdioServerParameters(command=command, args=args)) as client:
        yield Two(client)


class Version2(Stories):
    over_http = staticmethod(over_http)
    over_stdio = staticmethod(over_stdio)

    async def test_who_listens_is_told(self) -> None:
        async with over_http(self.broker.mcp("planner")) as planner:
            sent = await planner.call("send", WORK)
            story = f"tasuki://tasks/{sent['task_id']}/story"

            async def told() -> str:
                async with planner.client.listen(resource_subscriptions=[story]) as changes:
                    # The acknowledgement comes before the broker listens: see docs/interop.md.
                    await asyncio.sleep(2)
                    await planner.call("cancel", {"handoff_id": sent["handoff_id"]})
                    async for change in changes:
                        return change.uri
                return ""

            self.assertEqual(await asyncio.wait_for(told(), PATIENCE), story)


class Legacy(Stories):
    """The same client, told to begin with a handshake."""

    @staticmethod
    @asynccontextmanager
    async def over_http(url: str) -> AsyncIterator[Two]:
        async with Client(url, mode="legacy") as client:
            assert client.protocol_version == "2025-11-25", client.protocol_version
            yield Two(client)

    over_stdio = staticmethod(over_stdio)


del Stories

if __name__ == "__main__":
    unittest.main()
