# SPDX-License-Identifier: Apache-2.0
"""The Vercel AI SDK with a scripted model: `sdk/typescript/test/frameworks/ai.ts`."""

from __future__ import annotations

from suite import Base

from kits.javascript import JavaScript


class VercelAI(JavaScript):
    title, package, program = "Vercel AI SDK", "ai", "ai"
    names = {  # noqa: RUF012
        "send_a_call": "handoffTool, handoffs",
        "send_a_transfer": "transferTool, transfers",
        "resume_after_the_sender_died": "transferred, resume",
        "serve": "serve(agent, …)",
        "question": "toolApproval, questionTool",
    }


KIT = VercelAI()


class Own(Base):
    """What only the AI SDK has is tested in `sdk/typescript`."""
