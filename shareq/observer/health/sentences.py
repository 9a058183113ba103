"""Diagnoses in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.model.waits import Wait
from shareq.observer.health.report import Kind, PartitionReport

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
MANY = 5
"""The number of names that a sentence lists."""


def duration(ms: int) -> str:
    """A duration in its largest whole unit, such as "2 min"; below a second "0 s"."""
    seconds = max(0, ms) // 1000
    size, unit = next(((size, unit) for size, unit in _UNITS if seconds >= size), (1, "s"))
    return f"{seconds // size} {unit}"


def clock(ms: int) -> str:
    """A time of day in the local time zone."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%H:%M:%S")


def counted(count: int, noun: str = "record") -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Words:
    """The sentences of one group at one time."""

    def __init__(self, group: str, now_ms: int) -> None:
        self.group, self.now_ms = group, now_ms

    def since(self, ms: int) -> str:
        return f"since {clock(ms)} ({duration(self.now_ms - ms)})"

    # ---- groups ------------------------------------------------------------------------------------------------------

    def of_group(self, kind: Kind, since_ms: int, *, waiting: int, trouble: str) -> str:
        if kind is Kind.NOT_READABLE:
            return f"{self.group} cannot be read {self.since(since_ms)}: {trouble}"
        if kind is Kind.GROUP_UNKNOWN:
            return f"{self.group} does not exist {self.since(since_ms)}"
        verb = "waits" if waiting == 1 else "wait"
        return f"{self.group} has no members: {counted(waiting)} {verb} {self.since(since_ms)}"

    def members_unassigned(self, clients: Sequence[str], since_ms: int) -> str:
        names = ", ".join(clients[:MANY]) + (" and others" if len(clients) > MANY else "")
        verb = "has" if len(clients) == 1 else "have"
        return f"{self.group}: {names} {verb} no partitions {self.since(since_ms)}"

    # ---- share-partitions --------------------------------------------------------------------------------------------

    def _at(self, report: PartitionReport) -> str:
        return f"{self.group} {report.name}"

    def leaderless(self, report: PartitionReport, since_ms: int) -> str:
        return f"{self._at(report)} has no leader {self.since(since_ms)}"

    def stuck(self, kind: Kind, report: PartitionReport, offset: int, reason: StateBatch | None, *, known: bool) -> str:
        assert report.since_ms is not None
        head = f"{self._at(report)}: the window is stuck on offset {offset} {self.since(report.since_ms)}"
        if kind is Kind.STATE_NOT_MOVING:
            head = f"{self._at(report)}: the state does not move; offset {offset} waits {self.since(report.since_ms)}"
        if not known:
            return head
        finished = report.finished_records or 0
        behind = f"; {counted(finished)} behind it {'is' if finished == 1 else 'are'} finished" if finished else ""
        return f"{head}: {_why(report.waits, reason)}{behind}"

    def poison(self, report: PartitionReport, first: StateBatch, limit: int) -> str:
        more = (report.poison_records or 0) - 1
        others = f" ({counted(more)} more like it)" if more else ""
        times = counted(first.delivery_count, "time")
        return (
            f"{self._at(report)}: offset {first.first_offset} was delivered {times} of at most {limit}"
            f", so its next delivery is the last{others}"
        )

    def partition_unassigned(self, report: PartitionReport) -> str:
        assert report.since_ms is not None
        return f"{self._at(report)} has no member, and its records wait {self.since(report.since_ms)}"

    def not_initialized(self, report: PartitionReport) -> str:
        return f"{self._at(report)} has no durable start offset: no outcome of a record is stored yet"

    def open_transaction(self, report: PartitionReport, offset: int) -> str:
        return f"{self._at(report)}: offset {offset} belongs to an open transaction, for which the group waits"


def _why(waits: Wait | None, first: StateBatch | None) -> str:
    """Why a window is stuck: what it waits for, and where that does not say it, the state of its first record."""
    if waits is None or waits is Wait.WINDOW_FULL:
        return _reason(first) + ("" if waits is None else f"; {waits.sentence}")
    return waits.sentence


def _reason(batch: StateBatch | None) -> str:
    """Why a record is not finished, by its durable state."""
    if batch is None:
        return "a member holds it, or it was not delivered"
    if batch.delivery_state == RecordState.ARCHIVING:
        return "it waits for the dead letter queue"
    return f"it was returned after delivery {batch.delivery_count}"
