"""Loading of a coordinator's log into its shards: records, their transactions, and the markers among them."""

from __future__ import annotations

import pytest

from shareq.broker.coordinator_log import records_read
from shareq.log.memory import MemoryLog
from shareq.log.records import encode_coordinator_records
from shareq.model.actor import EndMarker, RecordsRead
from shareq.model.errors import Errors
from shareq.model.records import CoordinatorRecord
from shareq.model.states import IsolationLevel


def write(log: MemoryLog, *keys: bytes, producer_id: int = -1, producer_epoch: int = -1) -> Errors:
    records = [CoordinatorRecord(key, b"v") for key in keys]
    batch = encode_coordinator_records(records, 0, producer_id=producer_id, producer_epoch=producer_epoch)
    return log.append(batch, now_ms=0, leader_epoch=0, from_coordinator=True).error


def end(log: MemoryLog, producer_id: int, producer_epoch: int, *, committed: bool) -> Errors:
    return log.append_control(
        committed=committed,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=0,
        now_ms=0,
        leader_epoch=0,
    ).error


def load(log: MemoryLog, offset: int = 0, max_bytes: int = 1 << 20) -> RecordsRead:
    read = log.read(offset, max_bytes=max_bytes, isolation=IsolationLevel.READ_UNCOMMITTED)
    return records_read(1, read, offset)


@pytest.fixture
def log() -> MemoryLog:
    """0, 1: plain. 2, 3: of producer 7. 4: of producer 8. 5: commit of producer 7. 6: abort of producer 8. 7: plain."""
    made = MemoryLog()
    assert not write(made, b"a", b"b")
    assert not write(made, b"c", b"d", producer_id=7, producer_epoch=0)
    assert not write(made, b"e", producer_id=8, producer_epoch=2)
    assert not end(made, 7, 1, committed=True)
    assert not end(made, 8, 2, committed=False)
    assert not write(made, b"f")
    return made


def test_records_transactions_and_markers_of_a_log_are_decoded(log: MemoryLog) -> None:
    read = load(log)
    assert [(offset, key) for offset, key, _ in read.records] == [
        *((0, b"a"), (1, b"b"), (2, b"c"), (3, b"d"), (4, b"e"), (7, b"f")),
    ]
    assert read.producer_ids == {2: 7, 3: 7, 4: 8}
    assert read.markers == [EndMarker(5, 7, True), EndMarker(6, 8, False)]
    assert (read.next_offset, read.done) == (8, True)


def test_a_chunk_can_start_within_a_batch(log: MemoryLog) -> None:
    read = load(log, 3)
    assert [offset for offset, _, _ in read.records] == [3, 4, 7]
    assert read.producer_ids == {3: 7, 4: 8}


def test_a_chunk_can_consist_of_a_marker_only(log: MemoryLog) -> None:
    read = load(log, 5, max_bytes=1)
    assert (read.records, read.markers, read.next_offset, read.done) == ([], [EndMarker(5, 7, True)], 6, False)


def test_an_empty_log_is_loaded_in_one_read() -> None:
    read = load(MemoryLog())
    assert (read.records, read.next_offset, read.done) == ([], 0, True)


def test_batches_that_coordinators_write_for_producers_have_no_sequence() -> None:
    """Such a batch is never a duplicate, but the producer's epoch is checked."""
    log = MemoryLog()
    for _ in range(3):
        assert write(log, b"k", producer_id=7, producer_epoch=1) is Errors.NONE
    assert log.log_end_offset == 3
    assert log.has_open_transaction(7, 1)
    assert write(log, b"k", producer_id=7, producer_epoch=0) is Errors.INVALID_PRODUCER_EPOCH
    assert end(log, 7, 2, committed=True) is Errors.NONE
    assert not log.has_open_transaction(7, 1)
    assert write(log, b"k", producer_id=7, producer_epoch=1) is Errors.INVALID_PRODUCER_EPOCH
    assert write(log, b"k", producer_id=7, producer_epoch=2) is Errors.NONE
    assert log.last_stable_offset == 4


def test_a_produce_request_without_sequence_is_refused() -> None:
    batch = encode_coordinator_records([CoordinatorRecord(b"k", b"v")], 0, producer_id=7, producer_epoch=0)
    assert MemoryLog().append(batch, now_ms=0, leader_epoch=0, validate=False).error is Errors.INVALID_RECORD


@pytest.mark.parametrize(
    ("producer", "is_open"),
    [
        pytest.param((7, 3), True, id="same producer and epoch"),
        pytest.param((7, 2), False, id="older epoch"),
        pytest.param((7, 4), False, id="later epoch"),
        pytest.param((8, 3), False, id="another producer"),
    ],
)
def test_an_open_transaction_is_found_by_producer_and_epoch(producer: tuple[int, int], is_open: bool) -> None:
    log = MemoryLog()
    assert not log.has_open_transaction(*producer)
    write(log, b"k", producer_id=7, producer_epoch=3)
    assert log.has_open_transaction(*producer) is is_open
