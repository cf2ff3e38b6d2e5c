# SPDX-License-Identifier: Apache-2.0
"""Agents as functions: a decorator that claims work, runs a function on it, and reports what came
of it, several at a time, until it is asked to stop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import queue
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from . import _routes as routes
from . import errors
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._line import Line
from ._misuse import listed, number, shown, text, wrong
from ._offers import Span, new_key
from ._report import Classify
from ._sync.claims import Claim
from ._sync.client import Client
from ._tell import audible, say_connected, say_failed, say_finished, say_took
from ._wire import BRIEF_S, NO_RETRY, Deadline, seconds

log = logging.getLogger("tasuki")

#: How long one request for work waits.
POLL_S = 2.0
#: How long a stop waits for the request for work that it gives up: it asks once more for what that
#: was granted.
ABANDON_S = 2 * BRIEF_S + 0.5
#: How long the broker has to notice that a request was given up, before the same is asked again.
NOTICE_S = 0.05
#: How long work under way may go on after a stop.
GRACE_S = 30.0

#: How long a program that does not want to wait tries to give back what it holds.
HURRY_S = 2.0

_AWAY = (errors.Unreachable, errors.Unavailable, errors.Overloaded)
Handler: TypeAlias = Callable[[Claim], Any]
AsyncHandler: TypeAlias = Callable[[AsyncClaim], Awaitable[Any]]


@dataclass(frozen=True)
class _Options:
    agent: str | None
    capabilities: tuple[str, ...]
    concurrency: int
    lease: Span | None
    grace: Span
    idle: Span | None
    classify: Classify | None


class _Running:
    """The claims that are worked on."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._changed = threading.Condition()

    def add(self, claim: Claim) -> None:
        with self._changed:
            self._claims[claim.claim_id] = claim

    def remove(self, claim: Claim) -> None:
        with self._changed:
            del self._claims[claim.claim_id]
            self._changed.notify_all()

    def claims(self) -> list[Claim]:
        with self._changed:
            return list(self._claims.values())

    def wait(self, timeout: float) -> None:
        """Waits until one of them is finished."""
        with self._changed:
            self._changed.wait(timeout)


