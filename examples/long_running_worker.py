#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A worker that works for longer than its lease, without a line about leases in it.

The lease is short, so that a crash is noticed soon. Heartbeats come from a thread of their own, so
a function that waits for a model for two leases keeps its claim without doing anything for it.
What it should do is look now and then whether the work is still its own (`claim.check()`, and
every report of progress does it too): a task may be cancelled, and what is made after that is for
nobody.

Needs a broker (`tasuki serve`). Prints:

    chapter 1 of 3: It was a dark night.
    chapter 2 of 3: Somebody knocked.
    chapter 3 of 3: It was the reviewer.
    leases lost: 0, reports of progress: 3
    a second book is cancelled, and its writer has stopped
"""

from __future__ import annotations

import threading
import time

import tasuki

LEASE_S = 1.0
CHAPTERS = ["It was a dark night.", "Somebody knocked.", "It was the reviewer."]


def slow_model(chapter: int) -> str:
    """Stands for a call that blocks its thread for far longer than the lease."""
    time.sleep(2 * LEASE_S)
    return CHAPTERS[chapter]


@tasuki.worker(agent="novelist", lease=LEASE_S)
def write(claim: tasuki.Claim) -> dict[str, object]:
    text: list[str] = []
    for chapter in range(len(CHAPTERS)):
        claim.check()
        text.append(slow_model(chapter))
        claim.progress(text[-1], percent=100 * len(text) // len(CHAPTERS))
    return {"type": "book", "chapters": text}


def main() -> None:
    worker = threading.Thread(target=write.run)
    worker.start()
    with tasuki.Client(agent="publisher") as client:
        try:
            second = publish(client)
        finally:
            write.stop()
            worker.join()
        print(f"a second book is {second.status().state}, and its writer has stopped")


def publish(client: tasuki.Client) -> tasuki.Handoff:
    book = client.handoff(to="novelist", intent="Write a short book.")
    for number, text in enumerate(book.result(timeout=120).payload["chapters"], 1):
        print(f"chapter {number} of {len(CHAPTERS)}: {text}")
    print(f"leases lost: {book.status().losses}, reports of progress: {reports(client, book)}")

    second = client.handoff(to="novelist", intent="Write another one.")
    for event in client.events(after=0, task=second.task_id):
        if event.record.kind == "progressed":
            second.cancel(reason="one is enough")
            break
    return second


def reports(client: tasuki.Client, handoff: tasuki.Handoff) -> int:
    events = client.tasks.events(handoff.task_id)
    return sum(event.record.kind == "progressed" for event in events)


if __name__ == "__main__":
    main()
