"""How a fetch acquires records in order by key: limits count the records that may be acquired; others enter the window
and wait. Rules: BEHAVIOUR.md, "Order by key"."""

from __future__ import annotations

from collections.abc import Iterator

from shareq.leader.experiments.expiring_acquisition import ExpiringAcquisition
from shareq.leader.in_flight_state import acquired, settled
from shareq.leader.run_map import FLOOR
from shareq.model.states import RecordEvent, RecordState


class KeyedAcquisition(ExpiringAcquisition):
    """New records enter the window by whole record batches, AVAILABLE, until enough of them may be acquired or the
    window is full. A hole of the gap window is filled whole: a hole that is passed breaks the order."""

    def run(self, fetch_offset: int, max_records: int) -> None:
        super().run(fetch_offset, max_records)
        self._window.skip_gaps(FLOOR)  # holes may be filled by records that wait

    def _take_unexpired(self, first: int, end: int) -> None:
        window = self._window
        if first > window.spso and window.batches.before(first) is None:
            window.start_at(first)
        fills, room, position = end <= window.window_end, self._goal - self._count, first
        for stop in self._record_batch_ends(first, end):
            window.put(position, stop, None, settled(RecordState.AVAILABLE, 0), cause=RecordEvent.ACQUIRE)
            room -= sum([e - f for f, e, _ in window.available.overlap(position, stop)])
            position = stop
            if not fills and (room <= 0 or stop - window.spso >= self._max_record_locks):
                break
        for start, stop in [(first, position)] if self._exact else self._pieces(first, position):
            window.add(start, stop)
            self._take_acquirable(start, stop)
        window.grow(position)

    def _record_batch_ends(self, first: int, end: int) -> Iterator[int]:
        """The ends of the record batches within [first, end), and `end`."""
        for batch in self._batches:
            if first <= batch.last_offset < end - 1:
                yield batch.last_offset + 1
        yield end

    def _take_acquirable(self, first: int, end: int) -> None:
        """Acquire the new records of one cached batch that may be acquired."""
        for f, e, in_flight in self._window.available.overlap(first, end):
            stop = min(e, f + self._goal - self._count) if self._exact else e
            if f < stop:
                self._lock(
                    f, stop, in_flight, acquired(in_flight.delivery_count + 1, self._member_id, self.deadline_ms)
                )
