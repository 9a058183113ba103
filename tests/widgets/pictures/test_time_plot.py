"""Times in pictures: their texts, the ticks of an axis, the brush."""

from __future__ import annotations

import pytest

from shareq_widgets.pictures.time_plot import TimeRange, clock, duration


@pytest.mark.parametrize(("ms", "step_ms", "text"), [
    pytest.param(41_200, 1, "0:41.200", id="exact"),
    pytest.param(41_200, 100, "0:41.2", id="tenths"),
    pytest.param(101_000, 1_000, "1:41", id="seconds"),
    pytest.param(3_661_000, 1_000, "1:01:01", id="hours"),
    pytest.param(-1_500, 100, "-0:01.5", id="before the origin"),
])  # fmt: skip
def test_a_time_has_as_many_decimals_as_its_steps(ms: int, step_ms: int, text: str) -> None:
    assert clock(ms, step_ms) == text


@pytest.mark.parametrize(("ms", "text"), [(80, "80 ms"), (1_500, "1.5 s"), (60_000, "60 s"), (600_000, "10 min")])
def test_a_duration_in_words(ms: int, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize("width", [320, 1_200])
@pytest.mark.parametrize("span_ms", [7, 900, 52_000, 86_400_000 * 3])
def test_ticks_are_round_and_have_room(span_ms: int, width: int) -> None:
    origin_ms = 5_000
    time = TimeRange(origin_ms + 333, origin_ms + 333 + span_ms, 40, width - 12)
    ticks = time.ticks(origin_ms)
    assert 1 <= len(ticks) <= width / 64 + 1
    xs = [x for x, _ in ticks]
    assert all(b - a >= len(text) * 5.9 for a, b, (_, text) in zip(xs, xs[1:], ticks, strict=False))
    assert xs == sorted(xs)
    assert min(xs) >= 40
    assert len({text for _, text in ticks}) == len(ticks)


def test_the_brush_has_the_times_at_the_edges() -> None:
    time = TimeRange(1_000, 3_000, 50, 250)
    assert (time.x(1_000), time.x(2_000), time.x(9_999)) == (50, 150, 250)
    assert time.brush(10, 90) == {
        "left": 50, "right": 250, "top": 10, "bottom": 90, "from_ms": 1_000, "to_ms": 3_000,
    }  # fmt: skip
