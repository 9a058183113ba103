"""ReadJournal at the tap: which connection receives which entries, and when. BEHAVIOUR.md, section 5."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from shareq.model.errors import Errors
from shareq.model.events import HeartbeatReceived
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest, MetadataResponse
from shareq.model.messages.tap_journal import ReadJournalRequest, ReadJournalResponse
from shareq.proxy.journal_readers import GATHER_S, MOST_BYTES, MOST_WAIT_MS, JournalReaders
from shareq.proxy.ports import METADATA_VERSION
from shareq.trace import Journal
from shareq.trace.journal import Entry
from shareq.trace.journal.jsonl import read_page
from shareq.wire.errors import MalformedFrame, RequestHeader
from shareq.wire.frames import decode_response, encode_request, encode_response
from tests.proxy.sockets import Pair, exactly, framed
from tests.proxy.stage import Loop

ORIGIN_MS = 1_000
GATHER_MS = round(GATHER_S * 1000)


def asked(from_order: int, max_wait_ms: int = 0, max_bytes: int = 1 << 18, group: str | None = None) -> bytes:
    """The frame of a request, without its size."""
    request = ReadJournalRequest(
        group_id=group, from_order=from_order, max_wait_ms=max_wait_ms, max_bytes=max_bytes
    )  # fmt: skip
    return encode_request(request, 0, 7, "reader")[4:]


class Reader:
    """A connection to the tap."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.admitted = True
        self.unsent_bytes = 0
        self.answers: list[ReadJournalResponse] = []

    def answer(self, frame: bytes) -> None:
        correlation_id, response = decode_response(ReadJournalRequest.API_KEY, 0, frame[4:])
        assert correlation_id == 7
        assert isinstance(response, ReadJournalResponse)
        self.answers.append(response)

    @property
    def pages(self) -> list[list[Entry]]:
        return [read_page(one.journal, "a page").entries for one in self.answers]


class JournalStage:
    """A journal with readers, and a loop whose clock the test sets."""

    def __init__(self, capacity: int | None = None) -> None:
        self.loop = Loop(selectors.DefaultSelector())
        self.journal = Journal(ORIGIN_MS, capacity=capacity)
        self.followed: list[str] = []
        self.readers = JournalReaders(self.journal, self.loop, lambda: self.loop.now_ms, self.followed.append)

    def write(self, count: int, member: str = "m") -> None:
        for _ in range(count):
            self.journal.record(ORIGIN_MS + self.journal.total, -1, HeartbeatReceived("g", member, 1, Errors.NONE))
        self.readers.grown()

    def ask(self, number: int, frame: bytes) -> Reader:
        reader = Reader(number)
        self.readers.ask(reader, frame)
        return reader


@pytest.fixture
def stage() -> Iterator[JournalStage]:
    made = JournalStage()
    yield made
    made.loop.close()


def test_entries_that_there_are_come_at_once(stage: JournalStage) -> None:
    """BEHAVIOUR.md, 5.2."""
    stage.write(5)
    for first in range(5):
        reader = stage.ask(1, asked(first, max_wait_ms=500))
        assert reader.pages == [stage.journal.entries()[first:]]
        assert reader.answers[0].total == 5
        assert read_page(reader.answers[0].journal, "a page").origin_ms == ORIGIN_MS


def test_a_request_waits_for_entries_and_those_of_a_moment_come_together(stage: JournalStage) -> None:
    stage.write(2)
    reader = stage.ask(1, asked(2, max_wait_ms=500))
    stage.loop.turns(at_ms=100)
    assert not reader.answers
    stage.write(1)
    stage.write(2)
    stage.loop.turns(at_ms=100 + GATHER_MS)
    assert reader.pages == [stage.journal.entries()[2:]]
    stage.loop.turns(at_ms=1_000)
    assert (len(reader.answers), stage.readers.waiting) == (1, 0)


def test_a_wait_ends_without_entries(stage: JournalStage) -> None:
    reader, other = stage.ask(1, asked(0, max_wait_ms=500)), stage.ask(2, asked(0, max_wait_ms=1 << 30))
    stage.loop.turns(at_ms=499)
    assert not reader.answers
    stage.loop.turns(at_ms=500)
    assert (reader.pages, reader.answers[0].total, reader.answers[0].now_ms) == ([[]], 0, 500)
    stage.loop.turns(at_ms=MOST_WAIT_MS - 1)
    assert not other.answers
    stage.loop.turns(at_ms=MOST_WAIT_MS)
    assert other.pages == [[]]


def test_an_order_beyond_the_end_does_not_wait(stage: JournalStage) -> None:
    """It is that of another journal, of a tap that was here before."""
    stage.write(3)
    reader = stage.ask(1, asked(4, max_wait_ms=500))
    assert (reader.pages, reader.answers[0].total) == ([[]], 3)


def test_a_page_is_bounded_but_for_its_first_entry(stage: JournalStage) -> None:
    """BEHAVIOUR.md, 5.3."""
    stage.write(100)
    pages = [stage.ask(1, asked(0, max_bytes=most)).answers[0].journal for most in (1, 1_000, 1 << 30)]
    counts = [len(read_page(one, "a page").entries) for one in pages]
    assert counts[0] == 1
    assert 1 < counts[1] < 20
    assert counts[2] == 100
    assert len(pages[1]) <= 1_000 + 60  # the header
    stage.write(1, "m" * MOST_BYTES)
    stage.write(1)
    assert len(stage.ask(1, asked(99, max_bytes=1 << 30)).pages[0]) == 1
    assert len(stage.ask(1, asked(100, max_bytes=1 << 30)).pages[0]) == 1


