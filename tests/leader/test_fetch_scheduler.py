"""Fetch scheduling: which fetches wait, what ends the wait, limits of bytes and records, and fetches of several
members.

BEHAVIOUR.md, 45 to 55.
"""

from typing import Any

import pytest

from shareq.model.actor import MAX_OFFSET
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionDropped
from shareq.model.ids import TopicPartition
from tests.leader.stage import Stage

E = Errors
LOCKS_100 = {"share.partition.max.record.locks": "100"}


# ---- fetches that do not wait ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"max_records": 0}, id="no records"),
        pytest.param({"max_bytes": 0}, id="no bytes"),
        pytest.param({"max_wait_ms": 0}, id="no wait"),
    ],
)
def test_a_fetch_without_room_or_max_wait_does_not_wait(limits: dict[str, Any]) -> None:
    exchange = Stage().member("m").fetch("0", **limits)
    assert (exchange.error, exchange.acquired) == (E.NONE, {})


def test_a_fetch_of_a_session_without_partitions_does_not_wait() -> None:
    assert Stage().member("m").fetch().parts == {}


def test_a_fetch_with_available_records_does_not_wait() -> None:
    stage = Stage()
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    stage.produce(0, 5)
    assert member.fetch(max_wait_ms=0).acquired == {0: [(0, 4, 1)]}


def test_min_bytes_0_is_met_by_any_partition_that_can_acquire() -> None:
    stage = Stage(group=LOCKS_100)
    member = stage.member("m")
    assert member.fetch("0", min_bytes=0).acquired == {}
    stage.produce(0, 100)
    assert member.fetch(min_bytes=0).acquired == {0: [(0, 99, 1)]}
    full = member.fetch(min_bytes=0)
    assert full.waiting, "a full window cannot acquire"
    stage.pass_time(500)
    assert full.acquired == {}


@pytest.mark.parametrize(
    ("min_bytes", "done", "ends"),
    [
        pytest.param(1, 0, 100, id="one byte: up to the window's limit"),
        pytest.param(1, 30, 130, id="one byte: up to the moved window's limit"),
        pytest.param(2, 0, None, id="two bytes: without end, to see if there are more"),
    ],
)
def test_the_log_is_read_only_as_far_as_records_could_be_acquired(min_bytes: int, done: int, ends: int | None) -> None:
    stage = Stage(group=LOCKS_100)
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    stage.produce(0, *[10] * 30)
    if done:
        assert member.fetch(max_records=done, max_wait_ms=0).acquired == {0: [(0, 29, 1)]}
        member.acknowledge({0: "0-29:1"})
    stage.hold_reads = True
    member.fetch(min_bytes=min_bytes)
    (read,) = stage.held_logs
    assert read.end_offset == (MAX_OFFSET if ends is None else ends)


# ---- what ends the wait ----------------------------------------------------------------------------------------------


def test_growth_of_the_log_ends_the_wait() -> None:
    stage = Stage()
    exchange = stage.member("m").fetch("0")
    assert exchange.waiting
    stage.produce(0, 5)
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_max_wait_ends_the_wait_exactly() -> None:
    stage = Stage()
    exchange = stage.member("m").fetch("0", max_wait_ms=700)
    stage.pass_time(699)
    assert exchange.waiting
    stage.pass_time(1)
    assert exchange.acquired == {}
    assert stage.leader.wake_at_ms is None


def test_a_released_record_ends_the_wait() -> None:
    stage = Stage()
    stage.produce(0, 5)
    holder, waiter = stage.member("m"), stage.member("n")
    holder.fetch("0")
    exchange = waiter.fetch("0")
    assert exchange.waiting
    holder.acknowledge({0: "1:2"})
    assert exchange.acquired == {0: [(1, 1, 2)]}


def test_a_released_record_ends_the_wait_when_its_write_settles() -> None:
    stage = Stage()
    stage.produce(0, 5)
    holder, waiter = stage.member("m"), stage.member("n")
    holder.fetch("0")
    exchange = waiter.fetch("0")
    stage.hold = True
    holder.acknowledge({0: "1:2"})
    assert exchange.waiting
    stage.release()
    assert exchange.acquired == {0: [(1, 1, 2)]}


