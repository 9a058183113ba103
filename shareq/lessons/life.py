"""The life of one record, computed from the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from shareq.model.events import MemberJoined
from shareq.model.states import ABANDONED, RecordEvent, RecordState
from shareq.trace import view
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.record_history import LOADED, RecordChange, RecordHistory
from shareq.trace.journal import journal_of

__all__ = ["LOADED", "Life", "Moment", "life"]

_SHOWN = frozenset({*RecordEvent, ABANDONED, LOADED})


class Moment(NamedTuple):
    """An event of a record, and the state of the record afterwards: the name of a `RecordEvent`, "abandoned" for a
    state write that failed, or LOADED where the state that a new leader loaded is behind the last one in memory."""

    time_ms: int
    event: str
    state: str
    delivery_count: int
    member: str | None


@dataclass(frozen=True, slots=True)
class Life:
    """The events of one record, in order. `time_ms` of its moments counts from the start of the journal."""

    offset: int
    moments: tuple[Moment, ...]

    @property
    def state(self) -> str:
        """The current state; a record that was never in flight is available."""
        return self.moments[-1].state if self.moments else "available"

    @property
    def events(self) -> list[str]:
        """The names of the events, in order."""
        return [moment.event for moment in self.moments]

    @property
    def holders(self) -> list[str]:
        """The members that acquired it, in order."""
        return [str(m.member) for m in self.moments if m.event == RecordEvent.ACQUIRE and m.state == "acquired"]

    @property
    def deliveries(self) -> int:
        """The number of acquisitions."""
        return len(self.holders)

    def __repr__(self) -> str:
        return "\n".join([f"record {self.offset}", *(_line(moment) for moment in self.moments)])


def _line(moment: Moment) -> str:
    time_ms, event, state, count, member = moment
    return f"{time_ms / 1000:9.3f} s  {event:<15}  {state:<12}  delivery {count}  {member or ''}".rstrip()


def life(source: Any, group: str, topic: str, partition: int, offset: int) -> Life:
    """All events of one record. An acknowledgement counts when its state write has succeeded.

    `source`: a `Journal`, or an object with one as `.journal`. The first moment is the first acquisition.
    """
    view(source, group, topic, partition)  # checks the names
    journal = journal_of(source)
    timeline = PartitionTimeline(journal, group, topic, partition)
    joined = [entry.event for entry in timeline.refresh() if isinstance(entry.event, MemberJoined)]
    names = {event.member_id: event.client_id or event.member_id for event in joined}
    history = RecordHistory(timeline, offset)
    history.refresh()
    moments: list[Moment] = []
    for change in history.until(journal.total):
        moment = _moment(change, names, journal.origin_ms)
        if change.what in _SHOWN and (change.what != LOADED or (moments and moments[-1][2:4] != moment[2:4])):
            moments.append(moment)
    return Life(offset, tuple(moments))


def _moment(change: RecordChange, names: dict[str, str], origin_ms: int) -> Moment:
    state = RecordState.AVAILABLE if change.state is None else change.state
    member = None if change.member_id is None else names.get(change.member_id, change.member_id)
    return Moment(change.time_ms - origin_ms, change.what, state.name.lower(), change.delivery_count, member)
