"""Progress: a window that can move moves, and available records are delivered to fetches.

In most of these cases Apache Kafka makes no progress; DIFFERENCES.md lists them.
"""

from collections import Counter
from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.messages.share_state import StateBatch, WriteShareGroupStateRequest
from shareq.model.states import RecordState
from tests.leader.stage import Member, Stage, offsets

LOCKS_100 = {"share.partition.max.record.locks": "100"}
ALL: dict[str, Any] = {"max_wait_ms": 0, "max_bytes": 100_000, "max_records": 500, "batch_size": 500}
ACK, AR, AV = RecordState.ACKNOWLEDGED, RecordState.ARCHIVED, RecordState.AVAILABLE


def window(stage: Stage) -> tuple[int, int]:
    (led,) = stage.leader._partitions._leds.values()
    return led.share_partition.spso, led.share_partition.window_end


def store(stage: Stage, start_offset: int, *batches: StateBatch) -> None:
    """Write what a former leader left in the state topic."""
    write = WriteShareGroupStateRequest.Partition(
        partition=0,
        state_epoch=0,
        leader_epoch=0,
        start_offset=start_offset,
        delivery_complete_count=0,
        state_batches=batches,
    )
    stage.state().write(write)


def join(stage: Stage) -> Member:
    """A member with a session; its first fetch acquires nothing and loads the share-partitions."""
    member = stage.member("n", connection_id=9)
    member.fetch("0", max_wait_ms=0, max_records=0)
    return member


def fetched(member: Member, times: int = 3) -> list[dict[int, list[tuple[int, int, int]]]]:
    """Acquired runs of `times` fetches in a row."""
    found = []
    for _ in range(times):
        found.append(member.fetch(**ALL).acquired)
        member.stage.pass_time(0)
    return found


def move_leader_away_and_back(stage: Stage) -> None:
    epoch = stage.image.topics["t"].partitions[0].leader_epoch
    stage.set_leader(0, 1, epoch + 1)
    stage.set_leader(0, 0, epoch + 2)


# ---- full windows of terminal records --------------------------------------------------------------------------------


def accept_all_but_the_first(stage: Stage, records: int) -> None:
    """Hold record 0 and accept all others, in a window with a limit of 100."""
    stage.produce(0, 1, records - 1)
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0, max_records=0)
    assert member.fetch(**ALL).acquired == {0: [(0, records - 1, 1)]}
    member.acknowledge({0: f"1-{records - 1}:1"})
    assert window(stage) == (0, records)


@pytest.mark.parametrize("records", [100, 150])
@pytest.mark.parametrize("reload", [False, True], ids=["", "after a reload"])
def test_a_full_finished_window_moves_after_its_first_records_are_deleted(records: int, reload: bool) -> None:
    stage = Stage(group=LOCKS_100)
    accept_all_but_the_first(stage, records)
    stage.logs[0].start = 1
    stage.logs[0].batches = stage.logs[0].batches[1:]
    if reload:
        move_leader_away_and_back(stage)
    else:
        stage.pass_time(30_000)
    stage.produce(0, 20)
    member = join(stage)
    got = fetched(member)
    assert {0: [(records, records + 19, 1)]} in got
    assert window(stage) == (records, records + 20)


def test_a_full_finished_window_moves_after_its_first_record_is_compacted_and_reloaded() -> None:
    stage = Stage(group=LOCKS_100)
    accept_all_but_the_first(stage, 100)
    stage.logs[0].batches = stage.logs[0].batches[1:]
    move_leader_away_and_back(stage)
    member = join(stage)
    assert fetched(member) == [{}] * 3
    stage.produce(0, 20)
    got = fetched(member)
    assert {0: [(100, 119, 1)]} in got


@pytest.mark.parametrize("left", [True, False], ids=["a batch above the window", "nothing above the window"])
def test_a_window_passes_a_hole_at_its_start(left: bool) -> None:
    """{21-119 ACK} at SPSO 10 with 100 locks; the log has no record in 10-20, and perhaps none up to its end."""
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 120, 10)
    stage.logs[0].batches = stage.logs[0].batches[left:] if left else []
    store(stage, 10, StateBatch(21, 119, ACK, 1))
    member = join(stage)
    got = fetched(member)
    assert ({0: [(120, 129, 1)]} in got) == left
    assert window(stage) == ((120, 130) if left else (120, 120))
    stage.produce(0, 5)
    assert {0: [(130, 134, 1)]} in fetched(member)


