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
from tests.leader.leader_harness import LeaderHarness

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
    exchange = LeaderHarness().member("m").fetch("0", **limits)
    assert (exchange.error, exchange.acquired) == (E.NONE, {})


def test_a_fetch_of_a_session_without_partitions_does_not_wait() -> None:
    assert LeaderHarness().member("m").fetch().parts == {}


def test_a_fetch_with_available_records_does_not_wait() -> None:
    harness = LeaderHarness()
    member = harness.member("m")
    member.fetch("0", max_wait_ms=0)
    harness.produce(0, 5)
    assert member.fetch(max_wait_ms=0).acquired == {0: [(0, 4, 1)]}


def test_min_bytes_0_is_met_by_any_partition_that_can_acquire() -> None:
    harness = LeaderHarness(group=LOCKS_100)
    member = harness.member("m")
    assert member.fetch("0", min_bytes=0).acquired == {}
    harness.produce(0, 100)
    assert member.fetch(min_bytes=0).acquired == {0: [(0, 99, 1)]}
    full = member.fetch(min_bytes=0)
    assert full.waiting, "a full window cannot acquire"
    harness.pass_time(500)
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
    harness = LeaderHarness(group=LOCKS_100)
    member = harness.member("m")
    member.fetch("0", max_wait_ms=0)
    harness.produce(0, *[10] * 30)
    if done:
        assert member.fetch(max_records=done, max_wait_ms=0).acquired == {0: [(0, 29, 1)]}
        member.acknowledge({0: "0-29:1"})
    harness.hold_reads = True
    member.fetch(min_bytes=min_bytes)
    (read,) = harness.held_logs
    assert read.end_offset == (MAX_OFFSET if ends is None else ends)


# ---- what ends the wait ----------------------------------------------------------------------------------------------


def test_growth_of_the_log_ends_the_wait() -> None:
    harness = LeaderHarness()
    exchange = harness.member("m").fetch("0")
    assert exchange.waiting
    harness.produce(0, 5)
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_max_wait_ends_the_wait_exactly() -> None:
    harness = LeaderHarness()
    exchange = harness.member("m").fetch("0", max_wait_ms=700)
    harness.pass_time(699)
    assert exchange.waiting
    harness.pass_time(1)
    assert exchange.acquired == {}
    assert harness.leader.wake_at_ms is None


def test_a_released_record_ends_the_wait() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    holder, waiter = harness.member("m"), harness.member("n")
    holder.fetch("0")
    exchange = waiter.fetch("0")
    assert exchange.waiting
    holder.acknowledge({0: "1:2"})
    assert exchange.acquired == {0: [(1, 1, 2)]}


def test_a_released_record_ends_the_wait_when_its_write_settles() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    holder, waiter = harness.member("m"), harness.member("n")
    holder.fetch("0")
    exchange = waiter.fetch("0")
    harness.hold = True
    holder.acknowledge({0: "1:2"})
    assert exchange.waiting
    harness.release()
    assert exchange.acquired == {0: [(1, 1, 2)]}


def test_room_in_the_window_ends_the_wait() -> None:
    harness = LeaderHarness(group=LOCKS_100)
    harness.produce(0, 100, 10)
    holder, waiter = harness.member("m"), harness.member("n")
    assert holder.fetch("0").acquired == {0: [(0, 99, 1)]}
    exchange = waiter.fetch("0")
    assert exchange.waiting
    holder.acknowledge({0: "50:1"})
    assert exchange.waiting, "the window has not moved"
    holder.acknowledge({0: "0-49:1"})
    assert exchange.acquired == {0: [(100, 109, 1)]}


def test_a_higher_lock_limit_ends_the_wait() -> None:
    harness = LeaderHarness(group=LOCKS_100)
    harness.produce(0, 100, 10)
    harness.member("m").fetch("0")
    exchange = harness.member("n").fetch("0")
    assert exchange.waiting
    harness.set_group(partition_max_record_locks="200")
    assert exchange.acquired == {0: [(100, 109, 1)]}


