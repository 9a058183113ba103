"""What a share-partition waits for, and what a fetch waits for, as their leader answers it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shareq.leader.share_fetch import LedPartition, SessionKey
from shareq.leader.share_partition import SharePartition
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey
from shareq.model.states import LoadEvent
from shareq.model.waits import Wait
from tests.leader.experiments.browsing import ENABLED
from tests.leader.experiments.transactions import TransactionsStage
from tests.leader.stage import TOPIC_ID, Stage
from tests.leader.test_share_leader_random import RandomRun

KEY = SharePartitionKey("g", TOPIC_ID, 0)
FULL_AT_100 = {"share.partition.max.record.locks": "100"}
QUEUE = {"errors.deadletterqueue.topic.name": "dlq"}
KEYED = {"shareq.key.ordering": "key"}


def full(group: dict[str, str] | None = None) -> Stage:
    """A window of 100 records that m holds, and more records in the log."""
    stage = Stage(group=FULL_AT_100 | (group or {}))
    stage.produce(0, 100, 10)
    stage.member("m").fetch("0")
    return stage


def acknowledge(stage: Stage, acks: str) -> None:
    member = stage.member("m")
    member.epoch = 1
    member.acknowledge({0: acks})


# ---- a share-partition -----------------------------------------------------------------------------------------------


def not_loaded() -> Stage:
    return Stage()


def loading() -> Stage:
    stage = Stage()
    stage.hold = True
    stage.member("m").fetch("0")
    return stage


def without_records() -> Stage:
    stage = Stage()
    stage.member("m").fetch("0")
    return stage


def all_delivered() -> Stage:
    stage = Stage()
    stage.produce(0, 5)
    stage.member("m").fetch("0")
    stage.member("n").fetch("0")
    return stage


def behind_an_open_transaction() -> Stage:
    stage = Stage(group={"share.isolation.level": "read_committed"})
    stage.produce(0, 5)
    stage.logs[0].stable = 0
    stage.member("m").fetch("0")
    return stage


def with_records() -> Stage:
    stage = Stage()
    stage.member("m").fetch("0", max_wait_ms=0)
    stage.produce(0, 5)
    return stage


def released() -> Stage:
    """Full, with AVAILABLE records."""
    stage = full()
    acknowledge(stage, "40-59:2")
    return stage


def in_a_write() -> Stage:
    stage = full()
    stage.hold = True
    acknowledge(stage, "0-9:1")
    return stage


def in_a_write_behind_the_first() -> Stage:
    stage = full()
    stage.hold = True
    acknowledge(stage, "10-19:1")
    return stage


def rejected() -> Stage:
    stage = full(QUEUE)
    acknowledge(stage, "0-9:3")
    return stage


def rejected_behind_the_first() -> Stage:
    stage = full(QUEUE)
    acknowledge(stage, "10-19:3")
    return stage


def compacted() -> Stage:
    """Full of records that the log has lost: BEHAVIOUR.md, 15."""
    stage = full()
    stage.logs[0].batches = stage.logs[0].batches[1:]
    acknowledge(stage, "0-99:2")
    stage.member("n").fetch("0")
    return stage


def read_by_another() -> Stage:
    stage = with_records()
    stage.hold_reads = True
    stage.member("n").fetch("0")
    return stage


def paused() -> Stage:
    stage = Stage(broker=ENABLED, group={"shareq.delivery.enable": "false"})
    stage.produce(0, 5)
    stage.member("m").fetch("0")
    return stage


def resting() -> Stage:
    stage = Stage(broker=ENABLED, group={"shareq.release.backoff.ms": "1000"})
    stage.produce(0, 5)
    stage.member("m").fetch("0")
    acknowledge(stage, "1-2:2")
    stage.member("n").fetch("0")
    return stage


def in_order_by_key() -> Stage:
    stage = Stage(broker=ENABLED, group=KEYED)
    stage.logs[0].keys = "aaa"
    stage.produce(0, 3)
    stage.member("m").fetch("0")
    stage.member("n").fetch("0")
    return stage


def staged() -> Stage:
    stage = TransactionsStage(group=FULL_AT_100)
    stage.produce(0, 100, 10)
    stage.member("m").fetch("0")
    stage.stage("0-4:1")
    return stage


def staged_before_the_load() -> Stage:
    stage = TransactionsStage(group=KEYED)
    stage.logs[0].keys = "ab"
    stage.produce(0, 2)
    stage.member("m").fetch("0")
    stage.stage("0:1")
    stage.set_leader(0, 1, 1)
    stage.set_leader(0, 0, 2)
    stage.member("n").fetch("0")
    return stage


def passing_what_is_too_old() -> Stage:
    stage = Stage(broker=ENABLED, group={"shareq.record.ttl.ms": "10000"})
    stage.stamped = True
    stage.produce(0, 5)
    stage.pass_time(10_000)
    stage.hold_reads = True
    stage.member("m").fetch("0")
    stage.produce(0, 2)
    stage.release_logs()
    return stage


@pytest.mark.parametrize(
    ("made", "wait"),
    [
        (not_loaded, Wait.NOT_LOADED),
        (loading, Wait.LOADING),
        (without_records, Wait.LOG_END),
        (all_delivered, Wait.LOG_END),
        (behind_an_open_transaction, Wait.LOG_END),
        (with_records, None),
        (full, Wait.HELD),
        (released, None),
        (in_a_write, Wait.STATE_WRITE),
        (in_a_write_behind_the_first, Wait.HELD),
        (rejected, Wait.DEAD_LETTERS),
        (rejected_behind_the_first, Wait.HELD),
        (compacted, Wait.STATE_WRITE),
        (read_by_another, Wait.FETCH_LOCK),
        (paused, Wait.PAUSED),
        (resting, Wait.RESTING),
        (in_order_by_key, Wait.KEY_ORDER),
        (staged, Wait.STAGED),
        (staged_before_the_load, Wait.UNKNOWN_KEYS),
        (passing_what_is_too_old, Wait.EXPIRED),
    ],
)
def test_what_a_share_partition_waits_for(made: Callable[[], Stage], wait: Wait | None) -> None:
    assert made().leader.waits_for(KEY) is wait


def test_a_share_partition_that_was_dropped_waits_for_the_next_load() -> None:
    led = LedPartition(KEY, "t", 0, traced=False, kind=SharePartition)
    led.share_partition.step(LoadEvent.FENCED)
    led.dropped = Errors.NOT_LEADER_OR_FOLLOWER
    assert led.waits_for(GroupConfig()) is Wait.DROPPED


# ---- a fetch ---------------------------------------------------------------------------------------------------------


def waits_of(stage: Stage, member_id: str) -> set[Wait]:
    return set(stage.leader.fetch_waits_for(SessionKey("g", member_id)))


@pytest.mark.parametrize(
    ("made", "waits"),
    [
        (without_records, {Wait.LOG_END}),
        (loading, {Wait.LOADING}),
        (paused, {Wait.PAUSED}),
        (with_records, set()),
        (not_loaded, set()),
    ],
)
def test_a_fetch_waits_for_its_share_partitions(made: Callable[[], Stage], waits: set[Wait]) -> None:
    assert waits_of(made(), "m") == waits


def test_a_fetch_waits_for_each_of_its_share_partitions() -> None:
    stage = Stage(partitions=2, group=FULL_AT_100)
    stage.produce(0, 100, 10)
    stage.member("m").fetch("0")
    stage.member("n").fetch("01")
    assert waits_of(stage, "n") == {Wait.HELD, Wait.LOG_END}


def test_a_fetch_waits_for_its_reads_and_another_one_for_the_fetch_lock() -> None:
    stage = with_records()
    stage.hold_reads = True
    stage.member("n").fetch("0")
    stage.member("o").fetch("0")
    assert (waits_of(stage, "n"), waits_of(stage, "o")) == ({Wait.READS}, {Wait.FETCH_LOCK})


def test_a_fetch_waits_for_its_minimum_of_bytes_and_another_one_for_its_turn() -> None:
    stage = Stage(partitions=2)
    stage.produce(0, 5)
    first, second = stage.member("m"), stage.member("n")
    first.fetch("01", min_bytes=500)
    assert waits_of(stage, "m") == {Wait.MIN_BYTES, Wait.LOG_END}
    stage.hold_reads = True
    second.fetch("0", min_bytes=500)
    stage.produce(1, 1)
    assert (waits_of(stage, "n"), waits_of(stage, "m")) == ({Wait.READS}, {Wait.TURN})


def test_a_fetch_that_has_ended_waits_for_the_state_writes_of_its_acknowledgements() -> None:
    stage = Stage()
    stage.produce(0, 5, 5)
    member = stage.member("m")
    member.fetch("0", max_records=5)
    stage.hold = True
    sent = member.fetch(acks={0: "0-4:1"})
    assert (sent.waiting, waits_of(stage, "m")) == (True, {Wait.STATE_WRITES})
    stage.release()
    assert (sent.waiting, waits_of(stage, "m")) == (False, set())


def test_a_fetch_without_an_answer_always_waits_for_something(seed: int) -> None:
    seen = set[Wait]()
    for number in range(5):
        run = RandomRun(seed * 10 + number)
        for _ in range(300):
            run.step()
            seen |= waits_in(run.stage)
    assert len(seen) > 3


def waits_in(stage: Stage) -> set[Wait]:
    """What all fetches under way wait for. Each has a reason, and one of every share-partition that it has not tried
    since the last change."""
    leader, config, seen = stage.leader, stage.image.group_config("g"), set[Wait]()
    for fetch in [fetch for session in leader._sessions.all() for fetch in session.fetches]:
        waits = leader._fetches.waits_for(fetch)
        assert waits
        if not fetch.reads:
            assert all(led.waits_for(config) for led in fetch.leds if fetch in led.untried)
        seen |= waits
    return seen
