# SPDX-License-Identifier: Apache-2.0
"""What a request is and what an answer means, without doing any I/O.

Both clients ask the same things here: how a call becomes a request, whether an answer is final, and
how long to pause before the next try. They differ only in how they send and how they sleep.
"""

from __future__ import annotations

import difflib
import json
import logging
import math
import os
import random
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, timedelta, timezone
from datetime import time as clock
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from . import errors
from ._misuse import shown, text, wrong
from ._tls import trust
from .models import Model

if TYPE_CHECKING:
    from .keys import Key

T = TypeVar("T")
log = logging.getLogger("tasuki")
_INTEGER_MAX = 2**53 - 1

URL = "http://127.0.0.1:8788"
#: How long one request waits at the broker; longer waits are several requests.
WAIT_S_MAX = 20.0
#: What the broker may take beyond a wait before an answer counts as lost.
ANSWER_S = 10.0
CONNECT_S = 5.0
#: How long something is tried by a program that wants to end: what is not heard of, a lease ends.
BRIEF_S = 1.0

#: After so many tries it is said that the broker is away.
_SILENT_TRIES = 3
#: Conflicts may pass, too, but when is a matter of what others do: the program decides.
_TOLD = {409}
#: Asking again with a new signature is all that these need.
_SIGN_AGAIN = {"signature_too_early", "signature_expired", "signature_replayed"}


@dataclass(frozen=True)
class Route(Generic[T]):
    """One operation of the API."""

    method: str
    path: str
    reply: type[T]
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retry:
    """How long to go on trying when the broker is away or asks for patience.

    Creates carry an idempotency key and claims a request id, so a lost answer is answered by asking
    again; what cannot be repeated safely is not repeated once it may have arrived. Pauses are
    random (full jitter), grow from `base` to `cap` seconds, and are never shorter than what the
    broker asks for.
    """

    seconds: float = 30.0
    base: float = 0.1
    cap: float = 5.0
    random: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def pause(self, tries: int) -> float:
        """How long to wait after so many tries."""
        return self.random.uniform(0, min(self.cap, self.base * 2.0 ** min(tries, 30)))


#: Fails at the first obstacle.
NO_RETRY = Retry(seconds=0)


@dataclass
class Attempts(Generic[T]):
    """The tries of one call. Told what happened, it says how long to pause, or raises."""

    core: Core
    route: Route[T]
    repeat: bool
    #: How long to go on; as long as `Retry` says, unless the program wants to end.
    seconds: float
    tries: int = 0
    began: float = field(default_factory=time.monotonic)
    #: Whether one of the tries may have been carried out although no answer came.
    in_doubt: bool = False

    def fault(self, error: httpx.HTTPError | httpx.InvalidURL | httpx.StreamError) -> float:
        """After no answer, or one that cannot be read."""
        never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        self.in_doubt = self.in_doubt or not never_sent
        why = str(error) or type(error).__name__
        final = errors.Unreachable(
            f"cannot reach the broker at {self.core.base_url}: {why}",
            hint="start it with `tasuki serve`, or name another with TASUKI_URL",
        )
        return self._next(final, self.repeat or never_sent, 0.0)

    def answer(self, response: httpx.Response, content: bytes) -> float | None:
        """After an answer: nothing if it is the one, else a pause."""
        if response.is_success and self._is_ours(response, content):
            return None
        if response.is_success:
            return self.strange(response)
        final = refusal_of(response, self.core.base_url, content)
        # An answer that the broker itself did not finish does not say what became of the request.
        unknown = isinstance(final, errors.NotABroker) or final.code == "outcome_unknown"
        self.in_doubt = self.in_doubt or unknown
        again = final.retryable and response.status_code not in _TOLD
        again = again or final.code in _SIGN_AGAIN
        again = again and (self.repeat or not unknown)
        return self._next(final, again, _retry_after(response.headers))

    def strange(self, response: httpx.Response) -> float:
        """After a success that is not a broker's."""
        self.in_doubt = True
        final = errors.not_a_broker(response.status_code, self.core.base_url)
        return self._next(final, self.repeat, _retry_after(response.headers))

    def _is_ours(self, response: httpx.Response, content: bytes) -> bool:
        kind = response.headers.get("content-type", "")
        if isinstance(self.route.reply, type) and issubclass(self.route.reply, BaseModel):
            return "html" not in kind and content.lstrip()[:1] == b"{"
        return "html" not in kind

    def _next(self, final: errors.TasukiError, again: bool, least: float) -> float:
        retry = self.core.retry
        self.tries += 1
        pause = max(least, retry.pause(self.tries))
        if not again or time.monotonic() - self.began + pause > self.seconds:
            final.in_doubt = self.in_doubt and self.route.method != "GET"
            if final.in_doubt and isinstance(final, errors.Unreachable):
                final.hint = f"it may have been done: look before you ask again; {final.hint}"
            # Its words stand in the message; what the connection's own code did helps nobody.
            raise final from None
        if self.tries == _SILENT_TRIES:
            log.warning("%s; trying for %g s", final.message, self.seconds)
        return pause


