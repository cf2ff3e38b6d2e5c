# SPDX-License-Identifier: Apache-2.0
"""Steps of the suite as calls of the SDK: by its own methods where it has one that says the same,
by its way of sending requests otherwise."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from .. import errors
from .. import models as m
from .._sync.claims import Claim
from .._sync.client import Client
from .._wire import NO_RETRY, Route, plain
from ._methods import METHODS
from ._said import Said, Unmapped

Json = dict[str, Any]


class Recorder(httpx.HTTPTransport):
    """The SDK's way to the server, which remembers for each thread what went over it last."""

    def __init__(self) -> None:
        super().__init__()
        self._last = threading.local()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request."""
        self._last.sent = request.content
        self._last.answer = b""
        response = super().handle_request(request)
        self._last.answer = response.read()
        return response

    def sent(self) -> Any:
        """What was sent last."""
        return json.loads(self._last.sent or b"null")

    def answer(self) -> Any:
        """What was answered last."""
        return json.loads(self._last.answer or b"null")


@dataclass
class Answer:
    """What came of a call. Of a success the SDK's methods say no more than that."""

    status: int | str
    body: Any


@dataclass
class Caller:
    """A client, the claims that it was given, and how its calls were made."""

    target: str
    token: str | None = None
    key: str | None = None
    timeout: float = 10.0
    typed: int = 0
    low: int = 0
    #: Operations by how they were called.
    typed_operations: set[str] = field(default_factory=set)
    low_operations: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.wire = Recorder()
        self.client = Client(
            self.target,
            token=self.token,
            key=self.key,
            timeout=self.timeout,
            retry=NO_RETRY,
            transport=self.wire,
        )
        self._claims: dict[str, tuple[m.ClaimReply, Json, str]] = {}
        #: Agents whose manifest says in which form they are served. The SDK's methods ask for the
        #: form that the SDK itself reads.
        self.formed: set[str] = set()
        self._lock = threading.Lock()

    def call(
        self, name: str, operation: Mapping[str, str], step: Mapping[str, Any], raw: str | None
    ) -> Answer:
        """Makes a call; `step` has its parameters and its body with nothing left to look up."""
        path, query, body = step["path"], step["query"], step["body"]
        method = None if raw is not None else METHODS.get(name)
        try:
            if method is None:
                raise Unmapped
            _says_something(body)
            value = method(self, Said({**path, **query, **(body or {})}))
        except Unmapped:
            self._count(name, typed=False)
            return self._low(operation, path, query, body, raw)
        except errors.Refused as refused:
            answer = _refused(refused)
        else:
            answer = Answer("2xx", value)
        self._count(name, typed=True)
        if body is not None:
            self._check_sent(name, body)
        return answer

    def _low(
        self,
        operation: Mapping[str, str],
        path: Json,
        query: Json,
        body: Json | None,
        raw: str | None,
    ) -> Answer:
        route: Route[Any] = Route(operation["method"], operation["path"], object)
        said: Any = body if body is not None or route.method == "GET" else {}
        waits = (body or {}).get("wait_ms") or (body or {}).get("timeout_ms") or 0
        try:
            content = self.client._wire.exchange(
                route,
                {n: str(v) for n, v in path.items()},
                query,
                raw.encode() if raw else said,
                float(waits) / 1000,
            )
        except errors.Refused as refused:
            return _refused(refused)
        return Answer("2xx", json.loads(content))

    def _check_sent(self, name: str, body: Json) -> None:
        """A method that says something else than the step would prove nothing."""
        sent = self.wire.sent()
        other = [member for member, value in body.items() if sent.get(member) != value]
        if other:
            raise AssertionError(f"the method for {name} sent something else as {other}")

    def _count(self, name: str, *, typed: bool) -> None:
        with self._lock:
            if typed:
                self.typed += 1
                self.typed_operations.add(name)
            else:
                self.low += 1
                self.low_operations.add(name)

    def keep(self, claim: Claim) -> Json:
        """Remembers a claim, so that later steps act with it. Returns it as JSON."""
        with self._lock:
            self._claims[claim.claim_id] = (claim._reply, claim.raw_envelope, claim.agent)
        return {**plain(claim._reply), "envelope": claim.raw_envelope}

    def held(self, said: Said) -> Claim:
        """The claim that a step shows: one that was given, perhaps with another fence or for
        another handoff."""
        handoff, claim_id, fence = said.take("id", "claim_id", "fence")
        with self._lock:
            known = self._claims.get(claim_id)
        if known is None or not isinstance(fence, int):
            raise Unmapped
        reply, raw, agent = known
        shown = reply.model_copy(update={"handoff_id": handoff, "fence": fence})
        return Claim(self.client, shown, raw, agent=agent)


def _refused(refused: errors.Refused) -> Answer:
    names = ("code", "message", "hint", "retryable", "details", "request_id")
    return Answer(refused.status or 0, {name: getattr(refused, name) for name in names})


def _says_something(body: Json | None) -> None:
    """The SDK leaves out what is empty; a step that says so means it."""
    if any(value is None or value in ([], {}) for value in (body or {}).values()):
        raise Unmapped
