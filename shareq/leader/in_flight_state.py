"""What the run map says of an in-flight record. A cell is shared by all records to which the same happened together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from shareq.model.states import RecordEvent, RecordState


class InFlightState(NamedTuple):
    """`to_state` is where the write under way takes the record, else the state itself; a record stays ACQUIRED until
    that write has settled. `member_id` and `deadline_ms` say who holds an ACQUIRED record and until when, `write_id`
    and `event` which write is under way and what it is about.
    """

    state: RecordState
    to_state: RecordState
    delivery_count: int
    member_id: str | None = None
    deadline_ms: int | None = None
    write_id: int | None = None
    event: RecordEvent | None = None

    def prepared(self, event: RecordEvent, to_state: RecordState, write_id: int) -> InFlightState:
        """Held as before, with a write under way."""
        state, _, count, member_id, deadline_ms, _, _ = self
        return new_state((state, to_state, count, member_id, deadline_ms, write_id, event))

    def expired(self, now_ms: int) -> bool:
        """Whether it is held by a lock that has run out."""
        return self.deadline_ms is not None and self.deadline_ms <= now_ms

    def abandoned(self) -> InFlightState:
        """As before the write."""
        return InFlightState(self.state, self.state, self.delivery_count, self.member_id, self.deadline_ms)

    def renewed(self, deadline_ms: int) -> InFlightState:
        """Held for longer."""
        return InFlightState(self.state, self.state, self.delivery_count, self.member_id, deadline_ms)


new_state: Callable[[tuple[object, ...]], InFlightState] = partial(tuple.__new__, InFlightState)
"""What a NamedTuple's own constructor comes to, at half its price: fields in order, all of them."""


@cache
def settled(state: RecordState, delivery_count: int) -> InFlightState:
    """The cell of a record that nobody holds; the same object each time."""
    return InFlightState(state, state, delivery_count)


def acquired(delivery_count: int, member_id: str, deadline_ms: int) -> InFlightState:
    """The cell of a record that a member holds."""
    return InFlightState(RecordState.ACQUIRED, RecordState.ACQUIRED, delivery_count, member_id, deadline_ms)


Change = tuple[int, int, InFlightState, InFlightState]
"""[first, end), the cell that all of it has, and the one it is to get."""
