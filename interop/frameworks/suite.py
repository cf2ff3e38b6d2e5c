# SPDX-License-Identifier: Apache-2.0
"""What an adapter is held to: `python suite.py langgraph` plays every cell of its column of
`docs/interop.md` with a real broker, and writes down what it found."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import signal
import sys
import tempfile
import unittest
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

from stage import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    Kit,
    ProviderError,
    Script,
    asks,
    transfers,
)

from tasuki import AsyncClient, HandoffFailed
from tasuki._adapters import ASK_NAME, current_claim
from tasuki.testing import Broker
from tasuki.worker import AsyncWorker

ROOT = Path(__file__).resolve().parents[2]
INTENT = "Review the change. Do not touch auth."
CONSTRAINT = "Do not touch auth."
WITHIN_S = 120


class Base(unittest.IsolatedAsyncioTestCase):
    """One broker for all, a client for each."""

    broker: ClassVar[Broker]
    kit: ClassVar[Kit]
    kit_name: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = Broker()
        cls.broker.start()
        os.environ["TASUKI_URL"] = cls.broker.url

    @classmethod
    def tearDownClass(cls) -> None:
        cls.broker.__exit__(None, None, None)

    def setUp(self) -> None:
        reason = self.kit.cannot.get(self.cell)
        if reason:
            self.skipTest(reason)

    async def asyncSetUp(self) -> None:
        self.client = AsyncClient(self.broker.url, agent="lead")

    async def asyncTearDown(self) -> None:
        await self.client.aclose()

    @property
    def cell(self) -> str:
        return self._testMethodName.removeprefix("test_")

    def name(self, role: str) -> str:
        """An agent that only this test knows."""
        return f"{role}-{self.cell}".replace("_", "-")[:48]

    async def offer(self, to: str, **more: Any) -> Any:
        """Work with a constraint that must not get lost."""
        payload = {"type": "review_request", "branch": "users-by-id"}
        terms = {"backoff_ms": 100, "attempts": 3}
        return await self.client.handoff(
            to=to,
            intent=INTENT,
            constraints=[CONSTRAINT],
            payload=payload,
            terms=terms,
            **more,
        )

    async def call_below(self, **more: Any) -> tuple[dict[str, Any], Any]:
        """A served agent has a helper do a part: what the helper got, and what came of it."""
        helper, server = self.name("helper"), self.name("server")
        worker = self.kit.serve(asks(helper), server, {helper: "call"}, client=self.client)
        self.sent = await self.offer(server, **more)
        result, envelope = await self.during(
            worker, self.sent.result(), self.answer(helper, "Fine.")
        )
        self.assertIn("They say: Fine.", result.payload["text"])
        return envelope, result

    async def answer(self, agent: str, text: str) -> dict[str, Any]:
        """Plays the agent that was asked, and returns the envelope that it got."""
        async with self.client.claim(agent=agent, wait=100) as claim:
            claim.usage(input_tokens=150, output_tokens=50)
            await claim.complete(text)
            return claim.raw_envelope

    async def refuse(self, agent: str) -> None:
        """Plays an agent that cannot do it."""
        async with self.client.claim(agent=agent, wait=100) as claim:
            await claim.fail("there is no such file", kind="permanent", hint="name another")

    async def together(self, *doing: Any) -> list[Any]:
        return list(await asyncio.wait_for(asyncio.gather(*doing), WITHIN_S))

    async def during(self, worker: AsyncWorker, *doing: Any) -> list[Any]:
        """Runs a worker while other things happen."""
        serving = asyncio.create_task(worker.serve())
        try:
            return await self.together(*doing)
        finally:
            worker.stop()
            await serving

    @asynccontextmanager
    async def program(self, *args: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        """A process of its own, that can be killed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).parent / "program.py"),
            self.kit_name,
            *args,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


class Guide(Base):
    """The program with which the framework's guide begins."""

    async def test_the_program_of_the_guide_works(self) -> None:
        guide = ROOT / "docs" / "guides" / "frameworks" / f"{self.kit_name}.md"
        program = guide.read_text("utf-8").split("```console\n")[1].split("```")[0]
        code = [line for line in program.splitlines() if line.strip()]
        self.assertLessEqual(len(code), 20)
        async with self.kit.guided(program, asks("fact-checker")) as (agent, worker):
            handoff = await self.offer(agent)
            result, envelope = await self.during(
                worker, handoff.result(), self.answer("fact-checker", "It is.")
            )
        self.assertIn("They say: It is.", result.payload["text"])
        self.assertEqual(texts(envelope), [CONSTRAINT])


