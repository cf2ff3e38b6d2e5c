#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Human approval: work that nobody can claim before a person has agreed.

The gate is in the broker, not in the agent: an agent that forgets to ask gets nothing to do. Who
approves is in the log, and cannot be the one who asks. What is rejected is a dead letter, with all
that it carried, until somebody decides what becomes of it.

Needs a broker (`tasuki serve`) and your answers, `yes` or `no`. Prints, for `yes` and `no`:

    Deploy basket 2.1 to production? approved
    Drop the table of old orders? rejected
    deployer: deployed basket 2.1
    dead letter: Drop the table of old orders (rejected)
"""

from __future__ import annotations

import sys

import tasuki

WISHES = [
    ("Deploy basket 2.1 to production", "deployed basket 2.1"),
    ("Drop the table of old orders", "dropped the table of old orders"),
]


def ask(client: tasuki.Client, wish: str, handoff: tasuki.Handoff) -> None:
    print(f"{wish}? ", end="", flush=True)
    if sys.stdin.readline().strip() == "yes":
        client.handoffs.approve(handoff.id, by="operator")
        print("approved")
    else:
        client.handoffs.reject(handoff.id, by="operator", reason="not today")
        print("rejected")


def main() -> None:
    with tasuki.Client(agent="planner") as client:
        handoffs = [
            client.handoff(
                to="deployer",
                intent=wish,
                payload={"type": "order", "done": done},
                needs_approval=True,
            )
            for wish, done in WISHES
        ]
        assert client.try_claim(agent="deployer") is None, "nothing was approved yet"
        for (wish, _), handoff in zip(WISHES, handoffs, strict=True):
            ask(client, wish, handoff)
        while claim := client.try_claim(agent="deployer"):
            with claim:
                print(f"deployer: {claim.payload['done']}")
                claim.complete({"type": "report"})
        for handoff in handoffs:
            letter = handoff.status().dead_letter
            if letter:
                print(f"dead letter: {handoff.envelope().intent} ({letter.reason})")
                client.dead_letters.discard(handoff.id, by="operator", reason="not today")


if __name__ == "__main__":
    main()
