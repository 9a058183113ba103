"""A share-partition as HTML: its window as a short strip, its figures, and the holders of its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Self

from shareq.model.html import html, strong, table
from shareq.trace.analysis.runs import RecordStatus
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal.event_text import member_name
from shareq.trace.views.palette import LIGHT, STATES, SYMBOLS, UNKNOWNS
from shareq.trace.views.strip_text import strip_text

STRIP_CELLS = 48
"""Number of offsets in the short strip; the number of further ones follows as text."""
_CELL = "display: inline-block; min-width: 1.5em; padding: 1px 2px; margin: 0 1px 2px 0; border-radius: 4px"
_VEIL = f"background: repeating-linear-gradient(0deg, transparent 0 3px, {LIGHT['unknown']}66 3px 5px)"
_SHAPES = {
    "available": f"border: 2px solid {LIGHT['available']}",
    "acquired": f"border: 2px solid {LIGHT['acquired']}; background: {LIGHT['acquired']}; color: {LIGHT['onfill']}",
    "acknowledged": f"border: 2px solid {LIGHT['acknowledged']}; background: {LIGHT['acknowledged']}; "
    f"color: {LIGHT['onfill']}",
    "archiving": f"border: 2px dotted {LIGHT['archiving']}",
    "archived": f"border: 2px solid {LIGHT['archived']}; "
    f"background: repeating-linear-gradient(45deg, transparent 0 3px, {LIGHT['archived']}66 3px 5px)",
    "returned": f"border: 2px solid {LIGHT['returned']}; {_VEIL}",
    "unknown": f"border: 2px solid {LIGHT['unknown']}; {_VEIL}",
}


def share_partition_html(
    state: SharePartitionState,
    name: Callable[[str], str] = member_name,
    letter: Callable[[str], str] = lambda _: SYMBOLS["acquired"],
) -> str:
    """The window as a strip, the figures, and the holders."""
    absent = "nothing durable" if state.observed else "not loaded"
    where = f"{state.topic}-{state.partition} · " + (f"leader broker {state.leader}" if state.loaded else absent)
    head = f"<div>{strong(state.group_id)} {html(where)}</div>"
    figures = table(
        ("SPSO", "SPEO", "in flight", "delivery complete", "lag", "log start", "log end"),
        [
            (
                state.spso,
                "empty" if state.speo is None and not state.uncertain else state.speo,
                None if state.uncertain else state.in_flight,
                state.delivery_complete_count,
                state.lag,
                state.log_start,
                state.log_end if state.log_end >= 0 else None,
            )
        ],
    )
    return head + _strip(state, letter) + figures + _states(state) + _holders(state, name)


def _strip(state: SharePartitionState, letter: Callable[[str], str]) -> str:
    """The first cells of the window, with the text form for screen readers."""
    cells, position = [], state.spso
    for first, end, status in state.runs:
        cells += [_gap(offset) for offset in range(position, min(first, position + STRIP_CELLS))]
        cells += [_cell(offset, status, letter) for offset in range(first, min(end, first + STRIP_CELLS))]
        position = end
        if len(cells) >= STRIP_CELLS:
            break
    rest = state.window_end - state.spso - STRIP_CELLS
    more = f" … and {rest:,} more" if rest > 0 else ""
    label = html(strip_text(state, letter))
    return f'<div role="img" aria-label="{label}" title="{label}">{"".join(cells[:STRIP_CELLS])}{more}</div>'


def _cell(offset: int, status: RecordStatus, letter: Callable[[str], str]) -> str:
    state = status.name
    sign = letter(status.member_id) if state == "acquired" and status.member_id else SYMBOLS[state]
    count = f"<sup>{status.delivery_count}</sup>" if status.delivery_count > status.known else ""
    dashed = "" if status.write_id is None else "; border-style: dashed; border-color: currentcolor"
    style = f"{_CELL}; text-align: center; {_SHAPES[state]}{dashed}"
    return f'<span style="{style}" title="{offset} {state}">{html(sign)}{count}</span>'


def _gap(offset: int) -> str:
    return f'<span style="{_CELL}; text-align: center" title="{offset} no record">–</span>'


def _states(state: SharePartitionState) -> str:
    """The number of records in each state."""
    counts: Counter[str] = Counter()
    for first, end, status in state.runs:
        counts[status.name] += end - first
    rows = [(f"{SYMBOLS[s]} {s}", counts[s]) for s in (*STATES, *UNKNOWNS) if counts[s]]
    return table(("state", "records"), rows) if counts else ""


def _holders(state: SharePartitionState, name: Callable[[str], str]) -> str:
    held: Counter[str] = Counter()
    for first, end, status in state.runs:
        if status.member_id is not None:
            held[status.member_id] += end - first
    return (
        table(("held by", "records"), [(name(member_id), count) for member_id, count in held.items()]) if held else ""
    )


class ShownState(SharePartitionState):
    """A copy of a share-partition's state, with a text and an HTML form."""

    @classmethod
    def of(cls, state: SharePartitionState) -> Self:
        """A copy of the state."""
        copied = state.copy()
        return cls(**{field.name: getattr(copied, field.name) for field in fields(copied)})

    def __repr__(self) -> str:
        return strip_text(self)

    def _repr_html_(self) -> str:
        return share_partition_html(self)
