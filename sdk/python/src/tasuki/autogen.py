# SPDX-License-Identifier: Apache-2.0
"""AutoGen: a remote agent as a member of a team or as a tool, and a team or an agent that serves.

Needs the extra `tasuki[autogen]`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import BaseChatAgent, UserProxyAgent
from autogen_agentchat.base import Handoff, Response
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, TextMessage
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel
from typing_extensions import Unpack

from . import _adapters as a
from ._adapters import Sending, current_claim, current_run
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from ._serving import Serving, served
from .worker import AsyncWorker

__all__ = [
    "RemoteAgent",
    "current_claim",
    "current_run",
    "handoff_tool",
    "question_tool",
    "resume",
    "sender_proxy",
    "serve",
    "transfer",
    "transferred",
]


class _Task(BaseModel):
    task: str


class _Question(BaseModel):
    question: str


class _Tool(BaseTool[Any, str]):
    """A tool that knows the id of its call."""

    def __init__(self, kind: type[BaseModel], name: str, description: str, call: Any) -> None:
        super().__init__(kind, str, name, description)
        self._call = call

    async def run_json(
        self,
        args: Mapping[str, Any],
        cancellation_token: CancellationToken,  # noqa: ARG002
        call_id: str | None = None,
    ) -> Any:
        return await self._call(str(next(iter(args.values()))), call_id)

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> str:
        return str(await self.run_json(args.model_dump(), cancellation_token))


def handoff_tool(
    to: str, *, description: str | None = None, **sending: Unpack[Sending]
) -> BaseTool[Any, str]:
    """A tool that hands a part of the work to another agent and returns its result."""

    async def call(task: str, key: str | None) -> str:
        return await a.firmly(a.ask(to, task, key=key, **sending))

    return _Tool(_Task, a.tool_name(to), description or a.described(to), call)


def question_tool() -> BaseTool[Any, str]:
    """A tool with which a served agent asks whoever the work is from."""

    async def call(text: str, _: str | None) -> str:
        return await a.firmly(a.question(text))

    return _Tool(_Question, a.ASK_NAME, a.ASK_DESCRIPTION, call)


def transfer(to: str, *, description: str | None = None) -> Handoff:
    """For `handoffs=[…]` of an agent, with `HandoffTermination(to)` in the team: the turn ends.
    In a served team the task passes to the other agent; elsewhere, see `transferred`."""
    name = a.tool_name(to, "transfer_to")
    described = description or a.described_transfer(to)
    return Handoff(target=to, name=name, description=described, message=f"{to} goes on with it.")


async def transferred(team: Any, done: Any, **sending: Unpack[Sending]) -> dict[str, Any]:
    """Hands over what a run ended with (`done`, whose last word is a handoff), and returns what a
    later process needs: it is JSON, to be kept. The process may end."""
    word = _handed(done)
    if word is None:
        raise ValueError("this run did not end with a handoff")
    said, task = _before(done, word)
    key = f"{word.id}:{len(done.messages)}"
    id = await a.begun(word.target, task, key=key, said=said, **sending)
    return {
        "handoff": id,
        "to": word.target,
        "back_to": word.source,
        "team": await team.save_state(),
    }


async def resume(
    team: Any, kept: Mapping[str, Any], client: AsyncClient, *, timeout: Span | None = None
) -> Any:
    """Goes on with what `transferred` returned, in whatever process and with a new team: waits for
    the result and runs the team with it."""
    text = await a.outcome(kept["handoff"], client, timeout=timeout)
    await team.load_state(kept["team"])
    back = HandoffMessage(source=kept["to"], target=kept["back_to"], content=text)
    return await team.run(task=back)


def sender_proxy(name: str = "sender") -> UserProxyAgent:
    """A member of a team that stands for whoever the work is from: what it is asked is asked of
    them."""

    async def asked(prompt: str, _: CancellationToken | None = None) -> str:
        return await a.question(prompt)

    return UserProxyAgent(name, input_func=asked)


class RemoteAgent(BaseChatAgent):
    """A member of a team whose turn is done by another agent, through the broker. In a `Swarm`,
    `back_to` is who speaks next. What was said so far goes along as quoted data."""

    def __init__(self, to: str, *, back_to: str | None = None, **sending: Unpack[Sending]) -> None:
        super().__init__(a.tool_name(to, "remote"), description=f"{to}, who works elsewhere.")
        self._to, self._back_to, self._sending = to, back_to, sending
        self._turns = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """What it says."""
        return (HandoffMessage,) if self._back_to else (TextMessage,)

    async def on_messages(
        self,
        messages: Sequence[BaseChatMessage],
        cancellation_token: CancellationToken,  # noqa: ARG002
    ) -> Response:
        """Hands the conversation over and says what came of it."""
        said = [(one.source, one.to_model_text()) for one in messages]
        self._turns += 1
        key = f"{self.name}:{self._turns}" if current_run() else None
        task = said[-1][1] if said else "Go on."
        answer = await a.ask(self._to, task, key=key, said=said[:-1], **self._sending)
        if self._back_to:
            handed = HandoffMessage(source=self.name, target=self._back_to, content=answer)
            return Response(chat_message=handed)
        return Response(chat_message=TextMessage(source=self.name, content=answer))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:  # noqa: ARG002
        """Forgets its turns."""
        self._turns = 0


def serve(make: Callable[[], Any], name: str, **options: Unpack[Serving]) -> AsyncWorker:
    """An agent or a team as a worker: `tasuki.autogen.serve(make_team, "critic").run()`. `make` is
    called for each claim, because agents remember. A lost claim cancels the run."""

    async def run(claim: AsyncClaim, prompt: str) -> Any:
        token, loop = CancellationToken(), asyncio.get_running_loop()

        def lost() -> None:
            with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
                loop.call_soon_threadsafe(token.cancel)

        claim.on_lost(lost)
        done = None
        async for event in make().run_stream(task=prompt, cancellation_token=token):
            used = getattr(event, "models_usage", None)
            if used:
                claim.usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens)
            done = event
        word = _handed(done)
        if word is not None:
            said, task = _before(done, word)
            a.pass_on(word.target, task, said=said)
            return {"type": "handed_on", "to": word.target}
        last = done.messages[-1] if done else None
        return getattr(last, "content", None) or (last.to_text() if last else None)

    return served(run, name, **options)


def _handed(done: Any) -> HandoffMessage | None:
    last = done.messages[-1] if done and done.messages else None
    return last if isinstance(last, HandoffMessage) else None


def _before(done: Any, word: HandoffMessage) -> tuple[list[tuple[str, str]], str]:
    """What was said before a handoff, and what the last words were: it has none itself."""
    texts = [one for one in done.messages if isinstance(one, BaseChatMessage) and one is not word]
    said = [(one.source, one.to_model_text()) for one in texts]
    return said[:-1], (said[-1][1] if said else word.content)
