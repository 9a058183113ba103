"""The history of one record in a group: every change of it, with the configuration that was in force.

A change of a superseded leader does not count, as in `fold.py`; a state write counts when it has succeeded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

from shareq.model.configs import GroupConfig
from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    DeadLettersGivenUp,
    DeadLettersWaiting,
    DeadLettersWritten,
    DurableStateRead,
    ExpiredRecordsSkipped,
    HoldEnded,
    LogStartMoved,
    MemberLeft,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import ABANDONED, PREPARED, SETTLED, STAGED, TXN_COMMIT, RecordEvent, RecordState
from shareq.trace.analysis.fold import apply_config
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.runs import STATE_OF_CODE
from shareq.trace.analysis.touched import BLOCK, Block
from shareq.trace.journal import Entry

APPENDED: Final = "appended"
UNLOADED: Final = "unloaded"
"""The leader dropped the share-partition or stopped; the record keeps what is durable."""
KILLED, STOPPED = "killed", "stopped"
"""Why a leader that has ended dropped the share-partition."""
LOADED: Final = "loaded"
"""A leader loaded the share-partition; the record has its durable state."""
PASSED: Final = "passed"
"""The SPSO is above the record."""
REMOVED: Final = "removed"
"""The log start is above the record."""
DELIVERED: Final = "delivered"
"""An observer: a member reported the delivery."""
DURABLE: Final = "durable"
"""An observer: the durable state of the record is another one."""
MEMBER_LEFT: Final = "member_left"
"""An observer: the holder has left the group."""
TOPIC_GONE: Final = "topic_gone"
IN_QUEUE: Final = "in_queue"
"""The dead-letter queue has the record; `why`: the partition of the queue."""
QUEUE_AWAITED: Final = "queue_awaited"
"""The record waits for the dead-letter queue; `why`: the reason."""
NOT_IN_QUEUE: Final = "not_in_queue"
"""The record does not get to a dead-letter queue; `why`: the reason."""

_WITH_VERDICT: Final = frozenset({PREPARED, STAGED, ABANDONED, TXN_COMMIT})
"""Causes whose RecordEvent is the verdict of a member, which a state write or a transaction carries."""

_DEFAULT = GroupConfig()


class Config(NamedTuple):
    """The configuration of a share-partition. `overrides`: the group's own keys and values, sorted."""

    lock_duration_ms: int
    delivery_count_limit: int
    max_record_locks: int
    overrides: tuple[tuple[str, str], ...] = ()


class RecordChange(NamedTuple):
    """A change of a record and its status afterwards. `state` None: not in flight, or not known.

    `what`: a RecordEvent, PREPARED, STAGED, ABANDONED, TXN_COMMIT, or one of this module's names. `member_id`: the
    holder, also where the change ends the lock. `why`: the RecordEvent of a write that is prepared, staged, committed
    with a transaction or abandoned, or the reason of a leader;
    `error`: that of the failed write. `broker_id` -1: not an event of a broker.
    """

    order: int
    time_ms: int
    broker_id: int
    what: str
    state: RecordState | None
    delivery_count: int
    member_id: str | None
    deadline_ms: int | None
    config: Config
    why: str = ""
    error: int = 0


def lost_deliveries(changes: Sequence[RecordChange]) -> int:
    """The number of deliveries that the delivery count of the last change does not have: acquisitions are not durable,
    and were lost with a leader."""
    return sum(
        max(before.delivery_count - now.delivery_count, 0) for before, now in pairwise(changes) if now.what == LOADED
    )