def test_an_expired_lock_ends_the_wait() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    harness.member("m").fetch("0")
    exchange = harness.member("n").fetch("0", max_wait_ms=60_000)
    harness.pass_time(29_999)
    assert exchange.waiting
    harness.pass_time(1)
    assert exchange.acquired == {0: [(0, 4, 2)]}


def test_the_end_of_loading_ends_the_wait() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    harness.hold = True
    exchange = harness.member("m").fetch("0")
    assert exchange.waiting
    harness.release()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_max_wait_ends_the_wait_for_loading() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    harness.hold = True
    member = harness.member("m")
    exchange = member.fetch("0")
    harness.pass_time(500)
    assert (exchange.error, exchange.acquired) == (E.NONE, {})
    harness.release()
    assert member.fetch().acquired == {0: [(0, 4, 1)]}


def test_an_error_of_the_log_ends_the_wait() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    harness.logs[0].error = E.KAFKA_STORAGE_ERROR
    member = harness.member("m")
    assert member.fetch("0").errors == {0: E.KAFKA_STORAGE_ERROR}
    harness.logs[0].error = E.NONE
    assert member.fetch().acquired == {0: [(0, 4, 1)]}


@pytest.mark.parametrize("error", [E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_log_that_has_moved_drops_the_share_partition(error: Errors) -> None:
    harness = LeaderHarness(traced=True)
    harness.produce(0, 5, 5)
    member, other = harness.member("m"), harness.member("n")
    member.fetch("0", max_records=5)
    harness.logs[0].error = error
    assert member.fetch().errors == {0: error}
    assert [e.reason for e in harness.events if isinstance(e, SharePartitionDropped)] == [
        f"the log could not be read: {error.name}"
    ]
    harness.logs[0].error = E.NONE
    assert other.fetch("0").acquired == {0: [(0, 9, 1)]}, "loaded again"


def test_max_wait_during_a_read_waits_for_the_read() -> None:
    harness = LeaderHarness()
    member = harness.member("m")
    member.fetch("0", max_wait_ms=0)
    exchange = member.fetch(min_bytes=1000)
    harness.hold_reads = True
    harness.produce(0, 5)
    harness.pass_time(500)
    assert exchange.waiting, "until the log has been read"
    harness.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_growth_during_a_read_is_fetched() -> None:
    harness = LeaderHarness()
    harness.hold_reads = True
    exchange = harness.member("m").fetch("0")
    answers, harness.held_logs = [harness.logs[0].read(effect) for effect in harness.held_logs], []
    harness.produce(0, 5)
    for answer in answers:
        harness.deliver(answer)
    harness.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_growth_during_the_first_read_is_fetched() -> None:
    harness = LeaderHarness()
    member = harness.member("m")
    member.fetch("0", max_wait_ms=0)
    harness.set_image()  # forgets the known end of the log
    harness.hold_reads = True
    exchange = member.fetch()
    (stale,) = [harness.logs[0].read(effect) for effect in harness.held_logs]
    harness.held_logs = []
    harness.produce(0, 5)
    harness.deliver(stale)
    harness.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_growth_of_another_partition_during_a_read_is_fetched() -> None:
    harness = LeaderHarness(partitions=2)
    member = harness.member("m")
    member.fetch("01", max_wait_ms=0)
    harness.produce(0, 5)
    harness.hold_reads = True
    exchange = member.fetch(min_bytes=150)
    harness.produce(1, 5)
    while harness.held_logs:
        harness.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_growth_of_a_visited_partition_during_the_read_of_another_is_fetched() -> None:
    harness = LeaderHarness(partitions=2)
    member = harness.member("m")
    member.fetch("01", max_wait_ms=0)
    member.fetch(max_wait_ms=0)
    harness.produce(1, 5)
    harness.hold_reads = True
    exchange = member.fetch(min_bytes=150)
    assert [effect.topic_partition.partition for effect in harness.held_logs] == [1]
    harness.produce(0, 5)
    while harness.held_logs:
        harness.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_growth_of_a_visited_partition_during_a_retry_is_fetched() -> None:
    harness = LeaderHarness(partitions=2)
    member = harness.member("m")
    member.fetch("01", max_wait_ms=0)
    member.fetch(max_wait_ms=0)
    exchange = member.fetch(min_bytes=200)
    harness.hold_reads = True
    harness.produce(1, 5)
    assert [effect.topic_partition.partition for effect in harness.held_logs] == [1]
    harness.produce(0, 5)
    while harness.held_logs:
        harness.release_logs()
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_loss_of_a_visited_partition_during_a_read_is_reported() -> None:
    harness = LeaderHarness(partitions=2)
    member = harness.member("m")
    member.fetch("01", max_wait_ms=0)
    member.fetch(max_wait_ms=0)
    harness.produce(1, 5)
    harness.hold_reads = True
    exchange = member.fetch(min_bytes=150)
    harness.set_leader(0, 1, 1)
    harness.release_logs()
    assert exchange.errors == {0: E.NOT_LEADER_OR_FOLLOWER}
    harness.hold_reads = False
    assert member.fetch().acquired == {1: [(0, 4, 1)]}


def test_loss_of_a_partition_during_a_retry_is_reported() -> None:
    harness = LeaderHarness(partitions=2)
    exchange = harness.member("m").fetch("01", min_bytes=1000)
    harness.hold_reads = True
    harness.produce(1, 5)
    harness.set_leader(0, 1, 1)
    assert exchange.waiting, "until the log has been read"
    harness.release_logs()
    assert (exchange.errors, exchange.acquired) == (
        {0: E.NOT_LEADER_OR_FOLLOWER, 1: E.NONE},
        {1: [(0, 4, 1)]},
    )


# ---- min bytes -------------------------------------------------------------------------------------------------------


def test_min_bytes_are_met_by_growth() -> None:
    harness = LeaderHarness()
    exchange = harness.member("m").fetch("0", min_bytes=250)
    harness.produce(0, 5, 5)
    assert exchange.waiting
    harness.produce(0, 5)
    assert exchange.acquired == {0: [(0, 14, 1)]}


def test_min_bytes_are_met_by_the_sum_of_partitions() -> None:
    harness = LeaderHarness(partitions=2)
    exchange = harness.member("m").fetch("01", min_bytes=200)
    harness.produce(0, 5)
    assert exchange.waiting
    harness.produce(1, 5)
    assert exchange.acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_min_bytes_are_met_by_the_bytes_after_a_released_record() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5, 5)
    holder = harness.member("m")
    holder.fetch("0")
    exchange = harness.member("n").fetch("0", min_bytes=150)
    holder.acknowledge({0: "0:2"})
    assert exchange.acquired == {0: [(0, 0, 2)]}, "the bytes read count, not those acquired, as in Kafka"


def test_max_wait_ends_a_fetch_below_min_bytes() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    exchange = harness.member("m").fetch("0", min_bytes=1000)
    assert exchange.waiting
    harness.pass_time(500)
    assert exchange.acquired == {0: [(0, 4, 1)]}


def test_min_bytes_never_exceed_max_bytes() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5)
    assert harness.member("m").fetch("0", min_bytes=1000, max_bytes=100).acquired == {0: [(0, 4, 1)]}


