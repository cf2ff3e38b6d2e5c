# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/groups.py. Do not edit.
"""The rest of the API, by noun."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import _routes as routes
from .. import models as m
from .._offers import JsonObject, Span, new_key
from .._wire import milliseconds
from ..keys import Key
from .base import Wire


class Memories:
    """What agents know: pieces of knowledge with an id, kept revision by revision."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def add(
        self,
        text: str,
        *,
        id: str | None = None,
        title: str | None = None,
        summary: str | None = None,
        tags: Sequence[str] = (),
        pinned: bool = False,
        priority: m.Priority = "normal",
        project: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        by: str | None = None,
        idempotency_key: str | None = None,
    ) -> m.Memory:
        """Keeps something. It is about a project, a task or an agent, or else about who wrote
        it."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "text": text,
            "id": id,
            "title": title,
            "summary": summary,
            "tags": list(tags),
            "pinned": pinned or None,
            "priority": priority,
            "scope": _scope(project, task, agent),
            "idempotency_key": idempotency_key or new_key(),
        }
        return self._wire.send(routes.MEMORY_ADD, body=body)

    def get(
        self, id: str, *, revision: int | None = None, detail: m.Detail | None = None
    ) -> m.Memory:
        """Fetches one, in as much detail as is wanted."""
        query = {"revision": revision, "detail": detail}
        return self._wire.send(routes.MEMORY_SHOW, path={"id": id}, query=query)

    def page(
        self,
        *,
        q: str | None = None,
        project: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        tag: str | None = None,
        pinned: bool | None = None,
        superseded: bool | None = None,
        deleted: bool | None = None,
        detail: m.Detail | None = None,
        limit: int | None = None,
        before: int | None = None,
    ) -> m.Memories:
        """Finds some: by words (`q`), the best first; else the newest first."""
        query = {
            "q": q,
            "project": project,
            "task": task,
            "agent": agent,
            "tag": tag,
            "pinned": pinned,
            "superseded": superseded,
            "deleted": deleted,
            "detail": detail,
            "limit": limit,
            "before": before,
        }
        return self._wire.send(routes.MEMORY_LIST, query=query)

    def search(
        self,
        q: str,
        *,
        project: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        tag: str | None = None,
        limit: int | None = None,
    ) -> list[m.Memory]:
        """Finds some by their words, the best first."""
        found = self.page(q=q, project=project, task=task, agent=agent, tag=tag, limit=limit)
        return found.memories

    def edit(
        self,
        id: str,
        *,
        text: str | None = None,
        title: str | None = None,
        summary: str | None = None,
        tags: Sequence[str] | None = None,
        priority: m.Priority | None = None,
        project: str | None = None,
        task: str | None = None,
        agent: str | None = None,
        revision: int | None = None,
        by: str | None = None,
    ) -> m.Memory:
        """Makes a new revision. With `revision`, only if that is still the last one; without it, a
        lost answer is not asked for again, because the edit might then be made twice."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "text": text,
            "title": title,
            "summary": summary,
            "tags": None if tags is None else list(tags),
            "priority": priority,
            "scope": _scope(project, task, agent),
            "revision": revision,
        }
        return self._wire.send(routes.MEMORY_EDIT, path={"id": id}, body=body, repeat=False)

    def pin(self, id: str, *, by: str | None = None) -> m.Memory:
        """Lets it travel with every handoff for which it is in scope."""
        body = {"by": self._wire.core.who(by, "by")}
        return self._wire.send(routes.MEMORY_PIN, path={"id": id}, body=body)

    def unpin(self, id: str, *, by: str | None = None) -> m.Memory:
        """Ends that."""
        body = {"by": self._wire.core.who(by, "by")}
        return self._wire.send(routes.MEMORY_UNPIN, path={"id": id}, body=body)

    def supersede(self, id: str, *, successor: str, by: str | None = None) -> m.Memory:
        """Says that another one takes its place."""
        body = {"by": self._wire.core.who(by, "by"), "successor": successor}
        return self._wire.send(routes.MEMORY_SUPERSEDE, path={"id": id}, body=body)

    def delete(self, id: str, *, reason: str, by: str | None = None) -> m.Memory:
        """Hides it. Its text is still there; see `erase`."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.MEMORY_DELETE, path={"id": id}, body=body)

    def erase(
        self, id: str, *, reason: str, revision: int | None = None, by: str | None = None
    ) -> m.Memory:
        """Removes its words for good. The log keeps their hash."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason, "revision": revision}
        return self._wire.send(routes.MEMORY_ERASE, path={"id": id}, body=body)