class Suite(Base):
    """The cells of the table, in its order."""

    async def test_send_a_call(self) -> None:
        helper = self.name("helper")
        said, envelope = await self.together(
            self.kit.call(asks(helper), helper, self.client, constraints=[CONSTRAINT]),
            self.answer(helper, "It is."),
        )
        self.assertIn("It is.", said)
        self.assertEqual(envelope["payload"]["text"], "Is it safe?")
        self.assertEqual(texts(envelope), [CONSTRAINT])

    async def test_send_a_transfer(self) -> None:
        """Below a claim: the task passes to the other agent, with what binds it."""
        helper, server = self.name("helper"), self.name("server")
        worker = self.kit.serve(transfers(helper), server, {helper: "transfer"}, client=self.client)
        handoff = await self.offer(server)
        result, envelope = await self.during(
            worker, handoff.final(), self.answer(helper, "Mine now.")
        )
        self.assertEqual(result.payload["text"], "Mine now.")
        self.assertEqual((texts(envelope), envelope["intent"]), ([CONSTRAINT], INTENT))
        task = await self.client.tasks.get(handoff.task_id)
        self.assertEqual(sorted(one.hop for one in task.handoffs), [0, 1])

    async def test_resume_after_the_sender_died(self) -> None:
        helper = self.name("helper")
        with tempfile.TemporaryDirectory() as place:
            kept = Path(place) / "kept"
            async with self.program("transfer", helper, str(kept)) as sender:
                # It kills itself as soon as it has handed over: there is nobody who waits.
                self.assertEqual(await sender.wait(), -signal.SIGKILL)
            sent = await self.client.handoffs.page(to_agent=helper)
            self.assertEqual(len(sent.handoffs), 1)
            await self.answer(helper, "Later.")
            async with self.program("resume", helper, str(kept)) as later:
                said, _ = await later.communicate()
                self.assertEqual(later.returncode, 0)
            self.assertIn("They say: Later.", said.decode())
            sent = await self.client.handoffs.page(to_agent=helper)
            self.assertEqual(len(sent.handoffs), 1, "resuming creates nothing twice")

    async def test_serve(self) -> None:
        server, script = self.name("server"), Script()
        worker = self.kit.serve(script, server, {}, client=self.client)
        handoff = await self.offer(server)
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "Looks good.")
        for words in (INTENT, CONSTRAINT, "users-by-id", "all else is quoted"):
            self.assertIn(words, script.seen[0])

    async def test_worker_killed(self) -> None:
        """The second worker finishes, and what the first one had asked is not asked again."""
        helper, server = self.name("helper"), self.name("server")
        handoff = await self.offer(server)
        async with self.program("work", server, helper) as worker:
            await self.answer(helper, "It is.")
            assert worker.stdout
            while b"has its answer" not in (line := await worker.stdout.readline()):
                self.assertNotEqual(line, b"", "the worker ended by itself")
            worker.kill()
            await worker.wait()
        second = self.kit.serve(asks(helper), server, {helper: "call"}, client=self.client)
        (result,) = await self.during(second, handoff.result())
        self.assertIn("They say: It is.", result.payload["text"])
        self.assertGreater(len((await handoff.status()).attempts), 1)
        sent = await self.client.handoffs.page(to_agent=helper)
        self.assertEqual(len(sent.handoffs), 1)

    async def test_retryable_failure(self) -> None:
        server = self.name("server")
        script = Script(errors=[ProviderError(503)])
        worker = self.kit.serve(script, server, {}, client=self.client)
        handoff = await self.offer(server)
        (result,) = await self.during(worker, handoff.result())
        self.assertEqual(result.payload["text"], "Looks good.")
        attempts = (await handoff.status()).attempts
        self.assertEqual([one.ended for one in attempts], ["failed_retryable", "completed"])

    async def test_permanent_failure(self) -> None:
        server = self.name("server")
        script = Script(errors=[ProviderError(401)] * 9)
        worker = self.kit.serve(script, server, {}, client=self.client)
        handoff = await self.offer(server)
        with self.assertRaises(HandoffFailed) as raised:
            await self.during(worker, handoff.result())
        self.assertEqual(raised.exception.failure["class"], "permanent")
        self.assertEqual(len((await handoff.status()).attempts), 1)

    async def test_question(self) -> None:
        server = self.name("server")
        script = Script([(ASK_NAME, {"question": "Which database?"})])
        worker = self.kit.serve(script, server, {"": "question"}, client=self.client)
        handoff = await self.offer(server)

        async def answers() -> None:
            question = await handoff.question(timeout=60)
            assert question
            self.assertEqual(question.text, "Which database?")
            await handoff.answer("PostgreSQL")

        result, _ = await self.during(worker, handoff.result(), answers())
        self.assertIn("They say: PostgreSQL", result.payload["text"])
        self.assertEqual((await handoff.status()).state, "completed")

    async def test_constraint_kept(self) -> None:
        """Whether or not the program thinks of it."""
        envelope, result = await self.call_below()
        self.assertEqual((texts(envelope), envelope["intent"]), ([CONSTRAINT], INTENT))
        self.assertEqual(result.action, "completed")

    async def test_budget_kept(self) -> None:
        """What is handed on can spend what the task has left, and no more."""
        envelope, _ = await self.call_below(budget={"tokens": 1000})
        self.assertEqual(envelope["budget"]["tokens"], 1000)
        # The helper said that it used 200 of them, its asker what it used itself.
        task = await self.client.tasks.get(self.sent.task_id)
        used = 200 + 2 * (INPUT_TOKENS + OUTPUT_TOKENS)
        if "usage_reported" in self.kit.cannot:
            used = 200
        assert task.spent
        self.assertEqual(task.spent.tokens, used)

    async def test_usage_reported(self) -> None:
        _, result = await self.call_below()
        self.assertEqual(
            (result.usage.input_tokens, result.usage.output_tokens),
            (2 * INPUT_TOKENS, 2 * OUTPUT_TOKENS),
        )

    async def test_idempotent_re_execution(self) -> None:
        """A run that fails after its call and is done again finds what the call came to."""
        helper, server = self.name("helper"), self.name("server")
        script = asks(helper, errors=[ProviderError(503)], errors_after=1)
        worker = self.kit.serve(script, server, {helper: "call"}, client=self.client)
        handoff = await self.offer(server)
        result, _ = await self.during(worker, handoff.result(), self.answer(helper, "Once."))
        self.assertIn("They say: Once.", result.payload["text"])
        sent = await self.client.handoffs.page(to_agent=helper)
        self.assertEqual(len(sent.handoffs), 1)

    async def test_failed_call_is_text_and_a_mark(self) -> None:
        helper, server = self.name("helper"), self.name("server")
        worker = self.kit.serve(asks(helper), server, {helper: "call"}, client=self.client)
        handoff = await self.offer(server)
        result, _ = await self.during(worker, handoff.result(), self.refuse(helper))
        self.assertIn("there is no such file", result.payload["text"])
        self.assertEqual(result.action, "needs_review")
        self.assertIn(helper, result.gaps[0])

    async def test_lost_claim_ends_the_run(self) -> None:
        helper, server = self.name("helper"), self.name("server")
        script = asks(helper)
        worker = self.kit.serve(script, server, {helper: "call"}, client=self.client, lease=3)
        handoff = await self.offer(server)

        async def cancels() -> None:
            # The helper has it, so the run waits for it.
            async with self.client.claim(agent=helper, wait=100):
                await handoff.cancel()

        serving = asyncio.create_task(worker.serve())
        with self.assertRaises(Exception):  # noqa: B017 - the helper's own claim is over, too.
            await asyncio.wait_for(cancels(), WITHIN_S)
        worker.stop()
        await asyncio.wait_for(serving, WITHIN_S)
        self.assertEqual(len(script.seen), 1, "the model is not asked again")
        self.assertEqual((await handoff.status()).state, "cancelled")

    async def test_message_reaches_the_run(self) -> None:
        helper, server = self.name("helper"), self.name("server")
        held: list[Any] = []
        script = asks(helper, before=lambda _: held.append(current_claim()))
        worker = self.kit.serve(script, server, {helper: "call"}, client=self.client, lease=3)
        handoff = await self.offer(server)

        async def speaks() -> None:
            async with self.client.claim(agent=helper, wait=100) as claim:
                await handoff.message("Mind the migration.")
                await self.kit.hears(held[0])
                await claim.complete("It is.")

        await self.during(worker, handoff.result(), speaks())
        self.assertIn("Mind the migration.", script.seen[-1])


