"""What a virtual cluster still has to do for a group: without any of it, only heartbeats and empty fetches follow."""

from __future__ import annotations

from typing import Final

from shareq.model.states import RecordState
from shareq.trace.analysis.group_history import GroupHistory
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures.group_content import member_states

WORKING: Final = (RecordState.ACQUIRED, RecordState.ARCHIVING)


def awaits(history: GroupHistory, now_ms: int) -> bool:
    """True if the group waits for the end of a lock, of a state write, of a way to a dead-letter queue, or of the
    session of a member that is silent."""
    instant = instant_of(history, now_ms=now_ms)
    states = member_states(instant, observed=False).values()
    if any(state not in ("alive", "not known") for state in states):
        return True
    windows = [history.share_partition(*found, instant.until) for found in history.share_partitions(instant.until)]
    return any(
        window.writes or any(status.state in WORKING for _, _, status in window.runs)
        for window in windows
        if window.loaded
    )
