"""The acquisition locks of a share-partition at any moment: since when they are held, renewed when, and how they ended.

The fold of the share-partition has holders and deadlines of records; this one adds the times. It trusts the journal:
`fold.py` checks it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, NamedTuple

from shareq.model.events import (
    BrokerStopped,
    DurableStateRead,
    HoldEnded,
    LeaderElected,
    MemberLeft,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionLoaded,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import ABANDONED, PREPARED, SETTLED, STAGED, TXN_COMMIT, RecordEvent, RecordState
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.replay import Replay
from shareq.trace.analysis.runs import STATE_OF_CODE
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal import Entry

LEADER_LOST: Final = "leader_lost"
"""The end of a lock whose leader dropped the share-partition or stopped: a leader has locks in memory only."""
TOPIC_GONE: Final = "topic_gone"

ENDED_KEPT = 64
"""The number of ended locks that are kept, the latest ones."""
RENEWALS_KEPT = 8
FOLD_FROM = 512
"""The number of entries before a moment that are searched first for the acquisitions of its locks; later, as many as
the last fold needed, and a MARGIN-th more."""
MARGIN = 8


class Lock(NamedTuple):
    """Records [first, end) that a member holds. None: not known, because the events are not in the journal.

    `set_ms`: the time of the acquisition or of the last renewal, from which the lock runs until `deadline_ms`.
    `renewals`: the times of the latest RENEWALS_KEPT of `renewed` renewals. `write`: the RecordEvent whose state write
    is under way, or empty.
    """

    first: int
    end: int
    member_id: str
    delivery_count: int
    acquired_ms: int | None = None
    set_ms: int | None = None
    deadline_ms: int | None = None
    renewed: int = 0
    renewals: tuple[int, ...] = ()
    write: str = ""

    @property
    def duration_ms(self) -> int | None:
        """The duration of the lock as it was set last."""
        return None if self.deadline_ms is None or self.set_ms is None else self.deadline_ms - self.set_ms

    def renew(self, time_ms: int, deadline_ms: int | None) -> Lock:
        """The same lock, with a later deadline."""
        renewals = (*self.renewals, time_ms)[-RENEWALS_KEPT:]
        return self._replace(set_ms=time_ms, deadline_ms=deadline_ms, renewed=self.renewed + 1, renewals=renewals)


class EndedLock(NamedTuple):
    """A lock that has ended. `how`: a RecordEvent, LEADER_LOST or TOPIC_GONE; `state`: that of the records since.

    `inferred`: True if no response named the end to the proxy of an observer.
    """

    lock: Lock
    ended_ms: int
    how: str
    state: RecordState
    inferred: bool = False


class LockFold:
    """The locks of one share-partition after an entry: those held, by offset, and the latest ended ones."""

    def __init__(self, held: list[Lock], ended: list[EndedLock], loaded_by: int) -> None:
        self._firsts = [lock.first for lock in held]
        self._held, self._ended, self._loaded_by = held, ended, loaded_by

    @classmethod
    def of(cls, state: SharePartitionState) -> LockFold:
        """A fold that begins with the records held in this state; when they were acquired is not known."""
        held = [
            Lock(first, end, status.member_id or "", status.delivery_count, None, None, status.deadline_ms)._replace(
                write=status.why or ""
            )
            for first, end, status in state.runs
            if status.member_id is not None and (status.deadline_ms is not None or state.observed)
        ]
        return cls(held, [], state.loaded_by)

    @property
    def held(self) -> list[Lock]:
        """Contiguous records with equal locks are one item."""
        joined: list[Lock] = []
        for lock in self._held:
            if joined and joined[-1].end == lock.first and joined[-1][2:] == lock[2:]:
                lock = lock._replace(first=joined.pop().first)
            joined.append(lock)
        return joined

    def ended(self, since_ms: int) -> list[EndedLock]:
        """The locks that ended at or after this time, at most ENDED_KEPT, the latest first; contiguous equal ones are
        one item."""
        joined: list[EndedLock] = []
        for ended in sorted(self._ended, key=lambda e: (-e.ended_ms, e.how, e.lock.first)):
            if ended.ended_ms < since_ms:
                break
            if joined and _continues(joined[-1], ended):
                ended = ended._replace(lock=ended.lock._replace(first=joined.pop().lock.first))
            elif len(joined) == ENDED_KEPT:
                break
            joined.append(ended)
        return joined

    def acquired_ms(self, since_ms: int) -> list[int | None]:
        """The times of the acquisitions of the held locks, and of those that ended at or after this time."""
        return [lock.acquired_ms for lock in (*self._held, *(end.lock for end in self.ended(since_ms)))]

    def copy(self) -> LockFold:
        """An independent copy."""
        return LockFold(self._held[:], self._ended[:], self._loaded_by)

    def apply(self, entry: Entry) -> None:
        """Apply the next entry about this share-partition."""
        handler = self.HANDLERS.get(type(entry.event))
        if handler is not None:
            handler(self, entry, entry.event)

    # ---- events ------------------------------------------------------------------------------------------------------

    def _changed(self, entry: Entry, event: RecordsChanged) -> None:
        if self._loaded_by not in (-1, entry.broker_id):
            return  # a superseded leader
        self._loaded_by, time_ms, cause = entry.broker_id, entry.time_ms, event.cause
        before = self._take(event.first, event.end)
        if event.state != RecordState.ACQUIRED:
            how = str(event.why if cause in (SETTLED, TXN_COMMIT) else cause)
            self._end(before, time_ms, how, STATE_OF_CODE[event.state])
            return
        if cause == STAGED and event.member_id is None:
            return  # staged before the load: no member holds it
        member_id, deadline_ms = event.member_id or "", event.deadline_ms
        found = Lock(event.first, event.end, member_id, event.delivery_count, None, None, deadline_ms)
        if cause == RecordEvent.ACQUIRE:
            before = [found._replace(acquired_ms=time_ms, set_ms=time_ms)]
        before = before or [found]
        if cause == RecordEvent.RENEW:
            before = [lock.renew(time_ms, deadline_ms) for lock in before]
        elif cause in (PREPARED, STAGED, ABANDONED):
            write = "" if cause == ABANDONED else str(event.why)
            before = [lock._replace(write=write) for lock in before]
        self._put(before)

    def _loaded(self, entry: Entry, event: SharePartitionLoaded) -> None:
        del event
        self._end_all(entry.time_ms, LEADER_LOST)
        self._loaded_by = entry.broker_id

    def _unloaded(self, entry: Entry, event: SharePartitionDropped | BrokerStopped) -> None:
        broker_id = event.broker_id if isinstance(event, BrokerStopped) else entry.broker_id
        if broker_id == self._loaded_by:
            self._end_all(entry.time_ms, LEADER_LOST)
            self._loaded_by = -1

    def _moved(self, entry: Entry, event: WindowMoved) -> None:
        if entry.broker_id == self._loaded_by and self._firsts and self._firsts[0] < event.spso:
            below = self._take(self._firsts[0], event.spso)
            self._end(below, entry.time_ms, RecordEvent.LOG_START, RecordState.ARCHIVED)

    def _topic_changed(self, entry: Entry, event: TopicCreated | TopicDeleted) -> None:
        del event
        self._end_all(entry.time_ms, TOPIC_GONE)
        self._loaded_by = -1

    # ---- events of an observer: deadlines are known of members that are connected through its proxy ------------------

    def _in_hand(self, entry: Entry, event: RecordsHeld) -> None:
        before, time_ms, deadline_ms = self._take(event.first, event.end), entry.time_ms, event.deadline_ms
        begun = None if deadline_ms is None else time_ms
        new = Lock(event.first, event.end, event.member_id, event.delivery_count, time_ms, begun, deadline_ms)
        same = [lock for lock in before if lock[2:4] == new[2:4] and deadline_ms is not None]
        whole = sum(lock.end - lock.first for lock in same) == event.end - event.first
        self._put([lock.renew(time_ms, deadline_ms) for lock in same] if whole else [new])

    def _let_go(self, entry: Entry, event: HoldEnded) -> None:
        held = self._take(event.first, event.end)
        later = [lock for lock in held if lock.delivery_count > event.delivery_count]
        for lock in later:
            self._put([lock])
        ended = [lock for lock in held if lock.delivery_count <= event.delivery_count]
        self._end(ended, entry.time_ms, event.cause, STATE_OF_CODE[event.state], inferred=event.inferred)

    def _read(self, entry: Entry, event: DurableStateRead) -> None:
        del entry
        if self._firsts and self._firsts[0] < event.spso:
            self._take(self._firsts[0], event.spso)

    def _elected(self, entry: Entry, event: LeaderElected) -> None:
        """The locks of brokers of shareq end with events of their own."""
        del event
        if self._loaded_by == -1:
            self._end_all(entry.time_ms, LEADER_LOST)

    def _left(self, entry: Entry, event: MemberLeft) -> None:
        """A leader releases the locks of a member by events of its own; an observer has none."""
        del entry
        kept = [lock for lock in self._held if lock.member_id != event.member_id or lock.deadline_ms is not None]
        if len(kept) < len(self._held):
            self._held, self._firsts = kept, [lock.first for lock in kept]

    # ---- held locks --------------------------------------------------------------------------------------------------

    def _take(self, first: int, end: int) -> list[Lock]:
        """Remove and return the locks within [first, end), cut at its edges."""
        left = bisect_right(self._firsts, first)
        left -= left > 0 and self._held[left - 1].end > first
        right = bisect_left(self._firsts, end, left)
        found = self._held[left:right]
        if not found:
            return found
        outside = [found[0]._replace(end=first)] if found[0].first < first else []
        if found[-1].end > end:
            outside.append(found[-1]._replace(first=end))
        self._held[left:right], self._firsts[left:right] = outside, [lock.first for lock in outside]
        if found[0].first < first:
            found[0] = found[0]._replace(first=first)
        if found[-1].end > end:
            found[-1] = found[-1]._replace(end=end)
        return found

    def _put(self, locks: list[Lock]) -> None:
        """Add locks; no lock is held between the first and the last of them."""
        place = bisect_left(self._firsts, locks[0].first)
        self._held[place:place] = locks
        self._firsts[place:place] = [lock.first for lock in locks]

    def _end_all(self, time_ms: int, how: str) -> None:
        self._end(self._held, time_ms, how, RecordState.AVAILABLE)
        self._firsts, self._held = [], []

    def _end(
        self, locks: Iterable[Lock], time_ms: int, how: str, state: RecordState, *, inferred: bool = False
    ) -> None:
        self._ended += [
            EndedLock(lock._replace(write="") if lock.write else lock, time_ms, str(how), state, inferred)
            for lock in locks
        ]
        if len(self._ended) > 2 * ENDED_KEPT:
            self._ended = self._ended[-ENDED_KEPT:]

    HANDLERS: ClassVar[dict[type, Callable[[LockFold, Entry, Any], None]]] = {
        RecordsChanged: _changed,
        SharePartitionLoaded: _loaded,
        SharePartitionDropped: _unloaded,
        BrokerStopped: _unloaded,
        WindowMoved: _moved,
        TopicCreated: _topic_changed,
        TopicDeleted: _topic_changed,
        RecordsHeld: _in_hand,
        HoldEnded: _let_go,
        DurableStateRead: _read,
        LeaderElected: _elected,
        MemberLeft: _left,
    }


def _continues(one: EndedLock, next_one: EndedLock) -> bool:
    """True if the records of the second lock follow those of the first, and nothing else differs."""
    return one.lock.end == next_one.lock.first and (one[1:], one.lock[2:]) == (next_one[1:], next_one.lock[2:])


class LockHistory:
    """The locks of one share-partition at any moment. Not thread-safe.

    The fold begins as late as it can: before the acquisitions of all locks that it has to return. So the cost of the
    first one follows the age of these locks, and of a later one the distance to it.
    """

    def __init__(self, timeline: PartitionTimeline) -> None:
        self._timeline = timeline
        self._begin_at = self._read = 0
        self._distance = FOLD_FROM
        self._replay: Replay[LockFold] | None = None

    def at(self, until: int, since_ms: int) -> LockFold:
        """The locks after the entries below `until`, as far as the timeline has been refreshed; those that ended at or
        after `since_ms`, too. The next call changes the object."""
        count = self._timeline.count(until)
        begins = self._replay is None or not self._begin_at <= count <= self._read + FOLD_FROM
        if begins:
            self._begin(count, self._distance)
        fold = self._fold(until, count)
        while self._begin_at > 0 and not self._complete(fold, since_ms):
            begins = True
            self._begin(count, 2 * max(count - self._begin_at, FOLD_FROM))
            fold = self._fold(until, count)
        if begins:
            self._distance = self._needed(fold, count, since_ms)
        return fold

    def _needed(self, fold: LockFold, count: int, since_ms: int) -> int:
        """The distance at which a fold would have begun late enough to return the same locks, and a margin."""
        known = [ms for ms in fold.acquired_ms(since_ms) if ms is not None]
        earliest_ms = min(known if len(fold.ended(since_ms)) >= ENDED_KEPT else (*known, since_ms))
        needed = count - self._timeline.at_time(earliest_ms - 1)
        return max(needed + needed // MARGIN, MARGIN)

    def _begin(self, count: int, distance: int) -> None:
        """Begin `distance` entries before the first `count` ones, with the records that are held there."""
        self._begin_at = self._read = max(count - distance, 0)
        start = LockFold.of(self._timeline.state(self._begin_at))
        self._replay = Replay(start, lambda state, _, entry: state.apply(entry))

    def _fold(self, until: int, count: int) -> LockFold:
        assert self._replay is not None
        new = self._timeline.entries[self._read : count]
        self._read += len(new)
        self._replay.entries += [entry for entry in new if type(entry.event) in LockFold.HANDLERS]
        return self._replay.state(self._replay.count(until))

    def _complete(self, fold: LockFold, since_ms: int) -> bool:
        """True if the fold has the acquisitions of all locks that it has to return."""
        if None in fold.acquired_ms(since_ms):
            return False
        return self._timeline.entries[self._begin_at].time_ms < since_ms or len(fold.ended(since_ms)) >= ENDED_KEPT
