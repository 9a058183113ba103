"""How a fetch acquires records that have a time to live: what is too old is archived, before keys and limits are looked
at. Rules: BEHAVIOUR.md, "Time to live"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shareq.leader.acquire import Acquisition
from shareq.leader.in_flight_state import InFlightState, without_holder
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.experiments import Experiments
from shareq.model.records import RecordBatch
from shareq.model.states import RecordEvent, RecordState

NO_TIMESTAMP = -1

_AVAILABLE = RecordState.AVAILABLE


def expired_ranges(batches: Sequence[RecordBatch], ttl_ms: int, now_ms: int) -> list[tuple[int, int]]:
    """The offsets of the record batches whose youngest record is `ttl_ms` old, as ranges [first, end) that have the
    gaps between such batches. A batch without a timestamp is never too old; without a time to live (-1) none is."""
    if ttl_ms < 0:
        return []
    found: list[tuple[int, int]] = []
    newest_ms, follows = now_ms - ttl_ms, False
    for batch in batches:
        too_old = NO_TIMESTAMP < batch.max_timestamp <= newest_ms
        if too_old:
            found.append((found.pop()[0] if follows else batch.base_offset, batch.last_offset + 1))
        follows = too_old
    return found


class ExpiringAcquisition(Acquisition):
    """`_expired`: the ranges of the batches that are too old."""

    def __init__(
        self, window: Window, batches: Sequence[RecordBatch], *, config: GroupConfig, now_ms: int, **limits: Any
    ) -> None:
        super().__init__(window, batches, config=config, now_ms=now_ms, **limits)
        experiments = config.experiments or Experiments()
        self._expired = expired_ranges(batches, experiments.record_ttl_ms, now_ms + window.day_ahead_ms)
        queue = config.dead_letter_queue and experiments.record_ttl_deadletter_enable
        self._expires_to = RecordState.ARCHIVING if queue else RecordState.ARCHIVED

    def run(self, fetch_offset: int, max_records: int) -> None:
        spso = self._window.spso
        for first, end in self._expired:
            if spso < end:
                self._expire(max(first, spso), end)
        super().run(fetch_offset, max_records)

    def _expire(self, first: int, end: int) -> None:
        """Archive the available records of [first, end): not those that a member holds or that rest."""
        window = self._window
        for f, e, in_flight in window.states.overlap(first, end):
            if in_flight.state is _AVAILABLE and not in_flight.rests:
                self._archive(f, e, in_flight, in_flight.delivery_count)

    def _archive(self, first: int, end: int, old: InFlightState | None, delivery_count: int) -> None:
        expired = without_holder(self._expires_to, delivery_count, RecordEvent.EXPIRED)
        self._window.put(first, end, old, expired, cause=RecordEvent.EXPIRED)
        self.archived.append((first, end))

    def _take_new(self, first: int, end: int) -> None:
        """Of [first, end) acquire what is not too old; the rest enters the window and is done."""
        for expired_first, expired_end in self._expired:
            f, e = max(first, expired_first), min(end, expired_end)
            if f < e:
                if not (self._take_living(first, f) and self._enter_expired(f, e)):
                    return
                first = e
        self._take_living(first, end)

    def _take_living(self, first: int, end: int) -> bool:
        """Acquire [first, end), or its beginning. True if all of it is in the window now."""
        if first < end and self._count < self._goal:
            self._take_unexpired(first, end)
        return first == end or self._window.batches.get(end - 1) is not None

    def _take_unexpired(self, first: int, end: int) -> None:
        super()._take_new(first, end)

    def _enter_expired(self, first: int, end: int) -> bool:
        """Add [first, end) to the window, as far as it has room, and one offset of it where a gap of the log takes all
        the room; a hole of the window always has room. True if all of it is in the window now."""
        window = self._window
        if first > window.spso and window.batches.before(first) is None:
            window.start_at(first)
        fills = end <= window.window_end
        full_at = window.spso + self._max_record_locks
        if not fills and window.window_end >= full_at:
            return False
        stop = end if fills else min(end, max(full_at, first + 1))
        window.add(first, stop)
        self._archive(first, stop, None, 0)
        window.skip_gaps(stop)
        window.grow(stop)
        if not fills:
            self._goal = min(self._goal, self._count + max(0, full_at - stop))
        return stop == end
