# SPDX-License-Identifier: Apache-2.0
"""What the suite kills: `program.py KIT transfer TO KEPT`, `resume TO KEPT`, `work NAME HELPER`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from stage import asks, transfers
from suite import load

from tasuki import AsyncClient


def hang(outputs: int) -> None:
    """Never ends once the helper has answered."""
    if outputs:
        print("has its answer", flush=True)
        time.sleep(600)


async def main() -> None:
    kit, what, first, second = load(sys.argv[1]), *sys.argv[2:]
    async with AsyncClient(agent="lead") as client:
        if what == "work":
            script = asks(second, before=hang)
            await kit.serve(script, first, {second: "call"}, client=client, lease=2).serve()
        elif what == "transfer":
            await kit.transfer(transfers(first), first, client, Path(second))
            os.kill(os.getpid(), signal.SIGKILL)
        else:
            print(
                await kit.resume(transfers(first), first, client, Path(second)),
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main())