class Project:
    """What all agents of a project read: its state, its decisions, and what always holds."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire = wire
        self.name = name

    def context(self) -> m.SharedContext:
        """Reads it."""
        return self._wire.send(routes.CONTEXT_SHOW, path={"project": self.name})

    def write(
        self,
        *,
        state: m.ProjectState | JsonObject | None = None,
        constraints: Sequence[m.ProjectConstraint | JsonObject] | None = None,
        revision: int | None = None,
        by: str | None = None,
    ) -> m.SharedContext:
        """Replaces its state, its constraints or both. With `revision`, only if nobody was
        faster."""
        body: dict[str, Any] = {
            "by": self._wire.core.who(by, "by"),
            "state": state,
            "constraints": constraints,
            "revision": revision,
        }
        path = {"project": self.name}
        return self._wire.send(routes.CONTEXT_WRITE, path=path, body=body, repeat=False)

    def decide(
        self,
        key: str,
        decision: str,
        *,
        why: str | None = None,
        supersedes: int | None = None,
        by: str | None = None,
    ) -> m.SharedContext:
        """Settles a question. Another answer to the same one is refused, unless it says which
        decision it supersedes."""
        body = {
            "by": self._wire.core.who(by, "by"),
            "key": key,
            "decision": decision,
            "why": why,
            "supersedes": supersedes,
        }
        return self._wire.send(routes.CONTEXT_DECIDE, path={"project": self.name}, body=body)

    def decisions(self) -> list[m.ProjectDecision]:
        """What was decided, superseded ones included."""
        return (self.context()).decisions


class Tasks:
    """Pieces of work, from the user's words to their end."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def open(
        self,
        intent: str,
        *,
        parent_task_id: str | None = None,
        correlation_id: str | None = None,
        from_agent: str | None = None,
        idempotency_key: str | None = None,
    ) -> m.Task:
        """Opens one that is nobody else's yet."""
        body = {
            "from_agent": self._wire.core.who(from_agent, "from_agent"),
            "intent": intent,
            "parent_task_id": parent_task_id,
            "correlation_id": correlation_id,
            "idempotency_key": idempotency_key or new_key(),
        }
        return self._wire.send(routes.TASK_OPEN, body=body)

    def get(self, id: str) -> m.TaskWithParts:
        """Shows one, with its handoffs and the tasks below it."""
        return self._wire.send(routes.TASK_SHOW, path={"id": id})

    def page(
        self,
        *,
        owner: str | None = None,
        state: str | None = None,
        parent: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> m.Tasks:
        """Lists some, the newest first."""
        query = {
            "owner": owner,
            "state": state,
            "parent": parent,
            "limit": limit,
            "before": before,
        }
        return self._wire.send(routes.TASK_LIST, query=query)

    def cancel(self, id: str, *, by: str | None = None, reason: str | None = None) -> m.Task:
        """Ends one, and what is under way of it."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.TASK_CANCEL, path={"id": id}, body=body)

    def events(self, id: str) -> list[m.Event]:
        """All that happened to one, in order."""
        return (self._wire.send(routes.TASK_EVENTS, path={"id": id})).events


class Handoffs:
    """Handoffs by their id, and what others than their sender and holder do with them."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def get(
        self, id: str, *, until: m.Until | None = None, wait: float | None = None
    ) -> m.HandoffWithResult:
        """Shows one; with `until`, as soon as it is that far, or after `wait` seconds."""
        query = {"until": until, "wait_ms": milliseconds(wait)}
        path = {"id": id}
        return self._wire.send(routes.HANDOFF_SHOW, path=path, query=query, wait=wait or 0)

    def page(
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
        return self._wire.send(routes.HANDOFF_LIST, query=query)

    def envelope(self, id: str) -> m.Envelope:
        """What exactly the receiver gets."""
        return self._wire.send(routes.HANDOFF_ENVELOPE, path={"id": id})

    def raw_envelope(self, id: str) -> dict[str, Any]:
        """The same, exactly as it is stored: `tasuki.address` of it is its hash."""
        raw: dict[str, Any] = json.loads(self._wire.exchange(routes.HANDOFF_ENVELOPE, {"id": id}))
        return raw

    def prompt(self, id: str, *, tokenizer: str | None = None) -> m.Prompt:
        """The envelope as a model reads it."""
        query = {"tokenizer": tokenizer}
        return self._wire.send(routes.HANDOFF_PROMPT, path={"id": id}, query=query)

    def peek(
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
            "capabilities": list(capabilities),
            "max": max,
            "majors": list(majors),
        }
        return (self._wire.send(routes.HANDOFF_PEEK, body=body)).waiting

    def decline(self, id: str, *, agent: str | None = None, reason: str | None = None) -> m.Moved:
        """Says that an agent will not do it, without having claimed it."""
        body = {"agent": self._wire.core.who(agent, "agent"), "reason": reason}
        return self._wire.send(routes.HANDOFF_DECLINE, path={"id": id}, body=body)

    def approve(self, id: str, *, by: str | None = None) -> m.Moved:
        """Lets one go that waits for approval."""
        return self._by(routes.HANDOFF_APPROVE, id, by)

    def reject(self, id: str, *, by: str | None = None) -> m.Moved:
        """Makes a dead letter of one that waits for approval."""
        return self._by(routes.HANDOFF_REJECT, id, by)

    def cancel(self, id: str, *, by: str | None = None, reason: str | None = None) -> m.Moved:
        """Takes one back."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.HANDOFF_CANCEL, path={"id": id}, body=body)

    def abort(self, id: str, *, by: str | None = None, reason: str | None = None) -> m.Moved:
        """Ends one as failed."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.HANDOFF_ABORT, path={"id": id}, body=body)

    def erase(self, id: str, *, reason: str, by: str | None = None) -> m.Moved:
        """Removes what one carried for good, once its task is at its end."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.HANDOFF_ERASE, path={"id": id}, body=body)

    def counter(
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
            "capabilities": list(capabilities),
            "terms": terms,
            "budget_tokens": budget_tokens,
        }
        return self._wire.send(routes.HANDOFF_COUNTER, path={"id": id}, body=body)

    def settle(self, id: str, *, agent: str, accept: bool, by: str | None = None) -> m.Handoff:
        """Takes or refuses a counter-offer."""
        body = {"agent": agent, "accept": accept, "by": self._wire.core.who(by, "by")}
        return self._wire.send(routes.HANDOFF_SETTLE, path={"id": id}, body=body)

    def _by(self, route: Any, id: str, by: str | None) -> m.Moved:
        body = {"by": self._wire.core.who(by, "by")}
        moved: m.Moved = self._wire.send(route, path={"id": id}, body=body)
        return moved


class DeadLetters:
    """Handoffs on which somebody has to decide."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def page(
        self, *, decided: bool | None = None, limit: int | None = None, before: str | None = None
    ) -> m.Handoffs:
        """Lists those that wait; with `decided`, those that were decided on, too."""
        query = {"all": decided, "limit": limit, "before": before}
        return self._wire.send(routes.DEAD_LETTER_LIST, query=query)

    def get(self, id: str) -> m.DeadLetter:
        """Shows one, with its envelope and every report of a failure."""
        return self._wire.send(routes.DEAD_LETTER_SHOW, path={"id": id})

    def redrive(self, id: str, *, by: str | None = None) -> m.OfferReply:
        """Sends the same envelope on its way again, as a new handoff."""
        body = {"by": self._wire.core.who(by, "by")}
        return self._wire.send(routes.DEAD_LETTER_REDRIVE, path={"id": id}, body=body)

    def discard(self, id: str, *, reason: str, by: str | None = None) -> m.Moved:
        """Puts one away for good."""
        body = {"by": self._wire.core.who(by, "by"), "reason": reason}
        return self._wire.send(routes.DEAD_LETTER_DISCARD, path={"id": id}, body=body)


