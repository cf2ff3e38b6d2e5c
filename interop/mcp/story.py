# SPDX-License-Identifier: Apache-2.0
"""Work from the one who sends it to the one who does it and back, through an official client: the
same story for each of them, over HTTP and over standard input and output."""

from __future__ import annotations

import asyncio
import tempfile
import unittest
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from broker import TASUKI, Broker

WORK = {
    "to": {"agent": "coder"},
    "intent": "Add GET /users/{id}.",
    "constraints": ["do not touch the database"],
    "payload": {"type": "request", "path": "/users/{id}"},
}
PATIENCE = 60


class Client(Protocol):
    """What the stories need of a client. A call that fails is an AssertionError with its text."""

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]: ...
    async def fails(self, tool: str, arguments: dict[str, Any]) -> str: ...
    async def read(self, uri: str) -> str: ...
    async def names(self) -> dict[str, list[str]]: ...


Http = Callable[[str], AbstractAsyncContextManager[Client]]
Stdio = Callable[[str, list[str]], AbstractAsyncContextManager[Client]]


class Stories(unittest.IsolatedAsyncioTestCase):
    """Told by each client: `over_http` and `over_stdio` are its own."""

    over_http: Http
    over_stdio: Stdio

    async def asyncSetUp(self) -> None:
        if type(self) is Stories:
            self.skipTest("told by the clients")
        self.broker = Broker()
        self.broker.start()
        self.addCleanup(self.broker.data.cleanup)
        self.addCleanup(self.broker.stop)

    async def whole_story(self, again: Callable[[], None] = lambda: None) -> None:
        http = type(self).over_http
        async with http(self.broker.mcp("planner")) as planner:
            sent = await planner.call("send", WORK)
        handoff = sent["handoff_id"]
        again()
        async with http(self.broker.mcp("coder")) as coder:
            held = await coder.call("claim", {"wait_ms": 30_000})
            self.assertEqual(held["payload"], WORK["payload"])
            self.assertIn("do not touch the database", held["prompt"])
            await coder.call("progress", {"claim": held["claim"], "percent": 10})
            await coder.call("ask", {"claim": held["claim"], "text": "Which framework?"})
        again()
        async with http(self.broker.mcp("planner")) as planner:
            seen = await planner.call("status", {"handoff_id": handoff})
            self.assertEqual(seen["open_question"]["text"], "Which framework?")
            await planner.call("answer", {"handoff_id": handoff, "answer": "axum"})
        again()
        async with http(self.broker.mcp("coder")) as coder:
            held_again = await coder.call("claim", {"handoff_id": handoff, "wait_ms": 30_000})
            self.assertEqual(held_again["questions"][0]["answer"], "axum")
            late = {"claim": held["claim"], "payload": {"type": "patch"}}
            self.assertIn("stale_claim", await coder.fails("complete", late))
        again()
        async with http(self.broker.mcp("coder")) as coder:
            result = {"type": "patch", "diff": "+1"}
            await coder.call("complete", {"claim": held_again["claim"], "payload": result})
        again()
        async with http(self.broker.mcp("planner")) as planner:
            seen = await planner.call("status", {"handoff_id": handoff, "wait_ms": 30_000})
            self.assertTrue(seen["finished"])
            self.assertEqual(seen["output"]["payload"], result)
            story = await planner.read(f"tasuki://tasks/{sent['task_id']}/story")
            self.assertIn("Which framework?", story)

    async def test_the_whole_story_over_http(self) -> None:
        await asyncio.wait_for(self.whole_story(), PATIENCE)

    async def test_the_whole_story_with_a_crash_between_any_two_steps(self) -> None:
        def again() -> None:
            self.broker.crash()
            self.broker.start()

        await asyncio.wait_for(self.whole_story(again), PATIENCE)

    async def test_tools_resources_and_prompts_are_found(self) -> None:
        async with type(self).over_http(self.broker.mcp("coder")) as coder:
            names = await coder.names()
        self.assertLessEqual(len(names["tools"]), 20)
        self.assertIn("claim", names["tools"])
        self.assertEqual(len(names["templates"]), 4)
        self.assertEqual(names["prompts"], ["take_work", "hand_over", "review_dead_letter"])

    async def test_a_call_waits_for_somebody_elses_work(self) -> None:
        http = type(self).over_http

        async def work() -> None:
            async with http(self.broker.mcp("coder")) as coder:
                held = await coder.call("claim", {"wait_ms": 30_000})
                payload = {"type": "answer", "text": "42"}
                await coder.call("complete", {"claim": held["claim"], "payload": payload})

        async def ask() -> dict[str, Any]:
            async with http(self.broker.mcp("planner")) as planner:
                return await planner.call("call", {**WORK, "wait_ms": 30_000})

        _, answer = await asyncio.wait_for(asyncio.gather(work(), ask()), PATIENCE)
        self.assertEqual(answer["output"]["payload"]["text"], "42")

    async def test_a_process_that_ends_gives_back_what_it_holds(self) -> None:
        http, stdio = type(self).over_http, type(self).over_stdio
        async with http(self.broker.mcp("planner")) as planner:
            sent = await planner.call("send", WORK)
            args = ["mcp", "--agent", "coder", "--url", self.broker.url]
            async with stdio(TASUKI, args) as coder:
                held = await coder.call("claim", {"wait_ms": 30_000})
                self.assertEqual(held["handoff_id"], sent["handoff_id"])
            async with stdio(TASUKI, args) as coder:
                held = await coder.call("claim", {"wait_ms": 30_000})
                self.assertEqual(held["handoff_id"], sent["handoff_id"])
                done = {"claim": held["claim"], "payload": {"type": "done"}}
                await coder.call("complete", done)

    async def test_a_process_may_keep_what_it_holds(self) -> None:
        http, stdio = type(self).over_http, type(self).over_stdio
        async with http(self.broker.mcp("planner")) as planner:
            await planner.call("send", WORK)
        args = ["mcp", "--agent", "coder", "--url", self.broker.url, "--at-end", "keep"]
        async with stdio(TASUKI, args) as coder:
            held = await coder.call("claim", {"wait_ms": 30_000})
        async with stdio(TASUKI, args) as coder:
            done = {"claim": held["claim"], "payload": {"type": "done"}}
            self.assertEqual((await coder.call("complete", done))["state"], "completed")

    async def test_without_a_server_the_data_stays(self) -> None:
        stdio = type(self).over_stdio
        with tempfile.TemporaryDirectory() as data:
            async with stdio(TASUKI, ["mcp", "--agent", "planner", "--data", data]) as planner:
                sent = await planner.call("send", WORK)
            async with stdio(TASUKI, ["mcp", "--agent", "coder", "--data", data]) as coder:
                held = await coder.call("claim", {})
                self.assertEqual(held["handoff_id"], sent["handoff_id"])
                done = {"claim": held["claim"], "payload": {"type": "done"}}
                await coder.call("complete", done)


def only(result: Any) -> dict[str, Any]:
    """The answer of a call that succeeded, whatever the client's names for its parts are."""
    error = getattr(result, "is_error", getattr(result, "isError", False))
    assert not error, result.content[0].text
    value = getattr(result, "structured_content", getattr(result, "structuredContent", None))
    assert isinstance(value, dict), result
    return value


def failed(result: Any) -> str:
    """The text of a call that failed."""
    assert getattr(result, "is_error", getattr(result, "isError", False)), result
    text = result.content[0].text
    assert isinstance(text, str)
    return text
