"""A comparison of two settings of a group in words: see `what_if`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from shareq.sim.what_if import Figure, Setting, Table

SAME: Final = 0.02
"""Two figures that differ by less than this fraction are called the same."""

LOCK: Final = "lock_duration_ms"


class WhatIfContent(NamedTuple):
    """`chosen`: a setting of the table's grid. `current`: the one in force; None: not known. `where`: its group."""

    table: Table
    workload: str
    chosen: Setting
    current: Setting | None = None
    where: str = ""

    @property
    def base(self) -> Setting | None:
        """The computed setting whose figures stand for the one in force; None if it is outside the grid."""
        return None if self.current is None else self.table.nearest(self.current)

    def figure(self, name: str, setting: Setting) -> Figure | None:
        """A figure at a computed setting; None if no record is accepted there."""
        return self.table.figure(self.workload, setting, name)

    def line(self, name: str, setting: Setting) -> list[tuple[int, Figure | None]]:
        """(lock duration, figure) with the limits of a setting."""
        return [(ms, self.figure(name, setting._replace(lock_duration_ms=ms))) for ms in self.table.grid[LOCK]]


def time_text(ms: float) -> str:
    """A time with two or three digits: "640 ms", "8.2 s", "31 s", "5 min"."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 9950:
        return f"{ms / 1000:.1f} s".replace(".0 s", " s")
    return f"{ms / 1000:.0f} s" if ms < 120_000 else f"{ms / 60_000:.3g} min"


def share_text(share: float) -> str:
    """A share in percent: "0 %", "0.04 %", "0.9 %", "34 %"."""
    percent = share * 100
    if percent >= 9.95 or not percent:
        return f"{percent:,.0f} %"
    return f"{percent:.{1 if percent >= 0.095 else 2}f} %".replace(".0 %", " %")


def rate_text(rate: float) -> str:
    """Records per second: "0.9/s", "24.6/s", "310/s"."""
    return f"{rate:,.0f}/s" if rate >= 99.5 else f"{rate:.3g}/s"


class WhatIfChart(NamedTuple):
    """`name`: a figure of the table. `none`: the word where it is missing."""

    name: str
    title: str
    word: str
    text: Callable[[float], str]
    log: bool
    none: str = "no record accepted"


CHARTS: Final = (
    WhatIfChart("p99_ms", "p99 from produce to accept", "p99", time_text, log=True),
    WhatIfChart("redeliveries", "redeliveries, of all records", "redeliveries", share_text, log=True),
    WhatIfChart("archived", "archived, never accepted", "archived", share_text, log=True),
    WhatIfChart("throughput", "throughput", "throughput", rate_text, log=False),
)

_SETTING_WORDS: Final[dict[str, Callable[[int], str]]] = {
    "lock_duration_ms": lambda value: f"lock {time_text(value)}",
    "record_locks": lambda value: f"{value:,} record locks",
    "delivery_count_limit": lambda value: f"{value} deliveries",
}


def setting_text(setting: Setting) -> str:
    """All values: "lock 30 s, 2,000 record locks, 5 deliveries"."""
    return ", ".join(_SETTING_WORDS[name](value) for name, value in setting._asdict().items())


def verdict(shown: WhatIfContent) -> str:
    """The two settings compared, or the figures of the chosen one."""
    base = shown.base
    if base is None or base == shown.chosen:
        figures = ", ".join(
            f"{chart.word} {value_text(chart, shown.figure(chart.name, shown.chosen))}" for chart in CHARTS
        )
        as_now = ", as now" if base is not None else ""
        return f"{_capital(setting_text(shown.chosen))}{as_now}: {figures}."
    changed = [
        f"{_SETTING_WORDS[name](new)} instead of {field_text(name, old)}"
        for name, new, old in zip(Setting._fields, shown.chosen, shown.current or base, strict=True)
        if new != old
    ]
    same = [is_same(chart, shown.figure(chart.name, base), shown.figure(chart.name, shown.chosen)) for chart in CHARTS]
    figures = "all figures the same" if all(same) else ", ".join(_compared(chart, shown, base) for chart in CHARTS)
    return f"{_capital(', '.join(changed))}: {figures}."


def _compared(chart: WhatIfChart, shown: WhatIfContent, base: Setting) -> str:
    before, after = shown.figure(chart.name, base), shown.figure(chart.name, shown.chosen)
    if is_same(chart, before, after):
        return f"{chart.word} the same"
    spread = " (within the spread)" if _overlap(before, after) else ""
    return f"{chart.word} {value_text(chart, before)} → {value_text(chart, after)}{spread}"


def _overlap(one: Figure | None, other: Figure | None) -> bool:
    """True if the median of each is between the lowest and the highest value of the other."""
    if one is None or other is None:
        return False
    return one.lowest <= other.median <= one.highest and other.lowest <= one.median <= other.highest


def is_same(chart: WhatIfChart, one: Figure | None, other: Figure | None) -> bool:
    """True if the medians have the same text, or differ by less than SAME."""
    if one is None or other is None:
        return one is other
    close = abs(one.median - other.median) < SAME * max(one.median, other.median)
    return close or chart.text(one.median) == chart.text(other.median)


def value_text(chart: WhatIfChart, figure: Figure | None) -> str:
    return chart.none if figure is None else chart.text(figure.median)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def notes(shown: WhatIfContent) -> list[str]:
    """What the figures are of: the setting in force, the workload, the runs."""
    found = []
    if shown.current is None:
        found.append("No group is given, so no setting is in force.")
    elif shown.base is None:
        outside = [
            f"{_SETTING_WORDS[name](value)} ({_range_text(shown.table, name)})"
            for name, value in shown.current._asdict().items()
            if not shown.table.grid[name][0] <= value <= shown.table.grid[name][-1]
        ]
        found.append(f"Now {setting_text(shown.current)}: outside what was computed, {'; '.join(outside)}.")
    elif shown.base != shown.current:
        found.append(f"Now {setting_text(shown.current)}: the figures are those of {setting_text(shown.base)}.")
    scenario = shown.table.workloads[shown.workload].scenario
    rate = "all records are there at the start" if scenario.arrival_rate is None else (
        f"{rate_text(scenario.arrival_rate)} arrive"
    )  # fmt: skip
    found.append(
        f"{shown.table.workloads[shown.workload].about} {scenario.consumers} consumers; {rate}; a poll of up to "
        f"{scenario.max_poll_records} records, {time_text(scenario.service_ms)} each, is acknowledged at its end."
    )
    found.append(
        f"Medians of {shown.table.seeds} simulated runs each of {scenario.records:,} records, the band is from the "
        "lowest to the highest. Throughput is counted until the last record arrives."
    )
    return found


def _range_text(table: Table, name: str) -> str:
    values = table.grid[name]
    return f"computed: {field_text(name, values[0])} to {field_text(name, values[-1])}"


def field_text(name: str, value: int) -> str:
    """The value of a field of a setting, without its name."""
    return time_text(value) if name == LOCK else f"{value:,}"


def words(shown: WhatIfContent) -> str:
    """The picture in words: the comparison, the notes, and the figures over the lock duration."""
    lines = [verdict(shown), *notes(shown)]
    for chart in CHARTS:
        points = (
            f"{time_text(at)}: {value_text(chart, figure)}" for at, figure in shown.line(chart.name, shown.chosen)
        )
        lines.append(f"{chart.title}, by lock duration: {', '.join(points)}.")
    return "\n".join(lines)
