# SPDX-License-Identifier: Apache-2.0
# Made by tools/generate.py from _async/client.py. Do not edit.
"""The client: handing work over, taking it, and everything around."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

import httpx
from typing_extensions import Self, Unpack

from .. import _routes as routes
from .. import errors
from .. import models as m
from .._misuse import listed
from .._offers import Assembly, Control, JsonObject, Offer, Said, Span, many, new_key, offer, said
from .._report import Classify
from .._report import payload as as_payload
from .._wire import (
    ANSWER_S,
    Core,
    Deadline,
    Retry,
    Route,
    decode,
    fit,
    milliseconds,
    parts,
    seconds,
    unexpected,
    whole,
)
from ..keys import Key
from .base import Wire
from .channels import Channel
from .claims import WORK_S, Claim, Claiming, made, take
from .handoffs import ACKNOWLEDGED_S, Handoff, failed, result_of, wait_for, why
from .knowledge import Memories, Project
from .people import (
    Agents,
    Alerts,
    Keys,
    Sessions,
    Tenants,
    Tokens,
)
from .work import Audit, Chains, DeadLetters, Handoffs, Tasks

#: States from which nothing comes any more by itself.
_ENDED = frozenset({"completed", "failed", "cancelled", "dead_lettered"})
#: How often `follow` looks for more.
FOLLOW_S = 1.0
_EVENT = Route("GET", routes.EVENT_STREAM.path, m.Event)


class Client:
    """A way to a broker.

    `url` is its address (`TASUKI_URL`, or the one on this machine). `agent` is in whose name things
    are done where nothing else is said. Who asks is shown by `key` (a `Key`, or the path of a key
    file; `TASUKI_KEY`) or by `token` (`TASUKI_TOKEN`); a broker on this machine asks nobody.

    What is signed is for one broker and no other: the one with the key `broker` (`TASUKI_BROKER`,
    or what the key file says), as its administrator tells it. Where nobody named one, the broker
    is asked for its key once and believed.

    At an address with `https` the broker is believed by the authorities that are usual, by those in
    the file `tls_ca` (`TASUKI_TLS_CA`), or by `tls_pin` (`TASUKI_TLS_PIN`), the fingerprint that
    `tasuki serve --tls self-signed` prints: then by nothing else.

    Calls are repeated with growing pauses, as long as `retry` says, when the broker does not answer
    or asks for patience. That is safe: what has no key by which the broker knows a repeat is looked
    up when an answer was lost, or not repeated (`memories.edit`, `project.write`, `tokens.issue`).
    Only a note of progress may stand in the log twice.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        agent: str | None = None,
        token: str | None = None,
        key: Key | str | os.PathLike[str] | None = None,
        timeout: float = ANSWER_S,
        retry: Retry | None = None,
        broker: str | None = None,
        tls_pin: str | None = None,
        tls_ca: str | os.PathLike[str] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        if key is None and token is None:
            key = os.environ.get("TASUKI_KEY") or None
        if key is not None and not isinstance(key, Key):
            key = Key.load(key)
        core = Core(
            url,
            agent=agent,
            token=token,
            key=key,
            timeout=timeout,
            retry=Retry() if retry is None else retry,
            broker=broker,
            tls_pin=tls_pin,
            tls_ca=tls_ca,
        )
        self._wire = Wire(core, transport)
        self.memories = Memories(self._wire)
        self.tasks = Tasks(self._wire)
        self.handoffs = Handoffs(self._wire)
        self.dead_letters = DeadLetters(self._wire)
        self.agents = Agents(self._wire)
        self.keys = Keys(self._wire)
        self.tokens = Tokens(self._wire)
        self.sessions = Sessions(self._wire)
        self.tenants = Tenants(self._wire)
        self.alerts = Alerts(self._wire)
        self.audit = Audit(self._wire)
        self.chains = Chains(self._wire)

    @property
    def url(self) -> str:
        """Where the broker is."""
        return self._wire.core.base_url

    @property
    def agent(self) -> str | None:
        """In whose name things are done."""
        return self._wire.core.agent

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the connections up."""
        self._wire.close()

    # Handing work over

    def handoff(
        self,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        intent: str | None = None,
        task_id: str | None = None,
        control: Control = "passed",
        from_agent: str | None = None,
        correlation_id: str | None = None,
        idempotency_key: str | None = None,
        **hop: Unpack[Offer],
    ) -> Handoff:
        """Offers work, to an agent or to any agent with a capability. Returns once it is stored.

        `intent` is what the user asked for, word for word; it opens a task. With `task_id` a task
        is handed on. `payload` is what the receiver works on: an object, a model, or a text.
        `control="awaited"` calls: the work becomes a task below, and this one stays the sender's.

        Further keywords say what binds (`constraints`, `decisions`), what to know (`summary`,
        `history`, `memory_refs`, `assembled`), what is wanted (`ask`, `expected_output`,
        `output_schema`), when and by whom (`deadline`, `expires_in`, `start_in`, `priority`,
        `fallbacks`, `needs_approval`, `coordinator`) and on which `terms`: see `Offer`.
        """
        body = offer(
            self._wire.core,
            from_agent=from_agent,
            to=to,
            to_capability=to_capability,
            payload=payload,
            intent=intent,
            task_id=task_id,
            control=control,
            correlation_id=correlation_id,
            idempotency_key=idempotency_key,
            hop=hop,
        )
        return Handoff(self._wire, self._wire.send(routes.HANDOFF_OFFER, body=body))

    def call(
        self,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        intent: str | None = None,
        task_id: str | None = None,
        from_agent: str | None = None,
        correlation_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: Span | None = None,
        **hop: Unpack[Offer],
    ) -> m.ResultReport:
        """Has somebody do something, and waits for the result. The caller stays the owner of its
        own task. Raises `TimedOut` after `timeout`; the work goes on all the same. Keywords as in
        `handoff`."""
        seconds(timeout, "timeout")
        called = self.handoff(
            to=to,
            to_capability=to_capability,
            payload=payload,
            intent=intent,
            task_id=task_id,
            control="awaited",
            from_agent=from_agent,
            correlation_id=correlation_id,
            idempotency_key=idempotency_key,
            **hop,
        )
        return called.result(timeout)

    def send(
        self,
        *,
        to: str | None = None,
        to_capability: str | None = None,
        payload: Any = None,
        intent: str | None = None,
        task_id: str | None = None,
        control: Control = "passed",
        from_agent: str | None = None,
        correlation_id: str | None = None,
        idempotency_key: str | None = None,
        until: m.Until = "claimed",
        timeout: Span = ACKNOWLEDGED_S,
        **hop: Unpack[Offer],
    ) -> m.Sent:
        """Offers work and waits until somebody has accepted it, or until there is a result. What
        nobody claims in `timeout` goes to the next of `fallbacks`, and then to the dead letters:
        unlike `handoff`, this does not wait for an agent that may come later. Raises `TimedOut` if
        it did not come as far, or `HandoffFailed` if it has ended without; `handoff` of either is
        the handoff."""
        wait = seconds(timeout, "timeout") or 0.0
        body = offer(
            self._wire.core,
            from_agent=from_agent,
            to=to,
            to_capability=to_capability,
            payload=payload,
            intent=intent,
            task_id=task_id,
            control=control,
            correlation_id=correlation_id,
            idempotency_key=idempotency_key,
            hop=hop,
        )
        body = {**body, "until": until, "timeout_ms": milliseconds(timeout)}
        deadline = Deadline(timeout)
        sent = self._wire.send(routes.HANDOFF_SEND, body=body, wait=wait)
        if not sent.reached and sent.state not in _ENDED and deadline.left() > 1:
            # One request waits only so long at the broker.
            left = deadline.left()
            wait_for(self._wire, [sent.handoff_id], until=until, timeout=left)
            sent = self._wire.send(routes.HANDOFF_SEND, body=body, wait=wait)
        if sent.reached:
            return sent
        error: errors.TimedOut | errors.HandoffFailed
        if sent.state in _ENDED and (sent.attempts or sent.declined_by):
            error = failed(self._wire, sent)
        else:
            shown = self._wire.send(routes.HANDOFF_SHOW, path={"id": sent.handoff_id})
            reason = why(self._wire, shown)
            error = errors.TimedOut(
                f"{sent.handoff_id} did not come as far as {until} in {wait:g} s: {reason}",
                hint="`handoff` of this exception is the handoff: see how it stands",
            )
        error.handoff = Handoff(self._wire, fit(routes.HANDOFF_SEND, m.OfferReply, _stored(sent)))
        raise error

    def pipelines(self) -> m.Pipelines:
        """The routes that are declared."""
        return self._wire.send(routes.PIPELINE_LIST)

    def start_pipeline(
        self,
        name: str,
        *,
        intent: str,
        payload: Any = None,
        from_agent: str | None = None,
        correlation_id: str | None = None,
        coordinator: str | m.Coordinator | JsonObject | None = None,
        project: str | None = None,
        deadline: datetime | str | None = None,
        idempotency_key: str | None = None,
        **parts: Unpack[Said],
    ) -> Handoff:
        """Begins a task along a declared route."""
        body = {
            **said({**parts, "coordinator": coordinator}),
            "from_agent": self._wire.core.who(from_agent, "from_agent"),
            "intent": intent,
            "payload": as_payload(payload, default="request"),
            "correlation_id": correlation_id,
            "project": project,
            "deadline": deadline,
            "idempotency_key": idempotency_key or new_key(),
        }
        started = self._wire.send(routes.PIPELINE_START, path={"name": name}, body=body)
        return Handoff(self._wire, started)

    def handoff_many(self, offers: Iterable[JsonObject]) -> list[Handoff | errors.Refused]:
        """Offers many things at once, each on its own: what is refused does not hinder the rest.
        Each has the names that `handoff` takes."""
        bodies = [
            many(self._wire.core, given, f"offers[{at}]")
            for at, given in enumerate(listed(offers, "offers"))
        ]
        route = routes.HANDOFF_OFFER_BATCH
        content = self._wire.exchange(route, body={"offers": bodies})
        answers: list[Handoff | errors.Refused] = []
        for part in parts(route, content, "results"):
            if "error" in part:
                answers.append(self._refused(route, part["error"]))
            else:
                answers.append(Handoff(self._wire, fit(route, m.OfferReply, part)))
        return answers

    def _refused(self, route: Route[Any], problem: Any) -> errors.Refused:
        refused = errors.refusal(409, problem, self.url)
        if isinstance(refused, errors.Refused):
            return refused
        raise unexpected(route)

    def wait(
        self,
        handoffs: Sequence[Handoff | str],
        *,
        until: m.Until = "settled",
        mode: m.Mode = "all",
        timeout: Span | None = None,
    ) -> m.Waited:
        """Waits for all of some handoffs, or for any. What is still open then is in the answer."""
        ids = [one if isinstance(one, str) else one.id for one in handoffs]
        return wait_for(self._wire, ids, until=until, mode=mode, timeout=timeout)

    def results(
        self, handoffs: Sequence[Handoff | str], *, timeout: Span | None = None
    ) -> list[m.ResultReport]:
        """The results of some handoffs, in the same order. The first without one raises."""
        found = self.wait(handoffs, timeout=timeout)
        if found.open_handoffs:
            first = found.open_handoffs[0]
            shown = self._wire.send(routes.HANDOFF_SHOW, path={"id": first})
            raise errors.TimedOut(
                f"{len(found.open_handoffs)} of {len(handoffs)} handoffs have no result yet, "
                f"the first {first}: {why(self._wire, shown)}",
                hint="ask again: they go on, and their results are kept",
                details={"open_handoffs": found.open_handoffs},
            )
        ended = {one.handoff_id: one for one in found.handoffs}
        ids = [one if isinstance(one, str) else one.id for one in handoffs]
        return [result_of(self._wire, ended[id]) for id in ids]

    def assemble(
        self,
        *,
        to: str | None = None,
        intent: str | None = None,
        task_id: str | None = None,
        from_agent: str | None = None,
        **assembly: Unpack[Assembly],
    ) -> m.AssembleReply:
        """Puts together what a receiver gets to read, within its token budget. Nothing is stored:
        `handoff(assembled=…, to=…, intent=…)` sends it. `project`, `memory_refs`,
        `include_recent` and `include_pins` say what is considered, `max_tokens`, `reserved_work`,
        `strategy` and `role` how much of it fits: see `Assembly`."""
        body = {
            **said(assembly),
            "from_agent": self._wire.core.who(from_agent, "from_agent"),
            "to_agent": to,
            "intent": intent,
            "task_id": task_id,
        }
        return self._wire.send(routes.ASSEMBLE, body=body)

    # Taking work

    def claim(
        self,
        *,
        agent: str | None = None,
        capabilities: Sequence[str] = (),
        lease: Span | None = None,
        wait: Span | None = WORK_S,
        classify: Classify | None = None,
        auto_start: bool = True,
    ) -> Claiming:
        """Takes work at the beginning of a `with` block and keeps it alive until its end; see
        `Claim`. Raises `NoWork` if there is none within `wait` seconds; `None` waits for ever."""
        ask = {
            "agent": self._wire.core.who(agent, "agent"),
            "capabilities": capabilities,
            "lease": lease,
            "classify": classify,
            "auto_start": auto_start,
        }
        return Claiming(self, ask, wait)

    def try_claim(
        self,
        *,
        agent: str | None = None,
        capabilities: Sequence[str] = (),
        lease: Span | None = None,
        wait: Span = 0.0,
        classify: Classify | None = None,
        auto_start: bool = True,
    ) -> Claim | None:
        """Takes work if there is any within `wait` seconds (60 at most). Heartbeats begin with the
        claim's own `with` block."""
        found = self._take(agent, capabilities, 1, lease, wait, classify, auto_start)
        return found[0] if found else None

    def claim_handoff(
        self,
        id: str,
        *,
        agent: str | None = None,
        capabilities: Sequence[str] = (),
        lease: Span | None = None,
        classify: Classify | None = None,
        auto_start: bool = True,
    ) -> Claim:
        """Takes this very handoff."""
        name = self._wire.core.who(agent, "agent")
        body: dict[str, Any] = {
            "agent": name,
            "capabilities": listed(capabilities, "capabilities"),
            "majors": [2],
            "request_id": new_key(),
        }
        if lease is not None:
            body["lease_ms"] = milliseconds(lease, "lease")
        route = routes.HANDOFF_CLAIM_ONE
        content = self._wire.exchange(route, {"id": id}, body=body)
        options = {"agent": name, "classify": classify, "auto_start": auto_start}
        return made(self, route, whole(route, content), options)

    def claims(
        self,
        *,
        agent: str | None = None,
        capabilities: Sequence[str] = (),
        lease: Span | None = None,
        idle: Span | None = None,
        classify: Classify | None = None,
    ) -> Iterator[Claim]:
        """One piece of work after the other, for ever, or until there was none for `idle` seconds.
        A broker that is away is waited for. After work that was left without a word there is a
        growing pause, because it is likely to come again."""
        deadline = Deadline(idle, "idle")
        forgotten = 0
        while True:
            try:
                found = self.try_claim(
                    agent=agent,
                    capabilities=capabilities,
                    lease=lease,
                    wait=deadline.next_wait(),
                    classify=classify,
                )
            except (errors.Unreachable, errors.Unavailable, errors.Overloaded):
                if deadline.over():
                    raise
                time.sleep(self._wire.core.retry.pause(5))
                continue
            if found:
                yield found
                deadline = Deadline(idle, "idle")
                forgotten = forgotten + 1 if found._forgotten else 0
                if forgotten:
                    retry = self._wire.core.retry
                    time.sleep(min(retry.cap, retry.base * 2.0 ** min(forgotten, 30)))
            elif deadline.over():
                return

    def complete_many(
        self, completions: Iterable[tuple[Claim, JsonObject]]
    ) -> list[m.Moved | errors.Refused]:
        """Completes many claims at once, each on its own."""
        pairs = listed(completions, "completions")
        bodies = [
            {
                "handoff_id": claim.handoff_id,
                "claim_id": claim.claim_id,
                "fence": claim.fence,
                **claim._completion(result),
            }
            for claim, result in pairs
        ]
        route = routes.HANDOFF_COMPLETE_BATCH
        content = self._wire.exchange(route, body={"completions": bodies})
        answered = parts(route, content, "results")
        if len(answered) != len(pairs):
            raise unexpected(route)
        answers: list[m.Moved | errors.Refused] = []
        for (claim, _), part in zip(pairs, answered, strict=True):
            if "error" in part:
                answers.append(self._refused(route, part["error"]))
            else:
                claim._reported = True
                claim._heart.finish()
                answers.append(fit(route, m.Moved, part))
        return answers

    # Around it

    def channel(self, name: str) -> Channel:
        """A name on which something goes to several receivers at once."""
        return Channel(self._wire, name)

    def project(self, name: str) -> Project:
        """A project's shared context."""
        return Project(self._wire, name)

    def discover(
        self,
        *,
        capability: str | None = None,
        input: Any = None,
        output: Any = None,
        role: str | None = None,
        tags: Sequence[str] = (),
        live: bool | None = None,
        reliability: int | None = None,
        version: str | None = None,
        tenant: str | None = None,
        limit: int | None = None,
    ) -> list[m.Agent]:
        """Finds agents by what they can do: by name, by what they take and by what they give."""
        body = {
            "capability": capability,
            "input": input,
            "output": output,
            "role": role,
            "tags": listed(tags, "tags") or None,
            "live": live,
            "reliability": reliability,
            "version": version,
            "tenant": tenant,
            "limit": limit,
        }
        return (self._wire.send(routes.AGENT_SEARCH, body=body)).agents

    def events(
        self,
        *,
        after: str | int | None = None,
        task: str | None = None,
        handoff: str | None = None,
    ) -> Iterator[m.Event]:
        """What happens, as it happens. A broken stream goes on where it ended. Raises
        `EventsMissed` where the broker cannot promise that everything was told."""
        attempts = self._wire.core.attempts(routes.EVENT_STREAM, True)
        while True:
            query = {"after": after, "task": task, "handoff": handoff}
            heard = False
            try:
                self._wire.meet()
                request = self._wire.core.request(
                    routes.EVENT_STREAM, path={}, query=query, body=None, wait=60
                )
                request.headers["accept"] = "text/event-stream"
                response = self._wire.http.send(request, stream=True)
                try:
                    if not response.is_success:
                        pause = attempts.answer(response, response.read())
                        time.sleep(pause or 0)
                        continue
                    if "event-stream" not in response.headers.get("content-type", ""):
                        time.sleep(attempts.strange(response))
                        continue
                    missed = False
                    for line in response.iter_lines():
                        heard = True
                        if line.startswith("event:"):
                            missed = line[6:].strip() == "missed"
                        elif line.startswith("data:") and missed:
                            raise errors.EventsMissed.told(line[5:])
                        elif line.startswith("data:"):
                            event = decode(_EVENT, line[5:].encode())
                            after = event.position
                            attempts = self._wire.core.attempts(routes.EVENT_STREAM, True)
                            yield event
                finally:
                    response.close()
            except (httpx.HTTPError, httpx.StreamError) as error:
                time.sleep(attempts.fault(error))
            else:
                if not heard:
                    ended = httpx.RemoteProtocolError("the stream ended before it began")
                    time.sleep(attempts.fault(ended))

    def questions(
        self,
        *,
        kind: m.QuestionKind | None = None,
        task: str | None = None,
        from_agent: str | None = None,
        follow: bool = False,
    ) -> Iterator[m.OpenQuestion]:
        """What holders ask and wait for, one after the other. With `follow` it goes on with those
        that are asked later, for ever."""
        seen: set[tuple[str, str]] = set()
        while True:
            before: str | None = None
            while True:
                query = {"kind": kind, "task": task, "from_agent": from_agent, "before": before}
                found = (self._wire.send(routes.QUESTION_LIST, query=query)).questions
                for question in found:
                    if (question.handoff_id, question.question) not in seen:
                        seen.add((question.handoff_id, question.question))
                        yield question
                if not found:
                    break
                before = found[-1].handoff_id
            if not follow:
                return
            time.sleep(FOLLOW_S)

    def approvals(
        self, *, task: str | None = None, from_agent: str | None = None, follow: bool = False
    ) -> Iterator[m.Handoff]:
        """What waits for approval, one after the other: `handoffs.approve(id)` or `reject(id)`
        decides. With `follow` it goes on with what comes later, for ever."""
        seen: set[str] = set()
        while True:
            before: str | None = None
            while True:
                found = self.handoffs.page(
                    state="awaiting_approval", task=task, from_agent=from_agent, before=before
                )
                for handoff in found.handoffs:
                    if handoff.handoff_id not in seen:
                        seen.add(handoff.handoff_id)
                        yield handoff
                if not found.handoffs:
                    break
                before = found.handoffs[-1].handoff_id
            if not follow:
                return
            time.sleep(FOLLOW_S)

    def answer(
        self, handoff_id: str, answer: Any, *, by: str | None = None, question: str | None = None
    ) -> m.Moved:
        """Answers the question that a handoff waits with."""
        body = {"by": self._wire.core.who(by, "by"), "answer": answer, "question": question}
        return self._wire.send(routes.QUESTION_ANSWER, path={"id": handoff_id}, body=body)

    def reservations(self) -> list[m.Reservation]:
        """What holders have for themselves."""
        return (self._wire.send(routes.RESERVATION_LIST)).reservations

    def targets(self) -> list[m.TargetHealth]:
        """How targets fare: failures in a row, breakers, hops, and how full budgets were."""
        return (self._wire.send(routes.HEALTH_TARGETS)).targets

    def overview(self) -> m.Overview:
        """How everything goes, at a glance."""
        return self._wire.send(routes.OVERVIEW_SHOW)

    def population(
        self,
        *,
        baseline_from: str | None = None,
        baseline_until: str | None = None,
        no_baseline: bool | None = None,
    ) -> m.PopulationReport:
        """What agents did lately, and what of it is unusual against a baseline."""
        query = {
            "baseline_from": baseline_from,
            "baseline_until": baseline_until,
            "no_baseline": no_baseline,
        }
        return self._wire.send(routes.POPULATION_SHOW, query=query)

    def health(self) -> m.Health:
        """Whether the broker runs."""
        return self._wire.send(routes.HEALTH)

    def ready(self) -> m.Health:
        """Whether the broker takes work."""
        return self._wire.send(routes.READY)

    def stats(self) -> m.Stats:
        """How much there is, and how fast it goes."""
        return self._wire.send(routes.STATS_SHOW)

    def _take(
        self,
        agent: str | None,
        capabilities: Sequence[str],
        most: int,
        lease: Span | None,
        wait: Span,
        classify: Classify | None,
        auto_start: bool,
        request_id: str | None = None,
        brief: bool = False,
        patience: float | None = None,
        line: httpx.Client | None = None,
    ) -> list[Claim]:
        return take(
            self,
            agent=self._wire.core.who(agent, "agent"),
            capabilities=capabilities,
            most=most,
            lease=lease,
            wait=seconds(wait, "wait") or 0.0,
            classify=classify,
            auto_start=auto_start,
            request_id=request_id,
            brief=brief,
            patience=patience,
            line=line,
        )


def _stored(sent: m.Sent) -> dict[str, Any]:
    names = ("envelope", "expires_at", "handoff_id", "hop", "listening", "offered_at", "to")
    return {"task_id": sent.task_id, "status": "stored", **{n: getattr(sent, n) for n in names}}
