"""Reports as lines of plain text, for output that is no terminal: a line where something has changed."""

from __future__ import annotations

from collections.abc import Iterator

import click

from shareq.model.printable import printable
from shareq.observer.health.monitor import in_flight
from shareq.observer.health.report import ALARMS, GroupReport, PartitionReport, Report, Verdict
from shareq.observer.health.sentences import clock, duration


class Lines:
    """Keeps what was printed last. A change of an age or of the duration in a sentence alone prints nothing."""

    def __init__(self) -> None:
        self._printed: dict[object, object] = {}

    def show(self, report: Report) -> None:
        for text in self.of(report):
            click.echo(printable(text))

    def of(self, report: Report) -> Iterator[str]:
        """The lines of one report, each with its time."""
        at = clock(report.time_ms)
        now: dict[object, object] = {"trouble": report.trouble}
        if self._printed.get("trouble", "") != report.trouble:
            yield f"{at} {report.trouble or 'the cluster answers again'}"
        for group in report.groups:
            for p in group.partitions:
                key, text = (group.group, p.name), line(group, p)
                now[key] = text
                if self._printed.get(key) != text:
                    yield f"{at} {text}{_age(p)}"
            if not group.partitions:
                now[group.group] = text = (
                    f"{group.group} {group.verdict}: no partitions, members {_known(group.members)}"
                )
                if self._printed.get(group.group) != text:
                    yield f"{at} {text}"
            for d in group.diagnoses:
                now[d._replace(sentence="")] = None
                if d._replace(sentence="") not in self._printed:
                    yield f"{at} {'!' if d.kind in ALARMS else '·'} {d.sentence}"
        self._printed = now


def line(group: GroupReport, p: PartitionReport) -> str:
    figures = (
        ("SPSO", p.start_offset),
        ("end", p.end_offset),
        ("lag", p.lag_records),
        ("in flight", in_flight(p)),
        ("members", p.members),
    )
    text = ", ".join(f"{name} {_known(value)}" for name, value in figures)
    since = "" if p.since_ms is None or p.verdict is Verdict.MOVING else f" since {clock(p.since_ms)}"
    return f"{group.group} {p.name} {p.verdict}{since}: {text}"


def _known(value: object) -> object:
    return "?" if value is None else value


def _age(p: PartitionReport) -> str:
    return "" if p.oldest_unfinished_age_ms is None else f", oldest unfinished {duration(p.oldest_unfinished_age_ms)}"
