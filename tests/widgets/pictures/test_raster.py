"""The raster picture: its samples compared with the fold, its drawing with its content."""

from __future__ import annotations

from bisect import bisect_right
from random import Random

import pytest

from shareq.model import events as e
from shareq.model.states import RecordEvent
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures import raster, raster_content
from shareq_widgets.selection import partition
from tests.budgets import cases
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded, random_history
from tests.widgets.pictures.layout import WIDTHS, check_layout, extent, texts


def moments(seed: int, each: int | None = None) -> list[tuple[Instant, int, int]]:
    """Random moments of random runs, with random times around them."""
    found = []
    draw, each = Random(seed), each or cases(5, 200)
    for number in range(5):
        *_, (journal, _) = random_history(Random(f"{seed}/{number}"), 150)
        last = instant_of(GroupHistory(journal, GROUP))
        entries = journal.entries()
        for _ in range(each):
            until = draw.randrange(10, len(entries) + 1)
            now_ms = entries[until - 1].time_ms + draw.randrange(500)
            from_ms = draw.randrange(ORIGIN_MS - 100, now_ms + 1)
            found.append((last._replace(until=until, now_ms=now_ms), from_ms, now_ms + draw.randrange(-400, 9_000)))
    return [(instant, from_ms, max(to_ms, from_ms + 1)) for instant, from_ms, to_ms in found]


def states_at(content: raster_content.RasterContent, time_ms: float) -> dict[int, str]:
    """Offset -> state of the samples at a time, below the SPSO as well."""
    found: dict[int, str] = {}
    for samples, past in ((content.states, False), (content.past, True)):
        for state, rectangles in samples.items():
            for from_ms, to_ms, first, end in rectangles:
                if from_ms <= time_ms < to_ms:
                    found |= dict.fromkeys(range(first, end), f"{state} below" if past else state)
    return found


def test_samples_and_window_are_those_of_the_fold(seed: int) -> None:
    for instant, from_ms, to_ms in moments(seed):
        shown = raster_content.content(instant, TOPIC, 0, from_ms=from_ms, to_ms=to_ms, rows=5_000)
        timeline = PartitionTimeline(instant.history.journal, GROUP, TOPIC, 0)
        timeline.refresh()
        end = min(instant.now_ms, to_ms)
        columns = max(round(raster_content.COLUMNS * max((end - from_ms) / (to_ms - from_ms), 0)), 1)
        for column in range(0, columns, 13):
            centre = from_ms + (column + 0.5) * (max(end, from_ms + 1) - from_ms) / columns
            count = bisect_right(timeline.entries, centre, key=lambda entry: entry.time_ms)
            drawn_to = bisect_right(timeline.entries, to_ms, key=lambda entry: entry.time_ms)
            state = timeline.state(min(count, drawn_to, timeline.count(instant.until)))
            drawn = states_at(shown, centre)
            expected = {o: s.name for first, stop, s in state.runs for o in range(first, stop)}
            assert {offset: name for offset, name in drawn.items() if " below" not in name} == expected
            if state.loaded:
                at = [
                    [value for time_ms, value in steps if time_ms <= centre][-1:]
                    for steps in (shown.spso, shown.window_end)
                ]
                assert at == [[state.spso], [state.window_end]]


def test_what_runs_out_and_what_the_spso_waits_for(seed: int) -> None:
    for instant, _, _ in moments(seed):
        shown = raster_content.content(instant, TOPIC, 0)
        state = instant.history.share_partition(TOPIC, 0, instant.until)
        holders = {
            status.member_id: status.deadline_ms for _, _, status in state.runs
            if status.deadline_ms is not None and instant.now_ms < status.deadline_ms <= shown.to_ms
        }  # fmt: skip
        assert {notice.text[0] for notice in shown.ahead} <= {instant.letter(str(holder)) for holder in holders}
        at_spso = [status for first, _, status in state.runs if first == state.spso and status.member_id is not None]
        waits = f"SPSO waits for {instant.letter(str(at_spso[0].member_id))}'s {state.spso}" if at_spso else ""
        assert shown.waits == (waits if state.loaded else "")
        expired = [
            (entry.time_ms, entry.event.first, entry.event.end)
            for entry in instant.history.journal.entries()[: instant.until]
            if isinstance(entry.event, e.RecordsChanged) and entry.event.cause == RecordEvent.LOCK_TIMEOUT
        ]
        assert list(shown.expired) == [mark for mark in expired if mark[0] > shown.from_ms]


