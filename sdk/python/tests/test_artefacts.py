# SPDX-License-Identifier: Apache-2.0
"""What is too large for a payload is referred to by its hash, and checked when it is fetched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import tasuki


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def kind_of(raised: pytest.ExceptionInfo[tasuki.Permanent]) -> str | None:
    return raised.value.type


def test_what_was_referred_to_is_what_is_fetched(tmp_path: Path, host: str) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(b'{"rows": 7}' * 200_000)
    found = tasuki.reference(file, f"http://{host}/report.json")
    assert (found["bytes"], found["type"]) == (2_200_000, "application/json")
    assert tasuki.fetch(found, hosts=[host]) == file.read_bytes()
    local = tasuki.reference(file, file.as_uri())
    assert tasuki.fetch(local, root=tmp_path) == file.read_bytes()
    assert tasuki.reference(file.read_bytes(), file.as_uri()) == local


def test_what_has_changed_is_refused_for_good(tmp_path: Path, host: str) -> None:
    file = tmp_path / "report"
    file.write_bytes(b"one")
    found = tasuki.reference(file, f"http://{host}/report")
    for changed in (b"two", b"on", b"one more"):
        file.write_bytes(changed)
        with pytest.raises(tasuki.Permanent) as raised:
            tasuki.fetch(found, hosts=[host])
        assert kind_of(raised) == "artefact_hash_wrong"
    file.unlink()
    with pytest.raises(tasuki.Permanent) as raised:
        tasuki.fetch(found, hosts=[host])
    assert kind_of(raised) == "artefact_not_there"


def test_nothing_is_fetched_from_where_the_receiver_did_not_say(tmp_path: Path, host: str) -> None:
    inside, outside = tmp_path / "in", tmp_path / "secret"
    inside.mkdir()
    outside.write_bytes(b"s")
    (inside / "link").symlink_to(outside)
    for url in (
        f"http://{host}/secret",
        "http://127.0.0.1:1/",
        outside.as_uri(),
        (inside / "link").as_uri(),
        f"{inside.as_uri()}/../secret",
        "ftp://files.example/x",
    ):
        with pytest.raises(tasuki.Permanent) as raised:
            tasuki.fetch(tasuki.reference(b"s", url), hosts=["files.example"], root=inside)
        assert kind_of(raised) == "artefact_place_not_allowed", url


def test_what_is_too_large_or_malformed_is_not_fetched(tmp_path: Path) -> None:
    found = tasuki.reference(b"1234", (tmp_path / "x").as_uri())
    with pytest.raises(tasuki.Permanent) as raised:
        tasuki.fetch(found, root=tmp_path, bytes_max=3)
    assert kind_of(raised) == "artefact_too_large"
    for broken in ({}, {**found, "hash": "md5:1"}, {**found, "bytes": -1}, {**found, "bytes": "4"}):
        with pytest.raises(tasuki.Permanent) as raised:
            tasuki.fetch(broken, root=tmp_path)
        assert kind_of(raised) == "artefact_malformed"