def test_a_read_cut_by_max_bytes_counts_the_maximum_it_was_allowed() -> None:
    harness = LeaderHarness()
    harness.produce(0, 5, 5, size=60)
    assert harness.member("m").fetch("0", min_bytes=100, max_bytes=100).acquired == {0: [(0, 4, 1)]}


# ---- max bytes -------------------------------------------------------------------------------------------------------


def test_a_batch_larger_than_max_bytes_is_still_delivered() -> None:
    """BEHAVIOUR.md, hard case 27."""
    harness = LeaderHarness(partitions=2)
    harness.produce(0, 1, size=5000)
    harness.produce(1, 1, size=5000)
    member = harness.member("m")
    assert member.fetch("01", max_bytes=100).acquired == {0: [(0, 0, 1)]}
    assert member.fetch(max_bytes=100).acquired == {1: [(0, 0, 1)]}


def test_max_bytes_are_divided_between_partitions() -> None:
    harness = LeaderHarness(partitions=2)
    for partition in range(2):
        harness.produce(partition, *[1] * 10)
    assert harness.member("m").fetch("01", max_bytes=600).acquired == {0: [(0, 2, 1)], 1: [(0, 2, 1)]}


def test_fetch_max_bytes_of_the_broker_caps_a_fetch() -> None:
    harness = LeaderHarness(partitions=2, broker={"fetch.max.bytes": 1024})
    for partition in range(2):
        harness.produce(partition, *[1] * 20)
    assert harness.member("m").fetch("01", max_bytes=1 << 20).acquired == {0: [(0, 4, 1)], 1: [(0, 4, 1)]}


