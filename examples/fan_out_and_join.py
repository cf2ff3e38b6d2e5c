#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fan-out and join: a planner asks several researchers at once and puts their answers together.

Each question is a call: a task of its own below the planner's, so that every piece of work has one
owner, and the planner stays the owner of the whole. Any agent with the capability may answer. The
join waits for all of them with one request.

Needs a broker (`tasuki serve`). Prints:

    3 questions are under way, the planner still owns the task
    postgres: many writers at once
    redis: data that fits into memory
    sqlite: one writer, no server
"""

from __future__ import annotations

import threading

import tasuki

KNOWN = {
    "sqlite": "one writer, no server",
    "postgres": "many writers at once",
    "redis": "data that fits into memory",
}


@tasuki.worker(agent="researcher", capabilities=["compare_databases"], concurrency=3)
def research(claim: tasuki.Claim) -> dict[str, str]:
    about = claim.payload["about"]
    return {"type": "answer", "about": about, "best_for": KNOWN[about]}


def main() -> None:
    agents = threading.Thread(target=research.run)
    agents.start()
    try:
        with tasuki.Client(agent="planner") as client:
            compare(client)
    finally:
        research.stop()
        agents.join()


def compare(client: tasuki.Client) -> None:
    task = client.tasks.open("Which database fits a small shop? Compare three.")
    calls = [
        client.handoff(
            to_capability="compare_databases",
            task_id=task.task_id,
            control="awaited",
            payload={"type": "question", "about": name},
        )
        for name in sorted(KNOWN)
    ]
    owner = client.tasks.get(task.task_id).owner
    print(f"{len(calls)} questions are under way, the {owner} still owns the task")
    answers = list(client.results(calls, timeout=60))
    for result in answers:
        print(f"{result.payload['about']}: {result.payload['best_for']}")
    compared = [result.payload["about"] for result in answers]
    client.tasks.complete(task.task_id, {"type": "comparison", "compared": compared})


if __name__ == "__main__":
    main()
