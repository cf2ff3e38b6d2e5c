# SPDX-License-Identifier: Apache-2.0
"""a2a-sdk 1.3.0 as a server: protocol 1.0, both bindings."""

from typing import Any

import outgoing


class Listed:
    """What only a server that lists its tasks allows."""

    broker: outgoing.Broker
    remote: outgoing.Remote
    begin: Any
    binding: str
    offer: Any
    completed: Any

    def test_a_message_that_was_sent_before_the_broker_died_is_not_sent_again(self) -> None:
        self.begin(outgoing.Remote(self.binding))
        id = self.offer("hold it")
        self.remote.says("received")
        self.broker.restart()
        self.remote.says("asked", streams=True)
        self.remote.go()
        assert self.completed(id) == "done and written"
        assert len(self.remote.all("received")) == 1


class JsonRpc(Listed, outgoing.Stories):
    pass


class HttpJson(Listed, outgoing.HttpJson):
    pass
