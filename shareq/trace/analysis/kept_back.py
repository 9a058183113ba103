"""Which AVAILABLE records are kept back, and by which record of their key (experiments).

Computed from the fold: the keys in the window, and the states of the records. Rules: `leader/experiments/BEHAVIOUR.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shareq.model.states import RecordState
from shareq.trace.analysis.runs import RecordStatus
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


def has_acquirable(state: SharePartitionState) -> bool:
    """True if a record of the window may be acquired: it is AVAILABLE, does not rest, and no other one of its key keeps
    it back."""
    free = sum([end - first for first, end, status in state.runs if _is_free(status)])
    if not free or not state.keys:
        return free > 0
    held, lanes = set(), dict[str, list[tuple[int, RecordStatus]]]()
    for first, end, key in state.keys:
        for f, e, status in state.runs.overlap(first, end):
            if status.state is RecordState.ACQUIRED:
                held.add(key)
            elif status.state is RecordState.AVAILABLE:
                lanes.setdefault(key, []).append((e - f, status))
                free -= (e - f) * _is_free(status)
    most = state.key_max_in_flight
    return free > 0 or any(_begins_free(lane, most) for key, lane in lanes.items() if key not in held)


def _is_free(status: RecordStatus) -> bool:
    return status.state is RecordState.AVAILABLE and not status.rests


def _begins_free(lane: Sequence[tuple[int, RecordStatus]], most: int) -> bool:
    """True if one of the first `most` records of the lane, (number, status) each, does not rest."""
    for count, status in lane:
        if most <= 0:
            return False
        if _is_free(status):
            return True
        most -= count
    return False
