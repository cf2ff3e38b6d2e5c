# SPDX-License-Identifier: Apache-2.0
"""One agent of the chain, in the environment of its framework: `agent.py FRAMEWORK [stuck]`.

Its model is scripted (see `interop/frameworks/stage.py`): it has the next agent, whom it knows only
by a capability, do a part, and passes on what came of it.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from stage import Script
from suite import load

import tasuki
from tasuki._adapters import current_claim, tool_name

#: Who asks whom for what.
CHAIN = {
    "langgraph": ("planner", "research"),
    "crewai": ("researcher", "critique"),
    "autogen": ("critic", "code"),
    "openai_agents": ("coder", "analysis"),
    "pydantic_ai": ("analyst", "review"),
}
OFFERS = {"langgraph": "planning", "crewai": "research", "autogen": "critique"}
OFFERS |= {"openai_agents": "code", "pydantic_ai": "analysis"}
SOFTENED = "Avoid the auth module if you can."


def say(text: str) -> None:
    """For whoever watches."""
    print(text, flush=True)


def before(framework: str, stuck: bool) -> Any:
    """What happens beside the model."""

    def soften() -> None:
        claim = current_claim()
        assert claim
        try:
            with tasuki.Client(agent=claim.agent) as client:
                client.handoff(
                    to_capability="analysis",
                    task_id=claim.task_id,
                    control="awaited",
                    constraints=[SOFTENED],
                )
        except tasuki.Refused as refused:
            say(f"refused: {refused.code}")

    def act(outputs: int) -> None:
        if outputs == 0:
            say("begun")
        if framework == "openai_agents" and outputs == 0:
            soften()
        if stuck:
            say("stuck")
            time.sleep(3600)

    return act


def main() -> None:
    """Serves until it is stopped."""
    framework, stuck = sys.argv[1], "stuck" in sys.argv[2:]
    name, capability = CHAIN[framework]
    calls = [(tool_name(capability), {"task": f"Your part, {capability}, please."})]
    script = Script(calls, before=before(framework, stuck))
    offers = [OFFERS[framework]]
    worker = load(framework).serve(
        script, name, {capability: "capability"}, capabilities=offers, lease=5
    )
    worker.run()


if __name__ == "__main__":
    os.environ.setdefault("TASUKI_URL", "http://127.0.0.1:8788")
    main()
