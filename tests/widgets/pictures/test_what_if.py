"""The what-if picture: its layout, its words, its lines and marks compared with the table."""

from __future__ import annotations

import re
from math import log
from random import Random
from typing import Any

import pytest

from shareq.sim.what_if import GRID, WORK, Figure, Setting, Table, Workload, settings, stored_table
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures import what_if as picture
from shareq_widgets.pictures.what_if_words import (
    CHARTS,
    WhatIfContent,
    notes,
    rate_text,
    share_text,
    time_text,
    value_text,
    verdict,
    words,
)
from tests.widgets.pictures.layout import WIDTHS, check_layout, texts

LOCKS_MS = GRID["lock_duration_ms"]
OUTSIDE = (Setting(3_600_000), Setting(1000), Setting(record_locks=10_000), Setting(1000, 10_000, 25))


@pytest.fixture(scope="module")
def table() -> Table:
    return stored_table()


def random_content(table: Table, draw: Random) -> WhatIfContent:
    """Any choice with a setting in force that is computed, between two, outside, or not known."""
    computed = draw.choice(list(settings(table.grid)))
    between = Setting(draw.randint(5000, 120_000), draw.randint(100, 4000), draw.randint(2, 10))
    current = draw.choice((computed, between, None, *OUTSIDE))
    chosen = draw.choice((computed, draw.choice(list(settings(table.grid)))))
    where = "" if current is None else draw.choice(("crew", "a-group-with-a-rather-long-name-of-45-characters"))
    return WhatIfContent(table, draw.choice(list(table.workloads)), chosen, current, where)


@pytest.mark.parametrize("width", [*WIDTHS, 560, 900, 1400])
def test_drawings_fit_at_all_widths(width: int, table: Table, seed: int) -> None:
    draw = Random(seed)
    for _ in range(20):
        shown = random_content(table, draw)
        drawing = picture.draw(shown, width)
        check_layout(drawing)
        assert drawing.text == words(shown)


def of_figures(figures: dict[str, list[Figure | None]], **grid: Any) -> WhatIfContent:
    """A table of one workload with these figures; the others are 0."""
    whole = {"lock_duration_ms": (10_000, 30_000), "record_locks": (2000,), "delivery_count_limit": (5,), **grid}
    count = len(list(settings(whole)))
    rest: dict[str, list[Figure | None]] = {chart.name: [Figure(0, 0, 0)] * count for chart in CHARTS}
    made = Table([Workload("w", "Some work.", WORK)], whole, 3, {"w": rest | figures})
    return WhatIfContent(made, "w", Setting(10_000), Setting(30_000), "crew")


def even(*values: float | None) -> list[Figure | None]:
    return [None if value is None else Figure(value, value, value) for value in values]


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        pytest.param(
            {"p99_ms": even(16_000, 31_000), "redeliveries": even(0.009, 0.004), "throughput": even(25, 25.4)},
            "Lock 10 s instead of 30 s: p99 31 s → 16 s, redeliveries 0.4 % → 0.9 %, archived the same, throughput the "
            "same.",
            id="two figures differ",
        ),
        pytest.param({}, "Lock 10 s instead of 30 s: all figures the same.", id="none differs"),
        pytest.param(
            {"redeliveries": [Figure(0.02, 0.01, 0.03), Figure(0.03, 0.02, 0.05)], "archived": even(0.001, 0)},
            "Lock 10 s instead of 30 s: p99 the same, redeliveries 3 % → 2 % (within the spread), archived 0 % → "
            "0.1 %, throughput the same.",
            id="each median is within the band of the other",
        ),
        pytest.param(
            {"p99_ms": even(None, 31_000), "throughput": even(0, 25)},
            "Lock 10 s instead of 30 s: p99 31 s → no record accepted, redeliveries the same, archived the same, "
            "throughput 25/s → 0/s.",
            id="no record is accepted",
        ),
    ],
)
def test_two_settings_are_compared_in_a_sentence(figures: dict[str, list[Figure | None]], sentence: str) -> None:
    assert verdict(of_figures(figures)) == sentence


