"""Back-off on release: a window in which a released record rests before it can be acquired again.

A resting record is AVAILABLE, has no holder, and has a deadline: the end of its rest. It is in `states`, and not in
`available`, so that fetches neither find it nor wake for it. Rules: BEHAVIOUR.md, "Back-off on release".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shareq.leader.event_recorder import EventRecorder
from shareq.leader.in_flight_state import InFlightChange, InFlightState, settled, without_holder
from shareq.leader.window import Window
from shareq.model.experiments import Experiments
from shareq.model.states import RESTED, SETTLED, RecordEvent, RecordState

Delay = tuple[int, int, int]
"""(first, end, ms): the rest that a client requested for the records that it releases in [first, end)."""


class RestRule(NamedTuple):
    """How long the records rest that a write releases: as their client requested, else as the group is configured."""

    now_ms: int
    experiments: Experiments
    delays: Sequence[Delay] = ()

    def parts(self, first: int, end: int, delivery_count: int) -> Iterator[tuple[int, int, int]]:
        """[first, end) with the end of the rest of each part, which is `now_ms` if it does not rest. Delays ascend."""
        until_ms = self.now_ms + self.experiments.rest_ms(delivery_count)
        for delay_first, delay_end, delay_ms in self.delays:
            f, e = max(first, delay_first), min(end, delay_end)
            if f < e:
                if first < f:
                    yield first, f, until_ms
                yield f, e, self.now_ms + delay_ms
                first = e
        if first < end:
            yield first, end, until_ms


def resting(delivery_count: int, until_ms: int) -> InFlightState:
    """The state of a released record that rests."""
    return InFlightState(RecordState.AVAILABLE, RecordState.AVAILABLE, delivery_count, None, until_ms)


class RestingWindow(Window):
    """`rule` applies to the next `commit`; the owner sets it, and takes the `rests` that the commit began, as deadlines
    (ms, first, end)."""

    __slots__ = ("rests", "rule")

    def __init__(self, recorder: EventRecorder | None) -> None:
        super().__init__(recorder)
        self.rule = RestRule(0, Experiments())
        self.rests: list[tuple[int, int, int]] = []

    def commit(self, changes: list[InFlightChange]) -> None:
        for first, end, _, tagged in changes:
            for f, e, in_flight in self.states.overlap(first, end):
                if in_flight.write_id == tagged.write_id:
                    self._settle(f, e, in_flight)

    def _settle(self, first: int, end: int, tagged: InFlightState) -> None:
        state, count, event = tagged.to_state, tagged.delivery_count, tagged.event
        if state is not RecordState.AVAILABLE or event is not RecordEvent.RELEASE:
            self.put(first, end, tagged, without_holder(state, count, event), cause=SETTLED, why=event)
            return
        for f, e, until_ms in self.rule.parts(first, end, count):
            rests = until_ms > self.rule.now_ms
            self.put(
                f, e, tagged, resting(count, until_ms) if rests else settled(state, count), cause=SETTLED, why=event
            )
            if rests:
                self.rests.append((until_ms, f, e))

    def end_rests(self, first: int, end: int, now_ms: int) -> None:
        """Make the records of [first, end) available that have rested until now."""
        for f, e, in_flight in self.states.overlap(first, end):
            if in_flight.rested(now_ms):
                self.put(f, e, in_flight, settled(in_flight.state, in_flight.delivery_count), cause=RESTED)

    def _index_available(self, first: int, end: int, new: InFlightState) -> None:
        """A resting record cannot be acquired."""
        self.available.assign(first, end, None if new.rests else new)
