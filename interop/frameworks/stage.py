# SPDX-License-Identifier: Apache-2.0
"""What every framework is held to, and what it has to bring for that: a kit.

A kit makes agents of its framework with a scripted model, runs them, and serves them through its
adapter. Everything else (the broker, who is asked, what is checked) is the same for all.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import sys
import uuid
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from unittest import mock

from tasuki import AsyncClient
from tasuki._adapters import tool_name
from tasuki.worker import AsyncWorker

#: What a scripted model says it used for each reply.
INPUT_TOKENS, OUTPUT_TOKENS = 7, 3


class ProviderError(Exception):
    """What the clients of model providers raise."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"the provider answers with HTTP {status_code}")
        self.status_code = status_code


@dataclass
class Call:
    """A scripted model calls a tool."""

    name: str
    arguments: dict[str, str]
    #: Providers make up a new id for each call.
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:12]}")


@dataclass
class Script:
    """A model that calls its tools one after the other and repeats what the last one returned;
    without tools it says its line. It keeps no state: what it does next follows from what it reads,
    so that a run can be continued by another process."""

    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    line: str = "Looks good."
    #: What goes wrong, one after the other, at the reply that has so many outputs of tools to read.
    errors: list[Exception] = field(default_factory=list)
    errors_after: int = 0
    #: Called before each reply, with the number of outputs.
    before: Any = None
    seen: list[str] = field(default_factory=list)

    def reply(self, outputs: list[str], heard: str) -> Call | str:
        """What the model says to what it reads: outputs of tools, and everything as one text."""
        self.seen.append(heard)
        if self.before:
            self.before(len(outputs))
        if self.errors and len(outputs) == self.errors_after:
            raise self.errors.pop(0)
        if len(outputs) < len(self.calls):
            name, arguments = self.calls[len(outputs)]
            return Call(name, arguments)
        return f"They say: {outputs[-1]}" if outputs else self.line


def asks(to: str, task: str = "Is it safe?", **more: Any) -> Script:
    """A model that has another agent do a part."""
    return Script([(tool_name(to), {"task": task})], **more)


def transfers(to: str, task: str = "Is it safe?", **more: Any) -> Script:
    """A model that hands its work over."""
    return Script([(tool_name(to, "transfer_to"), {"task": task})], **more)


class Kit:
    """What a framework brings."""

    #: How it is called, and what its distribution is called.
    title: ClassVar[str]
    package: ClassVar[str]
    #: What the framework cannot, with the reason: names of tests of `suite.py`, without `test_`.
    cannot: ClassVar[dict[str, str]] = {}
    #: How each shape is called in its adapter, for the table.
    names: ClassVar[dict[str, str]] = {}

    def version(self) -> str:
        """Which one was tested."""
        return importlib.metadata.version(self.package)

    async def hears(self, claim: Any) -> None:
        """Waits until a message has come to the one who holds a claim: with a heartbeat."""
        while not claim._heart._heard:
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def guided(self, program: str, script: Script) -> AsyncGenerator[tuple[str, Any]]:
        """The worker that the program of the guide makes, and its agent's name."""
        served: list[AsyncWorker] = []
        with ExitStack() as patches:
            for name, fake in self.fakes(script).items():
                patches.enter_context(patched(name, fake))
            kept = lambda worker: served.append(worker)  # noqa: E731 - a method.
            patches.enter_context(mock.patch.object(AsyncWorker, "run", kept))
            exec(compile(program, self.title, "exec"), {"__name__": "__main__"})
            (worker,) = served
            yield str(worker._options.agent), worker

    def fakes(self, script: Script) -> dict[str, Any]:
        """What the program of the guide gets for its model: by module and name, `package.name`."""
        raise NotImplementedError

    async def call(self, script: Script, to: str, client: AsyncClient, **sending: Any) -> str:
        """Runs an agent that has a tool to call `to`, and returns its last word."""
        raise NotImplementedError

    async def transfer(self, script: Script, to: str, client: AsyncClient, kept: Path) -> None:
        """Runs an agent that hands its work to `to`, and keeps in a file what another process needs
        to go on. It does not wait."""
        raise NotImplementedError

    async def resume(self, script: Script, to: str, client: AsyncClient, kept: Path) -> str:
        """Goes on with that, and returns the agent's last word."""
        raise NotImplementedError

    def serve(
        self, script: Script, name: str, tools: dict[str, str], **options: Any
    ) -> AsyncWorker:
        """An agent as a worker. `tools` says which it has: `{agent: "call" | "transfer"}`,
        `{capability: "capability"}`, `{"": "question"}`."""
        raise NotImplementedError


@contextmanager
def patched(name: str, fake: Any) -> Generator[None]:
    """Puts a fake where a program imports its model from, whether or not that is installed."""
    try:
        with mock.patch(name, fake):
            yield
        return
    except (ImportError, AttributeError):
        module, attribute = name.rsplit(".", 1)
    modules: dict[str, Any] = {module: ModuleType(module)}
    parts = module.split(".")
    for count in range(1, len(parts)):
        part = ".".join(parts[:count])
        modules.setdefault(part, sys.modules.get(part) or ModuleType(part))
    setattr(modules[module], attribute, fake)
    with mock.patch.dict(sys.modules, modules):
        yield
