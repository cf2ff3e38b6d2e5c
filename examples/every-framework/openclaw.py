# SPDX-License-Identifier: Apache-2.0
"""OpenClaw in the chain: a gateway with the plugin, whose agent reviews. Its model is scripted: it
has whoever can `facts` do a part, and passes on what came of it."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path
from typing import Any

from gateway import Gateway, Model, texts


def reply(messages: list[dict[str, Any]]) -> str | tuple[str, dict[str, Any]]:
    outputs = texts(messages, "tool")
    if outputs:
        return f"They say: {outputs[-1]}"
    print("begun", flush=True)
    return ("tasuki_handoff", {"capability": "facts", "task": "Your part, facts, please."})


def main() -> None:
    """Serves until it is stopped."""
    model = Model()
    model.reply = reply
    serve = [{"name": "reviewer", "capabilities": ["review"]}]
    with tempfile.TemporaryDirectory(prefix="tasuki-openclaw-") as place:
        gateway = Gateway(Path(place), model.url, {"url": os.environ["TASUKI_URL"], "serve": serve})
        gateway.start()
        print("ready", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
