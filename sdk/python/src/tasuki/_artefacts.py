# SPDX-License-Identifier: Apache-2.0
"""What is too large for a payload: a reference with its hash, and fetching with a check."""

from __future__ import annotations

import hashlib
import mimetypes
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import httpx

from . import errors

_KEY: Final = "artefact"
_CHUNK: Final = 1 << 20
#: How much is fetched unless somebody says otherwise, and how long it may take to answer.
BYTES_MAX: Final = 1 << 30
_ANSWER_S: Final = 30.0


def reference(
    content: bytes | str | os.PathLike[str], url: str, *, type: str | None = None
) -> dict[str, Any]:
    """A reference to something that is kept elsewhere: put it into a payload or a result in place
    of the thing itself. `content` is what stands at `url`: bytes, or a path to them."""
    digest, size = hashlib.sha256(), 0
    if isinstance(content, bytes):
        digest.update(content)
        size = len(content)
    else:
        with Path(content).open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
    kind = type or mimetypes.guess_type(urlsplit(url).path)[0] or "application/octet-stream"
    return {_KEY: url, "hash": f"sha256:{digest.hexdigest()}", "bytes": size, "type": kind}


def fetch(
    found: Mapping[str, Any],
    *,
    hosts: Collection[str] = (),
    root: str | os.PathLike[str] | None = None,
    bytes_max: int = BYTES_MAX,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """What a reference stands for, if it is what its sender had: anything else is a permanent
    failure. A reference is a sender's word, so the receiver says from where it fetches: from which
    `hosts` (`"files.example:8443"` with a port), or from below which folder (`root`) for a `file:`
    URL. Redirects are not followed."""
    url, wanted, size = _read(found)
    if size > bytes_max:
        raise _wrong(url, f"it has {size} bytes, and {bytes_max} are allowed", "too_large")
    parts = urlsplit(url)
    if parts.scheme == "file":
        content = _from_folder(url, unquote(parts.path), root, size)
    elif parts.scheme in ("http", "https") and parts.netloc.rsplit("@", 1)[-1] in hosts:
        content = _from_host(url, size, headers)
    else:
        raise _wrong(url, "nothing is fetched from there", "place_not_allowed")
    if len(content) != size or f"sha256:{hashlib.sha256(content).hexdigest()}" != wanted:
        raise _wrong(url, f"it is not what was sent: {len(content)} bytes of {size}", "hash_wrong")
    return content


def _read(found: Mapping[str, Any]) -> tuple[str, str, int]:
    url, wanted, size = found.get(_KEY), found.get("hash"), found.get("bytes")
    well = isinstance(url, str) and isinstance(wanted, str) and isinstance(size, int)
    if not well or not str(wanted).startswith("sha256:") or int(size or 0) < 0:
        raise _wrong(str(url), "it has no URL, no sha256 hash or no size", "malformed")
    return str(url), str(wanted), int(size or 0)


def _from_folder(url: str, path: str, root: str | os.PathLike[str] | None, size: int) -> bytes:
    place = Path(path).resolve()
    if root is None or not place.is_relative_to(Path(root).resolve()):
        raise _wrong(url, "nothing is fetched from there", "place_not_allowed")
    try:
        with place.open("rb") as file:
            return file.read(size + 1)
    except OSError as error:
        raise _wrong(url, f"it cannot be read: {error.strerror}", "not_there") from error


def _from_host(url: str, size: int, headers: Mapping[str, str] | None) -> bytes:
    content = bytearray()
    with httpx.stream("GET", url, headers=headers, timeout=_ANSWER_S) as answer:
        # A server that cannot just now, is asked again with the next attempt.
        if answer.status_code >= 500 or answer.status_code == 429:
            raise errors.Retryable(f"{url} answers with HTTP {answer.status_code}")
        if answer.status_code != 200:
            raise _wrong(url, f"it answers with HTTP {answer.status_code}", "not_there")
        for chunk in answer.iter_bytes(_CHUNK):
            content += chunk
            if len(content) > size:
                break
    return bytes(content)


def _wrong(url: str, why: str, kind: str) -> errors.Permanent:
    hint = "ask the sender for a reference that can be fetched and is whole"
    return errors.Permanent(f"the artefact {url}: {why}", type=f"artefact_{kind}", hint=hint)