def test_room_in_the_window_ends_the_wait() -> None:
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 100, 10)
    holder, waiter = stage.member("m"), stage.member("n")
    assert holder.fetch("0").acquired == {0: [(0, 99, 1)]}
    exchange = waiter.fetch("0")
    assert exchange.waiting
    holder.acknowledge({0: "50:1"})
    assert exchange.waiting, "the window has not moved"
    holder.acknowledge({0: "0-49:1"})
    assert exchange.acquired == {0: [(100, 109, 1)]}


def test_a_higher_lock_limit_ends_the_wait() -> None:
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 100, 10)
    stage.member("m").fetch("0")
    exchange = stage.member("n").fetch("0")
    assert exchange.waiting
    stage.set_group(partition_max_record_locks="200")
    assert exchange.acquired == {0: [(100, 109, 1)]}


def test_an_expired_lock_ends_the_wait() -> None:
    stage = Stage()
    stage.produce(0, 5)
    stage.member("m").fetch("0")
    exchange = stage.member("n").fetch("0", max_wait_ms=60_000)
    stage.pass_time(29_999)
    assert exchange.waiting
    stage.pass_time(1)
    assert exchange.acquired == {0: [(0, 4, 2)]}


def test_the_end_of_loading_ends_the_wait() -> None:
    stage = Stage()
    stage.produce(0, 5)
    stage.hold = True
    exchange = stage.member("m").fetch("0")
    assert exchange.waiting
    stage.release()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_max_wait_ends_the_wait_for_loading() -> None:
    stage = Stage()
    stage.produce(0, 5)
    stage.hold = True
    member = stage.member("m")
    exchange = member.fetch("0")
    stage.pass_time(500)
    assert (exchange.error, exchange.acquired) == (E.NONE, {})
    stage.release()
    assert member.fetch().acquired == {0: [(0, 4, 1)]}


def test_an_error_of_the_log_ends_the_wait() -> None:
    stage = Stage()
    stage.produce(0, 5)
    stage.logs[0].error = E.KAFKA_STORAGE_ERROR
    member = stage.member("m")
    assert member.fetch("0").errors == {0: E.KAFKA_STORAGE_ERROR}
    stage.logs[0].error = E.NONE
    assert member.fetch().acquired == {0: [(0, 4, 1)]}


