#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A choreographed pipeline with a router: nobody holds a plan of the whole.

A router looks at the ticket and chooses the first stop. From there each agent names its successor
itself, in the same atomic step in which it finishes its own part. The words of the user and what
they forbid reach the last agent unchanged, though no agent passes them on.

Needs a broker (`tasuki serve`). Prints:

    router -> billing -> writer: Refund 40 EUR to the card ending in 42.
    router -> writer: We have looked into it.
    both were told: Never promise a date.
"""

from __future__ import annotations

import threading

import tasuki


@tasuki.worker(agent="router")
def route(claim: tasuki.Claim) -> None:
    text = claim.payload["text"]
    to = "billing" if "charged" in text else "writer"
    claim.hand_on(to=to, payload=claim.payload, history=[{"action": f"sent it to {to}"}])


@tasuki.worker(agent="billing")
def settle(claim: tasuki.Claim) -> None:
    answer = "Refund 40 EUR to the card ending in 42."
    claim.hand_on(
        to="writer",
        payload={"type": "ticket", "answer": answer},
        decisions=[{"key": "refund", "decision": answer, "why": "it was charged twice"}],
        history=[{"action": "found a double charge"}],
    )


@tasuki.worker(agent="writer")
def write(claim: tasuki.Claim) -> dict[str, object]:
    answer = claim.payload.get("answer", "We have looked into it.")
    told = [constraint.text for constraint in claim.constraints]
    return {"type": "letter", "text": answer, "told": told}


def main() -> None:
    workers = [route, settle, write]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    try:
        with tasuki.Client(agent="front-desk") as client:
            told = hand_in(client, "I was charged twice!") | hand_in(client, "Your shop is slow.")
        print(f"both were told: {', '.join(told)}")
    finally:
        for worker, thread in zip(workers, threads, strict=True):
            worker.stop()
            thread.join()


def hand_in(client: tasuki.Client, text: str) -> set[str]:
    ticket = client.handoff(
        to="router",
        intent=text,
        payload={"type": "ticket", "text": text},
        constraints=["Never promise a date."],
    )
    result = ticket.final(timeout=60)
    hops = client.tasks.get(ticket.task_id).handoffs
    path = [hop.to.agent or "?" for hop in sorted(hops, key=lambda hop: hop.hop)]
    print(f"{' -> '.join(path)}: {result.payload['text']}")
    return set(result.payload["told"])


if __name__ == "__main__":
    main()
