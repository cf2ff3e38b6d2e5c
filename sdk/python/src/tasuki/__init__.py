# SPDX-License-Identifier: Apache-2.0
"""Tasuki: the handoff broker for AI agents.

`Client` hands work over and takes it, `AsyncClient` does the same in an event loop, `worker` makes
an agent of a function. `tasuki serve` starts a broker; it comes with this package.
"""

from importlib.metadata import PackageNotFoundError, version

from . import models
from ._artefacts import fetch, reference
from ._async.channels import AsyncChannel, AsyncPublication
from ._async.claims import AsyncClaim
from ._async.client import AsyncClient
from ._async.handoffs import AsyncHandoff
from ._canonical import address
from ._offers import follow_up
from ._report import failure_class
from ._sync.channels import Channel, Publication
from ._sync.claims import Claim
from ._sync.client import Client
from ._sync.handoffs import Handoff
from ._wire import NO_RETRY, Retry
from .compat import MemorySpine
from .errors import (
    Conflict,
    DeadlinePassed,
    EventsMissed,
    HandoffFailed,
    InvalidRequest,
    LeaseLost,
    NotABroker,
    NotFound,
    NotPermitted,
    NoWork,
    Overloaded,
    Permanent,
    Refused,
    Retryable,
    TasukiError,
    TimedOut,
    Unauthenticated,
    Unavailable,
    Unreachable,
    UnreportedClaim,
)
from .keys import Key
from .worker import AsyncWorker, Worker, run, worker

try:
    __version__ = version("tasuki")
except PackageNotFoundError:  # Run from its source.
    __version__ = "0"

__all__ = [
    "NO_RETRY",
    "AsyncChannel",
    "AsyncClaim",
    "AsyncClient",
    "AsyncHandoff",
    "AsyncPublication",
    "AsyncWorker",
    "Channel",
    "Claim",
    "Client",
    "Conflict",
    "DeadlinePassed",
    "EventsMissed",
    "Handoff",
    "HandoffFailed",
    "InvalidRequest",
    "Key",
    "LeaseLost",
    "MemorySpine",
    "NoWork",
    "NotABroker",
    "NotFound",
    "NotPermitted",
    "Overloaded",
    "Permanent",
    "Publication",
    "Refused",
    "Retry",
    "Retryable",
    "TasukiError",
    "TimedOut",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "UnreportedClaim",
    "Worker",
    "address",
    "failure_class",
    "fetch",
    "follow_up",
    "models",
    "reference",
    "run",
    "worker",
]
