"""The report of a trace: one self-contained HTML file. Every chart has a description."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from shareq.model.printable import escape
from shareq.spark.pipeline import charts
from shareq.spark.pipeline.charts import Chart, Row
from shareq.trace.journal.event_text import count_text, range_text
from shareq.trace.views.palette import LIGHT

MOST_GROUPS = 20

Read = Callable[[str], Sequence[Row]]
Group = tuple[str, str]
"""(journal, group)."""

_STYLE = f"""
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: {LIGHT["ink"]}; background: {LIGHT["bg"]}; margin: 0 auto;
       max-width: 72rem; padding: 2rem 1.5rem 4rem; }}
h1 {{ font-size: 1.7rem; margin: 0 0 .3rem; }}
h2 {{ font-size: 1.3rem; margin: 2.8rem 0 .4rem; padding-top: 1rem; border-top: 1px solid {LIGHT["line"]}; }}
h3 {{ font-size: 1rem; margin: 1.6rem 0 .4rem; }}
p {{ margin: .3rem 0; }}
.soft, figcaption {{ color: {LIGHT["soft"]}; }}
.charts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); gap: 1.2rem;
          margin-top: 1rem; align-items: start; }}
figure {{ margin: 0; padding: .9rem 1rem; background: {LIGHT["card"]}; border: 1px solid {LIGHT["line"]};
         border-radius: 8px; }}
