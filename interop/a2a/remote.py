# SPDX-License-Identifier: Apache-2.0
"""An agent that is an A2A server, made of the official SDK that is installed: 1.x or 0.3.

It does as it is told by the first word of its work, writes what happens to it as lines of JSON, and
goes on with held work for every line that it reads.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import threading
from typing import Any

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from starlette.applications import Starlette
from starlette.responses import Response

TODAY = importlib.util.find_spec("a2a.server.routes") is not None


def say(event: str, **more: Any) -> None:
    print(json.dumps({"event": event, **more}), flush=True)


def part(text: str) -> Any:
    if TODAY:
        from a2a.types.a2a_pb2 import Part

        return Part(text=text)
    from a2a.types import Part, TextPart

    return Part(root=TextPart(text=text))


def task_of(message: Any) -> Any:
    if TODAY:
        from a2a.helpers.proto_helpers import new_task_from_user_message

        return new_task_from_user_message(message)
    from a2a.utils import new_task

    return new_task(message)


class Executor(AgentExecutor):
    def __init__(self) -> None:
        self.go = asyncio.Semaphore(0)

    async def execute(self, context: Any, event_queue: Any) -> None:
        text = context.get_user_input()
        first = context.current_task is None
        say("received", text=text, message=context.message.message_id, first=first)
        if first:
            await event_queue.enqueue_event(task_of(context.message))
        work = TaskUpdater(event_queue, context.task_id, context.context_id)
        words = work.new_agent_message
        match text.split()[0] if first else "answered":
            case "complete":
                await work.add_artifact([part("done")])
                await work.complete()
            case "hold":
                await work.start_work(words([part("half of it")]))
                try:
                    await self.go.acquire()
                except asyncio.CancelledError:
                    say("stopped")
                    raise
                # While somebody listens, 0.3.26 keeps what is appended to an artifact twice.
                if TODAY:
                    await work.add_artifact([part("done")], artifact_id="a", last_chunk=False)
                    more = [part(" and written")]
                    await work.add_artifact(more, artifact_id="a", append=True, last_chunk=True)
                else:
                    await work.add_artifact([part("done and written")])
                await work.complete()
            case "ask":
                await work.requires_input(words([part("Which path?")]))
            case "answered":
                # 0.3.26 answers a send at the first event: without this one it still waits.
                await work.start_work()
                await work.add_artifact([part(f"done {text}")])
                await work.complete()
            case "reject":
                await work.reject(words([part("not mine")]))
            case "fail":
                await work.failed(words([part("no suite")]))

    async def cancel(self, context: Any, event_queue: Any) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        say("cancelled")


def app_of_today(executor: Executor, url: str, binding: str, bearer: bool) -> Starlette:
    from a2a.server.request_handlers import DefaultRequestHandlerV2
    from a2a.server.routes import (
        create_agent_card_routes,
        create_jsonrpc_routes,
        create_rest_routes,
    )
    from a2a.types import a2a_pb2 as pb

    at = "/rpc" if binding == "JSONRPC" else "/rest"
    card = pb.AgentCard(
        name="remote",
        description="Does its work elsewhere.",
        version="1",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=pb.AgentCapabilities(streaming=True),
        skills=[pb.AgentSkill(id="work", name="work", description="Works.", tags=["work"])],
        supported_interfaces=[
            pb.AgentInterface(url=url + at, protocol_binding=binding, protocol_version="1.0")
        ],
    )
    if bearer:
        http = pb.HTTPAuthSecurityScheme(scheme="Bearer")
        card.security_schemes["token"].http_auth_security_scheme.CopyFrom(http)
        card.security_requirements.add().schemes["token"].SetInParent()
    handler = DefaultRequestHandlerV2(executor, InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]
    return Starlette(routes=[*routes, *create_rest_routes(handler, path_prefix="/rest")])


def app_of_0_3(executor: Executor, url: str, bearer: bool) -> Starlette:
    from a2a.server.apps import A2AStarletteApplication
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.types import (
        AgentCapabilities,
        AgentCard,
        AgentSkill,
        HTTPAuthSecurityScheme,
        SecurityScheme,
    )

    scheme = SecurityScheme(root=HTTPAuthSecurityScheme(scheme="bearer"))
    card = AgentCard(
        name="remote",
        description="Does its work elsewhere.",
        version="1",
        url=url + "/rpc",
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True),
        skills=[AgentSkill(id="work", name="work", description="Works.", tags=["work"])],
        security_schemes={"token": scheme} if bearer else None,
        security=[{"token": []}] if bearer else None,
    )
    handler = DefaultRequestHandler(executor, InMemoryTaskStore())
    return A2AStarletteApplication(card, handler).build(rpc_url="/rpc")


class Gate:
    """Says who asks, and lets in who shows the token, where there is one."""

    def __init__(self, app: Any, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"].startswith("/.well-known/"):
            await self.app(scope, receive, send)
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        shown = headers.get("authorization", "")
        say("asked", shown=shown, streams="event-stream" in headers.get("accept", ""))
        if self.token and shown != f"Bearer {self.token}":
            await Response(status_code=401)(scope, receive, send)
            return
        await self.app(scope, receive, send)


class Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        say("ready")


async def main(port: int, url: str, binding: str, token: str, bearer: bool) -> None:
    executor = Executor()
    loop = asyncio.get_running_loop()

    def listen() -> None:
        for _ in sys.stdin:
            loop.call_soon_threadsafe(executor.go.release)
        os._exit(0)  # Nobody plays with it any more.

    threading.Thread(target=listen, daemon=True).start()
    if TODAY:
        app = app_of_today(executor, url, binding, bearer)
    else:
        app = app_of_0_3(executor, url, bearer)
    config = uvicorn.Config(
        Gate(app, token), host="127.0.0.1", port=port, log_level="critical", lifespan="off"
    )
    await Server(config).serve()


if __name__ == "__main__":
    said = json.loads(sys.argv[1])
    asyncio.run(main(**said))
