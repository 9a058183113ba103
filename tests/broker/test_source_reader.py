"""What a writer of dead letters learns from reads of the log of their records."""

from __future__ import annotations

import pytest

from shareq.broker.dead_letters.source_reader import _take
from shareq.broker.dead_letters.source_records import SourceRecords
from shareq.model.actor import LogRead
from shareq.model.errors import Errors


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