class Worker:
    """A function that works on claims, in threads. `run()` goes on until `stop()`, SIGTERM or
    Ctrl-C.

    Stopping takes no new work, lets what is under way finish for `grace` seconds, and gives back
    what is unfinished then. A second signal does not wait. A broker that is away is waited for,
    but not by a worker that stops: what it cannot give back, the end of the lease does. A function
    that calls `sys.exit` gives its work back, stops the worker, and ends the program with that
    status.
    """

    def __init__(self, handler: Handler, client: Client | None, options: _Options) -> None:
        self.handler = handler
        self._client = client
        self._options = options
        self._stop = threading.Event()
        self._hurry = threading.Event()
        self._running = _Running()
        self._ended: BaseException | None = None
        self._heard = False
        self._line: Line | None = None

    def __call__(self, claim: Claim) -> Any:
        """The function itself, for trying it out."""
        return self.handler(claim)

    def stop(self) -> None:
        """Asks it to stop. A second time: at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()
        if self._line:
            self._line.hang_up()

    def run(self) -> None:
        """Works until it is asked to stop, or until there was nothing to do for `idle` seconds."""
        client = self._client or Client()
        try:
            with audible(), _signals(self.stop):
                self._run(client)
        finally:
            if self._client is None:
                client.close()

    def _run(self, client: Client | None) -> None:
        assert client is not None
        self._work(client)
        if self._ended is not None:
            ended, self._ended = self._ended, None
            raise ended

    def _work(self, client: Client) -> None:
        # On a connection of its own, which a stop gives up in the middle of a wait.
        self._line = Line(client._wire)
        # Asked for in a thread of its own: this one hears signals, whatever the broker does.
        asking = threading.Thread(target=self._poll, args=(client,), name="tasuki-ask", daemon=True)
        asking.start()
        try:
            patience: Deadline | None = None
            while asking.is_alive() and not self._hurry.is_set():
                asking.join(0.1)
                if self._stop.is_set():
                    patience = patience or Deadline(ABANDON_S)
                    if patience.over():
                        break
        finally:
            self._line.close()
            stopped = self._stop.is_set()
            self._stop.set()
            self._drain()
            # One that had nothing to do can be run again.
            if not stopped and self._ended is None:
                self._stop.clear()

    def _poll(self, client: Client) -> None:
        try:
            self._take_and_begin(client)
        except BaseException as error:
            self._ended = error

    def _take_and_begin(self, client: Client) -> None:
        options = self._options
        slots = threading.Semaphore(options.concurrency)
        idle = Deadline(options.idle)
        while not self._stop.is_set() and not idle.over():
            free = _free(slots, options.concurrency)
            if not free:
                idle = Deadline(options.idle)
                continue
            found = self._ask(client, free, min(POLL_S, idle.left()))
            for _ in range(free - len(found)):
                slots.release()
            for claim in found:
                idle = Deadline(options.idle)
                if self._stop.is_set():
                    _give_back(claim)
                    slots.release()
                else:
                    self._begin(claim, slots)
            if self._running.claims():
                idle = Deadline(options.idle)

    def _ask(self, client: Client, free: int, wait: float) -> list[Claim]:
        """Asks for work until the broker has answered, always with the same request id: what was
        granted in an answer that was lost comes with the next one."""
        o = self._options
        retry = client._wire.core.retry
        request_id, tries = new_key(), 0
        while True:
            brief = self._stop.is_set()
            # The first answer comes at once, so that it can be said that there is a connection.
            pause = wait if self._heard and not brief else 0.0
            try:
                found = client._take(
                    o.agent,
                    o.capabilities,
                    free,
                    o.lease,
                    pause,
                    o.classify,
                    True,
                    request_id,
                    brief,
                    NO_RETRY.seconds,
                    None if brief or self._line is None else self._line.http,
                )
                self._connected(client)
                return found
            except _AWAY as error:
                # A last time after a stop, and only if something may have been granted.
                if brief or (self._stop.is_set() and not error.in_doubt):
                    return []
                if self._stop.is_set():
                    time.sleep(NOTICE_S)
                    continue
                tries += 1
                self._heard = False
                log.warning("no work: %s", error)
                self._stop.wait(max(0.1, retry.pause(tries)))
                if self._stop.is_set() and not error.in_doubt:
                    return []

    def _connected(self, client: Client) -> None:
        self._heard = say_connected(self._heard, self._options.agent or client.agent, client.url)

    def _begin(self, claim: Claim, slots: threading.Semaphore) -> None:
        # A function that never ends must not keep its process from ending.
        self._running.add(claim)
        name = f"tasuki-{claim.handoff_id[-6:]}"
        threading.Thread(target=self._one, args=(claim, slots), name=name, daemon=True).start()

    def _one(self, claim: Claim, slots: threading.Semaphore) -> None:
        began = say_took(claim)
        try:
            with claim:
                value = self.handler(claim)
                if not claim.reported:
                    with _result_of(self.handler):
                        claim.complete(value)
            say_finished(claim, began)
        except Exception as error:
            say_failed(claim, error, began)
        except BaseException as error:
            # The function wants the program to end, not to be called again at once.
            self._ended = error
            self.stop()
        finally:
            self._running.remove(claim)
            slots.release()

    def _drain(self) -> None:
        end = Deadline(self._options.grace)
        while self._running.claims() and not end.over() and not self._hurry.is_set():
            self._running.wait(min(0.1, end.left()))
        givers = [
            threading.Thread(target=_give_back, args=(claim,), daemon=True)
            for claim in self._running.claims()
        ]
        for giver in givers:
            giver.start()
        end = Deadline(HURRY_S)
        for giver in givers:
            giver.join(end.left())


class AsyncWorker:
    """The same for a coroutine function: `run()`, or `await serve()` in a loop of your own."""

    def __init__(
        self, handler: AsyncHandler, client: AsyncClient | None, options: _Options
    ) -> None:
        self.handler = handler
        self._client = client
        self._options = options
        self._stopping = False
        self._hurrying = False
        self._ended: BaseException | None = None
        self._heard = False
        #: Whether a request for work waits at the broker.
        self._polling = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None

    def __call__(self, claim: AsyncClaim) -> Awaitable[Any]:
        """The function itself, for trying it out."""
        return self.handler(claim)

    def stop(self) -> None:
        """Asks it to stop, from any thread. A second time: at once."""
        self._hurrying = self._stopping
        self._stopping = True
        if self._loop and self._wake:
            self._loop.call_soon_threadsafe(self._wake.set)

    def run(self) -> None:
        """Works until it is asked to stop, in a loop of its own."""
        with audible():
            asyncio.run(self.serve())

    async def serve(self) -> None:
        """Works until it is asked to stop, or until there was nothing to do for `idle` seconds."""
        if self._client is not None:
            return await self._serve(self._client)
        async with AsyncClient() as client:
            return await self._serve(client)

    async def _serve(self, client: AsyncClient) -> None:
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        if self._stopping:
            self._wake.set()
        added = _add_signals(self._loop, self.stop)
        try:
            await self._work(client)
        finally:
            for number in added:
                self._loop.remove_signal_handler(number)
        if self._ended is not None:
            ended, self._ended = self._ended, None
            raise ended

    async def _work(self, client: AsyncClient) -> None:
        options = self._options
        running: set[asyncio.Task[None]] = set()
        idle = Deadline(options.idle)
        try:
            while not self._stopping and not idle.over():
                if len(running) >= options.concurrency:
                    await _first(running, self._wake)
                running = {task for task in running if not task.done()}
                free = options.concurrency - len(running)
                if free:
                    for claim in await self._asked(client, free, min(POLL_S, idle.left())):
                        work = _give_back_too(claim) if self._stopping else self._one(claim)
                        running.add(asyncio.create_task(work))
                if running:
                    idle = Deadline(options.idle)
        finally:
            await self._drain(running)

    async def _asked(self, client: AsyncClient, free: int, wait: float) -> list[AsyncClaim]:
        """Asks for work. A stop gives the request up in the middle of its wait, and what it was
        granted goes back; one that asks for that already is waited for, but not long."""
        asking = asyncio.create_task(self._ask(client, free, wait))
        try:
            while not asking.done() and not self._stopping:
                await _first({asking}, self._wake)
            if not self._polling:
                end = Deadline(ABANDON_S)
                while not asking.done() and not self._hurrying and not end.over():
                    await asyncio.wait({asking}, timeout=min(0.1, end.left()))
        finally:
            if not asking.done():
                asking.cancel()
        try:
            found = await asking
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            return []
        return found

    async def _ask(self, client: AsyncClient, free: int, wait: float) -> list[AsyncClaim]:
        """The same as that of `Worker`."""
        o = self._options
        retry = client._wire.core.retry
        request_id, tries = new_key(), 0
        while True:
            brief = self._stopping
            # The first answer comes at once, so that it can be said that there is a connection.
            pause = wait if self._heard and not brief else 0.0
            self._polling = not brief
            try:
                found = await client._take(
                    o.agent,
                    o.capabilities,
                    free,
                    o.lease,
                    pause,
                    o.classify,
                    True,
                    request_id,
                    brief,
                    NO_RETRY.seconds,
                )
                self._connected(client)
                return found
            except _AWAY as error:
                if brief or (self._stopping and not error.in_doubt):
                    return []
                tries += 1
                self._heard = False
                log.warning("no work: %s", error)
                assert self._wake is not None
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), max(0.1, retry.pause(tries)))
                if self._stopping and not error.in_doubt:
                    return []
            finally:
                self._polling = False

    def _connected(self, client: AsyncClient) -> None:
        self._heard = say_connected(self._heard, self._options.agent or client.agent, client.url)

    async def _one(self, claim: AsyncClaim) -> None:
        began = say_took(claim)
        try:
            async with claim:
                value = await self._until_lost(claim)
                if not claim.reported:
                    with _result_of(self.handler):
                        await claim.complete(value)
            say_finished(claim, began)
        except Exception as error:
            say_failed(claim, error, began)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._ended = error
            self.stop()

    async def _until_lost(self, claim: AsyncClaim) -> Any:
        """Runs the function; a lost claim cancels it."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        working = True

        def end() -> None:
            if working:
                task.cancel()

        def lost() -> None:
            with contextlib.suppress(RuntimeError):  # The loop may be closed by now.
                loop.call_soon_threadsafe(end)

        claim.on_lost(lost)
        try:
            return await self.handler(claim)
        except asyncio.CancelledError:
            uncancel: Callable[[], int] | None = getattr(task, "uncancel", None)  # Python 3.11.
            if claim.lost.is_set() and uncancel:
                uncancel()
            claim.check()
            raise
        finally:
            working = False

    async def _drain(self, running: set[asyncio.Task[None]]) -> None:
        end = Deadline(self._options.grace)
        while running and not end.over() and not self._hurrying:
            _, running = await asyncio.wait(running, timeout=min(0.1, end.left()))
        # A cancelled coroutine leaves its block, which gives the work back.
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _Decorate:
    """Makes a worker of a function; a coroutine function becomes one with an event loop."""

    def __init__(self, client: Client | AsyncClient | None, options: _Options) -> None:
        self._client = client
        self._options = options

    @overload
    def __call__(self, handler: AsyncHandler) -> AsyncWorker: ...
    @overload
    def __call__(self, handler: Handler) -> Worker: ...
    def __call__(self, handler: Any) -> Any:
        _check(handler)
        if inspect.iscoroutinefunction(handler):
            if isinstance(self._client, Client):
                raise TypeError("a coroutine function needs an AsyncClient")
            return AsyncWorker(handler, self._client, self._options)
        if isinstance(self._client, AsyncClient):
            raise TypeError("an AsyncClient needs a coroutine function")
        return Worker(handler, self._client, self._options)


