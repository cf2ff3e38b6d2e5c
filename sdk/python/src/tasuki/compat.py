# SPDX-License-Identifier: Apache-2.0
"""`MemorySpine`: for programs that were written for its interface. A change of the import line
makes them talk to Tasuki."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Literal

from . import errors
from . import models as m
from ._canonical import address
from ._offers import new_key
from ._sync.client import Client
from ._sync.handoffs import Handoff
from ._wire import Retry, plain
from .keys import Key

_ID = re.compile(r"\bms-(\d+)\b(?:\s*(?:through|to|until|-|\u2013|\u2026|\.\.)\s*ms-(\d+)\b)?")
#: How many memories one range may name. More is likely a mistake in the text.
_RANGE_MAX = 1000
BROADCAST = "broadcast"


@dataclass(frozen=True)
class AssembledHandoff:
    """An envelope that was put together and not sent yet."""

    #: The major of the envelope's version, which alone decides who can read it.
    envelope_version: str
    #: How many tokens a receiver reads, in its own tokens if they are known.
    token_count: int
    #: The memories it has or refers to.
    memory_refs: list[str]
    #: For whom it was put together; `None` for everybody.
    target_agent: str | None
    #: The user's words.
    intent: str
    #: All that the broker answered: the prompt, the receipt, what to send.
    assembled: m.AssembleReply = field(repr=False)
    #: What tells it from every other one.
    key: str = field(default_factory=new_key, repr=False)
    _sent: dict[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)

    @property
    def receipt(self) -> m.Receipt:
        """What was kept, shortened, left out or not found."""
        return self.assembled.receipt

    @property
    def prompt(self) -> str:
        """What a model reads."""
        return self.assembled.prompt

    def _key(self, *where: str) -> str:
        """The same envelope for the same place is the same handoff, however often it is sent."""
        return f"{self.key}:{address(list(where))[7:23]}"


@dataclass(frozen=True)
class Acknowledgment:
    """Who has taken a handoff."""

    handoff_id: str
    task_id: str
    agent: str
    status: str


@dataclass(frozen=True)
class Published:
    """What became of an envelope for one receiver."""

    receiver: str
    handoff_id: str
    task_id: str
    #: `stored`, or `stored; nobody is listening` if no such agent was heard of lately.
    status: str


class MemorySpine:
    """Assembles, delivers, publishes and parks envelopes.

    `agent` is in whose name it does that. `project` is where memories are looked for, besides the
    agent's own.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        agent: str | None = None,
        project: str | None = None,
        token: str | None = None,
        key: Key | str | os.PathLike[str] | None = None,
        retry: Retry | None = None,
    ) -> None:
        self.client = Client(endpoint, token=token, key=key, retry=retry)
        core = self.client._wire.core
        core.agent = agent or core.agent or "memory-spine"
        self.project = project

    def close(self) -> None:
        """Gives the connections up."""
        self.client.close()

    def agent_handoff(
        self,
        target_agent: str,
        include_recent: int = 20,
        include_pins: bool = True,
        task_summary: str = "",
        constraints: Mapping[str, Any] | Sequence[Any] | None = None,
        execution_history: Sequence[Mapping[str, Any]] | None = None,
    ) -> AssembledHandoff:
        """Puts together what `target_agent` needs: the task, memories, what was done, what binds.

        Memories that the text or the history name (`ms-4821`, `ms-4821 through ms-4825`) are looked
        up; those that are not there become gaps of the envelope. `max_tokens` in the constraints is
        the budget, `deadline` the deadline; a list of texts binds as well. `task_summary` is what
        the user asked for: there is no handoff without it. Nothing is sent yet.
        """
        if not task_summary.strip():
            raise ValueError("say task_summary=…: what the user asked for, in words")
        history = list(execution_history or [])
        named = _named_memories(task_summary)
        named += [str(step["memory_id"]) for step in history if step.get("memory_id")]
        target = None if target_agent == BROADCAST else target_agent
        reply = self.client.assemble(
            to=target,
            intent=task_summary,
            project=self.project,
            include_recent=include_recent,
            include_pins=include_pins,
            constraints=_constraints(constraints),
            history=[_step(step) for step in history],
            memory_refs=list(dict.fromkeys(named)),
        )
        return AssembledHandoff(
            envelope_version=reply.envelope_version.split(".")[0],
            token_count=reply.token_count,
            memory_refs=reply.memory_refs,
            target_agent=target,
            intent=task_summary,
            assembled=reply,
        )

    def deliver_handoff(
        self, envelope: AssembledHandoff, target: str, timeout: float = 15.0
    ) -> Acknowledgment:
        """Sends an envelope and waits until it is accepted. Raises `TimeoutError` if it is not; the
        handoff is stored then and waits, and delivering the same envelope again waits for the same
        handoff. Raises `HandoffFailed` if it has ended without anybody having taken it: it was
        declined, parked or cancelled, or has expired."""
        handoff = self._offer(envelope, target)
        try:
            claimed = handoff.acknowledged(timeout)
        except errors.TimedOut as error:
            if handoff.listening:
                raise
            raise errors.TimedOut(
                f"nobody is listening: {target} is not there to take {handoff.id}, which is stored",
                hint=error.hint,
            ) from error
        return Acknowledgment(
            handoff.id, handoff.task_id, claimed.attempts[-1].agent, claimed.status
        )

    def get_channel(self, name: str) -> Channel:
        """A name on which envelopes are published."""
        return Channel(self, name)

    def park_envelope(self, envelope: AssembledHandoff, reason: str) -> str:
        """Puts an envelope that nobody took among the dead letters, where somebody has to decide on
        it. Offers of it that nobody has taken yet are taken back. Returns the id of the dead
        letter, or of the handoff that somebody took after all."""
        if not envelope._sent:
            self._offer(envelope, envelope.target_agent or self._agent)
        for handoff_id, target in list(envelope._sent.items()):
            if self.client.handoffs.get(handoff_id).state in ("pending", "scheduled"):
                self._park(envelope, handoff_id, target, reason)
        return list(envelope._sent)[-1]

    @property
    def _agent(self) -> str:
        return self.client._wire.core.who(None, "agent")

    def _offer(self, envelope: AssembledHandoff, target: str) -> Handoff:
        handoff = self.client.handoff(
            to=target,
            intent=envelope.intent,
            payload={"type": "handoff"},
            correlation_id=envelope.key,
            idempotency_key=envelope._key("to", target),
            assembled=envelope.assembled,
        )
        envelope._sent[handoff.id] = target
        return handoff

    def _park(self, envelope: AssembledHandoff, handoff_id: str, target: str, reason: str) -> None:
        """Makes a dead letter of an offer. Nobody speaks for the one who is not there: the sender
        takes its own offer back, claims the work from itself, and says why it came to nothing."""
        try:
            self.client.handoffs.cancel(handoff_id, reason=reason)
        except errors.Conflict:
            return  # Somebody took it after all.
        own = self._offer(envelope, self._agent)
        with self.client.claim_handoff(own.id, agent=self._agent) as claim:
            hint = f"deliver it to {target} once it is there"
            claim.fail(reason, kind="permanent", type="parked", hint=hint)


