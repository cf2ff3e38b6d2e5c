# SPDX-License-Identifier: Apache-2.0
"""The server keeps the protocol through the SDK, too, and mostly through the SDK's own methods."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasuki.conformance import Report, load, run
from tasuki.conformance._matcher import findings
from tasuki.conformance._runner import Outcome
from tasuki.conformance._values import Misunderstood, resolve
from tasuki.testing import Broker

Suite = Any


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One of its own: what the checks leave behind goes on happening for a while."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def report(suite: Suite, broker: Broker) -> Report:
    return run(suite, broker.url)


def test_the_server_keeps_everything_through_the_sdk(report: Report) -> None:
    failed = {check.id: check.failure for check in report.checks if not check.ok}
    assert not failed
    assert report.ok
    assert report.passed >= 80


def test_most_of_it_goes_through_methods_of_the_sdk(report: Report, suite: Suite) -> None:
    assert report.typed_calls > 10 * report.low_level_calls
    # Heartbeats are the SDK's own business, and `ask` waits for its answer as well.
    assert report.low_level_operations == ["handoff_ask", "handoff_heartbeat"]
    assert {*report.typed_operations, *report.low_level_operations} == set(suite["operations"])


def test_a_report_is_json_or_tap(broker: Broker) -> None:
    command = [sys.executable, "-m", "tasuki.conformance", "--target", broker.url]
    command += ["--only", "schema.payload-*"]
    tap = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert tap.startswith("TAP version 14\n1..3\nok 1 - schema.payload-")
    command += ["--format", "json"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert (said["ok"], said["passed"], said["failed"]) == (True, 3, 0)


@pytest.fixture
def garbage() -> Iterator[str]:
    """A server that speaks something else."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            with stream:
                stream.recv(65536)
                stream.sendall(b"SSH-2.0-nonsense\r\n")

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_a_server_that_speaks_garbage_fails_everything(suite: Suite, garbage: str) -> None:
    found = run(suite, garbage, timeout=1.0)
    assert (found.ok, found.passed) == (False, 0)
    assert all(check.failure and check.failure.findings for check in found.checks)
    assert "not ok 1 - " in found.tap()


@pytest.mark.parametrize(
    ("expect", "body"),
    [
        ({"status": 201}, {}),
        ({"code": "stale_claim"}, {"code": "other"}),
        ({"body": {"a": [1]}}, {"a": [2]}),
        ({"at": {"/a": {"equals": True}}}, {"a": 1}),
        ({"at": {"/a": {"absent": True}}}, {"a": None}),
        ({"at": {"/a": {"type": "string"}}}, {}),
        ({"at": {"/a": {"each": {"": {"equals": 1}}}}}, {"a": []}),
        ({"at": {"/a": {"some": {"": {"equals": 1}}}}}, {"a": [2]}),
        ({"at": {"/a": {"unique": ""}}}, {"a": [1, 1]}),
        ({"at": {"/a": {"same_items": [1, 2]}}}, {"a": [1, 2, 2]}),
        ({"at": {"/a": {"more_than": 1}}}, {"a": 1}),
        ({"at": {"": {"fits": "number"}}}, {}),
        ({"at": {"/a": {"fits": "time"}}}, {"a": "yesterday"}),
    ],
)
def test_what_is_not_as_expected_is_found(expect: Any, body: Any) -> None:
    time = {"type": "string", "format": "date-time"}
    assert findings(expect, 400, body, {"number": {"type": "number"}, "time": time})


@pytest.mark.parametrize("time", ["2026-11-03T10:00:00Z", "2026-11-03t10:00:00.123+01:00"])
def test_a_time_of_rfc_3339_fits(time: str) -> None:
    schemas = {"time": {"type": "string", "format": "date-time"}}
    assert not findings({"at": {"": {"fits": "time"}}}, 200, time, schemas)


@pytest.mark.parametrize("expect", [{}, {"stat": 1}, {"at": {"/a": {}}}, {"at": {"/a": {"is": 1}}}])
def test_what_the_runner_does_not_know_is_an_error(expect: Any) -> None:
    with pytest.raises(Misunderstood):
        findings(expect, 200, {"a": 1}, {})


@pytest.mark.parametrize("value", ["${nobody}", "${a/b}", {"$hash": 1}])
def test_a_value_that_cannot_be_made_is_an_error(value: Any) -> None:
    with pytest.raises(Misunderstood):
        resolve(value, {"a": {}})


def test_a_dead_port_is_told_as_the_command_line_tells_it(tmp_path: Path) -> None:
    suite = tmp_path / "suite.json"
    suite.write_text('{"suite": "1", "protocol": 1, "checks": []}', "utf-8")
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "tasuki.conformance"),
            *("--target", "http://127.0.0.1:9", "--suite", str(suite)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 69
    assert "no server answers" in ran.stderr


def test_a_title_of_several_lines_is_one_line_of_tap() -> None:
    title = "one\nnot ok 2 - two"
    check = Outcome(id="a.b", level="schema", title=title, reason="r", rule="R1", ok=True)
    report = Report(
        target="x",
        suite="1",
        protocol=1,
        checks=[check],
        typed_calls=0,
        low_level_calls=0,
        typed_operations=[],
        low_level_operations=[],
    )
    assert report.tap().splitlines()[2] == "ok 1 - a.b: one not ok 2 - two"
