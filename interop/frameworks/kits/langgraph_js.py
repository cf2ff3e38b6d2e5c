# SPDX-License-Identifier: Apache-2.0
"""LangGraph.js with a scripted model: `sdk/typescript/test/frameworks/langgraph.ts`."""

from __future__ import annotations

from suite import Base

from kits.javascript import JavaScript


class LangGraphJs(JavaScript):
    title, package, program = "LangGraph.js", "@langchain/langgraph", "langgraph"
    fake = ("@langchain/openai", "langchain.js")
    names = {  # noqa: RUF012
        "send_a_call": "handoffTool",
        "send_a_transfer": "transferTool, handoffNode",
        "resume_after_the_sender_died": "resume",
        "serve": "serve(graph, …)",
        "question": "interrupt, questionTool",
    }


KIT = LangGraphJs()


class Own(Base):
    """What only LangGraph.js has is tested in `sdk/typescript`."""