class Channel:
    """A name on which an envelope goes to several receivers, each with a handoff of its own."""

    def __init__(self, spine: MemorySpine, name: str) -> None:
        self._spine = spine
        self.name = name

    def publish(
        self,
        envelope: AssembledHandoff,
        receivers: Sequence[str],
        delivery: Literal["at-least-once"] = "at-least-once",
    ) -> list[Published]:
        """Stores the envelope for every receiver before it returns. Publishing the same again
        stores nothing twice."""
        if isinstance(receivers, str):
            raise TypeError(f"receivers is a list of names: [{receivers!r}]")
        if delivery != "at-least-once":
            raise ValueError(
                f"{delivery!r} is not offered: at-least-once is, and keys drop repeats"
            )
        publication = self._spine.client.channel(self.name).publish(
            receivers=sorted(set(receivers)),
            intent=envelope.intent,
            payload={"type": "handoff", "channel": self.name},
            idempotency_key=envelope._key("channel", self.name, *sorted(set(receivers))),
            assembled=envelope.assembled,
        )
        published: list[Published] = []
        for receiver in dict.fromkeys(receivers):
            told = publication.handoffs[receiver]
            envelope._sent[told.handoff_id] = receiver
            status = "stored" if told.listening else "stored; nobody is listening"
            published.append(Published(receiver, told.handoff_id, told.task_id, status))
        return published


def _named_memories(text: str) -> list[str]:
    found: list[str] = []
    for match in _ID.finditer(text):
        first, last = match[1], match[2] or match[1]
        count = int(last) - int(first) + 1
        if 0 < count <= _RANGE_MAX:
            width = len(first)
            found += [f"ms-{number:0{width}d}" for number in range(int(first), int(last) + 1)]
        else:
            found += [f"ms-{first}", f"ms-{last}"]
    return found


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    known = {
        name: step[name] for name in ("action", "decision", "why", "memory_id") if name in step
    }
    # The broker writes down who says something; who did it is then part of what is said.
    if step.get("agent"):
        known["action"] = f"{step['agent']}: {known.get('action', '')}"
    return known


def _constraints(
    given: Mapping[str, Any] | Sequence[Any] | None,
) -> dict[str, Any] | Sequence[Any] | None:
    """A deadline that has passed cannot be kept: it goes along as a text, and a warning says so."""
    if isinstance(given, str):
        raise TypeError(f"constraints is a mapping or a list of texts: [{given!r}]")
    if not isinstance(given, Mapping):
        return given
    known = dict(given)
    deadline = known.get("deadline")
    if deadline is None:
        return known
    moment = _moment(deadline)
    if moment and moment <= datetime.now(timezone.utc):
        del known["deadline"]
        known["passed_deadline"] = str(deadline)
        warnings.warn(
            f"the deadline {deadline} has passed: it is handed on as a text and ends nothing",
            errors.DeadlinePassed,
            stacklevel=3,
        )
    elif moment:
        known["deadline"] = plain(moment)
    return known


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.astimezone()
