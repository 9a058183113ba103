"""The picture of the state machine: counts, tokens and bounces are those of the journal, and all of it is drawn."""

from __future__ import annotations

from collections import Counter
from math import dist
from random import Random
from typing import Any

import pytest

from shareq.model.events import (
    AcknowledgementRefused,
    DurableStateRead,
    Event,
    MemberJoined,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    Run,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import TRANSITIONS, RecordState
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.drawing import Drawing
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures.states import content, draw
from shareq_widgets.pictures.states_content import StatesContent
from shareq_widgets.svg import to_svg
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded, random_history
from tests.trace.test_group_history import busy_cluster
from tests.widgets.pictures.layout import check_layout, extent

A, Q, K, R = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED
WIDTHS = (320, 374, 480, 760, 1200)
JOINED: list[Event] = [TopicCreated(TOPIC, "id", 1), MemberJoined(GROUP, "m", "clerk-1", (TOPIC,))]
START: list[Event] = [*JOINED, loaded(10, 10, limit=2), RecordsAppended(TOPIC, 0, 0, 40)]


def changed(cause: str, first: int, end: int, state: int, count: int = 1, **more: Any) -> RecordsChanged:
    return RecordsChanged(*WHERE, cause, first, end, state, count, **more)


def acquired(first: int, end: int, count: int = 1) -> list[Event]:
    return [changed("acquire", first, end, Q, count, member_id="m", deadline_ms=ORIGIN_MS + 30_000)]


def write(first: int, end: int, to: int, why: str, *, write_id: int = 0, count: int = 1) -> list[Event]:
    holder = {"member_id": "m", "deadline_ms": ORIGIN_MS + 30_000}
    prepared = changed("prepared", first, end, Q, count, **holder, write_id=write_id, to_state=to, why=why)
    return [prepared, StateWritePrepared(*WHERE, write_id, 10, 0, (StateBatch(first, end - 1, to, count),))]


def settle(first: int, end: int, to: int, why: str, *, write_id: int = 0, count: int = 1) -> list[Event]:
    return [StateWriteSettled(*WHERE, write_id, 0), changed("settled", first, end, to, count, why=why)]


def abandon(first: int, end: int, why: str) -> list[Event]:
    held = changed("abandoned", first, end, Q, 1, member_id="m", deadline_ms=ORIGIN_MS + 30_000, why=why)
    return [StateWriteSettled(*WHERE, 0, 7), held]


WINDOW = [*acquired(10, 16), WindowMoved(*WHERE, 10, 16)]


def instant(events: list[Event]) -> Instant:
    journal = Journal(ORIGIN_MS)
    for place, event in enumerate(events):
        journal.record(ORIGIN_MS + place, 1, event)
    return instant_of(GroupHistory(journal, GROUP))


def shown(events: list[Event], since: int = len(START)) -> StatesContent:
    return content(instant(events), since)


def on_edges(content: StatesContent) -> list[str]:
    """The tokens as words: the edge, the kind, the range, the event and the attempt."""
    return [
        f"{edge.source} {edge.target}{' at limit' if edge.at_limit else ''}: "
        f"{token.kind} {token.first}-{token.end} {token.event} {token.delivery_count} {token.member_id}"
        for edge in content.edges
        for token in edge.tokens
    ]


@pytest.mark.parametrize(
    ("events", "tokens"),
    [
        pytest.param([], [], id="nothing moved"),
        pytest.param(acquired(10, 16), ["available acquired: moved 10-16 acquire 1 m"], id="acquired"),
        pytest.param(
            [*acquired(10, 12), *acquired(12, 14), *acquired(16, 18)],
            ["available acquired: moved 10-14 acquire 1 m", "available acquired: moved 16-18 acquire 1 m"],
            id="neighbours are one token",
        ),
        pytest.param([changed("acquire", 10, 16, A, 0)], [], id="new records that stay available travel nowhere"),
        pytest.param(
            [*WINDOW, *write(10, 12, K, "accept")],
            ["available acquired: moved 10-16 acquire 1 m", "acquired acknowledged: writing 10-12 accept 1 m"],
            id="a write under way",
        ),
        pytest.param(
            [*WINDOW, *write(10, 12, K, "accept"), *settle(10, 12, K, "accept")],
            ["available acquired: moved 10-16 acquire 1 m", "acquired acknowledged: moved 10-12 accept 1 m"],
            id="a settled write",
        ),
        pytest.param(
            [*WINDOW, *write(10, 12, R, "reject"), *abandon(10, 12, "reject")],
            ["available acquired: moved 10-16 acquire 1 m", "acquired archived: failed 10-12 reject 1 m"],
            id="a failed write",
        ),
        pytest.param(
            [
                *acquired(10, 11), changed("lock_timeout", 10, 11, A),
                *acquired(10, 11, 2), changed("lock_timeout", 10, 11, R, 2),
            ],
            [
                "available acquired: moved 10-11 acquire 1 m", "available acquired: moved 10-11 acquire 2 m",
                "acquired available: moved 10-11 lock_timeout 1 m",
                "acquired archived at limit: moved 10-11 lock_timeout 2 m",
            ],
            id="attempts used up",
        ),
        pytest.param(
            [changed("acquire", 10, 12, A, 0), changed("log_start", 10, 12, R, 0)],
            ["available archived: moved 10-12 log_start 0 None"],
            id="the log start passed them",
        ),
        pytest.param(
            [*acquired(10, 11), *[changed("renew", 10, 11, Q, 1, member_id="m", deadline_ms=ORIGIN_MS + 40_000)] * 2],
            ["available acquired: moved 10-11 acquire 1 m", "acquired acquired: moved 10-11 renew 1 m"],
            id="two renewals are one token",
        ),
    ],
)  # fmt: skip
def test_tokens_are_the_transitions_since_a_moment(events: list[Event], tokens: list[str]) -> None:
    assert on_edges(shown([*START, *events])) == tokens


def test_a_token_keeps_its_key_when_its_write_settles() -> None:
    events = [*START, *WINDOW, *write(10, 12, K, "accept")]
    before, after = shown(events), shown([*events, *settle(10, 12, K, "accept")], len(events))
    keys = [[t.key for edge in found.edges for t in edge.tokens if t.event == "accept"] for found in (before, after)]
    assert keys[0] == keys[1] != []


def test_a_moment_in_the_future_moves_nothing() -> None:
    assert on_edges(shown([*START, *WINDOW], 99)) == []


def test_without_a_former_moment_tokens_are_those_of_the_last_second() -> None:
    at = instant([*START, *WINDOW])
    assert on_edges(content(at)) == ["available acquired: moved 10-16 acquire 1 m"]
    assert on_edges(content(at._replace(now_ms=at.now_ms + 1_000))) == []


def test_records_done_lately_are_counted_when_their_write_has_settled() -> None:
    events = [*START, *WINDOW, *write(10, 12, K, "accept")]
    assert shown(events).done == 0
    at = instant([*events, *settle(10, 12, K, "accept"), *write(12, 13, A, "release", write_id=1)])
    assert content(at, at.until).done == 2
    assert content(at._replace(now_ms=at.now_ms + 1_000), at.until).done == 0


def test_a_refused_acknowledgement_bounces_with_its_error_in_words() -> None:
    events = [*START, *WINDOW, *[AcknowledgementRefused(*WHERE, "m", code) for code in (42, 121, 121)]]
    found = shown(events)
    assert found.refused == 3
    assert [(b.error, b.meaning) for b in found.bounces] == [
        ("INVALID_RECORD_STATE", "only its holder may, and only once")
    ] * 2
    assert shown(events, len(events)).refused == 0
    drawing = draw(found, 374)
    key = f"bounce {len(events) - 1}"
    assert drawing.find(f"{key} error")["text"] == "INVALID_RECORD_STATE"
    assert drawing.find("more refused")["text"] == "2 more"
    assert "2 more" not in draw(found, 760).text
    badge = drawing.find(f"{key} badge")
    assert badge["about"] == ["member:m"]
    assert badge["along"] == drawing.find(f"{key} letter")["along"]
    assert (
        "A acknowledged t-0: INVALID_RECORD_STATE: only its holder may, and only once; 1 more refused" in drawing.text
    )


def test_an_unloaded_share_partition_has_no_counts() -> None:
    found = shown([*START, *WINDOW, SharePartitionDropped(*WHERE, "why")])
    assert (found.not_loaded, found.window) == (1, 0)
    assert "no leader has records in memory" in draw(found, 374).text


def test_a_group_without_share_partitions_is_drawn() -> None:
    drawing = draw(shown([]), 374)
    assert drawing.text.startswith("0 share-partitions: no leader has records in memory: waits for a fetch")
    assert {"node available", "node acquired", "node acknowledged", "node archived"} == set(drawing.keys("node"))


def test_an_observer_knows_what_is_durable_and_what_its_members_hold() -> None:
    read = DurableStateRead(*WHERE, 0, (Run(2, 4, K, 1), Run(4, 5, A, 1)), 2, 0, 1, 0)
    found = shown([*JOINED, read, RecordsAppended(TOPIC, 0, 0, 10), RecordsHeld(*WHERE, "m", 5, 7, 1)], 0)
    assert found.observed
    assert found.done is None
    assert found.counts == {"available": 0, "acquired": 2, "acknowledged": 2, "archived": 0}
    assert found.uncertain == {"returned": 1, "unknown": 5}
    assert on_edges(found) == ["available acquired: moved 5-7 acquire 1 m"]
    drawing = draw(found, 374)
    assert drawing.find("count available")["text"] == "? of 6"
    assert drawing.find("count acquired")["text"] == "2 + ? of 6", "others may be held by members of other programs"
    assert "○ 0 available" not in drawing.text
    assert "? 5 unknown" in drawing.text


def test_an_archiving_record_has_a_node() -> None:
    read = DurableStateRead(*WHERE, 0, (Run(0, 3, RecordState.ARCHIVING, 1),), 0, 0, 1, 0)
    drawing = draw(shown([*JOINED, read]), 374)
    assert drawing.find("count archiving")["text"] == "3"
    check_layout(drawing)


# ---- random histories ------------------------------------------------------------------------------------------------


class Naive:
    """Records by offset, and the transitions of the events since a moment."""

    def __init__(self) -> None:
        self.records: dict[int, tuple[RecordState, bool]] = {}
        self.moved: Counter[tuple[str, str]] = Counter()
        self.refused = 0

    def add(self, event: Event, *, counts: bool) -> None:
        if isinstance(event, SharePartitionLoaded):
            self.records = {o: (RecordState(run.state), False) for run in event.runs for o in range(run.first, run.end)}
        elif isinstance(event, WindowMoved):
            self.records = {offset: found for offset, found in self.records.items() if offset >= event.spso}
        elif isinstance(event, AcknowledgementRefused):
            self.refused += counts
        elif isinstance(event, RecordsChanged):
            self._change(event, counts)

    def _change(self, event: RecordsChanged, counts: bool) -> None:
        state = RecordState(event.state)
        for offset in range(event.first, event.end):
            self.records[offset] = state, event.write_id is not None
        known = {cause: source for source, cause in TRANSITIONS}
        cause = event.why if event.cause == "settled" else event.cause
        if counts and cause in known and not (cause == "acquire" and state is A):
            self.moved[known[cause].name.lower(), state.name.lower()] += event.end - event.first  # type: ignore[index]


@pytest.mark.parametrize("run", range(6))
def test_counts_and_moves_at_random_moments_are_those_of_the_journal(run: int) -> None:
    rng = Random(run)
    *_, (journal, _) = random_history(rng, 250)
    history = GroupHistory(journal, GROUP)
    whole = instant_of(history)
    for _ in range(cases(25, 170)):
        since, until = sorted(rng.randrange(history.total + 1) for _ in range(2))
        naive = Naive()
        for entry in journal.entries()[:until]:
            naive.add(entry.event, counts=entry.order >= since)
        found = content(whole._replace(until=until), since)
        moved: Counter[tuple[str, str]] = Counter()
        for edge in found.edges:
            moved[edge.source, edge.target] += edge.moved
        assert +moved == naive.moved
        assert found.refused == naive.refused
        states = Counter(state.name.lower() for state, _ in naive.records.values())
        assert found.counts == {state: states[state] for state in found.counts}
        assert sum(edge.writing for edge in found.edges) == sum(writes for _, writes in naive.records.values())
        for edge in found.edges:
            assert sum(t.end - t.first for t in edge.tokens) <= edge.moved + edge.writing + edge.failed
        for width in (320, 760):
            check_drawing(found, draw(found, width))
        check_drawing(found, draw(found, 374, low=True))


def check_drawing(found: StatesContent, drawing: Drawing) -> None:
    """The counts are at the nodes, each edge with records has tokens for all of them, and each token has travelled."""
    check_layout(drawing, may_touch=("token",))
    for state, count in found.counts.items():
        words = drawing.find(f"count {state}")["text"]
        assert words.partition(" ")[0] == f"{count:,}"
        assert words.endswith("window") == (state in ("acknowledged", "archived"))
    pills = [element for element in drawing.elements if "token" in element["key"] and element["key"].endswith(" text")]
    assert sum(_records(element["text"]) for element in pills) == sum(
        edge.moved + edge.writing + edge.failed for edge in found.edges
    )
    nodes = [extent(drawing.find(key)) for key in drawing.keys("node")]
    backs = [drawing.find(element["key"].removesuffix(" text")) for element in pills]
    for element in backs:
        end = element["along"].replace("C", " ").split()[-2:]
        assert dist(extent(element).middle, tuple(map(float, end))) < 0.05
    boxes = list(map(extent, backs))
    assert not any(box.overlaps(node) for box in boxes for node in nodes)


def _records(text: str) -> int:
    """The number of records of a token: "×12", "7" or "7–9"."""
    if text.startswith("×"):
        return int(text[1:].replace(",", ""))
    first, _, last = text.partition("–")
    return int(last or first) - int(first) + 1


@pytest.mark.parametrize("width", WIDTHS)
def test_a_busy_group_is_drawn_inside_the_picture(width: int) -> None:
    history = GroupHistory(busy_cluster(), "g")
    at = instant_of(history)
    for since in (0, at.until - 40):
        found = content(at, since)
        drawing = draw(found, width)
        check_drawing(found, drawing)
        for theme in ("light", "dark"):
            assert to_svg(drawing, theme=theme).startswith("<svg")
    one = content(at, topic="orders", partition=2)
    assert (one.scope, one.share_partitions) == ("orders-2", 1)
    assert content(at, topic="orders").scope == "orders, 4 share-partitions"
    parts = [content(at, topic="orders", partition=partition).window for partition in range(4)]
    assert sum(parts) == content(at).window
