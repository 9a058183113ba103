"""What a writer of dead letters learns from reads of the log of their records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.broker.dead_letters.source_reader import _take
from shareq.broker.dead_letters.source_records import SourceRecords
from shareq.log.memory import MemoryLog
from shareq.model.actor import LogRead
from shareq.model.errors import Errors
from tests.log.support import EVERYTHING, NOW, batch, batches


@pytest.mark.parametrize(
    ("log_start", "unknown"),
    [
        pytest.param(7, 7, id="deleted up to the middle"),
        pytest.param(20, 10, id="all deleted"),
        pytest.param(0, 10, id="the log ends below: it was cut, or begun anew"),
        pytest.param(5, 10, id="the log ends where it starts"),
    ],
)
def test_records_that_are_out_of_range_are_lost(log_start: int, unknown: int) -> None:
    """[5, 10) was read from 5; the first offset that is still to be read."""
    source = SourceRecords()
    read = LogRead(0, Errors.OFFSET_OUT_OF_RANGE, (), 0, log_start)
    assert _take(source, read, 5, 10) is Errors.NONE
    assert source.first_unknown(5, 10) == unknown


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    reads=st.lists(st.tuples(st.integers(0, 19), st.integers(1, 5)), max_size=8),
    gap=st.integers(0, 19),
)
def test_each_record_is_known_once_however_reads_overlap(
    sizes: list[int], reads: list[tuple[int, int]], gap: int
) -> None:
    """Letters come in any order, and a read returns whole batches, also above what it is for. `gap`: compaction has
    removed the batch of this offset."""
    log = MemoryLog()
    for size in sizes:
        log.append(batch(*[b"v"] * size), now_ms=NOW, leader_epoch=0)
    end, stored = log.log_end_offset, batches(log)
    kept = [one for one in stored if not one.base_offset <= gap <= one.last_offset]
    source = SourceRecords()
    for letter, count in [*reads, *((offset, 1) for offset in range(end))]:
        first, stop = min(letter, end - 1), min(letter + count, end)
        while (position := source.first_unknown(first, stop)) < stop:
            found = tuple(one for one in kept if one.last_offset >= position)[:count]
            assert _take(source, LogRead(0, Errors.NONE, found, end, 0), position, stop) is Errors.NONE
    left = [offset for one in kept for offset in range(one.base_offset, one.last_offset + 1)]
    for copy in (True, False):
        assert [one.offset for one in source.contents(0, end, copy=copy, max_bytes=EVERYTHING)] == left
