"""The state of an in-flight record, the value type of the run map. Records with the same history share one object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from shareq.model.states import RecordEvent, RecordState


class InFlightState(NamedTuple):
    """`to_state` is the target of the write under way, else equal to `state`: a record stays ACQUIRED until its write
    has settled. `member_id` and `deadline_ms` are the holder of an ACQUIRED record and the end of its lock; an
    AVAILABLE record with a deadline rests until then. `write_id` and `event` are the write under way and the event that
    it records; an ACQUIRED record with a write that leaves it ACQUIRED is staged. An ARCHIVING record keeps that
    event."""

    state: RecordState
    to_state: RecordState
    delivery_count: int
    member_id: str | None = None
    deadline_ms: int | None = None
    write_id: int | None = None
    event: RecordEvent | None = None

    def prepared(self, event: RecordEvent, to_state: RecordState, write_id: int) -> InFlightState:
        """The same record, held as before, with a write under way."""
        state, _, count, member_id, deadline_ms, _, _ = self
        return new_state((state, to_state, count, member_id, deadline_ms, write_id, event))

    def expired(self, now_ms: int) -> bool:
        """True if a lock holds the record and has expired."""
        return self.member_id is not None and self.deadline_ms is not None and self.deadline_ms <= now_ms

    @property
    def staged(self) -> bool:
        """True if the acknowledgement `event` of the record waits for the end of a transaction (an experiment)."""
        return self.write_id is not None and self.to_state is RecordState.ACQUIRED

    @property
    def rests(self) -> bool:
        """True for a released record that may not be acquired before its deadline (an experiment)."""
        return self.state is RecordState.AVAILABLE and self.deadline_ms is not None

    def rested(self, now_ms: int) -> bool:
        """True if the record rests and its rest is over."""
        return self.state is RecordState.AVAILABLE and self.deadline_ms is not None and self.deadline_ms <= now_ms

    def abandoned(self) -> InFlightState:
        """The state before the write."""
        return InFlightState(self.state, self.state, self.delivery_count, self.member_id, self.deadline_ms)

    def renewed(self, deadline_ms: int) -> InFlightState:
        """The same record with a later deadline."""
        return InFlightState(self.state, self.state, self.delivery_count, self.member_id, deadline_ms)


new_state: Callable[[tuple[object, ...]], InFlightState] = partial(tuple.__new__, InFlightState)
"""Builds an InFlightState from all of its fields in order, at half the cost of its constructor."""


@cache
def settled(state: RecordState, delivery_count: int) -> InFlightState:
    """The state of a record without a holder; the same object for equal arguments."""
    return InFlightState(state, state, delivery_count)


@cache
def archiving(delivery_count: int, event: RecordEvent) -> InFlightState:
    """The state of a record on its way to the dead-letter queue. `event` is the reason: rejected, delivered too
    often or expired; DEAD_LETTERED once it has been passed to the writer of the queue."""
    return InFlightState(RecordState.ARCHIVING, RecordState.ARCHIVING, delivery_count, event=event)


def without_holder(state: RecordState, delivery_count: int, event: RecordEvent | None) -> InFlightState:
    """The state of a record that `event` has brought to `state` and that no member holds."""
    if state is RecordState.ARCHIVING and event is not None:
        return archiving(delivery_count, event)
    return settled(state, delivery_count)


def acquired(delivery_count: int, member_id: str, deadline_ms: int) -> InFlightState:
    """The state of a record that a member holds."""
    return InFlightState(RecordState.ACQUIRED, RecordState.ACQUIRED, delivery_count, member_id, deadline_ms)


InFlightChange = tuple[int, int, InFlightState, InFlightState]
"""(first, end, old, new): all of [first, end) has the state `old` and is to get `new`."""
