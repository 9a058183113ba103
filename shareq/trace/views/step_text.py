"""A step as one sentence: what its cause did, and what followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from shareq.model.events import RecordsChanged, StateWriteSettled, WindowMoved
from shareq.trace.analysis.steps import cause_of
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import Name, event_text

CAUSES = 3
"""The most causal events that a sentence names."""

OUTCOMES = ("the state write succeeded", "the state write failed")

_UNDER_WAY = ", state write under way"


def step_text(entries: Sequence[Entry], name: Name, place: Callable[[Entry], str] = lambda _: "") -> str:
    """The sentence of a step; as of an event, the part after the first ", " is the consequence or the reason.

    `place`: what the sentence of an event begins with, unless the sentence before it has the same.
    """
    causal = [entry for entry in entries if cause_of(entry.event) is not None]
    causal = causal or [entry for entry in entries if isinstance(entry.event, RecordsChanged)] or list(entries[-1:])
    moves = [entry for entry in entries if isinstance(entry.event, WindowMoved) and entry not in causal]
    texts = list(_placed([*causal[:CAUSES], *moves[-1:]], name, place))
    moved = [texts.pop()] if moves else []
    settled = [entry.event for entry in entries if isinstance(entry.event, StateWriteSettled)]
    if settled:
        failed = any(event.error for event in settled if isinstance(event, StateWriteSettled))
        outcome = OUTCOMES[failed]
        texts = [text.replace(_UNDER_WAY, f", {outcome}") for text in texts]
    texts, common = _without_common_outcome(texts)
    if (more := len(causal) - CAUSES) > 0:
        texts.append(f"and {more} more event{'s' if more > 1 else ''}")
    first, *others = [*texts, *common, *moved]
    return "; ".join([first, *others]) if ", " in first or not others else f"{first}, {'; '.join(others)}"


def _placed(entries: Iterable[Entry], name: Name, place: Callable[[Entry], str]) -> Iterator[str]:
    """The sentences of the events; of several ones in a row at one place, the first names it."""
    last = ""
    for entry in entries:
        where = place(entry)
        yield ("" if where == last else where) + event_text(entry.broker_id, entry.event, name)
        last = where


def _without_common_outcome(texts: list[str]) -> tuple[list[str], list[str]]:
    """The texts without the outcome of a state write that several of them end with, and that outcome once."""
    for outcome in OUTCOMES:
        tail = f", {outcome}"
        if sum(text.endswith(tail) for text in texts) > 1:
            return [text.removesuffix(tail) for text in texts], [outcome]
    return texts, []
