"""Reading a log, finding offsets by time and by epoch, and moving its start."""

from collections.abc import Callable

import pytest

from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.log.records import encode_batch
from shareq.log.results import AppendResult, EpochEndOffset, OffsetForTimestamp
from shareq.model.errors import Errors
from shareq.model.states import IsolationLevel
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
)

THREE = batch(b"a", b"b", b"c")
SIZE = len(THREE)


@pytest.fixture
def log() -> MemoryLog:
    """Four batches of three records: [0, 3), [3, 6), [6, 9), [9, 12)."""
    log = MemoryLog()
    for _ in range(4):
        log.append(THREE, now_ms=NOW, leader_epoch=0)
    return log


def test_a_new_log_is_empty() -> None:
    log = MemoryLog()
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset) == (0, 0, 0, 0)
    assert repr(log) == "MemoryLog([0, 0), 0 batches, 0 bytes)"


@pytest.mark.parametrize(
    ("offset", "max_bytes", "min_one", "expected"),
    [
        pytest.param(0, EVERYTHING, True, [(0, 2), (3, 5), (6, 8), (9, 11)], id="all"),
        pytest.param(4, EVERYTHING, True, [(3, 5), (6, 8), (9, 11)], id="the batch that contains the offset"),
        pytest.param(5, EVERYTHING, True, [(3, 5), (6, 8), (9, 11)], id="its last offset"),
        pytest.param(6, EVERYTHING, True, [(6, 8), (9, 11)], id="the next one's first"),
        pytest.param(11, EVERYTHING, True, [(9, 11)], id="the last record"),
        pytest.param(12, EVERYTHING, True, [], id="the log end"),
        pytest.param(0, 2 * SIZE, True, [(0, 2), (3, 5)], id="exactly two"),
        pytest.param(0, 2 * SIZE - 1, True, [(0, 2)], id="a byte less than two"),
        pytest.param(0, 1, True, [(0, 2)], id="the first always comes"),
        pytest.param(0, 0, True, [(0, 2)], id="even for no bytes at all"),
        pytest.param(0, SIZE - 1, False, [], id="unless not wanted"),
        pytest.param(0, SIZE, False, [(0, 2)], id="not wanted, but it fits"),
    ],
)
def test_whole_batches_are_read(
    log: MemoryLog, offset: int, max_bytes: int, min_one: bool, expected: list[tuple[int, int]]
) -> None:
    read = log.read(offset, max_bytes=max_bytes, isolation=UNCOMMITTED, min_one_batch=min_one)
    assert (read.error, offsets(read.batches)) == (Errors.NONE, expected)
    assert (read.log_start_offset, read.high_watermark, read.last_stable_offset) == (0, 12, 12)


@pytest.mark.parametrize("isolation", [UNCOMMITTED, COMMITTED])
@pytest.mark.parametrize(
    ("offset", "end_offset", "expected"),
    [
        pytest.param(0, 0, [(0, 2)], id="the first, wherever it begins"),
        pytest.param(0, 1, [(0, 2)], id="begins below"),
        pytest.param(0, 3, [(0, 2)], id="ends there: the next begins there"),
        pytest.param(0, 4, [(0, 2), (3, 5)], id="begins below, ends above"),
        pytest.param(4, 7, [(3, 5), (6, 8)], id="from within a batch into another"),
        pytest.param(6, 6, [(6, 8)], id="the first and no other"),
        pytest.param(12, 6, [], id="there is none"),
        pytest.param(0, 12, [(0, 2), (3, 5), (6, 8), (9, 11)], id="the log end"),
        pytest.param(9, 1 << 62, [(9, 11)], id="beyond it"),
    ],
)
def test_batches_that_begin_too_high_are_left_out(
    log: MemoryLog, isolation: IsolationLevel, offset: int, end_offset: int, expected: list[tuple[int, int]]
) -> None:
    read = log.read(offset, max_bytes=EVERYTHING, isolation=isolation, end_offset=end_offset)
    assert (read.error, offsets(read.batches), read.high_watermark) == (Errors.NONE, expected, 12)


@pytest.mark.parametrize("isolation", [UNCOMMITTED, COMMITTED])
@pytest.mark.parametrize(("start", "offset"), [(0, -1), (0, 13), (4, 3), (12, 11)])
def test_outside_of_the_log_is_out_of_range(log: MemoryLog, start: int, offset: int, isolation: IsolationLevel) -> None:
    log.delete_records(start)
    read = log.read(offset, max_bytes=EVERYTHING, isolation=isolation)
    assert (read.error, read.batches) == (Errors.OFFSET_OUT_OF_RANGE, ())
    assert (read.log_start_offset, read.high_watermark) == (start, 12)


def test_reading_copies_nothing(log: MemoryLog) -> None:
    assert batches(log)[2] is batches(log)[2]