def worker(
    client: Client | AsyncClient | None = None,
    *,
    agent: str | None = None,
    capabilities: Sequence[str] = (),
    concurrency: int = 1,
    lease: Span | None = None,
    grace: Span = GRACE_S,
    idle: Span | None = None,
    classify: Classify | None = None,
) -> _Decorate:
    """Makes an agent of a function: `@worker(agent="reviewer")` above `def review(claim): …`, then
    `review.run()`.

    What the function returns completes the claim: a mapping or a model as it is, a text as
    `{"type": "text", …}`. What it raises is reported as a failure. It may also say itself what
    became of the claim (`claim.hand_on(…)`, `claim.fail(…)`).
    """
    if client is not None and not isinstance(client, (Client, AsyncClient)):
        if callable(client):
            words = 'write @tasuki.worker(agent="…") above the function, with parentheses'
            raise wrong(TypeError, words)
        raise wrong(TypeError, f"the first argument is a Client or an AsyncClient, not {client!r}")
    text(agent, "agent", "the name of an agent")
    if isinstance(capabilities, str):
        raise wrong(TypeError, f"capabilities is a list of names: [{capabilities!r}]")
    able = tuple(listed(capabilities, "capabilities"))
    if not isinstance(concurrency, int):
        raise wrong(TypeError, f"concurrency is a whole number, not {shown(concurrency)}")
    number(concurrency, "concurrency", 1)
    if seconds(lease, "lease") == 0:
        raise wrong(ValueError, "lease is how long a claim lasts without a heartbeat, not 0 s")
    seconds(idle, "idle")
    if classify is not None and not callable(classify):
        raise wrong(TypeError, f"classify is a function of an exception, not {shown(classify)}")
    patience = seconds(grace, "grace") or 0.0
    options = _Options(agent, able, concurrency, lease, patience, idle, classify)
    return _Decorate(client, options)


