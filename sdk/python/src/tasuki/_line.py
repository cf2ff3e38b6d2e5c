# SPDX-License-Identifier: Apache-2.0
"""A connection of a worker's own, which another thread can hang up in the middle of a wait."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from ._sync.base import Wire


class Line:
    """One connection to the broker, for requests that wait. A client that was given a transport of
    its own is asked through that, and waits to the end."""

    def __init__(self, wire: Wire) -> None:
        self._socket: Any = None
        self._hung_up = False
        #: What sends requests on it, if it can be hung up.
        self.http: httpx.Client | None = None
        if wire.usual:
            self.http = httpx.Client(
                limits=httpx.Limits(max_connections=1),
                trust_env=wire.core.trust_env,
                follow_redirects=False,
                verify=wire.core.verify,
                event_hooks={"request": [self._watch]},
            )

    def hang_up(self) -> None:
        """Ends what waits on it: whoever waits gets an error at once. Called from another thread,
        also before there is a connection."""
        self._hung_up = True
        if self._socket is not None:
            # A socket that is wrapped for TLS is ended below it, as a broken network would.
            with contextlib.suppress(OSError, ValueError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Gives the connection up."""
        if self.http:
            self.http.close()

    def _watch(self, request: httpx.Request) -> None:
        request.extensions = {**request.extensions, "trace": self._trace}

    def _trace(self, event: str, told: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._socket = told["return_value"].get_extra_info("socket")
            if self._hung_up:
                self.hang_up()
