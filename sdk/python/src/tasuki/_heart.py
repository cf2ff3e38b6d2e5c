# SPDX-License-Identifier: Apache-2.0
"""Heartbeats, from a thread of their own.

A model call may block its thread for minutes, and a blocking call in a coroutine stops the whole
event loop. Neither may lose the lease. So both clients beat from an operating system's thread,
with a connection that nothing else uses.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from . import _routes as routes
from . import errors
from . import models as m
from ._wire import Core, decode, refusal_of

log = logging.getLogger("tasuki")

#: What the broker says when a claim is over.
_OVER = frozenset({"stale_claim", "task_finished", "wrong_state", "handoff_not_found"})


class Heart:
    """Keeps one claim alive until it is stopped, and notices when it is lost."""

    def __init__(
        self, core: Core, claim: m.ClaimReply, *, http: Callable[[], httpx.Client]
    ) -> None:
        self._core = core
        self._http = http
        self._path = {"id": claim.handoff_id}
        self._body: dict[str, Any] = {"claim_id": claim.claim_id, "fence": claim.fence}
        self._lease = claim.lease_ms / 1000
        now = time.monotonic()
        self._lease_end = now + claim.lease_left_ms / 1000
        self._work_end = now + claim.work_left_ms / 1000
        self._stop = threading.Event()
        #: Whether the claim was given up for an answer: there is no lease to keep.
        self._asking = False
        #: Messages that came and were not handed to the program yet, and the last one that was.
        self._messages: list[m.HolderMessage] = list(claim.messages or [])
        self._heard = max((message.number for message in self._messages), default=0)
        self._acknowledge: int | None = None
        self._hearers: list[Callable[[m.HolderMessage], None]] = []
        self._told: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._done = False
        #: Set once the claim is over, and nobody reported on it.
        self.lost = threading.Event()
        #: Why it is lost.
        self.why: errors.TasukiError | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"tasuki-heart-{claim.handoff_id[-6:]}", daemon=True
        )

    def start(self) -> None:
        """Begins to beat."""
        if not self._thread.ident:
            self._thread.start()

    def pause(self, asking: bool) -> None:
        """Whether the claim was given up for an answer: nothing is to be kept, and nothing can be
        lost."""
        with self._lock:
            self._asking = asking

    def resume(self, claim: m.ClaimReply) -> None:
        """The answer brought a new claim."""
        with self._lock:
            self._body = {"claim_id": claim.claim_id, "fence": claim.fence}
            self._lease = claim.lease_ms / 1000
            now = time.monotonic()
            self._lease_end = now + claim.lease_left_ms / 1000
            self._work_end = now + claim.work_left_ms / 1000
            self._asking = False
        self._hear(list(claim.messages or []))

    def messages(self) -> list[m.HolderMessage]:
        """Messages that came since this was asked last. Asking acknowledges them."""
        with self._lock:
            new, self._messages = self._messages, []
            if new:
                self._acknowledge = new[-1].number
        return new

    def hear(self, tell: Callable[[m.HolderMessage], None]) -> None:
        """Calls something with each message, those that are there already first."""
        with self._lock:
            self._hearers.append(tell)
        self._pass_on()

    def _hear(self, messages: list[m.HolderMessage]) -> None:
        with self._lock:
            for message in messages:
                if message.number > self._heard:
                    self._heard = message.number
                    self._messages.append(message)
        self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            hearers = list(self._hearers)
        if not hearers:
            return
        for message in self.messages():
            for tell in hearers:
                try:
                    tell(message)
                except Exception:
                    log.exception("a message to %s was not taken", self._path["id"])

    def finish(self) -> None:
        """The claim was reported on: what a beat on its way hears now means nothing."""
        with self._lock:
            self._done = True
            self.lost.clear()
            self._stop.set()

    def stop(self) -> None:
        """Ends the beats. One that is on its way is not waited for: it would hold up the event
        loop, and what it hears means nothing any more."""
        self._stop.set()

    def lose(self, why: errors.TasukiError) -> None:
        """The claim is over, as somebody found out."""
        with self._lock:
            if self._done or self.lost.is_set():
                return
            self.why = why
            self.lost.set()
            told = list(self._told)
            self._stop.set()
        for tell in told:
            with contextlib.suppress(Exception):
                tell()

    def tell(self, what: Callable[[], None]) -> None:
        """Calls something when the claim is lost, from the thread that notices it."""
        with self._lock:
            if not self.lost.is_set():
                self._told.append(what)
                return
        what()

    @property
    def in_doubt(self) -> bool:
        """Whether the lease may have run out: the broker was not heard for as long as it lasts."""
        return time.monotonic() > self._lease_end

    def check(self) -> None:
        """Raises if the claim is lost."""
        if self.lost.is_set():
            raise self._lease_lost()

    def _lease_lost(self) -> errors.LeaseLost:
        why = self.why
        if isinstance(why, errors.LeaseLost):
            return why
        return errors.LeaseLost(
            str(why.message if why else "the claim is over"),
            hint="stop working on it; claim again if you want more work",
        )

    def _run(self) -> None:
        try:
            self._keep()
        except Exception as error:
            # Without beats the claim ends: whoever works on it must hear of that.
            log.exception("the heartbeats of %s ended", self._path["id"])
            why = f"the heartbeats ended: {type(error).__name__}"
            self.lose(errors.TasukiError(why, code="heartbeats_ended"))

    def _keep(self) -> None:
        # The first beat comes early enough for a lease of which a part is gone already.
        pause = min(self._lease, max(0.0, self._lease_end - time.monotonic())) / 3
        while not self._stop.wait(pause):
            if self._asking:
                pause = min(self._lease / 3, 1.0)
                continue
            if time.monotonic() > self._work_end:
                self.lose(errors.TasukiError("the time for this attempt is over"))
                return
            began = time.monotonic()
            try:
                pause = self._beat(began)
            except Exception as error:
                pause = self._unheard(error)

    def _beat(self, began: float) -> float:
        """Beats once. Returns how long to wait before the next one."""
        route = routes.HANDOFF_HEARTBEAT
        with self._lock:
            body, acknowledge = self._body, self._acknowledge
        if acknowledge is not None:
            body = {**body, "acknowledge": acknowledge}
        request = self._core.request(route, path=self._path, query={}, body=body, wait=0)
        patience = max(0.2, min(self._core.timeout, self._lease / 3))
        request.extensions["timeout"] = httpx.Timeout(patience).as_dict()
        response = self._http().send(request)
        if not response.is_success:
            raise refusal_of(response, self._core.base_url)
        beat = decode(route, response.content)
        with self._lock:
            # A later one may have been taken meanwhile.
            if self._acknowledge == acknowledge:
                self._acknowledge = None
        self._hear(list(beat.messages or []))
        # Counted from before the request: by the broker's clock the lease began no earlier.
        self._lease_end = began + beat.lease_left_ms / 1000
        self._work_end = began + beat.work_left_ms / 1000
        return max(0.0, began + self._lease / 3 - time.monotonic())

    def _unheard(self, error: Exception) -> float:
        """After a beat that was not taken. Only the broker's own word ends a claim: whatever else
        happens on the way there may have passed by the next beat."""
        if self._asking:
            # A beat that was on its way when the claim was given up.
            return min(self._lease / 3, 1.0)
        if isinstance(error, errors.Refused) and not error.retryable:
            if error.code in _OVER:
                self.lose(error)
                return 0
            # The broker will not have it, and may be right about who asks; a lease has its end.
            if self.in_doubt and not error.code.startswith("signature_"):
                self.lose(error)
                return 0
        # A connection that was closed together with its client is no news.
        if not self._stop.is_set():
            log.warning("a heartbeat of %s was not taken: %s", self._path["id"], error)
        return self._lease / 10