class Agents:
    """Who there is, and what they can do."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def publish(
        self, manifest: JsonObject, *, version: int | None = None, sign: bool = True
    ) -> m.Agent:
        """Publishes what an agent can do, signed if the client has a key."""
        from .._canonical import address
        from .._wire import plain

        key = self._wire.core.key
        signed = key.statement("manifest", address(plain(manifest))) if key and sign else None
        body = {"manifest": dict(manifest), "version": version, "signed": signed}
        return self._wire.send(routes.AGENT_PUBLISH, body=body)

    def get(self, id: str) -> m.Agent:
        """Shows one: its manifest, its keys, how it fares, whether it is there."""
        return self._wire.send(routes.AGENT_SHOW, path={"id": id})

    def all(
        self,
        *,
        capability: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        live: bool | None = None,
        reliability: int | None = None,
        version: str | None = None,
        limit: int | None = None,
    ) -> list[m.Agent]:
        """Lists those that fit."""
        query = {
            "capability": capability,
            "role": role,
            "tag": tag,
            "live": live,
            "reliability": reliability,
            "version": version,
            "limit": limit,
        }
        return (self._wire.send(routes.AGENT_LIST, query=query)).agents

    def drain(self, id: str) -> m.Agent:
        """Lets one finish what it holds and get nothing new."""
        return self._wire.send(routes.AGENT_DRAIN, path={"id": id}, body={})

    def resume(self, id: str) -> m.Agent:
        """Ends that."""
        return self._wire.send(routes.AGENT_RESUME, path={"id": id}, body={})

    def deregister(self, id: str) -> m.Agent:
        """Takes one out of the directory."""
        return self._wire.send(routes.AGENT_DEREGISTER, path={"id": id}, body={})

    def set_rules(self, id: str, rules: Sequence[m.Rule | JsonObject]) -> m.Agent:
        """Says what one may do."""
        return self._wire.send(routes.AGENT_SET_RULES, path={"id": id}, body={"rules": rules})

    def catalogue(self) -> m.Catalogue:
        """All agents in short, as `/.well-known/agents.json` has them."""
        return self._wire.send(routes.AGENT_CATALOGUE)


class Keys:
    """Keys by which the broker knows agents."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def join(self, key: Key, *, token: str, agent: str | None = None) -> m.Agent:
        """Enrolls a key with a join token, which works once."""
        name = agent or key.agent or self._wire.core.who(None, "agent")
        body = {
            "agent_id": name,
            "key": key.public,
            "proof": key.possession(name),
            "token": token,
        }
        return self._wire.send(routes.AGENT_JOIN, body=body)

    def enroll(
        self, agent: str, public_key: str, *, rules: Sequence[m.Rule | JsonObject] | None = None
    ) -> m.Agent:
        """Enrolls a public key for an agent. For administrators."""
        body = {"key": public_key, "rules": rules}
        return self._wire.send(routes.KEY_ENROLL, path={"id": agent}, body=body)

    def rotate(
        self, new: Key, *, old: str | None = None, agent: str | None = None, grace: Span = 3600.0
    ) -> m.Agent:
        """Replaces a key (this client's, unless `old` names another), which counts for another
        while. The client goes on with the new one."""
        core = self._wire.core
        name = core.who(agent, "agent")
        mine = core.key
        if old is None and mine is None:
            raise TypeError("say old=…: this client has no key of its own")
        body = {
            "key": new.public,
            "old": old or (mine.id if mine else None),
            "proof": new.possession(name),
            "grace_ms": milliseconds(grace),
        }
        shown = self._wire.send(routes.KEY_ROTATE, path={"id": name}, body=body)
        if mine is not None and old in (None, mine.id):
            core.key = new
        return shown

    def revoke(self, agent: str, key_id: str) -> m.Agent:
        """Ends a key at once. With its last key an agent loses what it holds."""
        path = {"id": agent, "key": key_id}
        return self._wire.send(routes.KEY_REVOKE, path=path, body={})


