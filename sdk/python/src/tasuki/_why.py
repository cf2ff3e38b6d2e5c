# SPDX-License-Identifier: Apache-2.0
"""Why a handoff is not further than it is, in words, from what the broker says of it. No I/O."""

from __future__ import annotations

from datetime import datetime, timezone

from . import models as m


def awaited(handoff: m.HandoffWithResult) -> str | None:
    """The agent that has to claim a handoff, if that is what it waits for."""
    claims = (one for one in handoff.waits_for if one.kind == "claim" and one.target)
    return next((one.target.agent for one in claims if one.target), None)


def listens(handoff: m.HandoffWithResult) -> bool:
    """Whether anybody is there who takes it."""
    return any(one.listening for one in handoff.waits_for)


def held_by(handoff: m.Handoff, agent: str) -> bool:
    """Whether an agent works on a handoff."""
    return bool(handoff.attempts) and handoff.attempts[-1].agent == agent


def reason(
    handoff: m.HandoffWithResult, *, busy: m.Handoff | None = None, known: bool = True
) -> str:
    """What it waits for. `busy` is what its agent works on at this moment; `known` is whether the
    broker has heard of that agent."""
    if handoff.state in ("completed", "failed", "aborted", "cancelled"):
        return f"it is {handoff.state}"
    if handoff.state == "dead_lettered":
        told = f" ({handoff.dead_letter.reason})" if handoff.dead_letter else ""
        return f"it is a dead letter{told}: somebody has to redrive or discard it"
    last = handoff.attempts[-1] if handoff.attempts else None
    holder = last.agent if last else whom(handoff.to)
    if handoff.state == "input_required":
        return f"{holder} asked a question, which waits for an answer"
    if handoff.state in ("claimed", "in_progress"):
        since = f" since {clock(last.claimed_at)}" if last else ""
        return f"it is being worked on by {holder}{since}"
    said = [words(one, handoff, busy, known) for one in handoff.waits_for]
    return " and ".join(one for one in said if one) or f"it is {handoff.state}"


def words(
    one: m.WaitsFor, handoff: m.HandoffWithResult, busy: m.Handoff | None, known: bool
) -> str:
    """One thing that it waits for."""
    match one.kind:
        case "time":
            due = span(one.until) if one.until else "later"
            return f"it is tried again {due}" if handoff.attempts else f"it starts {due}"
        case "paused":
            if one.until is None:
                return f"{whom(one.target)} is paused, and somebody has to resume it"
            goes_on = f"somebody resumes it, or it goes on {span(one.until)}"
            return f"{whom(one.target)} is paused: {goes_on}"
        case "breaker":
            until = f", and gets work again {span(one.until)}" if one.until else ""
            return f"{whom(one.target)} failed too often: its breaker is {one.breaker}{until}"
        case "task":
            need = f" ({one.need} must have a result)" if one.need else ""
            return f"it waits for the task {one.task_id}, which is {one.state}{need}"
        case "letter":
            return f"a task above it waits for a decision on the dead letter {one.handoff_id}"
        case "turn":
            return f"it comes after {one.first}, which has the same ordering key"
        case "approval":
            who = " or ".join(one.approvers)
            because = f", because {one.taints[0]} no longer holds" if one.taints else ""
            return f"it waits for approval{f' by {who}' if who else ''}{because}"
        case "claim":
            return _claim(one, handoff, busy, known)
        case "holder":
            return f"{one.agent} has to go on with it"
        case "decision":
            return f"somebody has to decide on it: {one.reason}"
        case kind:
            return f"it waits for {kind}"


def _claim(
    one: m.WaitsFor, handoff: m.HandoffWithResult, busy: m.Handoff | None, known: bool
) -> str:
    who = whom(one.target or handoff.to)
    if busy:
        since = clock(busy.attempts[-1].claimed_at)
        return f"it waits for {who}, who has been working on {busy.handoff_id} since {since}"
    if not known:
        return f"it waits for {who}, and no such agent is known"
    if handoff.status == "delivered":
        return f"{who} has seen it and not claimed it"
    if one.listening is False:
        return f"it waits for {who}, and nobody listens for it"
    return f"it waits for {who} to claim it"


def whom(target: m.Target | None) -> str:
    """Who is meant."""
    if target is None:
        return "somebody"
    return target.agent or f"any agent with the capability {target.capability}"


def span(moment: datetime) -> str:
    """When, seen from now."""
    left = (moment - datetime.now(timezone.utc)).total_seconds()
    if left < 1:
        return "at once"
    if left < 120:
        return f"in {left:.0f} s"
    return f"in {left / 60:.0f} min" if left < 7200 else f"at {clock(moment)}"


def clock(moment: datetime) -> str:
    """When, to the second."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
