"""Idempotence and transactions as one partition sees them (broker protocol, sections 2.5 and 2.6)."""

import pytest

from shareq.log.batches import ControlType, control_batch, parse_batch, restamp
from shareq.log.memory import MemoryLog
from shareq.log.producer_states import PRODUCER_ID_EXPIRATION_MS, ProducerStates
from shareq.log.records import decode, decode_control
from shareq.log.results import AppendResult
from shareq.model.errors import Errors
from shareq.model.records import AbortedTransaction
from tests.log.support import COMMITTED, EVERYTHING, NOW, UNCOMMITTED, batch, batches, from_producer, offsets

LAST = (1 << 31) - 1


def append(log: MemoryLog, data: bytes, transaction_version: int = 0) -> AppendResult:
    return log.append(data, now_ms=NOW, leader_epoch=0, transaction_version=transaction_version)


def end(log: MemoryLog, *, committed: bool, producer: int = 7, epoch: int = 0, coordinator_epoch: int = 0) -> Errors:
    return log.append_control(
        committed=committed,
        producer_id=producer,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        now_ms=NOW,
        leader_epoch=0,
    ).error


NONE, ORDER, EPOCH, TXN = (
    Errors.NONE,
    Errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Errors.INVALID_PRODUCER_EPOCH,
    Errors.INVALID_TXN_STATE,
)


@pytest.mark.parametrize(
    ("count", "sequence", "epoch", "error", "base_offset"),
    [
        pytest.param(3, 8, 2, NONE, 8, id="the next"),
        pytest.param(1, 5, 2, NONE, 5, id="the last again: the original offset"),
        pytest.param(2, 6, 2, NONE, 6, id="another of the last five again"),
        pytest.param(1, 1, 2, NONE, 1, id="the fifth from the end again"),
        pytest.param(1, 0, 2, ORDER, -1, id="the sixth from the end is forgotten"),
        pytest.param(1, 9, 2, ORDER, -1, id="one left out"),
        pytest.param(2, 7, 2, ORDER, -1, id="overlaps the end"),
        pytest.param(1, 6, 2, ORDER, -1, id="part of an earlier batch"),
        pytest.param(3, 6, 2, ORDER, -1, id="more than an earlier batch"),
        pytest.param(1, 8, 1, EPOCH, -1, id="older epoch"),
        pytest.param(1, 5, 1, EPOCH, -1, id="older epoch, known sequence"),
        pytest.param(1, 0, 3, NONE, 8, id="newer epoch from 0"),
        pytest.param(1, 8, 3, ORDER, -1, id="newer epoch runs on"),
    ],
)
def test_sequences(count: int, sequence: int, epoch: int, error: Errors, base_offset: int) -> None:
    """Six batches are there: sequences 0, 1, 2-3, 4, 5, 6-7 of epoch 2, at the same offsets."""
    log = MemoryLog()
    for first, number in ((0, 1), (1, 1), (2, 2), (4, 1), (5, 1), (6, 2)):
        append(log, from_producer(number, first, epoch=2))
    result = append(log, from_producer(count, sequence, epoch=epoch))
    assert (result.error, result.base_offset) == (error, base_offset)
    is_new = error is NONE and base_offset == 8
    assert log.log_end_offset == (8 + count if is_new else 8)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param((3, LAST - 2), 0, id="the last sequence is 2147483647"),
        pytest.param((4, LAST - 2), 1, id="a batch across it"),
    ],
)
def test_sequences_wrap_around(before: tuple[int, int], after: int) -> None:
    log = MemoryLog()
    assert append(log, from_producer(*before)).error is NONE
    assert append(log, from_producer(1, after + 1)).error is ORDER
    assert append(log, from_producer(1, after)).error is NONE
    assert append(log, from_producer(*before)).base_offset == 0, "still a duplicate"


@pytest.mark.parametrize(
    ("transactional", "version", "error"),
    [(False, 0, NONE), (False, 2, NONE), (True, 0, NONE), (True, 1, NONE), (True, 2, ORDER)],
)
def test_an_unknown_producer_may_start_anywhere_unless_it_speaks_transactions_v2(
    transactional: bool, version: int, error: Errors
) -> None:
    assert (
        append(MemoryLog(), from_producer(1, 9, transactional=transactional), transaction_version=version).error
        is error
    )
    assert append(MemoryLog(), from_producer(1, 0, transactional=True), transaction_version=2).error is NONE


def test_producers_do_not_mix() -> None:
    log = MemoryLog()
    assert append(log, from_producer(2, 0, producer=1)).base_offset == 0
    assert append(log, from_producer(2, 0, producer=2)).base_offset == 2
    assert append(log, from_producer(2, 0, producer=1)).base_offset == 0
    assert append(log, batch(b"plain")).base_offset == 4


