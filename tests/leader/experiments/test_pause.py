"""Pause and priority: shareq/leader/experiments/BEHAVIOUR.md, rules 5.1 to 5.7."""

from __future__ import annotations

import os
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from shareq.leader.share_fetch import ShareFetch
from shareq.model.events import ExpiredRecordsSkipped, RecordsChanged
from shareq.model.experiments import priorities_of
from shareq.model.ids import TopicPartition
from shareq.model.states import RecordEvent
from tests.leader.experiments.browsing import ENABLED, browse, shown
from tests.leader.stage import Member, Stage
from tests.leader.test_share_leader_random import RandomRun

DELIVERY = "shareq.delivery.enable"


def pause(stage: Stage, paused: bool = True) -> None:
    changes = {DELIVERY: str(not paused).lower()}
    stage.set_image(group_configs={g: {**old, **changes} for g, old in stage.image.group_configs.items()})


@pytest.fixture
def stage() -> Stage:
    return Stage(broker=ENABLED, traced=True)


@pytest.fixture
def member(stage: Stage) -> Member:
    """A member that holds 0-1 of 0-3."""
    stage.produce(0, 1, 1, 1, 1)
    member = stage.member("m")
    assert member.fetch("0", max_records=2).acquired == {0: [(0, 1, 1)]}
    return member


# ---- pause -----------------------------------------------------------------------------------------------------------


def test_5_1_a_fetch_of_a_paused_group_waits_and_is_answered_without_records(stage: Stage, member: Member) -> None:
    pause(stage)
    waiting = member.fetch(max_wait_ms=500)
    stage.produce(0, 1)
    stage.pass_time(499)
    assert waiting.waiting
    stage.pass_time(1)
    assert waiting.acquired == {}


def test_5_1_a_waiting_fetch_gets_records_when_the_pause_ends(stage: Stage, member: Member) -> None:
    pause(stage)
    waiting = member.fetch(max_wait_ms=5000)
    pause(stage, False)
    assert waiting.acquired == {0: [(2, 3, 1)]}


def test_5_1_a_read_that_is_under_way_when_the_pause_begins_acquires_nothing(stage: Stage, member: Member) -> None:
    stage.hold_reads = True
    fetch = member.fetch(max_wait_ms=500)
    pause(stage)
    stage.release_logs()
    assert fetch.acquired == {}


def test_5_2_acknowledgements_and_the_ends_of_locks_go_on(stage: Stage, member: Member) -> None:
    """The window drains: what is finished is durable, and what is returned stays available."""
    pause(stage)
    assert member.acknowledge({0: "0:1"}).errors[0] == 0
    stage.pass_time(30_000)
    assert stage.state().start_offset == 1
    assert stage.state().records == {1: (0, 1)}
    assert shown(browse(stage, from_offset=0)) == "0 done, 1 AV(1) paused, 2-3 AV(0) paused"


def test_5_2_nothing_expires_while_the_group_is_paused() -> None:
    stage = Stage(broker=ENABLED, group={"shareq.record.ttl.ms": "1000"}, traced=True)
    stage.stamped = True
    stage.produce(0, 5)
    stage.pass_time(1000)
    pause(stage)
    member = stage.member("m")
    member.fetch("0", max_wait_ms=100)
    stage.pass_time(100)
    assert not [e for e in stage.events if isinstance(e, (RecordsChanged, ExpiredRecordsSkipped))]
    pause(stage, False)
    member.fetch(max_wait_ms=100)
    assert [(e.first, e.end) for e in stage.events if isinstance(e, ExpiredRecordsSkipped)] == [(0, 5)]


class PausedRun(RandomRun):
    """The group is paused and resumed at random. P1: no record is acquired in a pause."""

    paused = False

    def step(self) -> None:
        if self.rng.random() < 0.05:
            self.paused = not self.paused
            pause(self.stage, self.paused)
            self.collect()
        was_paused = self.paused
        self.acquired = 0
        super().step()
        self.counts["paused"] += was_paused
        assert not (was_paused and self.acquired), "a record was acquired in a pause"

    def collect(self) -> None:
        acquired: list[Any] = [e for e in self.stage.events if isinstance(e, RecordsChanged)]
        self.acquired = sum(e.cause == RecordEvent.ACQUIRE for e in acquired)
        super().collect()


@pytest.mark.parametrize("ordering", ["none", "key"])
def test_5_1_no_record_is_acquired_in_a_pause_and_all_are_finished_after_it(seed: int, ordering: str) -> None:
    """The environment variable SHAREQ_RUNS sets the number of runs."""
    totals: Counter[str] = Counter()
    for run in range(int(os.environ.get("SHAREQ_RUNS", "2"))):
        random_run = PausedRun(seed + run, broker=ENABLED, group={"shareq.key.ordering": ordering})
        for log in random_run.stage.logs:
            log.keys = "ABCA-DEAFG" * 2000
        for _ in range(300):
            random_run.step()
        pause(random_run.stage, False)
        random_run.finish()
        totals += random_run.counts
    assert totals["paused"] > 50
    assert totals["delivered"] > 100


# ---- priority --------------------------------------------------------------------------------------------------------


def lined_up(epoch: int, turns: str, priorities: str) -> str:
    """The order in which a fetch takes share-partitions. `turns`: their topics, a letter each, in turn."""
    fetch: Any = object.__new__(ShareFetch)
    fetch.session = SimpleNamespace(epoch=epoch)
    fetch.leds = [SimpleNamespace(topic_partition=TopicPartition(topic, number)) for number, topic in enumerate(turns)]
    fetch.line_up(priorities_of(priorities))
    return " ".join(f"{led.topic_partition.topic}{led.topic_partition.partition}" for led in fetch.leds)


def test_5_4_topics_of_a_higher_priority_come_first_and_equal_ones_in_turn() -> None:
    assert lined_up(1, "cabcab", "a:10,b:1") == "a1 a4 b2 b5 c0 c3"
    assert lined_up(7, "ab", "b:100") == "b1 a0"


def test_5_5_every_eighth_fetch_of_a_session_takes_all_in_turn() -> None:
    orders = [lined_up(epoch, "cab", "a:10,b:1") for epoch in range(1, 18)]
    assert [number for number, order in enumerate(orders, 1) if order == "c0 a1 b2"] == [8, 16]
