#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays `walk.json` against a broker and prints every message that flows.

`--record` writes down anew what the receivers got (`messages/*.received.json`). Without it, what
they get is compared with that, byte for byte but for ids, hashes of what has a time in it, and
times.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
URL = os.environ.get("TASUKI_URL", "http://127.0.0.1:8788")
#: Members of an envelope that differ from run to run.
VARIES = (
    "envelope_version",
    "task_id",
    "handoff_id",
    "created_at",
    "previous",
    "at",
    "idempotency_key",
)
ANY = "<any>"


class Walk:
    """A play in progress: what was kept of it so far."""

    def __init__(self, client: httpx.Client, *, record: bool = False) -> None:
        self.client = client
        self.record = record
        self.kept: dict[str, Any] = {}

    def play(self, step: dict[str, Any]) -> dict[str, Any]:
        """Plays one step, and returns what was answered."""
        wanted = step["request"]
        path = self.filled(wanted["path"])
        body = self.filled(wanted["body"]) if "body" in wanted else None
        response = self.client.request(wanted["method"], path, json=body)
        answer = response.json()
        expected = step["expect"]
        if response.status_code != expected["status"]:
            raise Unexpected(f"{step['id']}: HTTP {response.status_code} {response.text}")
        if self.record and step["id"].endswith("-claim"):
            self.write_down(expected["body"]["claims"][0]["envelope"]["$file"], answer)
        compare(self.filled(expected.get("body", {})), answer, step["id"])
        for name, pointer in step.get("keep", {}).items():
            self.kept[name] = at(answer, pointer)
        return dict(answer)

    def filled(self, value: Any) -> Any:
        """A value with files read in and names replaced by what was kept."""
        if isinstance(value, dict):
            if "$file" in value:
                return self.filled(json.loads((HERE / value["$file"]).read_text("utf-8")))
            if "$merge" in value:
                merged: dict[str, Any] = {}
                for part in value["$merge"]:
                    merged.update(self.filled(part))
                return merged
            return {name: self.filled(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, str):
            whole = re.fullmatch(r"\$\{(\w+)\}", value)
            if whole:
                return self.kept[whole[1]]
            return re.sub(r"\$\{(\w+)\}", lambda found: str(self.kept[found[1]]), value)
        return value

    def write_down(self, name: str, answer: dict[str, Any]) -> None:
        envelope = without_what_varies(answer["claims"][0]["envelope"])
        text = json.dumps(envelope, indent=2, ensure_ascii=False) + "\n"
        (HERE / name).write_text(text, "utf-8")


class Unexpected(Exception):
    """An answer is not the one that the walk says."""


def compare(expected: Any, found: Any, where: str) -> None:
    """Whether what was found has everything that is expected."""
    if expected == ANY:
        return
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, part in expected.items():
            if name not in found:
                raise Unexpected(f"{where}/{name}: is missing")
            compare(part, found[name], f"{where}/{name}")
        # An envelope is compared whole: a member too many would be one that nobody sent.
        if "envelope_version" in expected and set(found) - set(expected):
            raise Unexpected(f"{where}: has more: {sorted(set(found) - set(expected))}")
        return
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            raise Unexpected(f"{where}: has {len(found)} items, expected {len(expected)}")
        for number, (part, other) in enumerate(zip(expected, found, strict=True)):
            compare(part, other, f"{where}/{number}")
        return
    if expected != found:
        raise Unexpected(f"{where}: is {found!r}, expected {expected!r}")


def without_what_varies(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: ANY if name in VARIES else without_what_varies(part)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [without_what_varies(item) for item in value]
    return value


def at(value: Any, pointer: str) -> Any:
    for part in pointer.strip("/").split("/"):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def main() -> int:
    walk = json.loads((HERE / "walk.json").read_text("utf-8"))
    print(f"{walk['title']}\n")
    with httpx.Client(base_url=URL, timeout=60, trust_env=False) as client:
        play = Walk(client, record="--record" in sys.argv)
        for number, step in enumerate(walk["steps"], 1):
            try:
                play.play(step)
            except Unexpected as error:
                print(f"\n{error}", file=sys.stderr)
                return 1
            request = step["request"]
            print(f"{number:>2}. {step['who']:<8}  {request['method']:<4} {request['path']}")
            print(f"    {step['says']}")
    print(f"\nall {len(walk['steps'])} messages went as written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
