"""Which record of its key keeps an AVAILABLE record back, where records are delivered in order by key (an experiment).

Computed from the fold: the keys in the window, and the states of the records. Rules: `leader/experiments/BEHAVIOUR.md`.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.states import RecordState
from shareq.trace.analysis.share_partition_state import SharePartitionState


class KeptBack(NamedTuple):
    """The key of a record, and the record of this key for which it waits; `member_id`: its holder, if it has one."""

    key: str
    offset: int
    member_id: str | None


def kept_back(state: SharePartitionState, offset: int) -> KeptBack | None:
    """The record that keeps `offset` back: the first one of its key that is held, else the first one that waits. None
    if there is none, or if the key is not known."""
    key = next((one.key for one in state.keys if one.first <= offset < one.end), None)
    if key is None:
        return None
    ranges = [(one.first, one.end) for one in state.keys if one.key == key]
    lane = [run for first, end in ranges for run in state.runs.overlap(first, end)]
    held = [(first, status) for first, _, status in lane if status.state is RecordState.ACQUIRED]
    if held:
        return KeptBack(key, held[0][0], held[0][1].member_id)
    waiting = [(f, min(e, offset)) for f, e, status in lane if status.state is RecordState.AVAILABLE and f < offset]
    if sum(e - f for f, e in waiting) < state.key_max_in_flight:
        return None
    return KeptBack(key, waiting[0][0], None)