HISTORY: list[tuple[int, int, e.Event]] = [
    (0, -1, e.TopicCreated(TOPIC, "id", 1)),
    (0, 1, e.MemberJoined(GROUP, "m-a", "anna", (TOPIC,))),
    (0, 0, e.RecordsAppended(TOPIC, 0, 0, 300)),
    (1_000, 0, loaded(100, 110, (100, 104, 2, 1), (104, 106, 4, 5), (106, 110, 0, 0))),
    (2_000, 0, e.RecordsChanged(*WHERE, "acquire", 106, 110, 1, 1, "m-a", ORIGIN_MS + 5_000)),
    (3_000, -1, e.FaultInjected("anna crashed")),
    (5_000, 0, e.RecordsChanged(*WHERE, "lock_timeout", 106, 110, 0, 1)),
    (6_000, 0, e.RecordsChanged(*WHERE, "acquire", 106, 107, 1, 2, "m-a", ORIGIN_MS + 9_000)),
]


def written(history: list[tuple[int, int, e.Event]]) -> Instant:
    journal = Journal(ORIGIN_MS)
    for time_ms, broker_id, event in history:
        journal.record(ORIGIN_MS + time_ms, broker_id, event)
    return instant_of(GroupHistory(journal, GROUP))


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_drawing_shows_window_states_deaths_and_locks(width: int, *, tall: bool) -> None:
    shown = raster_content.content(written(HISTORY), TOPIC, 0, from_ms=ORIGIN_MS, to_ms=ORIGIN_MS + 10_000)
    drawing = raster.draw(shown, width, tall=tall)
    assert (drawing.height > raster.TALL) is tall
    check_layout(drawing)
    assert drawing.brush is not None
    plot, brush = extent(drawing.find("plot")), drawing.brush
    assert plot == pytest.approx((brush["left"], brush["top"], brush["right"], brush["bottom"]), abs=0.01)
    assert (brush["from_ms"], brush["to_ms"]) == (ORIGIN_MS, ORIGIN_MS + 10_000)
    second = (plot.right - plot.left) / 10
    assert extent(drawing.find("now")).left == pytest.approx(plot.left + 6 * second, abs=0.1)
    acquired = extent(drawing.find("acquired"))
    assert (acquired.left, acquired.right) == pytest.approx(
        (plot.left + 2 * second, plot.left + 5 * second), abs=second / 10
    )
    assert (acquired.top, acquired.bottom) == pytest.approx(
        (plot.top, plot.bottom - 0.6 * (plot.bottom - plot.top)), abs=0.2
    )
    assert drawing.find("archived")["attributes"]["fill"] == "hatch"
    assert drawing.find("SPSO")["attributes"].get("stroke-dasharray") is None
    assert drawing.find("SPEO")["attributes"]["stroke-dasharray"] == "5 3"
    assert {"SPSO 100", "SPEO 109", "anna crashed"} <= set(texts(drawing))
    assert drawing.find(drawing.keys("line anna crashed")[0])["attributes"]["stroke"] == "alarm"
    assert extent(drawing.find("expired")).right == pytest.approx(plot.left + 5 * second, abs=0.1)
    assert drawing.keys("line A's locks run out") == ["line A's locks run out 1767225609000 1"]
    assert drawing.find("plot")["about"] == [partition(TOPIC, 0)]
    assert drawing.text.splitlines() == [
        "t-0 from 0:00.000 to 0:06.000: offsets 100–109, SPSO 100, SPEO 109", "1 lock ran out",
        "0:03.000 anna crashed", "0:09.000 A's locks run out",
    ]  # fmt: skip


def test_the_spso_line_names_its_holder_and_an_empty_window() -> None:
    history = [*HISTORY[:3], (1_000, 0, loaded(110, 110))]
    empty = raster_content.content(written(history), TOPIC, 0)
    assert raster.window_text(empty) == ("SPSO 110", "empty window")
    for width in WIDTHS:
        drawing = raster.draw(empty, width)
        check_layout(drawing)
        assert texts(drawing, "SPSO text") == ["SPSO 110 · empty window"]
        assert drawing.keys("SPEO text") == []
    waiting = [*HISTORY[:3], (1_000, 0, loaded(106, 110, (106, 110, 0, 0))), HISTORY[4]]
    assert raster.window_text(raster_content.content(written(waiting), TOPIC, 0)) == (
        "SPSO waits for A's 106",
        "SPEO 109",
    )


