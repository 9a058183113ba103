"""The ledger of a tap's journal: tables of events, and of each record its state and counts."""

from __future__ import annotations

import pytest

from shareq.model.errors import ConfigException
from shareq.model.events import DeliveriesUnseen, Event, LeaderElected, LogStartMoved, RecordsAppended, TopicCreated
from shareq.trace import attempts, ledger
from tests.trace.histories import GROUP, TOPIC, WHERE
from tests.trace.test_tapped import ALL_SEEN, ANNA_SEEN, START, TEN, ended, held, journal_of, read

NEW = [*START, ALL_SEEN, read(-1), RecordsAppended(TOPIC, 0, 0, 6), read(0)]
"""A group that begins behind the tap."""
UNKNOWN = (-2, 0, 0, 0)
"""(state, deliveries, times accepted, times archived)."""
OTHER = (-1, 0, 0, 0)


@pytest.mark.parametrize(
    ("events", "records"),
    [
        pytest.param([], [OTHER] * 6, id="no delivery"),
        pytest.param(
            [held("a", 0, 3), ended("accept", 0, 1), ended("reject", 1, 2), ended("release", 2, 3)],
            [(2, 1, 1, 0), (4, 1, 0, 1), (0, 1, 0, 0), *[OTHER] * 3],
            id="confirmed acknowledgements",
        ),
        pytest.param(
            [held("a", 0, 3), ended("reject", 0, 3)._replace(state=3), read(1, (1, 2, 4, 1))],
            [(4, 1, 0, 0), (4, 1, 0, 1), (3, 1, 0, 0), *[OTHER] * 3],
            id="on the way to a dead-letter queue: passed by the SPSO, seen in a durable state, and not at the end yet",
        ),
        pytest.param([held("a", 0, 1), held("a", 0, 1, second=40)], [(1, 1, 0, 0), *[OTHER] * 5], id="a renewal"),
        pytest.param(
            [held("a", 0, 1), ended("lock_timeout", 0, 1), held("a", 0, 1), ended("accept", 0, 1)],
            [(2, 1, 1, 0), *[OTHER] * 5],
            id="a lock that had not run out",
        ),
        pytest.param(
            [held("a", 0, 1), held("b", 0, 1, 2), ended("lock_timeout", 0, 1)],
            [(1, 2, 0, 0), *[OTHER] * 5],
            id="the late end of an earlier delivery",
        ),
        pytest.param(
            [held("a", 0, 1), LeaderElected(TOPIC, 0, 2, 1), held("b", 0, 1)],
            [(1, 2, 0, 0), *[OTHER] * 5],
            id="a new leader begins to count again",
        ),
        pytest.param(
            [held("a", 0, 1, 3), DeliveriesUnseen(*WHERE, 0, 1, 1, 2)],
            [(1, 3, 0, 0), *[OTHER] * 5],
            id="deliveries that were not seen",
        ),
        pytest.param(
            [held("a", 0, 4), read(2, (3, 4, 2, 1))],
            [(-2, 1, 0, 0), (-2, 1, 0, 0), (1, 1, 0, 0), (2, 1, 1, 0), OTHER, OTHER],
            id="acknowledgements without a response",
        ),
        pytest.param(
            [held("a", 0, 2), LogStartMoved(TOPIC, 0, 1), read(2)],
            [(4, 1, 0, 0), (-2, 1, 0, 0), *[OTHER] * 4],
            id="a record below the log start is archived",
        ),
        pytest.param(
            [held("a", 0, 2), ended("accept", 0, 2), read(2), read(0), held("a", 0, 1)],
            [(1, 2, 1, 0), (2, 1, 1, 0), *[OTHER] * 4],
            id="the offsets of the group were reset",
        ),
    ],
)
def test_the_records_of_a_group_that_begins_behind_the_tap(
    events: list[Event], records: list[tuple[int, int, int, int]]
) -> None:
    (part,) = ledger(journal_of([*NEW, *events]), GROUP, TOPIC).values()
    arrays = (part.state, part.deliveries, part.times_accepted, part.times_archived)
    assert [tuple(map(int, record)) for record in zip(*arrays, strict=True)] == records
    finished = part.accepted + part.archived + part.passed_over + part.unknown
    assert finished + part.in_flight + part.never_delivered == part.records == 6


def test_what_was_finished_before_the_tap_is_unknown() -> None:
    history = [*START, read(4, (5, 6, 2, 1), (6, 7, 0, 2)), RecordsAppended(TOPIC, 0, 0, 10), ALL_SEEN]
    found = ledger(journal_of([*history, held("a", 4, 5)]), GROUP, TOPIC)
    assert repr(found) == (
        f"<Ledger {GROUP} on {TOPIC}: records 10, accepted 1, archived 0, in flight 2, never delivered 3, "
        "passed over 0, accepted twice 0, unknown 4>"
    )
    assert found.to_frame().state.isna().sum() == 4
    assert "unknown" in found._repr_html_()
    assert "unknown" not in repr(ledger(journal_of(NEW), GROUP, TOPIC))


def test_a_topic_that_is_created_again_begins_anew() -> None:
    again: list[Event] = [TopicCreated(TOPIC, "id2", 1), RecordsAppended(TOPIC, 0, 0, 2), held("a", 0, 1)]
    (part,) = ledger(journal_of([*NEW, held("a", 0, 3), *again]), GROUP, TOPIC).values()
    assert part.state.tolist() == [1, -1]


def test_members_past_the_tap_are_named() -> None:
    with pytest.raises(ConfigException, match="members of 'g' were not connected through the tap: b"):
        ledger(journal_of([*TEN, ANNA_SEEN, ALL_SEEN]), GROUP, TOPIC)


def test_latencies_count_from_the_last_delivery() -> None:
    """The events are a second apart."""
    found = attempts(
        journal_of([*NEW, held("a", 0, 2), held("a", 0, 1, second=40), ended("accept", 0, 2)]), GROUP, TOPIC
    )
    assert found.deliveries == {1: 2}
    assert found.latency_ms[100] == 2000
