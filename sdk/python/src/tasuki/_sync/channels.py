# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/channels.py. Do not edit.
"""Channels: names on which something goes to several receivers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from typing_extensions import Unpack

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._offers import Span, Telling, new_key, said
from .._report import payload as as_payload
from .._wire import Deadline, milliseconds
from .base import Wire

#: How many must have a result: all, any, or a number.
Need: TypeAlias = Literal["all", "any"] | int


@dataclass(frozen=True)
class Publication:
    """What was published: a task, and below it one for each receiver."""

    wire: Wire
    published: m.Published

    @property
    def task_id(self) -> str:
        """The publisher's own task."""
        return self.published.task_id

    @property
    def handoffs(self) -> dict[str, m.Told]:
        """What each receiver was told."""
        return {str(told.to.agent or told.to.capability): told for told in self.published.handoffs}

    @property
    def unheard(self) -> list[str]:
        """Receivers for whom it is stored although nobody is listening."""
        return [name for name, told in self.handoffs.items() if not told.listening]

    def join(
        self, *, need: Need = "all", timeout: Span | None = None, limit: int | None = None
    ) -> m.Gathered:
        """Waits until as many as needed have a result, and says who is missing."""
        return join(self.wire, self.task_id, need=need, timeout=timeout, limit=limit)

    def results(self, *, timeout: Span | None = None) -> dict[str, dict[str, Any]]:
        """Waits for all of them and returns what each has made. Raises if one is missing."""
        gathered = self.join(timeout=timeout, limit=1000)
        if not gathered.satisfied:
            kind = errors.TimedOut if gathered.open else errors.TasukiError
            raise kind(
                f"{gathered.completed} of {gathered.receivers} have a result, "
                f"{gathered.failed} have failed",
                hint="`join` says who is missing",
            )
        members = list(gathered.members)
        while gathered.next:
            gathered = join(self.wire, self.task_id, timeout=0, limit=1000, before=gathered.next)
            members += gathered.members
        return {
            str(one.to.agent or one.to.capability): one.output.payload
            for one in members
            if one.to and one.output
        }


class Channel:
    """A name on which something is told to many, each with a handoff of its own."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire = wire
        self.name = name

    def publish(
        self,
        *,
        intent: str,
        receivers: Sequence[str] | None = None,
        payload: Any = None,
        from_agent: str | None = None,
        correlation_id: str | None = None,
        idempotency_key: str | None = None,
        **parts: Unpack[Telling],
    ) -> Publication:
        """Stores it for every receiver, in one step: for those that are named, or else for whoever
        subscribes. Each gets it at least once, and works on it as the owner of a task of its own.
        The same key publishes nothing twice. Further keywords as in `handoff` where they make
        sense for many (`constraints`, `summary`, `deadline`, `priority`, `terms`): see
        `Telling`."""
        if isinstance(receivers, str):
            raise TypeError(f"receivers is a list of names: [{receivers!r}]")
        if receivers is not None and not receivers:
            raise ValueError("nobody is named: leave receivers out to reach whoever subscribes")
        body = {
            **said(parts),
            "from_agent": self._wire.core.who(from_agent, "from_agent"),
            "intent": intent,
            "receivers": None if receivers is None else list(dict.fromkeys(receivers)),
            "payload": as_payload(payload, default="request"),
            "correlation_id": correlation_id,
            "idempotency_key": idempotency_key or new_key(),
        }
        path = {"name": self.name}
        told = self._wire.send(routes.CHANNEL_PUBLISH, path=path, body=body)
        return Publication(self._wire, told)

    def subscribe(self, agent: str | None = None) -> m.Channel:
        """Lets an agent hear what is told from now on."""
        body = {"agent": self._wire.core.who(agent, "agent")}
        return self._wire.send(routes.CHANNEL_SUBSCRIBE, path={"name": self.name}, body=body)

    def unsubscribe(self, agent: str | None = None) -> m.Channel:
        """Ends that."""
        body = {"agent": self._wire.core.who(agent, "agent")}
        return self._wire.send(routes.CHANNEL_UNSUBSCRIBE, path={"name": self.name}, body=body)

    def subscribers(self) -> list[m.Subscriber]:
        """Who hears what is told."""
        return (self._wire.send(routes.CHANNEL_SHOW, path={"name": self.name})).subscribers

    def messages(self, *, after: str | int | None = None, limit: int | None = None) -> m.Messages:
        """What was told, for whoever came late. `next` of the answer is where to read on."""
        path, query = {"name": self.name}, {"after": after, "limit": limit}
        return self._wire.send(routes.CHANNEL_MESSAGES, path=path, query=query)


def join(
    wire: Wire,
    task_id: str,
    *,
    need: Need = "all",
    timeout: Span | None = None,
    limit: int | None = None,
    before: str | None = None,
) -> m.Gathered:
    """Collects what the tasks below one have come to, in as many requests as it takes. Ends when
    enough have a result, when enough can no longer have one, or when the time is over."""
    deadline = Deadline(timeout)
    while True:
        wait = deadline.next_wait()
        body = {
            "need": {"quorum": need} if isinstance(need, int) else need,
            "wait_ms": milliseconds(wait, "wait"),
            "limit": limit,
            "before": before,
        }
        found = wire.send(routes.TASK_JOIN, path={"id": task_id}, body=body, wait=wait)
        missing = found.need - found.completed
        if found.satisfied or missing > found.open or deadline.over():
            return found
