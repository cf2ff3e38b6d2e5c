# SPDX-License-Identifier: Apache-2.0
"""A way to the broker that can be broken: a small proxy in between, with the real broker behind."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

from typing_extensions import Self

#: A status, a kind of content, and the content.
Answer = tuple[int, str, bytes]


class Way:
    """Passes everything on, except that `instead` may answer by itself, and that answers for which
    `lose` says so are lost after the broker has done its work."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url).netloc
        self.instead: Callable[[str], Answer | None] = lambda _: None
        self.lose: Callable[[str], bool] = lambda _: False
        #: Paths that were asked for.
        self.asked: list[str] = []
        way = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None: ...

            def do_GET(self) -> None:
                way._pass(self)

            def do_POST(self) -> None:
                way._pass(self)

            def do_PUT(self) -> None:
                way._pass(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _pass(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        self.asked.append(request.path)
        answer = self.instead(request.path)
        if answer is None:
            answer = self._forward(request, body)
            if self.lose(request.path):
                request.close_connection = True
                return
        status, kind, content = answer
        request.send_response(status)
        request.send_header("content-type", kind)
        request.send_header("content-length", str(len(content)))
        request.end_headers()
        request.wfile.write(content)

    def _forward(self, request: BaseHTTPRequestHandler, body: bytes) -> Answer:
        there = http.client.HTTPConnection(self._to, timeout=60)
        try:
            headers = {"content-type": "application/json"} if body else {}
            there.request(request.command, request.path, body or None, headers)
            answer = there.getresponse()
            content = answer.read()
            return answer.status, answer.getheader("content-type") or "", content
        finally:
            there.close()


def once() -> Callable[[str], bool]:
    """Loses the first answer to whatever is asked."""
    first = iter([True])
    return lambda _: next(first, False)
