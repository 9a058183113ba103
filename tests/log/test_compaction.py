"""Compaction: what goes, when, and what readers find afterwards."""

from dataclasses import replace
from typing import Any

import pytest

from shareq.log.batches import HEADER_BYTES, ControlType, control_batch, parse_batch
from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, decode_control, encode_batch
from shareq.model.errors import Errors
from tests.log.support import (
    COMMITTED,
    EVERYTHING,
    NOW,
    UNCOMMITTED,
    batch,
    batches,
    broken,
    contents,
    from_producer,
    offsets,
    patched,
)


def compacted(**options: Any) -> LogConfig:
    """Compaction that never waits; each batch is a segment of its own unless said otherwise."""
    eager = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0, "segment.bytes": 14}
    return LogConfig.from_overrides(eager | {key.replace("_", "."): value for key, value in options.items()})


def put(log: MemoryLog, *pairs: tuple[str, str | None], compression: str = "none") -> None:
    """One batch of keys and values."""
    records = [(key.encode(), None if value is None else value.encode(), (), NOW) for key, value in pairs]
    data = encode_batch(records, compression=compression)
    assert log.append(data, now_ms=NOW, leader_epoch=0).error is Errors.NONE


def close_segment(log: MemoryLog) -> None:
    """What follows is the active segment."""
    put(log, ("~", "active"))


def test_compaction_makes_true_gaps() -> None:
    log = MemoryLog(compacted())
    put(log, *[(key, f"{key}{offset}") for offset, key in enumerate("abaca")])
    close_segment(log)
    log.clean(NOW)
    (kept, _) = batches(log)
    assert (kept.base_offset, kept.last_offset, kept.record_count) == (0, 4, 3)
    assert contents(log)[:-1] == [(1, b"b", b"b1"), (3, b"c", b"c3"), (4, b"a", b"a4")]
    for offset in range(5):
        assert log.read(offset, max_bytes=1, isolation=UNCOMMITTED).batches == (kept,)
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)


def test_whole_batches_vanish() -> None:
    log = MemoryLog(compacted())
    for value in "0123":
        put(log, ("a", value), ("b", value))
    close_segment(log)
    before = log.size_in_bytes
    log.clean(NOW)
    assert offsets(batches(log)) == [(6, 7), (8, 8)]
    assert log.read(2, max_bytes=EVERYTHING, isolation=UNCOMMITTED).batches == batches(log)
    assert log.size_in_bytes == sum(b.size for b in batches(log)) < before


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compaction_keeps_the_codec(compression: str) -> None:
    log = MemoryLog(compacted())
    put(log, *[(f"key{i % 40}", "v" * 50) for i in range(60)], compression=compression)
    codec = batches(log)[0].attributes
    close_segment(log)
    log.clean(NOW)
    assert batches(log)[0].attributes == codec
    assert [offset for offset, _, _ in contents(log)[:-1]] == list(range(20, 60))


def test_the_active_segment_is_left_alone() -> None:
    log = MemoryLog(compacted(segment_bytes=1 << 20))
    put(log, ("a", "0"), ("a", "1"))
    put(log, ("a", "2"))
    log.clean(NOW)
    assert len(contents(log)) == 3


@pytest.mark.parametrize(
    ("options", "age_ms", "is_compacted"),
    [
        pytest.param({}, -1000, True, id="timestamps ahead of the clock are no reason to wait"),
        pytest.param({"min_compaction_lag_ms": 100}, 99, False, id="too young"),
        pytest.param({"min_compaction_lag_ms": 100}, 100, True, id="old enough"),
        pytest.param({"min_cleanable_dirty_ratio": 0.99}, 0, True, id="never compacted is all dirty"),
        pytest.param({"min_cleanable_dirty_ratio": 1}, 1000, False, id="never by ratio"),
        pytest.param({"min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": 100}, 100, False, id="not overdue"),
        pytest.param({"min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": 100}, 101, True, id="overdue"),
    ],
)
def test_when_compaction_runs(options: dict[str, object], age_ms: int, is_compacted: bool) -> None:
    log = MemoryLog(compacted(**options))
    put(log, ("a", "0"), ("a", "1"))
    close_segment(log)
    log.clean(NOW + age_ms)
    assert (len(contents(log)) == 2) is is_compacted


