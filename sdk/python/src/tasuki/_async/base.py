# SPDX-License-Identifier: Apache-2.0
"""Sending, and trying again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any, TypeVar

import httpx

from .._wire import Core, Route, body_of, decode

T = TypeVar("T")


class AsyncWire:
    """One way to the broker. Connections are kept, and made anew when they break."""

    def __init__(self, core: Core, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.core = core
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self.http = httpx.AsyncClient(
            transport=transport, limits=limits, trust_env=core.trust_env, follow_redirects=False
        )
        self._beats: httpx.Client | None = None
        self._lock = threading.Lock()

    async def send(
        self,
        route: Route[T],
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        wait: float = 0.0,
        repeat: bool = True,
    ) -> T:
        """Makes a call, and repeats it as long as that is safe and sensible. `wait` is how long the
        broker may wait before it answers; `repeat` whether a lost answer may be asked for again."""
        said = body_of(route, body) if body is not None else None
        return decode(route, await self.exchange(route, path, query, said, wait, repeat))

    async def exchange(
        self,
        route: Route[Any],
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        wait: float = 0.0,
        repeat: bool = True,
    ) -> bytes:
        """The same, with the body and the answer as they are."""
        attempts = self.core.attempts(route, repeat)
        while True:
            request = self.core.request(
                route, path=path or {}, query=query or {}, body=body, wait=wait
            )
            try:
                response = await self.http.send(request)
            except httpx.TransportError as error:
                pause = attempts.fault(error)
            else:
                waits = attempts.answer(response, response.content)
                if waits is None:
                    return response.content
                pause = waits
            await asyncio.sleep(pause)

    def beats(self) -> httpx.Client:
        """The connection that heartbeats use, and nothing else."""
        with self._lock:
            if self._beats is None:
                self._beats = httpx.Client(trust_env=self.core.trust_env)
            return self._beats

    async def aclose(self) -> None:
        """Gives the connections up."""
        await self.http.aclose()
        with self._lock:
            if self._beats is not None:
                self._beats.close()
                self._beats = None
