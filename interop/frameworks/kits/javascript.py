# SPDX-License-Identifier: Apache-2.0
"""Frameworks of TypeScript: a kit is a program of `sdk/typescript/test/frameworks`, started for all
that is wanted of it, which asks here what its scripted model says."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from stage import Call, Kit, ProviderError, Script

from tasuki import AsyncClient

SDK = Path(__file__).resolve().parents[3] / "sdk" / "typescript"
BUILT = SDK / "build" / "test" / "frameworks"
ENDS_S = 30


@contextmanager
def told(script: Script) -> Generator[str]:
    """Where a program asks what its model says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                said = script.reply(asked["outputs"], asked["heard"])
                answer: dict[str, Any] = {"text": said}
                if isinstance(said, Call):
                    answer = {"call": vars(said)}
            except ProviderError as error:
                answer = {"status": error.status_code}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Program:
    """A worker in a process of Node. It has what the suite uses of a worker of Python."""

    def __init__(self, script: Script, command: list[str]) -> None:
        self._script, self._command = script, command
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = False
        self.heard = asyncio.Event()

    async def serve(self) -> None:
        with told(self._script) as url:
            # Nobody writes to its input. That it ends tells the program that this has ended.
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, "SCRIPT_URL": url},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            if self._stopped:
                process.terminate()
            try:
                assert process.stdout
                async for line in process.stdout:
                    if line.strip() == b"a message came":
                        self.heard.set()
                await asyncio.wait_for(process.wait(), ENDS_S)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()

    def stop(self) -> None:
        self._stopped = True
        if self._process and self._process.returncode is None:
            self._process.terminate()


class JavaScript(Kit):
    """What the kits have in common."""

    #: The program of the kit.
    program: ClassVar[str]
    #: What the guide's program imports that is not there: module and source.
    fake: ClassVar[tuple[str, str] | None] = None

    def version(self) -> str:
        said = (SDK / "node_modules" / self.package / "package.json").read_text("utf-8")
        return str(json.loads(said)["version"])

    def command(self, what: str, **given: Any) -> list[str]:
        return ["node", str(BUILT / f"{self.program}.js"), what, json.dumps(given)]

    async def _said(self, script: Script, what: str, **given: Any) -> str:
        with told(script) as url:
            process = await asyncio.create_subprocess_exec(
                *self.command(what, **given),
                env={**os.environ, "SCRIPT_URL": url},
                stdout=asyncio.subprocess.PIPE,
            )
            said, _ = await process.communicate()
        return said.decode()

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:  # noqa: ARG002
        return str(json.loads(await self._said(script, "call", to=to, sending=sending)))

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:  # noqa: ARG002
        # It kills itself as soon as it has handed over.
        await self._said(script, "transfer", to=to, kept=str(kept))

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:  # noqa: ARG002
        return str(json.loads(await self._said(script, "resume", to=to, kept=str(kept))))

    def serve(self, script: Script, name: str, tools: dict[str, str], **options: Any) -> Any:
        given = {n: it for n, it in options.items() if n not in ("client", "lease")}
        if "lease" in options:
            given["lease_ms"] = options["lease"] * 1000
        self._serving = Program(
            script, self.command("serve", name=name, tools=tools, options=given)
        )
        return self._serving

    async def hears(self, claim: Any) -> None:  # noqa: ARG002
        await self._serving.heard.wait()

    @asynccontextmanager
    async def guided(self, program: str, script: Script) -> AsyncGenerator[tuple[str, Any]]:
        """The program of the guide is compiled, and runs with the package as it is published."""
        place = SDK / "build" / "guides" / self.program
        place.mkdir(parents=True, exist_ok=True)
        (place / "program.ts").write_text(program, "utf-8")
        (place / "fakes.d.ts").write_text(
            f'declare module "{self.fake[0]}";\n' if self.fake else "", "utf-8"
        )
        config = {
            "extends": "../../../tsconfig.json",
            "compilerOptions": {"rootDir": ".", "outDir": "."},
            "include": ["*.ts"],
            "exclude": [],
        }
        (place / "tsconfig.json").write_text(json.dumps(config), "utf-8")
        subprocess.run([SDK / "node_modules" / ".bin" / "tsc", "--project", place], check=True)
        preload = BUILT / f"preload-{self.program}.js"
        yield (
            "writer",
            Program(script, ["node", "--import", str(preload), str(place / "program.js")]),
        )
