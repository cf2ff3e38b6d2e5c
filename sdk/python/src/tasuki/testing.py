# SPDX-License-Identifier: Apache-2.0
"""A broker for tests: the real one, with a store of its own, on a free port, gone afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from typing_extensions import Self


def find_binary() -> str:
    """Where the server is: `TASUKI_BIN`, what this package brought along, or what is on the
    path."""
    named = os.environ.get("TASUKI_BIN")
    if named:
        return named
    beside = Path(sysconfig.get_path("scripts")) / "tasuki"
    if beside.is_file():
        return str(beside)
    found = shutil.which("tasuki")
    if not found:
        raise FileNotFoundError("there is no tasuki server: install the wheel, or set TASUKI_BIN")
    return found


class Broker:
    """A broker that lives as long as a `with` block.

    With `data` its store outlives it, so that it can be started again on it. `options` are those of
    `tasuki serve`.
    """

    def __init__(
        self,
        *options: str,
        data: str | os.PathLike[str] | None = None,
        listen: str = "127.0.0.1:0",
        binary: str | None = None,
    ) -> None:
        self._options: Sequence[str] = options
        self._binary = binary
        self._listen = listen
        self._own = None if data else tempfile.TemporaryDirectory(prefix="tasuki-")
        self.data = Path(data or (self._own.name if self._own else "")).resolve()
        self._process: subprocess.Popen[str] | None = None
        self._log: list[str] = []
        #: Where it is, once it runs.
        self.url = ""

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._own:
            self._own.cleanup()

    @property
    def admin_token(self) -> str:
        """The token of the first administrator, where callers have to show who they are."""
        return (self.data / "admin.token").read_text("utf-8").strip()

    def start(self) -> None:
        """Starts it, and returns when it takes work."""
        command = [self._binary or find_binary(), "serve", "--data", str(self.data)]
        command += ["--listen", self._listen, *self._options]
        # What is configured for the user's own broker is not for this one.
        env = {name: value for name, value in os.environ.items() if not name.startswith("TASUKI_")}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        self._process = process
        assert process.stdout
        assert process.stderr
        # Both pipes are read to their end, or the broker would stop when one is full.
        threading.Thread(target=self._keep, args=(process.stderr,), daemon=True).start()
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            found = re.match(r"API: +(\S+)/v1$", line)
            if found:
                self.url = found[1]
                self._listen = self.url.split("//", 1)[1]
            if line.strip() == "ready":
                threading.Thread(target=self._keep, args=(process.stdout,), daemon=True).start()
                return
        process.wait()
        raise RuntimeError(f"the broker did not start:\n{''.join(said)}{''.join(self._log)}")

    def stop(self) -> None:
        """Ends it as an operator would."""
        self._end(kill=False)

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self._end(kill=True)

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kill:
            process.kill()
        else:
            process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def _keep(self, stream: IO[str]) -> None:
        try:
            for line in stream:
                self._log.append(line)
                del self._log[:-200]
        except ValueError:
            return  # It was closed in the middle of a line.

    def log(self) -> str:
        """The last of what it wrote."""
        return "".join(self._log)


def main() -> int:
    """Runs a broker with a store of its own until its input ends."""
    with Broker() as broker:
        print(broker.url, flush=True)
        sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
