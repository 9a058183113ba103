"""When a message has arrived, for the journal. BEHAVIOUR.md, 4.8."""

from __future__ import annotations

import struct
from typing import Any

from shareq.proxy.link import Link, Waiting
from tests.proxy.sockets import framed

SHARE_GROUP_HEARTBEAT = 76


class SlowRelay:
    """A proxy whose thread is not scheduled for 100 ms after each write: the peers continue before it does."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.arrived: list[tuple[str, int]] = []
        self.link = Link(self, 0, 1)  # type: ignore[arg-type]
        for side in (self.link.client, self.link.broker):
            side.write = self._write  # type: ignore[method-assign]

    def _write(self, data: Any) -> None:
        del data
        self.now_ms += 100

    def reads_request(self, api_key: int, version: int) -> bool:
        return True

    reads_response = reads_request

    def lookup(self, node_id: int, address: object) -> None:
        """No address is replaced."""

    def request(self, link: Link, waiting: Waiting, frame: bytearray, arrived_ms: int) -> None:
        self.arrived.append(("request", arrived_ms))

    def response(self, waiting: Waiting, frame: bytearray, arrived_ms: int) -> None:
        self.arrived.append(("response", arrived_ms))


def test_a_message_has_arrived_before_it_is_passed_on() -> None:
    relay = SlowRelay()
    request, response = framed(struct.pack(">hhi", SHARE_GROUP_HEARTBEAT, 1, 9)), framed(struct.pack(">i", 9) + b"r")
    relay.link.received(relay.link.client, memoryview(request))
    relay.now_ms = 1_000
    relay.link.received(relay.link.broker, memoryview(response[:6]))
    relay.now_ms = 2_000
    relay.link.received(relay.link.broker, memoryview(response[6:]))
    assert relay.arrived == [("request", 0), ("response", 2_000)]
