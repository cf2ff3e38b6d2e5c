# SPDX-License-Identifier: Apache-2.0
"""A broker with a certificate of its own is reached by who pins it, and by nobody else."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator

import pytest

import tasuki
from tasuki import AsyncClient, Client, Retry
from tasuki.testing import Broker

ONCE = Retry(seconds=0)


@pytest.fixture(scope="module")
def secured() -> Iterator[tuple[Broker, str]]:
    with Broker("--tls", "self-signed") as broker:
        certificate = ssl.PEM_cert_to_DER_cert((broker.data / "tls.pem").read_text())
        yield broker, f"sha256:{hashlib.sha256(certificate).hexdigest()}"


def test_who_pins_the_certificate_is_served(secured: tuple[Broker, str]) -> None:
    broker, pin = secured
    assert broker.url.startswith("https://")
    with Client(broker.url, tls_pin=pin) as client:
        assert client.stats().version
    with Client(broker.url, tls_ca=broker.data / "tls.pem") as client:
        assert client.stats().version


async def test_the_asynchronous_client_pins_too(secured: tuple[Broker, str]) -> None:
    broker, pin = secured
    async with AsyncClient(broker.url, tls_pin=pin) as client:
        assert (await client.stats()).version
    other = "sha256:" + "0" * 64
    async with AsyncClient(broker.url, tls_pin=other, retry=ONCE) as client:
        with pytest.raises(tasuki.TasukiError):
            await client.stats()


def test_another_certificate_is_not_believed(secured: tuple[Broker, str]) -> None:
    broker, _ = secured
    for wrong in ("sha256:" + "0" * 64, None):
        with (
            Client(broker.url, retry=ONCE, tls_pin=wrong) as client,
            pytest.raises(tasuki.TasukiError),
        ):
            client.stats()


def test_a_pin_is_a_pin_and_needs_tls() -> None:
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        Client("https://127.0.0.1:1", tls_pin="sha256:00")
    with pytest.raises(ValueError, match="without TLS"):
        Client("http://127.0.0.1:1", tls_pin="sha256:" + "0" * 64)
