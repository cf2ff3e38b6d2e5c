# SPDX-License-Identifier: Apache-2.0
"""What a worker says of itself: that it is connected, what it took, and what came of it."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from . import errors

if TYPE_CHECKING:
    from ._async.claims import AsyncClaim
    from ._sync.claims import Claim

log = logging.getLogger("tasuki")
_INTENT_CHARS_MAX = 60
#: At the level of information only where nobody has said what is to be heard.
_FORMAT = "%(asctime)s tasuki: %(message)s"


class _Standard(logging.StreamHandler[Any]):
    """Writes to what standard error is at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)


@contextlib.contextmanager
def audible() -> Generator[None]:
    """While a worker runs in a program that has not configured logging, what it says goes to
    standard error."""
    if log.hasHandlers():
        yield
        return
    handler = _Standard()
    handler.setFormatter(logging.Formatter(_FORMAT, "%H:%M:%S"))
    before = log.level
    log.addHandler(handler)
    if before == logging.NOTSET:
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def say_connected(heard: bool, agent: str | None, url: str) -> bool:
    """Once for each time that the broker was away, and at the beginning."""
    if not heard:
        log.info("%s is connected to %s and waits for work", agent, url)
    return True


def say_took(claim: Claim | AsyncClaim) -> float:
    """Says what was begun, and returns when."""
    intent = " ".join(claim.intent.split())
    if len(intent) > _INTENT_CHARS_MAX:
        intent = intent[: _INTENT_CHARS_MAX - 1] + "…"
    log.info("%s took %s, attempt %d: %s", claim.agent, claim.handoff_id, claim.attempt, intent)
    return time.monotonic()


def say_finished(claim: Claim | AsyncClaim, began: float) -> None:
    """Says what became of it."""
    spent = time.monotonic() - began
    became = claim._became or "left"
    log.info("%s finished %s in %.1f s: it is %s", claim.agent, claim.handoff_id, spent, became)


def say_failed(claim: Claim | AsyncClaim, error: Exception, began: float) -> None:
    """Says what went wrong, with the place in the program."""
    if isinstance(error, errors.LeaseLost):
        words = "the claim of %s is lost, and its work was stopped: %s"
        log.warning(words, claim.handoff_id, error)
        return
    spent, kind = time.monotonic() - began, type(error).__name__
    trace = (type(error), error, error.__traceback__)
    words = "%s failed at %s after %.1f s with %s: it is %s"
    became = claim._became or "not reported"
    log.warning(words, claim.agent, claim.handoff_id, spent, kind, became, exc_info=trace)
