# SPDX-License-Identifier: Apache-2.0
"""A real broker on a real store for every test that asks for one. None is played."""

from __future__ import annotations

import itertools
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tasuki import AsyncClient, Client
from tasuki.testing import Broker

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
EXAMPLES = ROOT / "examples"

if "TASUKI_BIN" not in os.environ:
    os.environ["TASUKI_BIN"] = str(ROOT / "target" / "debug" / "tasuki")

# Programs that tests start find the package where the tests do.
os.environ["PYTHONPATH"] = str(HERE.parent / "src")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """One for all tests: each has agents of its own."""
    with Broker() as running:
        yield running


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    with Client(broker.url) as made:
        yield made


@pytest_asyncio.fixture
async def async_client(broker: Broker) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(broker.url) as made:
        yield made


@pytest.fixture
def name() -> Callable[[str], str]:
    """Names that no other test uses."""
    number = next(_numbers)
    return lambda what: f"{what}-{number}"