class Core:
    """What both clients know: where the broker is, who asks, and how patient they are."""

    def __init__(
        self,
        url: str | None,
        *,
        agent: str | None,
        token: str | None,
        key: Key | None,
        timeout: float | timedelta,
        retry: Retry,
        broker: str | None = None,
        tls_pin: str | None = None,
        tls_ca: str | os.PathLike[str] | None = None,
    ) -> None:
        text(url, "url", "the address of a broker")
        text(agent, "agent", "the name of an agent")
        text(token, "token")
        if not isinstance(retry, Retry):
            said = f"such as Retry(seconds={retry})" if isinstance(retry, (int, float)) else ""
            raise wrong(TypeError, f"retry is a tasuki.Retry{said and f', {said}'}, not {retry!r}")
        patience = seconds(timeout, "timeout")
        if not patience:
            raise wrong(ValueError, "timeout is how long an answer may take: more than 0 s")
        self.base_url = (url or os.environ.get("TASUKI_URL") or URL).rstrip("/")
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{self.base_url!r} is no address of a broker, such as {URL}")
        self.token = token or (None if key else os.environ.get("TASUKI_TOKEN")) or None
        self.key = key
        named = broker or os.environ.get("TASUKI_BROKER") or (key.broker if key else None)
        #: The key of the broker that signed requests are for; nothing if the broker has none.
        self.broker = named or None
        self._met = bool(named)
        self.agent = agent or (key.agent if key else None)
        self.timeout = patience
        self.retry = retry
        #: As they were given, for another client that is to be the same.
        self.tls: dict[str, Any] = {"tls_pin": tls_pin, "tls_ca": tls_ca}
        pin = tls_pin or os.environ.get("TASUKI_TLS_PIN") or None
        own = trust(pin, tls_ca or os.environ.get("TASUKI_TLS_CA") or None)
        if own is not None and parts.scheme != "https" and (tls_pin or tls_ca):
            raise ValueError(f"{self.base_url} is reached without TLS, where nothing is pinned")
        #: Whom to believe that it is the broker.
        self.verify: ssl.SSLContext | bool = True if own is None else own
        # What is on this machine is not reached through a proxy.
        self.trust_env = parts.hostname not in ("127.0.0.1", "localhost", "::1")

    def who(self, named: str | None, what: str) -> str:
        """The agent in whose name something is done."""
        text(named, what, "the name of an agent")
        name = named or self.agent
        if not name:
            raise TypeError(f"say {what}=…, or give the client an agent")
        return name

    def is_stranger(self) -> bool:
        """Whether the broker must be asked for its key before a request is signed for it."""
        return self.key is not None and not self._met

    def meet(self, response: httpx.Response) -> None:
        """What the broker says of itself. One of before has no key, and wants none named."""
        if response.is_success:
            try:
                said = response.json()
            except ValueError:
                return
            named = said.get("broker_key_id") if isinstance(said, dict) else None
            self.broker = named if isinstance(named, str) else None
            self._met = True

    def attempts(
        self, route: Route[T], repeat: bool, brief: bool = False, patience: float | None = None
    ) -> Attempts[T]:
        """The tries of one call."""
        most = self.retry.seconds if patience is None else patience
        return Attempts(self, route, repeat, min(most, BRIEF_S) if brief else most)

    def request(
        self,
        route: Route[Any],
        *,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        body: Mapping[str, Any] | bytes | None,
        wait: float,
        brief: bool = False,
    ) -> httpx.Request:
        """A request, with the proof of who sends it. Made anew for each try, because a signature
        counts once. A body of bytes is sent as it is."""
        url = self.base_url + route.path.format(
            **{name: quote(value, safe="") for name, value in path.items()}
        )
        given = {name: _text(value) for name, value in query.items() if value is not None}
        if given:
            url = f"{url}?{urlencode(given, quote_via=quote)}"
        content = body if body is None or isinstance(body, bytes) else encode(body)
        headers = {"accept": "application/json", "user-agent": "tasuki-python"}
        if content is not None:
            headers["content-type"] = "application/json"
        timeout = httpx.Timeout(self.timeout, connect=CONNECT_S, read=self.timeout + wait)
        if brief:
            timeout = httpx.Timeout(min(self.timeout, 2 * BRIEF_S))
        request = httpx.Request(
            route.method,
            url,
            headers=headers,
            content=content,
            extensions={"timeout": timeout.as_dict()},
        )
        if self.key:
            self.key.sign_request(request, content or b"", self.broker)
        elif self.token:
            request.headers["authorization"] = f"Bearer {self.token}"
        return request