@pytest.mark.parametrize(
    ("offset", "error", "start", "left"),
    [
        pytest.param(-2, Errors.OFFSET_OUT_OF_RANGE, 2, [(0, 2), (3, 5), (6, 8), (9, 11)], id="below -1"),
        pytest.param(13, Errors.OFFSET_OUT_OF_RANGE, 2, [(0, 2), (3, 5), (6, 8), (9, 11)], id="above the end"),
        pytest.param(1, Errors.NONE, 2, [(0, 2), (3, 5), (6, 8), (9, 11)], id="below the log start"),
        pytest.param(2, Errors.NONE, 2, [(0, 2), (3, 5), (6, 8), (9, 11)], id="the log start"),
        pytest.param(3, Errors.NONE, 3, [(3, 5), (6, 8), (9, 11)], id="between batches"),
        pytest.param(7, Errors.NONE, 7, [(6, 8), (9, 11)], id="a batch across the start comes whole"),
        pytest.param(12, Errors.NONE, 12, [], id="everything"),
        pytest.param(-1, Errors.NONE, 12, [], id="the high watermark"),
    ],
)
def test_delete_records(log: MemoryLog, offset: int, error: Errors, start: int, left: list[tuple[int, int]]) -> None:
    log.delete_records(2)
    assert log.delete_records(offset) is error
    assert (log.log_start_offset, log.log_end_offset) == (start, 12)
    assert offsets(batches(log)) == left
    assert log.size_in_bytes == SIZE * len(left)
    assert log.append(THREE, now_ms=NOW, leader_epoch=0).base_offset == 12
    assert log.append(THREE, now_ms=NOW, leader_epoch=0).log_start_offset == start


@pytest.mark.parametrize(
    ("policy", "error"),
    [("delete", Errors.NONE), ("compact,delete", Errors.NONE), ("compact", Errors.POLICY_VIOLATION)],
)
def test_records_are_deleted_only_where_the_policy_says_so(log: MemoryLog, policy: str, error: Errors) -> None:
    log.config = LogConfig(cleanup_policy=policy)
    assert log.delete_records(5) is error
    assert log.log_start_offset == (0 if error else 5)


UNKNOWN = OffsetForTimestamp()


@pytest.fixture
def timed() -> MemoryLog:
    """Timestamps from offset 0 on: 10 30 20 | 15 40 | 40 5 | 50 60, in epochs 0, 0, 1, 2; the last batch is of an open
    transaction."""
    log = MemoryLog()
    for epoch, timestamps in ((0, (10, 30, 20)), (0, (15, 40)), (1, (40, 5))):
        log.append(encode_batch([(b"k", b"", (), t) for t in timestamps]), now_ms=NOW, leader_epoch=epoch)
    open_one = encode_batch(
        [(b"k", b"", (), 50), (b"k", b"", (), 60)],
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
        compression="gzip",
    )
    log.append(open_one, now_ms=NOW, leader_epoch=2)
    return log


@pytest.mark.parametrize(
    ("timestamp", "uncommitted", "committed"),
    [
        pytest.param(-1, (9, -1, 2), (7, -1, 2), id="latest"),
        pytest.param(-2, (0, -1, 0), (0, -1, 0), id="earliest"),
        pytest.param(-3, (8, 60, 2), None, id="largest timestamp"),
        pytest.param(-4, (0, -1, 0), (0, -1, 0), id="earliest local"),
        pytest.param(-5, None, None, id="latest tiered"),
        pytest.param(-6, None, None, id="earliest pending upload"),
        pytest.param(0, (0, 10, 0), (0, 10, 0), id="before all"),
        pytest.param(10, (0, 10, 0), (0, 10, 0), id="exactly the first"),
        pytest.param(11, (1, 30, 0), (1, 30, 0), id="within a batch, out of order"),
        pytest.param(31, (4, 40, 0), (4, 40, 0), id="a batch whose largest is too small is passed over"),
        pytest.param(40, (4, 40, 0), (4, 40, 0), id="the first of equal ones"),
        pytest.param(41, (7, 50, 2), None, id="in an open transaction"),
        pytest.param(60, (8, 60, 2), None, id="the last"),
        pytest.param(61, None, None, id="after all"),
    ],
)
def test_offsets_for_timestamps(
    timed: MemoryLog, timestamp: int, uncommitted: tuple[int, ...] | None, committed: tuple[int, ...] | None
) -> None:
    for isolation, expected in ((UNCOMMITTED, uncommitted), (COMMITTED, committed)):
        found = timed.offset_for_timestamp(timestamp, isolation)
        assert found == (OffsetForTimestamp(Errors.NONE, *expected) if expected else UNKNOWN)


def test_offsets_for_timestamps_below_the_log_start_do_not_count(timed: MemoryLog) -> None:
    timed.delete_records(2)
    assert timed.offset_for_timestamp(11, UNCOMMITTED)[1:3] == (2, 20)
    assert timed.offset_for_timestamp(21, UNCOMMITTED)[1:3] == (4, 40)
    assert timed.offset_for_timestamp(-2, UNCOMMITTED)[1:3] == (2, -1)


def test_an_unknown_kind_of_offset_is_an_unsupported_version(timed: MemoryLog) -> None:
    assert timed.offset_for_timestamp(-7, UNCOMMITTED) == OffsetForTimestamp(Errors.UNSUPPORTED_VERSION)


