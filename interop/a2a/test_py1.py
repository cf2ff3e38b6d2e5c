# SPDX-License-Identifier: Apache-2.0
"""a2a-sdk 1.3.0 as a client: protocol 1.0, both bindings."""

from __future__ import annotations

import unittest
from collections.abc import AsyncIterator
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from jwt import PyJWK
from stage import EXTENSION, PATIENCE, Broker, Hook, Stage


def message(text: str, task: str = "") -> pb.Message:
    parts = [pb.Part(text=text)]
    return pb.Message(message_id="m-1", role=pb.ROLE_USER, parts=parts, task_id=task)


def request(text: str, task: str = "", *, now: bool = True, **said: Any) -> pb.SendMessageRequest:
    metadata = Struct()
    if said:
        metadata.update({EXTENSION: said})
    configuration = pb.SendMessageConfiguration(return_immediately=now)
    return pb.SendMessageRequest(
        message=message(text, task), configuration=configuration, metadata=metadata
    )


async def first_task(pieces: AsyncIterator[pb.StreamResponse]) -> pb.Task:
    async for piece in pieces:
        if piece.HasField("task"):
            return piece.task
    raise AssertionError("no task was told")


class Stories:
    """The same for each binding."""

    binding: str
    broker: Broker
    worker: Any
    addCleanup: Any
    client: Client

    async def asyncSetUp(self) -> None:
        self.http = httpx.AsyncClient(timeout=PATIENCE)
        self.client = await self.connect(streaming=True)
        self.plain = await self.connect(streaming=False)

    async def asyncTearDown(self) -> None:
        await self.http.aclose()

    async def connect(self, *, streaming: bool) -> Client:
        resolver = A2ACardResolver(self.http, f"{self.broker.url}/agents/coder")
        card = await resolver.get_agent_card()
        assert card.name == "coder" and card.skills[0].id == "code"
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self.http,
            supported_protocol_bindings=[self.binding],
            use_client_preference=True,
        )
        return ClientFactory(config).create(card)

    async def test_a_stream_tells_everything_that_a_worker_does(self) -> None:
        worker = self.worker("complete")
        states, texts = [], []
        async for piece in self.client.send_message(request("Add it.", now=False)):
            if piece.HasField("task"):
                states.append(piece.task.status.state)
            if piece.HasField("status_update"):
                states.append(piece.status_update.status.state)
            if piece.HasField("artifact_update"):
                texts.append(piece.artifact_update.artifact.parts[0].text)
        await worker.says("claimed")
        await worker.done()
        assert states[-1] == pb.TASK_STATE_COMPLETED, states
        assert texts == ["done"]

    async def test_a_send_that_waits_is_answered_at_the_end(self) -> None:
        worker = self.worker("complete")
        task = await first_task(self.plain.send_message(request("Add it.", now=False)))
        await worker.done()
        assert task.status.state == pb.TASK_STATE_COMPLETED
        assert task.artifacts[0].parts[0].text == "done"

    async def test_a_restart_between_send_and_get_loses_nothing(self) -> None:
        sent = await first_task(self.plain.send_message(request("Add it.")))
        self.broker.restart()
        found = await self.plain.get_task(pb.GetTaskRequest(id=sent.id))
        assert found == sent
        worker = self.worker("complete")
        await worker.done()
        done = await self.plain.get_task(pb.GetTaskRequest(id=sent.id))
        assert done.status.state == pb.TASK_STATE_COMPLETED
        self.broker.restart()
        assert await self.plain.get_task(pb.GetTaskRequest(id=sent.id)) == done

    async def test_a_worker_that_is_killed_costs_an_attempt_and_not_the_task(self) -> None:
        first = self.worker("hold")
        terms = {"lease_ms": 1000, "backoff_ms": 100}
        sent = await first_task(self.plain.send_message(request("Add it.", terms=terms)))
        await first.says("claimed")
        first.kill()
        second = self.worker("complete")
        states = []
        async for piece in self.client.subscribe(pb.SubscribeToTaskRequest(id=sent.id)):
            if piece.HasField("status_update"):
                states.append(piece.status_update.status.state)
        await second.done()
        assert states[-1] == pb.TASK_STATE_COMPLETED, states
        done = await self.plain.get_task(pb.GetTaskRequest(id=sent.id))
        assert dict(done.metadata[EXTENSION])["attempt"] == 2

    async def test_a_question_is_answered_by_the_next_message(self) -> None:
        worker = self.worker("ask", "complete")
        pieces = [it async for it in self.client.send_message(request("Add it.", now=False))]
        task = pieces[0].task
        asked = pieces[-1].status_update.status
        assert asked.state == pb.TASK_STATE_INPUT_REQUIRED
        assert asked.message.parts[0].text == "Which path?"
        self.broker.restart()
        answer = request("/users", task.id, now=False)
        pieces = [it async for it in self.client.send_message(answer)]
        await worker.done()
        brought = [it.artifact_update for it in pieces if it.HasField("artifact_update")]
        texts = [it.artifact.parts[0].text for it in brought]
        assert "done /users" in texts, pieces

    async def test_cancelling_and_listing(self) -> None:
        sent = await first_task(self.plain.send_message(request("Add it.")))
        other = await first_task(self.plain.send_message(request("Add it.")))
        assert sent.id != other.id, "a message id may come again"
        cancelled = await self.plain.cancel_task(pb.CancelTaskRequest(id=sent.id))
        assert cancelled.status.state == pb.TASK_STATE_CANCELED
        page = await self.plain.list_tasks(pb.ListTasksRequest(page_size=1))
        assert (page.total_size, page.tasks[0].id) == (2, sent.id)
        rest = pb.ListTasksRequest(page_size=1, page_token=page.next_page_token)
        page = await self.plain.list_tasks(rest)
        assert (page.tasks[0].id, page.next_page_token) == (other.id, "")
        for id in (sent.id, "no-such-task"):
            try:
                await self.plain.cancel_task(pb.CancelTaskRequest(id=id))
            except (A2AError, A2AClientError):
                continue
            raise AssertionError(id)

    async def test_a_client_is_told_of_the_end_though_the_broker_is_restarted(self) -> None:
        hook = Hook()
        self.addCleanup(hook.end)
        asked = request("Add it.")
        asked.configuration.task_push_notification_config.CopyFrom(
            pb.TaskPushNotificationConfig(
                id="hook",
                url=hook.url,
                token="t-1",
                authentication=pb.AuthenticationInfo(scheme="Bearer", credentials="c-1"),
            )
        )
        sent = await first_task(self.plain.send_message(asked))
        self.broker.restart()
        worker = self.worker("complete")
        await worker.done()
        states = []
        while pb.TASK_STATE_COMPLETED not in states:
            headers, body = await hook.hears()
            assert headers["x-a2a-notification-token"] == "t-1"
            assert headers["authorization"] == "Bearer c-1"
            told = ParseDict(body, pb.StreamResponse())
            if told.HasField("status_update"):
                assert told.status_update.task_id == sent.id
                states.append(told.status_update.status.state)
        assert states == [pb.TASK_STATE_WORKING, pb.TASK_STATE_COMPLETED], states
        named = {"task_id": sent.id, "id": "hook"}
        kept = await self.plain.get_task_push_notification_config(
            pb.GetTaskPushNotificationConfigRequest(**named)
        )
        assert kept.url == hook.url
        await self.plain.delete_task_push_notification_config(
            pb.DeleteTaskPushNotificationConfigRequest(**named)
        )
        every = pb.ListTaskPushNotificationConfigsRequest(task_id=sent.id)
        listed = await self.plain.list_task_push_notification_configs(every)
        assert not listed.configs

    async def test_the_extended_card(self) -> None:
        card = await self.plain.get_extended_agent_card(pb.GetExtendedAgentCardRequest())
        assert card.name == "coder"


class JsonRpc(Stories, Stage):
    binding = "JSONRPC"


class HttpJson(Stories, Stage):
    binding = "HTTP+JSON"


class Signed(unittest.IsolatedAsyncioTestCase):
    """Where everybody has to say who it is, the broker vouches for what it publishes."""

    async def test_the_brokers_card_verifies_and_a_changed_one_does_not(self) -> None:
        broker = Broker("--auth", "required")
        self.addCleanup(broker.end)
        async with httpx.AsyncClient() as http:

            def key(kid: str | None, jku: str | None) -> PyJWK:
                keys = httpx.get(str(jku)).json()["keys"]
                return PyJWK(next(one for one in keys if one["kid"] == kid))

            verify = create_signature_verifier(key, ["EdDSA"])
            resolver = A2ACardResolver(http, broker.url)
            card = await resolver.get_agent_card(signature_verifier=verify)
            assert card.signatures
            card.name = "somebody else"
            with self.assertRaises(InvalidSignaturesError):
                verify(card)


if __name__ == "__main__":
    unittest.main()
