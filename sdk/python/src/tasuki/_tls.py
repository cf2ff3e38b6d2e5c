# SPDX-License-Identifier: Apache-2.0
"""TLS on the way to a broker: by the authorities that are usual, by one's own, or by the
fingerprint of the one certificate that the broker has."""

from __future__ import annotations

import hashlib
import os
import re
import ssl
from collections.abc import Callable

_PIN = re.compile(r"sha256:((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})\Z", re.IGNORECASE)


def trust(pin: str | None, ca: str | os.PathLike[str] | None) -> ssl.SSLContext | None:
    """Whom to believe that it is the broker; nothing where that is as usual."""
    if pin is not None:
        found = _PIN.match(pin)
        if not found:
            raise ValueError("a pin is sha256: and 64 hexadecimal digits, as `serve` prints it")
        return _pinned(found.group(1).replace(":", "").lower())
    if ca is not None:
        return ssl.create_default_context(cafile=os.fspath(ca))
    return None


def _pinned(wanted: str) -> ssl.SSLContext:
    """Believes one certificate, whoever vouches for it and whatever it is named. It is looked at
    when the handshake ends, before anything is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def check(certificate: bytes | None) -> None:
        shown = hashlib.sha256(certificate or b"").hexdigest()
        if shown != wanted:
            raise ssl.SSLCertVerificationError(
                f"the broker shows another certificate: sha256:{shown}"
            )

    context.sslsocket_class = _checked(ssl.SSLSocket, check)
    context.sslobject_class = _checked(ssl.SSLObject, check)
    return context


def _checked(
    kind: type[ssl.SSLSocket] | type[ssl.SSLObject], check: Callable[[bytes | None], None]
) -> type:
    class Checked(kind):  # type: ignore[valid-type, misc]
        def do_handshake(self, *args: bool) -> None:
            super().do_handshake(*args)
            check(self.getpeercert(binary_form=True))

    return Checked
