"""The durable state of one share-partition after any entry: the fold of the records of `__share_group_state`.

The journal has each record of the state topic when it is committed. The fold combines state batches as the share
coordinator does, and it is strict: records that no coordinator can write raise `JournalCorrupt`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any, Self

from shareq.model.events import DurableStateRead, StateRecordWritten, TopicCreated
from shareq.model.messages.share_state import StateBatch
from shareq.model.state_batches import combine
from shareq.model.state_designs import CHECKPOINT_EPOCHS
from shareq.trace.analysis.fold import JournalCorrupt
from shareq.trace.analysis.replay import Replay
from shareq.trace.journal import Entry, Journal, Subject

TOMBSTONE = "tombstone"
WHOLE = frozenset({"snapshot", "checkpoint"})
CHANGES = frozenset({"update", "delta"})


@dataclass(slots=True)
class DurableState:
    """The state that a leader would read. `start_offset` -1: it is not decided yet.

    `exists`: there is a state; `deleted`: its last record is a tombstone. `topic_id`: of the present topic, None while
    its creation is unknown, then records cannot be attributed and `exists` stays False. `broker_id`, `written_ms`:
    the broker that wrote the last record, and when. `compacted`: the records are checkpoints and deltas instead of
    snapshots and updates; `updates`: how many have followed the last whole state. `partial`: the first records are
    missing, because a bounded journal has dropped them; a whole state completes them.
    """

    topic_id: str | None = None
    exists: bool = False
    deleted: bool = False
    partial: bool = False
    compacted: bool = False
    snapshot_epoch: int = -1
    updates: int = 0
    start_offset: int = -1
    batches: tuple[StateBatch, ...] = ()
    broker_id: int = -1
    written_ms: int = 0

    def copy(self) -> Self:
        """An independent copy; the batches are immutable."""
        return replace(self)

    def apply(self, entry: Entry) -> None:
        """Apply the next entry about this share-partition; JournalCorrupt if it cannot follow the earlier ones."""
        event = entry.event
        if isinstance(event, TopicCreated):
            self._forget(event.topic_id)
        elif isinstance(event, DurableStateRead):
            self._read(event)
        elif isinstance(event, StateRecordWritten) and _topic_id(event) == self.topic_id:
            if event.kind == TOMBSTONE:
                self._delete(entry)
            elif event.kind in WHOLE:
                self._replace(entry, event)
            elif event.kind in CHANGES:
                self._update(entry, event)
            else:
                known = ", ".join((TOMBSTONE, *sorted(WHOLE | CHANGES)))
                raise JournalCorrupt(entry, f"kind={event.kind!r}: must be one of {known}")
            self.broker_id, self.written_ms = entry.broker_id, entry.time_ms

    def _forget(self, topic_id: str | None, *, partial: bool = False) -> None:
        self.topic_id, self.partial = topic_id, partial
        self.exists = self.deleted = False
        self.snapshot_epoch, self.updates, self.start_offset, self.batches = -1, 0, -1, ()

    def _read(self, event: DurableStateRead) -> None:
        """The complete state, as an observer has read it."""
        self.exists, self.deleted, self.partial = event.snapshot_epoch >= 0, False, False
        self.snapshot_epoch, self.updates, self.start_offset = event.snapshot_epoch, 0, event.spso
        self.batches = tuple(StateBatch(first, end - 1, state, count) for first, end, state, count in event.runs)

    def _delete(self, entry: Entry) -> None:
        if not self.exists and not self.partial:
            raise JournalCorrupt(entry, "a tombstone of a share-partition without state")
        self._forget(self.topic_id)
        self.deleted = True

    def _replace(self, entry: Entry, event: StateRecordWritten) -> None:
        self.compacted = event.kind == "checkpoint"
        following = self.snapshot_epoch + 1
        if self.compacted:
            following %= CHECKPOINT_EPOCHS
        if self.exists and not self.partial and event.snapshot_epoch != following:
            raise JournalCorrupt(entry, f"snapshot {event.snapshot_epoch} cannot follow snapshot {self.snapshot_epoch}")
        self.exists, self.deleted, self.partial = True, False, False
        self.snapshot_epoch, self.updates = event.snapshot_epoch, 0
        self.start_offset, self.batches = event.start_offset, event.state_batches

    def _update(self, entry: Entry, event: StateRecordWritten) -> None:
        if not self.partial:
            if not self.exists:
                raise JournalCorrupt(entry, "an update of a share-partition without state")
            if event.snapshot_epoch != self.snapshot_epoch:
                raise JournalCorrupt(entry, f"an update of snapshot {event.snapshot_epoch}, not {self.snapshot_epoch}")
            if event.start_offset < self.start_offset:
                raise JournalCorrupt(entry, f"the start moves back from {self.start_offset} to {event.start_offset}")
        self.exists, self.deleted, self.snapshot_epoch = True, False, event.snapshot_epoch
        self.updates += 1
        self.start_offset = event.start_offset
        self.batches = combine(self.batches, event.state_batches, event.start_offset)


class DurableTimeline:
    """The records of one share-partition's state in a journal, and the state after any of them. `refresh` extends it to
    the end of the journal. Not thread-safe."""

    def __init__(self, journal: Journal, group: str, topic: str, partition: int) -> None:
        self.journal = journal
        self._subjects: dict[Subject, tuple[type[Any], ...]] = {
            Subject(group): (StateRecordWritten,),
            Subject(None, topic): (TopicCreated,),
            Subject(group, topic, partition): (DurableStateRead,),
        }
        self._key_end = f":{partition}"
        self._seen = 0
        self._gaps: set[int] = set()
        self._created: list[int] = []
        self._replay = Replay(DurableState(), self._apply, self._begin)
        self.entries = self._replay.entries
        self.state, self.count = self._replay.state, self._replay.count

    def refresh(self) -> None:
        """Add the entries since the last call."""
        total, dropped = self.journal.total, self.journal.dropped
        if total == self._seen:
            return
        new = list(filter(self._is_mine, self.journal.about(self._seen, total, self._subjects)))
        if dropped > self._seen:
            self._gaps.add(len(self.entries))
        self._seen = total
        self._created += [len(self.entries) + n for n, e in enumerate(new) if type(e[3]) is TopicCreated]
        self.entries += new

    def _is_mine(self, entry: Entry) -> bool:
        event = entry.event
        return not isinstance(event, StateRecordWritten) or event.key.endswith(self._key_end)

    def _begin(self, count: int, after: int) -> DurableState | None:
        """The state after `count` entries, from the last snapshot of the present topic: it replaces what was before. So
        the fold is strict from that snapshot on."""
        created = self._created[: bisect_left(self._created, count)]
        if not created:
            return None
        topic = self.entries[created[-1]].event
        assert isinstance(topic, TopicCreated)
        for position in range(count - 1, max(created[-1], after - 1), -1):
            event = self.entries[position].event
            if isinstance(event, StateRecordWritten) and event.kind in WHOLE and _topic_id(event) == topic.topic_id:
                state = DurableState(topic.topic_id)
                for place in range(position, count):
                    self._apply(state, place, self.entries[place])
                return state
        return None

    def _apply(self, state: DurableState, position: int, entry: Entry) -> None:
        if position in self._gaps:
            state.partial = True
        state.apply(entry)


def _topic_id(event: StateRecordWritten) -> str:
    return event.key.rsplit(":", 2)[1]
