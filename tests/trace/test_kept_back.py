"""Which record of its key keeps a record back."""

from __future__ import annotations

import pytest

from shareq.model.events import KeyRange
from shareq.model.states import RecordState
from shareq.trace import SharePartitionState
from shareq.trace.analysis.kept_back import KeptBack, kept_back
from shareq.trace.analysis.runs import RecordStatus

FREE = RecordStatus(RecordState.AVAILABLE, 0)
HELD = RecordStatus(RecordState.ACQUIRED, 1, "anna", 99)


@pytest.mark.parametrize(
    ("held", "most", "expected"),
    [
        pytest.param(5, 1, KeptBack("a", 5, "anna"), id="by the record that is held, also a later one"),
        pytest.param(None, 1, KeptBack("a", 0, None), id="by the first that waits"),
        pytest.param(None, 2, KeptBack("a", 0, None), id="by as many as may be in flight"),
        pytest.param(None, 3, None, id="not by fewer"),
        pytest.param(2, 3, None, id="not by a record of another key"),
    ],
)
def test_a_record_is_kept_back(held: int | None, most: int, expected: KeptBack | None) -> None:
    """Offset 4, behind 0 and 1 with the same key."""
    state = SharePartitionState("g", "t", 0)
    state.keys = (KeyRange(0, 2, "a"), KeyRange(2, 4, "b"), KeyRange(4, 6, "a"))
    state.key_max_in_flight = most
    state.runs.assign(0, 6, FREE)
    if held is not None:
        state.runs.assign(held, held + 1, HELD)
    assert kept_back(state, 4) == expected


def test_a_record_without_a_known_key_is_not_kept_back() -> None:
    assert kept_back(SharePartitionState("g", "t", 0), 4) is None