def test_all_values_that_differ_are_named() -> None:
    grid = {"record_locks": (500, 2000), "delivery_count_limit": (2, 5)}
    shown = of_figures({}, **grid)._replace(chosen=Setting(10_000, 500, 2))
    first = "Lock 10 s instead of 30 s, 500 record locks instead of 2,000, 2 deliveries instead of 5: "
    assert verdict(shown) == f"{first}all figures the same."
    assert verdict(shown._replace(chosen=Setting(30_000, 500, 5))).startswith("500 record locks instead of 2,000: ")


def test_a_setting_in_force_that_was_chosen_is_marked_as_in_force() -> None:
    shown = of_figures({"p99_ms": even(1, 31_000)})._replace(chosen=Setting(30_000))
    assert verdict(shown) == (
        "Lock 30 s, 2,000 record locks, 5 deliveries, as now: p99 31 s, redeliveries 0 %, archived 0 %, throughput 0/s."
    )


@pytest.mark.parametrize(
    ("current", "note"),
    [
        pytest.param(None, "No group is given, so no setting is in force.", id="no group"),
        pytest.param(
            Setting(26_000),
            "Now lock 26 s, 2,000 record locks, 5 deliveries: the figures are those of lock 30 s, 2,000 record locks, "
            "5 deliveries.",
            id="between two computed ones",
        ),
        pytest.param(
            Setting(600_000, 2000, 9),
            "Now lock 10 min, 2,000 record locks, 9 deliveries: outside what was computed, lock 10 min (computed: "
            "10 s to 30 s); 9 deliveries (computed: 5 to 5).",
            id="outside the grid",
        ),
    ],
)
def test_the_setting_in_force_is_explained_where_it_was_not_computed(current: Setting | None, note: str) -> None:
    shown = of_figures({})._replace(current=current)
    assert notes(shown)[0] == note
    assert "instead of" not in verdict(shown) or shown.base is not None


def test_the_words_have_each_figure_of_the_line(table: Table) -> None:
    shown = WhatIfContent(table, "mixed", Setting(15_000), Setting(), "crew")
    for chart in CHARTS:
        points = [
            f"{time_text(ms)}: {value_text(chart, table.figure('mixed', Setting(ms), chart.name))}" for ms in LOCKS_MS
        ]
        assert f"{chart.title}, by lock duration: {', '.join(points)}." in words(shown)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (time_text(640), "640 ms"),
        (time_text(8200), "8.2 s"),
        (time_text(8000), "8 s"),
        (time_text(9960), "10 s"),
        (time_text(119_400), "119 s"),
        (time_text(300_000), "5 min"),
        (share_text(0), "0 %"),
        (share_text(0.0004), "0.04 %"),
        (share_text(0.0091), "0.9 %"),
        (share_text(0.03), "3 %"),
        (share_text(0.34), "34 %"),
        (share_text(12.4), "1,240 %"),
        (rate_text(0.91), "0.91/s"),
        (rate_text(24.62), "24.6/s"),
        (rate_text(1310), "1,310/s"),
    ],
)
def test_numbers_have_two_or_three_digits(text: str, expected: str) -> None:
    assert text == expected


# ---- lines and marks -------------------------------------------------------------------------------------------------


def place(drawing: Drawing, chart: str, lock_ms: float) -> float:
    """The x of a lock duration, from those of the first and the last point of the chosen line."""
    first, last = (drawing.find(f"{chart} chosen at {ms}")["attributes"]["cx"] for ms in (LOCKS_MS[0], LOCKS_MS[-1]))
    share = log(lock_ms / LOCKS_MS[0]) / log(LOCKS_MS[-1] / LOCKS_MS[0])
    return float(first + share * (last - first))


