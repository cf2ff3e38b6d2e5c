# SPDX-License-Identifier: Apache-2.0
"""Makes a container image of a folder with the binaries, without a base image and without an engine.

    deploy/image.py make BINARIES LAYOUT   an OCI image layout, from `tasuki` and `tasuki-tools` in a folder
    deploy/image.py check LAYOUT ROOTFS    reads it as an engine would, and unpacks it
    deploy/image.py start LAYOUT ROOTFS    runs its command in there, until it is ready; as root, with /proc

The image has one layer: the binaries, the C library that they are linked with (this machine's), the
certificates of public authorities, a user, and its data directory. There is no shell in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

USER = 10001
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
#: Beyond loopback the broker asks everybody who they are, and there is TLS.
COMMAND = ["serve", "--listen", "0.0.0.0:8788", "--auth", "required", "--tls", "self-signed"]


def libraries(binary: Path) -> set[Path]:
    """What a binary is linked with, the loader among it."""
    said = subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout
    missing = re.findall(r"(\S+) => not found", said)
    if missing:
        raise SystemExit(f"{binary} needs {', '.join(missing)}, which is not here")
    return {Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(", said, re.MULTILINE)}


class Layer:
    """A tar file that is the same for the same content."""

    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)
        self.folders: set[str] = set()

    def folder(self, path: str, mode: int = 0o755, owner: int = 0) -> None:
        for above in reversed(Path(path).parents):
            if str(above) not in ("/", *self.folders):
                self.folder(str(above))
        if path in self.folders:
            return
        self.folders.add(path)
        self._add(path, tarfile.DIRTYPE, b"", mode, owner)

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        self.folder(str(Path(path).parent))
        self._add(path, tarfile.REGTYPE, content, mode, 0)

    def _add(self, path: str, kind: bytes, content: bytes, mode: int, owner: int) -> None:
        entry = tarfile.TarInfo(path.lstrip("/"))
        entry.type, entry.mode, entry.size = kind, mode, len(content)
        entry.uid = entry.gid = owner
        entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
        self.tar.addfile(entry, io.BytesIO(content))

    def done(self) -> bytes:
        self.tar.close()
        return self.bytes.getvalue()


def layer(binaries: Path) -> bytes:
    out = Layer()
    programs = [binaries / "tasuki", binaries / "tasuki-tools"]
    for program in programs:
        out.file(f"/usr/local/bin/{program.name}", program.read_bytes(), 0o755)
    for library in sorted(set().union(*map(libraries, programs))):
        out.file(str(library), library.read_bytes(), 0o755)
    out.file(str(CERTIFICATES), CERTIFICATES.read_bytes())
    who = f"tasuki:x:{USER}:{USER}::/data:/sbin/nologin\n"
    out.file("/etc/passwd", f"root:x:0:0::/:/sbin/nologin\n{who}".encode())
    out.file("/etc/group", f"root:x:0:\ntasuki:x:{USER}:\n".encode())
    out.file("/etc/nsswitch.conf", b"hosts: files dns\n")
    out.folder("/etc/tasuki")
    out.folder("/data", 0o700, USER)
    out.folder("/tmp", 0o1777)
    for path in ("/proc", "/sys", "/dev"):
        out.folder(path)
    return out.done()


def make(binaries: Path, layout: Path) -> None:
    blobs = layout / "blobs/sha256"
    blobs.mkdir(parents=True)
    said = subprocess.run([binaries / "tasuki", "--version"], check=True, capture_output=True, text=True)
    version = said.stdout.split()[1]
    content = layer(binaries)

    def blob(kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    shipped = blob(LAYER, content)
    config = {
        "architecture": MACHINES[platform.machine()],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8788/tcp": {}},
            "Env": ["PATH=/usr/local/bin", "TASUKI_DATA=/data"],
            "Entrypoint": ["/usr/local/bin/tasuki"],
            "Cmd": COMMAND,
            "Volumes": {"/data": {}},
            "WorkingDir": "/etc/tasuki",
            "Labels": {
                "org.opencontainers.image.title": "tasuki",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [shipped["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(CONFIG, json.dumps(config, sort_keys=True).encode()),
        "layers": [shipped],
    }
    told = blob(MANIFEST, json.dumps(manifest, sort_keys=True).encode())
    told["annotations"] = {"org.opencontainers.image.ref.name": version}
    told["platform"] = {"architecture": config["architecture"], "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [told]}
    (layout / "index.json").write_text(json.dumps(index, sort_keys=True))
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def check(layout: Path, rootfs: Path) -> None:
    """Every blob is what its digest says, nothing is there that nobody names, and the layer unpacks."""
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    seen = set()

    def read(told: dict[str, Any]) -> bytes:
        algorithm, digest = told["digest"].split(":")
        content = (layout / "blobs" / algorithm / digest).read_bytes()
        assert len(content) == told["size"], f"{digest} has {len(content)} bytes"
        assert hashlib.new(algorithm, content).hexdigest() == digest, f"{digest} was altered"
        seen.add(digest)
        return content

    index = json.loads((layout / "index.json").read_text())
    assert (index["schemaVersion"], index["mediaType"]) == (2, INDEX)
    (told,) = index["manifests"]
    assert told["mediaType"] == MANIFEST
    manifest = json.loads(read(told))
    assert (manifest["schemaVersion"], manifest["mediaType"]) == (2, MANIFEST)
    assert manifest["config"]["mediaType"] == CONFIG
    config = json.loads(read(manifest["config"]))
    assert config["architecture"] == told["platform"]["architecture"]
    digests = [layer["digest"] for layer in manifest["layers"]]
    assert config["rootfs"] == {"type": "layers", "diff_ids": digests}
    for shipped in manifest["layers"]:
        assert shipped["mediaType"] == LAYER
        with tarfile.open(fileobj=io.BytesIO(read(shipped))) as tar:
            tar.extractall(rootfs, filter="fully_trusted", numeric_owner=True)
    assert seen == {path.name for path in (layout / "blobs/sha256").iterdir()}
    program = rootfs / config["config"]["Entrypoint"][0].lstrip("/")
    assert os.access(program, os.X_OK), f"{program} is not there"
    print(json.dumps(config["config"]))


def start(layout: Path, rootfs: Path) -> None:
    """Without a token and a fingerprint nobody could use what it starts."""
    config = json.loads(next(
        path.read_text() for path in (layout / "blobs/sha256").iterdir() if b'"Entrypoint"' in path.read_bytes()[:4096]
    ))["config"]
    who = [f"--userspec={config['User']}", str(rootfs)]
    words = ["chroot", *who, *config["Entrypoint"], *config["Cmd"], "--until-stdin-closes"]
    environment = dict(entry.split("=", 1) for entry in config["Env"])
    # The program is looked for outside, and its path is absolute inside.
    words[0] = shutil.which("chroot") or "/usr/sbin/chroot"
    said = []
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, text=True) as broker:
        for line in broker.stdout or []:
            said.append(line)
            if line == "ready\n":
                break
        if broker.stdin:
            broker.stdin.close()
    text = "".join(said)
    assert broker.returncode == 0 and "TLS pin:" in text and "/data/admin.token" in text, text
    assert (rootfs / "data/admin.token").stat().st_uid == USER
    print(text, end="")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", binaries, layout]:
            make(Path(binaries), Path(layout))
        case ["check", layout, rootfs]:
            check(Path(layout), Path(rootfs))
        case ["start", layout, rootfs]:
            start(Path(layout), Path(rootfs))
        case _:
            raise SystemExit(__doc__)
