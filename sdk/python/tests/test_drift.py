# SPDX-License-Identifier: Apache-2.0
"""The SDK and the description of the API cannot drift apart unnoticed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import Any

from conftest import HERE, ROOT
from tasuki import _offers, _routes
from tasuki._wire import Route

SOURCE = HERE.parent / "src" / "tasuki"


def test_what_is_generated_is_current() -> None:
    generate = HERE.parent / "tools" / "generate.py"
    ran = subprocess.run(
        [sys.executable, str(generate), "--check"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def routes() -> dict[str, Route[Any]]:
    return {name: value for name, value in vars(_routes).items() if isinstance(value, Route)}


#: What only a page that shows what is going on has a use for; programs follow the log itself.
PAGES = {"CHANGE_STREAM"}


def test_every_operation_of_the_api_is_called() -> None:
    table = json.loads((ROOT / "api" / "operations.json").read_text("utf-8"))
    wanted = {operation["name"].upper() for operation in table["operations"]}
    assert wanted == set(routes())
    assert wanted - PAGES == set(uses())


# What each of these takes is made in `_offers.py`, from typed dictionaries.
COMPOSED = {
    "HANDOFF_OFFER": _offers.Offer,
    "HANDOFF_SEND": _offers.Offer,
    "CHANNEL_PUBLISH": _offers.Telling,
    "PIPELINE_START": _offers.Said,
    "DEAD_LETTER_AMEND": _offers.Said,
    "ASSEMBLE": _offers.Assembly,
}
#: Parts whose names differ in Python, and those that the SDK fills in by itself.
INSTEAD = {
    "expires_in_ms": "expires_in",
    "start_in_ms": "start_in",
    "to_agent": "to",
    "scope": "project",
}
OWN = {"signed", "claim_id", "fence", "request_id", "wait_ms", "timeout_ms"}


def test_everything_that_the_api_takes_can_be_said() -> None:
    missing: list[str] = []
    for name, words in uses().items():
        route = routes()[name]
        said = set(words)
        if name in COMPOSED:
            said |= set(COMPOSED[name].__annotations__)
        for part in (*route.query, *route.body):
            if not {part, INSTEAD.get(part, part)} & said and part not in OWN:
                missing.append(f"{name} {part}")
    assert missing == []


def uses() -> dict[str, set[str]]:
    """Each route with the words of the functions that use it: parameters and texts."""
    found: dict[str, set[str]] = {}
    for path in [*(SOURCE / "_async").glob("*.py"), *SOURCE.glob("_*.py")]:
        if path.name == "_routes.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            words = {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)}
            words |= {node.args.vararg.arg} if node.args.vararg else set()
            names: set[str] = set()
            for inner in ast.walk(node):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    words.add(inner.value)
                if isinstance(inner, ast.keyword) and inner.arg:
                    words.add(inner.arg)
                if (
                    isinstance(inner, ast.Attribute)
                    and isinstance(inner.value, ast.Name)
                    and inner.value.id == "routes"
                ):
                    names.add(inner.attr)
            for name in names:
                found.setdefault(name, set()).update(words)
    return found
