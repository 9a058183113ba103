"""Loading of a share-partition from durable state; invalid state fails the load. BEHAVIOUR.md, 8 and 9."""

from __future__ import annotations

import pytest

from shareq.leader.share_partition import SharePartition
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.ids import SharePartitionKey, TopicId
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import PartitionLoadState


def loaded(start_offset: int, *batches: tuple[int, int, int, int]) -> SharePartition:
    partition = SharePartition(SharePartitionKey("g", TopicId("t" * 22), 0), "orders", leader_epoch=3, traced=False)
    state = tuple(StateBatch(*batch) for batch in batches)
    assert partition.load(5, start_offset, state, config=GroupConfig()) is (
        partition.status is PartitionLoadState.ACTIVE
    )
    return partition


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([(9, 12, 0, 1)], id="starts below the start offset"),
        pytest.param([(12, 11, 0, 1)], id="last offset below the first"),
        pytest.param([(10, 14, 0, 1), (14, 20, 2, 1)], id="overlapping"),
        pytest.param([(10, 14, 1, 1)], id="acquired is never stored"),
        pytest.param([(10, 14, 7, 1)], id="unknown state"),
    ],
)
def test_invalid_state_fails_the_load(batches: list[tuple[int, int, int, int]]) -> None:
    partition = loaded(10, *batches)
    assert partition.status is PartitionLoadState.FAILED
    assert partition.runs() == ()


@pytest.mark.parametrize(
    ("batches", "spso", "window_end"),
    [
        pytest.param([], 10, 10, id="no batches"),
        pytest.param([(10, 14, 2, 1), (15, 19, 0, 2)], 15, 20, id="a terminal prefix is passed"),
        pytest.param([(10, 14, 3, 5), (15, 19, 0, 2)], 10, 20, id="archiving records are in flight"),
        pytest.param([(12, 14, 0, 1)], 10, 15, id="a hole at the start"),
        pytest.param([(15, 20, 2, 1), (10, 14, 0, 1)], 10, 21, id="unsorted batches"),
    ],
)
def test_valid_state_is_loaded(batches: list[tuple[int, int, int, int]], spso: int, window_end: int) -> None:
    partition = loaded(10, *batches)
    assert (partition.status, partition.spso, partition.window_end) == (PartitionLoadState.ACTIVE, spso, window_end)
    assert partition.state_epoch == 5


def test_the_holes_of_a_window_that_has_grown_are_natural() -> None:
    window = Window(None)
    assert window.load(0, [StateBatch(5, 9, 0, 1)], 5)
    window.grow(10)
    assert window.next_fetch_offset == 0, "it has not grown: a record may be in the hole"
    window.grow(11)
    assert window.next_fetch_offset == 5
