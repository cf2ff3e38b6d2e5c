# SPDX-License-Identifier: Apache-2.0
"""The SDK's method for each operation of the suite. A step that a method would not say word for
word has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _offers
from .._sync.client import Client
from .._wire import plain
from ..errors import Refused
from ._said import Said, Unmapped

if TYPE_CHECKING:
    from ._calls import Caller

_HOP = tuple(_offers.Said.__annotations__)
_OFFER = (
    *_HOP,
    *_offers.Hop.__annotations__,
    *_offers.Offer.__annotations__,
    "intent",
    "task_id",
    "control",
    "from_agent",
    "idempotency_key",
)


def _offer(caller: Caller, said: Said) -> Any:
    who = {**said.target(), "payload": said.payload()}
    spans = said.seconds(expires_in_ms="expires_in", start_in_ms="start_in")
    rest = said.rest(*_OFFER)
    if "from_agent" not in rest:
        raise Unmapped
    return plain(caller.client.handoff(**who, **spans, **rest).offered)


def _claim_one(caller: Caller, said: Said) -> Any:
    id, agent = said.take("id", "agent")
    rest = said.rest("capabilities")
    if agent in caller.formed:
        raise Unmapped
    return caller.keep(caller.client.claim_handoff(id, agent=agent, **rest))


def _claim(caller: Caller, said: Said) -> Any:
    (agent,) = said.take("agent")
    wait = said.seconds(wait_ms="wait")
    rest = said.rest("capabilities")
    if agent in caller.formed:
        raise Unmapped
    claim = caller.client.try_claim(agent=agent, **wait, **rest)
    return {"claims": [caller.keep(claim)] if claim else []}


def _start(caller: Caller, said: Said) -> Any:
    claim = caller.held(said)
    said.end()
    claim.start()
    return caller.wire.answer()


def _progress(caller: Caller, said: Said) -> Any:
    claim = caller.held(said)
    claim.progress(**said.rest("percent", "note"))
    return caller.wire.answer()


def _complete(caller: Caller, said: Said) -> Any:
    claim, payload = caller.held(said), said.payload()
    rest = said.rest("action", "follow_ups", "criteria", "gaps", "metadata")
    return plain(claim.complete(payload, **rest))


def _fail(caller: Caller, said: Said) -> Any:
    claim = caller.held(said)
    kind, type_, message = said.take("class", "type", "message")
    after = said.maybe(retry_after_ms="retry_after")
    if not all(isinstance(span, int) and span >= 0 for span in after.values()):
        raise Unmapped
    spans = {name: span / 1000 for name, span in after.items()}
    rest = said.rest("hint", "attempted", "attempts", "causes", "details")
    lists = (rest.get("causes", []), list), (rest.get("details", {}), dict)
    if not all(isinstance(value, kind_) for value, kind_ in lists):
        raise Unmapped
    return plain(claim.fail(message, kind=kind, type=type_, **spans, **rest))


def _release(caller: Caller, said: Said) -> Any:
    claim = caller.held(said)
    said.end()
    return plain(claim.release())


def _decline(caller: Caller, said: Said) -> Any:
    if "claim_id" not in said.left:
        (id,) = said.take("id")
        return plain(caller.client.handoffs.decline(id, **said.rest("agent", "reason")))
    claim = caller.held(said)
    (claim.agent,) = said.take("agent")
    return plain(claim.decline(**said.rest("reason")))


def _show(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    spans = said.seconds(wait_ms="wait")
    return plain(caller.client.handoffs.get(id, **spans, **said.rest("until")))


def _wait(caller: Caller, said: Said) -> Any:
    (handoffs,) = said.take("handoffs")
    spans = said.seconds(timeout_ms="timeout")
    return plain(caller.client.wait(handoffs, **spans, **said.rest("until", "mode")))


def _peek(caller: Caller, said: Said) -> Any:
    found = caller.client.handoffs.peek(**said.rest("agent", "capabilities", "max", "majors"))
    return {"waiting": plain(found)}


def _assemble(caller: Caller, said: Said) -> Any:
    to = said.maybe(to_agent="to")
    more = _offers.Assembly.__annotations__
    rest = said.rest("intent", "task_id", "from_agent", *more, *_HOP)
    return plain(caller.client.assemble(**to, **rest))


def _memory_add(caller: Caller, said: Said) -> Any:
    (text,) = said.take("text")
    scope = said.maybe(scope="scope").get("scope", {})
    rest = said.rest("id", "title", "summary", "tags", "pinned", "by", "idempotency_key")
    return plain(caller.client.memories.add(text, **scope, **rest))


def _memory_edit(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    rest = said.rest("text", "title", "summary", "tags", "revision", "by")
    return plain(caller.client.memories.edit(id, **rest))


def _by_id(call: Callable[[Client], Callable[..., Any]], *names: str) -> Callable[..., Any]:
    """A method that takes an id and members by the API's own names."""

    def method(caller: Caller, said: Said) -> Any:
        (id,) = said.take("id")
        return plain(call(caller.client)(id, **said.rest(*names)))

    return method


