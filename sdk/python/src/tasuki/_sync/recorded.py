# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/recorded.py. Do not edit.
"""What earlier attempts at some work started as its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _routes as routes
from .. import models as m
from .._wire import fit, plain
from .handoffs import Handoff

if TYPE_CHECKING:
    from .client import Client

#: How often work may have been redriven, as far as its steps are looked for.
REDRIVES_MAX = 16
#: What has ended without a result: a redriven work does it again.
_FRUITLESS = frozenset({"failed", "aborted", "cancelled"})


class Recorded:
    """The steps below a handoff, and below those that it is a redrive of, looked for once."""

    def __init__(self, client: Client, handoff_id: str, task_id: str) -> None:
        self._client = client
        self._handoff_id = handoff_id
        self._task_id = task_id
        self._found: dict[str, m.Handoff] | None = None
        self._before: list[str] | None = None
        self._tried = False

    def name(self, step: str, handoff_id: str | None = None) -> str:
        """What the envelope of a step says of it, in every SDK."""
        return f"{handoff_id or self._handoff_id}:step:{step}"

    def find(self, step: str, *, conflict: bool = False) -> Handoff | None:
        """What an earlier attempt started as this step. A first attempt need not look, unless the
        broker says that there is something (`conflict`)."""
        if self._before is None:
            self._look_back()
        before = self._before or []
        if not (self._tried or before or conflict):
            return None
        if self._found is None:
            self._found = self._all()
        for number, handoff_id in enumerate([self._handoff_id, *before]):
            # The second form is that of older versions.
            for name in (self.name(step, handoff_id), f"{handoff_id}:{step}"):
                found = self._found.get(name)
                if found and (number == 0 or _is_fruitful(found)):
                    return self._known(found)
        return None

    def _look_back(self) -> None:
        """Whether there were attempts before this one, and which works it takes the place of."""
        before: list[str] = []
        path = {"id": self._handoff_id}
        shown = self._client._wire.send(routes.HANDOFF_SHOW, path=path)
        self._tried = len(shown.attempts) > 1
        while shown.redrive_of and len(before) < REDRIVES_MAX:
            before.append(shown.redrive_of)
            path = {"id": shown.redrive_of}
            shown = self._client._wire.send(routes.HANDOFF_SHOW, path=path)
        self._before = before

    def _all(self) -> dict[str, m.Handoff]:
        """What the envelopes of the tasks below name as steps, the newest first."""
        found: dict[str, m.Handoff] = {}
        before: str | None = None
        while True:
            page = self._client.tasks.page(parent=self._task_id, before=before)
            for task in page.tasks:
                before = task.task_id
                shown = self._client.tasks.get(task.task_id)
                for handoff in shown.handoffs[:1]:
                    raw = self._client.handoffs.raw_envelope(handoff.handoff_id)
                    step = (raw.get("metadata") or {}).get("step")
                    if isinstance(step, str):
                        found.setdefault(step, handoff)
            if not page.tasks:
                return found

    def _known(self, handoff: m.Handoff) -> Handoff:
        told = {**plain(handoff), "status": "stored", "listening": True}
        told["envelope"] = handoff.envelope
        return Handoff(self._client._wire, fit(routes.HANDOFF_OFFER, m.OfferReply, told))


def _is_fruitful(handoff: m.Handoff) -> bool:
    """Whether it has a result, or may still have one."""
    letter = handoff.dead_letter
    if handoff.state == "dead_lettered":
        return bool(letter and letter.redriven_to)
    return handoff.state not in _FRUITLESS and not handoff.retracted