def test_fetch_max_bytes_of_the_broker_caps_min_bytes() -> None:
    harness = LeaderHarness(broker={"fetch.max.bytes": 1024})
    harness.produce(0, *[1] * 20)
    exchange = harness.member("m").fetch("0", max_bytes=1 << 20, min_bytes=1 << 20, max_wait_ms=300)
    assert exchange.acquired == {0: [(0, 9, 1)]}


def test_unused_bytes_of_a_partition_go_to_the_next() -> None:
    harness = LeaderHarness(partitions=2)
    harness.produce(0, 1)
    harness.produce(1, *[1] * 10)
    assert harness.member("m").fetch("01", max_bytes=600).acquired == {0: [(0, 0, 1)], 1: [(0, 4, 1)]}


def test_only_the_first_partition_with_records_may_exceed_its_share() -> None:
    harness = LeaderHarness(partitions=3)
    harness.produce(0, 1)
    harness.produce(1, 1, size=500)
    harness.produce(2, 1)
    assert harness.member("m").fetch("012", max_bytes=600).acquired == {0: [(0, 0, 1)], 2: [(0, 0, 1)]}


def test_with_fewer_bytes_than_partitions_the_first_is_read() -> None:
    harness = LeaderHarness(partitions=3)
    for partition in range(3):
        harness.produce(partition, 1)
    member = harness.member("m")
    member.fetch("012", max_wait_ms=0, max_records=0)
    harness.hold_reads = True
    exchange = member.fetch(max_bytes=2)
    assert [effect.max_bytes for effect in harness.held_logs] == [1]
    harness.release_logs()
    assert exchange.acquired == {0: [(0, 0, 1)]}


# ---- max records -----------------------------------------------------------------------------------------------------


def test_records_of_one_partition_lower_the_limit_of_the_next() -> None:
    harness = LeaderHarness(partitions=3)
    for partition in range(3):
        harness.produce(partition, *[1] * 10)
    assert harness.member("m").fetch("012", max_records=15).acquired == {0: [(0, 9, 1)], 1: [(0, 4, 1)]}


def test_partitions_beyond_max_records_are_not_read() -> None:
    harness = LeaderHarness(partitions=9)
    member = harness.member("m")
    member.fetch("012345678", max_wait_ms=0)
    for partition in range(9):
        harness.produce(partition, 10)
    harness.hold_reads = True
    exchange = member.fetch(epoch=1, max_records=10)
    assert len(harness.held_logs) == 1
    harness.release_logs()
    assert (len(exchange.acquired), harness.held_logs) == (1, [])


def test_partitions_are_read_in_growing_waves() -> None:
    harness = LeaderHarness(partitions=9)
    member = harness.member("m")
    member.fetch("012345678", max_wait_ms=0)
    for partition in range(9):
        harness.produce(partition, 1)
    harness.hold_reads = True
    exchange = member.fetch()
    waves = []
    while harness.held_logs:
        waves.append(len(harness.held_logs))
        harness.release_logs()
    assert (waves, len(exchange.acquired)) == ([1, 2, 4, 2], 9)


