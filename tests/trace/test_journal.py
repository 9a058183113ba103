"""The journal: append-only, bounded or off, looked up by type and subject, read while it is written."""

from __future__ import annotations

from random import Random
from threading import Thread

import pytest

from shareq.model.errors import ConfigException
from shareq.model.events import (
    BrokerStarted,
    ConfigChanged,
    Event,
    FaultInjected,
    MemberLeft,
    RecordsAppended,
    StateLogPruned,
    StateRecordWritten,
    WindowMoved,
)
from shareq.trace import Entry, Journal, SharePartitionState, view
from shareq.trace.journal import Subject, journal_of
from shareq.trace.journal.subject import subject_of


def journal_of_faults(count: int, capacity: int | None = None) -> Journal:
    journal = Journal(5, capacity=capacity)
    for number in range(count):
        journal.record(100 + number, number % 3, FaultInjected(str(number)))
    return journal


def test_entries_come_in_order() -> None:
    journal = journal_of_faults(4)
    assert journal[0] == Entry(0, 100, 0, FaultInjected("0"))
    assert [entry.order for entry in journal] == [0, 1, 2, 3]
    assert (len(journal), journal.total, journal.dropped) == (4, 4, 0)
    assert journal[-1].event == FaultInjected("3")
    assert [entry.order for entry in journal[1:3]] == [1, 2]
    assert [entry.order for entry in journal.since(2)] == [2, 3]
    assert journal.since(9) == []
    assert repr(journal) == "<Journal 4 events>"


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 6, 7, 8, 13, 14, 15, 60])
def test_a_bounded_journal_keeps_the_newest(capacity: int, count: int) -> None:
    journal = journal_of_faults(count, capacity)
    kept = list(range(max(count - capacity, 0), count))
    assert [entry.order for entry in journal] == kept
    assert (len(journal), journal.total, journal.dropped) == (len(kept), count, count - len(kept))
    assert [entry.order for entry in journal.since(count - 2)] == kept[-2:]
    assert [entry.order for entry in journal.select(FaultInjected)] == kept
    assert [entry.order for entry in journal.select()] == kept


def test_a_bounded_journal_has_bounded_storage() -> None:
    assert len(journal_of_faults(10_000, 10)._entries) <= 20


def test_a_journal_that_is_off_keeps_nothing() -> None:
    journal = Journal(enabled=False)
    journal.record(1, 0, FaultInjected("x"))
    assert (len(journal), journal.total, list(journal), journal.since(0)) == (0, 0, [], [])
    assert repr(journal) == "<Journal off>"


def test_the_repr_shows_the_number_of_dropped_entries() -> None:
    assert repr(journal_of_faults(3000, 2)) == "<Journal 2 events, 2,998 older ones dropped>"


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_below_one_is_refused(capacity: int) -> None:
    with pytest.raises(ConfigException, match=rf"capacity={capacity}: must be >= 1"):
        Journal(capacity=capacity)


@pytest.mark.parametrize(
    ("event", "about"),
    [
        pytest.param(WindowMoved("g", "t", 3, 0, 0), Subject("g", "t", 3), id="a share-partition"),
        pytest.param(RecordsAppended("t", 3, 0, 1), Subject(None, "t", 3), id="a partition"),
        pytest.param(MemberLeft("g", "m", "left"), Subject("g"), id="a group"),
        pytest.param(BrokerStarted(1), Subject(), id="the cluster"),
        pytest.param(ConfigChanged("group:g", "k", "v"), Subject("g"), id="a group's configuration"),
        pytest.param(ConfigChanged("group:a:b", "k", "v"), Subject("a:b"), id="a group with a colon"),
        pytest.param(ConfigChanged("topic:t", "k", "v"), Subject(None, "t"), id="a topic's configuration"),
        pytest.param(ConfigChanged("broker", "k", "v"), Subject(), id="the brokers' configuration"),
        pytest.param(StateRecordWritten("a:b:id:7", "update", 0, 0, ()), Subject("a:b"), id="a state record"),
        pytest.param(StateLogPruned(7, 0), Subject(None, "__share_group_state", 7), id="a state partition"),
    ],
)
def test_subject_of_an_event(event: Event, about: Subject) -> None:
    assert subject_of(event) == about


