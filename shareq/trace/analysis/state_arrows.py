"""The transition table as arrows between record states: what a diagram of the states draws."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.states import TRANSITIONS, RecordEvent, RecordState, next_state


class Arrow(NamedTuple):
    """All events from `source` to `target`. `at_limit`: only for records at their delivery limit."""

    source: RecordState
    target: RecordState
    events: tuple[RecordEvent, ...]
    at_limit: bool = False


def arrows() -> list[Arrow]:
    """The transition table as arrows, and an arrow for each transition that the delivery limit changes."""
    found: dict[tuple[RecordState, RecordState, bool], list[RecordEvent]] = {}
    for (source, event), target in TRANSITIONS.items():
        found.setdefault((source, target, False), []).append(event)
        bent = next_state(source, event, delivery_count=1, delivery_count_limit=1)
        if bent is not None and bent is not target:
            found.setdefault((source, bent, True), []).append(event)
    return [Arrow(source, target, tuple(events), limit) for (source, target, limit), events in found.items()]


def arrow_text(arrow: Arrow) -> str:
    """An arrow as text."""
    limit = " at the limit" if arrow.at_limit else ""
    return f"{arrow.source.name.lower()} → {arrow.target.name.lower()}{limit}: {', '.join(arrow.events)}"
