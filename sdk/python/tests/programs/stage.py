# SPDX-License-Identifier: Apache-2.0
"""One stage of a chain: adds its word to the text, adds a constraint, hands on to the next."""

from __future__ import annotations

import sys

from tasuki import Client

URL, NAME, NUMBER, LAST = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
WORDS = ["the", "sash", "arrives", "whole", "always"]


def main() -> None:
    agent = f"{NAME}-{NUMBER}"
    with Client(URL, agent=agent) as client, client.claim(lease=1, wait=60) as claim:
        print(f"working on attempt {claim.attempt}", flush=True)
        # Whoever started this decides when it goes on, or that it never does.
        sys.stdin.readline()
        text = [*claim.payload["text"], WORDS[NUMBER]]
        if NUMBER == LAST:
            bound = [constraint.text for constraint in claim.constraints]
            claim.complete({"type": "text", "text": text, "bound": bound})
        else:
            claim.hand_on(
                to=f"{NAME}-{NUMBER + 1}",
                payload={"type": "text", "text": text},
                add_constraints=[f"Stage {NUMBER} says: keep word {NUMBER}."],
                history=[{"action": f"added {WORDS[NUMBER]}"}],
            )


if __name__ == "__main__":
    main()
