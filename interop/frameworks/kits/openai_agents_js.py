# SPDX-License-Identifier: Apache-2.0
"""OpenAI Agents JS with a scripted model: `sdk/typescript/test/frameworks/openai-agents.ts`."""

from __future__ import annotations

from suite import Base

from kits.javascript import JavaScript


class OpenAIAgentsJs(JavaScript):
    title, package, program = "OpenAI Agents JS", "@openai/agents", "openai-agents"
    names = {  # noqa: RUF012
        "send_a_call": "handoffTool, remoteAgent",
        "send_a_transfer": "transferTool",
        "resume_after_the_sender_died": "resume",
        "serve": "serve(agent, …)",
        "question": "needsApproval, questionTool",
    }


KIT = OpenAIAgentsJs()


class Own(Base):
    """What only OpenAI Agents JS has is tested in `sdk/typescript`."""
