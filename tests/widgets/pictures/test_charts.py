"""The charts: their values compared with a recount of the journal, their drawing with their content."""

from __future__ import annotations

from random import Random

import pytest

from shareq.model import events as e
from shareq.model.states import RecordEvent
from shareq.trace import Journal
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq_widgets.instant import Instant, instant_of
from shareq_widgets.pictures import charts
from tests.budgets import cases
from tests.trace.histories import GROUP as WRITTEN
from tests.trace.histories import ORIGIN_MS, WHERE, loaded
from tests.trace.histories import TOPIC as ONE
from tests.trace.traced_cluster import GROUP, TOPIC, traced_cluster
from tests.widgets.pictures.layout import WIDTHS, check_layout, extent, texts

NAMES = ["lag", "in flight", "throughput", "redeliveries", "time-outs", "lock wait", "attempts"]


@pytest.fixture(scope="module")
def run() -> Instant:
    return instant_of(GroupHistory(traced_cluster(4, latency_ms=5), GROUP))


def chart(shown: charts.ChartsContent, name: str) -> charts.Chart:
    (found,) = [one for one in shown.charts if one.name == name]
    return found


def recount(instant: Instant, from_ms: int, to_ms: int) -> dict[str, float]:
    """The records accepted, delivered again, and with expired locks, in (from_ms, to_ms] up to the moment."""
    found = {"throughput": 0, "redeliveries": 0, "time-outs": 0}
    for entry in instant.history.journal.entries()[: instant.until]:
        event = entry.event
        if isinstance(event, e.RecordsChanged) and from_ms < entry.time_ms <= to_ms:
            count = event.end - event.first
            found["throughput"] += count if (event.cause, event.state) == ("settled", 2) else 0
            again = event.cause == RecordEvent.ACQUIRE and event.state == 1 and event.delivery_count > 1
            found["redeliveries"] += count if again else 0
            found["time-outs"] += count if event.cause == RecordEvent.LOCK_TIMEOUT else 0
    return dict(found)


def test_values_at_random_moments_are_those_of_the_journal(run: Instant, seed: int) -> None:
    draw, entries = Random(seed), run.history.journal.entries()
    for _ in range(cases(25, 1_000)):
        until = draw.randrange(300, len(entries) + 1)
        at = run._replace(until=until, now_ms=entries[until - 1].time_ms + draw.choice((0, 9)))
        begin = at.now_ms - draw.choice((500, 7_000, 60_000))
        shown = charts.content(at, from_ms=begin)
        assert [one.name for one in shown.charts] == NAMES
        points = shown.charts[0].points
        assert len(points) <= charts.BUCKETS + 1
        assert (points[0][0] <= begin, points[-1][1]) == (True, at.now_ms)
        place = draw.randrange(len(points))
        first, last, _ = points[place]
        counts = recount(at, first, last)
        assert chart(shown, "throughput").points[place][2] == pytest.approx(
            counts["throughput"] * 1000 / shown.bucket_ms
        )
        for name in ("redeliveries", "time-outs"):
            assert chart(shown, name).points[place][2] == counts[name]
            assert chart(shown, name).current == recount(at, points[0][0], at.now_ms)[name]
        rate_ms = max(shown.bucket_ms, charts.RATE_MS)
        now = recount(at, at.now_ms - rate_ms, at.now_ms)["throughput"] * 1000 / rate_ms
        assert chart(shown, "throughput").current == pytest.approx(now)
        states = [at.history.share_partition(*found, until).copy() for found in at.history.share_partitions(until)]
        assert chart(shown, "lag").current == (sum(state.lag or 0 for state in states) if states else None)
        assert chart(shown, "in flight").current == (sum(state.in_flight for state in states) if states else None)


def test_gauges_are_the_states_at_the_end_of_each_bucket(run: Instant) -> None:
    shown = charts.content(run, TOPIC, 1)
    timeline = PartitionTimeline(run.history.journal, GROUP, TOPIC, 1)
    timeline.refresh()
    for (_, to_ms, lag), (_, _, in_flight) in zip(shown.charts[0].points, shown.charts[1].points, strict=True):
        state = timeline.state(timeline.at_time(to_ms))
        assert (lag, in_flight) == (state.lag, state.in_flight)


def test_one_partition_a_topic_or_all(run: Instant) -> None:
    every = charts.content(run)
    parts = [charts.content(run, TOPIC, number) for number in range(3)]
    assert (every.about, parts[2].about) == ("all share-partitions", "orders-2")
    assert (every.partitions, [part.partitions for part in parts]) == (3, [1, 1, 1])
    for name in NAMES[:5]:
        assert chart(every, name).current == pytest.approx(sum(chart(part, name).current or 0 for part in parts))
    assert charts.content(run, TOPIC).charts == every.charts