class RecordHistory:
    """The changes of one record, in order. `refresh` extends them to the end of the timeline. Not thread-safe.

    Changes are only added: those below a moment are the history at that moment.
    """

    def __init__(self, timeline: PartitionTimeline, offset: int) -> None:
        self.changes: list[RecordChange] = []
        self._timeline = timeline
        self._offset = offset
        self._read = 0
        self._loaded_by = -1
        self._passed = self._removed = False
        self._write_id: int | None = None
        self._error = 0
        self._overrides: dict[str, str] = {}
        self.delivery_count_limit = _DEFAULT.delivery_count_limit
        self.max_record_locks = _DEFAULT.partition_max_record_locks
        self.lock_duration_ms = _DEFAULT.record_lock_duration_ms

    def refresh(self) -> None:
        """Read the timeline to its end: of complete blocks only what can concern the record."""
        entries = self._timeline.entries
        place = -(-self._read // BLOCK) * BLOCK
        self._apply(entries[self._read : place])
        for block in self._timeline.blocks.since(place // BLOCK):
            self._apply(entries[place : place + BLOCK] if self._concerns(block) else block.others)
            place += BLOCK
        self._apply(entries[place:])
        self._read = len(entries)

    def _concerns(self, block: Block) -> bool:
        """True if an entry with a range may concern the record: a change of it, the answer to its state write, or a
        move of the SPSO above it."""
        passes = block.spso > self._offset and not self._passed
        return passes or block.has_topic or self._write_id is not None or block.may_change(self._offset)

    def _apply(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            handler = self._HANDLERS.get(type(entry.event))
            if handler is not None:
                handler(self, entry, entry.event)

    def until(self, until: int) -> list[RecordChange]:
        """The changes below a moment of the journal, since the topic was created last."""
        changes = self.changes[: bisect_left(self.changes, until, key=lambda change: change.order)]
        ends = [place for place, change in enumerate(changes) if change.what == TOPIC_GONE]
        return changes[ends[-1] + 1 :] if ends else changes

    # ---- events of the share-partition's leader ----------------------------------------------------------------------

    def _changed(self, entry: Entry, event: RecordsChanged) -> None:
        if not event.first <= self._offset < event.end or self._loaded_by not in (-1, entry.broker_id):
            return
        holder = self._holder()
        self._write_id = event.write_id
        self._add(
            entry,
            str(event.why if event.cause == SETTLED else event.cause),
            STATE_OF_CODE[event.state],
            event.delivery_count,
            member_id=event.member_id or holder,
            deadline_ms=event.deadline_ms,
            why=str(event.why) if event.cause in _WITH_VERDICT else "",
            error=self._error,
        )
        self._error = 0

    def _settled(self, entry: Entry, event: StateWriteSettled) -> None:
        """The error of the record's write: the change that abandons it follows."""
        if entry.broker_id == self._loaded_by and event.write_id == self._write_id:
            self._error = event.error

    def _loaded(self, entry: Entry, event: SharePartitionLoaded) -> None:
        self._loaded_by, self._write_id = entry.broker_id, None
        self.delivery_count_limit, self.max_record_locks = event.delivery_count_limit, event.max_record_locks
        self.lock_duration_ms = event.lock_duration_ms
        if self._offset < event.spso:
            self._pass(entry, why=LOADED)
            return
        found = [(run.state, run.delivery_count) for run in event.runs if run.first <= self._offset < run.end]
        if found:
            self._add(entry, LOADED, STATE_OF_CODE[found[0][0]], found[0][1])
        elif self._last_state() is not None:
            self._add(entry, LOADED, None, 0)

    def _unloaded(self, entry: Entry, event: SharePartitionDropped | BrokerStopped) -> None:
        broker_id = event.broker_id if isinstance(event, BrokerStopped) else entry.broker_id
        if broker_id != self._loaded_by or self._loaded_by == -1:
            return
        if self._last_state() is not None and not self._passed:
            why = event.reason if isinstance(event, SharePartitionDropped) else KILLED if event.killed else STOPPED
            self._keep(entry._replace(broker_id=broker_id), UNLOADED, why=why)
        self._loaded_by, self._write_id = -1, None

    def _moved(self, entry: Entry, event: WindowMoved) -> None:
        if entry.broker_id == self._loaded_by and self._offset < event.spso:
            self._pass(entry)

    def _skipped(self, entry: Entry, event: ExpiredRecordsSkipped) -> None:
        if entry.broker_id == self._loaded_by and event.first <= self._offset < event.end:
            self._add(entry, RecordEvent.EXPIRED, RecordState.ARCHIVED, 0)

    # ---- the way to the dead-letter queue ----------------------------------------------------------------------------

    def _in_queue(self, entry: Entry, event: DeadLettersWritten) -> None:
        if event.first <= self._offset < event.end:
            self._keep(entry, IN_QUEUE, why=f"{event.queue}-{event.queue_partition}")

    def _queue_awaited(self, entry: Entry, event: DeadLettersWaiting) -> None:
        """Letters keep their order: those behind the first one wait, too."""
        if event.first <= self._offset and self._last_state() is RecordState.ARCHIVING:
            self._keep(entry, QUEUE_AWAITED, why=event.reason)

    def _not_in_queue(self, entry: Entry, event: DeadLettersGivenUp) -> None:
        if event.first <= self._offset < event.end:
            self._keep(entry, NOT_IN_QUEUE, why=event.reason)

    # ---- events of the log, the group and an observer ----------------------------------------------------------------

    def _appended(self, entry: Entry, event: RecordsAppended) -> None:
        if event.first <= self._offset < event.end:
            self._add(entry, APPENDED, None, 0)

    def _log_start_moved(self, entry: Entry, event: LogStartMoved) -> None:
        if event.log_start_offset > self._offset and not self._removed:
            self._removed = True
            self._keep(entry, REMOVED)

    def _topic_changed(self, entry: Entry, event: TopicCreated | TopicDeleted) -> None:
        del event
        if self.changes:
            self._add(entry, TOPIC_GONE, None, 0)
        self._loaded_by, self._write_id = -1, None
        self._passed = self._removed = False

    def _configured(self, entry: Entry, event: ConfigChanged) -> None:
        del entry
        apply_config(self, event)
        if event.value is None:
            self._overrides.pop(event.key, None)
        else:
            self._overrides[event.key] = event.value

    def _delivered(self, entry: Entry, event: RecordsHeld) -> None:
        if not event.first <= self._offset < event.end:
            return
        last = self.changes[-1] if self.changes else None
        same = last is not None and (last.member_id, last.delivery_count) == (event.member_id, event.delivery_count)
        renewed = same and event.deadline_ms is not None and self._last_state() is RecordState.ACQUIRED
        self._add(
            entry,
            RecordEvent.RENEW if renewed else DELIVERED,
            RecordState.ACQUIRED,
            event.delivery_count,
            member_id=event.member_id,
            deadline_ms=event.deadline_ms,
        )

    def _let_go(self, entry: Entry, event: HoldEnded) -> None:
        if event.first <= self._offset < event.end and self._last_count() <= event.delivery_count:
            state = STATE_OF_CODE[event.state]
            self._add(entry, event.cause, state, event.delivery_count, member_id=event.member_id)

    def _durable(self, entry: Entry, event: DurableStateRead) -> None:
        found = [(run.state, run.delivery_count) for run in event.named if run.first <= self._offset < run.end]
        if found and self._last_count() <= found[0][1]:
            state = STATE_OF_CODE[found[0][0]]
            if (state, found[0][1]) != (self._last_state(), self._last_count()):
                self._add(entry, DURABLE, state, found[0][1], member_id=self._holder())
        if self._offset < event.spso:
            self._pass(entry)

    def _left(self, entry: Entry, event: MemberLeft) -> None:
        """A leader releases the records of a member by events of its own; an observer has none."""
        last = self.changes[-1] if self.changes else None
        if last and last.what == DELIVERED and last.member_id == event.member_id and last.deadline_ms is None:
            self._add(entry, MEMBER_LEFT, None, self._last_count(), member_id=event.member_id)

    # ---- adding ------------------------------------------------------------------------------------------------------

    def _pass(self, entry: Entry, why: str = "") -> None:
        if not self._passed:
            self._passed = True
            self._keep(entry, PASSED, why=why)

    def _last_state(self) -> RecordState | None:
        return self.changes[-1].state if self.changes else None

    def _last_count(self) -> int:
        return self.changes[-1].delivery_count if self.changes else 0

    def _holder(self) -> str | None:
        return self.changes[-1].member_id if self._last_state() is RecordState.ACQUIRED else None

    def _keep(self, entry: Entry, what: str, *, why: str = "") -> None:
        """Add a change that leaves the status of the record."""
        self._add(entry, what, self._last_state(), self._last_count(), member_id=self._holder(), why=why)

    def _add(
        self,
        entry: Entry,
        what: str,
        state: RecordState | None,
        delivery_count: int,
        *,
        member_id: str | None = None,
        deadline_ms: int | None = None,
        why: str = "",
        error: int = 0,
    ) -> None:
        config = Config(
            self.lock_duration_ms,
            self.delivery_count_limit,
            self.max_record_locks,
            tuple(sorted(self._overrides.items())),
        )
        order, time_ms, broker_id, _ = entry
        self.changes.append(
            RecordChange(
                order, time_ms, broker_id, what, state, delivery_count, member_id, deadline_ms, config, why, error
            )
        )

    _HANDLERS: ClassVar[dict[type, Callable[[RecordHistory, Entry, Any], None]]] = {
        RecordsChanged: _changed,
        StateWriteSettled: _settled,
        SharePartitionLoaded: _loaded,
        SharePartitionDropped: _unloaded,
        BrokerStopped: _unloaded,
        WindowMoved: _moved,
        ExpiredRecordsSkipped: _skipped,
        RecordsAppended: _appended,
        LogStartMoved: _log_start_moved,
        TopicCreated: _topic_changed,
        TopicDeleted: _topic_changed,
        ConfigChanged: _configured,
        RecordsHeld: _delivered,
        HoldEnded: _let_go,
        DurableStateRead: _durable,
        MemberLeft: _left,
        DeadLettersWritten: _in_queue,
        DeadLettersWaiting: _queue_awaited,
        DeadLettersGivenUp: _not_in_queue,
    }
