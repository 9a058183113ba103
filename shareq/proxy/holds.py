"""The records of one share-partition that members hold, as its leader has named them in responses. Pure.

A leader names every acquisition, its delivery count and the duration of the lock, and it confirms every
acknowledgement. It does not name the end of a lock that runs out or of a share session: these ends are inferred.
BEHAVIOUR.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shareq.model.events import DeliveriesUnseen, Event, HoldEnded, RecordsHeld
from shareq.model.states import ACKNOWLEDGE_EVENT, AcknowledgeType, RecordEvent, RecordState, next_state
from shareq.trace.analysis.runs import RecordStatus, Runs

ACQUIRED = RecordState.ACQUIRED


class PartitionHolds:
    """The holds at one leader. Ranges are half-open.

    A status with a `write_id` has an acknowledgement under way, that of the request with this number: its lock does not
    run out before the response. If it is a release, `why` is that event. A status that is not ACQUIRED names the member
    whose lock was inferred to have run out. `wake_at(ms)` is called with the end of each lock, `limit()` is the group's
    delivery count limit.
    """

    def __init__(
        self,
        where: tuple[str, str, int],
        broker_id: int,
        wake_at: Callable[[int], None],
        limit: Callable[[], int],
    ) -> None:
        self.topic, self.broker_id = where[1], broker_id
        self._where, self._wake_at, self._limit = where, wake_at, limit
        self._runs = Runs()

    # ---- requests and responses of members ---------------------------------------------------------------------------

    def acquire(self, member: str, first: int, end: int, count: int, deadline_ms: int) -> Iterator[Event]:
        """The leader gives the records to a member. A hold that it has not ended before has run out, or a release under
        way has been applied, whose response is late: that of a fetch that waits for records.
        """
        before = self._runs.overlap(first, end)
        for begin, stop, status in before:
            if status.state is ACQUIRED:
                yield self._end(begin, stop, status, RecordEvent(status.why or RecordEvent.LOCK_TIMEOUT), inferred=True)
        yield from self._unseen(first, end, count)
        yield self._hold(first, end, RecordStatus(ACQUIRED, count, member, deadline_ms))

    def begin(self, number: int, member: str, first: int, end: int, kind: int) -> None:
        """A member acknowledges the records by the request with this number, and waits for the response."""
        why = RecordEvent.RELEASE if kind == AcknowledgeType.RELEASE else None
        for begin, stop, status in self._runs.overlap(first, end):
            if status.state is ACQUIRED and status.member_id == member:
                self._runs.assign(begin, stop, status._replace(write_id=number, why=why))

    def settle(self, number: int, first: int, end: int) -> None:
        """The request with this number has its response, or will have none."""
        for begin, stop, status in self._runs.overlap(first, end):
            if status.write_id == number:
                self._runs.assign(begin, stop, status._replace(write_id=None, why=None))
                if status.deadline_ms is not None:
                    self._wake_at(status.deadline_ms)

    def acknowledge(self, member: str, first: int, end: int, kind: int, deadline_ms: int) -> Iterator[Event]:
        """The leader confirms an acknowledgement; `deadline_ms` is that of a renewed lock. Records that the member does
        not hold here were passed by the SPSO before, or delivered unseen.
        """
        for begin, stop, status in self._runs.overlap(first, end):
            if status.member_id != member:
                continue
            if status.state is not ACQUIRED:  # the leader's timer was late: the lock had not run out
                status = RecordStatus(ACQUIRED, status.delivery_count, member, deadline_ms)
                yield self._hold(begin, stop, status)
            if kind == AcknowledgeType.RENEW:
                yield self._hold(begin, stop, status._replace(deadline_ms=deadline_ms))
            else:
                yield self._end(begin, stop, status, ACKNOWLEDGE_EVENT[AcknowledgeType(kind)])

    # ---- what no response names --------------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> Iterator[Event]:
        """End the locks that have run out."""
        for begin, stop, status in list(self._runs):
            over = status.deadline_ms is not None and status.deadline_ms <= now_ms
            if status.state is ACQUIRED and over and status.write_id is None:
                yield self._end(begin, stop, status, RecordEvent.LOCK_TIMEOUT, inferred=True)

    def release(self, member: str) -> Iterator[Event]:
        """End the holds of a member whose share session has ended."""
        for begin, stop, status in list(self._runs):
            if status.state is ACQUIRED and status.member_id == member:
                yield self._end(begin, stop, status, RecordEvent.SESSION_RELEASE, inferred=True)

    def pass_below(self, spso: int) -> None:
        """Forget the records below the SPSO."""
        self._runs.drop_below(spso)

    # ---- events ------------------------------------------------------------------------------------------------------

    def _hold(self, first: int, end: int, status: RecordStatus) -> RecordsHeld:
        assert status.member_id is not None
        assert status.deadline_ms is not None
        self._runs.assign(first, end, status)
        self._wake_at(status.deadline_ms)
        return RecordsHeld(*self._where, status.member_id, first, end, status.delivery_count, status.deadline_ms)

    def _end(
        self, first: int, end: int, status: RecordStatus, event: RecordEvent, *, inferred: bool = False
    ) -> HoldEnded:
        count = status.delivery_count
        state = next_state(ACQUIRED, event, delivery_count=count, delivery_count_limit=self._limit())
        assert state is not None
        revocable = event == RecordEvent.LOCK_TIMEOUT and state is RecordState.AVAILABLE
        self._runs.assign(first, end, RecordStatus(state, count, status.member_id if revocable else None))
        return HoldEnded(*self._where, status.member_id or "", event, first, end, state, count, inferred)

    def _unseen(self, first: int, end: int, count: int) -> Iterator[DeliveriesUnseen]:
        """The deliveries between the last seen count and that of an acquisition."""
        position = first
        known = [(begin, stop, status.delivery_count) for begin, stop, status in self._runs.overlap(first, end)]
        for begin, stop, last in (*known, (end, end, count)):
            if position < begin and count > 1:
                yield DeliveriesUnseen(*self._where, position, begin, 1, count - 1)
            if begin < stop and last < count - 1:
                yield DeliveriesUnseen(*self._where, begin, stop, last + 1, count - 1)
            position = stop