def test_entries_that_the_journal_has_dropped_are_seen_to_be_missing() -> None:
    stage = JournalStage(capacity=10)
    stage.write(35)
    reader = stage.ask(1, asked(3))
    assert [entry.order for entry in reader.pages[0]] == list(range(25, 35))
    stage.loop.close()


def test_a_client_that_closes_ends_its_wait(stage: JournalStage) -> None:
    reader = stage.ask(1, asked(0, max_wait_ms=500))
    stage.readers.lost(1)
    stage.write(1)
    stage.loop.turns(at_ms=1_000)
    assert (reader.answers, stage.readers.waiting) == ([], 0)


def test_a_client_that_does_not_read_is_disconnected(stage: JournalStage) -> None:
    """BEHAVIOUR.md, 5.3: else responses would take memory without a bound."""
    stage.ask(1, asked(0, max_wait_ms=500))
    with pytest.raises(MalformedFrame, match="before the last response"):
        stage.ask(1, asked(0))
    reader = Reader(2)
    reader.unsent_bytes = 1
    with pytest.raises(MalformedFrame, match="before the last response"):
        stage.readers.ask(reader, asked(0))


def test_a_group_is_observed_when_its_view_asks_for_it(stage: JournalStage) -> None:
    stage.ask(1, asked(0, group="crew"))
    stage.ask(1, asked(0))
    assert stage.followed == ["crew"]


def test_a_client_that_no_broker_has_admitted_is_refused(stage: JournalStage) -> None:
    """BEHAVIOUR.md, 5.4."""
    reader = Reader(1)
    reader.admitted = False
    stage.readers.ask(reader, asked(0, group="crew"))
    assert reader.answers == [ReadJournalResponse(error_code=Errors.ILLEGAL_SASL_STATE)]
    assert not stage.followed


@pytest.mark.parametrize("frame", [asked(-1), asked(0, max_bytes=0)], ids=["a negative order", "no bytes"])
def test_invalid_requests_are_refused(stage: JournalStage, frame: bytes) -> None:
    assert stage.ask(1, frame).answers == [ReadJournalResponse(error_code=Errors.INVALID_REQUEST)]


@pytest.mark.parametrize("frame", [asked(0)[:-3], asked(0)[:3] + b"\1" + asked(0)[4:]], ids=["cut", "a newer version"])
def test_what_cannot_be_read_is_malformed(stage: JournalStage, frame: bytes) -> None:
    with pytest.raises(MalformedFrame):
        stage.ask(1, frame)


# ---- on a connection -------------------------------------------------------------------------------------------------


def exchange(client: socket.socket, request: Request, version: int) -> object:
    client.sendall(encode_request(request, version, 7, "reader"))
    size = int.from_bytes(exactly(client, 4), "big")
    return decode_response(request.API_KEY, version, exactly(client, size))[1]


def read(client: socket.socket) -> object:
    return exchange(client, ReadJournalRequest(from_order=0, max_wait_ms=0, max_bytes=1_000), 0)


def test_a_request_for_the_journal_is_answered_and_not_relayed(pair: Pair) -> None:
    """BEHAVIOUR.md, 5.1, 5.4: it is refused until the broker has answered Metadata."""
    client, broker = pair
    assert read(client) == ReadJournalResponse(error_code=Errors.ILLEGAL_SASL_STATE)
    metadata = encode_request(MetadataRequest(topics=()), METADATA_VERSION, 7, "reader")
    client.sendall(metadata)
    assert exactly(broker, len(metadata)) == metadata
    broker.sendall(
        encode_response(
            RequestHeader(3, METADATA_VERSION, 7), MetadataResponse(brokers=(), cluster_id="c", controller_id=-1)
        )
    )
    exactly(client, int.from_bytes(exactly(client, 4), "big"))
    answer = read(client)
    assert isinstance(answer, ReadJournalResponse)
    assert (answer.error_code, answer.total) == (Errors.NONE, 0)
    client.sendall(framed(b"\x7f\xff\0\0\0\0\0\1behind it"))
    assert exactly(broker, 21) == framed(b"\x7f\xff\0\0\0\0\0\1behind it")


def test_the_pieces_of_a_request_for_the_journal_are_not_relayed(pair: Pair) -> None:
    client, broker = pair
    other = framed(b"\x7f\xff\0\0\0\0\0\1another")
    stream = other + encode_request(ReadJournalRequest(from_order=0, max_wait_ms=0, max_bytes=9), 0, 7, "x") + other
    for at in range(len(stream)):
        client.sendall(stream[at : at + 1])
    assert exactly(broker, 2 * len(other)) == other + other
    size = int.from_bytes(exactly(client, 4), "big")
    refusal = decode_response(ReadJournalRequest.API_KEY, 0, exactly(client, size))[1]
    assert refusal == ReadJournalResponse(error_code=Errors.ILLEGAL_SASL_STATE)