def test_select_equals_a_scan_of_all_entries(seed: int) -> None:
    rng = Random(seed)
    journal = Journal()
    kinds: list[Event] = [
        WindowMoved("g", "t", 0, 0, 0),
        WindowMoved("g", "t", 1, 0, 0),
        WindowMoved("h", "t", 0, 0, 0),
    ]
    kinds += [RecordsAppended("t", 0, 0, 1), MemberLeft("g", "m", "left"), BrokerStarted(1)]
    for _ in range(30):
        for _ in range(rng.randrange(10)):
            journal.record(0, 0, rng.choice(kinds))
        for types in ((), (WindowMoved,), (WindowMoved, MemberLeft), (RecordsAppended,)):
            for group, topic, partition in ((None, None, None), ("g", None, None), (None, "t", None), ("g", "t", 1)):
                wanted = [
                    entry
                    for entry in journal
                    if (not types or isinstance(entry.event, types))
                    and group in (None, subject_of(entry.event).group)
                    and topic in (None, subject_of(entry.event).topic)
                    and partition in (None, subject_of(entry.event).partition)
                ]
                assert journal.select(*types, group=group, topic=topic, partition=partition) == wanted


def test_entries_between_orders_are_those_of_a_scan(seed: int) -> None:
    rng, journal = Random(seed), Journal(capacity=40)
    kinds: list[Event] = [WindowMoved("g", "t", 0, 0, 0), WindowMoved("h", "t", 0, 0, 0), RecordsAppended("t", 0, 0, 1)]
    kinds += [MemberLeft("g", "m", "left"), MemberLeft("h", "m", "left"), BrokerStarted(1)]
    for _ in range(30):
        for _ in range(rng.randrange(10)):
            journal.record(0, 0, rng.choice(kinds))
        first, end = sorted(rng.randrange(journal.total + 2) for _ in range(2))
        types = rng.sample([WindowMoved, RecordsAppended, MemberLeft, BrokerStarted], 2)
        for subject in (None, Subject("g"), Subject("g", "t", 0), Subject(None, "t", 0), Subject()):
            wanted = [
                entry
                for entry in journal
                if first <= entry.order < end
                and type(entry.event) in types
                and subject in (None, subject_of(entry.event))
            ]
            if subject is None:
                assert journal.between(first, end, types) == wanted
            else:
                assert journal.about(first, end, {subject: types}) == wanted


def test_the_index_of_a_bounded_journal_drops_entries_with_it() -> None:
    journal = Journal(capacity=5)
    for number in range(50):
        journal.record(0, 0, MemberLeft(f"g{number}", "m", "left"))
        journal.subjects()
    assert journal.subjects() == [Subject(f"g{number}") for number in range(45, 50)]
    assert journal.about(0, 50, {Subject("g1"): (MemberLeft,)}) == []


def test_one_thread_reads_while_another_one_writes() -> None:
    journal = Journal()
    done = []

    def write() -> None:
        for number in range(20_000):
            journal.record(number, 0, WindowMoved("g", "t", 0, 0, number))
        done.append(True)

    writer = Thread(target=write)
    writer.start()
    seen, looking = 0, view(journal, "g", "t", 0)
    while not done or seen < 20_000:
        entries = journal.select(WindowMoved, group="g")
        assert [entries[0].order, entries[-1].order] == [0, len(entries) - 1] if entries else not seen
        assert len(entries) >= seen
        seen = len(entries)
        assert looking.total() >= seen
    writer.join()
    assert seen == looking.total() == 20_000


@pytest.mark.parametrize("source", [None, 3, "journal", object()])
def test_a_source_without_a_journal_is_refused(source: object) -> None:
    with pytest.raises(ConfigException, match="must be a Journal"):
        journal_of(source)


def test_an_object_with_a_journal_is_a_source() -> None:
    class Source:
        journal = Journal(7)

    assert journal_of(Source()) is Source.journal
    assert isinstance(view(Source(), "g", "t").state(), SharePartitionState)