# ---- several fetches -------------------------------------------------------------------------------------------------


def test_of_two_waiting_members_the_first_acquires() -> None:
    harness = LeaderHarness()
    first, second = harness.member("m").fetch("0"), harness.member("n").fetch("0")
    harness.produce(0, 5)
    assert (first.acquired, second.waiting) == ({0: [(0, 4, 1)]}, True)
    harness.produce(0, 5)
    assert second.acquired == {0: [(5, 9, 1)]}


def test_records_left_by_one_fetch_go_to_the_next() -> None:
    harness = LeaderHarness()
    waiting = [harness.member(str(i)).fetch("0", max_records=2) for i in range(4)]
    harness.produce(0, *[1] * 6)
    assert [w.acquired if not w.waiting else None for w in waiting] == [
        {0: [(0, 1, 1)]},
        {0: [(2, 3, 1)]},
        {0: [(4, 5, 1)]},
        None,
    ]


def test_a_fetch_with_a_large_minimum_does_not_block_one_with_a_small_minimum() -> None:
    harness = LeaderHarness()
    much = harness.member("m").fetch("0", min_bytes=1000)
    little = harness.member("n").fetch("0")
    harness.produce(0, 5)
    assert (much.waiting, little.acquired) == (True, {0: [(0, 4, 1)]})


def test_a_second_fetch_waits_for_the_fetch_lock() -> None:
    harness = LeaderHarness()
    harness.produce(0, 1, 1)
    first, second = harness.member("m"), harness.member("n")
    first.fetch("0", max_wait_ms=0, max_records=0)
    harness.hold_reads = True
    reading, waiting = first.fetch(max_records=1), second.fetch("0", max_records=1)
    assert len(harness.held_logs) == 1
    harness.release_logs()
    assert (reading.acquired, waiting.waiting) == ({0: [(0, 0, 1)]}, True)
    harness.release_logs()
    assert waiting.acquired == {0: [(1, 1, 1)]}


def test_a_fetch_is_retried_when_the_holder_of_the_fetch_lock_acquires_nothing() -> None:
    harness = LeaderHarness()
    harness.produce(0, 1)
    harness.hold_reads = True
    much, little = harness.member("m").fetch("0", min_bytes=1000), harness.member("n").fetch("0")
    while harness.held_logs:
        harness.release_logs()
    assert (much.waiting, little.acquired) == (True, {0: [(0, 0, 1)]})


def test_only_the_holder_releases_the_fetch_lock() -> None:
    """BEHAVIOUR.md, hard case 19."""
    harness = LeaderHarness()
    harness.produce(0, 5)
    first, second, third = harness.member("m"), harness.member("n"), harness.member("k")
    harness.hold_reads = True
    first.fetch("0")
    reads = harness.held_logs
    first.close()
    harness.held_logs = []
    second_fetch = second.fetch("0")
    for effect in reads:
        harness.deliver(harness.logs[0].read(effect))  # a late read does not release another fetch's lock
    third_fetch = third.fetch("0")
    assert len(harness.held_logs) == 1
    harness.release_logs()
    assert (second_fetch.acquired, third_fetch.waiting) == ({0: [(0, 4, 1)]}, True)


def test_an_idle_partition_is_not_read_again() -> None:
    harness = LeaderHarness()
    for i in range(20):
        harness.member(str(i)).fetch("0")
    harness.hold_reads = True
    harness.member("late").fetch("0")
    assert harness.held_logs == [], "the known end of the log is the next fetch offset"


def test_each_waiting_fetch_has_its_own_deadline() -> None:
    harness = LeaderHarness()
    waiting = [harness.member(str(ms)).fetch("0", max_wait_ms=ms) for ms in (300, 100, 200)]
    done = []
    for _ in range(3):
        harness.pass_time(100)
        done.append([w.waiting for w in waiting])
    assert done == [[True, False, True], [True, False, False], [False, False, False]]


# ---- the window ------------------------------------------------------------------------------------------------------


