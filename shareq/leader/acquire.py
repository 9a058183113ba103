"""How a fetch acquires records: available records of the window first, then new ones, within the limits, cut at record
batches.

Source: KIP-932, "Fetching"; KIP-1206 for the two acquire modes; Kafka's SharePartition for alignment and throttling.
Rules: BEHAVIOUR.md, "Acquiring" and "Throttled delivery".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from shareq.leader.in_flight_state import InFlightState, acquired, settled
from shareq.leader.window import Bounds, Window
from shareq.model.configs import GroupConfig
from shareq.model.records import RecordBatch
from shareq.model.states import AcquireMode, RecordEvent, RecordState

Taken = tuple[int, int, InFlightState]
"""(first, end, state): acquired offsets [first, end) of one cached batch, with one delivery count."""


class Acquisition:
    """One acquisition. `taken` are the acquired runs, `archived` the ranges that were found missing or aborted.

    `_goal` is the number of records to acquire. In batch_optimized mode it is soft: a cached batch is acquired whole,
    new records up to the end of the record batch that reaches the goal.
    """

    def __init__(
        self,
        window: Window,
        batches: Sequence[RecordBatch],
        *,
        member_id: str,
        batch_size: int,
        mode: AcquireMode,
        config: GroupConfig,
        now_ms: int,
    ) -> None:
        self.taken: list[Taken] = []
        self.archived: list[tuple[int, int]] = []
        self._window = window
        self._batches = batches
        self._member_id = member_id
        self._batch_size = batch_size
        self._exact = mode is AcquireMode.RECORD_LIMIT
        self.deadline_ms = now_ms + config.record_lock_duration_ms
        self._max_record_locks = config.partition_max_record_locks
        self._limit = config.delivery_count_limit
        self._throttled_from = max(2, (self._limit + 1) // 2)
        self._goal = self._count = 0

    def run(self, fetch_offset: int, max_records: int) -> None:
        """Acquire up to `max_records` records of the batches, which were read from `fetch_offset`."""
        window, window_end = self._window, self._window.window_end
        fetch_offset = max(fetch_offset, window.spso)  # the SPSO may have moved during the read
        base, end = self._batches[0].base_offset, self._batches[-1].last_offset + 1
        self._goal = min(max_records, self._max_record_locks - (window_end - window.spso))
        if self._goal <= 0:  # the window is full: only its own records can be acquired
            if fetch_offset >= window_end:
                return
            self._goal = min(max_records, window_end - fetch_offset)
            end = min(end, window_end)
        if base > fetch_offset:
            self.archived += window.archive_missing(fetch_offset, base)
        if base < end:
            self._take(base, end)
        if self.taken:
            window.skip_gaps(self.taken[-1][1])

    def _take(self, base: int, end: int) -> None:
        """Acquire from [base, end): records inside the window before those above it."""
        window = self._window
        if base >= window.window_end:  # the ordinary case
            self._take_new(base, end)
        elif self._take_again(base, end) and self._count < self._goal:
            last = window.batches.before(end)
            start = max(base, window.spso) if last is None else max(base, window.spso, last.end)
            if start < end:
                self._take_new(start, end)

    def archive_aborted(self, ranges: list[tuple[int, int]]) -> None:
        """Archive the acquired records that aborted transactions wrote."""
        taken, self.taken = self.taken, []
        for first, end, in_flight in taken:
            for aborted_first, aborted_end in ranges:
                f, e = max(first, aborted_first), min(end, aborted_end)
                if f < e:
                    self._window.archive(f, e, in_flight, RecordEvent.ABORTED)
                    self.archived.append((f, e))
                    if first < f:
                        self.taken.append((first, f, in_flight))
                    first = e
            if first < end:
                self.taken.append((first, end, in_flight))

    # ---- records that are in the window already ----------------------------------------------------------------------

    def _take_again(self, base: int, end: int) -> bool:
        """Acquire AVAILABLE records of cached batches, and holes of the gap window. False ends the acquisition."""
        window = self._window
        position = max(base, window.spso)
        for bounds in self._cached(base, end):
            if self._count >= self._goal:
                return False
            if window.first_gap is not None and (hole := max(position, window.first_gap)) < bounds.first:
                self._take_new(hole, bounds.first)
                if self._count >= self._goal:
                    return False
            position = max(position, bounds.end)
            if not self._take_cached(bounds, base, end):
                return False
        return True

    def _cached(self, base: int, end: int) -> Iterator[Bounds]:
        """The cached batches to visit: all of them while holes must be fetched, else those with AVAILABLE records."""
        window = self._window
        if window.first_gap is not None:
            yield from [bounds for _, _, bounds in window.batches.overlap(base, end)]
            return
        while (run := window.available.next_run(base)) is not None and run[0] < end:
            bounds = window.batches.get(run[0])
            assert bounds is not None
            yield bounds
            base = bounds.end

    def _take_cached(self, bounds: Bounds, base: int, end: int) -> bool:
        """Acquire from one cached batch. Returns False if the acquisition must end after it.

        A batch that has failed often is delivered alone and in shrinking parts, so that a record that always fails is
        isolated before its neighbours reach the delivery limit (Kafka's throttled delivery).
        """
        runs = self._window.available.overlap(max(bounds.first, base), min(bounds.end, end))
        hot = any(in_flight.delivery_count >= self._throttled_from for _, _, in_flight in runs)
        if hot and self.taken:
            return False
        room = self._goal - self._count if self._exact else bounds.end - bounds.first
        if hot:
            runs = self._throttled(runs, bounds.end - bounds.first, room)
        for first, stop, in_flight in runs:
            stop = min(stop, first + room)
            if first < stop:
                room -= stop - first
                self._lock(
                    first, stop, in_flight, acquired(in_flight.delivery_count + 1, self._member_id, self.deadline_ms)
                )
        return not (hot and self.taken)

    def _throttled(
        self, runs: list[tuple[int, int, InFlightState]], size: int, room: int
    ) -> list[tuple[int, int, InFlightState]]:
        """The parts of these runs that may be acquired at once, of a cached batch with `size` offsets.

        The first run at the threshold sets the cap, once. A cap below the number already counted has no effect. The
        last attempt of a record delivers that record alone.
        """
        count, cap, allowed = 0, 0, []
        for first, end, in_flight in runs:
            last_attempt = self._limit > 2 and in_flight.delivery_count == self._limit - 1
            if last_attempt and count:
                break
            if not cap and in_flight.delivery_count >= self._throttled_from:
                cap = max(1, size >> (in_flight.delivery_count - self._throttled_from + 1))
            taken = min(end - first, 1 if last_attempt else end - first, room - count)
            if count < cap:
                taken = min(taken, cap - count)
            allowed.append((first, first + taken, in_flight))
            count += taken
            if last_attempt or count in (room, cap):
                break
        return allowed

    # ---- new records -------------------------------------------------------------------------------------------------

    def _take_new(self, first: int, end: int) -> None:
        """Add [first, end), or its beginning, to the window as acquired. Every offset is assumed to exist."""
        window, room = self._window, self._goal - self._count
        if room < end - first:
            end = min(end, self._end_of_record_batch(first + room - 1))
        if first > window.spso and window.batches.before(first) is None:
            window.start_at(first)
        in_flight = acquired(1, self._member_id, self.deadline_ms)
        if self._exact:
            window.add(first, end)
            stop = min(end, first + room)
            self._lock(first, stop, None, in_flight)
            if stop < end:
                window.put(stop, end, None, settled(RecordState.AVAILABLE, 0), cause=RecordEvent.ACQUIRE)
        else:
            for start, stop in self._pieces(first, end):
                window.add(start, stop)
                self._lock(start, stop, None, in_flight)
        window.grow(end)

    def _end_of_record_batch(self, offset: int) -> int:
        """The end of the record batch that holds `offset`; `offset` + 1 in a hole."""
        i = bisect_left(self._batches, offset, key=_last_offset)
        inside = i < len(self._batches) and self._batches[i].base_offset <= offset
        return (self._batches[i].last_offset if inside else offset) + 1

    def _pieces(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """[first, end) cut at base offsets of record batches into pieces of at least the batch size; the last may be
        shorter."""
        if end - first > self._batch_size:
            for batch in self._batches:
                if batch.base_offset - first >= self._batch_size and batch.base_offset < end:
                    yield first, batch.base_offset
                    first = batch.base_offset
        yield first, end

    def _lock(self, first: int, end: int, old: InFlightState | None, in_flight: InFlightState) -> None:
        self._window.put(first, end, old, in_flight, cause=RecordEvent.ACQUIRE)
        self.taken.append((first, end, in_flight))
        self._count += end - first


def _last_offset(batch: RecordBatch) -> int:
    return batch.last_offset
