"""The queue of lock deadlines: due ranges, outdated entries, and its size."""

from __future__ import annotations

from shareq.leader.acquisition_locks import ROOM, AcquisitionLocks
from tests.leader.share_partition_harness import SharePartitionHarness


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
    harness = SharePartitionHarness()
    harness.fetch("m", "0-9")
    for now_ms in range(1, 1000):
        harness.now_ms = now_ms
        assert harness.outcome("m", "0-9:4") is None
    assert len(harness.partition._locks._heap) <= ROOM + 2
    assert harness.tick(30998) is None
    assert harness.tick(30999) is not None


def test_next_deadline_is_that_of_the_oldest_held_lock() -> None:
    harness = SharePartitionHarness()
    assert harness.partition.next_deadline_ms is None
    harness.fetch("m", "0-4")
    harness.now_ms = 5
    harness.fetch("m", "5-9")
    assert harness.partition.next_deadline_ms == 30000
    harness.acknowledge("m", "0-4:1")
    assert harness.partition.next_deadline_ms == 30005
    harness.acknowledge("m", "5-9:1")
    assert harness.partition.next_deadline_ms is None


def test_locks_below_the_spso_survive_a_rebuild() -> None:
    """After a log start move the locks of records below the SPSO still expire; otherwise the SPSO could not pass them.

    BEHAVIOUR.md, 42.
    """
    harness = SharePartitionHarness()
    harness.fetch("m", "0-4")
    harness.fetch("n", "5-9")
    harness.log_start(5)
    for now_ms in range(1, 2 * ROOM):
        harness.now_ms = now_ms
        harness.outcome("n", "5-9:4")
    assert len(harness.partition._locks._heap) < 2 * ROOM, "the heap was rebuilt"
    assert harness.partition.next_deadline_ms == 30000, "the lock of 0-4"
    harness.acknowledge("n", "5-9:1")
    assert (harness.spso, harness.state) == (5, "0-4 ACQ(1)@m, 5-9 ACK(1)")
    harness.ok(harness.tick(30000))
    assert (harness.spso, harness.state) == (10, "")
