"""A share-partition as a line of text: what the strip shows, for terminals, tests and screen readers."""

from __future__ import annotations

from collections.abc import Callable

from shareq.trace.fold import SharePartitionState
from shareq.trace.palette import SYMBOLS
from shareq.trace.runs import Cell

TOKENS = 40
"""How many signs a line has at most."""
_SINGLY = 6
"""Runs up to this length are shown offset by offset, longer ones once with their length."""


def strip_text(state: SharePartitionState, letter: Callable[[str], str] = lambda _: SYMBOLS["acquired"]) -> str:
    """`SPSO 100 | A A ✓ A→✓ – ✕ ○2 B2×30 ... | SPEO 147`: a letter is the holder, a number the deliveries if more than
    one, an arrow where a state write under way leads, a dash a gap.

    Observed from outside: `SPSO 100 | ✓ ◌1 ?×30 | log end 147`, ◌1 returned after one delivery, ? nothing is known.
    """
    signs: list[str] = []
    position = state.spso
    for first, end, cell in state.runs:
        if len(signs) > TOKENS:
            break
        _add(signs, "–", first - position)
        _add(signs, _sign(cell, letter), end - first)
        position = end
    _add(signs, "–", state.speo - position if len(signs) <= TOKENS else 0)
    shown = " ".join(signs[:TOKENS]) + (" ..." if len(signs) > TOKENS else "")
    if state.observed:
        log_end = state.log_end if state.log_end >= 0 else "unknown"
        return f"SPSO {state.spso} | {shown or 'empty'} | log end {log_end}{_doubt(state)}"
    loaded = "" if state.loaded else " (not loaded)"
    return f"SPSO {state.spso} | {shown or 'empty'} | SPEO {max(state.speo - 1, state.spso)}{loaded}"


def _doubt(state: SharePartitionState) -> str:
    """Why an observed share-partition may not be what is shown."""
    doubts = ("" if state.loaded else "nothing durable", state.disturbed)
    return f" ({', '.join(filter(None, doubts))})" if any(doubts) else ""


def _add(signs: list[str], sign: str, length: int) -> None:
    if length > _SINGLY:
        signs.append(f"{sign}×{length}")
    else:
        signs += [sign] * length


def _sign(cell: Cell, letter: Callable[[str], str]) -> str:
    if cell.state.terminal:
        return SYMBOLS[cell.state.name.lower()]
    sign = letter(cell.member_id) if cell.member_id is not None else SYMBOLS[cell.name]
    count = str(cell.delivery_count) if cell.delivery_count > cell.known else ""
    target = "" if cell.to_state is None else f"→{SYMBOLS[cell.to_state.name.lower()]}"
    return sign + count + target
