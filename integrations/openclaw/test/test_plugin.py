# SPDX-License-Identifier: Apache-2.0
"""The plugin in a real gateway, with a real broker: `interop/frameworks/run openclaw`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import unittest
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

from gateway import Gateway, Model, texts, versions

from tasuki import Client
from tasuki.testing import Broker

CONSTRAINT = "Do not touch auth."
INTENT = f"Review the change. {CONSTRAINT}"
WITHIN_S = 120


def news(messages: list[dict[str, Any]]) -> str:
    """What was said to an agent since it last spoke."""
    spoke = [at for at, one in enumerate(messages) if one["role"] == "assistant"]
    return "\n".join(texts(messages[spoke[-1] + 1 if spoke else 0 :], "user"))


def helped(messages: list[dict[str, Any]]) -> str | tuple[str, dict[str, Any]]:
    """A model that has a helper do a part, and repeats what it says."""
    outputs = texts(messages, "tool")
    if outputs:
        return f"They say: {outputs[-1]}"
    return ("tasuki_handoff", {"to": "helper", "task": "Is it safe?"})


class Plugin(unittest.TestCase):
    """One gateway for all."""

    broker: ClassVar[Broker]
    gateway: ClassVar[Gateway]
    model: ClassVar[Model]

    @classmethod
    def setUpClass(cls) -> None:
        place = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.broker = cls.enterClassContext(Broker())
        cls.model = Model()
        cls.addClassCleanup(cls.model.close)
        config = {"url": cls.broker.url}
        cls.gateway = Gateway(place, cls.model.url, config)
        cls.addClassCleanup(cls.gateway.kill)
        cls.gateway.start()

    def setUp(self) -> None:
        self.person = self.enterContext(Client(self.broker.url, agent="person"))

    def offer(self) -> Any:
        constraints = [{"kind": "must_not", "text": CONSTRAINT}]
        return self.person.handoff(to="reviewer", intent=INTENT, constraints=constraints)

    def answer(self, text: str) -> dict[str, Any]:
        """Plays the helper, and returns the envelope that it got."""
        with self.person.claim(agent="helper", wait=WITHIN_S) as claim:
            claim.complete(text)
            return claim.raw_envelope

    def test_1_an_agent_of_the_gateway_hands_over_and_gets_the_result(self) -> None:
        """an agent of the gateway hands work over with `tasuki_handoff`, and gets the result"""
        self.model.reply = helped
        said: list[str] = []
        asking = threading.Thread(
            target=lambda: said.append(self.gateway.ask("Go.", "agent:main:asker"))
        )
        asking.start()
        envelope = self.answer("It is.")
        asking.join(WITHIN_S)
        self.assertEqual(envelope["payload"]["text"], "Is it safe?")
        self.assertIn("They say:", said[0])
        self.assertIn("It is.", said[0])

    def test_2_an_agent_of_the_gateway_takes_work_and_hands_a_part_on(self) -> None:
        """an agent of the gateway takes work and hands a part on: intent and constraints arrive
        there unchanged, and what its model used is reported"""
        self.model.reply = helped
        handoff = self.offer()
        envelope = self.answer("It is.")
        result = handoff.result(timeout=WITHIN_S)
        self.assertEqual(result.payload["text"], "They say: It is.")
        # What binds the work binds the part, whether or not anybody thought of it.
        self.assertEqual([one["text"] for one in envelope["constraints"]], [CONSTRAINT])
        self.assertEqual(envelope["intent"], INTENT)
        self.assertEqual((result.usage.input_tokens, result.usage.output_tokens), (14, 6))

    def test_3_statuses_are_the_truth(self) -> None:
        """`tasuki_status` tells the truth: waits for nobody, has a result, is not there"""
        words = self.gateway.invoke("tasuki_handoff", to="nobody", task="Do it.", wait=False)
        text = words["content"][0]["text"]
        self.assertRegex(text, r"^handoff_\w+ has no result: it waits for nobody\. It is stored")
        id = text.split()[0]
        again = self.gateway.invoke("tasuki_status", handoff=id)["content"][0]["text"]
        self.assertEqual(again.split(".")[0], text.split(".")[0])
        with self.person.claim(agent="nobody", wait=WITHIN_S) as claim:
            claim.complete("Done.")
        done = self.gateway.invoke("tasuki_status", handoff=id)["content"][0]["text"]
        self.assertIn(f"{id} is completed", done)
        self.assertIn("Done.", done)
        wrong = self.gateway.invoke("tasuki_status", handoff="handoff_none")["content"][0]["text"]
        self.assertIn("cannot be told of", wrong)

    def test_4_gateway_and_broker_are_killed_and_the_sender_gets_its_result_all_the_same(
        self,
    ) -> None:
        """gateway and broker are killed in the middle of a turn: `tasuki_status` has the result all
        the same; with `sessions_send` the target's turn is done again, and the sender not told"""
        peer, asker = "agent:main:peer", "agent:main:asker"
        self.model.reply = lambda _: "Hello."
        self.gateway.ask("Hello.", peer)
        self.gateway.ask("Hello.", asker)

        # With `sessions_send` and without a restart: the answer is announced to the sender.
        announced = threading.Event()

        def first(messages: list[dict[str, Any]]) -> str:
            last = news(messages)
            if "First answer." in last:
                announced.set()
                return "REPLY_SKIP"
            return "First answer."

        self.model.reply = first
        sent = self.send(peer, asker, "Review the first.")
        self.assertTrue(announced.wait(WITHIN_S), "without a restart the sender is told")
        run = self.gateway.came_of(sent["runId"])
        self.assertEqual((run["status"], run["terminalReply"]["text"]), ("ok", "First answer."))

        # The same again, and a handoff beside it: both are under way when everything is killed.
        busy = {"Review the second.": threading.Event(), INTENT: threading.Event()}
        thinks, resumed = threading.Event(), threading.Event()

        def second(messages: list[dict[str, Any]]) -> str:
            last = news(messages)
            for words, begun in busy.items():
                if words in last and not thinks.is_set():
                    begun.set()
                    thinks.wait(WITHIN_S)
            if "interrupted by a gateway restart" in last:
                resumed.set()
            return "Second answer."

        self.model.reply = second
        sent = self.send(peer, asker, "Review the second.")
        given = self.gateway.invoke("tasuki_handoff", asker, to="reviewer", task=INTENT, wait=False)
        handoff = given["content"][0]["text"].split()[0]
        for words, begun in busy.items():
            self.assertTrue(begun.wait(WITHIN_S), f"{words} is under way")
        self.gateway.kill()
        self.broker.kill()
        thinks.set()
        self.broker.start()
        self.gateway.start()

        # The handoff comes to its end, and the sender's id is as good as before.
        (result,) = self.person.results([handoff], timeout=WITHIN_S)
        self.assertEqual(result.payload["text"], "Second answer.")
        told = self.gateway.invoke("tasuki_status", asker, handoff=handoff)["content"][0]["text"]
        self.assertIn(f"{handoff} is completed. The result:\n\nSecond answer.", told)
        attempts = self.person.handoffs.get(handoff).attempts
        self.assertEqual(len(attempts), 2)
        self.assertEqual(attempts[-1].ended, "completed")

        # OpenClaw does the target's turn again by itself: the work is not lost.
        self.assertTrue(resumed.wait(WITHIN_S), "the target's turn is resumed")
        history: list[str] = []

        def remembers(messages: list[dict[str, Any]]) -> str:
            history.append(str(messages))
            return "Yes."

        self.model.reply = remembers
        self.gateway.ask("Is it done?", peer)
        self.assertIn("Second answer.", history[-1])
        # But its answer is not announced to the sender, and the run's id leads nowhere.
        self.gateway.ask("What do you know?", asker)
        self.assertIn("First answer.", history[-1])
        self.assertNotIn("Second answer.", history[-1])
        run = self.gateway.came_of(sent["runId"])
        self.assertEqual((run["status"], "terminalReply" in run), ("timeout", False))

    def send(self, peer: str, asker: str, message: str) -> dict[str, Any]:
        """With the gateway's own tool, without waiting."""
        sent = self.gateway.invoke(
            "sessions_send", asker, sessionKey=peer, message=message, timeoutSeconds=0
        )
        details = sent["details"]
        self.assertEqual(details["status"], "accepted")
        return dict(details)


def main() -> int:
    found: dict[str, str] = {}

    class Rows(unittest.TextTestResult):
        def addSuccess(self, test: unittest.TestCase) -> None:
            super().addSuccess(test)
            found[" ".join((test._testMethodDoc or test.id()).split())] = "tested"

        def stopTest(self, test: unittest.TestCase) -> None:
            super().stopTest(test)
            found.setdefault(" ".join((test._testMethodDoc or test.id()).split()), "failed")

    tests = unittest.defaultTestLoader.loadTestsFromTestCase(Plugin)
    done = unittest.TextTestRunner(resultclass=Rows, verbosity=2).run(tests)
    results = os.environ.get("TASUKI_INTEROP_RESULTS")
    if results:
        report: dict[str, Any] = {"versions": versions(), "rows": found}
        report["on"] = datetime.now(timezone.utc).date().isoformat()
        Path(results, "openclaw.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")
    return 0 if done.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
