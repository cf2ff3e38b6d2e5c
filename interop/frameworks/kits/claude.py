# SPDX-License-Identifier: Apache-2.0
"""Claude Agent SDK with the program that it brings along, and a scripted provider on loopback."""

from __future__ import annotations

import contextvars
import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions
from stage import INPUT_TOKENS, OUTPUT_TOKENS, Call, Kit, ProviderError, Script
from suite import Base

import tasuki.claude as adapter
from tasuki import AsyncClient
from tasuki.worker import AsyncWorker

ASKS_ONCE_MORE = (
    "the session is ended and nobody reports its result, but Claude Code may ask its model once "
    "more before it is gone"
)
PREFIX = "mcp__tasuki__"
PLACE = tempfile.TemporaryDirectory(prefix="tasuki-claude-")


class Provider:
    """Answers `/v1/messages` as the script says, in the context of the run that asks."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.context = contextvars.copy_context()
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                try:
                    said = asked.said(body)
                except ProviderError as error:
                    told = {"type": "error", "error": {"type": "api_error", "message": str(error)}}
                    return self.send(error.status_code, "application/json", json.dumps(told))
                return self.send(200, "text/event-stream", events(said))

            def send(self, status: int, kind: str, text: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def said(self, body: dict[str, Any]) -> Call | str:
        blocks: list[dict[str, Any]] = []
        for message in body["messages"]:
            content = message["content"]
            if message["role"] != "system":
                blocks += [{"text": content}] if isinstance(content, str) else content
        outputs = [text(it["content"]) for it in blocks if it.get("type") == "tool_result"]
        heard = "\n".join([*(str(it.get("text", "")) for it in blocks), *outputs])
        return self.context.run(self.script.reply, outputs, heard)


def text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(it.get("text", "") for it in content)


def events(said: Call | str) -> str:
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 0}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "scripted"}
    found: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "usage": usage}}
    ]
    if isinstance(said, Call):
        block = {"type": "tool_use", "id": said.id.replace("call", "toolu"), "input": {}}
        block["name"] = PREFIX + said.name
        delta = {"type": "input_json_delta", "partial_json": json.dumps(said.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": said}
    found.append({"type": "content_block_start", "index": 0, "content_block": block})
    found.append({"type": "content_block_delta", "index": 0, "delta": delta})
    found.append({"type": "content_block_stop", "index": 0})
    stop = {"stop_reason": "tool_use" if isinstance(said, Call) else "end_turn"}
    used = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    found += [{"type": "message_delta", "delta": stop, "usage": used}, {"type": "message_stop"}]
    return "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in found)


def options(script: Script, place: str) -> ClaudeAgentOptions:
    provider = Provider(script)
    env = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{provider.server.server_port}",
        "ANTHROPIC_API_KEY": "scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CONFIG_DIR": place,
    }
    return ClaudeAgentOptions(
        tools=[], model="scripted", setting_sources=[], env=env, cwd=place, stderr=lambda _: None
    )


class Claude(Kit):
    title, package = "Claude Agent SDK", "claude-agent-sdk"
    cannot = {"lost_claim_ends_the_run": ASKS_ONCE_MORE}  # noqa: RUF012
    names = {  # noqa: RUF012
        "send_a_call": "handoff_tool",
        "send_a_transfer": "transfer_tool",
        "resume_after_the_sender_died": "transferred, resume",
        "serve": "serve(options, …)",
        "question": "ask_for_leave, question_tool",
    }

    def fakes(self, script: Script) -> dict[str, Any]:
        def made(**given: Any) -> Any:
            scripted = options(script, PLACE.name)
            scripted.system_prompt = given["system_prompt"]
            return scripted

        return {"claude_agent_sdk.ClaudeAgentOptions": made}

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        tool = adapter.handoff_tool(to, client=client, **sending)
        made = adapter.with_tools(options(script, PLACE.name), tool)
        return str((await adapter._result("Go.", made)).result)

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        tool = adapter.transfer_tool(to, client=client)
        made = adapter.with_tools(options(script, str(kept.parent)), tool)
        found = await adapter.transferred(await adapter._result("Go.", made), tool)
        kept.write_text(json.dumps(found), "utf-8")

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        assert script.calls[0][0].endswith(to.replace("-", "_"))
        made = options(script, str(kept.parent))
        found = await adapter.resume(made, json.loads(kept.read_text("utf-8")), client)
        return str(found.result)

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **serving: Any
    ) -> AsyncWorker:
        made = {
            "call": adapter.handoff_tool,
            "transfer": adapter.transfer_tool,
            "capability": lambda to: adapter.handoff_tool(to, by_capability=True),
            "question": lambda _: adapter.question_tool(),
        }
        listed = [made[kind](to) for to, kind in tools.items()]
        return adapter.serve(lambda _: options(script, PLACE.name), name, tools=listed, **serving)


KIT = Claude()


class Own(Base):
    """What only the Claude Agent SDK has."""

    async def test_the_expected_output_is_asked_of_the_program(self) -> None:
        seen: list[ClaudeAgentOptions] = []
        result = adapter._result

        async def spied(prompt: str, made: ClaudeAgentOptions) -> Any:
            seen.append(made)
            return await result(prompt, options(Script(), PLACE.name))

        adapter._result = spied
        try:
            worker = KIT.serve(Script(), "judge", {}, client=self.client)
            sent = await self.offer("judge", output_schema={"type": "object"})
            await self.during(worker, sent.result())
        finally:
            adapter._result = result
        self.assertEqual(seen[0].output_format["schema"], {"type": "object"})
