"""The queue of lock deadlines: due ranges, outdated entries, and its size."""

from __future__ import annotations

from shareq.leader.acquisition_locks import ROOM, AcquisitionLocks
from tests.leader.share_partition_stage import SharePartitionStage


def test_due_ranges_are_returned_once_in_the_order_of_offsets() -> None:
    locks = AcquisitionLocks()
    for deadline_ms, first in ((30, 40), (10, 20), (20, 0)):
        locks.add(deadline_ms, first, first + 10)
    assert locks.next_ms(0) == 10
    assert locks.pop_due(9) == []
    assert locks.pop_due(20) == [(0, 10), (20, 30)]
    assert (locks.next_ms(0), locks.pop_due(20)) == (30, [])


def test_ranges_below_the_floor_are_dropped() -> None:
    locks = AcquisitionLocks()
    locks.add(10, 0, 10)
    locks.add(20, 5, 15)
    assert [locks.next_ms(floor) for floor in (9, 10, 14, 15)] == [10, 20, 20, None]


def test_a_rebuild_makes_room() -> None:
    locks = AcquisitionLocks()
    for deadline_ms in range(ROOM):
        locks.add(deadline_ms, 0, 1)
    assert not locks.crowded
    locks.add(ROOM, 0, 1)
    assert locks.crowded
    locks.rebuild([(7, 0, 1), (5, 1, 2)])
    assert (locks.crowded, locks.next_ms(0)) == (False, 5)


def test_renewals_do_not_grow_the_heap() -> None:
    stage = SharePartitionStage()
    stage.fetch("m", "0-9")
    for now_ms in range(1, 1000):
        stage.now_ms = now_ms
        assert stage.outcome("m", "0-9:4") is None
    assert len(stage.partition._locks._heap) <= ROOM + 2
    assert stage.tick(30998) is None
    assert stage.tick(30999) is not None


def test_next_deadline_is_that_of_the_oldest_held_lock() -> None:
    stage = SharePartitionStage()
    assert stage.partition.next_deadline_ms is None
    stage.fetch("m", "0-4")
    stage.now_ms = 5
    stage.fetch("m", "5-9")
    assert stage.partition.next_deadline_ms == 30000
    stage.acknowledge("m", "0-4:1")
    assert stage.partition.next_deadline_ms == 30005
    stage.acknowledge("m", "5-9:1")
    assert stage.partition.next_deadline_ms is None


def test_locks_below_the_spso_survive_a_rebuild() -> None:
    """After a log start move the locks of records below the SPSO still expire; otherwise the SPSO could not pass them.

    BEHAVIOUR.md, 42.
    """
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.fetch("n", "5-9")
    stage.log_start(5)
    for now_ms in range(1, 2 * ROOM):
        stage.now_ms = now_ms
        stage.outcome("n", "5-9:4")
    assert len(stage.partition._locks._heap) < 2 * ROOM, "the heap was rebuilt"
    assert stage.partition.next_deadline_ms == 30000, "the lock of 0-4"
    stage.acknowledge("n", "5-9:1")
    assert (stage.spso, stage.state) == (5, "0-4 ACQ(1)@m, 5-9 ACK(1)")
    stage.ok(stage.tick(30000))
    assert (stage.spso, stage.state) == (10, "")
