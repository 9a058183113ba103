"""Heartbeats, departures and throughput at any moment equal a recomputation from the journal, event by event."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from shareq.model.events import (
    AcknowledgementsSent,
    ConfigChanged,
    CoordinatorLoaded,
    Event,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    RecordsChanged,
    SharePartitionLoaded,
    StateWriteSettled,
)
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from shareq.model.states import PREPARED, SETTLED, RecordEvent, RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.liveness import KEPT_DEPARTURES, Departure, Heartbeat
from shareq.trace.journal import Subject
from shareq.trace.journal.event_codec import EVENT_TYPES
from tests.budgets import cases
from tests.trace.random_clusters import GROUP, TOPICS, recorded_cluster
from tests.trace.random_groups import random_journal

WHERE = (GROUP, "orders", 0)


def history_of(events: list[Event], broker_id: int = 0) -> GroupHistory:
    """The history of events one second apart."""
    journal = Journal(0)
    for place, event in enumerate(events):
        journal.record(1000 * place, broker_id, event)
    return history_of_journal(journal, GROUP)


def history_of_journal(journal: Journal, group: str) -> GroupHistory:
    history = GroupHistory(journal, group)
    history.refresh()
    return history


@pytest.mark.parametrize("seed", range(cases(4, 8)))
def test_heartbeats_and_departures_equal_those_selected_from_the_journal(seed: int) -> None:
    cluster, draw = recorded_cluster(seed), Random(seed)
    history = GroupHistory(cluster, GROUP)
    history.refresh()
    for until in [draw.randrange(history.total + 1) for _ in range(12)]:
        found = history.liveness(until)
        present: set[str] = set()
        last: dict[str, int] = {}
        for entry in cluster.journal.select(MemberJoined, MemberLeft, HeartbeatReceived, group=GROUP):
            event = entry.event
            if entry.order >= until:
                break
            if isinstance(event, MemberJoined):
                present.add(event.member_id)
            elif isinstance(event, MemberLeft):
                present.discard(event.member_id)
                last.pop(event.member_id, None)
            elif isinstance(event, HeartbeatReceived) and event.member_id in present:
                last[event.member_id] = entry.time_ms
        assert {member: beat.time_ms for member, beat in found.heartbeats.items()} == last
        assert not present & set(found.departures)


@pytest.mark.parametrize("seed", range(cases(4, 8)))
def test_accepted_records_equal_the_settled_changes(seed: int) -> None:
    cluster, draw = recorded_cluster(seed), Random(seed)
    history = GroupHistory(cluster, GROUP)
    history.refresh()
    for _ in range(12):
        since_ms = cluster.origin_ms + draw.randrange(60_000)
        until = history.journal.until(since_ms + draw.randrange(60_000))
        for topic, partitions in TOPICS.items():
            for partition in range(partitions):
                settled = sum(
                    entry.event.end - entry.event.first
                    for entry in cluster.journal.select(RecordsChanged, group=GROUP, topic=topic, partition=partition)
                    if isinstance(entry.event, RecordsChanged)
                    and (entry.event.cause, entry.event.why) == (SETTLED, RecordEvent.ACCEPT)
                    and entry.order < until
                    and entry.time_ms > since_ms
                )
                counts = history.accepted(topic, partition).by_member(since_ms, until)
                assert sum(counts.values()) == settled


def by_member_from_the_beginning(journal: Journal, where: Subject) -> list[tuple[int, int, str, int]]:
    """(order, time, member, records) of all acceptances, found by one pass over the journal."""
    found, leader, prepared = [], None, dict[int, list[tuple[str, int]]]()
    for order, time_ms, broker_id, event in journal.about(0, journal.total, {where: EVENT_TYPES.values()}):
        if isinstance(event, SharePartitionLoaded):
            leader, prepared = broker_id, {}
        elif leader not in (None, broker_id):
            continue
        elif isinstance(event, RecordsChanged) and (event.cause, event.why) == (PREPARED, RecordEvent.ACCEPT):
            prepared.setdefault(event.write_id or 0, []).append((str(event.member_id), event.end - event.first))
        elif isinstance(event, StateWriteSettled):
            members = prepared.pop(event.write_id, [])
            found += [] if event.error else [(order, time_ms, member_id, count) for member_id, count in members]
    return found


def test_acceptances_of_members_equal_those_found_from_the_beginning(seed: int) -> None:
    """Also where a time begins between the preparation of a write and its answer."""
    draw, under_way = Random(seed), 0
    for journal in [*map(random_journal, range(seed, seed + 5)), recorded_cluster(seed).journal]:
        history = history_of_journal(journal, GROUP)
        for where in [s for s in journal.subjects() if None not in s and s.group == GROUP]:
            every = by_member_from_the_beginning(journal, where)
            for _ in range(12):
                since_ms, until = draw.choice(journal.entries()).time_ms, draw.randrange(journal.total + 1)
                expected: Counter[str] = Counter()
                for order, time_ms, member_id, count in every:
                    if time_ms > since_ms and order < until:
                        expected[member_id] += count
                assert history.accepted(str(where.topic), where.partition or 0).by_member(since_ms, until) == expected
                state = history.share_partition(str(where.topic), where.partition or 0, journal.until(since_ms))
                under_way += bool(state.writes)
    assert under_way > 0


def prepared(member: str, first: int, end: int, why: RecordEvent = RecordEvent.ACCEPT) -> RecordsChanged:
    acquired, to_state = RecordState.ACQUIRED, RecordState.ACKNOWLEDGED
    return RecordsChanged(*WHERE, PREPARED, first, end, acquired, 1, member, 99_000, 7, to_state, why)


LOADED = SharePartitionLoaded(*WHERE, 0, 10, (), 1, 0, 5, 2000, 30_000)
SETTLED_NOW = StateWriteSettled(*WHERE, 7, 0)


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        pytest.param([LOADED, prepared("a", 0, 4)], {}, id="the write is under way"),
        pytest.param([LOADED, prepared("a", 0, 4), SETTLED_NOW], {"a": 4}, id="durable"),
        pytest.param([LOADED, prepared("a", 0, 4), StateWriteSettled(*WHERE, 7, 15)], {}, id="the write failed"),
        pytest.param([LOADED, prepared("a", 0, 4), LOADED, SETTLED_NOW], {}, id="the write of an earlier leader"),
        pytest.param([prepared("a", 0, 4), SETTLED_NOW], {"a": 4}, id="a journal without the load"),
        pytest.param(
            [LOADED, prepared("a", 0, 4), prepared("b", 4, 5), prepared("a", 5, 7), SETTLED_NOW],
            {"a": 6, "b": 1},
            id="one write of two members",
        ),
        pytest.param([LOADED, prepared("a", 0, 4, RecordEvent.RELEASE), SETTLED_NOW], {}, id="released"),
    ],
)
def test_an_acceptance_counts_when_its_write_is_durable(events: list[Event], counts: dict[str, int]) -> None:
    history = history_of(events)
    accepted = history.accepted("orders", 0)
    assert accepted.by_member(-1, history.total) == Counter(counts)
    assert accepted.by_member(-1, history.total - 1) == Counter()
    assert accepted.by_member(1000 * (len(events) - 1), history.total) == Counter()


def test_a_superseded_leader_accepts_nothing() -> None:
    journal = Journal(0)
    journal.record(0, 1, LOADED)
    for event in (prepared("a", 0, 4), SETTLED_NOW):
        journal.record(1, 0, event)
    history = GroupHistory(journal, GROUP)
    history.refresh()
    for since_ms in (-1, 0):
        assert history.accepted("orders", 0).by_member(since_ms, 3) == Counter()


def test_an_observer_counts_what_members_report() -> None:
    sent = AcknowledgementsSent(GROUP, "a", "orders", 0, (1, 5, 2, 0, 0), 0)
    history = history_of([sent, sent._replace(error=121), sent._replace(member_id="b")])
    accepted = history.accepted("orders", 0)
    assert accepted.by_member(-1, 3, observed=True) == {"a": 5, "b": 5}
    assert accepted.by_member(-1, 2, observed=True) == {"a": 5}
    assert accepted.by_member(0, 3, observed=True) == {"b": 5}
    assert accepted.by_member(-1, 3) == Counter()
    assert (accepted.reporting(0), accepted.reporting(3)) == (set(), {"a", "b"})


def test_heartbeats_with_errors_and_departures() -> None:
    beat, left = HeartbeatReceived(GROUP, "a", 1, 0), MemberLeft(GROUP, "a", "session expired")
    joined = MemberJoined(GROUP, "a", "clerk", ("orders",))
    history = history_of([joined, beat, beat._replace(error=110), left, beat._replace(error=25), joined, beat])
    assert history.liveness(2).heartbeats == {"a": Heartbeat(1000, 0, 1000)}
    assert history.liveness(3).heartbeats == {"a": Heartbeat(2000, 110, 1000)}
    assert history.liveness(4).heartbeats == {}
    assert history.liveness(4).departures == {"a": Departure(3000, "session expired")}
    assert history.liveness(5).departures == {"a": Departure(3000, "session expired", 25)}
    assert history.liveness(7).departures == {}
    assert history.liveness(7).heartbeats == {"a": Heartbeat(6000, 0, 6000)}


def test_the_newest_departures_are_kept() -> None:
    history = history_of([MemberLeft(GROUP, f"m{number}", "left") for number in range(KEPT_DEPARTURES + 5)])
    kept = list(history.liveness(history.total).departures)
    assert (len(kept), kept[0], kept[-1]) == (KEPT_DEPARTURES, "m5", f"m{KEPT_DEPARTURES + 4}")


def test_loads_of_group_coordinators_and_broker_configurations() -> None:
    key = "group.share.session.timeout.ms"
    history = history_of(
        [
            CoordinatorLoaded(GROUP_METADATA_TOPIC, 3, 10),
            CoordinatorLoaded(SHARE_STATE_TOPIC, 3, 10),
            ConfigChanged("broker", key, "50000"),
            ConfigChanged(f"group:{GROUP}", "share.session.timeout.ms", "46000"),
            HeartbeatReceived("another", "a", 1, 0),
            ConfigChanged("broker", key, None),
        ]
    )
    found = history.liveness(5)
    assert (found.loaded_ms, found.broker_configs, found.heartbeats) == ({3: 0}, {key: "50000"}, {})
    assert history.liveness(6).broker_configs == {}
