"""Plots: their artists and texts hold the data; no pixels are compared."""

from __future__ import annotations

from io import BytesIO
from itertools import pairwise
from random import Random
from typing import Any

import matplotlib.style
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from shareq.model.errors import ConfigException
from shareq.model.events import (
    BrokerStopped,
    Event,
    FaultInjected,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    SharePartitionDropped,
    TopicCreated,
    WindowMoved,
)
from shareq.trace import Journal, Plot, lag_over_time, lag_plot, raster
from shareq.trace.analysis import touched
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.views.palette import DARK, LIGHT, STATES
from shareq.trace.views.raster_sampling import COLUMNS, PAST, ROWS, sample, sample_part
from tests.trace.histories import GROUP, ORIGIN_MS, TOPIC, WHERE, loaded, random_history

FREE = RecordsChanged(*WHERE, "lock_timeout", 4, 6, 0, 1)
DONE = FREE._replace(cause="settled", first=0, end=4, state=2, why="accept")
HISTORY: list[tuple[int, int, Event]] = [
    (0, -1, TopicCreated(TOPIC, "id", 2)),
    (0, 0, RecordsAppended(TOPIC, 0, 0, 20)),
    (1000, 0, loaded(0, 10, (6, 7, 4, 1), (7, 8, 3, 1), (8, 9, 2, 1), (9, 10, 0, 1))),
    (2000, 0, RecordsChanged(*WHERE, "acquire", 0, 6, 1, 1, "m", 99)),
    (3000, 0, DONE._replace(cause="prepared", state=1, member_id="m", deadline_ms=99, to_state=2, write_id=0)),
    (4000, 0, DONE),
    (4000, 0, WindowMoved(*WHERE, 4, 10)),
    (5000, 0, FREE),
    (6000, -1, BrokerStopped(2, True)),
    (6000, -1, FaultInjected("m crashed")),
    (6500, 1, MemberLeft(GROUP, "x", "left")),
    (8000, 0, RecordsAppended(TOPIC, 0, 20, 21)),
]


def journal_of(history: list[tuple[int, int, Event]]) -> Journal:
    journal = Journal(ORIGIN_MS)
    for at, broker, event in history:
        journal.record(ORIGIN_MS + at, broker, event)
    return journal


def patches(plot: Plot, gid: str, axis: int = 0) -> PolyCollection:
    (found,) = [c for c in plot.axes[axis].collections if c.get_gid() == gid]
    assert isinstance(found, PolyCollection)
    return found


def corners(collection: PolyCollection) -> list[tuple[float, float, float, float]]:
    """(left, right, bottom, top) of each rectangle, rounded to a pixel or so."""
    boxes = [path.get_extents() for path in collection.get_paths()]
    return [(round(box.x0, 1), round(box.x1, 1), round(box.y0, 1), round(box.y1, 1)) for box in boxes]


def test_each_state_has_its_rectangles() -> None:
    plot = raster(journal_of(HISTORY), GROUP, TOPIC, 0)
    assert corners(patches(plot, "acquired")) == [(2, 4, 0, 4), (2, 5, 4, 6)]
    assert corners(patches(plot, "acknowledged")) == [(1, 8.2, 8, 9)]
    assert corners(patches(plot, "acknowledged below the SPSO")) == [(4, 8.2, 0, 4)]
    assert corners(patches(plot, "available")) == [(1, 8.2, 9, 10), (5, 8.2, 4, 6)]
    assert corners(patches(plot, "archiving")) == [(1, 8.2, 7, 8)]
    assert corners(patches(plot, "archived")) == [(1, 8.2, 6, 7)]
    assert {c.get_gid() for c in plot.axes[0].collections} == {*STATES, *(f"{s} below the SPSO" for s in STATES)}
    hatched = {state for state in STATES if patches(plot, state).get_hatch()}
    assert hatched == {"available", "archiving", "archived"}


