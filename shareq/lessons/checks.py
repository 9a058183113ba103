"""Checks of a learner's answer: they read the journal, and name the first difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shareq.lessons.life import Life
from shareq.trace.journal.event_text import range_text


class NotYet(AssertionError):
    """A check that did not pass; the text names what is missing."""


class Passed(str):
    """The result of a passed check: its `repr` is the plain text, for the end of a notebook's cell."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def check(holds: bool, passed: str, failed: str) -> Passed:
    """Return the text `passed`, or raise NotYet with the text `failed`."""
    if not holds:
        raise NotYet(f"✗ {failed}")
    return Passed(f"✓ {passed}")


def check_life(
    life: Life,
    *,
    state: str,
    deliveries: int | None = None,
    holders: Iterable[str] | None = None,
    without: Iterable[str] = (),
) -> Passed:
    """Check the life of a record: its state, the number of deliveries, the members that acquired it, and events that
    must not occur. NotYet has the first difference and the record's life."""
    wanted = None if holders is None else list(holders)
    forbidden = [event for event in without if event in life.events]
    wrong = ""
    if forbidden:
        wrong = f"this was to be done without {forbidden[0]}"
    elif life.state != state:
        wrong = f"record {life.offset} is {life.state}, and should be {state}"
    elif deliveries not in (None, life.deliveries):
        wrong = (
            f"record {life.offset} was delivered {_times(life.deliveries)}, and should have been {_times(deliveries)}"
        )
    elif wanted not in (None, life.holders):
        wrong = f"record {life.offset} was held by {_row(life.holders)}, and should have been by {_row(wanted)}"
    summary = f"record {life.offset} is {life.state}, delivered {_times(life.deliveries)}: {' → '.join(life.events)}"
    return check(not wrong, summary, f"{wrong}; its life so far:\n{life}")


def check_window(
    snapshot: Mapping[str, Any], *, spso: int | None = None, speo: int | None = None, records: str | None = None
) -> Passed:
    """Check a snapshot of a view: SPSO, SPEO (the last offset in flight), and `in_flight(snapshot)`.

    An empty window has no SPEO; its records are "".
    """
    last = snapshot["window_end"] - 1 if snapshot["window_end"] > snapshot["spso"] else None
    truth = {"spso": snapshot["spso"], "speo": last, "records": in_flight(snapshot)}
    wanted = {"spso": spso, "speo": speo, "records": records}
    wrong = [
        f"{name.upper()} is {truth[name]!r}, and should be {value!r}"
        for name, value in wanted.items()
        if value not in (None, truth[name])
    ]
    window = "the window is empty" if last is None else f"SPEO {last}: {truth['records']}"
    summary = f"SPSO {truth['spso']}, {window}"
    return check(not wrong, summary, "; ".join(wrong))


def in_flight(snapshot: Mapping[str, Any]) -> str:
    """The records of a window as text, without their holders: "110 available, 111–118 acquired (delivered 1×)"."""
    merged: list[tuple[int, int, str]] = []
    for first, end, state, count, *_ in snapshot["runs"]:
        what = with_count(state, count)
        if merged and merged[-1][1:] == (first, what):
            first = merged.pop()[0]
        merged.append((first, end, what))
    return ", ".join(f"{range_text(first, end)} {what}" for first, end, what in merged)


def with_count(state: str, count: int) -> str:
    """A state and the delivery count: "acquired (delivered 1×)"; "available", if there was no delivery."""
    return f"{state} (delivered {count}×)" if count else state


def _times(count: int | None) -> str:
    return "once" if count == 1 else f"{count} times"


def _row(names: list[str] | None) -> str:
    return ", then ".join(names or []) or "no member"