def run(*workers: Worker | AsyncWorker) -> None:
    """Runs several workers in one process, until one signal stops all of them, or until all have
    had nothing to do for as long as their `idle` says. Those that have no client of their own share
    one. What one of them raises stops the others, and is raised."""
    if not workers:
        raise TypeError("say which workers: tasuki.run(review, test)")
    for one in workers:
        if not isinstance(one, (Worker, AsyncWorker)):
            raise TypeError(f"{one!r} is no worker: write @tasuki.worker(…) above the function")
    raised: list[BaseException] = []

    def stop() -> None:
        for one in workers:
            one.stop()

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)
            stop()

    plain = [one for one in workers if isinstance(one, Worker)]
    in_loop = [one for one in workers if isinstance(one, AsyncWorker)]
    shared = Client() if any(one._client is None for one in plain) else None

    async def serve() -> None:
        async with AsyncClient() as client:
            await asyncio.gather(*(one._serve(one._client or client) for one in in_loop))

    jobs: list[Callable[[], object]] = [
        functools.partial(one._run, one._client or shared) for one in plain
    ]
    if in_loop:
        jobs.append(lambda: asyncio.run(serve()))
    threads = [threading.Thread(target=guarded, args=(job,), daemon=True) for job in jobs]
    try:
        with audible(), _signals(stop):
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.1)
    finally:
        if shared:
            shared.close()
    if raised:
        raise raised[0]


