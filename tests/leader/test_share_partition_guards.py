"""Single rules of the share-partition that the other tests leave open."""

from __future__ import annotations

import pytest

from shareq.leader.acquisition_locks import ROOM
from shareq.model.states import PartitionLoadState
from tests.leader.share_partition_stage import SharePartitionStage, show


@pytest.mark.parametrize("status", [status for status in PartitionLoadState if status is not PartitionLoadState.ACTIVE])
def test_only_an_active_share_partition_acquires(status: PartitionLoadState) -> None:
    """Fetches do not acquire from an inactive share-partition; this checks `acquire` itself. BEHAVIOUR.md, 16."""
    stage = SharePartitionStage()
    stage.partition.status = status
    assert stage.fetch("m", "0-9") == ""
    assert (stage.records, stage.state, stage.window_end) == ([], "", 0)


@pytest.mark.parametrize(
    ("committed", "acquired"),
    [pytest.param(True, "5-9(1)", id="read_committed"), pytest.param(False, "0-4(1), 5-9(1)", id="read_uncommitted")],
)
def test_aborted_records_are_archived_for_read_committed_only(committed: bool, acquired: str) -> None:
    """The configuration can change while the log is being read; the value at the acquire counts. BEHAVIOUR.md, 30."""
    stage = SharePartitionStage(committed=committed)
    assert stage.fetch("m", "0-4:t,5-9", size=5, aborted="0-4") == acquired


def test_a_released_and_reacquired_record_is_not_written_as_available() -> None:
    """Only settled states are written: a leader cannot load ACQUIRED."""
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("m", "5-9")
    write = stage.ack("m", "0-9:1")
    stage.tick(30000)
    stage.fail(write)
    assert stage.state == "0-9 AV(1)"
    assert stage.fetch("n", "0-4") == "0-4(2)"
    assert show(stage.tick(30000)) == "start 0, dcc 0: 5-9 AV(1)"


def test_records_after_an_abort_marker_are_delivered() -> None:
    """The producer's next transaction can commit. Clients acknowledge markers as gaps. BEHAVIOUR.md, 30."""
    stage = SharePartitionStage(committed=True)
    assert stage.fetch("m", "0-4:t,5:x,6-9:t,10:x", aborted="0-5") == "5-10(1)"


def test_the_lock_of_a_record_with_a_write_in_flight_survives_a_rebuild() -> None:
    """Bulk removal of the locks of released records keeps that of a record with a write in flight. BEHAVIOUR.md, 42."""
    stage = SharePartitionStage()
    stage.fetch("m", "0")
    write = stage.ack("m", "0:1")
    for offset in range(1, 2 * ROOM):
        stage.fetch("m", str(offset))
    stage.fail(write)
    assert stage.partition.next_deadline_ms == 30000
    stage.tick(30000)
    assert stage.state == f"0-{2 * ROOM - 1} AV(1)"
