"""One acquisition of the naive model, offset by offset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shareq.lessons.oracle.naive_window import ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, NaiveWindow, Rec
from shareq.model.configs import GroupConfig
from shareq.model.records import RecordBatch
from shareq.model.states import AcquireMode


class Acquiring:
    """Acquires AVAILABLE records of the window, then new ones. `taken`: runs (first, last, delivery count)."""

    def __init__(
        self,
        window: NaiveWindow,
        batches: Sequence[RecordBatch],
        *,
        member_id: str,
        batch_size: int,
        mode: AcquireMode,
        config: GroupConfig,
        now_ms: int,
    ) -> None:
        self.window, self.batches, self.member_id, self.batch_size = window, batches, member_id, batch_size
        self.exact = mode is AcquireMode.RECORD_LIMIT
        self.limit = config.delivery_count_limit
        self.threshold = max(2, -(-self.limit // 2))
        self.max_locks = config.partition_max_record_locks
        self.expired: set[int] = set()
        self.expires_to = ARCHIVED
        if config.experiments is not None and config.experiments.record_ttl_ms >= 0:
            self.note_expired(now_ms - config.experiments.record_ttl_ms)
            if config.dead_letter_queue and config.experiments.record_ttl_deadletter_enable:
                self.expires_to = ARCHIVING
        self.deadline = now_ms + config.record_lock_duration_ms
        self.taken: list[tuple[int, int, int]] = []
        self.count = 0

    def note_expired(self, newest_ms: int) -> None:
        """The offsets of batches that are too old, and those between two such batches."""
        before: RecordBatch | None = None
        for batch in self.batches:
            if -1 < batch.max_timestamp <= newest_ms:
                first = batch.base_offset if before is None else before.last_offset + 1
                self.expired |= set(range(first, batch.last_offset + 1))
                before = batch
            else:
                before = None

    def run(self, fetch_offset: int, max_records: int) -> list[tuple[int, int, int]]:
        window = self.window
        for offset, rec in window.recs.items():
            if offset >= window.spso and offset in self.expired and rec.takeable:
                rec.set_state(self.expires_to)
                rec.rejected, rec.expired = False, True
                window.unwritten.add(offset)
        fetch_offset = max(fetch_offset, window.spso)
        base, end = self.batches[0].base_offset, self.batches[-1].last_offset + 1
        self.goal = min(max_records, self.max_locks - (window.window_end - window.spso))
        if self.goal <= 0:
            if fetch_offset >= window.window_end:
                return []
            self.goal = min(max_records, window.window_end - fetch_offset)
            end = min(end, window.window_end)
        window.note_missing(fetch_offset, base)
        if base < end:
            self.walk(base, end)
        return self.taken

    def walk(self, base: int, end: int) -> None:
        window = self.window
        cached = window.batches()
        inside = [b for b in cached if b[0] <= base < b[1]]
        position = inside[0][0] if inside else max(base, window.spso)
        for batch in [b for b in cached if b[0] < end and b[1] > base]:
            if self.count >= self.goal:
                return
            if window.holes and (hole := max(position, window.spso, min(window.holes))) < batch[0]:
                self.take_new(hole, batch[0])
                if self.count >= self.goal:
                    return
            position = batch[1]
            if not self.take_cached(batch, base, end):
                return
        below = [b[1] for b in cached if b[0] < end]
        start = max([base, window.spso, *below[-1:]])
        if self.count < self.goal and start < end:
            self.take_new(start, end)

    def take_cached(self, batch: tuple[int, int], base: int, end: int) -> bool:
        """Kafka's loop over the offsets of a split batch; an unsplit batch gives the same result."""
        recs = self.window.recs
        offsets = [
            offset
            for offset in range(max(batch[0], base), min(batch[1], end))
            if offset in recs and self.window.takeable(offset)
        ]
        hot = any(recs[offset].count >= self.threshold for offset in offsets)
        if hot and self.taken:
            return False
        here, cap, room = 0, -1, self.goal - self.count
        for offset in offsets:
            count = recs[offset].count
            if hot and self.limit > 2 and count == self.limit - 1 and here:
                break
            if hot and count >= self.threshold and cap < 0:
                cap = max(1, (batch[1] - batch[0]) >> (count - self.threshold + 1))
            self.take(offset, recs[offset])
            here += 1
            if hot and self.limit > 2 and count + 1 == self.limit:
                break
            if (self.exact and here == room) or here == cap:
                break
        return not (hot and here)

    def take(self, offset: int, rec: Rec) -> None:
        rec.state, rec.count, rec.member, rec.deadline = ACQUIRED, rec.count + 1, self.member_id, self.deadline
        self.window.taking.add(offset)
        last = self.taken[-1] if self.taken else None
        if last and last[1] == offset - 1 and last[2] == rec.count and self.window.recs[last[1]].batch == rec.batch:
            self.taken[-1] = (last[0], offset, rec.count)
        else:
            self.taken.append((offset, offset, rec.count))
        self.count += 1

    def take_new(self, first: int, end: int) -> None:
        """Stretches of records that are too old enter the window and are done; of the others as many are taken as the
        limits allow."""
        while first < end:
            too_old, stop = first in self.expired, first
            while stop < end and (stop in self.expired) == too_old:
                stop += 1
            if too_old:
                self.enter_expired(first, stop)
            elif self.count < self.goal:
                self.take_living(first, stop)
            if stop - 1 not in self.window.recs:
                return
            first = stop

    def enter_expired(self, first: int, end: int) -> None:
        window = self.window
        if not any(b[0] < first for b in window.batches()):
            window.spso = max(window.spso, first)
        fills = end <= window.window_end
        full_at = window.spso + self.max_locks
        if not fills and window.window_end >= full_at:
            return
        stop = end if fills else min(end, max(full_at, first + 1))
        for offset in range(first, stop):
            window.recs[offset] = Rec((first, stop), self.expires_to, 0, expired=True)
            window.unwritten.add(offset)
        window.holes = {hole for hole in window.holes if hole >= stop}
        if stop > window.window_end:
            window.window_end = stop
            window.holes.clear()
        if not fills:
            self.goal = min(self.goal, self.count + max(0, full_at - stop))

    def take_living(self, first: int, end: int) -> None:
        window, room = self.window, self.goal - self.count
        if room < end - first:
            reached = first + room - 1
            holding = [b for b in self.batches if b.base_offset <= reached <= b.last_offset]
            end = min(end, holding[0].last_offset + 1 if holding else reached + 1)
        if not any(b[0] < first for b in window.batches()):
            window.spso = max(window.spso, first)
        for start, stop in self.pieces(first, end):
            for offset in range(start, stop):
                rec = window.recs[offset] = Rec((start, stop), AVAILABLE, 0)
                if not self.exact or offset < first + room:
                    self.take(offset, rec)
        window.holes -= set(range(first, end))
        if end > window.window_end:
            window.window_end = end
            window.holes.clear()

    def pieces(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Pieces of at least the batch size, each of which is one cached batch."""
        cuts = [first]
        if not self.exact and end - first > self.batch_size:
            for batch in self.batches:
                if batch.base_offset < end and batch.base_offset - cuts[-1] >= self.batch_size:
                    cuts.append(batch.base_offset)
        return zip(cuts, [*cuts[1:], end], strict=True)


class KeyedAcquiring(Acquiring):
    """Acquires in order by key: record batches enter the window until enough of their records may be acquired."""

    keys: Mapping[int, bytes]

    def take_living(self, first: int, end: int) -> None:
        window = self.window
        if not any(b[0] < first for b in window.batches()):
            window.spso = max(window.spso, first)
        end = self.enter(first, end)
        for start, stop in self.pieces(first, end):
            for offset in range(start, stop):
                window.recs[offset].batch = (start, stop)
        for offset in range(first, end):
            if window.takeable(offset) and (not self.exact or self.count < self.goal):
                self.take(offset, window.recs[offset])
        window.holes -= set(range(first, end))
        if end > window.window_end:
            window.window_end = end
            window.holes.clear()

    def enter(self, first: int, end: int) -> int:
        """The records are in the window, and wait; those of a hole within it all are. The end of what has entered."""
        window, position, fills = self.window, first, end <= self.window.window_end
        ends = [b.last_offset + 1 for b in self.batches if first <= b.last_offset < end - 1]
        for stop in [*ends, end]:
            for offset in range(position, stop):
                window.recs[offset] = Rec((first, end), AVAILABLE, 0, key=self.keys.get(offset))
            position = stop
            acquirable = sum(window.takeable(offset) for offset in range(first, stop))
            if not fills and (acquirable >= self.goal - self.count or stop - window.spso >= self.max_locks):
                break
        return position
