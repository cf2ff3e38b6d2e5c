# SPDX-License-Identifier: Apache-2.0
"""Who there is: agents, their keys and tokens, and tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from .. import _routes as routes
from .. import models as m
from .._canonical import address
from .._misuse import listed
from .._offers import JsonObject, Span
from .._wire import milliseconds, plain, timestamp
from ..keys import Key
from .base import AsyncWire


class AsyncAgents:
    """Who there is, and what they can do."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def publish(
        self, manifest: JsonObject, *, version: int | None = None, sign: bool = True
    ) -> m.Agent:
        """Publishes what an agent can do, signed if the client has a key."""
        key = self._wire.core.key
        signed = key.statement("manifest", address(plain(manifest))) if key and sign else None
        body = {"manifest": dict(manifest), "version": version, "signed": signed}
        return await self._wire.send(routes.AGENT_PUBLISH, body=body)

    async def get(self, id: str) -> m.Agent:
        """Shows one: its manifest, its keys, how it fares, whether it is there."""
        return await self._wire.send(routes.AGENT_SHOW, path={"id": id})

    async def all(
        self,
        *,
        capability: str | None = None,
        role: str | None = None,
        tag: str | None = None,
        live: bool | None = None,
        reliability: int | None = None,
        version: str | None = None,
        tenant: str | None = None,
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
            "tenant": tenant,
            "limit": limit,
        }
        return (await self._wire.send(routes.AGENT_LIST, query=query)).agents

    async def drain(self, id: str) -> m.Agent:
        """Lets one finish what it holds and get nothing new."""
        return await self._wire.send(routes.AGENT_DRAIN, path={"id": id}, body={})

    async def resume(self, id: str) -> m.Agent:
        """Ends that."""
        return await self._wire.send(routes.AGENT_RESUME, path={"id": id}, body={})

    async def set_breaker(
        self, id: str, limits: m.Limits | JsonObject | None = None
    ) -> m.TargetHealth:
        """Sets when its breaker opens and for how long; without `limits`, as the broker has it."""
        body = {"limits": limits}
        return await self._wire.send(routes.AGENT_SET_BREAKER, path={"id": id}, body=body)

    async def pause_target(
        self,
        target: str | JsonObject,
        span: Span | None = None,
        *,
        until: datetime | str | None = None,
    ) -> m.TargetHealth:
        """Lets nothing be claimed of an agent (its name), or of a capability (`{"capability": …}`),
        for a span, until a time, or until it is resumed. Offers to it wait."""
        when = timestamp(until) if isinstance(until, datetime) else until
        to = {"agent": target} if isinstance(target, str) else dict(target)
        body = {"target": to, "for_ms": milliseconds(span), "until": when}
        return await self._wire.send(routes.TARGET_PAUSE, body=body)

    async def resume_target(self, target: str | JsonObject) -> m.TargetHealth:
        """Lets work be claimed of it again."""
        to = {"agent": target} if isinstance(target, str) else dict(target)
        return await self._wire.send(routes.TARGET_RESUME, body={"target": to})

    async def deregister(self, id: str) -> m.Agent:
        """Takes one out of the directory."""
        return await self._wire.send(routes.AGENT_DEREGISTER, path={"id": id}, body={})

    async def set_rules(self, id: str, rules: Sequence[m.Rule | JsonObject]) -> m.Agent:
        """Says what one may do."""
        return await self._wire.send(
            routes.AGENT_SET_RULES, path={"id": id}, body={"rules": listed(rules, "rules")}
        )

    async def catalogue(self) -> m.Catalogue:
        """All agents in short, as `/.well-known/agents.json` has them."""
        return await self._wire.send(routes.AGENT_CATALOGUE)


