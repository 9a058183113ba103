"""The transition table as arrows between record states: what a diagram of the states draws."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.states import TRANSITIONS, RecordEvent, RecordState, next_state


class Arrow(NamedTuple):
    """All events from `source` to `target`. `at_limit`: only for records at their delivery limit. `queue`: only with a
    dead-letter queue."""

    source: RecordState
    target: RecordState
    events: tuple[RecordEvent, ...]
    at_limit: bool = False
    queue: bool = False


def arrows() -> list[Arrow]:
    """The transition table as arrows, and an arrow for each transition that the delivery limit or a dead-letter queue
    changes."""
    found: dict[tuple[RecordState, RecordState, bool, bool], list[RecordEvent]] = {}
    for (source, event), target in TRANSITIONS.items():
        found.setdefault((source, target, False, False), []).append(event)
        known = [target]
        for limit, queue in ((1, False), (2, True), (1, True)):
            bent = next_state(source, event, delivery_count=1, delivery_count_limit=limit, dead_letter_queue=queue)
            if bent is not None and bent not in known:
                known.append(bent)
                found.setdefault((source, bent, limit == 1, queue), []).append(event)
    return [Arrow(source, target, tuple(events), *when) for (source, target, *when), events in found.items()]


def arrow_text(arrow: Arrow) -> str:
    """An arrow as text."""
    limit = " at the limit" if arrow.at_limit else ""
    queue = " with a dead-letter queue" if arrow.queue else ""
    return f"{arrow.source.name.lower()} → {arrow.target.name.lower()}{limit}{queue}: {', '.join(arrow.events)}"
