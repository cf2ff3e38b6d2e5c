# SPDX-License-Identifier: Apache-2.0
"""What the tests of every framework share: a real broker, and what each adapter must do."""

from __future__ import annotations

import asyncio
import os
import unittest
from pathlib import Path
from typing import Any

from tasuki import AsyncClient
from tasuki.testing import Broker
from tasuki.worker import AsyncWorker

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TASUKI_BIN", str(ROOT / "target" / "debug" / "tasuki"))

INTENT = "Review the change. Do not touch auth."
CONSTRAINT = "Do not touch auth."


class Stage(unittest.IsolatedAsyncioTestCase):
    """A broker for all tests of a file, and a client for each."""

    broker: Broker

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = Broker()
        cls.broker.start()
        os.environ["TASUKI_URL"] = cls.broker.url

    @classmethod
    def tearDownClass(cls) -> None:
        cls.broker.__exit__(None, None, None)

    async def asyncSetUp(self) -> None:
        self.client = AsyncClient(self.broker.url, agent="lead")

    async def asyncTearDown(self) -> None:
        await self.client.aclose()

    async def offer(self, to: str) -> Any:
        """Work with a constraint that must not get lost."""
        payload = {"type": "review_request", "branch": "users-by-id"}
        return await self.client.handoff(
            to=to, intent=INTENT, constraints=[CONSTRAINT], payload=payload
        )

    async def answer(self, agent: str, text: str) -> dict[str, Any]:
        """Plays the agent that was asked, and returns the envelope that it got."""
        async with self.client.claim(agent=agent, wait=30) as claim:
            await claim.complete(text)
            return claim.raw_envelope

    async def refuse(self, agent: str) -> None:
        """Plays an agent that cannot do it."""
        async with self.client.claim(agent=agent, wait=30) as claim:
            await claim.fail("there is no such file", kind="permanent", hint="name another")

    async def during(self, worker: AsyncWorker, *doing: Any) -> list[Any]:
        """Runs a worker while other things happen."""
        serving = asyncio.create_task(worker.serve())
        try:
            return list(await asyncio.wait_for(asyncio.gather(*doing), 60))
        finally:
            worker.stop()
            await serving

    def texts(self, envelope: dict[str, Any]) -> list[str]:
        """The constraints of an envelope."""
        return [one["text"] for one in envelope["constraints"]]