def test_the_largest_timestamp_is_that_of_a_record_still_there() -> None:
    log = MemoryLog()
    for timestamps in ((90, 20), (30, 10)):
        log.append(encode_batch([(b"k", b"", (), t) for t in timestamps]), now_ms=NOW, leader_epoch=0)
    assert log.offset_for_timestamp(-3, UNCOMMITTED)[1:3] == (0, 90)
    log.delete_records(1)
    assert log.offset_for_timestamp(-3, UNCOMMITTED)[1:3] == (2, 30)


@pytest.mark.parametrize("timestamp", [-3, 0])
def test_an_empty_log_has_no_timestamps(timestamp: int) -> None:
    assert MemoryLog().offset_for_timestamp(timestamp, UNCOMMITTED) == UNKNOWN


def test_a_damaged_batch_is_told_by_its_error() -> None:
    log = MemoryLog()
    log.append(broken(batch(b"a", timestamp=5), 61), now_ms=NOW, leader_epoch=0, validate=False)
    assert log.offset_for_timestamp(5, UNCOMMITTED) == OffsetForTimestamp(Errors.CORRUPT_MESSAGE)


def epochs() -> MemoryLog:
    """Epoch 2 wrote [0, 3), 5 wrote [3, 9), 6 nothing, 7 [9, 12), and 9 leads without having written."""
    log = MemoryLog()
    for epoch in (2, 5, 5, 7):
        log.append(THREE, now_ms=NOW, leader_epoch=epoch)
        if epoch == 5:
            log.begin_epoch(5)
    log.begin_epoch(9)
    return log


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(-1, (-1, -1), id="none"),
        pytest.param(0, (0, 0), id="before the first"),
        pytest.param(2, (2, 3), id="the first"),
        pytest.param(3, (2, 3), id="skipped"),
        pytest.param(5, (5, 9), id="older"),
        pytest.param(6, (5, 9), id="skipped again"),
        pytest.param(7, (7, 12), id="ended at the log end"),
        pytest.param(9, (9, 12), id="current"),
        pytest.param(10, (-1, -1), id="to come"),
    ],
)
def test_end_offsets_of_epochs(epoch: int, expected: tuple[int, int]) -> None:
    assert epochs().end_offset_for_epoch(epoch) == EpochEndOffset(*expected)


def appended(log: MemoryLog, epoch: int) -> AppendResult:
    return log.append(from_producer(2, 0), now_ms=NOW, leader_epoch=epoch)


def marked(log: MemoryLog, epoch: int) -> AppendResult:
    return log.append_control(
        committed=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, now_ms=NOW, leader_epoch=epoch
    )


@pytest.mark.parametrize("append", [appended, marked], ids=["a batch", "a marker"])
@pytest.mark.parametrize(
    ("led", "latest"),
    [pytest.param(epochs(), 9, id="with records"), pytest.param(MemoryLog(), 3, id="empty")],
)
def test_a_leader_of_an_older_epoch_is_refused(
    append: Callable[[MemoryLog, int], AppendResult], led: MemoryLog, latest: int
) -> None:
    led.begin_epoch(latest)
    end = led.log_end_offset
    for epoch in (latest - 1, 0):
        refused = append(led, epoch)
        text = f"leader epoch {epoch} is over: the log is led at epoch {latest}"
        assert refused == AppendResult(Errors.NOT_LEADER_OR_FOLLOWER, message=text)
    assert led.log_end_offset == end
    assert led.active_producers() == []
    assert append(MemoryLog(), 0).error is Errors.NONE


def test_an_epoch_is_noted_once() -> None:
    assert epochs()._epochs._epochs == [2, 5, 7, 9]


def test_an_epoch_that_wrote_nothing_is_forgotten() -> None:
    log = epochs()
    log.begin_epoch(11)
    assert log.end_offset_for_epoch(9) == EpochEndOffset(7, 12)
    assert log.append(THREE, now_ms=NOW, leader_epoch=11).base_offset == 12
    assert log.end_offset_for_epoch(11) == EpochEndOffset(11, 15)


@pytest.mark.parametrize(("start", "of_epoch_2"), [(2, (2, 3)), (3, (2, 3)), (4, (2, 4)), (9, (2, 9)), (12, (2, 12))])
def test_epochs_below_the_log_start_are_forgotten(start: int, of_epoch_2: tuple[int, int]) -> None:
    log = epochs()
    log.delete_records(start)
    assert log.end_offset_for_epoch(2) == EpochEndOffset(*of_epoch_2)
    assert log.end_offset_for_epoch(9) == EpochEndOffset(9, 12)


def test_markers_and_plain_batches_share_the_offsets() -> None:
    log = MemoryLog()
    log.append(from_producer(2, 0, transactional=True), now_ms=NOW, leader_epoch=0)
    log.append_control(committed=True, producer_id=7, producer_epoch=0, coordinator_epoch=0, now_ms=NOW, leader_epoch=0)
    log.append(batch(b"x"), now_ms=NOW, leader_epoch=0)
    assert [offset for offset, _, _ in contents(log)] == [0, 1, 3]
