"""Rules of the share-partition that could be broken by hand without any other test noticing."""

from __future__ import annotations

import pytest

from shareq.leader.acquisition_locks import ROOM
from shareq.model.states import PartitionLoadState
from tests.leader.share_partition_harness import SharePartitionHarness, show


@pytest.mark.parametrize("status", [status for status in PartitionLoadState if status is not PartitionLoadState.ACTIVE])
def test_only_an_active_share_partition_acquires(status: PartitionLoadState) -> None:
    """Fetches do not ask one that is not: this is the share-partition's own word."""
    harness = SharePartitionHarness()
    harness.partition.status = status
    assert harness.fetch("m", "0-9") == ""
    assert (harness.records, harness.state, harness.speo) == ([], "", 0)


@pytest.mark.parametrize(
    ("committed", "acquired"),
    [pytest.param(True, "5-9(1)", id="read_committed"), pytest.param(False, "0-4(1), 5-9(1)", id="read_uncommitted")],
)
def test_aborted_records_are_archived_for_read_committed_only(committed: bool, acquired: str) -> None:
    """The group may be configured anew while the log is being read: what holds then is what holds now."""
    harness = SharePartitionHarness(committed=committed)
    assert harness.fetch("m", "0-4:t,5-9", size=5, aborted="0-4") == acquired


def test_what_came_back_and_was_acquired_again_is_not_written_as_come_back() -> None:
    """Only settled states are stored: ACQUIRED is no state that a leader could be loaded from."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0-4")
    harness.fetch("m", "5-9")
    write = harness.ack("m", "0-9:1")
    harness.tick(30000)
    harness.fail(write)
    assert harness.state == "0-9 AV(1)"
    assert harness.fetch("n", "0-4") == "0-4(2)"
    assert show(harness.tick(30000)) == "start 0, dcc 0: 5-9 AV(1)"


def test_an_abort_ends_with_its_marker() -> None:
    """The producer's next transaction may be a good one. Markers are delivered: clients acknowledge them as gaps."""
    harness = SharePartitionHarness(committed=True)
    assert harness.fetch("m", "0-4:t,5:x,6-9:t,10:x", aborted="0-5") == "5-10(1)"


def test_a_lock_under_a_write_is_not_forgotten_among_many() -> None:
    """Locks that were given back are cleared away in bulk. One whose write is under way may be needed yet."""
    harness = SharePartitionHarness()
    harness.fetch("m", "0")
    write = harness.ack("m", "0:1")
    for offset in range(1, 2 * ROOM):
        harness.fetch("m", str(offset))
    harness.fail(write)
    assert harness.partition.next_deadline_ms == 30000
    harness.tick(30000)
    assert harness.state == f"0-{2 * ROOM - 1} AV(1)"
