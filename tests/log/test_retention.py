"""Retention: which segments go, by time and by size."""

from dataclasses import replace

import pytest

from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.model.errors import Errors
from tests.log.support import (
    NOW,
    batch,
    batches,
)

ONE = batch(b"v")
SIZE = len(ONE)
MINUTE = 60_000


def fill(log: MemoryLog, timestamps: list[int]) -> None:
    for timestamp in timestamps:
        assert log.append(batch(b"v", timestamp=timestamp), now_ms=timestamp, leader_epoch=0).error is Errors.NONE


@pytest.mark.parametrize(
    ("retention_ms", "age_ms", "start"),
    [
        pytest.param(-1, 1000 * MINUTE, 0, id="no bound"),
        pytest.param(MINUTE, MINUTE, 0, id="exactly as old as allowed"),
        pytest.param(MINUTE, MINUTE + 2, 2, id="the first segment is too old"),
        pytest.param(MINUTE, MINUTE + 3, 2, id="a segment is as young as its youngest record"),
        pytest.param(MINUTE, MINUTE + 4, 4, id="two segments"),
        pytest.param(MINUTE, MINUTE + 6, 5, id="the active segment goes too"),
        pytest.param(0, 6, 5, id="nothing is kept"),
    ],
)
def test_retention_by_time(retention_ms: int, age_ms: int, start: int) -> None:
    """Segments of two records: [0, 2) [2, 4) [4, 5), a record each millisecond."""
    log = MemoryLog(LogConfig(retention_ms=retention_ms, segment_bytes=2 * SIZE))
    fill(log, [NOW + i for i in range(5)])
    assert log.clean(NOW + age_ms) == log.log_start_offset == start
    assert log.size_in_bytes == (5 - start) * SIZE
    assert log.append(ONE, now_ms=NOW, leader_epoch=0).base_offset == 5


@pytest.mark.parametrize(
    ("retention_bytes", "start"),
    [
        pytest.param(-1, 0, id="no bound"),
        pytest.param(5 * SIZE, 0, id="exactly as large as allowed"),
        pytest.param(5 * SIZE - 1, 0, id="too large, but a segment less would be too little"),
        pytest.param(3 * SIZE + 1, 0, id="a byte short of a segment"),
        pytest.param(3 * SIZE, 2, id="one segment"),
        pytest.param(SIZE, 4, id="two segments"),
        pytest.param(SIZE - 1, 4, id="the active one would be too much"),
        pytest.param(0, 5, id="nothing is kept"),
    ],
)
def test_retention_by_size(retention_bytes: int, start: int) -> None:
    log = MemoryLog(LogConfig(retention_bytes=retention_bytes, segment_bytes=2 * SIZE))
    fill(log, [NOW] * 5)
    assert log.clean(NOW) == start
    assert log.size_in_bytes == (5 - start) * SIZE


def test_segments_also_end_by_time() -> None:
    """`segment.ms` 10: [0, 3) at 0, 5, 10; [3, 4) at 11."""
    log = MemoryLog(LogConfig(segment_ms=10, retention_ms=100))
    fill(log, [NOW, NOW + 5, NOW + 10, NOW + 11])
    assert log.clean(NOW + 111) == 3


def test_emptied_segments_are_forgotten() -> None:
    log = MemoryLog(LogConfig(segment_bytes=2 * SIZE))
    fill(log, [NOW] * 6)
    log.delete_records(3)
    assert [view[:3] for view in log._segments.views(batches(log), 6)] == [(2, 4, SIZE), (4, 6, 2 * SIZE)]
    log.delete_records(4)
    assert [view[:3] for view in log._segments.views(batches(log), 6)] == [(4, 6, 2 * SIZE)]
    log.delete_records(6)
    assert log._segments.views((), 6) == []


def test_a_record_from_the_future_keeps_its_segment() -> None:
    log = MemoryLog(LogConfig(segment_bytes=2 * SIZE, retention_ms=100))
    log.append(batch(b"v", timestamp=NOW + 1000), now_ms=NOW, leader_epoch=0)
    fill(log, [NOW] * 3)
    assert log.clean(NOW + 500) == 0, "the second segment waits for the first"
    assert log.clean(NOW + 1101) == 4


def test_a_record_without_a_timestamp_is_as_old_as_its_append() -> None:
    log = MemoryLog(LogConfig(retention_ms=100))
    nameless = bytearray(ONE)
    nameless[27:43] = b"\xff" * 16
    log.append(bytes(nameless), now_ms=NOW, leader_epoch=0, validate=False)
    assert log.clean(NOW + 100) == 0
    assert log.clean(NOW + 101) == 1


def test_an_altered_configuration_takes_effect() -> None:
    log = MemoryLog(LogConfig(segment_bytes=SIZE))
    fill(log, [NOW] * 3)
    assert log.clean(NOW) == 0
    log.config = replace(log.config, retention_bytes=SIZE)
    assert log.clean(NOW) == 2


def test_a_compacted_topic_has_no_retention() -> None:
    log = MemoryLog(LogConfig(cleanup_policy="compact", retention_ms=1, retention_bytes=1, segment_bytes=SIZE))
    fill(log, [NOW] * 3)
    assert log.clean(NOW + 1000) == 0
