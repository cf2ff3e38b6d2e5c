# SPDX-License-Identifier: Apache-2.0
"""Tasks, handoffs and dead letters by their id, and the log of all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal

import httpx
from typing_extensions import Unpack

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._misuse import listed
from .._offers import JsonObject, Said, Span, new_key, said, target
from .._report import payload as as_payload
from .._wire import fit, milliseconds, refusal_of, whole
from ..keys import bare
from .base import AsyncWire
from .channels import Need, join
from .handoffs import AsyncHandoff


class AsyncTasks:
    """Pieces of work, from the user's words to their end."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def open(
        self,
        intent: str,
        *,
        parent_task_id: str | None = None,
        correlation_id: str | None = None,
        coordinator: str | m.Coordinator | JsonObject | None = None,
        project: str | None = None,
        on_parent_end: m.OnParentEnd | None = None,
        from_agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> m.Task:
        """Opens one that is nobody else's yet."""
        body = {
            "from_agent": self._wire.core.who(from_agent, "from_agent"),
            "intent": intent,
            "parent_task_id": parent_task_id,
            "correlation_id": correlation_id,
            "coordinator": said({"coordinator": coordinator})["coordinator"],
            "project": project,
            "on_parent_end": on_parent_end,
            "idempotency_key": idempotency_key or new_key(),
        }
        return await self._wire.send(routes.TASK_OPEN, body=body)

    async def get(self, id: str) -> m.TaskWithParts:
        """Shows one, with its handoffs and the tasks below it."""
        return await self._wire.send(routes.TASK_SHOW, path={"id": id})

    async def page(
        self,
        *,
        owner: str | None = None,
        state: str | None = None,
        parent: str | None = None,
        project: str | None = None,
        correlation_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> m.Tasks:
        """Lists some, the newest first."""
        query = {
            "owner": owner,
            "state": state,
            "parent": parent,
            "project": project,
            "correlation_id": correlation_id,
            "limit": limit,
            "before": before,
        }
        return await self._wire.send(routes.TASK_LIST, query=query)

    async def cancel(self, id: str, *, by: str | None = None, reason: str | None = None) -> m.Task:
        """Ends one, and what is under way of it."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        try:
            return await self._wire.send(routes.TASK_CANCEL, path={"id": id}, body=body)
        except errors.Conflict as refused:
            if not refused.in_doubt:
                raise
            # The answer to an earlier try was lost: it may have ended by it.
            content = await self._wire.exchange(routes.TASK_SHOW, {"id": id})
            shown = fit(routes.TASK_SHOW, m.Task, whole(routes.TASK_SHOW, content))
            if shown.state == "cancelled":
                return shown
            raise

    async def complete(
        self,
        id: str,
        result: Any = None,
        *,
        below: Literal["refuse", "let_go"] = "refuse",
        metadata: Mapping[str, Any] | None = None,
        by: str | None = None,
    ) -> m.Task:
        """Ends one that is one's own with a result, while nobody else works on it. It does not end
        while a task below it is open, unless those may go on by themselves (`let_go`)."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "payload": as_payload({} if result is None else result, default="result"),
            "below": below,
            "metadata": dict(metadata or {}) or None,
        }
        return await self._wire.send(routes.TASK_COMPLETE, path={"id": id}, body=body)

    async def join(
        self,
        id: str,
        *,
        need: Need = "all",
        timeout: Span | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> m.Gathered:
        """Collects what the tasks below one have come to, and says who is missing. `need` is how
        many must have a result: `all`, `any`, or a number."""
        options: dict[str, Any] = {"limit": limit, "before": before}
        return await join(self._wire, id, need=need, timeout=timeout, **options)

    async def lift(self, id: str, constraint: str, *, reason: str, by: str | None = None) -> m.Task:
        """Ends a constraint from the next envelope on. Only who issued it, or opened the task, can
        do that."""
        body = {"by": self._wire.core.who(by, "by"), "constraint": constraint, "reason": reason}
        return await self._wire.send(routes.TASK_LIFT, path={"id": id}, body=body)

    async def clear_taint(
        self, id: str, source: str, *, reason: str, by: str | None = None
    ) -> m.Task:
        """Lets a task go on although something that it is built on no longer holds."""
        body = {"by": self._wire.core.who(by, "by"), "source": source, "reason": reason}
        return await self._wire.send(routes.TASK_CLEAR_TAINT, path={"id": id}, body=body)

    async def branch(
        self,
        id: str,
        *,
        hop: int,
        to: str | None = None,
        to_capability: str | None = None,
        by: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncHandoff:
        """Begins anew from a hop, as a task of its own."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "hop": hop,
            "to": target(to, to_capability) if to or to_capability else None,
            "idempotency_key": idempotency_key or new_key(),
        }
        offered = await self._wire.send(routes.TASK_BRANCH, path={"id": id}, body=body)
        return AsyncHandoff(self._wire, offered)

    async def export(self, id: str) -> str:
        """A task and those below it, as one file that can be verified anywhere, and read by another
        broker (`client.chains.add`)."""
        return (await self._wire.exchange(routes.TASK_EXPORT, {"id": id})).decode()

    async def events(self, id: str) -> list[m.Event]:
        """All that happened to one, in order."""
        return (await self._wire.send(routes.TASK_EVENTS, path={"id": id})).events


class AsyncHandoffs:
    """Handoffs by their id, and what others than their sender and holder do with them."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def get(
        self, id: str, *, until: m.Until | None = None, wait: float | None = None
    ) -> m.HandoffWithResult:
        """Shows one; with `until`, as soon as it is that far, or after `wait` seconds."""
        query = {"until": until, "wait_ms": milliseconds(wait, "wait")}
        path = {"id": id}
        return await self._wire.send(routes.HANDOFF_SHOW, path=path, query=query, wait=wait or 0)

    async def page(
        self,
        *,
        state: str | None = None,
        from_agent: str | None = None,
        to_agent: str | None = None,
        to_capability: str | None = None,
        task: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> m.Handoffs:
        """Lists some, the newest first."""
        query = {
            "state": state,
            "from_agent": from_agent,
            "to_agent": to_agent,
            "to_capability": to_capability,
            "task": task,
            "limit": limit,
            "before": before,
        }
        return await self._wire.send(routes.HANDOFF_LIST, query=query)

    async def envelope(self, id: str) -> m.Envelope:
        """What exactly the receiver gets."""
        return await self._wire.send(routes.HANDOFF_ENVELOPE, path={"id": id})

    async def raw_envelope(self, id: str) -> dict[str, Any]:
        """The same, exactly as it is stored: `tasuki.address` of it is its hash."""
        route = routes.HANDOFF_ENVELOPE
        return whole(route, await self._wire.exchange(route, {"id": id}))

    async def prompt(
        self, id: str, *, tokenizer: str | None = None, max_tokens: int | None = None
    ) -> m.Prompt:
        """The envelope as a model reads it. The payload is not in it: that is for the program."""
        query = {"tokenizer": tokenizer, "max_tokens": max_tokens}
        return await self._wire.send(routes.HANDOFF_PROMPT, path={"id": id}, query=query)

    async def peek(
        self,
        *,
        agent: str | None = None,
        capabilities: Sequence[str] = (),
        max: int | None = None,
        majors: Sequence[int] = (),
    ) -> list[m.Waiting]:
        """Looks at what waits, without claiming it."""
        body = {
            "agent": self._wire.core.who(agent, "agent"),
            "capabilities": listed(capabilities, "capabilities") or None,
            "max": max,
            "majors": listed(majors, "majors") or None,
        }
        return (await self._wire.send(routes.HANDOFF_PEEK, body=body)).waiting

    async def decline(
        self, id: str, *, agent: str | None = None, reason: str | None = None
    ) -> m.Moved:
        """Says that an agent will not do it, without having claimed it."""
        body = {"agent": self._wire.core.who(agent, "agent"), "reason": reason}
        return await self._wire.send(routes.HANDOFF_DECLINE, path={"id": id}, body=body)

    async def ready(
        self,
        *,
        to_agent: str | None = None,
        to_capability: str | None = None,
        from_agent: str | None = None,
        limit: int | None = None,
    ) -> m.ReadyView:
        """What can be started now, and what holds back the rest."""
        query = {
            "to_agent": to_agent,
            "to_capability": to_capability,
            "from_agent": from_agent,
            "limit": limit,
        }
        return await self._wire.send(routes.HANDOFF_READY, query=query)

    async def questions(
        self,
        *,
        kind: m.QuestionKind | None = None,
        task: str | None = None,
        from_agent: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> m.Questions:
        """Questions that wait for an answer."""
        query = {
            "kind": kind,
            "task": task,
            "from_agent": from_agent,
            "limit": limit,
            "before": before,
        }
        return await self._wire.send(routes.QUESTION_LIST, query=query)

    async def answer(
        self, id: str, answer: Any, *, by: str | None = None, question: str | None = None
    ) -> m.Moved:
        """Answers the question it waits with. An `authorization` wants an object with a boolean
        `granted`."""
        body = {"by": self._wire.core.who(by, "by"), "answer": answer, "question": question}
        return await self._wire.send(routes.QUESTION_ANSWER, path={"id": id}, body=body)

    async def message(
        self,
        id: str,
        text: str,
        *,
        by: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> list[m.HolderMessage]:
        """Sends a word to whoever holds the work; it comes with the holder's next heartbeat."""
        said = {"text": text, "details": dict(details or {}) or None}
        body = {"by": self._wire.core.who(by, "by"), **said}
        found = await self._wire.send(routes.HANDOFF_MESSAGE, path={"id": id}, body=body)
        return found.messages

    async def messages(self, id: str) -> list[m.HolderMessage]:
        """Words to its holders, and who took note of them."""
        return (await self._wire.send(routes.HANDOFF_MESSAGES, path={"id": id})).messages

    async def artifacts(self, id: str, name: str | None = None) -> list[m.Artifact]:
        """Pieces of work that are there already; with a `name`, that one with its content."""
        path, query = {"id": id}, {"name": name}
        return (await self._wire.send(routes.HANDOFF_ARTIFACTS, path=path, query=query)).artifacts

    async def approve(self, id: str, *, by: str | None = None) -> m.Moved:
        """Lets one go that waits for approval."""
        return await self._by(routes.HANDOFF_APPROVE, id, by)

    async def reject(self, id: str, *, reason: str, by: str | None = None) -> m.Moved:
        """Makes a dead letter of one that waits for approval. Its sender reads the reason."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return await self._wire.send(routes.HANDOFF_REJECT, path={"id": id}, body=body)

    async def cancel(self, id: str, *, by: str | None = None, reason: str | None = None) -> m.Moved:
        """Takes one back."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return await self._wire.send(routes.HANDOFF_CANCEL, path={"id": id}, body=body)

    async def abort(self, id: str, *, by: str | None = None, reason: str | None = None) -> m.Moved:
        """Ends one as failed."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return await self._wire.send(routes.HANDOFF_ABORT, path={"id": id}, body=body)

    async def retract(
        self, id: str, *, reason: str, policy: m.TaintPolicy = "flag", by: str | None = None
    ) -> m.Handoff:
        """Takes back what a completed one produced. What is built on it is tainted: flagged, or
        held back until somebody has approved (`block`)."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason, "policy": policy}
        return await self._wire.send(routes.HANDOFF_RETRACT, path={"id": id}, body=body)

    async def erase(self, id: str, *, reason: str, by: str | None = None) -> m.Moved:
        """Removes what one carried for good, once its task is at its end."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return await self._wire.send(routes.HANDOFF_ERASE, path={"id": id}, body=body)

    async def counter(
        self,
        id: str,
        *,
        reason: str,
        agent: str | None = None,
        capabilities: Sequence[str] = (),
        terms: m.TermsPatch | JsonObject | None = None,
        budget_tokens: int | None = None,
    ) -> m.Handoff:
        """Says on which other terms this agent would take it."""
        body = {
            "agent": self._wire.core.who(agent, "agent"),
            "reason": reason,
            "capabilities": listed(capabilities, "capabilities") or None,
            "terms": terms,
            "budget_tokens": budget_tokens,
        }
        return await self._wire.send(routes.HANDOFF_COUNTER, path={"id": id}, body=body)

    async def settle(
        self, id: str, *, agent: str, accept: bool, by: str | None = None
    ) -> m.Handoff:
        """Takes or refuses a counter-offer."""
        body = {"agent": agent, "accept": accept, "by": self._wire.core.who(by, "by")}
        try:
            return await self._wire.send(routes.HANDOFF_SETTLE, path={"id": id}, body=body)
        except errors.Conflict as refused:
            if not refused.in_doubt or refused.code != "no_counter":
                raise
            # The answer to an earlier try was lost: the counter-offer is gone because of it, or
            # because somebody else has settled it; the log knows.
            return await self._settled(id, agent, accept, refused)

    async def _settled(
        self, id: str, agent: str, accept: bool, refused: errors.Conflict
    ) -> m.Handoff:
        content = await self._wire.exchange(routes.HANDOFF_SHOW, {"id": id})
        shown = fit(routes.HANDOFF_SHOW, m.Handoff, whole(routes.HANDOFF_SHOW, content))
        log = await self._wire.send(routes.TASK_EVENTS, path={"id": shown.task_id})
        done = [
            event.record.kind
            for event in log.events
            if event.record.handoff_id == id
            and event.record.kind in ("counter_accepted", "counter_refused")
            and bare(str(event.record.agent)) == bare(agent)
        ]
        if done and done[-1] == ("counter_accepted" if accept else "counter_refused"):
            return shown
        raise refused

    async def _by(self, route: Any, id: str, by: str | None) -> m.Moved:
        body = {"by": self._wire.core.who(by, "by")}
        moved: m.Moved = await self._wire.send(route, path={"id": id}, body=body)
        return moved


class AsyncDeadLetters:
    """Handoffs on which somebody has to decide."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def page(
        self, *, decided: bool | None = None, limit: int | None = None, before: str | None = None
    ) -> m.Handoffs:
        """Lists those that wait; with `decided`, those that were decided on, too."""
        query = {"all": decided, "limit": limit, "before": before}
        return await self._wire.send(routes.DEAD_LETTER_LIST, query=query)

    async def get(self, id: str) -> m.DeadLetter:
        """Shows one, with its envelope and every report of a failure."""
        return await self._wire.send(routes.DEAD_LETTER_SHOW, path={"id": id})

    async def redrive(
        self, id: str, *, expires_in: Span | None = None, by: str | None = None
    ) -> AsyncHandoff:
        """Sends the same envelope on its way again, as a new handoff. Without `expires_in` it may
        take as long as before, and what expired gets at least the broker's own span."""
        body = {"by": self._wire.core.who(by, "by"), "expires_in_ms": _anew(expires_in)}
        offered = await self._wire.send(routes.DEAD_LETTER_REDRIVE, path={"id": id}, body=body)
        return AsyncHandoff(self._wire, offered)

    async def reroute(
        self,
        id: str,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        expires_in: Span | None = None,
        by: str | None = None,
    ) -> AsyncHandoff:
        """Sends it to somebody else."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "to": target(to, to_capability),
            "expires_in_ms": _anew(expires_in),
        }
        offered = await self._wire.send(routes.DEAD_LETTER_REROUTE, path={"id": id}, body=body)
        return AsyncHandoff(self._wire, offered)

    async def amend(
        self,
        id: str,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        terms: m.TermsPatch | JsonObject | None = None,
        expires_in: Span | None = None,
        budget: m.Budget | JsonObject | None = None,
        by: str | None = None,
        **parts: Unpack[Said],
    ) -> AsyncHandoff:
        """Sends it on its way again with a new envelope, which is linked to the old one and held to
        the same constraints. What is not said stays as it was. A `budget` counts from here on,
        instead of the one that the task had."""
        body = {
            **said(parts, empty=True),
            "by": self._wire.core.who(by, "by"),
            "to": target(to, to_capability) if to or to_capability else None,
            "payload": None if payload is None else as_payload(payload, default="request"),
            "terms": terms,
            "expires_in_ms": _anew(expires_in),
            "budget": budget,
        }
        offered = await self._wire.send(routes.DEAD_LETTER_AMEND, path={"id": id}, body=body)
        return AsyncHandoff(self._wire, offered)

    async def answer(
        self,
        id: str,
        decision: m.SaidDecision | JsonObject,
        *,
        expires_in: Span | None = None,
        by: str | None = None,
    ) -> AsyncHandoff:
        """Decides what it stopped at, and lets the work go on with the decision."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "decision": decision,
            "expires_in_ms": _anew(expires_in),
        }
        offered = await self._wire.send(routes.DEAD_LETTER_ANSWER, path={"id": id}, body=body)
        return AsyncHandoff(self._wire, offered)

    async def take(self, id: str, *, span: Span = 900.0, by: str | None = None) -> m.Handoff:
        """Keeps others from deciding on it for a while; 0 gives it back."""
        body = {"by": self._wire.core.who(by, "by"), "for_ms": milliseconds(span)}
        return await self._wire.send(routes.DEAD_LETTER_TAKE, path={"id": id}, body=body)

    async def groups(self) -> list[m.DeadLetterGroup]:
        """Those that wait, by what they died of."""
        return (await self._wire.send(routes.DEAD_LETTER_GROUPS)).groups

    async def decide_many(
        self,
        decision: Literal["retry"] | JsonObject,
        *,
        handoffs: Sequence[str] = (),
        fingerprint: str | None = None,
        dry_run: bool = False,
        expires_in: Span | None = None,
        by: str | None = None,
    ) -> m.DecidedMany:
        """Decides on many at once: `"retry"`, `{"reroute": {"agent": …}}` or `{"abort": reason}`.
        With `dry_run` it only says which ones it would be."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "decision": decision,
            "handoffs": listed(handoffs, "handoffs") or None,
            "fingerprint": fingerprint,
            "dry_run": dry_run or None,
            "expires_in_ms": _anew(expires_in),
        }
        return await self._wire.send(routes.DEAD_LETTER_DECIDE_MANY, body=body)

    async def discard(self, id: str, *, reason: str, by: str | None = None) -> m.Moved:
        """Puts one away for good."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return await self._wire.send(routes.DEAD_LETTER_DISCARD, path={"id": id}, body=body)


class AsyncChains:
    """Chains that other brokers exported, for reading."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def add(
        self, file: str, *, project: str | None = None, by: str | None = None
    ) -> m.ImportedChain:
        """Keeps what `client.tasks.export` wrote elsewhere."""
        body = {"by": self._wire.core.who(by, "by"), "file": file, "project": project}
        return await self._wire.send(routes.CHAIN_IMPORT, body=body)

    async def get(self, id: str) -> m.ImportedChainWithFile:
        """Shows one with its file, and whether it is whole."""
        return await self._wire.send(routes.CHAIN_SHOW, path={"id": id})

    async def page(
        self, *, limit: int | None = None, before: str | int | None = None
    ) -> m.ImportedChains:
        """Lists them, the last one first."""
        query = {"limit": limit, "before": before}
        return await self._wire.send(routes.CHAIN_LIST, query=query)


class AsyncAudit:
    """The log of everything."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def verify(self, *, full: bool = False) -> m.Verdict:
        """Checks every hash, body and signature of what came to the log since it was last found
        intact; with `full`, of all of it."""
        return await self._wire.send(routes.AUDIT_VERIFY, query={"full": full or None}, wait=600)

    async def export(self, *, after: str | int | None = None) -> AsyncIterator[str]:
        """The log, line by line, as `tasuki audit verify --file` reads it."""
        try:
            await self._wire.meet()
            request = self._wire.core.request(
                routes.AUDIT_EXPORT, path={}, query={"after": after}, body=None, wait=600
            )
            response = await self._wire.http.send(request, stream=True)
            try:
                if not response.is_success:
                    content = await response.aread()
                    raise refusal_of(response, self._wire.core.base_url, content)
                async for line in response.aiter_lines():
                    yield line
            finally:
                await response.aclose()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise errors.Unreachable(
                f"the log broke off: {error or type(error).__name__}",
                hint="ask again with its last `cursor` as `after`: up to there it is whole",
            ) from error

    async def metrics(self) -> str:
        """What is measured, most of it from the log, as text for Prometheus."""
        core = self._wire.core
        request = core.request(routes.METRICS_SHOW, path={}, query={}, body=None, wait=60)
        try:
            response = await self._wire.http.send(request)
        except httpx.HTTPError as error:
            raise errors.Unreachable(
                f"no metrics came: {error or type(error).__name__}",
                hint="is the broker there? `tasuki ready` says so",
            ) from error
        if not response.is_success:
            raise refusal_of(response, core.base_url, response.content)
        return response.text

    async def refusals(self) -> m.Refusals:
        """The last attempts that nobody stood behind."""
        return await self._wire.send(routes.SECURITY_SHOW)


def _anew(span: Span | None) -> int | None:
    return None if span is None else milliseconds(span)