def test_an_open_record_at_the_head_of_an_oversized_window_is_delivered_after_a_leader_change() -> None:
    stage = Stage(group=LOCKS_100)
    accept_all_but_the_first(stage, 150)
    move_leader_away_and_back(stage)
    member = join(stage)
    assert member.fetch(**ALL).acquired == {0: [(0, 0, 1)]}
    member.acknowledge({0: "0:1"})
    assert window(stage) == (150, 150)
    stage.produce(0, 20)
    assert member.fetch(**ALL).acquired == {0: [(150, 169, 1)]}


def test_a_window_moves_when_the_limit_is_lowered_below_its_size() -> None:
    """With room left, the SPSO waits for the next write; with the lower limit there is no room."""
    stage = Stage()
    accept_all_but_the_first(stage, 150)
    stage.logs[0].start = 1
    stage.logs[0].batches = stage.logs[0].batches[1:]
    stage.pass_time(30_000)
    member = join(stage)
    assert member.fetch(**ALL).acquired == {}
    assert window(stage) == (1, 150)
    stage.set_group(partition_max_record_locks="100")
    stage.pass_time(0)
    assert window(stage) == (150, 150)


@pytest.mark.parametrize("error", [Errors.COORDINATOR_NOT_AVAILABLE, Errors.NETWORK_EXCEPTION])
def test_a_full_window_moves_after_a_single_write_that_may_fail_first(error: Errors) -> None:
    stage = Stage(group=LOCKS_100)
    accept_all_but_the_first(stage, 150)
    stage.logs[0].start = 1
    stage.logs[0].batches = stage.logs[0].batches[1:]
    stage.pass_time(30_000)
    stage.hold = True
    before = len(stage.writes)
    member = join(stage)
    member.fetch(**ALL)
    stage.pass_time(60_000)
    assert (window(stage), len(stage.held)) == ((1, 150), 1), "the SPSO moves when the write has settled"
    stage.release(error=error)
    assert (window(stage), len(stage.writes) - before) == ((150, 150), 1)


# ---- holes -----------------------------------------------------------------------------------------------------------


def test_a_gap_window_without_holes_does_not_hold_the_spso() -> None:
    stage = Stage()
    stage.produce(0, 6)
    store(stage, 0, StateBatch(3, 3, AV, 1), StateBatch(4, 5, ACK, 1))
    member = join(stage)
    assert member.fetch(**ALL).acquired == {0: [(0, 2, 1), (3, 3, 2)]}
    member.acknowledge({0: "0-3:1"})
    assert window(stage) == (6, 6)


def test_the_first_hole_holds_the_spso() -> None:
    """0-2 and 6-7 were never stored: the SPSO passes 0-5 when they are accepted, not 6. BEHAVIOUR.md, 10."""
    stage = Stage()
    stage.produce(0, 3, 3, 4)
    store(stage, 0, StateBatch(3, 5, ACK, 1), StateBatch(8, 9, ACK, 1))
    member = join(stage)
    assert member.fetch(max_records=3, max_wait_ms=0, batch_size=3).acquired == {0: [(0, 2, 1)]}
    member.acknowledge({0: "0-2:1"})
    assert window(stage) == (6, 10)
    assert member.fetch(**ALL).acquired == {0: [(6, 7, 1)]}
    member.acknowledge({0: "6-7:1"})
    assert window(stage) == (10, 10)


def test_available_records_missing_up_to_the_end_of_the_log_are_archived() -> None:
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 110)
    store(stage, 0, StateBatch(0, 9, AV, 1), StateBatch(10, 109, ACK, 1))
    stage.logs[0].batches = []
    member = join(stage)
    assert member.fetch(**ALL).acquired == {}
    stage.pass_time(0)
    assert window(stage) == (110, 110)


def test_a_gap_longer_than_the_window_limit_is_passed() -> None:
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 1, 500, 10)
    del stage.logs[0].batches[1]
    member = join(stage)
    assert member.fetch(max_records=1, max_wait_ms=0).acquired == {0: [(0, 0, 1)]}
    member.acknowledge({0: "0:1"})
    assert member.fetch(**ALL).acquired == {0: [(501, 510, 1)]}


def test_a_released_record_beyond_the_window_limit_is_delivered() -> None:
    """The window spans 150 records with a limit of 100: 140 is above the end of a read for new records."""
    stage = Stage()
    stage.produce(0, 100, 25, 25)
    holder = stage.member("m")
    assert holder.fetch("0").acquired == {0: [(0, 149, 1)]}
    stage.set_group(partition_max_record_locks="100")
    holder.acknowledge({0: "140:2"})
    assert join(stage).fetch(**ALL).acquired == {0: [(140, 140, 2)]}


