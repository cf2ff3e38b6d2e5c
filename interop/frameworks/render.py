#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of docs/interop.md from what the runs of the suite found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs" / "interop.md"
BEGIN, END = "<!-- written by interop/frameworks/render.py -->", "<!-- end -->"
ORDER = (
    *("langgraph", "openai_agents", "pydantic_ai", "autogen", "agent_framework", "adk"),
    *("crewai", "llama_index", "claude"),
    *("ai", "langgraph_js", "openai_agents_js"),
)
ROWS = {
    "send_a_call": "send a call: the result comes back",
    "send_a_transfer": "send a transfer: the turn ends, the task passes",
    "serve": "serve: an agent is a worker",
    "resume_after_the_sender_died": "resume after the sender died",
    "worker_killed": "worker killed: another finishes",
    "retryable_failure": "retryable failure: tried again",
    "permanent_failure": "permanent failure: a dead letter at once",
    "question": "question to the sender",
    "constraint_kept": "constraint kept",
    "budget_kept": "budget kept",
    "usage_reported": "usage reported",
    "idempotent_re_execution": "done again, nothing twice",
    "failed_call_is_text_and_a_mark": "a failed call is text, and marks the result",
    "lost_claim_ends_the_run": "a lost claim ends the run",
    "message_reaches_the_run": "a message reaches the run",
}


def main() -> None:
    """Renders the table."""
    found: dict[str, Any] = {}
    for name in ORDER:
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            found[name] = json.loads(path.read_text("utf-8"))
    heads: list[str] = []
    for name, it in found.items():
        guide = f"guides/frameworks/{name}.md"
        linked = f"[{it['title']}]({guide})" if (DOCUMENT.parent / guide).exists() else it["title"]
        heads.append(f"{linked} {it['version']}")
    lines = [f"| | {' | '.join(heads)} |", f"| --- |{' --- |' * len(found)}"]
    lines.append(f"| last run | {' | '.join(it['on'] for it in found.values())} |")
    reasons: list[str] = []
    for cell, row in ROWS.items():
        shown: list[str] = []
        for it in found.values():
            became = it["cells"].get(cell, "not there")
            if became.startswith("cannot: "):
                reason = became.removeprefix("cannot: ")
                if reason not in reasons:
                    reasons.append(reason)
                became = f"cannot ({reasons.index(reason) + 1})"
            called = it["names"].get(cell)
            shown.append(f"{became}: `{called}`" if called and became == "tested" else became)
        lines.append(f"| {row} | {' | '.join(shown)} |")
    lines += ["", *(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))]
    text = DOCUMENT.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    table = "\n".join(lines).rstrip()
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
