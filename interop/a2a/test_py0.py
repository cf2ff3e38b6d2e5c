# SPDX-License-Identifier: Apache-2.0
"""a2a-sdk 0.3.26 as a client: protocol 0.3 at the same address."""

from __future__ import annotations

import unittest
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TextPart,
)
from stage import EXTENSION, PATIENCE, Broker, Hook, Stage


def message(text: str, task: str | None = None) -> Message:
    parts = [Part(root=TextPart(text=text))]
    return Message(message_id="m-1", role=Role.user, parts=parts, task_id=task)


class Stories:
    """The same for each binding."""

    binding: str
    broker: Broker
    worker: Any
    addCleanup: Any

    async def asyncSetUp(self) -> None:
        self.http = httpx.AsyncClient(timeout=PATIENCE)

    async def asyncTearDown(self) -> None:
        await self.http.aclose()

    async def connect(self, *, streaming: bool, polling: bool = False) -> Client:
        resolver = A2ACardResolver(self.http, f"{self.broker.url}/agents/coder")
        card = await resolver.get_agent_card()
        assert card.name == "coder"
        config = ClientConfig(
            streaming=streaming,
            polling=polling,
            httpx_client=self.http,
            supported_transports=[self.binding],
            use_client_preference=True,
        )
        return ClientFactory(config).create(card)

    async def send(self, client: Client, said: Message, **more: Any) -> Task:
        last = None
        async for told in client.send_message(said, **more):
            assert isinstance(told, tuple), told
            last = told[0]
        assert last is not None
        return last

    async def test_a_stream_tells_everything_that_a_worker_does(self) -> None:
        worker = self.worker("complete")
        task = await self.send(await self.connect(streaming=True), message("Add it."))
        await worker.done()
        assert task.status.state == TaskState.completed
        assert task.artifacts and task.artifacts[0].parts[0].root.text == "done"

    async def test_a_send_that_waits_is_answered_at_the_end(self) -> None:
        worker = self.worker("complete")
        task = await self.send(await self.connect(streaming=False), message("Add it."))
        await worker.done()
        assert task.status.state == TaskState.completed

    async def test_a_restart_between_send_and_get_loses_nothing(self) -> None:
        client = await self.connect(streaming=False, polling=True)
        sent = await self.send(client, message("Add it."))
        assert sent.status.state == TaskState.submitted
        self.broker.restart()
        assert await client.get_task(TaskQueryParams(id=sent.id)) == sent
        worker = self.worker("complete")
        await worker.done()
        done = await client.get_task(TaskQueryParams(id=sent.id))
        assert done.status.state == TaskState.completed

    async def test_a_worker_that_is_killed_costs_an_attempt_and_not_the_task(self) -> None:
        client = await self.connect(streaming=False, polling=True)
        first = self.worker("hold")
        metadata = {EXTENSION: {"terms": {"lease_ms": 1000, "backoff_ms": 100}}}
        sent = await self.send(client, message("Add it."), request_metadata=metadata)
        await first.says("claimed")
        first.kill()
        second = self.worker("complete")
        stream = await self.connect(streaming=True)
        told = [it[0] async for it in stream.resubscribe(TaskIdParams(id=sent.id))]
        await second.done()
        assert told[-1].status.state == TaskState.completed
        done = await client.get_task(TaskQueryParams(id=sent.id))
        assert done.metadata and done.metadata[EXTENSION]["attempt"] == 2, done.metadata

    async def test_a_question_is_answered_by_the_next_message(self) -> None:
        client = await self.connect(streaming=True)
        worker = self.worker("ask", "complete")
        asked = await self.send(client, message("Add it."))
        assert asked.status.state == TaskState.input_required
        self.broker.restart()
        done = await self.send(client, message("/users", asked.id))
        await worker.done()
        assert done.status.state == TaskState.completed
        assert done.artifacts and done.artifacts[0].parts[0].root.text == "done /users"

    async def test_a_client_is_told_of_the_end_though_the_broker_is_restarted(self) -> None:
        client = await self.connect(streaming=False, polling=True)
        hook = Hook()
        self.addCleanup(hook.end)
        sent = await self.send(client, message("Add it."))
        config = PushNotificationConfig(id="hook", url=hook.url, token="t-1")
        asked = TaskPushNotificationConfig(task_id=sent.id, push_notification_config=config)
        kept = await client.set_task_callback(asked)
        assert kept.push_notification_config.id == "hook"
        named = GetTaskPushNotificationConfigParams(id=sent.id, push_notification_config_id="hook")
        assert (await client.get_task_callback(named)).push_notification_config.url == hook.url
        self.broker.restart()
        worker = self.worker("complete")
        await worker.done()
        states = []
        while TaskState.completed not in states:
            headers, body = await hook.hears()
            assert headers["x-a2a-notification-token"] == "t-1"
            told = Task.model_validate(body)
            assert told.id == sent.id
            states.append(told.status.state)

    async def test_cancelling_and_coming_back(self) -> None:
        client = await self.connect(streaming=False, polling=True)
        sent = await self.send(client, message("Add it."))
        stream = await self.connect(streaming=True)
        told = stream.resubscribe(TaskIdParams(id=sent.id))
        first = await anext(aiter(told))
        assert first[0].id == sent.id
        cancelled = await client.cancel_task(TaskIdParams(id=sent.id))
        assert cancelled.status.state == TaskState.canceled
        assert [it[0].status.state async for it in told][-1] == TaskState.canceled


class JsonRpc(Stories, Stage):
    binding = "JSONRPC"


class HttpJson(Stories, Stage):
    binding = "HTTP+JSON"


if __name__ == "__main__":
    unittest.main()