async def _first(running: set[asyncio.Task[Any]], wake: asyncio.Event | None) -> None:
    """Waits until one is done, or until something else is to be done."""
    assert wake is not None
    woken = asyncio.create_task(wake.wait())
    try:
        await asyncio.wait({*running, woken}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        woken.cancel()


def _free(slots: threading.Semaphore, most: int) -> int:
    """Takes as many slots as there are, and waits a moment for the first."""
    if not slots.acquire(timeout=0.1):
        return 0
    free = 1
    while free < most and slots.acquire(blocking=False):
        free += 1
    return free


def _give_back(claim: Claim) -> None:
    try:
        claim._end(routes.HANDOFF_RELEASE, {}, brief=True)
    except errors.TasukiError as error:
        log.warning("cannot give %s back: %s", claim.handoff_id, error)


async def _give_back_too(claim: AsyncClaim) -> None:
    try:
        await claim._end(routes.HANDOFF_RELEASE, {}, brief=True)
    except errors.TasukiError as error:
        log.warning("cannot give %s back: %s", claim.handoff_id, error)


@contextlib.contextmanager
def _result_of(handler: Callable[..., Any]) -> Generator[None]:
    """What a function returned cannot be a result: it says whose it is, and is not tried again."""
    try:
        yield
    except (TypeError, ValueError) as error:
        hint = "return what JSON has: a mapping, a list, a text, a model, a dataclass"
        said = f"the result of {_place(handler)} is not JSON: {error}"
        raise errors.Permanent(said, hint=hint, type="result_is_not_json") from error
    except errors.InvalidRequest as refused:
        said = f"the result of {_place(handler)} was refused: {refused.message}"
        hint = refused.hint or "return what the sender expects"
        details = {"code": refused.code, "faults": refused.faults}
        raise errors.Permanent(said, hint=hint, type="result_refused", details=details) from refused


def _place(handler: Callable[..., Any]) -> str:
    """A function, with the file and the line it begins in."""
    name = getattr(handler, "__qualname__", type(handler).__name__)
    code = getattr(inspect.unwrap(handler), "__code__", None)
    if code is None:
        return str(name)
    return f"{name} ({code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno})"


def _check(handler: Any) -> None:
    """Whether this can be a worker."""
    if not callable(handler):
        raise TypeError(f"a worker is made of a function that takes a claim, not of {handler!r}")
    place = _place(handler)
    if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
        raise TypeError(f"{place} is a generator: a worker returns its result, once")
    try:
        inspect.signature(handler).bind(object())
    except TypeError:
        raise TypeError(f"{place} must take one argument, the claim: def work(claim): …") from None
    except ValueError:
        return  # Some callables have no signature.


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    # A handler runs in the middle of whatever the main thread does, even of another handler that
    # holds a lock. Only what can be entered again is called there; a thread does the rest.
    heard: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def listen() -> None:
        while heard.get():
            stop()

    def told(*_: object) -> None:
        heard.put(True)

    threading.Thread(target=listen, name="tasuki-signals", daemon=True).start()
    before = {number: signal.signal(number, told) for number in numbers}
    try:
        yield
    finally:
        heard.put(False)
        for number, handler in before.items():
            signal.signal(number, handler)


def _add_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> list[int]:
    added: list[int] = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, stop)
                added.append(number)
    return added
