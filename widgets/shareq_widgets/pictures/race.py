"""The same work done by a consumer group and a share group: a row for each worker over time, and both finish lines.

A row is two paths, one of ordinary and one of slow records: the cost follows the workers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from shareq.sim.race import Outcome, RaceResult, RaceSetting, Work, run_race
from shareq_widgets.drawing import Drawing
from shareq_widgets.pictures.time_plot import TimeRange, draw_axis
from shareq_widgets.text_fit import SMALL, clipped, text_width, wrapped

LEFT: Final = 30.0
RIGHT: Final = 76.0
"""Room for a worker's number, and for its utilization beside its row, px."""
ROW: Final = 18.0
BAR: Final = 12.0
LINE: Final = 15.0


class RaceContent(NamedTuple):
    """`now_ms`: the displayed time; work that begins later is not drawn. `even`: the same race without slow records."""

    result: RaceResult
    even: RaceResult
    now_ms: int

    @property
    def end_ms(self) -> int:
        """When both groups have finished."""
        return max(self.result.consumer_group.finish_ms, self.result.share_group.finish_ms)


def content(setting: RaceSetting, now_ms: int | None = None) -> RaceContent:
    """A race at a time; None: the end of it."""
    found = RaceContent(run_race(setting), run_race(replace(setting, slow_share=0.0)), 0)
    return found._replace(now_ms=found.end_ms if now_ms is None else min(max(now_ms, 0), found.end_ms))


def verdict(result: RaceResult) -> str:
    """Which group finishes first, and by how much."""
    ours, theirs = result.share_group.finish_ms, result.consumer_group.finish_ms
    if ours == theirs:
        return f"Both groups finish in {_seconds(ours)}"
    winner, loser = ("share group", "consumer group") if ours < theirs else ("consumer group", "share group")
    first, last = min(ours, theirs), max(ours, theirs)
    by = f"{_seconds(last - first)} sooner, {last / first:.2f} times as fast"
    return f"The {winner} finishes in {_seconds(first)}, the {loser} in {_seconds(last)}: {by}"


def sentences(shown: RaceContent) -> list[str]:
    """The result in words, with the price: the order, and the race without slow records."""
    result, setting = shown.result, shown.result.setting
    idle = max(setting.workers - setting.partitions, 0)
    overtaken = (
        f"Out of order: the share group finishes {result.share_group.overtaken} of {setting.records} records after a "
        f"later one of their partition, the consumer group {result.consumer_group.overtaken}."
    )
    lines = [
        f"{verdict(result)}.",
        "Wait for the work to begin, mean and longest: " + ", ".join(_waits(one) for one in result[1:]) + ".",
        overtaken,
    ]
    if idle:
        lines.append(f"{idle} of {setting.workers} workers of the consumer group have no partition.")
    if setting.slow_share:
        lines.append(f"Without slow records: {_lowered(verdict(shown.even))}.")
    return lines


def _waits(one: Outcome) -> str:
    return f"{one.name} {_seconds(one.mean_wait_ms)} and {_seconds(one.longest_wait_ms)}"


def _lowered(text: str) -> str:
    return text[0].lower() + text[1:]


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.2f} s" if ms < 10_000 else f"{ms / 1000:,.1f} s"


def draw(shown: RaceContent, width: float) -> Drawing:
    """The race; both groups on one time axis."""
    texts = sentences(shown)
    drawing = Drawing(width, text="\n".join(texts))
    time = TimeRange(0, max(shown.end_ms, 1), LEFT, width - RIGHT)
    y = 8.0
    lines = wrapped(texts[0], width - 8, strong=True)
    for place, line in enumerate(lines):
        drawing.label(f"verdict {place}", 4, y + 6 + LINE * place, line, style="strong")
    y = _draw_legend(drawing, y + LINE * len(lines) + 12, width)
    for outcome in shown.result[1:]:
        y = _draw_outcome(drawing, outcome, time, shown.now_ms, y) + 14
    draw_axis(drawing, "time", time, 0, y + 2)
    y += 22
    for number, sentence in enumerate(texts[1:]):
        for place, line in enumerate(wrapped(sentence, width - 8, 10.5)):
            drawing.label(f"sentence {number}.{place}", 4, y, line, style="small soft")
            y += LINE
    drawing.height = y
    return drawing


def _draw_legend(drawing: Drawing, y: float, width: float) -> float:
    x = 4.0
    for name, colour in (("a record", "acknowledged"), ("a slow record", "acquired")):
        drawing.rect(f"legend {name}", x, y - 9, 12, 10, rx=2, fill=colour)
        drawing.label(f"legend {name} text", x + 17, y, name, style="small soft")
        x += 33 + text_width(name, SMALL)
    drawing.label("legend right", width - 4, y, "time at work", anchor="end", style="small soft")
    return y + 12


def _draw_outcome(drawing: Drawing, outcome: Outcome, time: TimeRange, now_ms: int, y: float) -> float:
    """The name with the finish, and the rows of the workers; returns where they end."""
    key, finished = outcome.name, outcome.finish_ms <= now_ms
    done = sum(work.end_ms <= now_ms for work in outcome.works)
    state = f"finished in {_seconds(outcome.finish_ms)}" if finished else f"{done} of {outcome.setting.records} done"
    drawing.label(key, 4, y + 12, outcome.name.capitalize(), style="strong")
    drawing.label(f"{key} state", 130, y + 12, clipped(state, time.right - 130, SMALL), style="small soft")
    y += 20
    rows: dict[int, list[Work]] = defaultdict(list)
    for work in outcome.works:
        if work.begin_ms < now_ms:
            rows[work.worker].append(work._replace(end_ms=min(work.end_ms, now_ms)))
    for worker, used in enumerate(outcome.utilization):
        at = y + ROW * worker
        _draw_row(drawing, f"{key} {worker}", rows[worker], time, at)
        drawing.label(f"{key} {worker} number", LEFT - 8, at + 10, str(worker + 1), anchor="end", style="small soft")
        text = f"{used:.0%}" if used else "no work"
        drawing.label(f"{key} {worker} used", time.right + 8, at + 10, text, style="small" if used else "small soft")
    foot = y + ROW * outcome.setting.workers
    x = time.x(now_ms)
    drawing.line(f"{key} now", x, y - 4, x, foot, stroke="ink", title="the moment shown")
    if finished:
        x = time.x(outcome.finish_ms)
        title = f"{outcome.name}: finished after {_seconds(outcome.finish_ms)}"
        drawing.line(
            f"{key} finish", x, y - 4, x, foot, stroke="ink", stroke_width=2, stroke_dasharray="4 3", title=title
        )
    return foot


def _draw_row(drawing: Drawing, key: str, works: list[Work], time: TimeRange, y: float) -> None:
    drawing.rect(f"{key} row", time.left, y, time.right - time.left, BAR, rx=2, fill="line", opacity=0.35)
    for name, slow, colour in (("ordinary", False, "acknowledged"), ("slow", True, "acquired")):
        if d := _bars((work for work in works if work.slow is slow), time, y):
            drawing.path(f"{key} {name}", d, fill=colour, stroke="none")


def _bars(works: Iterable[Work], time: TimeRange, y: float) -> str:
    """The data of a path with a bar for each work."""
    bars = []
    for work in works:
        left, right = time.x(work.begin_ms), time.x(work.end_ms)
        wide = max(right - left - (0.6 if right - left > 2 else 0), 0.3)
        bars.append(f"M{left:.1f} {y:.1f}h{wide:.1f}v{BAR:g}h{-wide:.1f}z")
    return "".join(bars)
