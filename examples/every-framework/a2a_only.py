# SPDX-License-Identifier: Apache-2.0
"""Somebody who speaks A2A and nothing else: sends the task to whoever can plan, and waits for what
comes of it. With the official SDK, in an environment of its own: `a2a_only.py TEXT CONSTRAINT`."""

from __future__ import annotations

import asyncio
import os
import sys
import time

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as pb
from google.protobuf.struct_pb2 import Struct

EXTENSION = "https://w3id.org/tasuki/a2a/handoff/v1"
WITHIN_S, PAUSE_S = 600, 1
UNDER_WAY = (pb.TASK_STATE_SUBMITTED, pb.TASK_STATE_WORKING)


async def main() -> int:
    text, constraint = sys.argv[1:]
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, os.environ["TASUKI_URL"]).get_agent_card()
        client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(card)
        task = await sent(client, text, constraint)
        print(f"sent {dict(task.metadata[EXTENSION])['taskId']}", flush=True)
        ends = time.monotonic() + WITHIN_S
        while task.status.state in UNDER_WAY and time.monotonic() < ends:
            await asyncio.sleep(PAUSE_S)
            try:
                task = await client.get_task(pb.GetTaskRequest(id=task.id))
            except (A2AClientError, httpx.TransportError):
                continue  # The broker is being started again: the same id is good after that.
        state = pb.TaskState.Name(task.status.state)
        said = [part.text for artifact in task.artifacts for part in artifact.parts]
        print(f"{state}: {' '.join(said)}", flush=True)
        return 0 if task.status.state == pb.TASK_STATE_COMPLETED else 1


async def sent(client: Client, text: str, constraint: str) -> pb.Task:
    extension = Struct()
    binding = [{"kind": "must_not", "text": constraint}]
    said = {"capability": "planning", "fromAgent": "customer", "constraints": binding}
    extension.update({EXTENSION: said})
    message = pb.Message(message_id="m-1", role=pb.ROLE_USER, parts=[pb.Part(text=text)])
    now = pb.SendMessageConfiguration(return_immediately=True)
    request = pb.SendMessageRequest(message=message, configuration=now, metadata=extension)
    async for piece in client.send_message(request):
        if piece.HasField("task"):
            return piece.task
    raise RuntimeError("no task was told")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
