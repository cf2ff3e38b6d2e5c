# SPDX-License-Identifier: Apache-2.0
"""AutoGen: a remote agent as a member of a team, and a team or an agent that serves.

Needs the extra `tasuki[autogen]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, TextMessage
from autogen_core import CancellationToken
from typing_extensions import Unpack

from ._adapters import Errors, Serving, ask, current_claim, served, tool_name
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._canonical import address
from ._offers import Span
from .worker import AsyncWorker

__all__ = ["RemoteAgent", "current_claim", "serve"]


class RemoteAgent(BaseChatAgent):
    """A member of a team whose turn is done by another agent, through the broker. In a `Swarm`,
    `back_to` is who speaks next. What was said so far goes along as quoted text."""

    def __init__(
        self,
        to: str,
        *,
        back_to: str | None = None,
        by_capability: bool = False,
        client: AsyncClient | None = None,
        timeout: Span | None = None,
        on_error: Errors = "text",
    ) -> None:
        super().__init__(tool_name(to, "remote"), description=f"{to}, who works elsewhere.")
        self._to = to
        self._back_to = back_to
        self._turns = 0
        self._how: dict[str, Any] = {
            "by_capability": by_capability,
            "client": client,
            "timeout": timeout,
            "on_error": on_error,
        }

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
        said = "\n".join(f"> {one.source}: {one.to_model_text()}" for one in messages)
        self._turns += 1
        key = None
        if current_claim():
            key = f"{self.name}:{self._turns}:{address(said)[7:23]}"
        answer = await ask(self._to, said, key=key, **self._how)
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
        done = await make().run(task=prompt, cancellation_token=CancellationToken())
        for message in done.messages:
            used = message.models_usage
            if used:
                claim.usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens)
        last = done.messages[-1]
        return getattr(last, "content", None) or last.to_text()

    return served(run, name, **options)