figure h3 {{ margin: 0 0 .4rem; }}
figure img {{ width: 100%; height: auto; display: block; }}
figcaption {{ font-size: .82rem; line-height: 1.4; margin-top: .5rem; overflow-wrap: anywhere; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; margin-top: .4rem; }}
th, td {{ text-align: right; padding: .25rem .55rem; border-bottom: 1px solid {LIGHT["line"]}; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; }}
th {{ font-weight: 600; color: {LIGHT["soft"]}; }}
"""


def report_html(read: Read, events: int, bad: int) -> str:
    """The report; `read` returns the rows of a table, or of "worst", by name."""
    journals = {row["journal"]: row for row in read("journals")}
    rates, groups = _biggest(read("rates"))
    tables = {name: _by_group(read(name), groups) for name in _SHOWN}
    parts = [_head(journals.values(), events, bad)]
    for group in groups:
        mine = {name: rows[group] for name, rows in tables.items()}
        parts.append(_section(group, rates[group], mine, journals[group[0]], several=len(journals) > 1))
    left_out = len(rates) - len(groups)
    if left_out:
        parts.append(
            f"<p class=soft>{count_text(left_out, 'smaller group')} omitted: their figures are in the tables.</p>"
        )
    if not groups:
        parts.append("<p>No group has acquired a record.</p>")
    body = "\n".join(parts)
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>shareq: a trace</title>"
        f'<meta name=viewport content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


_SHOWN = ("activity", "lag", "latency", "redeliveries", "occupancy", "shares", "fairness", "worst")


def _biggest(rates: Sequence[Row]) -> tuple[dict[Group, list[Row]], list[Group]]:
    """The rates by group, and the groups with the most acquired records."""
    by_group: dict[Group, list[Row]] = defaultdict(list)
    for row in sorted(rates, key=lambda r: (-r["acquired"], r["topic"])):
        by_group[row["journal"], row["group_id"]].append(row)
    order = sorted(by_group, key=lambda group: (-sum(row["acquired"] for row in by_group[group]), group))
    return by_group, order[:MOST_GROUPS]


def _by_group(rows: Sequence[Row], groups: Sequence[Group]) -> dict[Group, list[Row]]:
    """The rows of these groups."""
    found: dict[Group, list[Row]] = {group: [] for group in groups}
    for row in rows:
        if (row["journal"], row["group_id"]) in found:
            found[row["journal"], row["group_id"]].append(row)
    return found


def _head(journals: Iterable[Row], events: int, bad: int) -> str:
    """The summary of the journals."""
    rows = [
        (row["journal"], f"{row['events']:,}", f"{row['missing']:,}", _clock(row["since_ms"]), _clock(row["until_ms"]),
         f"{(row['until_ms'] - row['since_ms']) / 1000:,.1f} s")
        for row in sorted(journals, key=lambda row: row["journal"])
    ]  # fmt: skip
    aside = f" {count_text(bad, 'bad line')} put aside in _bad." if bad else " No bad lines."
    return (
        "<h1>A trace of share groups</h1>\n"
        f"<p class=soft>{count_text(events, 'event')} of {count_text(len(rows), 'journal')}.{aside}</p>\n"
        f"{_table(('journal', 'events', 'missing', 'from (UTC)', 'to (UTC)', 'length'), rows)}"
    )


def _clock(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _section(group: Group, rates: list[Row], mine: dict[str, list[Row]], journal: Row, *, several: bool) -> str:
    """The section of one group: rates, charts, poison candidates."""
    span_s = (journal["until_ms"] - journal["since_ms"] + 1) / 1000
    fairness = next((row["fairness"] for row in mine["fairness"]), None)
    pictures = [
        charts.activity(mine["activity"], span_s),
        charts.lag(mine["lag"], span_s) if mine["lag"] else None,
        charts.latency(mine["latency"]) if mine["latency"] else None,
        charts.attempts(mine["redeliveries"]),
        charts.occupancy(mine["occupancy"]) if mine["occupancy"] else None,
        charts.shares(mine["shares"], fairness),
    ]
    where = f" <span class=soft>in {escape(group[0])}</span>" if several else ""
    shown = "\n".join(map(_figure, charts.drawn(pictures)))
    return (
        f"<section>\n<h2>Group {escape(group[1])}{where}</h2>\n{_rates(rates)}\n<div class=charts>\n{shown}\n</div>\n"
        f"{_poison(mine['worst'])}\n</section>"
    )


def _figure(chart: Chart) -> str:
    title, text = escape(chart.title), escape(chart.text)
    image = f'<img src="{chart.source}" alt="{title}">'
    return f"<figure><h3>{title}</h3>{image}<figcaption>{text}</figcaption></figure>"


_COUNTS = (
    "acquired", "accepted", "archived", "released", "rejected", "timed_out", "session_released", "txn_aborted",
    "expired", "lost", "held",
)  # fmt: skip
_ALWAYS = 3
"""The first so many counts are shown even if they are 0."""


def _rates(rates: list[Row]) -> str:
    """The outcomes of records, by topic."""
    counts = [name for place, name in enumerate(_COUNTS) if place < _ALWAYS or any(row[name] for row in rates)]
    shares = ("redelivery_rate", "time_out_rate", "archive_rate")
    rows = [
        (row["topic"], *[f"{row[name]:,}" for name in counts], *[_percent(row[name]) for name in shares],
         "" if row["accepted_per_s"] is None else f"{row['accepted_per_s']:,.1f}")
        for row in rates
    ]  # fmt: skip
    heads = ("topic", *counts, "redelivered", "timed out", "archived", "accepted/s")
    return _table([head.replace("_", " ") for head in heads], rows)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _poison(rows: list[Row]) -> str:
    """The records with the most failures."""
    if not rows:
        return "<p class=soft>No record failed twice, and none was archived after a failure.</p>"
    records, runs = rows[0]["all_records"], rows[0]["runs"]
    counts = ("failures", "time_outs", "releases", "rejects", "session_releases", "txn_aborts")
    shown = [
        (f"{row['topic']}-{row['partition']}: {range_text(row['first'], row['end'])}", f"{row['records']:,}",
         *[f"{row[name]:,}" for name in counts], "archived" if row["archived"] else "")
        for row in sorted(rows, key=lambda row: row["place"])
    ]  # fmt: skip
    more = f" The worst {len(rows)} runs:" if runs > len(rows) else ""
    heads = ["offsets", "records", *[name.replace("_", " ") for name in counts], "end"]
    return (
        f"<h3>Poison candidates</h3>\n<p class=soft>{count_text(records, 'record')} failed twice or more, or were "
        f"archived after a failure.{more}</p>\n{_table(heads, shown)}"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th scope=col>{escape(name)}</th>" for name in heads)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