# ---- fetch offsets beyond the end of the log -------------------------------------------------------------------------


def test_a_fetch_beyond_the_end_of_the_log_waits_until_the_log_reaches_it() -> None:
    stage = Stage()
    stage.produce(0, 5)
    store(stage, 8)
    member = join(stage)
    exchange = member.fetch(max_wait_ms=500)
    assert exchange.waiting
    stage.pass_time(500)
    assert (exchange.acquired, exchange.errors) == ({}, {})
    exchange = member.fetch(max_wait_ms=500)
    stage.produce(0, 3)
    assert exchange.waiting
    stage.produce(0, 2)
    assert exchange.acquired == {0: [(8, 9, 1)]}


# ---- min bytes other than 1 ------------------------------------------------------------------------------------------


def test_two_fetches_with_min_bytes_do_not_block_each_other() -> None:
    stage = Stage(partitions=4)
    members = [stage.member(name, connection_id=i) for i, name in enumerate("ab")]
    limits: dict[str, Any] = {
        "max_wait_ms": 3000,
        "min_bytes": 2000,
        "max_bytes": 100_000,
        "max_records": 500,
        "batch_size": 500,
    }
    exchanges = [member.fetch("0123", **limits) for member in members]
    for partition, size in ((1, 900), (0, 900), (2, 100)):
        stage.produce(partition, 1, size=size)
    assert [exchange.waiting for exchange in exchanges] == [True, True]
    stage.produce(3, 1, size=100)
    assert [exchange.waiting for exchange in exchanges] == [False, True]
    assert sorted(exchanges[0].acquired) == [0, 1, 2, 3]
    stage.pass_time(2999)
    assert exchanges[1].waiting
    stage.pass_time(1)
    assert exchanges[1].acquired == {}


@pytest.mark.parametrize("waiting", [2, 3, 8])
def test_fetches_with_min_bytes_read_one_at_a_time(waiting: int) -> None:
    stage = Stage(partitions=3)
    limits: dict[str, Any] = {
        "max_wait_ms": 3000,
        "min_bytes": 300,
        "max_bytes": 100_000,
        "max_records": 500,
        "batch_size": 500,
    }
    members = [stage.member(f"m{i}", connection_id=i) for i in range(waiting)]
    for member in members:
        member.fetch("012", max_wait_ms=0, max_records=0)
    exchanges = [member.fetch(**limits) for member in members]
    stage.hold_reads = True
    for partition in range(3):
        for _ in range(waiting):
            stage.produce(partition, 1, size=100)
    while stage.held_logs:
        stage.release_logs()
    taken = Counter((p, o) for e in exchanges if not e.waiting for p, runs in e.acquired.items() for o in offsets(runs))
    assert sorted(taken) == [(partition, offset) for partition in range(3) for offset in range(waiting)]
    assert set(taken.values()) == {1}


def test_a_queued_fetch_with_min_bytes_can_time_out() -> None:
    stage = Stage(partitions=2)
    first, second = stage.member("a", connection_id=1), stage.member("b", connection_id=2)
    for member in (first, second):
        member.fetch("01", max_wait_ms=0)
    stage.produce(0, 1, size=100)
    stage.hold_reads = True
    slow = first.fetch(min_bytes=1000, max_wait_ms=5000)
    quick = second.fetch(min_bytes=1000, max_wait_ms=500)
    assert [read.topic_partition.partition for read in stage.held_logs] == [0], (
        "one fetch reads, the other waits for its turn"
    )
    stage.pass_time(500)
    assert quick.acquired == {}
    stage.hold_reads = False
    stage.release_logs()
    assert slow.waiting
    third = second.fetch(min_bytes=1000, max_wait_ms=500)
    stage.produce(1, 1, size=900)
    assert sorted(slow.acquired) == [0, 1]
    assert third.waiting


@pytest.mark.parametrize("more", [0, 5], ids=["the log has no more", "the log has more"])
def test_min_bytes_0_is_met_when_a_full_window_has_room_again(more: int) -> None:
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 100)
    holder = stage.member("m")
    assert holder.fetch("0").acquired == {0: [(0, 99, 1)]}
    exchange = stage.member("n", connection_id=2).fetch("0", min_bytes=0, max_wait_ms=5000)
    if more:
        stage.produce(0, more)
    assert exchange.waiting
    holder.acknowledge({0: "0-99:1"})
    assert exchange.acquired == ({0: [(100, 99 + more, 1)]} if more else {})
