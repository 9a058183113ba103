"""The life of one record, computed from the journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from shareq.model.events import MemberJoined, RecordsChanged, SharePartitionLoaded
from shareq.model.states import PREPARED, SETTLED, RecordEvent, RecordState
from shareq.trace import view
from shareq.trace.journal import journal_of

LOADED = "loaded"
"""The event of a record whose durable state, loaded by a new leader, is behind its last state in memory."""


class Moment(NamedTuple):
    """An event of a record: a `RecordEvent`'s name, and the state of the record afterwards."""

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
    story, origin_ms = view(source, group, topic, partition), journal_of(source).origin_ms
    names: dict[str, str] = {}
    moments: list[Moment] = []
    for order in range(1, story.total() + 1):
        _, time_ms, _, event = story.entry(order)
        since_ms = time_ms - origin_ms
        if isinstance(event, MemberJoined):
            names[event.member_id] = event.client_id or event.member_id
        elif isinstance(event, SharePartitionLoaded):
            if moments and offset >= event.spso:
                found = [(run.state, run.delivery_count) for run in event.runs if run.first <= offset < run.end]
                state, count = found[0] if found else (RecordState.AVAILABLE, 0)
                if (_name(state), count) != moments[-1][2:4]:
                    moments.append(Moment(since_ms, LOADED, _name(state), count, None))
        elif isinstance(event, RecordsChanged) and event.first <= offset < event.end and event.cause != PREPARED:
            holder = moments[-1].member if moments and moments[-1].state == "acquired" else None
            member = holder if event.member_id is None else names.get(event.member_id, event.member_id)
            what = str(event.why if event.cause == SETTLED else event.cause)
            moments.append(Moment(since_ms, what, _name(event.state), event.delivery_count, member))
    return Life(offset, tuple(moments))


def _name(state: int) -> str:
    return RecordState(state).name.lower()
