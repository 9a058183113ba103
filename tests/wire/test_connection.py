"""A server connection without a socket: memory that it uses for a peer that does not read."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from shareq.model.actor import Answer
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.wire.connection import KEPT_BYTES, KEPT_FRAMES, TURN, UNSENT_BYTES, ServerConnection
from shareq.wire.frames import MAX_FRAME_BYTES, FrameReader, encode_request

REQUESTS = 1000
RESPONSE = MetadataResponse(brokers=(), controller_id=0, cluster_id="x" * 30_000)
RESPONSE_BYTES = 31_000
"""Upper bound of the response frame's size, in bytes."""


class Transport(asyncio.Transport):
    """A socket whose peer reads only by `drain`: bytes written before that stay in the server's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True
        self.unread = bytearray()
        self.connection: ServerConnection
        self._high = 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del low
        assert high is not None
        self._high = high

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50_000) if name == "peername" else default

    def write(self, data: Any) -> None:
        before = len(self.unread)
        self.unread += data
        if before <= self._high < len(self.unread):
            self.connection.pause_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def drain(self) -> bytes:
        """Read all written bytes, as the peer."""
        data, self.unread = bytes(self.unread), bytearray()
        if len(data) > self._high:
            self.connection.resume_writing()
        return data


class Backend:
    """A server and its broker, which responds to each request immediately; it is also the loop and the network."""

    observer = None

    def __init__(self, *, answers: bool = True) -> None:
        self.answers = answers
        self.inbox = memoryview(bytearray(1 << 18))
        self.passed_apis: frozenset[int] = frozenset()
        self.calls = 0
        self.loop = self.network = self

    def now_ms(self) -> int:
        return 0

    def run(self, action: Any) -> None:
        action()

    def call(self, connection: ServerConnection, *_: object) -> None:
        self.calls += 1
        if self.answers:
            connection.deliver(Answer(0, RESPONSE))

    def opened(self, connection: ServerConnection) -> None: ...

    def report(self, failure: BaseException) -> None:
        raise failure


@pytest.mark.parametrize("frames_per_read", [1, 50])
def test_a_peer_that_does_not_read_uses_bounded_memory_and_receives_every_response_later(frames_per_read: int) -> None:
    """Unread bytes and waiting requests both count: above the limit the broker receives no further request."""

    async def converse() -> None:
        backend, transport = Backend(), Transport()
        transport.connection = connection = ServerConnection(cast(Any, backend), 0, 1, MAX_FRAME_BYTES)
        connection.connection_made(transport)
        frame = encode_request(MetadataRequest(topics=()), 13, 1, "slow")
        chunk, sent, answers, received = frame * frames_per_read, 0, 0, FrameReader()
        while answers < REQUESTS:
            while transport.reading and sent < REQUESTS:
                backend.inbox[: len(chunk)] = chunk
                connection.buffer_updated(len(chunk))
                sent += frames_per_read
                await asyncio.sleep(0)
            assert len(transport.unread) <= UNSENT_BYTES + TURN * RESPONSE_BYTES
            assert len(connection._kept) <= KEPT_FRAMES + frames_per_read
            answers += len(received.feed(transport.drain()))
            await asyncio.sleep(0)
        assert (answers, backend.calls) == (REQUESTS, REQUESTS)

    asyncio.run(converse())


@pytest.mark.parametrize("answers", [False, True], ids=["open requests", "answered requests"])
def test_waiting_requests_are_bounded_in_bytes(answers: bool) -> None:
    """BEHAVIOUR.md, 2.1, rule 6. A request that has its response no longer counts."""

    async def send() -> None:
        backend, transport = Backend(answers=answers), Transport()
        transport.connection = connection = ServerConnection(cast(Any, backend), 0, 1, MAX_FRAME_BYTES)
        connection.connection_made(transport)
        frame = encode_request(MetadataRequest(topics=()), 13, 1, "x" * 30_000)
        frames = 3 * KEPT_BYTES // len(frame)
        assert KEPT_BYTES // len(frame) < KEPT_FRAMES, "the limit in bytes decides"
        sent = 0
        while transport.reading and sent < frames:
            backend.inbox[: len(frame)] = frame
            connection.buffer_updated(len(frame))
            transport.drain()
            sent += 1
            await asyncio.sleep(0)
        assert connection._kept_bytes <= KEPT_BYTES + len(frame)
        assert (sent == frames) == answers

    asyncio.run(send())
