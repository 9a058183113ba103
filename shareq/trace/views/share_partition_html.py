"""A share-partition as HTML: its window as a short strip, its figures, and the holders of its records."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Self

from shareq.html import html, strong, table
from shareq.model.waits import Wait
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.views.palette import LIGHT, STATES, SYMBOLS, UNKNOWNS
from shareq.trace.views.snapshot import Run, StripContent
from shareq.trace.views.strip_content import content
from shareq.trace.views.strip_text import KEPT

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


def share_partition_html(shown: StripContent) -> str:
    """The window as a strip, the figures, and the holders."""
    absent = Wait.NOT_LOADED.sentence if not (shown["observed"] or shown["tapped"]) else "nothing durable"
    where = f"{shown['topic']}-{shown['partition']} · " + (
        f"leader broker {shown['leader']}" if shown["loaded"] else absent
    )
    head = f"<div>{strong(shown['group'])} {html(where)}</div>"
    window_end, log_end, observed = shown["window_end"], shown["log_end"], shown["observed"]
    figures = table(
        ("SPSO", "SPEO", "in flight", "delivery complete", "lag", "log start", "log end"),
        [
            (
                shown["spso"],
                None if observed else "empty" if shown["spso"] == window_end else window_end - 1,
                shown["in_flight"],
                sum(run[1] - run[0] for run in shown["runs"] if (run[7] or run[2]) in KEPT),
                shown["lag"],
                shown["log_start"],
                log_end if log_end >= 0 else None,
            )
        ],
    )
    return head + _strip(shown) + figures + _states(shown) + _holders(shown)


def _strip(shown: StripContent) -> str:
    """The first cells of the window, with the text form for screen readers."""
    letters = {member["id"]: member["letter"] for member in shown["members"]}
    cells, position = [], shown["spso"]
    for run in shown["runs"]:
        first, end = run[:2]
        cells += [_gap(offset) for offset in range(position, min(first, position + STRIP_CELLS))]
        cells += [_cell(offset, run, letters) for offset in range(first, min(end, first + STRIP_CELLS))]
        position = end
        if len(cells) >= STRIP_CELLS:
            break
    rest = shown["window_end"] - shown["spso"] - STRIP_CELLS
    more = f" … and {rest:,} more" if rest > 0 else ""
    label = html(shown["text"])
    return f'<div role="img" aria-label="{label}" title="{label}">{"".join(cells[:STRIP_CELLS])}{more}</div>'


def _cell(offset: int, run: Run, letters: dict[str, str]) -> str:
    _, _, state, count, member_id, _, write_id, _ = run
    sign = letters[member_id] if state == "acquired" and member_id else SYMBOLS[state]
    deliveries = f"<sup>{count}</sup>" if count > (state not in UNKNOWNS) else ""
    dashed = "" if write_id is None else "; border-style: dashed; border-color: currentcolor"
    style = f"{_CELL}; text-align: center; {_SHAPES[state]}{dashed}"
    return f'<span style="{style}" title="{offset} {state}">{html(sign)}{deliveries}</span>'


def _gap(offset: int) -> str:
    return f'<span style="{_CELL}; text-align: center" title="{offset} no record">–</span>'


def _states(shown: StripContent) -> str:
    """The number of records in each state."""
    counts: Counter[str] = Counter()
    for first, end, state, *_ in shown["runs"]:
        counts[state] += end - first
    rows = [(f"{SYMBOLS[s]} {s}", counts[s]) for s in (*STATES, *UNKNOWNS) if counts[s]]
    return table(("state", "records"), rows) if counts else ""


def _holders(shown: StripContent) -> str:
    """The members that hold records, in the order of the records."""
    members = {member["id"]: member for member in shown["members"]}
    holders = [members[member_id] for member_id in dict.fromkeys(run[4] for run in shown["runs"]) if member_id]
    rows = [(member["name"], member["held"]) for member in holders]
    return table(("held by", "records"), rows) if rows else ""


class ShownState(SharePartitionState):
    """A copy of a share-partition's state, with a text and an HTML form."""

    @classmethod
    def of(cls, state: SharePartitionState) -> Self:
        """A copy of the state."""
        copied = state.copy()
        return cls(**{field.name: getattr(copied, field.name) for field in fields(copied)})

    def __repr__(self) -> str:
        return content(self)["text"]

    def _repr_html_(self) -> str:
        return share_partition_html(content(self))