def test_a_duplicate_answers_its_log_append_time() -> None:
    log = MemoryLog()
    log.config = log.config.from_overrides({"message.timestamp.type": "LogAppendTime"})
    first = log.append(from_producer(2, 0), now_ms=NOW, leader_epoch=0)
    again = log.append(from_producer(2, 0), now_ms=NOW + 5, leader_epoch=0)
    assert first == again == AppendResult(NONE, 0, 1, NOW, 0)


@pytest.mark.parametrize(
    ("silent_ms", "open_transaction", "error"),
    [
        pytest.param(PRODUCER_ID_EXPIRATION_MS - 1, False, ORDER, id="still known"),
        pytest.param(PRODUCER_ID_EXPIRATION_MS, False, NONE, id="forgotten after a day"),
        pytest.param(PRODUCER_ID_EXPIRATION_MS, True, ORDER, id="never with an open transaction"),
    ],
)
def test_silent_producers_are_forgotten(silent_ms: int, open_transaction: bool, error: Errors) -> None:
    log = MemoryLog()
    append(log, from_producer(1, 0, transactional=open_transaction))
    log.clean(NOW + silent_ms)
    assert append(log, from_producer(1, 50, transactional=open_transaction)).error is error


def test_the_last_stable_offset_is_the_oldest_open_transactions_first() -> None:
    log = MemoryLog()
    steps = [(log.last_stable_offset, log.log_end_offset)]

    def note() -> None:
        steps.append((log.last_stable_offset, log.log_end_offset))

    append(log, batch(b"plain"))
    note()
    append(log, from_producer(2, 0, producer=1, transactional=True))
    note()
    append(log, from_producer(2, 0, producer=2, transactional=True))
    note()
    append(log, from_producer(1, 2, producer=1, transactional=True))
    note()
    end(log, committed=True, producer=1)
    note()
    append(log, batch(b"plain"))
    note()
    end(log, committed=False, producer=2)
    note()
    assert steps == [(0, 0), (1, 1), (1, 3), (1, 5), (1, 6), (3, 7), (3, 8), (9, 9)]
    assert log.high_watermark == log.log_end_offset


@pytest.fixture
def history() -> MemoryLog:
    """0 plain; 1-2 of 1, aborted (marker 5); 3-4 of 2, committed (6); 7 of 1, aborted (8); 9-10 of 2, still open."""
    log = MemoryLog()
    append(log, batch(b"plain"))
    append(log, from_producer(2, 0, producer=1, transactional=True))
    append(log, from_producer(2, 0, producer=2, transactional=True))
    end(log, committed=False, producer=1)
    end(log, committed=True, producer=2)
    append(log, from_producer(1, 2, producer=1, transactional=True))
    end(log, committed=False, producer=1)
    append(log, from_producer(2, 2, producer=2, transactional=True))
    return log


FIRST, SECOND = AbortedTransaction(1, 1, 5), AbortedTransaction(1, 7, 8)
SIZE = len(from_producer(2, 0))


@pytest.mark.parametrize(
    ("offset", "max_bytes", "span", "aborted"),
    [
        pytest.param(0, EVERYTHING, (0, 9), (FIRST, SECOND), id="everything"),
        pytest.param(0, 1, (0, 1), (), id="only the plain one"),
        pytest.param(1, 1, (1, 3), (FIRST,), id="only aborted data"),
        pytest.param(2, 1, (1, 3), (FIRST,), id="within an aborted batch"),
        pytest.param(3, SIZE, (3, 5), (FIRST,), id="between aborted data and its marker"),
        pytest.param(5, 1, (5, 6), (FIRST,), id="the marker itself"),
        pytest.param(6, EVERYTHING, (6, 9), (SECOND,), id="behind the first marker"),
        pytest.param(7, 1, (7, 8), (SECOND,), id="only the first record of an aborted transaction"),
        pytest.param(8, EVERYTHING, (8, 9), (SECOND,), id="the second marker"),
        pytest.param(9, EVERYTHING, (-1, -1), (), id="at the last stable offset"),
        pytest.param(10, EVERYTHING, (-1, -1), (), id="above the last stable offset"),
        pytest.param(11, EVERYTHING, (-1, -1), (), id="at the log end"),
    ],
)
def test_read_committed(
    history: MemoryLog, offset: int, max_bytes: int, span: tuple[int, int], aborted: tuple[AbortedTransaction, ...]
) -> None:
    read = history.read(offset, max_bytes=max_bytes, isolation=COMMITTED)
    assert (read.error, read.last_stable_offset, read.high_watermark) == (NONE, 9, 11)
    assert read.aborted == aborted
    assert span == ((read.batches[0].base_offset, read.batches[-1].last_offset + 1) if read.batches else (-1, -1))


