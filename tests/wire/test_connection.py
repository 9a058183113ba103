"""A server connection without a socket: memory that it uses for a peer that does not read."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from shareq.log.batches import split_batches
from shareq.log.records import encode_batch
from shareq.model.actor import ANONYMOUS, Answer
from shareq.model.events import AuthenticationFailed
from shareq.model.ids import ZERO_TOPIC_ID
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.wire.admission import QUEUED_MAX_BYTES, RequestMemory
from shareq.wire.broker_addresses import Lookup
from shareq.wire.connection import KEPT_BYTES, KEPT_FRAMES, UNSENT_BYTES, ServerConnection
from shareq.wire.errors import RequestHeader
from shareq.wire.frames import MAX_FRAME_BYTES, FrameReader, encode_request, encode_response, response_pieces
from shareq.wire.outbox import SENT_TOGETHER_BYTES, Outbox
from shareq.wire.quotas import ClientQuotas
from shareq.wire.turns import Turns

REQUESTS = 1000
RESPONSE = MetadataResponse(brokers=(), controller_id=0, cluster_id="x" * 30_000)
RESPONSE_BYTES = 31_000
"""Upper bound of the response frame's size, in bytes."""


class Transport(asyncio.Transport):
    """A socket whose peer reads only by `drain`: bytes written before that stay in the server's memory."""

    def __init__(self) -> None:
        super().__init__()
        self.reading, self.closed = True, False
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
        return self.closed

    def close(self) -> None:
        self.closed = True

    def drain(self) -> bytes:
        """Read all written bytes, as the peer."""
        data, self.unread = bytes(self.unread), bytearray()
        if len(data) > self._high:
            self.connection.resume_writing()
        return data


class Open:
    """The only listener, without security."""

    lookup: Lookup | None = None

    def principal(self, transport: asyncio.Transport) -> str:
        return ANONYMOUS


OPEN = Open()


class Backend:
    """A server and its broker, which responds to each request immediately; it is also the loop and the network."""

    observer = None

    def __init__(self, response: Response = RESPONSE, *, answers: bool = True) -> None:
        self.response, self.answers = response, answers
        self.inbox = memoryview(bytearray(1 << 18))
        self.passed_apis: frozenset[int] = frozenset()
        self.hidden_apis: frozenset[int] = frozenset()
        self.calls = 0
        self.loop = self.network = self
        self.turns = Turns(lambda call: asyncio.get_running_loop().call_soon(call))
        self.memory = RequestMemory({QUEUED_MAX_BYTES: -1}.__getitem__, lambda delay_s, call: None)

    def quotas(self, broker_id: int) -> ClientQuotas:
        return ClientQuotas(dict, lambda _: 1)

    def time_ms(self) -> int:
        return 0

    def now_ms(self) -> int:
        return 0

    def run(self, action: Any) -> None:
        action()

    def call(self, connection: ServerConnection, *_: object) -> None:
        self.calls += 1
        if self.answers:
            connection.deliver(Answer(0, self.response))

    def opened(self, connection: ServerConnection) -> None: ...

    def refused(self, event: AuthenticationFailed) -> None: ...

    def report(self, failure: BaseException) -> None:
        raise failure


@pytest.mark.parametrize("frames_per_read", [1, 50])
def test_a_peer_that_does_not_read_uses_bounded_memory_and_receives_every_response_later(frames_per_read: int) -> None:
    """Unread bytes and waiting requests both count: above the limit the broker receives no further request."""

    async def converse() -> None:
        backend, transport = Backend(), Transport()
        transport.connection = connection = ServerConnection(cast(Any, backend), OPEN, 0, 1, MAX_FRAME_BYTES)
        connection.connection_made(transport)
        frame = encode_request(MetadataRequest(topics=()), 13, 1, "slow")
        chunk, sent, answers, received = frame * frames_per_read, 0, 0, FrameReader()
        while answers < REQUESTS:
            while transport.reading and sent < REQUESTS:
                backend.inbox[: len(chunk)] = chunk
                connection.buffer_updated(len(chunk))
                sent += frames_per_read
                await asyncio.sleep(0)
            assert len(transport.unread) <= UNSENT_BYTES + SENT_TOGETHER_BYTES + RESPONSE_BYTES
            assert len(connection._kept) <= KEPT_FRAMES + frames_per_read
            answers += len(received.feed(transport.drain()))
            await asyncio.sleep(0)
        assert (answers, backend.calls) == (REQUESTS, REQUESTS)

    asyncio.run(converse())