def body_of(route: Route[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of what a route takes. What is `None` is left out: the broker has its
    defaults. What is empty is said."""
    for name in given:
        if name not in route.body:
            raise wrong(TypeError, _unexpected(name, route))
    return {name: plain(value, f"/{name}") for name, value in given.items() if value is not None}


def _unexpected(name: str, route: Route[Any]) -> str:
    known = [one.removesuffix("_ms") if one.endswith("_in_ms") else one for one in route.body]
    close = difflib.get_close_matches(name, known, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"got an unexpected keyword {name!r}{meant}"


def plain(value: Any, place: str = "") -> Any:
    """A value as JSON has it. Models and dataclasses are taken whole; dates, enums, sets, paths and
    UUIDs as what they stand for. What JSON cannot say is an error that names its place."""
    try:
        return _plain(value, place)
    except RecursionError:
        words = "this is nested too deeply for JSON, or contains itself"
        raise wrong(ValueError, words) from None


def _plain(value: Any, place: str) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str) and not isinstance(value, Enum):
        return _whole(value, place)
    if isinstance(value, BaseModel):
        return _model(value, place)
    if isinstance(value, Enum):
        return _plain(value.value, place)
    if isinstance(value, (int, float)):
        return _number(value, place)
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, (date, clock)):
        return value.isoformat()
    if isinstance(value, (UUID, PurePath, Decimal)):
        return _whole(str(value), place)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: _plain(getattr(value, one.name), f"{place}/{one.name}")
            for one in fields(value)
        }
    if isinstance(value, Mapping):
        members = {
            _whole(str(name), place): _plain(part, f"{place}/{name}")
            for name, part in value.items()
        }
        if len(members) < len(value):
            words = "two names of an object are the same as texts: JSON has only texts"
            raise wrong(ValueError, f"{place or 'this value'} cannot be sent: {words}")
        return members
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item, f"{place}/…") for item in value), key=str)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return [_plain(item, f"{place}/{at}") for at, item in enumerate(value)]
    words = f"{place or 'this value'} cannot be sent: {_kind(value)} is not JSON"
    raise wrong(TypeError, words)


def _model(value: BaseModel, place: str) -> Any:
    """A model, as it writes itself; if it cannot, its members say which of them is in the way."""
    own = isinstance(value, Model)
    try:
        found = value.model_dump(mode="json", by_alias=True, exclude_none=own, exclude_unset=own)
    except (PydanticSerializationError, UnicodeError) as error:
        _plain({name: part for name, part in value}, place)  # noqa: C416
        words = f"{place or 'this value'} cannot be sent: {error}"
        raise wrong(ValueError, words) from error
    return _plain(found, place)


def _whole(text: str, place: str) -> str:
    """A text that UTF-8 can say."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        place = place.encode("ascii", "backslashreplace").decode()
        words = f"{place or 'this value'} cannot be sent: {text[error.start]!a} at {error.start} is"
        raise wrong(ValueError, f"{words} half a character, which UTF-8 does not have") from None
    return text


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _number(value: int | float, place: str) -> int | float:
    place = place or "this value"
    if isinstance(value, float) and not math.isfinite(value):
        raise wrong(ValueError, f"{place} cannot be sent: JSON has no number {value}")
    if isinstance(value, int) and abs(value) > _INTEGER_MAX:
        words = f"{value} is beyond 2^53, and not every JSON reader keeps it"
        raise wrong(ValueError, f"{place} cannot be sent: {words}")
    return value


def timestamp(moment: datetime) -> str:
    """A moment as the API has it. Without a time zone it means this machine's."""
    moment = moment.astimezone(timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def encode(value: Any) -> bytes:
    """JSON, as it goes over the wire."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise ValueError("this is nested too deeply for JSON, or contains itself") from None
    return text.encode()


def decode(route: Route[T], content: bytes) -> T:
    """An answer, as its model."""
    try:
        return read(route.reply, content)
    except ValidationError as error:
        raise unexpected(route) from error


def parts(route: Route[Any], content: bytes, name: str) -> list[dict[str, Any]]:
    """The objects that an answer lists under a name, as they came."""
    try:
        listed = json.loads(content)[name]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise unexpected(route) from error
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise unexpected(route)
    return listed


def whole(route: Route[Any], content: bytes) -> dict[str, Any]:
    """An answer as it came."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise unexpected(route) from error
    if not isinstance(answer, dict):
        raise unexpected(route)
    return answer


def fit(route: Route[Any], kind: type[T], part: Any) -> T:
    """A part of an answer, as its model."""
    assert issubclass(kind, BaseModel)
    try:
        return kind.model_validate(part)
    except ValidationError as error:
        raise unexpected(route) from error


def unexpected(route: Route[Any]) -> errors.TasukiError:
    """The error for an answer that is not what it should be."""
    return errors.TasukiError(
        f"the answer of {route.method} {route.path} does not fit its description",
        code="unexpected_answer",
        hint="the broker may be too old for this SDK: compare their versions",
    )


def read(kind: type[T], content: bytes) -> T:
    """JSON, as a model."""
    assert issubclass(kind, BaseModel)
    return kind.model_validate_json(content)


def milliseconds(span: float | timedelta | None, what: str = "a span") -> int | None:
    """A span as the API has it. Numbers are seconds."""
    told = seconds(span, what)
    return None if told is None else round(told * 1000)


def seconds(span: float | timedelta | None, what: str = "a span") -> float | None:
    """A span in seconds."""
    if isinstance(span, timedelta):
        span = span.total_seconds()
    if span is None:
        return None
    if isinstance(span, bool) or not isinstance(span, (int, float)):
        words = f"{what} is a number of seconds or a timedelta, not {shown(span)}"
        raise wrong(TypeError, words)
    if not math.isfinite(span):
        raise wrong(ValueError, f"{what} is no span of {span} s: None is for no end")
    if span < 0:
        raise wrong(ValueError, f"{what} is not negative, but it is {span:g} s")
    return span


def refusal_of(
    response: httpx.Response, base_url: str, content: bytes | None = None
) -> errors.Refused | errors.NotABroker:
    """The error that an answer is."""
    problem = _problem(response.content if content is None else content)
    return errors.refusal(response.status_code, problem, base_url)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _problem(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _retry_after(headers: httpx.Headers) -> float:
    try:
        told = float(headers.get("retry-after", "0"))
    except ValueError:
        return 0.0
    return max(0.0, told) if math.isfinite(told) else 0.0


class Deadline:
    """A span that runs out, or does not if there is none."""

    def __init__(self, span: float | timedelta | None, what: str = "timeout") -> None:
        limit = seconds(span, what)
        self.end = None if limit is None else time.monotonic() + limit

    def next_wait(self) -> float:
        """How long the next request may wait at the broker."""
        return WAIT_S_MAX if self.end is None else min(WAIT_S_MAX, self.left())

    def left(self) -> float:
        """How much of it is left."""
        return float("inf") if self.end is None else max(0.0, self.end - time.monotonic())

    def over(self) -> bool:
        """Whether it has run out."""
        return self.left() <= 0
