# SPDX-License-Identifier: Apache-2.0
"""LlamaIndex with a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    LLMMetadata,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, Script
from suite import Base

import tasuki.llama_index as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker


class Scripted(MockFunctionCallingLLM):
    script: Any = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    async def achat_with_tools(self, *_: Any, **named: Any) -> ChatResponse:
        messages = list(named.get("chat_history") or [])
        outputs = [str(one.content) for one in messages if one.role == MessageRole.TOOL]
        said = self.script.reply(outputs, "\n".join(str(one.content) for one in messages))
        blocks: Any = None
        if isinstance(said, Call):
            blocks = [
                ToolCallBlock(tool_call_id=said.id, tool_name=said.name, tool_kwargs=said.arguments)
            ]
            message = ChatMessage(role="assistant", blocks=blocks)
        else:
            message = ChatMessage(role="assistant", content=said)
        usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
        return ChatResponse(message=message, raw={"usage": usage})

    async def astream_chat_with_tools(self, *given: Any, **named: Any) -> Any:
        done = await self.achat_with_tools(*given, **named)

        async def whole() -> Any:
            yield done

        return whole()


def agent(script: Script, *tools: Any) -> FunctionAgent:
    llm = Scripted(script=script)
    return FunctionAgent(name="alice", llm=llm, tools=list(tools), streaming=False)


class LlamaIndex(Kit):
    title, package = "LlamaIndex", "llama-index-core"
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "transferred, resume",
        "serve": "serve(agent, …)",
        "question": "InputRequiredEvent, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        class Model(Scripted):
            def __init__(self, **_: Any) -> None:
                super().__init__(script=script)

        return {"llama_index.llms.openai.OpenAI": Model}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        done = await agent(script, adapter.handoff_tool(to, client=client, **sending)).run("Go.")
        return str(done.response.content)

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        handler = agent(script, adapter.transfer_tool(to, client=client)).run(user_msg="Go.")
        done = await handler
        kept.write_text(json.dumps(await adapter.transferred(handler, done)), "utf-8")

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        # What comes back is a message, not the output of a tool.
        read: list[str] = []
        script.reply = lambda _, heard: (read.append(heard), "They say: Later.")[1]
        acting = agent(script, adapter.transfer_tool(to, client=client))
        done = await adapter.resume(acting, json.loads(kept.read_text("utf-8")), client)
        assert "result:\nLater." in read[-1], read
        assert "Go." in read[-1], "the memory is there"
        return str(done.response.content)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        made = {
            "call": adapter.handoff_tool,
            "transfer": adapter.transfer_tool,
            "capability": lambda to: adapter.handoff_tool(to, by_capability=True),
            "question": lambda _: adapter.question_tool(),
        }
        acting = agent(script, *(made[kind](to) for to, kind in tools.items()))
        return adapter.serve(acting, name, **options)


KIT = LlamaIndex()


class Own(Base):
    """What only LlamaIndex has."""

    async def test_what_a_workflow_waits_for_is_asked_of_the_sender(self) -> None:
        async def choose(ctx: Any) -> str:
            """Chooses."""
            answer = await ctx.wait_for_event(
                HumanResponseEvent, waiter_event=InputRequiredEvent(prefix="Which database?")
            )
            return str(answer.response)

        # A string would not be known for what it is.
        choose.__annotations__["ctx"] = Context
        script = Script([("choose", {})])
        acting = agent(script, FunctionTool.from_defaults(async_fn=choose))
        worker = adapter.serve(acting, "chooser", client=self.client)
        sent = await self.offer("chooser")

        async def answers() -> None:
            question = await sent.question(timeout=60)
            self.assertEqual(question.text, "Which database?")
            await sent.answer("PostgreSQL")

        result, _ = await self.during(worker, sent.result(), answers())
        self.assertEqual(result.payload["text"], "They say: PostgreSQL")
