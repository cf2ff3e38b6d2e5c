# SPDX-License-Identifier: Apache-2.0
"""Carries the suite out against a server, through the SDK, and reports."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .. import errors
from ..testing import find_binary
from ._calls import Answer, Caller
from ._matcher import findings, shown
from ._values import MISSING, Misunderstood, Scope, point, resolve, text_with

#: How many checks are under way at a time. Most of them wait most of the time.
AT_A_TIME = 8
_PAUSE_S = 0.05
_STEP = {
    "do", "path", "query", "body", "raw", "at_once", "within_ms", "value", "set", "expect", "save",
}  # fmt: skip

Suite = Mapping[str, Any]


@dataclass
class Failure:
    """Where a check ended, and why."""

    step: int
    request: str | None
    findings: list[str]
    came: str | None = None


@dataclass
class Outcome:
    """What came of one check."""

    id: str
    level: str
    title: str
    reason: str
    rule: str
    ok: bool
    failure: Failure | None = None


@dataclass
class Report:
    """What came of a run."""

    target: str
    suite: str
    protocol: int
    checks: list[Outcome]
    #: Calls by the SDK's own methods, and calls by its way of sending requests.
    typed_calls: int
    low_level_calls: int
    typed_operations: list[str]
    low_level_operations: list[str]
    passed: int = field(init=False)
    failed: int = field(init=False)
    ok: bool = field(init=False)

    def __post_init__(self) -> None:
        self.passed = sum(check.ok for check in self.checks)
        self.failed = len(self.checks) - self.passed
        self.ok = self.failed == 0 and bool(self.checks)

    def json(self) -> str:
        """The report as JSON."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2)

    def tap(self) -> str:
        """The report in the Test Anything Protocol, version 14."""
        return "\n".join([*self._tap(), ""])

    def _tap(self) -> Iterator[str]:
        yield "TAP version 14"
        yield f"1..{len(self.checks)}"
        for number, check in enumerate(self.checks, 1):
            title = " ".join(f"{check.id}: {check.title}".split())
            title = title.replace("\\", "\\\\").replace("#", "\\#")
            yield f"{'' if check.ok else 'not '}ok {number} - {title}"
            if check.failure:
                facts = {"reason": check.reason, "rule": check.rule, **asdict(check.failure)}
                yield "  ---"
                yield from (f"  {name}: {json.dumps(value)}" for name, value in facts.items())
                yield "  ..."
        yield f"# calls by methods of the SDK: {self.typed_calls}, other: {self.low_level_calls}"


def load(path: str | Path | None = None) -> Suite:
    """The suite of a file, the one that came with this package, or what `tasuki-tools` prints."""
    brought = Path(__file__).with_name("suite.json")
    if path is not None or brought.is_file():
        text = Path(path or brought).read_text("utf-8")
    else:
        command = [_tools(), "conformance", "suite"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    suite: Suite = json.loads(text)
    return suite


def _tools() -> str:
    """Where `tasuki-tools` is: beside the server, or on the path."""
    beside = Path(find_binary()).with_name("tasuki-tools")
    found = str(beside) if beside.is_file() else shutil.which("tasuki-tools")
    if not found:
        raise FileNotFoundError("there is no suite: give a file, or put tasuki-tools on the path")
    return found


class _Failed(Exception):
    def __init__(self, found: list[str], came: str | None = None) -> None:
        super().__init__(found)
        self.found, self.came = found, came


class _Run:
    def __init__(self, suite: Suite, caller: Caller) -> None:
        self.suite = suite
        self.caller = caller
        self.name = uuid.uuid4().hex[:10]

    def check(self, number: int, check: Mapping[str, Any]) -> Outcome:
        about = {name: check[name] for name in ("id", "level", "title", "reason", "rule")}
        scope: Scope = {"u": f"{self.name}-{number}"}
        for place, step in enumerate(check["steps"], 1):
            try:
                self.step(step, scope)
            except _Failed as failed:
                failure = Failure(place, step.get("do"), failed.found, failed.came)
            except (Misunderstood, AssertionError, ValueError, TypeError, errors.TasukiError) as e:
                failure = Failure(place, step.get("do"), [shown(f"{type(e).__name__}: {e}")])
            else:
                continue
            return Outcome(**about, ok=False, failure=failure)
        return Outcome(**about, ok=True)

    def step(self, step: Mapping[str, Any], scope: Scope) -> None:
        if set(step) - _STEP:
            raise Misunderstood(f"there is no {sorted(set(step) - _STEP)} in a step")
        for name, value in step.get("set", {}).items():
            scope[name] = resolve(value, scope)
        if "do" in step:
            body = self.until_expected(step, scope)
        elif "value" in step:
            body = resolve(step["value"], scope)
            self.expect(step, Answer(0, body), scope)
        else:
            return
        for name, pointer in step.get("save", {}).items():
            found = point(body, text_with(pointer, scope))
            if found is MISSING:
                raise _Failed([f"{pointer}: nothing is there, and it is needed as {name}"])
            scope[name] = found

    def until_expected(self, step: Mapping[str, Any], scope: Scope) -> Any:
        end = time.monotonic() + step.get("within_ms", 0) / 1000
        while True:
            answer = self.at_once(step, scope) if "at_once" in step else self.call(step, scope)
            try:
                self.expect(step, answer, scope)
            except _Failed:
                if time.monotonic() >= end:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return answer.body

    def at_once(self, step: Mapping[str, Any], scope: Scope) -> Answer:
        times = step["at_once"]
        with ThreadPoolExecutor(times) as pool:
            calls = [pool.submit(self.call, step, {**scope, "n": n}) for n in range(times)]
            answers = [call.result() for call in calls]
        answers.sort(key=lambda answer: str(answer.status))
        return Answer(0, [{"status": answer.status, "body": answer.body} for answer in answers])

    def call(self, step: Mapping[str, Any], scope: Scope) -> Answer:
        name = step["do"]
        if name not in self.suite["operations"]:
            raise Misunderstood(f"there is no operation {name}")
        said = {part: resolve(step.get(part, {}), scope) for part in ("path", "query")}
        said["body"] = resolve(step["body"], scope) if "body" in step else None
        raw = text_with(step["raw"], scope) if "raw" in step else None
        return self.caller.call(name, self.suite["operations"][name], said, raw)

    def expect(self, step: Mapping[str, Any], answer: Answer, scope: Scope) -> None:
        expected = resolve(step["expect"], scope)
        found = findings(expected, answer.status, answer.body, self.suite["schemas"])
        if found:
            raise _Failed(found, shown(answer.body))


def run(
    suite: Suite,
    target: str,
    *,
    levels: Sequence[str] = (),
    only: str = "*",
    token: str | None = None,
    key: str | None = None,
    timeout: float = 10.0,
) -> Report:
    """Runs the checks of some levels, or of all, whose id is like `only`."""
    caller = Caller(target, token=token, key=key, timeout=timeout)
    this = _Run(suite, caller)
    chosen = [
        (number, check)
        for number, check in enumerate(suite["checks"])
        if (not levels or check["level"] in levels) and fnmatchcase(check["id"], only)
    ]
    try:
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            outcomes = list(pool.map(this.check, *zip(*chosen, strict=True))) if chosen else []
    finally:
        caller.client.close()
    return Report(
        target=target,
        suite=suite["suite"],
        protocol=suite["protocol"],
        checks=outcomes,
        typed_calls=caller.typed,
        low_level_calls=caller.low,
        typed_operations=sorted(caller.typed_operations),
        low_level_operations=sorted(caller.low_operations - caller.typed_operations),
    )
