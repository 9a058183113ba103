"""What a share-partition waits for, as a journal shows it.

The leader's own answer (`ShareLeader.waits_for`) has the same reasons. It also knows what no event has: reads of the
state and of the log, holes of a loaded window, and where the log ends for the group. There, a journal has no answer.
"""

from __future__ import annotations

from shareq.model.waits import Wait, window_wait
from shareq.trace.analysis.kept_back import has_acquirable
from shareq.trace.analysis.share_partition_state import SharePartitionState


def waits_for(state: SharePartitionState) -> Wait | None:
    """What the share-partition waits for; None if records of it can be acquired, or if the journal does not show it."""
    if not state.loaded:
        return None if state.observed else Wait.NOT_LOADED
    if state.uncertain or state.disturbed or state.partial:
        return None
    if state.paused:
        return Wait.PAUSED
    full, at_log_end = state.in_flight >= state.max_record_locks, 0 <= state.log_end <= state.window_end
    if not (full or at_log_end) or _has_holes(state) or has_acquirable(state):
        return None
    return window_wait(state.runs, full=full)


def _has_holes(state: SharePartitionState) -> bool:
    return sum([end - first for first, end, _ in state.runs]) < state.in_flight