@pytest.mark.parametrize("chart", [chart.name for chart in CHARTS])
def test_the_marks_stand_at_the_lock_durations_of_both_settings(chart: str, table: Table) -> None:
    drawing = picture.draw(WhatIfContent(table, "mixed", Setting(15_000), Setting(26_000)), 1200)
    for name, ms, words_of in (("now", 26_000, "now: 26 s"), ("chosen", 15_000, "15 s")):
        mark = drawing.find(f"{chart} {name} mark")
        assert mark["attributes"]["x1"] == mark["attributes"]["x2"] == pytest.approx(place(drawing, chart, ms), abs=0.1)
        assert texts(drawing, f"{chart} {name} mark") == [words_of]
    assert drawing.find(f"{chart} now mark")["attributes"]["stroke-dasharray"]
    assert "stroke-dasharray" not in drawing.find(f"{chart} chosen mark")["attributes"]
    now, chosen = (drawing.find(f"{chart} {name} point")["attributes"] for name in ("now", "chosen"))
    assert now["cx"] == pytest.approx(place(drawing, chart, 30_000), abs=0.1)
    assert (now["fill"], chosen["fill"]) == ("bg", picture.CHOSEN)


@pytest.mark.parametrize(("ms", "text"), [(1000, "← now: 1 s"), (3_600_000, "now: 60 min →")])
def test_a_setting_beyond_the_axis_has_words_with_an_arrow_and_no_mark(ms: int, text: str, table: Table) -> None:
    drawing = picture.draw(WhatIfContent(table, "mixed", Setting(), Setting(ms)), 760)
    assert texts(drawing, "p99_ms now mark text") == [text]
    assert drawing.keys("p99_ms now") == ["p99_ms now mark text"]


def test_other_limits_in_force_have_a_line_of_their_own(table: Table) -> None:
    now = Setting(30_000, 500, 5)
    same = picture.draw(WhatIfContent(table, "mixed", Setting(15_000, 500, 5), now), 760)
    other = picture.draw(WhatIfContent(table, "mixed", Setting(15_000, 4000, 5), now), 760)
    assert same.keys("p99_ms now line") == []
    xs_ys = re.findall(r"[\d.]+", other.find("p99_ms now line")["attributes"]["d"])
    assert len(xs_ys) == 2 * len(LOCKS_MS)
    assert "stroke-dasharray" in other.find("p99_ms now line")["attributes"]


def test_points_are_higher_for_greater_figures_and_the_axis_stays(table: Table) -> None:
    drawings = [picture.draw(WhatIfContent(table, "mixed", s), 760) for s in (Setting(), Setting(15_000, 100, 5))]
    ticks = [[drawing.find(key) for key in drawing.keys("p99_ms y ")] for drawing in drawings]
    assert ticks[0] == ticks[1]
    for drawing, locks in zip(drawings, (2000, 100), strict=True):
        ys = {ms: drawing.find(f"p99_ms chosen at {ms}")["attributes"]["cy"] for ms in LOCKS_MS}
        found = {ms: table.figure("mixed", Setting(ms, locks, 5), "p99_ms") for ms in LOCKS_MS}
        by_figure = sorted(LOCKS_MS, key=lambda ms: found[ms] or Figure(0, 0, 0))
        assert [ys[ms] for ms in by_figure] == sorted(ys.values(), reverse=True)


def test_a_line_is_interrupted_where_no_record_is_accepted() -> None:
    grid = {"lock_duration_ms": (5000, 10_000, 20_000, 30_000, 60_000)}
    shown = of_figures({"p99_ms": even(1, 2, None, 4, 5)}, **grid)
    drawing = picture.draw(shown, 760)
    assert drawing.find("p99_ms chosen line")["attributes"]["d"].count("M") == 2
    assert drawing.keys("p99_ms chosen at") == [f"p99_ms chosen at {ms}" for ms in (5000, 10_000, 30_000, 60_000)]
    none = picture.draw(of_figures({"p99_ms": even(None, None)}), 760)
    assert none.keys("p99_ms chosen line") == []
    check_layout(none)
