"""Texts that fit their room, and time axes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from shareq_widgets.text_fit import clipped, text_width, wrapped
from shareq_widgets.time_scale import TimeScale, duration_text, round_scale, round_step, time_text


def test_a_text_is_clipped_to_its_room() -> None:
    assert clipped("payments", 200) == "payments"
    short = clipped("payments", 40)
    assert short.endswith("…")
    assert text_width(short) <= 40
    assert "payments".startswith(short[:-1])
    assert clipped("payments", 3) == ""


def test_words_are_wrapped_into_lines() -> None:
    text = "the state write failed and the record stays acquired"
    lines = wrapped(text, 120)
    assert " ".join(lines) == text
    assert len(lines) > 2
    assert all(text_width(line) <= 120 for line in lines)
    assert wrapped("unbreakable", 30) == [clipped("unbreakable", 30)]
    assert wrapped("", 30) == []
    assert wrapped("a\u00a0b c", 26) == ["a\u00a0b", "c"]


@pytest.mark.parametrize(
    ("ms", "step_ms", "text"),
    [
        (0, 1_000, "0:00"),
        (75_000, 5_000, "1:15"),
        (3_723_000, 1_000, "1:02:03"),
        (1_500, 500, "0:01.5"),
        (1_250, 50, "0:01.25"),
        (59_999, 1, "0:59.999"),
        (-2_000, 1_000, "-0:02"),
    ],
)
def test_times(ms: int, step_ms: int, text: str) -> None:
    assert time_text(ms, step_ms) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (4_120, "4.1 s"),
        (30_000, "30 s"),
        (59_949, "59 s"),
        (59_960, "1 min"),
        (125_000, "2 min 5 s"),
        (3_780_000, "1 h 3 min"),
        (7_200_000, "2 h"),
    ],
)
def test_durations(ms: int, text: str) -> None:
    assert duration_text(ms) == text


def test_steps_are_round() -> None:
    assert [round_step(ms) for ms in (0, 3, 900, 11_000, 3_600_000, 3_600_001)] == [
        *(1, 5, 1_000, 15_000, 3_600_000, 7_200_000)
    ]


@pytest.mark.parametrize("span_ms", [7, 900, 31_000, 600_000, 90_000_000])
@pytest.mark.parametrize("start_ms", [1_000_000, 1_000_137])
def test_a_scale_has_round_ends_and_ticks_with_room(start_ms: int, span_ms: int) -> None:
    scale = round_scale(start_ms, start_ms + span_ms, 1_000_000, 20, 420)
    assert scale.start_ms <= start_ms
    assert start_ms + span_ms <= scale.end_ms
    assert span_ms <= scale.end_ms - scale.start_ms <= span_ms * 1.5 + 2
    ticks = scale.ticks(1_000_000)
    assert len(ticks) >= 3
    assert all(20 <= tick.x <= 420 for tick in ticks)
    assert all(two.x - one.x >= 52 for one, two in pairwise(ticks))
    assert len({tick.text for tick in ticks}) == len(ticks)


def test_times_outside_a_scale_are_at_its_edges() -> None:
    scale = TimeScale(100, 200, 0, 50)
    assert [scale.x(ms) for ms in (0, 100, 150, 200, 300)] == [0, 0, 25, 50, 50]
    assert scale.per_ms == 0.5