def test_later_charts_keep_the_buckets_of_earlier_ones(run: Instant) -> None:
    begin = run.origin_ms
    early = charts.content(run._replace(now_ms=run.now_ms), from_ms=begin, to_ms=run.now_ms + 60_000)
    late = charts.content(run._replace(now_ms=run.now_ms + 5_000), from_ms=begin, to_ms=run.now_ms + 60_000)
    for before, after in zip(early.charts, late.charts, strict=True):
        assert after.points[: len(before.points) - 1] == before.points[:-1]


ACQUIRED = e.RecordsChanged(*WHERE, RecordEvent.ACQUIRE, 0, 20, 1, 1, "m", ORIGIN_MS + 30_000)
PREPARED = e.RecordsChanged(*WHERE, "prepared", 0, 5, 1, 1, "m", ORIGIN_MS + 30_000, 0, 2, "accept")
HISTORY: list[tuple[int, e.Event]] = [
    (0, e.RecordsAppended(ONE, 0, 0, 30)), (0, loaded(0, 20)), (1_000, ACQUIRED), (4_000, PREPARED),
    (4_000, e.StateWritePrepared(*WHERE, 0, 0, 0, ())), (4_000, e.StateWriteSettled(*WHERE, 0, 0)),
    (4_000, e.RecordsChanged(*WHERE, "settled", 0, 5, 2, 1, why="accept")),
]  # fmt: skip


def written(history: list[tuple[int, e.Event]]) -> Instant:
    journal = Journal(ORIGIN_MS)
    for time_ms, event in history:
        journal.record(ORIGIN_MS + time_ms, 0, event)
    return instant_of(GroupHistory(journal, WRITTEN))


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_drawing_has_values_units_and_one_brush(width: int, *, tall: bool) -> None:
    shown = charts.content(written(HISTORY), from_ms=ORIGIN_MS, to_ms=ORIGIN_MS + 10_000)
    drawing = charts.draw(shown, width, tall=tall)
    assert drawing.find("lag plot")["attributes"]["height"] == (charts.TALL if tall else charts.PLOT)
    check_layout(drawing)
    assert [texts(drawing, f"{name} value") for name in NAMES] == [
        ["25"],
        ["20"],
        ["5"],
        ["0"],
        ["0"],
        ["3,000"],
        ["1"],
    ]
    assert drawing.find("in flight value")["style"] == "strong hot"
    assert drawing.find("lag value")["style"] == "strong"
    assert texts(drawing, "in flight unit") == ["of 20, full"]
    assert texts(drawing, "lag most") == ["30"]
    plots = [extent(drawing.find(f"{name} plot")) for name in NAMES]
    assert len({(plot.left, plot.right) for plot in plots}) == 1
    brush = drawing.brush
    assert brush is not None
    assert (brush["left"], brush["right"]) == (plots[0].left, plots[0].right)
    assert (brush["top"], brush["bottom"]) == (plots[0].top, plots[-1].bottom)
    second = (plots[0].right - plots[0].left) / 10
    assert extent(drawing.find("now")).left == pytest.approx(plots[0].left + 4 * second, abs=0.1)
    bars = extent(drawing.find("throughput bars"))
    assert bars.right == pytest.approx(plots[0].left + 4 * second, abs=1)
    assert bars.top == pytest.approx(plots[2].top + 4, abs=0.1)
    assert drawing.text == (
        "all share-partitions at 0:04.000: lag 25 records; in flight 20 of 20, full; throughput 5 accepted/s; "
        "redeliveries 0 in 4 s; time-outs 0 in 4 s; lock wait, mean 3,000 ms; attempts, mean 1"
    )


def test_an_observed_group_has_a_lag_and_nothing_else() -> None:
    read = e.DurableStateRead(*WHERE, 2, (e.Run(3, 5, 2, 1),), 2, 0, 1, 0)
    shown = charts.content(written([(0, e.RecordsAppended(ONE, 0, 0, 10)), (1_000, read), (2_000, read)]))
    assert [one.current for one in shown.charts] == [6, *[None] * 6]
    drawing = charts.draw(shown, 374)
    check_layout(drawing)
    assert [texts(drawing, f"{name} value") for name in NAMES] == [["6"], *[["not known"]] * 6]
    assert not drawing.keys("attempts line")


def test_a_group_without_share_partitions_has_no_values() -> None:
    shown = charts.content(written([(0, e.BrokerStarted(0))]))
    assert {one.current for one in shown.charts} == {None}
    check_layout(charts.draw(shown, 374))


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (0.25, "0.25"), (1.24, "1.2"), (3, "3"), (41.7, "42"), (412, "412"), (1_204, "1,204"), (31_415, "31k"),
    (2_500_000, "2.5M"),
])  # fmt: skip
def test_a_number_is_short(value: float, text: str) -> None:
    assert charts.number_text(value) == text
