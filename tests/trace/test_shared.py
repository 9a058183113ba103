"""The readers of one journal share the history of a group and its events, as long as one of them exists."""

from __future__ import annotations

import gc
from weakref import ref

from shareq.model.events import RecordsAppended
from shareq.trace import Journal, view
from shareq.trace.analysis.group_history import history_of
from shareq.trace.views.group_timeline import GroupTimeline
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, loaded
from tests.trace.random_groups import random_journal


def journal_of_appends(count: int) -> Journal:
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, 0, loaded(0, 0))
    for first in range(count):
        journal.record(ORIGIN_MS + first, 0, RecordsAppended(TOPIC, 0, first, first + 1))
    return journal


def test_views_of_a_group_share_its_history_and_its_events() -> None:
    journal = journal_of_appends(3)
    one, other, strip = GroupTimeline(journal, GROUP), GroupTimeline(journal, GROUP), view(journal, GROUP, TOPIC)
    assert one.history is other.history is history_of(journal, GROUP)
    assert one.history is not history_of(journal, "another")
    for _ in range(2):
        journal.record(ORIGIN_MS + 9, 0, RecordsAppended(TOPIC, 0, 3, 4))
        counts = [one.total(), other.total(), strip.total()]
        assert counts == [journal.total] * 3
    assert one.snapshot() == other.snapshot()


def test_a_timeline_that_grows_has_the_events_of_one_that_is_read_at_once(seed: int) -> None:
    whole, growing = random_journal(seed), Journal(ORIGIN_MS)
    for order, time_ms, broker_id, event in whole:
        growing.record(time_ms, broker_id, event)
        if order == 0:
            grown = GroupTimeline(growing, "g")
    read = GroupTimeline(whole, "g")
    total = grown.total()
    assert read.total() == total > 0
    assert [read.entry(n) for n in range(1, total + 1)] == [grown.entry(n) for n in range(1, total + 1)]


def test_what_nothing_refers_to_is_given_up() -> None:
    journal = journal_of_appends(3)
    timeline = GroupTimeline(journal, GROUP)
    history, kept = ref(timeline.history), ref(journal)
    timeline.total()
    del timeline
    gc.collect()
    assert history() is None
    assert GroupTimeline(journal, GROUP).total() == 4
    del journal
    gc.collect()
    assert kept() is None


def test_what_belongs_to_a_journal_is_made_once_and_ends_with_it() -> None:
    class Thing:
        """What may be referred to weakly."""

    journal, other = journal_of_appends(1), journal_of_appends(1)
    thing = ref(journal.own("thing", Thing))
    assert thing() is journal.own("thing", Thing)
    assert thing() is not other.own("thing", Thing)
    assert journal.own("nothing", lambda: None) is journal.own("nothing", Thing) is None
    del journal
    gc.collect()
    assert thing() is None
