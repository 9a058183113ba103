"""The race: its drawing compared with the work of both groups, and the widget with its sliders."""

from __future__ import annotations

import re
from random import Random

import pytest

from shareq.model.errors import ConfigException
from shareq.sim.race import BOUNDS, RaceSetting, run_race
from shareq_widgets import race
from shareq_widgets.pictures import race as picture
from tests.widgets.pictures.layout import WIDTHS, check_layout


def random_setting(draw: Random) -> RaceSetting:
    return RaceSetting(
        workers=draw.randint(1, 12),
        partitions=draw.randint(1, 24),
        records=draw.choice((1, 30, 240)),
        slow_share=draw.choice((0.0, 0.05, 1.0)),
        slow_factor=draw.choice((1, 20, 200)),
        seed=draw.randrange(99),
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_drawings_fit_at_all_widths_and_times(width: int, seed: int) -> None:
    draw = Random(seed)
    for _ in range(12):
        end = picture.content(random_setting(draw))
        for now_ms in (0, draw.randrange(end.end_ms), end.end_ms):
            drawing = picture.draw(end._replace(now_ms=now_ms), width)
            check_layout(drawing)
            assert drawing.text.startswith(picture.verdict(end.result))


def bars(d: str) -> list[tuple[float, float]]:
    """Left edges and widths of the bars of a path."""
    return [(float(left), float(wide)) for left, wide in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", d)]


def test_a_row_has_a_bar_for_each_work_that_has_begun(seed: int) -> None:
    draw = Random(seed)
    shown = picture.content(RaceSetting(workers=5, partitions=3, slow_share=0.2, seed=draw.randrange(99)))
    shown = shown._replace(now_ms=draw.randrange(1, shown.end_ms))
    drawing = picture.draw(shown, 760)
    for outcome in shown.result[1:]:
        for worker in range(5):
            for name, slow in (("ordinary", False), ("slow", True)):
                key = f"{outcome.name} {worker} {name}"
                begun = [
                    work
                    for work in outcome.works
                    if (work.worker, work.slow) == (worker, slow) and work.begin_ms < shown.now_ms
                ]
                drawn = bars(drawing.find(key)["attributes"]["d"]) if begun else []
                assert bool(drawing.keys(key)) == bool(begun)
                assert len(drawn) == len(begun)
                for (left, wide), work in zip(drawn, begun, strict=True):
                    share = (760 - picture.RIGHT - picture.LEFT) / shown.end_ms
                    assert left == pytest.approx(picture.LEFT + share * work.begin_ms, abs=0.06)
                    ends = picture.LEFT + share * min(work.end_ms, shown.now_ms)
                    assert left + wide == pytest.approx(ends, abs=0.75)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (RaceSetting(slow_share=0), "The consumer group finishes in 3.00 s, the share group in 3.15 s: 0.14 s sooner"),
        (RaceSetting(workers=8), "4 of 8 workers of the consumer group have no partition."),
        (RaceSetting(slow_share=0, round_trip_ms=0), "Both groups finish in 3.00 s"),
        (RaceSetting(), "Without slow records: the consumer group finishes in 3.00 s, the share group in 3.15 s"),
    ],
)
def test_the_words_name_the_winner(setting: RaceSetting, words: str) -> None:
    assert words in "\n".join(picture.sentences(picture.content(setting)))


def test_a_turned_slider_runs_another_race() -> None:
    view = race(records=60)
    sliders = view.children[0].children
    assert [(s.min, s.max) for s in sliders] == [
        BOUNDS[n] for n in ("workers", "partitions", "slow_share", "slow_factor")
    ]
    for slider, value in zip(sliders, (7, 3, 0.25, 9), strict=True):
        slider.value = value
    wanted = RaceSetting(records=60, workers=7, partitions=3, slow_share=0.25, slow_factor=9)
    assert view.setting == wanted
    assert view.content.result == run_race(wanted)
    assert picture.verdict(run_race(wanted)) in repr(view)


def test_a_replay_shows_the_race_up_to_a_time() -> None:
    view = race(records=60)
    view.children[1].children[1].value = 60
    assert (view.shown, view.content.now_ms) == (0.5, round(view.content.end_ms / 2))
    view.shown = 0.25
    assert view.children[1].children[1].value == 30
    with pytest.raises(ValueError, match=r"shown=2: must be a number in 0\.\.1"):
        view.shown = 2


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ConfigException, match=r"workers=0: must be a whole number in 1\.\.12"):
        race(workers=0)
    with pytest.raises(ValueError, match="theme must be one of auto, light, dark, not 'blue'"):
        race(theme="blue")