def test_read_uncommitted_shows_all_and_names_no_aborted_transaction(history: MemoryLog) -> None:
    read = history.read(0, max_bytes=EVERYTHING, isolation=UNCOMMITTED)
    assert offsets(read.batches) == [(0, 0), (1, 2), (3, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 10)]
    assert [decode_control(b) for b in read.batches if b.is_control] == [0, 1, 0]
    assert read.aborted == ()


def test_the_index_of_aborted_transactions_follows_the_log_start(history: MemoryLog) -> None:
    history.delete_records(5)
    assert history.read(5, max_bytes=EVERYTHING, isolation=COMMITTED).aborted == (FIRST, SECOND)
    history.delete_records(6)
    assert history.read(6, max_bytes=EVERYTHING, isolation=COMMITTED).aborted == (SECOND,)
    assert history._producers.aborted(0, EVERYTHING) == (SECOND,)


def test_the_index_does_not_grow_for_ever() -> None:
    producers = ProducerStates()
    for marker in range(1, 20, 2):
        producers.appended(parse_batch(restamp(from_producer(1, 0, transactional=True), marker - 1, 0)), NOW)
        ended = control_batch(ControlType.ABORT, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW)
        producers.ended(parse_batch(restamp(ended, marker, 0)), committed=False, coordinator_epoch=0, now_ms=NOW)
    producers.log_start_moved(17)
    assert [t.last_offset for t in producers.aborted(0, EVERYTHING)] == [17, 19]


def test_the_log_start_may_pass_an_open_transaction(history: MemoryLog) -> None:
    history.delete_records(10)
    assert history.last_stable_offset == 10
    history.delete_records(-1)
    assert (history.log_start_offset, history.last_stable_offset) == (11, 11)
    end(history, committed=False, producer=2)
    assert history.last_stable_offset == 12


def test_a_plain_batch_within_a_transaction_is_refused() -> None:
    log = MemoryLog()
    append(log, from_producer(1, 0, transactional=True))
    assert append(log, from_producer(1, 1)).error is TXN
    assert append(log, from_producer(1, 2)).error is ORDER, "sequences are checked before"
    end(log, committed=True)
    assert append(log, from_producer(1, 1)).error is NONE


def test_sequences_run_on_after_a_marker_of_the_same_epoch() -> None:
    log = MemoryLog()
    append(log, from_producer(3, 0, transactional=True))
    end(log, committed=True)
    assert append(log, from_producer(1, 0, transactional=True)).error is ORDER
    assert append(log, from_producer(1, 3, transactional=True)).error is NONE


def test_a_marker_of_a_newer_epoch_fences_and_starts_sequences_anew() -> None:
    log = MemoryLog()
    append(log, from_producer(3, 0, epoch=4, transactional=True))
    end(log, committed=False, epoch=5)
    assert append(log, from_producer(1, 3, epoch=4, transactional=True)).error is EPOCH
    assert append(log, from_producer(1, 3, epoch=5, transactional=True)).error is ORDER
    assert append(log, from_producer(1, 0, epoch=5, transactional=True)).error is NONE


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "error"),
    [
        (4, 3, NONE),
        (5, 3, NONE),
        (4, 4, NONE),
        (3, 3, Errors.INVALID_PRODUCER_EPOCH),
        (4, 2, Errors.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_who_may_write_a_marker(epoch: int, coordinator_epoch: int, error: Errors) -> None:
    """The producer is at epoch 4, and the last marker was of coordinator epoch 3."""
    log = MemoryLog()
    assert end(log, committed=True, epoch=4, coordinator_epoch=3) is NONE
    append(log, from_producer(1, 0, epoch=4, transactional=True))
    assert end(log, committed=True, epoch=epoch, coordinator_epoch=coordinator_epoch) is error
    assert log.log_end_offset == (3 if error is NONE else 2)
    assert log.last_stable_offset == (3 if error is NONE else 1)


def test_a_marker_without_data_is_no_transaction() -> None:
    log = MemoryLog()
    end(log, committed=False)
    read = log.read(0, max_bytes=EVERYTHING, isolation=COMMITTED)
    assert (offsets(read.batches), read.aborted) == ([(0, 0)], ())
    assert append(log, from_producer(1, 5)).error is ORDER, "the producer is known now"


def test_a_marker_is_stamped_like_any_batch() -> None:
    log = MemoryLog()
    append(log, batch(b"a", b"b"))
    result = log.append_control(
        committed=True, producer_id=7, producer_epoch=1, coordinator_epoch=2, now_ms=NOW, leader_epoch=6
    )
    assert result == AppendResult(NONE, 2, 2, -1, 0)
    marker = batches(log)[1]
    assert (marker.base_offset, marker.leader_epoch, marker.size) == (2, 6, 78)
    assert [r.offset for r in decode(marker, check_crc=True)] == [2]
