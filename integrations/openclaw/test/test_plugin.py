# SPDX-License-Identifier: Apache-2.0
"""The plugin in a real gateway, with a real broker: `interop/frameworks/run openclaw`."""

from __future__ import annotations

import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any, ClassVar

from gateway import Gateway, Model

from tasuki import Client
from tasuki.testing import Broker

CONSTRAINT = "Do not touch auth."
INTENT = f"Review the change. {CONSTRAINT}"
WITHIN_S = 120


def texts(messages: list[dict[str, Any]], *roles: str) -> list[str]:
    """What was said by these."""
    found: list[str] = []
    for message in messages:
        if message["role"] in roles:
            content = message.get("content") or ""
            parts = [content] if isinstance(content, str) else [it.get("text", "") for it in content]
            found.append("\n".join(parts))
    return found


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
        serve = [{"name": "reviewer", "capabilities": ["review"], "leaseSeconds": 20}]
        config = {"url": cls.broker.url, "waitSeconds": 60, "serve": serve}
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

    def test_4_what_is_under_way_survives_gateway_and_broker_and_sessions_send_does_not(
        self,
    ) -> None:
        thinks, asked = threading.Event(), threading.Event()
        heard: list[str] = []

        def reply(messages: list[dict[str, Any]]) -> str:
            last = texts(messages, "user")[-1]
            heard.append(last)
            if len(heard) == 2:
                asked.set()
            thinks.wait(WITHIN_S)
            return "Looks good."

        self.model.reply = lambda _: "Hello."
        self.gateway.ask("Hello.", "agent:main:peer")
        self.model.reply = reply
        # The same two things: one through the gateway's own tool, one through the broker.
        sent = self.gateway.invoke(
            "sessions_send", sessionKey="agent:main:peer", message="Review it.", timeoutSeconds=0
        )
        self.assertIn("accepted", str(sent))
        handoff = self.offer()
        self.assertTrue(asked.wait(WITHIN_S), "both are under way")

        self.gateway.kill()
        self.broker.kill()
        thinks.set()
        self.broker.start()
        self.gateway.start()

        result = handoff.result(timeout=WITHIN_S)
        self.assertEqual(result.payload["text"], "Looks good.")
        attempts = handoff.status().attempts
        self.assertEqual(len(attempts), 2)
        self.assertEqual(attempts[-1].ended, "completed")


if __name__ == "__main__":
    unittest.main()
