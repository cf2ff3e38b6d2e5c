# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/knowledge.py. Do not edit.
"""What agents know: memories, and the shared context of a project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._misuse import listed
from .._offers import JsonObject, new_key
from ..keys import bare
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
            "tags": listed(tags, "tags") or None,
            "pinned": pinned or None,
            "priority": priority,
            "scope": _scope(project, task, agent),
            "idempotency_key": idempotency_key or new_key(),
        }
        return self._wire.send(routes.MEMORY_ADD, body=body)

    def get(
        self,
        id: str,
        *,
        revision: int | None = None,
        detail: m.Detail | None = None,
        handoff: str | None = None,
    ) -> m.Memory:
        """Fetches one, in as much detail as is wanted. `handoff` says for which work: it is counted
        there that its envelope had passed less than was needed."""
        query = {"revision": revision, "detail": detail, "handoff": handoff}
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
        before: str | int | None = None,
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
            "tags": None if tags is None else listed(tags, "tags"),
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

    def context(self, revision: int | None = None) -> m.SharedContext:
        """Reads it, as it is or as it was at a `revision`."""
        path, query = {"project": self.name}, {"revision": revision}
        return self._wire.send(routes.CONTEXT_SHOW, path=path, query=query)

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
        by = self._wire.core.who(by, "by")
        body = {
            "by": by,
            "key": key,
            "decision": decision,
            "why": why,
            "supersedes": supersedes,
        }
        path = {"project": self.name}
        try:
            return self._wire.send(routes.CONTEXT_DECIDE, path=path, body=body)
        except errors.Conflict as refused:
            if not refused.in_doubt:
                raise
            # The answer to an earlier try was lost: what stands there may be this very decision.
            context = self.context()
            mine = (key, decision, bare(by), None)
            for one in context.decisions:
                if (one.key, one.decision, bare(one.by), one.superseded_by) == mine:
                    return context
            raise

    def decisions(self) -> list[m.ProjectDecision]:
        """What was decided, superseded ones included."""
        return (self.context()).decisions


def _scope(project: str | None, task: str | None, agent: str | None) -> dict[str, str] | None:
    given = {"project": project, "task": task, "agent": agent}
    scope = {kind: name for kind, name in given.items() if name is not None}
    if len(scope) > 1:
        raise TypeError("a memory is about one of project, task and agent")
    return scope or None
