"""An observed share-partition: its text after each history, its lag, and its view."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.model.errors import ConfigException
from shareq.model.events import (
    ConfigChanged,
    DurableStateRead,
    Event,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    ObservationDisturbed,
    RecordsAppended,
    RecordsHeld,
    Run,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.states import RecordState
from shareq.trace import Journal, View, lag_plot, ledger, raster, view
from shareq.trace.analysis.observed_knowledge import Hold, Knowledge
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE

AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = 0, 2, 3, 4
CREATED, LED = TopicCreated(TOPIC, "id", 1), LeaderElected(TOPIC, 0, 1, 0)
ANNA = MemberJoined(GROUP, "a", "anna", (TOPIC,))
BEN = MemberJoined(GROUP, "b", "ben", (TOPIC,))
NOTHING = DurableStateRead(*WHERE, -1, (), -1, -1, -1, -1)


def grown(end: int, first: int = 0) -> RecordsAppended:
    return RecordsAppended(TOPIC, 0, first, end)


def read(spso: int, *runs: tuple[int, int, int, int]) -> DurableStateRead:
    complete = sum(end - first for first, end, state, _ in runs if state in (ACKNOWLEDGED, ARCHIVED))
    return DurableStateRead(*WHERE, spso, tuple(Run(*run) for run in runs), complete, 0, 1, 0)


def held(member: str, first: int, end: int, count: int = 1) -> RecordsHeld:
    return RecordsHeld(*WHERE, member, first, end, count)


START: list[Event] = [CREATED, LED, ANNA, BEN]
TEN: list[Event] = [*START, read(0), grown(10)]
MIXED = read(2, (3, 5, ACKNOWLEDGED, 1), (5, 6, AVAILABLE, 1), (6, 7, ARCHIVED, 5), (8, 9, AVAILABLE, 3))


def observed(events: list[Event]) -> View:
    journal = Journal(ORIGIN_MS)
    for place, event in enumerate(events):
        journal.record(ORIGIN_MS + 1000 * place, -1, event)
    return view(journal, GROUP, TOPIC)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param(
            [ObservationDisturbed("why")],
            "SPSO 0 | empty | log end unknown (nothing durable, why)",
            id="the cluster has never responded",
        ),
        pytest.param(
            [*TEN, TopicDeleted(TOPIC, "id")],
            "SPSO 0 | empty | log end unknown (nothing durable)",
            id="the topic is gone",
        ),
        pytest.param([*START, NOTHING], "SPSO 0 | empty | log end 0 (nothing durable)", id="nothing is durable"),
        pytest.param(
            [*START, NOTHING, grown(9)],
            "SPSO 0 | empty | log end 9 (nothing durable)",
            id="nothing durable: where the group will start is not decided",
        ),
        pytest.param(
            [*START, NOTHING, grown(9), held("a", 4, 6)],
            "SPSO 4 | A A ? ? ? | log end 9 (nothing durable)",
            id="nothing durable, but a member reports its records",
        ),
        pytest.param([*START, read(3)], "SPSO 3 | empty | log end 0", id="without the log end"),
        pytest.param(TEN, "SPSO 0 | ?×10 | log end 10", id="no information on any record"),
        pytest.param(
            [*START, grown(10), read(0)], "SPSO 0 | ?×10 | log end 10", id="the log end before the durable state"
        ),
        pytest.param([*TEN, read(10)], "SPSO 10 | empty | log end 10", id="all records are terminal"),
        pytest.param([*TEN, MIXED], "SPSO 2 | ? ✓ ✓ ◌1 ✕ ? ◌3 ? | log end 10", id="terminal, returned, unknown"),
        pytest.param(
            [*TEN, read(0, (0, 2, ACKNOWLEDGED, 1), (2, 3, ARCHIVED, 5), (3, 4, AVAILABLE, 1), (4, 5, ARCHIVED, 1))],
            "SPSO 3 | ◌1 ✕ ? ? ? ? ? | log end 10",
            id="the SPSO is written later than it moves",
        ),
        pytest.param(
            [*TEN, read(0, (0, 2, ACKNOWLEDGED, 1)), read(2)], "SPSO 2 | ?×8 | log end 10", id="the SPSO is written"
        ),
        pytest.param(
            [*TEN, read(0, (0, 10, ACKNOWLEDGED, 1))],
            "SPSO 10 | empty | log end 10",
            id="all terminal, SPSO not written yet",
        ),
        pytest.param(
            [*TEN, MIXED, grown(12, 10)], "SPSO 2 | ? ✓ ✓ ◌1 ✕ ? ◌3 ? ? ? | log end 12", id="records are appended"
        ),
        pytest.param(
            [*TEN, read(2, (3, 5, ARCHIVING, 5))],
            "SPSO 2 | ? ⧗5 ⧗5 ? ? ? ? ? | log end 10",
            id="archiving is neither returned nor terminal",
        ),
        pytest.param(
            [*TEN, held("a", 0, 3)], "SPSO 0 | A A A ?×7 | log end 10", id="a member that reports its records"
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), read(0, (1, 2, ACKNOWLEDGED, 1))],
            "SPSO 0 | A ✓ A ?×7 | log end 10",
            id="accepted, the others are still held",
        ),
        pytest.param(
            [*TEN, read(0, (1, 2, ACKNOWLEDGED, 1)), held("a", 0, 3)],
            "SPSO 0 | A ✓ A ?×7 | log end 10",
            id="a durable state overrides a late report",
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), read(0, (0, 3, AVAILABLE, 1))],
            "SPSO 0 | ◌1 ◌1 ◌1 ?×7 | log end 10",
            id="returned: no longer held for that delivery",
        ),
        pytest.param(
            [*TEN, read(0, (0, 3, AVAILABLE, 1)), held("a", 0, 3)],
            "SPSO 0 | ◌1 ◌1 ◌1 ?×7 | log end 10",
            id="returned before its delivery is reported",
        ),
        pytest.param(
            [*TEN, read(0, (0, 3, AVAILABLE, 1)), held("b", 1, 3, 2)],
            "SPSO 0 | ◌1 B2 B2 ?×7 | log end 10",
            id="held again after it was returned",
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), held("b", 1, 2, 2)],
            "SPSO 0 | A B2 A ?×7 | log end 10",
            id="the later delivery counts, though its return was never seen",
        ),
        pytest.param(
            [*TEN, held("b", 1, 2, 2), held("a", 0, 3)],
            "SPSO 0 | A B2 A ?×7 | log end 10",
            id="the later delivery counts, in any order of reports",
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), held("b", 3, 5), MemberLeft(GROUP, "a", "left")],
            "SPSO 0 | ? ? ? B B ? ? ? ? ? | log end 10",
            id="a member that left holds nothing",
        ),
        pytest.param(
            [*TEN, held("a", 0, 3), LeaderElected(TOPIC, 0, 2, 1)],
            "SPSO 0 | ?×10 | log end 10",
            id="a new leader has no locks",
        ),
        pytest.param(
            [*TEN, held("a", 0, 6), read(4)], "SPSO 4 | A A ? ? ? ? | log end 10", id="the SPSO passes what was held"
        ),
        pytest.param(
            [*TEN, MIXED, held("a", 2, 3), read(0)],
            "SPSO 0 | ?×10 | log end 10",
            id="offsets altered: the state starts again",
        ),
        pytest.param(
            [*TEN, MIXED, NOTHING], "SPSO 0 | empty | log end 10 (nothing durable)", id="the group was deleted"
        ),
        pytest.param(
            [*TEN, MIXED, TopicDeleted(TOPIC, "id"), TopicCreated(TOPIC, "other", 1), read(0), grown(3)],
            "SPSO 0 | ? ? ? | log end 3",
            id="the topic was created again",
        ),
        pytest.param(
            [*TEN, LogStartMoved(TOPIC, 0, 5)], "SPSO 0 | ?×10 | log end 10", id="the SPSO does not follow by itself"
        ),
        pytest.param(
            [*TEN, ObservationDisturbed("the cluster does not answer")],
            "SPSO 0 | ?×10 | log end 10 (the cluster does not answer)",
            id="no broker responds",
        ),
        pytest.param(
            [*TEN, ObservationDisturbed("why"), ObservationDisturbed("")],
            "SPSO 0 | ?×10 | log end 10",
            id="brokers respond again",
        ),
        pytest.param(
            [ConfigChanged(f"group:{GROUP}", "share.partition.max.record.locks", "100"), *START, read(5), grown(1000)],
            "SPSO 5 | ?×100 | log end 1000",
            id="the window reaches as far as the locks",
        ),
        pytest.param(
            [*START, read(5), grown(1000), ConfigChanged(f"group:{GROUP}", "share.partition.max.record.locks", "200")],
            "SPSO 5 | ?×200 | log end 1000",
            id="locks configured later",
        ),
    ],
)
def test_the_text_after_an_observed_history(events: list[Event], text: str) -> None:
    seen = observed(events)
    snapshot = seen.snapshot()
    assert snapshot["text"] == text
    assert snapshot["observed"]
    assert snapshot["in_flight"] is None
    assert snapshot["disturbed"] in snapshot["text"]
    assert [seen.snapshot(order)["order"] for order in range(seen.total(), -1, -1)] == [*range(seen.total(), -1, -1)]


@pytest.mark.parametrize(
    ("events", "lag"),
    [
        pytest.param(TEN, 10, id="no record terminal"),
        pytest.param([*TEN, MIXED], 5, id="terminal below and above the SPSO"),
        pytest.param([*TEN, held("a", 0, 3)], 10, id="a held record counts"),
        pytest.param([*TEN, read(10)], 0, id="all terminal"),
    ],
)
def test_the_lag_of_an_observed_share_partition(events: list[Event], lag: int) -> None:
    assert observed(events).snapshot()["lag"] == lag


def test_a_member_has_its_records_without_a_deadline_and_others_are_named() -> None:
    assert observed([*TEN, held("b", 1, 3)]).snapshot()["members"] == [
        {
            "id": "a",
            "name": "anna",
            "letter": "A",
            "colour": "member0",
            "held": 0,
            "deadline_ms": None,
            "alive": True,
            "frozen": False,
        },
        {
            "id": "b",
            "name": "ben",
            "letter": "B",
            "colour": "member1",
            "held": 2,
            "deadline_ms": None,
            "alive": True,
            "frozen": False,
        },
    ]


def test_final_states_are_kept_below_the_spso() -> None:
    again = observed([*TEN, read(0, (0, 2, ACKNOWLEDGED, 1)), read(1, (1, 4, ACKNOWLEDGED, 1)), read(4)])
    assert again.snapshot()["past"] == [[0, 2, "acknowledged", 1], [2, 4, "acknowledged", 1]]
    seen = observed([*TEN, MIXED, read(8, (8, 9, AVAILABLE, 3))])
    assert seen.snapshot()["past"] == [[3, 5, "acknowledged", 1], [6, 7, "archived", 5]]
    assert observed([*TEN, MIXED, read(8), read(0)]).snapshot()["past"] == []


def passed(spso: int, *runs: tuple[int, int, int, int]) -> DurableStateRead:
    """A read that names runs below the SPSO, and no others."""
    return read(spso)._replace(passed=tuple(Run(*run) for run in runs))


@pytest.mark.parametrize(
    ("events", "past"),
    [
        pytest.param(
            [*TEN, passed(4, (0, 1, ACKNOWLEDGED, 1), (1, 2, ARCHIVED, 5), (2, 4, ACKNOWLEDGED, 2))],
            [[0, 1, "acknowledged", 1], [1, 2, "archived", 5], [2, 4, "acknowledged", 2]],
            id="named between two reads",
        ),
        pytest.param(
            [*TEN, read(0, (0, 2, ACKNOWLEDGED, 1)), passed(4, (0, 1, ACKNOWLEDGED, 1), (1, 4, ACKNOWLEDGED, 1))],
            [[0, 2, "acknowledged", 1], [2, 4, "acknowledged", 1]],
            id="each once, also if two reads name it",
        ),
        pytest.param([*TEN, passed(4, (1, 2, ARCHIVED, 5))], [[1, 2, "archived", 5]], id="others stay unknown"),
        pytest.param(
            [*START, grown(10), passed(4, (2, 4, ACKNOWLEDGED, 1))],
            [[2, 4, "acknowledged", 1]],
            id="at the first read",
        ),
        pytest.param(
            [*TEN, read(8), passed(3, (0, 1, ACKNOWLEDGED, 1), (5, 8, ACKNOWLEDGED, 1))],
            [[0, 1, "acknowledged", 1]],
            id="those below an SPSO that has moved back",
        ),
    ],
)
def test_finished_records_that_the_spso_has_passed_between_two_reads_are_known(
    events: list[Event], past: list[list[object]]
) -> None:
    assert observed(events).snapshot()["past"] == past


def test_a_raster_counts_records_that_the_spso_has_passed_between_two_reads() -> None:
    journal = observed([*TEN, passed(4, (0, 3, ACKNOWLEDGED, 1), (3, 4, ARCHIVED, 5)), grown(12, 10)]).source
    assert "3 acknowledged, 1 archived" in raster(journal, GROUP, TOPIC).text


def test_an_observers_journal_is_equal_after_writing_and_reading(tmp_path: Any) -> None:
    seen = observed([*TEN, MIXED, held("a", 2, 3), passed(7, (2, 7, ACKNOWLEDGED, 1))])
    seen.source.to_jsonl(tmp_path / "journal.jsonl")
    again = view(Journal.from_jsonl(tmp_path / "journal.jsonl"), GROUP, TOPIC)
    assert again.snapshot() == seen.snapshot()


def test_the_html_names_returned_and_unknown_and_no_window() -> None:
    page = observed([*TEN, MIXED])._repr_html_()
    assert "◌ returned" in page
    assert "? unknown" in page
    assert "◌<sup>1</sup>" in page


def test_plots_of_an_observers_journal() -> None:
    journal = observed([*TEN, held("a", 0, 2), MIXED, grown(12, 10)]).source
    picture = raster(journal, GROUP, TOPIC)
    assert "2 acknowledged, 1 archived" in picture.text
    labels = {text.get_text() for text in picture.figure.legends[0].get_texts()}
    assert {"acknowledged", "archived", "returned", "unknown", "acquired", "SPEO at most"} <= labels
    assert "SPEO" not in labels
    assert "SPSO 2 and SPEO at most 11 in the end" in picture.text
    assert lag_plot(journal, GROUP).text == "Lag of g. t-0: at most 10, 7 in the end."


def test_a_ledger_of_an_observers_journal_is_refused() -> None:
    with pytest.raises(ConfigException, match="not an observer's, which is incomplete"):
        ledger(observed([*TEN, MIXED]).source, GROUP, TOPIC)


@st.composite
def durable(draw: st.DrawFn) -> tuple[Run, ...]:
    """Runs in order, with gaps, as a share coordinator keeps them."""
    edges = sorted(draw(st.sets(st.integers(0, 30), min_size=0, max_size=10)))
    states = st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED])
    pairs = zip(edges[::2], edges[1::2], strict=False)
    return tuple(Run(first, end, draw(states), draw(st.integers(1, 4))) for first, end in pairs)


HOLDS = st.lists(
    st.builds(
        lambda first, size, member, count: Hold(first, first + size, member, count),
        st.integers(0, 28), st.integers(1, 6), st.sampled_from("ab"), st.integers(1, 4),
    ),
    max_size=6,
)  # fmt: skip


@given(durable(), HOLDS, st.integers(0, 20))
def test_runs_agree_with_a_naive_oracle(runs: tuple[Run, ...], holds: list[Hold], spso: int) -> None:
    """Offset by offset: the terminal state, else the later one of the durable return and the reported deliveries."""
    knowledge = Knowledge(runs, tuple(holds))
    window_end = knowledge.highest_window_end(spso, 25, 20)
    found = {o: status for first, end, status in knowledge.runs(spso, window_end) for o in range(first, end)}
    assert sorted(found) == [*range(spso, window_end)]
    for offset, status in found.items():
        kept = next((run for run in runs if run.first <= offset < run.end), Run(0, 0, AVAILABLE, 0))
        if kept.state != AVAILABLE:
            assert (int(status.state), status.member_id) == (kept.state, None)
            continue
        latest = max((h.delivery_count for h in holds if h.first <= offset < h.end), default=0)
        assert status.delivery_count == max(latest, kept.delivery_count)
        assert (status.state is RecordState.ACQUIRED) == (latest > kept.delivery_count) == status.known
