# SPDX-License-Identifier: Apache-2.0
"""Every example runs against a broker of its own and prints what it says it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tasuki
from conftest import EXAMPLES
from tasuki.testing import Broker

PROGRAMS = sorted(EXAMPLES.glob("*.py"))
ANSWERS = {"human_approval.py": "yes\nno\n"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(program: Path) -> None:
    with Broker() as broker:
        ran = subprocess.run(
            [sys.executable, str(program)],
            input=ANSWERS.get(program.name, ""),
            capture_output=True,
            text=True,
            env={**os.environ, "TASUKI_URL": broker.url},
            timeout=180,
            check=False,
        )
        with tasuki.Client(broker.url, agent="person") as client:
            left = [task.intent for task in client.tasks.page(state="open").tasks]
            letters = client.dead_letters.page().handoffs
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == promised(program)
    assert (left, letters) == ([], []), "an example leaves nothing open"


def promised(program: Path) -> list[str]:
    """What the text at the beginning of an example says it prints."""
    text = program.read_text("utf-8").split('"""')[1]
    shown = text.split("Prints", 1)[1].split("\n\n", 1)[1]
    return [line[4:] for line in shown.splitlines() if line.startswith("    ")]


def test_there_are_examples() -> None:
    assert len(PROGRAMS) >= 4


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_ends_when_there_is_no_broker(program: Path) -> None:
    code = (
        "import runpy, sys\n"
        "from tasuki import Retry\n"
        "Retry.__init__.__defaults__ = (0.2, 0.1, 0.2, *Retry.__init__.__defaults__[3:])\n"
        "runpy.run_path(sys.argv[1], run_name='__main__')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(program)],
        input=ANSWERS.get(program.name, ""),
        capture_output=True,
        text=True,
        env={**os.environ, "TASUKI_URL": "http://127.0.0.1:9"},
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert "Unreachable" in ran.stderr
