# SPDX-License-Identifier: Apache-2.0
"""Keys: who an agent is, and what it signs.

A request is signed as RFC 9421 says, with Ed25519 and one list of covered components, so that a
request that somebody overheard cannot be sent again or changed. What outlives a request (an offer,
an acceptance, a manifest) is signed apart, as a statement that anybody with the public key can
check.

Needs the extra `tasuki[signing]`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._canonical import address

if TYPE_CHECKING:
    import httpx
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PUBLIC = "ed25519:"
_SECRET = "ed25519-secret:"
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_VALIDITY_S = 30
_COMPONENTS = ("@method", "@authority", "@path", "@query")
_PORTS = {"http": 80, "https": 443}


class Key:
    """An Ed25519 key pair. The secret half never leaves this machine, nor this object's text."""

    def __init__(self, seed: bytes, *, agent: str | None = None, broker: str | None = None) -> None:
        self._private = _private(seed)
        self._seed = seed
        #: Whose key it is, if it is known.
        self.agent = agent
        #: The key of the broker where it was enrolled, if it is known: requests are for no other.
        self.broker = broker
        raw = self._private.public_key().public_bytes_raw()
        self.public_bytes = raw
        #: The public half, as it is enrolled.
        self.public = _PUBLIC + _base64url(raw)
        #: What names this key in a signature.
        self.id = _key_id(raw)

    def __repr__(self) -> str:
        return f"Key({self.id})"

    @classmethod
    def generate(cls, *, agent: str | None = None) -> Key:
        """A new one."""
        return cls(secrets.token_bytes(32), agent=agent)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Key:
        """Reads a key file, as `tasuki keys new` and `save` write it."""
        place = Path(path).expanduser()
        with place.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise PermissionError(
                    f"others can get at the key file {place} (mode {mode:03o}): make it private "
                    f"with chmod 600, and replace the key if somebody may have read it"
                )
            lines = file.read(4096).splitlines()
        if not lines or not lines[0].startswith(_SECRET):
            raise ValueError(f"{place} is no key file: `tasuki keys new` makes one")
        known: dict[str, str] = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            known.setdefault(name, value.strip())
        seed = _unbase64url(lines[0][len(_SECRET) :].strip())
        return cls(seed, agent=known.get("agent"), broker=known.get("broker"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a key file that only its owner can read. One that is there is never
        overwritten."""
        place = Path(path).expanduser()
        try:
            handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as error:
            raise FileExistsError(
                error.errno,
                "a key may be there already, and is not overwritten: read it with Key.load, save "
                "this one elsewhere, or move the file away",
                str(place),
            ) from None
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{_SECRET}{_base64url(self._seed)}\n")
            if self.agent:
                file.write(f"agent: {self.agent}\n")
            if self.broker:
                file.write(f"broker: {self.broker}\n")
            file.flush()
            os.fsync(file.fileno())

    def sign(self, message: bytes) -> str:
        """A signature, as the API has it."""
        return _base64url(self._private.sign(message))

    def statement(self, kind: str, *parts: str | bytes) -> dict[str, str]:
        """Signs something that outlives a request."""
        return {"key_id": self.id, "signature": self.sign(statement(kind, *parts))}

    def possession(self, agent: str) -> str:
        """Shows that whoever wants this key enrolled for an agent has it."""
        return self.sign(statement("enroll", bare(agent), self.public_bytes))

    def sign_request(
        self, request: httpx.Request, content: bytes, audience: str | None = None
    ) -> None:
        """Adds the headers that show from whom a request is, and for which broker: `audience` is
        the id of its key."""
        created = int(time.time())
        names: tuple[str, ...] = _COMPONENTS
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        values = [request.method, _authority(request), path or "/", f"?{query}"]
        if content:
            digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
            request.headers["content-digest"] = f"sha-256=:{digest}:"
            names = (*names, "content-digest")
            values.append(request.headers["content-digest"])
        listed = " ".join(f'"{name}"' for name in names)
        params = (
            f"({listed});created={created};expires={created + _VALIDITY_S};"
            f'nonce="{secrets.token_hex(16)}";keyid="{self.id}";tag="tasuki-v1"'
        )
        if audience:
            params += f';audience="{audience}"'
        lines = [f'"{name}": {value}' for name, value in zip(names, values, strict=True)]
        base = "\n".join([*lines, f'"@signature-params": {params}'])
        signature = base64.b64encode(self._private.sign(base.encode("ascii"))).decode()
        request.headers["signature-input"] = f"tasuki={params}"
        request.headers["signature"] = f"tasuki=:{signature}:"


def verify(public: str, signed: dict[str, Any], kind: str, *parts: str | bytes) -> bool:
    """Whether a statement was signed with this public key. Needs no broker."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = _unbase64url(public.removeprefix(_PUBLIC))
    if _key_id(raw) != signed.get("key_id"):
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(raw)
        key.verify(_unbase64url(str(signed.get("signature", ""))), statement(kind, *parts))
    except (InvalidSignature, ValueError):
        return False
    return True


def statement(kind: str, *parts: str | bytes) -> bytes:
    """The bytes of a statement: lengths stand before contents, so that no two are the same."""
    bytes_ = b"tasuki-v1\0"
    for part in (kind, *parts):
        content = part.encode() if isinstance(part, str) else part
        bytes_ += len(content).to_bytes(8, "big") + content
    return bytes_


def authored(envelope: dict[str, Any]) -> str:
    """The address of what the sender itself says in an offer or an envelope: to whom, what, and in
    whose words. This is what `signed` covers."""
    to = envelope.get("asked_to") or envelope["to"]
    return address(
        {
            "from_agent": bare(envelope["from_agent"]),
            "to": {kind: bare(name) for kind, name in to.items()},
            "action": envelope.get("action", "request"),
            "control": envelope.get("control", "passed"),
            "intent": envelope["intent"],
            "payload": envelope["payload"],
        }
    )


def bare(name: str) -> str:
    """A name without its tenant."""
    return name.rsplit("/", 1)[-1]


def _private(seed: bytes) -> Ed25519PrivateKey:
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise ImportError("keys need one more package: pip install 'tasuki[signing]'") from error
    return Ed25519PrivateKey.from_private_bytes(seed)


def _authority(request: httpx.Request) -> str:
    host = request.headers["host"].lower()
    name, colon, port = host.rpartition(":")
    if colon and port.isdigit() and int(port) == _PORTS[request.url.scheme]:
        return str(name)
    return str(host)


def _key_id(public: bytes) -> str:
    digest = hashlib.sha256(b"tasuki-key-v1\0" + public).digest()
    value = int.from_bytes(digest[:16], "big")
    return "key_" + "".join(_DIGITS[(value >> (place * 5)) & 31] for place in reversed(range(26)))


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unbase64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