class AsyncKeys:
    """Keys by which the broker knows agents."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def join(self, key: Key, *, token: str, agent: str | None = None) -> m.Agent:
        """Enrolls a key with a join token, which works once."""
        name = agent or key.agent or self._wire.core.who(None, "agent")
        body = {
            "agent_id": name,
            "key": key.public,
            "proof": key.possession(name),
            "token": token,
        }
        return await self._wire.send(routes.AGENT_JOIN, body=body)

    async def enroll(
        self, agent: str, public_key: str, *, rules: Sequence[m.Rule | JsonObject] | None = None
    ) -> m.Agent:
        """Enrolls a public key for an agent. For administrators."""
        body = {"key": public_key, "rules": rules}
        return await self._wire.send(routes.KEY_ENROLL, path={"id": agent}, body=body)

    async def rotate(
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
            "grace_ms": milliseconds(grace, "grace"),
        }
        shown = await self._wire.send(routes.KEY_ROTATE, path={"id": name}, body=body)
        if mine is not None and old in (None, mine.id):
            core.key = new
        return shown

    async def revoke(self, agent: str, key_id: str) -> m.Agent:
        """Ends a key at once. With its last key an agent loses what it holds."""
        path = {"id": agent, "key": key_id}
        return await self._wire.send(routes.KEY_REVOKE, path=path, body={})


class AsyncTokens:
    """Tokens for callers that cannot sign, and for joining."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def issue(
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
            "rules": listed(rules, "rules"),
            "expires_in_ms": milliseconds(expires_in, "expires_in"),
        }
        return await self._wire.send(routes.TOKEN_ISSUE, body=body, repeat=False)

    async def all(self) -> list[m.TokenInfo]:
        """Lists them, without their texts."""
        return (await self._wire.send(routes.TOKEN_LIST)).tokens

    async def revoke(self, id: str) -> m.TokenInfo:
        """Ends one at once."""
        return await self._wire.send(routes.TOKEN_REVOKE, path={"id": id}, body={})


class AsyncSessions:
    """Tokens that end soon, and with the one that they were made from: for whoever signs in."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def open(self, *, expires_in: Span | None = None) -> m.IssuedToken:
        """Opens one for the caller. Its text is shown this once; so a lost answer is not asked for
        again."""
        body = {"expires_in_ms": milliseconds(expires_in, "expires_in")}
        return await self._wire.send(routes.SESSION_OPEN, body=body, repeat=False)

    async def show(self) -> m.Session:
        """Says who the caller is, and what it may ask for at all."""
        return await self._wire.send(routes.SESSION_SHOW)

    async def close(self) -> None:
        """Closes the one that the caller asks with."""
        await self._wire.exchange(routes.SESSION_CLOSE, {}, None, {})


class AsyncTenants:
    """What each tenant may use."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def all(self) -> list[m.TenantInfo]:
        """Lists them."""
        return (await self._wire.send(routes.TENANT_LIST)).tenants

    async def set(
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
        return await self._wire.send(routes.TENANT_SET, path={"id": id}, body=body)


class AsyncAlerts:
    """What is wrong at the broker, and who is told."""

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def all(self) -> m.Alerts:
        """Lists what holds, what ended last, and silences."""
        return await self._wire.send(routes.ALERT_LIST)

    async def rules(self) -> list[m.AlertRule]:
        """Lists the rules, each with the expression that Prometheus would evaluate."""
        return (await self._wire.send(routes.ALERT_RULES)).rules

    async def silence(
        self,
        reason: str,
        *,
        span: Span,
        rule: str | None = None,
        target: str | None = None,
    ) -> m.Alerts:
        """Keeps people from being told for a while; a span of 0 ends that."""
        body = {
            "rule": rule,
            "target": target,
            "for_ms": milliseconds(span),
            "reason": reason,
        }
        return await self._wire.send(routes.ALERT_SILENCE, body=body)

    async def test(self) -> list[m.WebhookTested]:
        """Sends a notice to every webhook to try it out."""
        return (await self._wire.send(routes.ALERT_TEST, body={})).webhooks