def _needs(name: str, then: Callable[..., Any]) -> Callable[..., Any]:
    """A method that cannot be called without this."""

    def method(caller: Caller, said: Said) -> Any:
        if name not in said.left:
            raise Unmapped
        return then(caller, said)

    return method


def _events(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    return {"events": plain(caller.client.tasks.events(id))}


def _tasks(caller: Caller, said: Said) -> Any:
    rest = said.rest("owner", "state", "parent", "project", "correlation_id", "limit", "before")
    return plain(caller.client.tasks.page(**rest))


def _complete_task(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    payload = said.payload()
    return plain(caller.client.tasks.complete(id, payload, **said.rest("below", "metadata", "by")))


def _clear_taint(caller: Caller, said: Said) -> Any:
    id, source, reason = said.take("id", "source", "reason")
    return plain(caller.client.tasks.clear_taint(id, source, reason=reason, **said.rest("by")))


def _open(caller: Caller, said: Said) -> Any:
    (intent,) = said.take("intent")
    return plain(caller.client.tasks.open(intent, **said.rest("from_agent", "idempotency_key")))


def _context(caller: Caller, said: Said) -> Any:
    (project,) = said.take("project")
    said.end()
    return plain(caller.client.project(project).context())


def _write(caller: Caller, said: Said) -> Any:
    (project,) = said.take("project")
    rest = said.rest("state", "constraints", "revision", "by")
    return plain(caller.client.project(project).write(**rest))


def _publish(caller: Caller, said: Said) -> Any:
    (manifest,) = said.take("manifest")
    said.end()
    if "accepted_majors" in manifest:
        caller.formed.add(manifest["agent_id"])
    return plain(caller.client.agents.publish(manifest))


def _publish_on(caller: Caller, said: Said) -> Any:
    (name,) = said.take("name")
    payload = said.payload()
    rest = said.rest("intent", "receivers", "from_agent", "idempotency_key")
    return plain(caller.client.channel(name).publish(payload=payload, **rest).published)


def _offer_batch(caller: Caller, said: Said) -> Any:
    (offers,) = said.take("offers")
    said.end()
    given = []
    for offer in map(Said, offers):
        who = {**offer.target(), "payload": offer.payload()}
        given.append({**who, **offer.rest("intent", "from_agent", "idempotency_key")})
    results = caller.client.handoff_many(given)
    return {
        "results": [
            {"error": {"code": one.code}} if isinstance(one, Refused) else plain(one.offered)
            for one in results
        ]
    }


def _dead_letters(caller: Caller, said: Said) -> Any:
    return plain(caller.client.dead_letters.page(**said.rest("limit")))


def _redrive(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    return plain(caller.client.dead_letters.redrive(id, **said.rest("by")).offered)


def _list(caller: Caller, said: Said) -> Any:
    rest = said.rest("state", "from_agent", "to_agent", "to_capability", "task", "limit")
    return plain(caller.client.handoffs.page(**rest))


def _attach(caller: Caller, said: Said) -> Any:
    claim = caller.held(said)
    name, content = said.take("name", "content")
    return plain(claim.attach(name, content, **said.rest("type")))


def _put_back(caller: Caller, said: Said) -> Any:
    claim, spans = caller.held(said), said.seconds(for_ms="delay")
    if "delay" not in spans:
        raise Unmapped
    return plain(claim.put_back(**spans, **said.rest("reason")))


def _message(caller: Caller, said: Said) -> Any:
    id, text = said.take("id", "text")
    return {
        "messages": plain(caller.client.handoffs.message(id, text, **said.rest("by", "details")))
    }


def _messages(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    said.end()
    return {"messages": plain(caller.client.handoffs.messages(id))}


def _artifacts(caller: Caller, said: Said) -> Any:
    (id,) = said.take("id")
    return {"artifacts": plain(caller.client.handoffs.artifacts(id, **said.rest("name")))}


def _channel_messages(caller: Caller, said: Said) -> Any:
    (name,) = said.take("name")
    return plain(caller.client.channel(name).messages(**said.rest("after", "limit")))


def _pause(caller: Caller, said: Said) -> Any:
    (target,) = said.take("target")
    spans = said.seconds(for_ms="span")
    return plain(caller.client.agents.pause_target(target, **spans, **said.rest("until")))


def _resume(caller: Caller, said: Said) -> Any:
    (target,) = said.take("target")
    said.end()
    return plain(caller.client.agents.resume_target(target))


METHODS: dict[str, Callable[[Caller, Said], Any]] = {
    "agent_publish": _publish,
    "assemble": _assemble,
    "channel_messages": _channel_messages,
    "channel_publish": _publish_on,
    "context_show": _context,
    "context_write": _write,
    "dead_letter_discard": _needs(
        "reason", _by_id(lambda client: client.dead_letters.discard, "by", "reason")
    ),
    "dead_letter_list": _dead_letters,
    "dead_letter_redrive": _redrive,
    "dead_letter_show": _by_id(lambda client: client.dead_letters.get),
    "handoff_approve": _by_id(lambda client: client.handoffs.approve, "by"),
    "handoff_artifacts": _artifacts,
    "handoff_attach": _attach,
    "handoff_cancel": _by_id(lambda client: client.handoffs.cancel, "by", "reason"),
    "handoff_claim": _claim,
    "handoff_claim_one": _claim_one,
    "handoff_complete": _complete,
    "handoff_decline": _decline,
    "handoff_envelope": _by_id(lambda client: client.handoffs.raw_envelope),
    "handoff_fail": _fail,
    "handoff_list": _list,
    "handoff_message": _message,
    "handoff_messages": _messages,
    "handoff_offer": _offer,
    "handoff_offer_batch": _offer_batch,
    "handoff_peek": _peek,
    "handoff_progress": _progress,
    "handoff_prompt": _by_id(lambda client: client.handoffs.prompt, "tokenizer"),
    "handoff_put_back": _put_back,
    "handoff_release": _release,
    "handoff_reject": _needs(
        "reason", _by_id(lambda client: client.handoffs.reject, "by", "reason")
    ),
    "handoff_retract": _needs(
        "reason", _by_id(lambda client: client.handoffs.retract, "by", "policy", "reason")
    ),
    "handoff_show": _show,
    "handoff_start": _start,
    "handoff_wait": _wait,
    "memory_add": _memory_add,
    "memory_edit": _memory_edit,
    "memory_show": _by_id(lambda client: client.memories.get, "revision", "detail"),
    "question_answer": _by_id(lambda client: client.handoffs.answer, "answer", "by", "question"),
    "target_pause": _pause,
    "target_resume": _resume,
    "task_cancel": _by_id(lambda client: client.tasks.cancel, "by", "reason"),
    "task_clear_taint": _clear_taint,
    "task_complete": _complete_task,
    "task_events": _events,
    "task_lift": _needs(
        "reason", _by_id(lambda client: client.tasks.lift, "constraint", "reason", "by")
    ),
    "task_list": _tasks,
    "task_open": _open,
    "task_show": _by_id(lambda client: client.tasks.get),
}