def texts(envelope: dict[str, Any]) -> list[str]:
    """The constraints of an envelope."""
    return [one["text"] for one in envelope["constraints"]]


def load(name: str) -> Kit:
    """The kit of a framework."""
    return importlib.import_module(f"kits.{name}").KIT


class Cells(unittest.TextTestResult):
    """What became of each cell."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.cells: dict[str, str] = {}

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        bad = {id(one) for one, _ in self.failures + self.errors}
        why = {id(one): reason for one, reason in self.skipped}
        if id(test) in why:
            self.cells[test.cell] = f"cannot: {why[id(test)]}"
        else:
            self.cells[test.cell] = "failed" if id(test) in bad else "tested"


def main() -> int:
    name = sys.argv[1]
    Base.kit, Base.kit_name = load(name), name
    # What is made to fail here is said with its traceback, which is of no use here.
    logging.getLogger("tasuki").setLevel(logging.ERROR)
    tests = unittest.TestLoader()
    chosen = sys.argv[2:]
    if chosen:
        among = (Suite, Guide, importlib.import_module(f"kits.{name}").Own)
        suite = unittest.TestSuite(
            next(one for one in among if hasattr(one, f"test_{cell}"))(f"test_{cell}")
            for cell in chosen
        )
    else:
        suite = unittest.TestSuite(
            tests.loadTestsFromTestCase(one)
            for one in (Suite, Guide, importlib.import_module(f"kits.{name}").Own)
        )
    done = unittest.TextTestRunner(resultclass=Cells, verbosity=1).run(suite)
    assert isinstance(done, Cells)
    found = os.environ.get("TASUKI_INTEROP_RESULTS")
    if found and not chosen:
        report = {
            "title": Base.kit.title,
            "version": Base.kit.version(),
            "on": datetime.now(timezone.utc).date().isoformat(),
            "names": Base.kit.names,
            "cells": {n: it for n, it in done.cells.items() if hasattr(Suite, f"test_{n}")},
        }
        Path(found, f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.modules["suite"] = sys.modules["__main__"]
    sys.exit(main())