def test_a_raster_has_lines_marks_and_a_text() -> None:
    plot = raster(journal_of(HISTORY), GROUP, TOPIC, 0)
    (axis,) = plot.axes
    lines = {str(line.get_label()): line for line in axis.get_lines()}
    assert list(lines) == ["SPSO", "SPEO", "lock ran out", "① broker 2 killed, m crashed"]
    assert np.asarray(lines["SPSO"].get_ydata())[[0, -1]].tolist() == [0, 4]
    assert np.asarray(lines["SPEO"].get_ydata())[[0, -1]].tolist() == [0, 10]
    assert [list(np.asarray(data)) for data in lines["lock ran out"].get_data()] == [[5.0], [5.0]]
    assert np.asarray(lines["① broker 2 killed, m crashed"].get_xdata()).tolist() == [6.0, 6.0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("seconds since the start", "offset")
    assert axis.get_title(loc="left") == "g on t-0"
    legend = [text.get_text() for text in plot.figure.legends[0].get_texts()]
    assert set(legend) == {*STATES, *lines}
    assert [label for label in legend if label in STATES] == list(STATES)
    assert repr(plot) == plot.text == (
        "g on t-0: offsets 0 to 20; 4 acknowledged, 0 archived; SPSO 4 and SPEO 9 in the end; 1 lock ran out; "
        "broker 2 killed at 6.000 s, m crashed at 6.000 s."
    )  # fmt: skip


def test_the_text_of_a_raster_says_that_the_window_is_empty_in_the_end() -> None:
    journal = journal_of([(0, 0, loaded(0, 3, (0, 3, 2, 1))), (1, 0, WindowMoved(*WHERE, 3, 3))])
    assert "; SPSO 3 and an empty window in the end." in raster(journal, GROUP, TOPIC, 0).text


def test_a_raster_by_event_has_equal_steps() -> None:
    plot = raster(journal_of(HISTORY), GROUP, TOPIC, 0, by="event")
    assert plot.axes[0].get_xlabel() == "event of the share-partition"
    assert corners(patches(plot, "acquired")) == [(4, 6, 0, 4), (4, 8, 4, 6)]


def test_all_partitions_are_plotted_one_below_the_other() -> None:
    journal = journal_of([*HISTORY, (8500, 0, RecordsAppended(TOPIC, 1, 0, 5))])
    plot = raster(journal, GROUP, TOPIC)
    assert [axis.get_title(loc="left") for axis in plot.axes] == ["g on t-0", "g on t-1"]
    assert plot.axes[0].get_xlim() == plot.axes[1].get_xlim() == (0.0, 8.67)
    assert len(plot.text.splitlines()) == 2


def test_a_plot_is_a_png_unless_its_axes_were_given() -> None:
    plot = raster(journal_of(HISTORY), GROUP, TOPIC, 0)
    png = plot._repr_png_()
    assert png is not None
    assert png.startswith(b"\x89PNG")
    assert png == raster(journal_of(HISTORY), GROUP, TOPIC, 0)._repr_png_()
    axis = Figure().subplots()
    mine = raster(journal_of(HISTORY), GROUP, TOPIC, 0, ax=axis)
    assert (mine.axes, mine._repr_png_()) == ([axis], None)
    assert axis.get_legend() is not None
    assert lag_plot(journal_of(HISTORY), GROUP, ax=axis)._repr_png_() is None


@pytest.mark.parametrize(("style", "palette"), [("default", LIGHT), ("dark_background", DARK)])
def test_colours_follow_the_style(style: str, palette: dict[str, str]) -> None:
    from matplotlib.colors import to_rgba

    with matplotlib.style.context(style):
        plot = raster(journal_of(HISTORY), GROUP, TOPIC, 0)
    assert np.allclose(patches(plot, "acquired").get_facecolor()[0], to_rgba(palette["acquired"]))


@pytest.mark.parametrize(
    ("partition", "by", "message"),
    [
        pytest.param(0, "mood", "by='mood': must be 'time' or 'event'", id="an unknown axis"),
        pytest.param(None, "time", "topic='nope': the journal has no such topic, it has 't'", id="an unknown topic"),
    ],
)
def test_invalid_raster_arguments_are_refused(partition: int | None, by: str, message: str) -> None:
    topic = TOPIC if partition == 0 else "nope"
    with pytest.raises(ConfigException, match=message):
        raster(journal_of(HISTORY), GROUP, topic, partition, by=by)


def test_several_partitions_do_not_fit_one_axis() -> None:
    journal = journal_of([*HISTORY, (8500, 0, RecordsAppended(TOPIC, 1, 0, 5))])
    with pytest.raises(ConfigException, match=r"must be one of \[0, 1\]"):
        raster(journal, GROUP, TOPIC, ax=Figure().subplots())


def test_a_lag_plot_has_a_line_for_each_partition() -> None:
    journal = journal_of(HISTORY)
    plot = lag_plot(journal, GROUP)
    line, moment = plot.axes[0].get_lines()
    x, y = (np.asarray(data).tolist() for data in line.get_data())
    series = lag_over_time(journal, GROUP, TOPIC)
    assert list(zip(x, y, strict=True))[:-1] == [((at - ORIGIN_MS) / 1000, lag) for at, lag in series]
    assert (x[-1], y[-1]) == (8.0, y[-2])
    assert moment.get_label() == "① broker 2 killed, m crashed"
    assert (plot.axes[0].get_xlabel(), plot.axes[0].get_ylabel()) == ("seconds since the start", "records to do")
    assert plot.text == "Lag of g. t-0: at most 20, 15 in the end."
    assert lag_plot(journal, GROUP, TOPIC).text == plot.text
    with pytest.raises(ConfigException, match="group='nope'"):
        lag_plot(journal, "nope")


# ---- sampling --------------------------------------------------------------------------------------------------------


def test_samples_are_the_states_of_the_fold(seed: int) -> None:
    """Each sample is the state of its offset at its time; few offsets have a row each."""
    for number in range(5):
        *_, (journal, _) = random_history(Random(f"{seed}/{number}"), 150)
        timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
        entries = timeline.refresh()
        count = len(entries)
        picture = sample(entries, [float(i) for i in range(1, count + 1)], (0.0, float(count)))
        centres = (picture.x[:-1] + picture.x[1:]) / 2
        low = int(picture.offsets[0])
        assert len(picture.codes) < ROWS
        for column in range(0, COLUMNS, 37):
            state = timeline.state(int(centres[column]))
            window = (state.spso, state.window_end) if state.loaded else (low, low)
            assert (picture.spso[column], picture.window_end[column]) == window
            expected = {o: STATES.index(c.state.name.lower()) + 1 for f, e, c in state.runs for o in range(f, e)}
            codes = picture.codes[:, column]
            drawn = {low + row: int(code) for row, code in enumerate(codes) if 0 < code <= PAST}
            assert drawn == expected


def test_a_part_has_the_samples_of_all_its_entries(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that change no sampled offset are not read. Parts begin and end within blocks, and after all of them."""
    monkeypatch.setattr(touched, "BLOCK", 8)
    for number in range(5):
        rng = Random(f"{seed}/{number}")
        *_, (journal, _) = random_history(rng, 150)
        timeline = PartitionTimeline(journal, GROUP, TOPIC, 0)
        count = len(timeline.refresh())
        for _ in range(20):
            first, stop = sorted(rng.randrange(count + 1) for _ in range(2))
            entries, size = timeline.entries[first:stop], (rng.randrange(1, 30), rng.randrange(1, 12))
            span = (float(journal[0].time_ms), float(journal[-1].time_ms + 1))
            found = sample_part(timeline, timeline.blocks.part(first, stop), span, size)
            start = timeline.state(first)
            whole = sample(entries, [entry.time_ms for entry in entries], span, start=start, size=size)
            for name in ("x", "offsets", "codes", "spso", "window_end"):
                assert np.array_equal(getattr(found, name), getattr(whole, name)), name


def test_rectangles_cover_each_sample_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    picture = sample(journal_of(HISTORY).entries(), [at / 1000 for at, _, _ in HISTORY], (0.0, 8.0))
    picture.codes = rng.integers(0, 3, picture.codes.shape, np.uint8)
    for code in (1, 2):
        area = 0.0
        for (x0, y0), _, (x1, y1), _ in picture.rectangles(code).tolist():
            left, right = np.searchsorted(picture.x, [x0 + 1e-9, x1 + 1e-9]) - [1, 1]
            bottom, top = np.searchsorted(picture.offsets, [y0 + 1e-9, y1 + 1e-9]) - [1, 1]
            assert (picture.codes[bottom:top, left:right] == code).all()
            area += (right - left) * (top - bottom)
        assert area == (picture.codes == code).sum()
    assert picture.rectangles(9).shape == (0, 4, 2)


def test_many_offsets_are_sampled_in_proportion() -> None:
    history: list[tuple[int, int, Event]] = [
        (0, 0, RecordsAppended(TOPIC, 0, 0, 300_000)),
        (1, 0, loaded(0, 300_000, (0, 200_000, 2, 1), (200_000, 300_000, 0, 1))),
    ]
    journal = journal_of(history)
    picture = sample(journal.entries(), [0.0, 0.5], (0.0, 1.0))
    assert picture.codes.shape == (ROWS, COLUMNS)
    last = picture.codes[:, -1].tolist()
    assert (last.count(3), last.count(1)) == (ROWS * 2 // 3, ROWS // 3)
    assert all(a < b for a, b in pairwise(picture.offsets))


def test_a_superseded_leader_is_not_drawn() -> None:
    before = corners(patches(raster(journal_of(HISTORY), GROUP, TOPIC, 0), "acquired"))
    history = [*HISTORY[:4], (2500, 1, FREE), (2500, 1, SharePartitionDropped(*WHERE, "x")), *HISTORY[4:]]
    assert corners(patches(raster(journal_of(history), GROUP, TOPIC, 0), "acquired")) == before


@pytest.mark.parametrize("draw", [raster, lag_plot], ids=["raster", "lag"])
@pytest.mark.parametrize(
    "group",
    [r"$\frac{1$", "g" * 300, "$x$\x1b[2J\n"],
    ids=["invalid mathematics", "300 characters", "mathematics and control characters"],
)
def test_any_name_can_be_drawn(draw: Any, group: str) -> None:
    """Names of groups and clients are those that clients have chosen."""
    named: list[tuple[int, int, Any]] = [*HISTORY]
    history: list[tuple[int, int, Event]] = [
        (at, broker, event._replace(group_id=group) if hasattr(event, "group_id") else event)
        for at, broker, event in named
    ]
    history.append((7000, -1, FaultInjected(f"{group} crashed")))
    plot = draw(journal_of(history), group, *([TOPIC] if draw is raster else []))
    plot.figure.savefig(BytesIO(), format="png", dpi=30)
    (axis, *_) = plot.axes
    height = axis.get_window_extent().height / plot.figure.bbox.height
    assert height > 0.3, "the data keep their room"
    assert len(axis.get_title(loc="left")) < 200
    assert axis.get_title(loc="left").isprintable()
