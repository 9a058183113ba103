"""A share-partition as a line of text: the strip for terminals, tests and screen readers."""

from __future__ import annotations

from collections.abc import Callable

from shareq.model.waits import Wait
from shareq.trace.analysis.runs import RecordStatus
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.waits import waits_for
from shareq.trace.views.palette import SYMBOLS

TOKENS = 40
"""Maximum number of signs in a line."""
_SHOWN_SINGLY = 6
"""Runs up to this length are shown offset by offset, longer ones once with their length."""


def strip_text(state: SharePartitionState, letter: Callable[[str], str] = lambda _: SYMBOLS["acquired"]) -> str:
    """`SPSO 100 | A A ✓ A→✓ – ✕ ○2 B2×30 ... | SPEO 147`: a letter is the holder, a number the delivery count if above
    one, an arrow the target state of a state write in progress, a dash a gap, a tilde a record that rests. An empty
    window: `SPSO 148 | empty`. What the share-partition waits for comes last: `SPSO 148 | empty (paused)`.

    Of an observer: `SPSO 100 | ✓ ◌1 ?×30 | log end 147`; ◌1 is returned after one delivery, ? is unknown.
    """
    signs: list[str] = []
    position = state.spso
    for first, end, status in state.runs:
        if len(signs) > TOKENS:
            break
        _add(signs, "–", first - position)
        _add(signs, _sign(status, letter), end - first)
        position = end
    _add(signs, "–", state.window_end - position if len(signs) <= TOKENS else 0)
    shown = " ".join(signs[:TOKENS]) + (" ..." if len(signs) > TOKENS else "")
    if state.uncertain:
        log_end = state.log_end if state.log_end >= 0 else "unknown"
        return f"SPSO {state.spso} | {shown or 'empty'} | log end {log_end}{_doubt(state)}"
    window = "empty" if state.speo is None else f"{shown} | SPEO {state.speo}"
    return f"SPSO {state.spso} | {window}{_doubt(state)}{_waits(state)}"


def _waits(state: SharePartitionState) -> str:
    """What no fetch can change; that all records are delivered shows in the window."""
    wait = waits_for(state)
    return "" if wait in (None, Wait.LOG_END) else f" ({wait})"


def _doubt(state: SharePartitionState) -> str:
    """The reasons why the state of an observed share-partition may differ."""
    doubts = ("" if state.loaded or not state.observed else "nothing durable", state.disturbed)
    return f" ({', '.join(filter(None, doubts))})" if any(doubts) else ""


def _add(signs: list[str], sign: str, length: int) -> None:
    if length > _SHOWN_SINGLY:
        signs.append(f"{sign}×{length}")
    else:
        signs += [sign] * length


def _sign(status: RecordStatus, letter: Callable[[str], str]) -> str:
    if status.state.terminal:
        return SYMBOLS[status.state.name.lower()]
    sign = letter(status.member_id) if status.member_id is not None else SYMBOLS[status.name]
    count = str(status.delivery_count) if status.delivery_count > status.known else ""
    if status.rests:
        count += "~"
    target = "" if status.to_state is None else f"→{SYMBOLS[status.to_state.name.lower()]}"
    return sign + count + target
