"""The records of one share-partition that members hold, as its leader has named them in responses. Pure.

A leader names every acquisition, its delivery count and the duration of the lock, and it confirms every
acknowledgement. It does not name the end of a lock that runs out or of a share session: these ends are inferred.
BEHAVIOUR.md, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from shareq.coordinator.share_state.state import KeyState
from shareq.model.configs import GroupConfig
from shareq.model.events import DeliveriesUnseen, Event, HoldEnded, RecordsHeld
from shareq.model.states import (
    ACKNOWLEDGE_EVENT,
    TERMINAL,
    AcknowledgeType,
    RecordEvent,
    RecordState,
    next_state,
)
from shareq.trace.analysis.runs import STATE_OF_CODE, RecordStatus, Runs

ACQUIRED = RecordState.ACQUIRED
_EVENTS: Mapping[int, RecordEvent] = {int(kind): event for kind, event in ACKNOWLEDGE_EVENT.items()}


class GroupRules(NamedTuple):
    """When a group gives up a record, and if the record goes to a dead-letter queue."""

    delivery_count_limit: int = GroupConfig().delivery_count_limit
    dead_letter_queue: bool = False


class PartitionHolds:
    """The holds at one leader. Ranges are half-open.

    A status with a `write_id` has an acknowledgement under way, that of the request with this number: its lock does not
    run out before the response. `why` is the event of that acknowledgement. A status that is not ACQUIRED names the
    member whose lock was inferred to have run out. `wake_at(ms)` is called with the end of each lock, `rules()` are the
    present rules of the group.
    """

    def __init__(
        self,
        where: tuple[str, str, int],
        broker_id: int,
        wake_at: Callable[[int], None],
        rules: Callable[[], GroupRules],
    ) -> None:
        self.topic, self.broker_id = where[1], broker_id
        self._where, self._wake_at, self._rules = where, wake_at, rules
        self._runs = Runs()

    # ---- requests and responses of members ---------------------------------------------------------------------------

    def acquire(self, member: str, first: int, end: int, count: int, deadline_ms: int) -> Iterator[Event]:
        """The leader gives the records to a member. A hold that it has not ended before has run out, or a release under
        way has been applied, whose response is late: that of a fetch that waits for records.
        """
        before = self._runs.overlap(first, end)
        for begin, stop, status in before:
            if status.state is ACQUIRED:
                released = status.why == RecordEvent.RELEASE
                how = RecordEvent.RELEASE if released else RecordEvent.LOCK_TIMEOUT
                yield self._end(begin, stop, status, how, inferred=True)
        yield from self._unseen(first, end, count)
        yield self._hold(first, end, RecordStatus(ACQUIRED, count, member, deadline_ms))

    def begin(self, number: int, member: str, first: int, end: int, kind: int) -> None:
        """A member acknowledges the records by the request with this number, and waits for the response."""
        why = _EVENTS.get(kind)
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

    # ---- what polls show ---------------------------------------------------------------------------------------------

    def read(self, state: KeyState, log_start: int, now_ms: int) -> Iterator[Event]:
        """A poll has read the durable state, and later the log start, -1 if it is not known.

        If only an acknowledgement under way leads to that state of a record, the leader has applied it: its response is
        late. The SPSO passes finished records, and those below the log start; while a lock lasts, only its holder
        finishes the record.
        """
        if any(status.write_id is not None for _, _, status in self._runs):
            for batch in state.state_batches:
                durable = (STATE_OF_CODE[batch.delivery_state], batch.delivery_count)
                for first, end, status in self._runs.overlap(batch.first_offset, batch.last_offset + 1):
                    event = self._applied(status)
                    if event is not None and durable in self._durable(status, event):
                        yield self._end(first, end, status, event)
            if 0 <= log_start < state.start_offset:
                for first, end, status in self._runs.overlap(log_start, state.start_offset):
                    event = self._applied(status)
                    if event is not None and status.deadline_ms is not None and status.deadline_ms > now_ms:
                        yield self._end(first, end, status, event)
        self._pass_below(state.start_offset)

    def _applied(self, status: RecordStatus) -> RecordEvent | None:
        """The acknowledgement under way of a record that is finished, unless the end of its lock finishes it, too."""
        if status.write_id is None or status.why is None:
            return None
        event = RecordEvent(status.why)
        state = self._next(status, event)
        finished = state in TERMINAL or state is RecordState.ARCHIVING
        return event if finished and state is not self._next(status, RecordEvent.LOCK_TIMEOUT) else None

    def _durable(self, status: RecordStatus, event: RecordEvent) -> set[tuple[RecordState | None, int]]:
        """The durable states after an event: a record on the way to a dead-letter queue is ARCHIVED soon."""
        state, count = self._next(status, event), status.delivery_count
        archived = {(RecordState.ARCHIVED, count)} if state is RecordState.ARCHIVING else set()
        return {(state, count), *archived}

    def _pass_below(self, spso: int) -> None:
        """Forget the records below the SPSO, but not those whose acknowledgements are under way: a response confirms or
        refuses them."""
        for first, end, status in self._runs.drop_below(spso):
            if status.write_id is not None:
                self._runs.assign(first, end, status)

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
        count, state = status.delivery_count, self._next(status, event)
        assert state is not None
        revocable = event == RecordEvent.LOCK_TIMEOUT and state is RecordState.AVAILABLE
        self._runs.assign(first, end, RecordStatus(state, count, status.member_id if revocable else None))
        return HoldEnded(*self._where, status.member_id or "", event, first, end, state, count, inferred)

    def _next(self, status: RecordStatus, event: RecordEvent) -> RecordState | None:
        return next_state(ACQUIRED, event, delivery_count=status.delivery_count, **self._rules()._asdict())

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
