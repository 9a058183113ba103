"""The queue of deadlines: what is due, what is stale, and how much it keeps."""

from __future__ import annotations

from shareq.leader.acquisition_locks import ROOM, AcquisitionLocks
from tests.leader.stand import Stand


def test_due_ranges_come_in_the_order_of_offsets_and_once() -> None:
    locks = AcquisitionLocks()
    for deadline_ms, first in ((30, 40), (10, 20), (20, 0)):
        locks.add(deadline_ms, first, first + 10)
    assert locks.next_ms(0) == 10
    assert locks.pop_due(9) == []
    assert locks.pop_due(20) == [(0, 10), (20, 30)]
    assert (locks.next_ms(0), locks.pop_due(20)) == (30, [])


def test_what_lies_below_the_floor_is_forgotten() -> None:
    locks = AcquisitionLocks()
    locks.add(10, 0, 10)
    locks.add(20, 5, 15)
    assert [locks.next_ms(floor) for floor in (9, 10, 14, 15)] == [10, 20, 20, None]


def test_rebuilding_makes_room_for_as_much_again() -> None:
    locks = AcquisitionLocks()
    for deadline_ms in range(ROOM):
        locks.add(deadline_ms, 0, 1)
    assert not locks.crowded
    locks.add(ROOM, 0, 1)
    assert locks.crowded
    locks.rebuild([(7, 0, 1), (5, 1, 2)])
    assert (locks.crowded, locks.next_ms(0)) == (False, 5)


def test_renewing_for_ever_keeps_no_more_than_is_held() -> None:
    stand = Stand()
    stand.fetch("m", "0-9")
    for now_ms in range(1, 1000):
        stand.now_ms = now_ms
        assert stand.outcome("m", "0-9:4") is None
    assert len(stand.partition._locks._heap) <= ROOM + 2
    assert stand.tick(30998) is None
    assert stand.tick(30999) is not None


def test_next_deadline() -> None:
    stand = Stand()
    assert stand.partition.next_deadline_ms is None
    stand.fetch("m", "0-4")
    stand.now_ms = 5
    stand.fetch("m", "5-9")
    assert stand.partition.next_deadline_ms == 30000
    stand.say("m", "0-4:1")
    assert stand.partition.next_deadline_ms == 30005
    stand.say("m", "5-9:1")
    assert stand.partition.next_deadline_ms is None


def test_locks_below_the_spso_survive_a_rebuild() -> None:
    """The log start has moved past records that are held: their locks still run out, else the window never empties."""
    stand = Stand()
    stand.fetch("m", "0-4")
    stand.fetch("n", "5-9")
    stand.log_start(5)
    for now_ms in range(1, 2 * ROOM):
        stand.now_ms = now_ms
        stand.outcome("n", "5-9:4")
    assert len(stand.partition._locks._heap) < 2 * ROOM, "the heap has been rebuilt"
    assert stand.partition.next_deadline_ms == 30000, "the lock of 0-4"
    stand.say("n", "5-9:1")
    assert (stand.spso, stand.state) == (5, "0-4 ACQ(1)@m, 5-9 ACK(1)")
    stand.ok(stand.tick(30000))
    assert (stand.spso, stand.state) == (10, "")
