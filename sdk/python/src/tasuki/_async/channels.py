# SPDX-License-Identifier: Apache-2.0
"""Channels: names on which something goes to several receivers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import Unpack

from .. import errors
from .. import models as m
from .._offers import Hop, Span, new_key
from .handoffs import AsyncHandoff

if TYPE_CHECKING:
    from .client import AsyncClient


@dataclass(frozen=True)
class AsyncPublication:
    """What was published: a task, and below it one for each receiver."""

    client: AsyncClient
    task_id: str
    #: The handoff of each receiver.
    handoffs: dict[str, AsyncHandoff]

    @property
    def unheard(self) -> list[str]:
        """Receivers for whom it is stored although nobody is listening."""
        return [name for name, handoff in self.handoffs.items() if not handoff.listening]

    async def results(self, *, timeout: Span | None = None) -> dict[str, m.ResultReport]:
        """Waits for all of them. The first without a result raises."""
        found = await self.client.results(list(self.handoffs.values()), timeout=timeout)
        return dict(zip(self.handoffs, found, strict=True))

    async def wait(self, *, mode: m.Mode = "all", timeout: Span | None = None) -> m.Waited:
        """Waits for all of them, or for any. What is still open then is in the answer."""
        return await self.client.wait(list(self.handoffs.values()), mode=mode, timeout=timeout)


class AsyncChannel:
    """A name on which something goes to several receivers, each with a handoff of its own."""

    def __init__(self, client: AsyncClient, name: str) -> None:
        self._client = client
        self.name = name

    async def publish(
        self,
        *,
        receivers: Sequence[str],
        intent: str,
        payload: Any = None,
        from_agent: str | None = None,
        idempotency_key: str | None = None,
        **hop: Unpack[Hop],
    ) -> AsyncPublication:
        """Stores it for every receiver before it returns; each gets it at least once, and works on
        it as the owner of a task of its own. The same key publishes nothing twice."""
        if not receivers:
            raise ValueError("a publication needs receivers")
        key = idempotency_key or new_key()
        task = await self._client.tasks.open(
            intent,
            from_agent=from_agent,
            correlation_id=self.name,
            idempotency_key=f"{key}:{self.name}",
        )
        names = list(dict.fromkeys(receivers))
        offers: list[dict[str, Any]] = [
            {
                **hop,
                "to": receiver,
                "from_agent": from_agent,
                "task_id": task.task_id,
                "control": "awaited",
                "payload": payload,
                "idempotency_key": f"{key}:{self.name}:{receiver}",
            }
            for receiver in names
        ]
        handoffs: dict[str, AsyncHandoff] = {}
        answers = await self._client.handoff_many(offers)
        for receiver, answer in zip(names, answers, strict=True):
            if isinstance(answer, errors.Refused):
                raise answer
            handoffs[receiver] = answer
        return AsyncPublication(self._client, task.task_id, handoffs)