def test_compaction_waits_until_enough_is_dirty() -> None:
    log = MemoryLog(compacted(min_cleanable_dirty_ratio=0.5))
    for key in "abc":
        put(log, (key, "0"))
    close_segment(log)
    log.clean(NOW)
    put(log, ("a", "1"))
    put(log, ("x", "x"))
    log.clean(NOW)
    assert [offset for offset, key, _ in contents(log) if key == b"a"] == [0, 4], "two of five segments are dirty"
    put(log, ("b", "1"))
    put(log, ("y", "y"))
    log.clean(NOW)
    assert [offset for offset, key, _ in contents(log) if key == b"a"] == [4]


def test_segments_of_a_compacted_topic_end_in_time_for_compaction() -> None:
    """`max.compaction.lag.ms` bounds `segment.ms`: the record at 0 is not in the active segment for longer."""
    log = MemoryLog(compacted(segment_bytes=1 << 20, max_compaction_lag_ms=100))
    for timestamp in (NOW, NOW + 100, NOW + 101):
        log.append(batch(b"v", timestamp=timestamp), now_ms=timestamp, leader_epoch=0)
    log.clean(NOW + 101)
    assert [offset for offset, _, _ in contents(log)] == [1, 2]


def test_tombstones_go_after_their_time() -> None:
    log = MemoryLog(compacted(delete_retention_ms=100))
    put(log, ("a", "0"), ("b", "0"))
    put(log, ("a", None), ("c", "0"))
    close_segment(log)
    log.clean(NOW)
    assert contents(log)[:-1] == [(1, b"b", b"0"), (2, b"a", None), (3, b"c", b"0")]
    log.clean(NOW + 99)
    assert contents(log)[1] == (2, b"a", None), "a slow reader can still learn of it"
    log.clean(NOW + 100)
    assert contents(log)[:-1] == [(1, b"b", b"0"), (3, b"c", b"0")]


def test_a_key_written_again_outlives_its_tombstone() -> None:
    log = MemoryLog(compacted(delete_retention_ms=100))
    put(log, ("a", None))
    close_segment(log)
    log.clean(NOW)
    put(log, ("a", "1"))
    close_segment(log)
    log.clean(NOW + 100)
    assert [c for c in contents(log) if c[1] == b"a"] == [(2, b"a", b"1")]


def test_nothing_is_remembered_of_tombstones_that_are_gone() -> None:
    log = MemoryLog(compacted(cleanup_policy="compact,delete", delete_retention_ms=100))
    for key in "abc":
        put(log, (key, None), (f"{key}'", "stays"))
    close_segment(log)
    log.clean(NOW)
    assert sorted(log._compactor._horizons) == [0, 2, 4]
    log.delete_records(2)
    assert sorted(log._compactor._horizons) == [2, 4]
    put(log, ("b", "again"))
    close_segment(log)
    log.clean(NOW)
    assert sorted(log._compactor._horizons) == [4], "no tombstone is left in the batch at 2"
    log.clean(NOW + 100)
    assert log._compactor._horizons == {}


def transact(log: MemoryLog, producer: int, committed: bool | None, *keys: str, epoch: int = 0) -> None:
    records = [(key.encode(), b"by %d" % producer, (), NOW) for key in keys]
    data = encode_batch(records, producer_id=producer, producer_epoch=epoch, base_sequence=0, transactional=True)
    assert log.append(data, now_ms=NOW, leader_epoch=0).error is Errors.NONE
    if committed is not None:
        log.append_control(
            committed=committed,
            producer_id=producer,
            producer_epoch=epoch + 1,
            coordinator_epoch=0,
            now_ms=NOW,
            leader_epoch=0,
        )


def test_aborted_records_go_and_do_not_hide_committed_ones() -> None:
    log = MemoryLog(compacted(delete_retention_ms=100))
    transact(log, 1, True, "a", "b")
    transact(log, 2, False, "a")
    close_segment(log)
    log.clean(NOW)
    assert contents(log)[:-1] == [(0, b"a", b"by 1"), (1, b"b", b"by 1")]
    assert [b.base_offset for b in batches(log) if b.is_control] == [2, 4]


def test_a_marker_goes_when_nothing_of_its_transaction_is_left_and_its_time_is_over() -> None:
    log = MemoryLog(compacted(delete_retention_ms=100))
    transact(log, 1, True, "a")
    transact(log, 2, False, "a")
    transact(log, 3, True, "b")
    put(log, ("a", "last"))
    close_segment(log)
    log.clean(NOW)
    assert offsets(batches(log)) == [(1, 1), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7)]
    assert log.read(0, max_bytes=EVERYTHING, isolation=COMMITTED).aborted[0].producer_id == 2
    log.clean(NOW + 100)
    assert offsets(batches(log)) == [(4, 4), (5, 5), (6, 6), (7, 7)]
    assert log.read(0, max_bytes=EVERYTHING, isolation=COMMITTED).aborted == ()