@pytest.mark.parametrize("error", [E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_log_that_has_moved_drops_the_share_partition(error: Errors) -> None:
    stage = Stage(traced=True)
    stage.produce(0, 5, 5)
    member, other = stage.member("m"), stage.member("n")
    member.fetch("0", max_records=5)
    stage.logs[0].error = error
    assert member.fetch().errors == {0: error}
    assert [e.reason for e in stage.events if isinstance(e, SharePartitionDropped)] == [
        f"the log could not be read: {error.name}"
    ]
    stage.logs[0].error = E.NONE
    assert other.fetch("0").acquired == {0: [(0, 9, 1)]}, "loaded again"


def test_max_wait_during_a_read_waits_for_the_read() -> None:
    stage = Stage()
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    exchange = member.fetch(min_bytes=1000)
    stage.hold_reads = True
    stage.produce(0, 5)
    stage.pass_time(500)
    assert exchange.waiting, "until the log has been read"
    stage.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_growth_during_a_read_is_fetched() -> None:
    stage = Stage()
    stage.hold_reads = True
    exchange = stage.member("m").fetch("0")
    answers, stage.held_logs = [stage.logs[0].read(effect) for effect in stage.held_logs], []
    stage.produce(0, 5)
    for answer in answers:
        stage.deliver(answer)
    stage.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_growth_during_the_first_read_is_fetched() -> None:
    stage = Stage()
    member = stage.member("m")
    member.fetch("0", max_wait_ms=0)
    stage.set_image()  # forgets the known end of the log
    stage.hold_reads = True
    exchange = member.fetch()
    (stale,) = [stage.logs[0].read(effect) for effect in stage.held_logs]
    stage.held_logs = []
    stage.produce(0, 5)
    stage.deliver(stale)
    stage.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_growth_of_another_partition_during_a_read_is_fetched() -> None:
    stage = Stage(partitions=2)
    member = stage.member("m")
    member.fetch("01", max_wait_ms=0)
    stage.produce(0, 5)
    stage.hold_reads = True
    exchange = member.fetch(min_bytes=150)
    stage.produce(1, 5)
    while stage.held_logs:
        stage.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_growth_of_a_visited_partition_during_the_read_of_another_is_fetched() -> None:
    stage = Stage(partitions=2)
    member = stage.member("m")
    member.fetch("01", max_wait_ms=0)
    member.fetch(max_wait_ms=0)
    stage.produce(1, 5)
    stage.hold_reads = True
    exchange = member.fetch(min_bytes=150)
    assert [effect.topic_partition.partition for effect in stage.held_logs] == [1]
    stage.produce(0, 5)
    while stage.held_logs:
        stage.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_growth_of_a_visited_partition_during_a_retry_is_fetched() -> None:
    stage = Stage(partitions=2)
    member = stage.member("m")
    member.fetch("01", max_wait_ms=0)
    member.fetch(max_wait_ms=0)
    exchange = member.fetch(min_bytes=200)
    stage.hold_reads = True
    stage.produce(1, 5)
    assert [effect.topic_partition.partition for effect in stage.held_logs] == [1]
    stage.produce(0, 5)
    while stage.held_logs:
        stage.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_loss_of_a_visited_partition_during_a_read_is_reported() -> None:
    stage = Stage(partitions=2)
    member = stage.member("m")
    member.fetch("01", max_wait_ms=0)
    member.fetch(max_wait_ms=0)
    stage.produce(1, 5)
    stage.hold_reads = True
    exchange = member.fetch(min_bytes=150)
    stage.set_leader(0, 1, 1)
    stage.release_logs()
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    stage.hold_reads = False
    assert member.fetch().acquired == {1: [(0, 4, 1)]}


def test_loss_of_a_partition_after_its_own_read_is_reported() -> None:
    """The fetch holds the lock of the lost partition, and reads another one before it would wait. BEHAVIOUR.md, 53."""
    stage = Stage(partitions=2)
    member = stage.member("m")
    member.fetch("01", max_wait_ms=0)
    for partition in (0, 1):
        stage.produce(partition, 1)
    stage.hold_reads = True
    exchange = member.fetch(min_bytes=1000)
    stage.release_logs()
    assert [read.topic_partition.partition for read in stage.held_logs] == [1]
    stage.set_leader(0, 1, 1)
    stage.release_logs()
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}


def test_loss_of_a_partition_during_a_retry_is_reported() -> None:
    stage = Stage(partitions=2)
    exchange = stage.member("m").fetch("01", min_bytes=1000)
    stage.hold_reads = True
    stage.produce(1, 5)
    stage.set_leader(0, 1, 1)
    assert exchange.waiting, "until the log has been read"
    stage.release_logs()
    assert (exchange.errors, exchange.acquired) == (
        {0: E.NOT_LEADER_OR_FOLLOWER, 1: E.NONE},
        {1: [(0, 4, 1)]},
    )


# ---- min bytes -------------------------------------------------------------------------------------------------------


def test_min_bytes_are_met_by_growth() -> None:
    stage = Stage()
    exchange = stage.member("m").fetch("0", min_bytes=250)
    stage.produce(0, 5, 5)
    assert exchange.waiting
    stage.produce(0, 5)
    assert exchange.acquired == {0: [(0, 14, 1)]}


def test_min_bytes_are_met_by_the_sum_of_partitions() -> None:
    stage = Stage(partitions=2)
    exchange = stage.member("m").fetch("01", min_bytes=200)
    stage.produce(0, 5)
    assert exchange.waiting
    stage.produce(1, 5)
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_min_bytes_are_met_by_the_bytes_after_a_released_record() -> None:
    stage = Stage()
    stage.produce(0, 5, 5)
    holder = stage.member("m")
    holder.fetch("0")
    exchange = stage.member("n").fetch("0", min_bytes=150)
    holder.acknowledge({0: "0:2"})
    assert exchange.acquired == {0: [(0, 0, 2)]}, "the bytes read count, not those acquired, as in Kafka"


def test_max_wait_ends_a_fetch_below_min_bytes() -> None:
    stage = Stage()
    stage.produce(0, 5)
    exchange = stage.member("m").fetch("0", min_bytes=1000)
    assert exchange.waiting
    stage.pass_time(500)
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_min_bytes_never_exceed_max_bytes() -> None:
    stage = Stage()
    stage.produce(0, 5)
    assert stage.member("m").fetch("0", min_bytes=1000, max_bytes=100).acquired == {0: [(0, 4, 1)]}


def test_a_read_cut_by_max_bytes_counts_the_maximum_it_was_allowed() -> None:
    stage = Stage()
    stage.produce(0, 5, 5, size=60)
    assert stage.member("m").fetch("0", min_bytes=100, max_bytes=100).acquired == {0: [(0, 4, 1)]}


# ---- max bytes -------------------------------------------------------------------------------------------------------


def test_a_batch_larger_than_max_bytes_is_still_delivered() -> None:
    """BEHAVIOUR.md, hard case 27."""
    stage = Stage(partitions=2)
    stage.produce(0, 1, size=5000)
    stage.produce(1, 1, size=5000)
    member = stage.member("m")
    assert member.fetch("01", max_bytes=100).acquired == {0: [(0, 0, 1)]}
    assert member.fetch(max_bytes=100).acquired == {1: [(0, 0, 1)]}


def test_max_bytes_are_divided_between_partitions() -> None:
    stage = Stage(partitions=2)
    for partition in range(2):
        stage.produce(partition, *[1] * 10)
    assert stage.member("m").fetch("01", max_bytes=600).acquired == {0: [(0, 2, 1)], 1: [(0, 2, 1)]}


def test_fetch_max_bytes_of_the_broker_caps_a_fetch() -> None:
    stage = Stage(partitions=2, broker={"fetch.max.bytes": 1024})
    for partition in range(2):
        stage.produce(partition, *[1] * 20)
    assert stage.member("m").fetch("01", max_bytes=1 << 20).acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_fetch_max_bytes_of_the_broker_caps_min_bytes() -> None:
    stage = Stage(broker={"fetch.max.bytes": 1024})
    stage.produce(0, *[1] * 20)
    exchange = stage.member("m").fetch("0", max_bytes=1 << 20, min_bytes=1 << 20, max_wait_ms=300)
    assert exchange.acquired == {0: [(0, 9, 1)]}


def test_unused_bytes_of_a_partition_go_to_the_next() -> None:
    stage = Stage(partitions=2)
    stage.produce(0, 1)
    stage.produce(1, *[1] * 10)
    assert stage.member("m").fetch("01", max_bytes=600).acquired == {0: [(0, 0, 1)], 1: [(0, 4, 1)]}


def test_only_the_first_partition_with_records_may_exceed_its_share() -> None:
    stage = Stage(partitions=3)
    stage.produce(0, 1)
    stage.produce(1, 1, size=500)
    stage.produce(2, 1)
    assert stage.member("m").fetch("012", max_bytes=600).acquired == {0: [(0, 0, 1)], 2: [(0, 0, 1)]}


def test_with_fewer_bytes_than_partitions_the_first_is_read() -> None:
    stage = Stage(partitions=3)
    for partition in range(3):
        stage.produce(partition, 1)
    member = stage.member("m")
    member.fetch("012", max_wait_ms=0, max_records=0)
    stage.hold_reads = True
    exchange = member.fetch(max_bytes=2)
    assert [effect.max_bytes for effect in stage.held_logs] == [1]
    stage.release_logs()
    assert exchange.acquired == {0: [(0, 0, 1)]}


# ---- max records -----------------------------------------------------------------------------------------------------


def test_records_of_one_partition_lower_the_limit_of_the_next() -> None:
    stage = Stage(partitions=3)
    for partition in range(3):
        stage.produce(partition, *[1] * 10)
    assert stage.member("m").fetch("012", max_records=15).acquired == {0: [(0, 9, 1)], 1: [(0, 4, 1)]}


def test_partitions_beyond_max_records_are_not_read() -> None:
    stage = Stage(partitions=9)
    member = stage.member("m")
    member.fetch("012345678", max_wait_ms=0)
    for partition in range(9):
        stage.produce(partition, 10)
    stage.hold_reads = True
    exchange = member.fetch(epoch=1, max_records=10)
    assert len(stage.held_logs) == 1
    stage.release_logs()
    assert (len(exchange.acquired), stage.held_logs) == (1, [])


def test_partitions_are_read_in_growing_waves() -> None:
    stage = Stage(partitions=9)
    member = stage.member("m")
    member.fetch("012345678", max_wait_ms=0)
    for partition in range(9):
        stage.produce(partition, 1)
    stage.hold_reads = True
    exchange = member.fetch()
    waves = []
    while stage.held_logs:
        waves.append(len(stage.held_logs))
        stage.release_logs()
    assert (waves, len(exchange.acquired)) == ([1, 2, 4, 2], 9)


# ---- several fetches -------------------------------------------------------------------------------------------------


def test_of_two_waiting_members_the_first_acquires() -> None:
    stage = Stage()
    first, second = stage.member("m").fetch("0"), stage.member("n").fetch("0")
    stage.produce(0, 5)
    assert (first.acquired, second.waiting) == ({0: [(0, 4, 1)]}, True)
    stage.produce(0, 5)
    assert second.acquired == {0: [(5, 9, 1)]}


def test_records_left_by_one_fetch_go_to_the_next() -> None:
    stage = Stage()
    waiting = [stage.member(str(i)).fetch("0", max_records=2) for i in range(4)]
    stage.produce(0, *[1] * 6)
    assert [w.acquired if not w.waiting else None for w in waiting] == [
        {0: [(0, 1, 1)]},
        {0: [(2, 3, 1)]},
        {0: [(4, 5, 1)]},
        None,
    ]


def test_a_fetch_with_a_large_minimum_does_not_block_one_with_a_small_minimum() -> None:
    stage = Stage()
    much = stage.member("m").fetch("0", min_bytes=1000)
    little = stage.member("n").fetch("0")
    stage.produce(0, 5)
    assert (much.waiting, little.acquired) == (True, {0: [(0, 4, 1)]})


def test_a_second_fetch_waits_for_the_fetch_lock() -> None:
    stage = Stage()
    stage.produce(0, 1, 1)
    first, second = stage.member("m"), stage.member("n")
    first.fetch("0", max_wait_ms=0, max_records=0)
    stage.hold_reads = True
    reading, waiting = first.fetch(max_records=1), second.fetch("0", max_records=1)
    assert len(stage.held_logs) == 1
    stage.release_logs()
    assert (reading.acquired, waiting.waiting) == ({0: [(0, 0, 1)]}, True)
    stage.release_logs()
    assert waiting.acquired == {0: [(1, 1, 1)]}


def test_a_fetch_is_retried_when_the_holder_of_the_fetch_lock_acquires_nothing() -> None:
    stage = Stage()
    stage.produce(0, 1)
    stage.hold_reads = True
    much, little = stage.member("m").fetch("0", min_bytes=1000), stage.member("n").fetch("0")
    while stage.held_logs:
        stage.release_logs()
    assert (much.waiting, little.acquired) == (True, {0: [(0, 0, 1)]})


def test_only_the_holder_releases_the_fetch_lock() -> None:
    """BEHAVIOUR.md, hard case 19."""
    stage = Stage()
    stage.produce(0, 5)
    first, second, third = stage.member("m"), stage.member("n"), stage.member("k")
    stage.hold_reads = True
    first.fetch("0")
    reads = stage.held_logs
    first.close()
    stage.held_logs = []
    second_fetch = second.fetch("0")
    for effect in reads:
        stage.deliver(stage.logs[0].read(effect))  # a late read does not release another fetch's lock
    third_fetch = third.fetch("0")
    assert len(stage.held_logs) == 1
    stage.release_logs()
    assert (second_fetch.acquired, third_fetch.waiting) == ({0: [(0, 4, 1)]}, True)


def test_an_idle_partition_is_not_read_again() -> None:
    stage = Stage()
    for i in range(20):
        stage.member(str(i)).fetch("0")
    stage.hold_reads = True
    stage.member("late").fetch("0")
    assert stage.held_logs == [], "the known end of the log is the next fetch offset"


def test_each_waiting_fetch_has_its_own_deadline() -> None:
    stage = Stage()
    waiting = [stage.member(str(ms)).fetch("0", max_wait_ms=ms) for ms in (300, 100, 200)]
    done = []
    for _ in range(3):
        stage.pass_time(100)
        done.append([w.waiting for w in waiting])
    assert done == [[True, False, True], [True, False, False], [False, False, False]]


# ---- the window ------------------------------------------------------------------------------------------------------


def test_a_full_window_delivers_again_only_its_own_records() -> None:
    """BEHAVIOUR.md, example 4, hard case 13."""
    stage = Stage(group=LOCKS_100)
    stage.produce(0, 60)
    holder, waiter = stage.member("m"), stage.member("n")
    assert holder.fetch("0").acquired == {0: [(0, 59, 1)]}
    stage.produce(0, 60, 20)
    assert waiter.fetch("0").acquired == {0: [(60, 119, 1)]}, "whole batches may exceed the limit"
    full = waiter.fetch()
    assert full.waiting
    holder.acknowledge({0: "20:2"})
    assert full.acquired == {0: [(20, 20, 2)]}


# ---- log start, read_committed ---------------------------------------------------------------------------------------


def test_a_moved_log_start_is_found_by_the_next_read_without_error() -> None:
    stage = Stage()
    stage.produce(0, *[5] * 4)
    member = stage.member("m")
    assert member.fetch("0", max_records=5).acquired == {0: [(0, 4, 1)]}
    stage.logs[0].start = 15
    exchange = member.fetch(max_records=5)
    assert (exchange.error, exchange.acquired, exchange.errors) == (E.NONE, {}, {})
    assert member.fetch(max_records=5).acquired == {0: [(15, 19, 1)]}
    assert member.acknowledge({0: "0-4:1"}).errors == {0: E.NONE}, "acknowledgements below the window are accepted"


def test_read_committed_reads_up_to_the_last_stable_offset() -> None:
    stage = Stage(group={"share.isolation.level": "read_committed"})
    stage.produce(0, 5, 5, grew=False)
    stage.logs[0].stable = 5
    member = stage.member("m")
    assert member.fetch("0").acquired == {0: [(0, 4, 1)]}
    stage.hold_reads = True
    exchange = member.fetch()
    assert (exchange.waiting, stage.held_logs) == (True, []), "the known last stable offset is reached"
    stage.hold_reads = False
    stage.logs[0].stable = None
    stage.produce(0)
    assert exchange.acquired == {0: [(5, 9, 1)]}


def test_turning_read_committed_off_frees_records_behind_the_last_stable_offset() -> None:
    """The change of the configuration ends the wait, without any append. BEHAVIOUR.md, 29."""
    stage = Stage(group={"share.isolation.level": "read_committed"})
    stage.produce(0, 5, 5)
    stage.logs[0].stable = 5
    member = stage.member("m")
    assert member.fetch("0").acquired == {0: [(0, 4, 1)]}
    waiting = member.fetch()
    assert waiting.waiting
    stage.set_group(isolation_level="read_uncommitted")
    assert waiting.acquired == {0: [(5, 9, 1)]}


def test_min_bytes_under_read_committed_end_at_the_last_stable_offset() -> None:
    """Only the 100 stable bytes count, so the fetch waits until 100 more are stable. BEHAVIOUR.md, 29."""
    stage = Stage(group={"share.isolation.level": "read_committed"})
    stage.produce(0, 5, 5)
    stage.logs[0].stable = 5
    exchange = stage.member("m").fetch("0", min_bytes=150, max_wait_ms=300)
    assert exchange.waiting
    stage.logs[0].stable = None
    stage.produce(0)
    assert exchange.acquired == {0: [(0, 9, 1)]}


def test_a_log_is_waited_for_until_the_last_fetch_ends() -> None:
    stage = Stage(partitions=2)
    log, other = TopicPartition("t", 0), TopicPartition("t", 1)
    assert not stage.leader.awaits(log)
    first = stage.member("m").fetch("0", max_wait_ms=500)
    second = stage.member("n").fetch("0", max_wait_ms=900)
    assert (stage.leader.awaits(log), stage.leader.awaits(other)) == (True, False)
    stage.pass_time(500)
    assert (first.waiting, stage.leader.awaits(log)) == (False, True)
    stage.pass_time(400)
    assert (second.waiting, stage.leader.awaits(log)) == (False, False)
