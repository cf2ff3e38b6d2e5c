# SPDX-License-Identifier: Apache-2.0
"""How a framework's agent becomes a worker: what it gets to read, what its result is made of, and
of which class its errors are. `_adapters` is the other half."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypedDict

from typing_extensions import Unpack

from . import errors
from . import models as m
from ._adapters import ClaimOver, Run, _run
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._offers import Span
from ._report import Classify, FailureClass, failure_class
from .worker import AsyncWorker, worker

#: What model providers call their errors, for frameworks that pass on nothing but the text.
_PASSES = (
    "RateLimit|Timeout|TimedOut|InternalServer|ServiceUnavailable|APIConnection|Overloaded|"
    "Unavailable|ConnectError|ResourceExhausted|TooManyRequests"
)
_STAYS = (
    "Authentication|PermissionDenied|BadRequest|InvalidRequest|NotFound|UnprocessableEntity|"
    "ContextLength|ContentFilter|UsageLimit|MaxTurns|Recursion|UnexpectedModelBehavior|UserError|ValidationError"
)
_STATUS = re.compile(r"(?:status(?:_code| code)?|error code|HTTP)\W{1,3}([45]\d\d)\b", re.I)
_RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_CHAIN_MAX = 16


class Serving(TypedDict, total=False):
    """How a framework's agent serves: as `tasuki.worker` has it."""

    client: AsyncClient | None
    capabilities: list[str]
    concurrency: int
    lease: Span | None
    grace: Span
    idle: Span | None
    classify: Classify | None
    #: How many tokens of the envelope its model gets to read; the payload comes on top.
    max_tokens: int | None


Serve = Callable[[AsyncClaim, str], Awaitable[Any]]


async def brief(claim: AsyncClaim, max_tokens: int | None = None) -> str:
    """What a model reads of a claim: the envelope's prompt, in which the payload is quoted as data,
    and what was asked and answered before."""
    prompt = (await claim.prompt(max_tokens=max_tokens)).prompt
    asked = [one for one in claim.questions if one.answered_at is not None]
    known = [f"You asked: {one.text}\nThe answer: {one.answer}" for one in asked]
    return "\n\n".join([prompt, *known])


def expected_schema(claim: AsyncClaim) -> dict[str, Any] | None:
    """The schema that the result must fit, for frameworks that can hold their model to one."""
    wanted = claim.envelope.expected_output
    schema = wanted.schema_ if wanted else None
    return schema if isinstance(schema, dict) and schema.get("type") == "object" else None


def as_expected(claim: AsyncClaim, value: Any) -> Any:
    """A text that is the object that was asked for is that object."""
    if not isinstance(value, str) or expected_schema(claim) is None:
        return value
    text = re.sub(r"^```\w*\n(.*)\n```$", r"\1", value.strip(), flags=re.S)
    try:
        found = json.loads(text)
    except ValueError:
        return value
    return found if isinstance(found, dict) else value


def served(run: Serve, agent: str, **options: Unpack[Serving]) -> AsyncWorker:
    """A worker around a framework's run, which gets the claim and what its model reads of it."""
    given, own = options.get("client"), options.get("classify")
    max_tokens = options.get("max_tokens")
    apart = ("client", "classify", "max_tokens")
    more: dict[str, Any] = {name: it for name, it in options.items() if name not in apart}

    def classify(error: BaseException) -> FailureClass | None:
        return (own(error) if own else None) or classified(error)

    @worker(given, agent=agent, classify=classify, **more)
    async def work(claim: AsyncClaim) -> None:
        held = Run(claim, asyncio.get_running_loop())
        token = _run.set(held)
        try:
            result = await run(claim, await brief(claim, max_tokens))
        except ClaimOver:
            claim.check()
            raise errors.LeaseLost("the claim is over") from None
        except Exception as error:
            # However a framework wraps it: a lost claim is no failure of the work.
            for cause in chain(error):
                if isinstance(cause, errors.LeaseLost) and cause is not error:
                    raise cause from error
            claim.check()
            raise
        finally:
            _run.reset(token)
        if claim.reported:
            return
        action: m.Action = "needs_review" if held.gaps else "completed"
        said = as_expected(claim, result)
        await claim.complete(said, action=action, gaps=held.gaps, follow_ups=held.passed)

    return work


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it, as far as frameworks keep it."""
    for _ in range(_CHAIN_MAX):
        if error is None:
            return
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def classified(error: BaseException) -> FailureClass | None:
    """Of which class an error of a framework or of its model provider is, `None` if the SDK is to
    say. What the one below says counts, not what it was wrapped in."""
    for cause in chain(error):
        if isinstance(cause, errors.TimedOut) and cause.handoff is not None:
            # A call below took too long: it goes on, and starting it again would not help.
            return "permanent"
        kind = failure_class(cause)
        plain = type(cause).__module__ == "builtins"
        if kind != "unknown" and (not plain or isinstance(cause, OSError)):
            return kind
        named = _by_name(type(cause).__name__)
        if named:
            return named
    return by_text(error) or ("permanent" if failure_class(error) == "permanent" else None)


def by_text(error: BaseException) -> FailureClass | None:
    """The same of a text, where a framework keeps nothing else of an error."""
    text = str(error)
    status = _STATUS.search(text)
    if status:
        return "retryable" if int(status[1]) in _RETRY_STATUS else "permanent"
    named = re.search(r"\b(\w+(?:Error|Exception|Exceeded|Retryable|Permanent))\b", text)
    return _by_name(named[1]) if named else None


def _by_name(name: str) -> FailureClass | None:
    if re.search(_PASSES, name):
        return "retryable"
    if re.search(_STAYS, name):
        return "permanent"
    return None