@pytest.mark.parametrize("spso", [0, 1, 50, 98, 99])
@pytest.mark.parametrize("held", [1, 2, 60])
def test_the_texts_of_the_bounds_are_apart(spso: int, held: int) -> None:
    """Also for a narrow window at the top or at the bottom of the plot."""
    end = min(spso + held, 100)
    history: list[tuple[int, int, e.Event]] = [(0, 0, loaded(0, 100)), (500, 0, loaded(spso, end))]
    shown = raster_content.content(written(history), TOPIC, 0)
    for width in WIDTHS:
        drawing = raster.draw(shown, width)
        check_layout(drawing)
        assert texts(drawing, "SPEO text") == [f"SPEO {end - 1}"]


def test_a_busy_picture_stays_small(seed: int) -> None:
    draw = Random(seed)
    history: list[tuple[int, int, e.Event]] = [(0, 0, loaded(0, 5_000))]
    for number, first in enumerate(draw.sample(range(5_000), 4_000)):
        history.append(
            (number, 0, e.RecordsChanged(*WHERE, "acquire", first, first + 1, 1, 1, "m", ORIGIN_MS + 90_000))
        )
        if number % 40 == 0:
            history.append((number, -1, e.FaultInjected(f"fault {number}")))
    shown = raster_content.content(written(history), TOPIC, 0)
    for width in WIDTHS:
        drawing = raster.draw(shown, width)
        check_layout(drawing)
        assert len(drawing.find("acquired")["attributes"]["d"]) < 200_000


def test_an_observed_partition_names_what_is_not_known() -> None:
    read = e.DurableStateRead(*WHERE, 2, (e.Run(3, 5, 2, 1), e.Run(5, 6, 0, 1)), 2, 0, 1, 0)
    history: list[tuple[int, int, e.Event]] = [
        (0, -1, e.TopicCreated(TOPIC, "id", 1)), (0, -1, e.RecordsAppended(TOPIC, 0, 0, 10)), (1_000, -1, read),
        (3_000, -1, e.RecordsHeld(*WHERE, "m-a", 6, 8, 1)), (4_000, -1, e.RecordsAppended(TOPIC, 0, 10, 12)),
    ]  # fmt: skip
    instant = written(history)
    shown = raster_content.content(instant, TOPIC, 0, from_ms=ORIGIN_MS + 500)
    assert set(shown.states) == {"acquired", "acknowledged", "unknown", "returned"}
    assert raster.window_text(shown)[1] == "SPEO at most 11"
    check_layout(raster.draw(shown, 374))
    from_read = raster_content.content(instant, TOPIC, 0, from_ms=ORIGIN_MS + 2_000)
    assert states_at(from_read, ORIGIN_MS + 2_500) == states_at(shown, ORIGIN_MS + 2_500)


def test_no_line_crosses_the_words_of_the_bounds(seed: int) -> None:
    """What is painted later covers what was painted before."""
    for instant, from_ms, to_ms in moments(seed, 1):
        drawing = raster.draw(raster_content.content(instant, TOPIC, 0, from_ms=from_ms, to_ms=to_ms), 374)
        keys = [element["key"] for element in drawing.elements]
        lines = [place for place, one in enumerate(drawing.elements) if one["tag"] in ("line", "path")]
        words = [keys.index(key) for key in ("SPSO text", "SPEO text") if key in keys]
        assert all(place > max(lines) for place in words)
        for word in words:
            ground, text = extent(drawing.elements[word - 1]), extent(drawing.elements[word])
            assert ground.left <= text.left
            assert text.right <= ground.right
            assert ground.top <= text.top


def test_before_it_is_loaded_nothing_is_drawn() -> None:
    shown = raster_content.content(written(HISTORY[:3]), TOPIC, 0)
    drawing = raster.draw(shown, 374)
    check_layout(drawing)
    assert (shown.known, shown.spso, shown.states) == (False, (), {})
    assert texts(drawing, "nothing known") == ["t-0: no consumer has fetched from it yet"]


@pytest.mark.parametrize(
    ("events", "begin_ms"),
    [
        pytest.param(5, 0, id="few events: the last minute"),
        pytest.param(400, 100, id="many events: as many as fit"),
    ],
)
def test_the_times_of_a_dense_journal_are_shorter(events: int, begin_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raster_content, "SPAN_EVENTS", 300)
    history = [(number, 0, e.RecordsAppended(TOPIC, 0, number, number + 1)) for number in range(events)]
    instant = written([*history, (500, 0, e.BrokerStarted(7))])
    begin, end = raster_content.times(instant._replace(until=events), None, None)
    assert begin - ORIGIN_MS == begin_ms
    assert end > instant.now_ms


def test_times_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="from_ms=9: must be before to_ms=9"):
        raster_content.content(written(HISTORY), TOPIC, 0, from_ms=9, to_ms=9)
