# SPDX-License-Identifier: Apache-2.0
"""Sending, and trying again."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import httpx

from .._wire import BRIEF_S, Core, Deadline, Route, body_of, decode

T = TypeVar("T")

_going_on: set[object] = set()  # async only


async def unhindered(work: Callable[[], Awaitable[T]]) -> T:
    """Finishes something short although its program is being interrupted. Whoever cancels it a
    second time is answered after a moment, and it goes on by itself."""
    task = asyncio.ensure_future(work())  # async only
    _going_on.add(task)  # async only
    task.add_done_callback(_going_on.discard)  # async only
    try:  # async only
        return await asyncio.shield(task)  # async only
    except asyncio.CancelledError:  # async only
        await _rest(task)  # async only
        raise  # async only
    return await work()  # sync only


async def _rest(task: asyncio.Future[T]) -> None:  # async only
    """Waits for the rest, however often that is cancelled, but not for long."""  # async only
    deadline = Deadline(3 * BRIEF_S)  # async only
    while not task.done() and not deadline.over():  # async only
        with contextlib.suppress(asyncio.CancelledError):  # async only
            await asyncio.wait({task}, timeout=deadline.left())  # async only
    if task.done() and not task.cancelled():  # async only
        task.exception()  # async only


class AsyncWire:
    """One way to the broker. Connections are kept, and made anew when they break."""

    def __init__(self, core: Core, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.core = core
        #: Whether requests go the usual way, and not through what the program gave.
        self.usual = transport is None
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        self.http = httpx.AsyncClient(
            transport=transport,
            limits=limits,
            trust_env=core.trust_env,
            follow_redirects=False,
            verify=core.verify,
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
        brief: bool = False,
    ) -> T:
        """Makes a call, and repeats it as long as that is safe and sensible. `wait` is how long the
        broker may wait before it answers; `repeat` whether a lost answer may be asked for again;
        `brief` is for a program that wants to end."""
        said = body_of(route, body) if body is not None else None
        return decode(route, await self.exchange(route, path, query, said, wait, repeat, brief))

    async def exchange(
        self,
        route: Route[Any],
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | bytes | None = None,
        wait: float = 0.0,
        repeat: bool = True,
        brief: bool = False,
        patience: float | None = None,
        line: httpx.AsyncClient | None = None,
    ) -> bytes:
        """The same, with the body and the answer as they are. `patience` is how long to go on, if
        that is not what the client was told; `line` is a connection of the caller's own."""
        attempts = self.core.attempts(route, repeat, brief, patience)
        while True:
            try:
                await self.meet()
                request = self.core.request(
                    route, path=path or {}, query=query or {}, body=body, wait=wait, brief=brief
                )
                response = await (line or self.http).send(request)
            except (httpx.HTTPError, httpx.StreamError) as error:
                pause = attempts.fault(error)
            else:
                waits = attempts.answer(response, response.content)
                if waits is None:
                    return response.content
                pause = waits
            await asyncio.sleep(pause)

    async def meet(self) -> None:
        """Asks the broker for its key, once, where requests are signed and nobody named it."""
        if self.core.is_stranger():
            place = f"{self.core.base_url}/healthz"
            self.core.meet(await self.http.get(place, timeout=self.core.timeout))

    def beats(self) -> httpx.Client:
        """The connection that heartbeats use, and nothing else."""
        with self._lock:
            if self._beats is None:
                self._beats = httpx.Client(trust_env=self.core.trust_env, verify=self.core.verify)
            return self._beats

    async def aclose(self) -> None:
        """Gives the connections up."""
        await self.http.aclose()
        with self._lock:
            if self._beats is not None:
                self._beats.close()
                self._beats = None