class Tokens:
    """Tokens for callers that cannot sign, and for joining."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def issue(
        self,
        agent: str,
        *,
        rules: Sequence[m.Rule | JsonObject],
        purpose: m.Purpose = "bearer",
        expires_in: Span | None = None,
    ) -> m.IssuedToken:
        """Issues one. Its text is shown this once; so a lost answer is not asked for again."""
        body: Mapping[str, Any] = {
            "agent_id": agent,
            "purpose": purpose,
            "rules": list(rules),
            "expires_in_ms": milliseconds(expires_in),
        }
        return self._wire.send(routes.TOKEN_ISSUE, body=body, repeat=False)

    def all(self) -> list[m.TokenInfo]:
        """Lists them, without their texts."""
        return (self._wire.send(routes.TOKEN_LIST)).tokens

    def revoke(self, id: str) -> m.TokenInfo:
        """Ends one at once."""
        return self._wire.send(routes.TOKEN_REVOKE, path={"id": id}, body={})


class Tenants:
    """What each tenant may use."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def all(self) -> list[m.TenantInfo]:
        """Lists them."""
        return (self._wire.send(routes.TENANT_LIST)).tenants

    def set(
        self,
        id: str,
        *,
        in_flight: int | None = None,
        stored_bytes: int | None = None,
        requests_per_second: int | None = None,
    ) -> m.TenantInfo:
        """Says how much one may use."""
        body = {
            "in_flight": in_flight,
            "stored_bytes": stored_bytes,
            "requests_per_second": requests_per_second,
        }
        return self._wire.send(routes.TENANT_SET, path={"id": id}, body=body)


class Audit:
    """The log of everything."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def verify(self) -> m.Verdict:
        """Checks every hash, body and signature of the log."""
        return self._wire.send(routes.AUDIT_VERIFY, wait=600)

    def export(self, *, after: int | None = None) -> Iterator[str]:
        """The log, line by line, as `tasuki audit verify --file` reads it."""
        request = self._wire.core.request(
            routes.AUDIT_EXPORT, path={}, query={"after": after}, body=None, wait=600
        )
        response = self._wire.http.send(request, stream=True)
        try:
            if not response.is_success:
                from .._wire import refusal_of

                content = response.read()
                raise refusal_of(response, self._wire.core.base_url, content)
            for line in response.iter_lines():
                yield line
        finally:
            response.close()

    def refusals(self) -> m.Refusals:
        """The last attempts that nobody stood behind."""
        return self._wire.send(routes.SECURITY_SHOW)


def _scope(project: str | None, task: str | None, agent: str | None) -> dict[str, str] | None:
    given = {"project": project, "task": task, "agent": agent}
    scope = {kind: name for kind, name in given.items() if name is not None}
    if len(scope) > 1:
        raise TypeError("a memory is about one of project, task and agent")
    return scope or None
