"""A share-partition as a line of text: the strip for terminals, tests and screen readers."""

from __future__ import annotations

from shareq.model.waits import Wait
from shareq.trace.views.palette import SYMBOLS, UNKNOWNS
from shareq.trace.views.snapshot import Run, StripContent

KEPT = ("acknowledged", "archived")
"""The states that no record leaves."""
TOKENS = 40
"""Maximum number of signs in a line."""
_SHOWN_SINGLY = 6
"""Runs up to this length are shown offset by offset, longer ones once with their length."""


def strip_text(content: StripContent) -> str:
    """`SPSO 100 | A A ✓ A→✓ – ✕ ○2 B2×30 ... | SPEO 147`: a letter is the holder, a number the delivery count if above
    one, an arrow the target state of a state write in progress, a dash a gap, a tilde a record that rests. An empty
    window: `SPSO 148 | empty`. What the share-partition waits for comes last, in words.

    Of an observer: `SPSO 100 | ✓ ◌1 ?×30 | log end 147`; ◌1 is returned after one delivery, ? is unknown.
    """
    letters = {member["id"]: member["letter"] for member in content["members"]}
    signs: list[str] = []
    spso, window_end, position = content["spso"], content["window_end"], content["spso"]
    for run in content["runs"]:
        if len(signs) > TOKENS:
            break
        first, end = run[:2]
        _add(signs, "–", first - position)
        _add(signs, _sign(run, letters), end - first)
        position = end
    _add(signs, "–", window_end - position if len(signs) <= TOKENS else 0)
    shown = " ".join(signs[:TOKENS]) + (" ..." if len(signs) > TOKENS else "")
    if content["observed"]:
        log_end = content["log_end"] if content["log_end"] >= 0 else "unknown"
        return f"SPSO {spso} | {shown or 'empty'} | log end {log_end}{_doubt(content)}"
    window = "empty" if spso == window_end else f"{shown} | SPEO {window_end - 1}"
    return f"SPSO {spso} | {window}{_doubt(content)}{_waits(content)}"


def _waits(content: StripContent) -> str:
    """What no fetch can change; that all records are delivered shows in the window."""
    return "" if content["waits"] in (None, Wait.LOG_END) else f" ({Wait(content['waits']).sentence})"


def _doubt(content: StripContent) -> str:
    """The reasons why the state of an observed share-partition may differ."""
    from_outside = content["observed"] or content["tapped"]
    doubts = ("" if content["loaded"] or not from_outside else "nothing durable", content["disturbed"])
    return f" ({', '.join(filter(None, doubts))})" if any(doubts) else ""


def _add(signs: list[str], sign: str, length: int) -> None:
    if length > _SHOWN_SINGLY:
        signs.append(f"{sign}×{length}")
    else:
        signs += [sign] * length


def _sign(run: Run, letters: dict[str, str]) -> str:
    _, _, state, count, member_id, deadline_ms, _, to_state = run
    if state in KEPT:
        return SYMBOLS[state]
    sign = SYMBOLS[state] if member_id is None else letters[member_id]
    if count > (state not in UNKNOWNS):
        sign += str(count)
    if state == "available" and deadline_ms is not None:
        sign += "~"
    return sign if to_state is None else f"{sign}→{SYMBOLS[to_state]}"
