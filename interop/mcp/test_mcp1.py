# SPDX-License-Identifier: Apache-2.0
"""The official Python client, the last of version 1: it begins with a handshake."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker import TASUKI
from mcp import ClientSession, StdioServerParameters
from mcp import types as mcp_types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl
from story import PATIENCE, WORK, Stories, failed, only


class One:
    """The client as the stories use it."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return only(await self.session.call_tool(tool, arguments))

    async def fails(self, tool: str, arguments: dict[str, Any]) -> str:
        return failed(await self.session.call_tool(tool, arguments))

    async def read(self, uri: str) -> str:
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text

    async def names(self) -> dict[str, list[str]]:
        tools = await self.session.list_tools()
        templates = await self.session.list_resource_templates()
        prompts = await self.session.list_prompts()
        return {
            "tools": [one.name for one in tools.tools],
            "templates": [one.name for one in templates.resourceTemplates],
            "prompts": [one.name for one in prompts.prompts],
        }


@asynccontextmanager
async def over_http(url: str) -> AsyncIterator[One]:
    async with (
        streamablehttp_client(url) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield One(session)


@asynccontextmanager
async def over_stdio(command: str, args: list[str], told: Any = None) -> AsyncIterator[One]:
    process = StdioServerParameters(command=command, args=args)
    async with (
        stdio_client(process) as (read, write),
        ClientSession(read, write, message_handler=told) as session,
    ):
        await session.initialize()
        yield One(session)


class Version1(Stories):
    over_http = staticmethod(over_http)
    over_stdio = staticmethod(over_stdio)

    async def test_who_subscribes_over_stdio_is_told(self) -> None:
        changes: asyncio.Queue[str] = asyncio.Queue()

        async def told(message: Any) -> None:
            root = getattr(message, "root", None)
            if isinstance(root, mcp_types.ResourceUpdatedNotification):
                await changes.put(str(root.params.uri))

        args = ["mcp", "--agent", "planner", "--url", self.broker.url]
        async with over_stdio(TASUKI, args, told) as planner:
            sent = await planner.call("send", WORK)
            story = f"tasuki://tasks/{sent['task_id']}/story"
            await planner.session.subscribe_resource(AnyUrl(story))
            await planner.call("cancel", {"handoff_id": sent["handoff_id"]})
            self.assertEqual(await asyncio.wait_for(changes.get(), PATIENCE), story)


del Stories

if __name__ == "__main__":
    unittest.main()
