# SPDX-License-Identifier: Apache-2.0
"""What a sender says, as the API takes it. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict, Unpack

from . import _routes as routes
from . import models as m
from ._misuse import hop as checked
from ._misuse import shown, text, wrong
from ._report import payload as as_payload
from ._wire import Core, body_of, milliseconds, plain
from .keys import authored

#: Seconds, or a timedelta.
Span: TypeAlias = float | timedelta
JsonObject: TypeAlias = Mapping[str, Any]
Constraints: TypeAlias = Sequence[str | JsonObject | m.Constraint] | JsonObject


class Said(TypedDict, total=False):
    """What a sender can say of a hop: the parts of an envelope that are its own. What binds
    (intent, constraints, decisions, history, gaps) the broker carries from hop to hop by itself."""

    #: What this receiver must do.
    ask: str | None
    #: What the task is about now, in a few sentences.
    summary: str | None
    #: How far the task has come: `done`, `remaining`, `progress`.
    state: m.TaskProgress | JsonObject | None
    #: What was tried and did not help.
    tried: Sequence[str]
    #: What was considered and not taken, and why not.
    alternatives: Sequence[str]
    #: Cases that were seen and left for later.
    deferred: Sequence[str]
    #: What `assemble` chose, if it is sent in parts of one's own.
    reading: m.Reading | JsonObject | None
    #: What is taken for granted and was not checked.
    assumptions: Sequence[str]
    #: What binds everybody from here on: texts, or a plain map such as `{"language": "python"}`. A
    #: list says all of it; without it, what bound before still does.
    constraints: Constraints | None
    #: Adds to what binds.
    add_constraints: Constraints | None
    #: Ends constraints, each with a reason. Only who issued one, or the coordinator, can do that.
    lift_constraints: Sequence[m.Lift | JsonObject]
    #: Decisions that are new.
    decisions: Sequence[m.SaidDecision | JsonObject]
    #: Questions that are new and that somebody must decide.
    open_decisions: Sequence[str | m.Question | JsonObject]
    #: What was done and is not in the history yet: `{"action": …, "why": …}`.
    history: Sequence[m.NewStep | JsonObject]
    #: References that could not be resolved.
    gaps: Sequence[str | m.NewGap | JsonObject]
    #: References of gaps that are resolved now.
    resolved_gaps: Sequence[str]
    #: Memories that belong to the work: ids, or references with a revision.
    memory_refs: Sequence[str | m.MemoryRef | JsonObject]
    #: Items of context that go along.
    context: Sequence[m.ContextItem | JsonObject]
    #: The address of a manifest of context that is kept elsewhere.
    context_manifest: str | None
    #: What is wanted back: criteria, a format, a length, a schema.
    expected_output: m.ExpectedOutput | JsonObject | None
    #: Whether a claim counts only once the receiver has repeated what binds it.
    read_back: bool


class Hop(Said, total=False):
    """What a sender can say of a handoff beside what is in it."""

    #: What the sender did, or wants done, such as `request` or `needs_review`.
    action: m.Action
    #: What is to be done, where `to` names an agent: its manifest says what goes in and comes out.
    capability: str | None
    #: How one of the agents with the capability is chosen. Without it, all of them may claim.
    route: m.Policy | m.Route | JsonObject | None
    #: Who is asked next, in this order: names of agents, or `{"capability": …}`.
    fallbacks: Sequence[str | m.Target | JsonObject]
    #: Tasks that must have a result before this can be claimed.
    after: m.After | JsonObject | None
    #: 0 to 9; higher is claimed first. 5 without it.
    priority: int | None
    #: When the work must be finished; past it the handoff is a dead letter.
    deadline: datetime | str | None
    #: The same as a span from now. The earlier of the two counts; 24 hours without either.
    expires_in: Span | None
    #: How long it cannot be claimed yet.
    start_in: Span | None
    #: Leases, attempts, pauses: what should differ from the defaults.
    terms: m.TermsPatch | JsonObject | None
    #: How many tokens the work may use.
    budget_tokens: int | None
    #: What the task, with everything below it, may spend from here on: `tokens`, `cost`.
    budget: m.Budget | JsonObject | None
    #: Of a call: what becomes of it when the caller's own work ends without a result.
    on_parent_end: m.OnParentEnd | None
    #: What `assemble` answered: all that it put together goes along.
    assembled: m.AssembleReply | None
    #: Whether somebody other than the sender must let it go ahead first.
    needs_approval: bool
    #: Who may let it go ahead; whoever may approve work for its target without them.
    approvers: Sequence[str]
    #: What has the same key is worked on one after the other.
    ordering_key: str | None
    #: A JSON Schema that the result must fit: `schema` of `expected_output` in short.
    output_schema: Any
    #: For monitoring only.
    metadata: JsonObject
    #: The version of the envelope that the sender speaks.
    envelope_version: str | None
    #: Which majors of the envelope the sender can give.
    majors: Sequence[int]


class Offer(Hop, total=False):
    """What a sender can say of a new task."""

    #: Who decides when things go wrong, and is told of every failure: an agent, or `{"role": …}`.
    coordinator: str | m.Coordinator | JsonObject | None
    #: The project that it belongs to, or where memories are looked for.
    project: str | None


class Telling(Said, total=False):
    """What a sender can say of a publication beside what is in it."""

    #: What the sender did, or wants done, such as `request` or `needs_review`.
    action: m.Action
    #: 0 to 9; higher is claimed first. 5 without it.
    priority: int | None
    #: Leases, attempts, pauses: what should differ from the defaults.
    terms: m.TermsPatch | JsonObject | None
    #: When the work must be finished; past it the handoff is a dead letter.
    deadline: datetime | str | None
    #: The same as a span from now. The earlier of the two counts; 24 hours without either.
    expires_in: Span | None
    #: Whether somebody other than the sender must let it go ahead first.
    needs_approval: bool
    #: Who may let it go ahead; whoever may approve work for its target without them.
    approvers: Sequence[str]
    #: What has the same key is worked on one after the other.
    ordering_key: str | None
    #: For monitoring only.
    metadata: JsonObject
    #: Who decides when things go wrong, and is told of every failure: an agent, or `{"role": …}`.
    coordinator: str | m.Coordinator | JsonObject | None
    #: The project that it belongs to, or where memories are looked for.
    project: str | None
    #: What `assemble` answered: all that it put together goes along.
    assembled: m.AssembleReply | None


class Assembly(Said, total=False):
    """What a sender can say of an assembly beside what is in it."""

    #: The project that it belongs to, or where memories are looked for.
    project: str | None
    #: How many of the memories that changed last are considered.
    include_recent: int | None
    #: Whether pinned memories travel, whole.
    include_pins: bool | None
    #: How items are chosen, such as `full`, `lazy` or `summary_refs`.
    strategy: m.Strategy | None
    #: How many tokens it may be; without it, the receiver's context window.
    max_tokens: int | None
    #: How many of them the receiver needs for its system prompt.
    reserved_system_prompt: int | None
    #: How many of them the receiver needs for its work.
    reserved_work: int | None
    #: The receiver's tokenizer or model, such as `o200k_base`.
    tokenizer: str | None
    #: The role in which the receiver reads it.
    role: str | None
    #: What is to be sent with it, so that room is kept for it.
    payload: JsonObject | None


Control: TypeAlias = Literal["passed", "awaited"]


def target(to: str | None, to_capability: str | None) -> dict[str, str]:
    """Who is to do the work."""
    text(to, "to", "the name of an agent")
    text(to_capability, "to_capability", "the name of a capability")
    if (to is None) == (to_capability is None):
        words = "say either to=… (an agent) or to_capability=… (any agent that can)"
        raise wrong(TypeError, words)
    return {"agent": to} if to is not None else {"capability": str(to_capability)}


def said(parts: Mapping[str, Any], *, empty: bool = False) -> dict[str, Any]:
    """The parts of a hop, with what may be given in short written out. Nothing is said by a part
    that is empty, unless it takes the place of something (`empty`)."""
    checked(parts)
    assembled = parts.get("assembled")
    body = {**(plain(assembled.offer) if assembled else {}), **parts}
    body.pop("assembled", None)
    if not empty:
        body = {name: value for name, value in body.items() if not _is_empty(value)}
    if body.get("memory_refs"):
        refs: Iterable[Any] = body["memory_refs"]
        body["memory_refs"] = [{"id": ref} if isinstance(ref, str) else ref for ref in refs]
    for name in ("expires_in", "start_in"):
        if name in body:
            body[f"{name}_ms"] = milliseconds(body.pop(name), name)
    if isinstance(body.get("route"), str):
        body["route"] = {"policy": body["route"]}
    if isinstance(body.get("coordinator"), str):
        body["coordinator"] = {"agent": body["coordinator"]}
    if body.get("fallbacks"):
        others: Iterable[Any] = body["fallbacks"]
        body["fallbacks"] = [{"agent": one} if isinstance(one, str) else one for one in others]
    # False is the broker's default, and an older broker may not know the member.
    for name in ("read_back", "needs_approval"):
        if body.get(name) is False:
            del body[name]
    return body


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple, dict)) and not value


def follow_up(
    *,
    to: str | None = None,
    to_capability: str | None = None,
    payload: Any = None,
    call: bool = False,
    **hop: Unpack[Hop],
) -> dict[str, Any]:
    """A handoff that comes to be in the same atomic step in which another is completed.

    Without `call` it hands the task on: ownership passes to whoever claims it. With `call` it is a
    task of its own below this one.
    """
    body = {**said(hop), "to": target(to, to_capability)}
    body["payload"] = as_payload(payload, default="request")
    if call:
        body["control"] = "awaited"
    return body_of(routes.HANDOFF_OFFER, body)


def offer(
    core: Core,
    *,
    from_agent: str | None,
    to: str | None,
    to_capability: str | None,
    payload: Any,
    intent: str | None,
    task_id: str | None,
    control: Control,
    correlation_id: str | None,
    idempotency_key: str | None,
    hop: Mapping[str, Any],
) -> dict[str, Any]:
    """The body of an offer. It has an idempotency key in any case, so that it can be repeated."""
    for name, value in (
        ("intent", intent),
        ("task_id", task_id),
        ("correlation_id", correlation_id),
        ("idempotency_key", idempotency_key),
    ):
        text(value, name)
    body = {
        **said(hop),
        "from_agent": core.who(from_agent, "from_agent"),
        "to": target(to, to_capability),
        "payload": as_payload(payload, default="request"),
        "intent": intent,
        "task_id": task_id,
        "control": None if control == "passed" else control,
        "correlation_id": correlation_id,
        "idempotency_key": idempotency_key or new_key(),
    }
    body = body_of(routes.HANDOFF_OFFER, body)
    # Words that the broker carries are not the sender's to sign.
    if core.key and intent is not None:
        body["signed"] = core.key.statement("envelope", authored(body))
    return body


_NAMED = (
    "from_agent",
    "to",
    "to_capability",
    "payload",
    "intent",
    "task_id",
    "correlation_id",
    "idempotency_key",
)


def many(core: Core, given: JsonObject, place: str) -> dict[str, Any]:
    """The body of one of several offers. What is wrong with it says which it is."""
    if not isinstance(given, Mapping):
        words = f"{place} is a mapping of what `handoff` takes, not {shown(given)}"
        raise wrong(TypeError, words)
    hop = dict(given)
    named = {name: hop.pop(name, None) for name in _NAMED}
    control: Control = hop.pop("control", "passed")
    try:
        return offer(core, control=control, hop=hop, **named)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from None


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return uuid.uuid4().hex