def test_each_transaction_has_its_own_marker() -> None:
    log = MemoryLog(compacted(delete_retention_ms=0))
    transact(log, 1, True, "a")
    transact(log, 1, True, "b", epoch=1)
    put(log, ("b", "last"))
    close_segment(log)
    log.clean(NOW)
    assert offsets(batches(log)) == [(0, 0), (1, 1), (4, 4), (5, 5)]


LEADER_CHANGE = 2
"""A type of control record that is not about transactions."""


@pytest.mark.parametrize("producer", [-1, 1], ids=["of no producer", "of a producer with a transaction"])
def test_a_control_batch_that_is_no_marker_stays(producer: int) -> None:
    """Neither does it go after the time of tombstones, nor does it pass for the marker of its producer."""
    log = MemoryLog(compacted(delete_retention_ms=0))
    transact(log, 1, None, "a")
    data = control_batch(
        ControlType.COMMIT, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=NOW
    )
    log._write(parse_batch(patched(data, HEADER_BYTES + 8, bytes([LEADER_CHANGE]))), NOW, 0)
    log.append_control(committed=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, now_ms=NOW, leader_epoch=0)
    close_segment(log)
    for passed_ms in (0, 1, 2):
        log.clean(NOW + passed_ms)
        assert offsets(batches(log)) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert decode_control(batches(log)[1]) is None


def test_nothing_at_or_above_the_last_stable_offset_is_compacted() -> None:
    log = MemoryLog(compacted())
    put(log, ("a", "0"))
    put(log, ("a", "1"))
    transact(log, 1, None, "a")
    put(log, ("a", "2"))
    close_segment(log)
    log.clean(NOW)
    assert [offset for offset, _, _ in contents(log)] == [1, 2, 3, 4]


def test_the_last_batch_of_a_producer_stays_empty() -> None:
    log = MemoryLog(compacted())
    log.append(from_producer(2, 0), now_ms=NOW, leader_epoch=0)
    put(log, ("k", "newer"))
    close_segment(log)
    log.clean(NOW)
    first = batches(log)[0]
    assert (first.base_offset, first.last_offset, first.record_count, first.size) == (0, 1, 0, 61)
    assert (first.producer_id, first.base_sequence) == (7, 0)
    assert decode(first, check_crc=True) == []
    assert log.append(from_producer(2, 0), now_ms=NOW, leader_epoch=0).base_offset == 0, "still a duplicate"
    assert log.append(from_producer(1, 2), now_ms=NOW, leader_epoch=0).error is Errors.NONE
    close_segment(log)
    log.clean(NOW)
    assert offsets(batches(log)) == [(3, 3), (4, 4), (5, 5)], "it is no longer the last one"


def test_an_empty_batch_has_no_timestamp_to_be_found() -> None:
    log = MemoryLog(compacted())
    log.append(
        encode_batch([(b"k", b"", (), NOW + 50)], producer_id=7, producer_epoch=0, base_sequence=0),
        now_ms=NOW,
        leader_epoch=0,
    )
    put(log, ("k", "newer"))
    close_segment(log)
    log.clean(NOW)
    assert batches(log)[0][3:5] == (NOW + 50, NOW + 50)
    assert log.offset_for_timestamp(-3, UNCOMMITTED)[1:3] == (1, NOW)


def test_a_log_with_a_damaged_batch_is_not_compacted() -> None:
    log = MemoryLog(compacted())
    put(log, ("a", "0"))
    put(log, ("a", "1"))
    log.config = replace(log.config, cleanup_policy="delete")
    log.append(broken(batch(b"v"), 61), now_ms=NOW, leader_epoch=0, validate=False)
    log.config = replace(log.config, cleanup_policy="compact")
    close_segment(log)
    log.clean(NOW)
    assert offsets(batches(log)) == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_compacted_and_deleted() -> None:
    log = MemoryLog(compacted(cleanup_policy="compact,delete", retention_ms=100))
    for value in "012":
        put(log, ("a", value))
    put(log, ("b", "0"))
    assert log.clean(NOW + 100) == 0
    assert [offset for offset, _, _ in contents(log)] == [2, 3]
    assert log.clean(NOW + 101) == 4
    assert contents(log) == []
