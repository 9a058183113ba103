"""The report as a table in a terminal, in its colours; alarm colours only where a person should look."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shareq.model.printable import printable
from shareq.observer.health.monitor import COLUMNS, cells, total_cells
from shareq.observer.health.report import ALARMS, URGENCY, Diagnosis, GroupReport, Report, Verdict
from shareq.observer.health.sentences import clock, duration

STYLES = {
    Verdict.IDLE: "dim",
    Verdict.MOVING: "green",
    Verdict.WAITING: "",
    Verdict.UNKNOWN: "dim italic",
    Verdict.UNATTENDED: "bold yellow",
    Verdict.STUCK: "bold red",
}
_LEFT = {"group", "partition", "state"}
MAX_DIAGNOSES = 12
MAX_LINES = 10_000
"""The lines of a report that is printed once."""

_FRAME_LINES = 5
"""Lines of the screen beside rows and diagnoses: the head, the table's head, an empty line, and those for what does not
fit."""


class TerminalRow(NamedTuple):
    """A share-partition, or a whole group. `cells`: the columns after the group."""

    group: str
    cells: tuple[object, ...]
    verdict: Verdict
    lag_records: int


def screen(report: Report, height: int) -> RenderableType:
    """The report on a screen of `height` lines: what is most urgent first, in the order of the groups."""
    diagnoses = sorted(
        chain.from_iterable(group.diagnoses for group in report.groups), key=lambda d: d.kind not in ALARMS
    )
    shown = diagnoses[:MAX_DIAGNOSES]
    room = max(3, height - _FRAME_LINES - 2 * len(shown))
    rows = [row for group in report.groups for row in _rows(group, report.time_ms)]
    if len(rows) > room:
        rows = [row for group in report.groups for row in _summary(group, report.time_ms)]
    fitting = most_urgent(rows, room)
    shown_rows = _table(report, fitting) if rows else Text("no share groups", "dim")
    parts: list[RenderableType] = [_head(report), shown_rows]
    if len(fitting) < len(rows):
        parts.append(Text(f"… and {len(rows) - len(fitting):,} more rows, none more urgent", "dim"))
    if shown:
        parts += [Text(""), _diagnoses(shown)]
    if len(shown) < len(diagnoses):
        parts.append(Text(f"… and {len(diagnoses) - len(shown):,} more diagnoses", "dim"))
    return Group(*parts)


def _rows(group: GroupReport, now_ms: int) -> Iterator[TerminalRow]:
    for p in group.partitions:
        yield TerminalRow(group.group, cells(p, now_ms), p.verdict, p.lag_records or 0)
    if not group.partitions:
        yield TerminalRow(group.group, total_cells(group), group.verdict, group.lag_records)


def _summary(group: GroupReport, now_ms: int) -> Iterator[TerminalRow]:
    """A row for the whole group, and those of its partitions that a person should look at."""
    yield TerminalRow(group.group, total_cells(group), group.verdict, group.lag_records)
    if len(group.partitions) > 1:
        yield from (row for row in _rows(group, now_ms) if row.verdict in (Verdict.STUCK, Verdict.UNATTENDED))


def most_urgent(rows: list[TerminalRow], room: int) -> list[TerminalRow]:
    """At most `room` rows: those with the worst verdicts and the largest lags, in the order in which they were."""
    if len(rows) <= room:
        return rows
    ranked = sorted(range(len(rows)), key=lambda i: (-URGENCY[rows[i].verdict], -rows[i].lag_records))
    return [rows[i] for i in sorted(ranked[:room])]


def _head(report: Report) -> Text:
    head = Text.assemble(("shareq observe", "bold"), f"  {report.bootstrap_servers}  {clock(report.time_ms)}")
    if report.unreachable_since_ms is not None:
        still = duration(report.time_ms - report.unreachable_since_ms)
        head.append(f"  unreachable since {clock(report.unreachable_since_ms)} ({still}): ", "bold red")
    if report.trouble:
        head.append(f"  {printable(report.trouble)}", "red")
    return head


def _table(report: Report, rows: list[TerminalRow]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=name not in _LEFT)
    stale = report.unreachable_since_ms is not None
    last = None
    for row in rows:
        title = Text(printable(row.group) if row.group != last else "", "bold")
        last = row.group
        *figures, state = row.cells
        style = "dim" if stale else STYLES[row.verdict]
        table.add_row(title, *map(_figure, figures), Text(str(state), style), style="dim" if stale else None)
    return table


def _figure(value: object) -> str:
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _diagnoses(shown: list[Diagnosis]) -> Table:
    """A sentence each, with further lines below its first one."""
    table = Table.grid(padding=(0, 1))
    for d in shown:
        urgent = d.kind in ALARMS
        table.add_row(Text("!", "bold red") if urgent else Text("·", "dim"), Text(printable(d.sentence)))
    return table