def test_a_full_window_delivers_again_only_its_own_records() -> None:
    """BEHAVIOUR.md, example 4, hard case 13."""
    harness = LeaderHarness(group=LOCKS_100)
    harness.produce(0, 60)
    holder, waiter = harness.member("m"), harness.member("n")
    assert holder.fetch("0").acquired == {0: [(0, 59, 1)]}
    harness.produce(0, 60, 20)
    assert waiter.fetch("0").acquired == {0: [(60, 119, 1)]}, "whole batches may exceed the limit"
    full = waiter.fetch()
    assert full.waiting
    holder.acknowledge({0: "20:2"})
    assert full.acquired == {0: [(20, 20, 2)]}


# ---- log start, read_committed ---------------------------------------------------------------------------------------


def test_a_moved_log_start_is_found_by_the_next_read_without_error() -> None:
    harness = LeaderHarness()
    harness.produce(0, *[5] * 4)
    member = harness.member("m")
    assert member.fetch("0", max_records=5).acquired == {0: [(0, 4, 1)]}
    harness.logs[0].start = 15
    exchange = member.fetch(max_records=5)
    assert (exchange.error, exchange.acquired, exchange.errors) == (E.NONE, {}, {})
    assert member.fetch(max_records=5).acquired == {0: [(15, 19, 1)]}
    assert member.acknowledge({0: "0-4:1"}).errors == {0: E.NONE}, "acknowledgements below the window are accepted"


def test_read_committed_reads_up_to_the_last_stable_offset() -> None:
    harness = LeaderHarness(group={"share.isolation.level": "read_committed"})
    harness.produce(0, 5, 5, grew=False)
    harness.logs[0].stable = 5
    member = harness.member("m")
    assert member.fetch("0").acquired == {0: [(0, 4, 1)]}
    harness.hold_reads = True
    exchange = member.fetch()
    assert (exchange.waiting, harness.held_logs) == (True, []), "the known last stable offset is reached"
    harness.hold_reads = False
    harness.logs[0].stable = None
    harness.produce(0)
    assert exchange.acquired == {0: [(5, 9, 1)]}


def test_turning_read_committed_off_frees_records_behind_the_last_stable_offset() -> None:
    """The change of the configuration ends the wait, without any append. BEHAVIOUR.md, 29."""
    harness = LeaderHarness(group={"share.isolation.level": "read_committed"})
    harness.produce(0, 5, 5)
    harness.logs[0].stable = 5
    member = harness.member("m")
    assert member.fetch("0").acquired == {0: [(0, 4, 1)]}
    waiting = member.fetch()
    assert waiting.waiting
    harness.set_group(isolation_level="read_uncommitted")
    assert waiting.acquired == {0: [(5, 9, 1)]}


def test_min_bytes_under_read_committed_end_at_the_last_stable_offset() -> None:
    """Only the 100 stable bytes count, so the fetch waits until 100 more are stable. BEHAVIOUR.md, 29."""
    harness = LeaderHarness(group={"share.isolation.level": "read_committed"})
    harness.produce(0, 5, 5)
    harness.logs[0].stable = 5
    exchange = harness.member("m").fetch("0", min_bytes=150, max_wait_ms=300)
    assert exchange.waiting
    harness.logs[0].stable = None
    harness.produce(0)
    assert exchange.acquired == {0: [(0, 9, 1)]}


def test_a_log_is_waited_for_until_the_last_fetch_ends() -> None:
    harness = LeaderHarness(partitions=2)
    log, other = TopicPartition("t", 0), TopicPartition("t", 1)
    assert not harness.leader.waits_for(log)
    first = harness.member("m").fetch("0", max_wait_ms=500)
    second = harness.member("n").fetch("0", max_wait_ms=900)
    assert (harness.leader.waits_for(log), harness.leader.waits_for(other)) == (True, False)
    harness.pass_time(500)
    assert (first.waiting, harness.leader.waits_for(log)) == (False, True)
    harness.pass_time(400)
    assert (second.waiting, harness.leader.waits_for(log)) == (False, False)
