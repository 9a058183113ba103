"""A step as one sentence: what its cause did, and what followed."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.model.events import RecordsChanged, StateWriteSettled, WindowMoved
from shareq.trace.analysis.steps import cause_of
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import Name, event_text

CAUSES = 3
"""The most causal events that a sentence names."""

OUTCOMES = ("the state write succeeded", "the state write failed")

_UNDER_WAY = ", state write under way"


def step_text(entries: Sequence[Entry], name: Name) -> str:
    """The sentence of a step; as of an event, the part after the first ", " is the consequence or the reason."""
    causal = [entry for entry in entries if cause_of(entry.event) is not None]
    causal = causal or [entry for entry in entries if isinstance(entry.event, RecordsChanged)] or list(entries[-1:])
    texts = [event_text(entry.broker_id, entry.event, name) for entry in causal[:CAUSES]]
    settled = [entry.event for entry in entries if isinstance(entry.event, StateWriteSettled)]
    if settled:
        failed = any(event.error for event in settled if isinstance(event, StateWriteSettled))
        outcome = OUTCOMES[failed]
        texts = [text.replace(_UNDER_WAY, f", {outcome}") for text in texts]
    texts, common = _without_common_outcome(texts)
    if (more := len(causal) - CAUSES) > 0:
        texts.append(f"and {more} more event{'s' if more > 1 else ''}")
    texts += common
    if moves := [entry for entry in entries if isinstance(entry.event, WindowMoved) and entry not in causal]:
        texts.append(event_text(moves[-1].broker_id, moves[-1].event, name))
    first, *others = texts
    return "; ".join([first, *others]) if ", " in first or not others else f"{first}, {'; '.join(others)}"


def _without_common_outcome(texts: list[str]) -> tuple[list[str], list[str]]:
    """The texts without the outcome of a state write that several of them end with, and that outcome once."""
    for outcome in OUTCOMES:
        tail = f", {outcome}"
        if sum(text.endswith(tail) for text in texts) > 1:
            return [text.removesuffix(tail) for text in texts], [outcome]
    return texts, []
