# SPDX-License-Identifier: Apache-2.0
"""Run where the package was installed from its wheel: the server starts, and the SDK talks to
it."""

from __future__ import annotations

import sys
from pathlib import Path

import tasuki
from tasuki.testing import Broker, find_binary


def main() -> None:
    home = Path(sys.prefix)
    assert Path(tasuki.__file__).is_relative_to(home), tasuki.__file__
    assert Path(find_binary()).is_relative_to(home), find_binary()
    assert (Path(tasuki.__file__).parent / "py.typed").is_file()
    with Broker() as broker, tasuki.Client(broker.url, agent="a") as client:
        handoff = client.handoff(to="b", intent="Is it all there?")
        with client.claim(agent="b") as claim:
            claim.complete("yes")
        assert handoff.result().payload["text"] == "yes"
        assert client.stats().version == tasuki.__version__
    print(f"tasuki {tasuki.__version__} from its wheel: server and SDK work together")


if __name__ == "__main__":
    main()
