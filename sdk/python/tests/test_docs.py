# SPDX-License-Identifier: Apache-2.0
"""What the documents show is what happens: every block is run, and what follows it is compared."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from tasuki.testing import Broker, find_binary


def documents() -> list[Path]:
    """Those with a block of Python; `cargo xtask readme` runs all others that have commands."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [ROOT / name for name in names.splitlines() if (ROOT / name).exists()]
    return [path for path in paths if "\n```python\n" in path.read_text("utf-8")]


DOCUMENTS = documents()
GUIDE = ROOT / "docs" / "guides" / "python.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n(?:```text\n(.*?)^```$)?", re.M | re.S)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a broker, where `tasuki` and `python` are the ones under test."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tasuki").symlink_to(find_binary())
    # A wrapper, because a link would not find what its environment has.
    python = programs / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', "utf-8")
    python.chmod(0o755)
    with Broker() as broker:
        monkeypatch.setenv("TASUKI_URL", broker.url)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.chdir(tmp_path)
        yield tmp_path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_does_what_the_document_shows(document: Path, place: Path) -> None:
    run_blocks(document, place)


def test_the_guide_can_be_followed_twice_on_one_broker(place: Path) -> None:
    run_blocks(GUIDE, place)
    run_blocks(GUIDE, place)


def test_the_types_of_the_guide_are_right(tmp_path: Path) -> None:
    whole: list[str] = []
    for language, source, _ in BLOCK.findall(GUIDE.read_text("utf-8")):
        file = re.match(r"# (\w+\.py)\n", source)
        if language == "python" and file:
            (tmp_path / file[1]).write_text(source, "utf-8")
        elif language == "python":
            whole.append(source)
    (tmp_path / "guide.py").write_text("\n".join(whole), "utf-8")
    config = ["--strict", "--config-file", os.devnull, "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *config, *map(str, sorted(tmp_path.glob("*.py")))],
        env={**os.environ, "MYPYPATH": os.environ["PYTHONPATH"]},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def run_blocks(document: Path, place: Path) -> None:
    names: dict[str, Any] = {"__name__": "document"}
    count = 0
    for language, source, shown in BLOCK.findall(document.read_text("utf-8")):
        file = re.match(r"# (\w+\.py)\n", source)
        if language == "python" and file:
            (place / file[1]).write_text(source, "utf-8")
        elif language == "python":
            count += 1
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(source, f"{document.name}, block {count}", "exec"), names)
            assert out.getvalue() == shown, source
        elif language == "sh":
            assert shell(source) == shown, source
    assert count > 0


def shell(source: str) -> str:
    process = subprocess.Popen(["bash", "-um", "-c", source], stdout=subprocess.PIPE, text=True)
    try:
        out, _ = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
    assert process.returncode == 0, out
    return out