def test_of_many_small_requests_that_arrive_at_once_only_the_next_ones_are_split() -> None:
    """A hundred peers that fill their sockets would else hold back the others, before any turn is over."""

    async def send() -> None:
        backend, transport = Backend(answers=False), Transport()
        transport.connection = connection = ServerConnection(cast(Any, backend), OPEN, 0, 1, MAX_FRAME_BYTES)
        connection.connection_made(transport)
        frame = encode_request(MetadataRequest(topics=()), 13, 1, "eager")
        count = len(backend.inbox) // len(frame)
        assert count > 20 * KEPT_FRAMES
        backend.inbox[: count * len(frame)] = frame * count
        connection.buffer_updated(count * len(frame))
        assert (len(connection._kept), transport.reading) == (KEPT_FRAMES - 1, False)
        assert backend.memory.held_bytes >= (count - 1) * len(frame) - KEPT_FRAMES * 4, "all that has arrived counts"
        backend.answers = True
        connection._answer = Answer(0, backend.response)
        connection.resume()
        while not transport.reading:
            calls, received = backend.calls, transport.drain()
            await asyncio.sleep(0)
            assert received or backend.calls > calls
        assert (backend.calls, len(connection._kept)) == (count, 0)

    asyncio.run(send())


@pytest.mark.parametrize("answers", [False, True], ids=["open requests", "answered requests"])
def test_waiting_requests_are_bounded_in_bytes(answers: bool) -> None:
    """BEHAVIOUR.md, 2.1, rule 6. A request that has its response no longer counts."""

    async def send() -> None:
        backend, transport = Backend(answers=answers), Transport()
        transport.connection = connection = ServerConnection(cast(Any, backend), OPEN, 0, 1, MAX_FRAME_BYTES)
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


# ---- large responses -------------------------------------------------------------------------------------------------

BATCH = encode_batch([(None, bytes(1_000_000), (), 0)])
STORED = tuple(split_batches(BATCH))
MOST_HELD = UNSENT_BYTES + SENT_TOGETHER_BYTES + len(BATCH)
LARGE = FetchResponse(
    responses=(
        FetchResponse.Topic(
            topic_id=ZERO_TOPIC_ID, partitions=(FetchResponse.Partition(partition_index=0, records=STORED * 50),)
        ),
    )
)


@pytest.mark.parametrize("closes", [False, True], ids=["open", "closed meanwhile"])
def test_a_large_response_that_nobody_reads_is_not_copied(closes: bool) -> None:
    """BEHAVIOUR.md, 2.1, rule 6: of 50 MB the socket gets what the peer reads, also while the connection closes."""

    async def converse() -> None:
        backend, transport = Backend(LARGE), Transport()
        transport.connection = connection = ServerConnection(cast(Any, backend), OPEN, 0, 1, MAX_FRAME_BYTES)
        connection.connection_made(transport)
        frame = encode_request(FetchRequest(), 18, 1, "slow")
        backend.inbox[: len(frame)] = frame
        connection.buffer_updated(len(frame))
        if closes:
            connection.close("the broker has ended")
        received = FrameReader(MAX_FRAME_BYTES)
        answers: list[bytes] = []
        while not answers:
            assert not (transport.closed and connection._outbox.size)
            assert len(transport.unread) <= MOST_HELD
            answers = received.feed(transport.drain())
            await asyncio.sleep(0)
        assert answers[0] == encode_response(RequestHeader(FetchRequest.API_KEY, 18, 1, "slow"), LARGE)[4:]
        assert transport.closed is closes

    asyncio.run(converse())


def test_small_pieces_of_a_large_response_are_joined() -> None:
    """A million of them took half a second to queue and to send. Pieces as large as batches are not copied."""
    outbox = Outbox()
    small, large = [b"%7d" % index for index in range(100_000)], [bytes(1000)] * 1000
    outbox.add(small + large, 1_700_000)
    assert len(outbox._pieces) <= 100_000 / 256 + 256 + 1000
    assert sum(piece is large[0] for piece in outbox._pieces) > 900
    sent = b""
    while outbox.size:
        sent += outbox.take()
    assert sent == b"".join(small + large)


def test_record_batches_are_pieces_of_a_response() -> None:
    pieces = response_pieces(RequestHeader(FetchRequest.API_KEY, 18, 1, None), LARGE)
    assert sum(piece is STORED[0].data for piece in pieces) == 50
