# SPDX-License-Identifier: Apache-2.0
"""`python -m tasuki.conformance`."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from urllib.parse import urlsplit

from ._runner import load, run

LEVELS = ["schema", "delivery", "chain", "context", "versioning"]

#: As the command line has it.
UNAVAILABLE = 69


def main() -> int:
    """Runs the suite; 0 if every check passes, 1 if not, 69 if nothing answers at the target."""
    parser = argparse.ArgumentParser(prog="python -m tasuki.conformance", description=__doc__)
    parser.add_argument("--target", required=True, help="the server's URL")
    parser.add_argument("--suite", help="a file that `tasuki-tools conformance suite` printed")
    parser.add_argument("--level", action="append", choices=LEVELS, default=[])
    parser.add_argument("--only", default="*", help="ids of checks; * stands for anything")
    parser.add_argument("--format", choices=["tap", "json"], default="tap")
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds for an answer")
    given = parser.parse_args()
    away = _away(given.target, given.timeout)
    if away:
        sys.stderr.write(f"no server answers at {given.target}: {away}\n")
        return UNAVAILABLE
    report = run(
        load(given.suite),
        given.target,
        levels=given.level,
        only=given.only,
        token=os.environ.get("TASUKI_TOKEN"),
        key=os.environ.get("TASUKI_KEY"),
        timeout=given.timeout,
    )
    sys.stdout.write(report.json() + "\n" if given.format == "json" else report.tap())
    return 0 if report.ok else 1


def _away(target: str, timeout: float) -> str:
    """Why nothing can be reached there, if so."""
    parts = urlsplit(target)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname or "", port), timeout=timeout).close()
    except (OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


if __name__ == "__main__":
    sys.exit(main())
