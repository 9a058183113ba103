"""Oracle for the records of a share group: one entry per offset, built from the journal, checked at every event.

It is deliberately simple. Its rules: a record has one holder at a time, a terminal state that is durable is final, and
a record is accepted once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container

from shareq.model.events import (
    RecordsChanged,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.states import RecordState
from shareq.trace import Entry

Place = tuple[str, int, int]
ALL = range(1 << 62)
TERMINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class Books:
    """The records of one group by (topic, partition, offset).

    `offsets(topic, partition)` returns the offsets that the log has; it is given where a log can lose records.
    """

    def __init__(self, group_id: str, offsets: Callable[[str, int], Container[int]] = lambda *_: ALL) -> None:
        self.group_id = group_id
        self.offsets = offsets
        self.state: dict[Place, RecordState] = {}
        self.holder: dict[Place, str | None] = {}
        self.unsettled: dict[Place, RecordState] = {}
        """Terminal state that a write would give the record, for writes without a success event since the last load."""
        self.durable: dict[Place, RecordState] = {}
        """Terminal state of each record from the writes that succeeded."""
        self._under_way: dict[tuple[str, int, int], StateWritePrepared] = {}
        self.accepted: Counter[Place] = Counter()
        self.deliveries: Counter[Place] = Counter()
        self.spso: dict[tuple[str, int], int] = {}

    def read(self, entries: list[Entry]) -> None:
        for entry in entries:
            event = entry.event
            if getattr(event, "group_id", None) != self.group_id:
                continue
            if isinstance(event, SharePartitionLoaded):
                self._loaded(event)
            elif isinstance(event, SharePartitionDropped):
                self._forget_locks(event.topic, event.partition)
            elif isinstance(event, WindowMoved):
                self._moved(event.topic, event.partition, event.spso)
            elif isinstance(event, StateWritePrepared):
                self._under_way[event.topic, event.partition, event.write_id] = event
            elif isinstance(event, StateWriteSettled):
                self._settled(self._under_way.pop((event.topic, event.partition, event.write_id)), event.error)
            elif isinstance(event, RecordsChanged):
                for offset in range(event.first, event.end):
                    self._changed((event.topic, event.partition, offset), event, entry)

    def _loaded(self, event: SharePartitionLoaded) -> None:
        """A leader starts from the durable state: no record that was durably finished may be open again.

        The SPSO may have passed offsets without records without a durable write, because the next leader reads the log
        again. The same holds for a record that was archived when its last lock expired: the window passes it even if
        the write fails. An accepted record is always durable.
        A write can be durable although its leader abandoned it (the coordinator's response was late) or lost the
        share-partition before the response: no event shows it, only the state that the next leader loads.
        """
        at = event.topic, event.partition
        self._forget_locks(*at)
        existing = self.offsets(*at)
        for place in [place for place in self.state if place[:2] == at and place[2] not in existing]:
            del self.state[place]
        loaded = {
            (*at, offset): RecordState(run.state)
            for run in event.runs
            for offset in range(run.first, run.end)
            if offset in existing
        }
        passed = range(event.spso, self.spso.get(at, 0))
        reopened = [offset for offset in passed if offset not in existing or self._may_reopen((*at, offset))]
        for place, state in [(place, state) for place, state in self.state.items() if place[:2] == at]:
            if place[2] >= event.spso:
                now = loaded.setdefault(place, RecordState.AVAILABLE)
                assert state not in TERMINAL or now is state or self._may_reopen(place), (
                    f"{place} was {state.name} and was loaded as {now.name}"
                )
            elif state not in TERMINAL:
                loaded[place] = now = self.unsettled.get(place, state)
                assert now in TERMINAL, f"the window passed {place}, which was {state.name}"
        for offset in passed:
            now = loaded.get((*at, offset), RecordState.AVAILABLE)
            assert now in TERMINAL or offset in reopened, f"the window passed {offset}, loaded as {now.name}"
        for place, state in loaded.items():
            if state is RecordState.ACKNOWLEDGED and self.state.get(place) is not state:
                self.accepted[place] += 1
            self.state[place] = state
        self.unsettled = {place: state for place, state in self.unsettled.items() if place[:2] != at}
        self._under_way = {key: write for key, write in self._under_way.items() if key[:2] != at}
        if reopened:
            self.spso[at] = event.spso
        self._moved(*at, event.spso)

    def _may_reopen(self, place: Place) -> bool:
        """True if the record was archived and no event shows that this is durable."""
        return self.state.get(place) is RecordState.ARCHIVED and place not in self.durable

    def _settled(self, write: StateWritePrepared, error: int) -> None:
        for batch in [] if error else write.state_batches:
            state = RecordState(batch.delivery_state)
            if state in TERMINAL:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    self.durable[write.topic, write.partition, offset] = state

    def _forget_locks(self, topic: str, partition: int) -> None:
        for place in [p for p in self.holder if p[:2] == (topic, partition)]:
            del self.holder[place]
            if self.state[place] is RecordState.ACQUIRED:
                self.state[place] = RecordState.AVAILABLE

    def _moved(self, topic: str, partition: int, spso: int) -> None:
        assert spso >= self.spso.get((topic, partition), 0), "the SPSO moved back"
        self.spso[topic, partition] = spso

    def _changed(self, place: Place, event: RecordsChanged, entry: Entry) -> None:
        before, now = self.state.get(place, RecordState.AVAILABLE), RecordState(event.state)
        if event.to_state in TERMINAL:
            self.unsettled[place] = RecordState(event.to_state)
        elif now in TERMINAL:
            self.unsettled.pop(place, None)
        assert before not in TERMINAL, f"{place} was {before.name}: {entry}"
        if event.cause == "acquire":
            assert place not in self.holder, f"{place} is held by {self.holder[place]}: {entry}"
            assert place[2] >= self.spso.get(place[:2], 0), f"{place} is below the window: {entry}"
            self.deliveries[place] += 1
            self.holder[place] = event.member_id
        if now is RecordState.ACQUIRED:
            assert self.holder.get(place) == event.member_id, f"{place} changed hands: {entry}"
        else:
            self.holder.pop(place, None)
        if now is RecordState.ACKNOWLEDGED:
            assert self.durable.get(place) is now, f"{place} is accepted before its write succeeded: {entry}"
            self.accepted[place] += 1
        self.state[place] = now
