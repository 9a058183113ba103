"""Naive model of the share-partition: one object per offset, every method looks at all of them.

It follows Kafka's rules in Kafka's order without regard to cost, and shares only the names of states and messages with
the code under test. Ends of offset ranges are exclusive, as in that code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import AcquireMode, IsolationLevel, RecordState

AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = (
    RecordState.AVAILABLE,
    RecordState.ACQUIRED,
    RecordState.ACKNOWLEDGED,
    RecordState.ARCHIVED,
)
TERMINAL = (ACKNOWLEDGED, ARCHIVED)
TARGETS = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}


@dataclass(slots=True)
class Rec:
    """One record. `batch`: the range that entered the window together; `write`: id of its write in flight, to `to`."""

    batch: tuple[int, int]
    state: RecordState
    count: int
    member: str | None = None
    deadline: int | None = None
    write: int | None = None
    to: RecordState | None = None

    @property
    def target(self) -> RecordState:
        return self.state if self.to is None else self.to

    def set_state(self, state: RecordState) -> None:
        self.state, self.member, self.deadline, self.write, self.to = state, None, None, None, None

    def release(self, limit: int, *, below: bool) -> None:
        self.set_state(ARCHIVED if below or self.count >= limit else AVAILABLE)


Written = dict[int, tuple[RecordState, int]]


@dataclass
class OracleWrite:
    """A state write by offset. With `final`, its changes stay even if the write fails."""

    write_id: int
    start_offset: int
    delivery_complete_count: int
    written: Written
    offsets: list[int]
    final: bool


class Oracle:
    """Has the methods and results of SharePartition."""

    def __init__(self) -> None:
        self.recs: dict[int, Rec] = {}
        self.spso = self.window_end = 0
        self.holes: set[int] = set()  # offsets in the window that were never stored and can be in the log
        self.needs_write = False  # a write without records is needed, so that the window moves
        self.writes: dict[int, OracleWrite] = {}
        self.next_write_id = 0
        self.unwritten: set[int] = set()

    # ---- state -------------------------------------------------------------------------------------------------------

    def batches(self) -> list[tuple[int, int]]:
        return sorted({rec.batch for rec in self.recs.values()})

    @property
    def delivery_complete_count(self) -> int:
        return sum(rec.target in TERMINAL for offset, rec in self.recs.items() if offset >= self.spso)

    @property
    def next_fetch_offset(self) -> int:
        waiting = [o for o in range(self.spso, self.window_end) if o in self.holes or self.state(o) is AVAILABLE]
        return min(waiting, default=self.window_end)

    def state(self, offset: int) -> RecordState | None:
        rec = self.recs.get(offset)
        return None if rec is None else rec.state

    def can_acquire(self, max_locks: int) -> bool:
        return self.window_end - self.spso < max_locks or self.next_fetch_offset != self.window_end

    @property
    def first_unfinished(self) -> int:
        return min(
            [*self.holes, *(o for o, rec in self.recs.items() if rec.state not in TERMINAL)], default=self.window_end
        )

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(self, start_offset: int, state_batches: Iterable[StateBatch]) -> None:
        self.spso = self.window_end = start_offset
        for first, last, state, count in sorted(state_batches):
            for offset in range(first, last + 1):
                self.recs[offset] = Rec((first, last + 1), RecordState(state), count)
            self.window_end = last + 1
        self.holes = set(range(start_offset, self.window_end)) - set(self.recs)
        self.advance()

    def advance(self) -> None:
        target = self.first_unfinished
        if target >= self.spso:
            self.spso = target
            self.recs = {offset: rec for offset, rec in self.recs.items() if offset >= target}

    def unblock(self, config: GroupConfig) -> None:
        stuck = not self.can_acquire(config.partition_max_record_locks) and self.first_unfinished > self.spso
        self.needs_write = self.needs_write or (stuck and not self.writes)

    # ---- acquiring ---------------------------------------------------------------------------------------------------

    def acquire(
        self,
        batches: Sequence[RecordBatch],
        fetch_offset: int,
        *,
        member_id: str,
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
        config: GroupConfig,
        aborted: Sequence[AbortedTransaction],
        now_ms: int,
    ) -> list[tuple[int, int, int]]:
        """Acquired runs (first, last, delivery count)."""
        if max_records <= 0 or not batches or batches[-1].last_offset < self.spso:
            return []
        call = _Call(self, batches, member_id=member_id, batch_size=batch_size, mode=mode, config=config, now_ms=now_ms)
        taken = call.run(fetch_offset, max_records)
        if taken:
            self.skip_gaps(taken[-1][1] + 1)
        if config.isolation_level is IsolationLevel.READ_COMMITTED:
            taken = self.drop_aborted(batches, aborted, taken)
        return taken

    def skip_gaps(self, offset: int) -> None:
        self.holes = {hole for hole in self.holes if hole >= offset}

    def note_missing(self, first: int, end: int) -> bool:
        """Handle a read from `first` that returned no record below `end`; True if a record or hole was dropped."""
        lost = [o for o in range(first, end) if o in self.recs and self.recs[o].target is AVAILABLE]
        for offset in lost:
            self.recs[offset].set_state(ARCHIVED)
            self.unwritten.add(offset)
        passed = bool(self.holes) and first <= min(self.holes) < end
        if passed:
            self.skip_gaps(end)
        return bool(lost) or passed

    def drop_aborted(
        self, batches: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction], taken: list[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        aborted_offsets = {
            offset
            for batch in batches
            for transaction in aborted
            if batch.is_transactional and not batch.is_control and batch.producer_id == transaction.producer_id
            if transaction.first_offset <= batch.last_offset <= transaction.last_offset
            for offset in range(batch.base_offset, batch.last_offset + 1)
        }
        kept: list[tuple[int, int, int]] = []
        for first, last, count in taken:
            before: int | None = None
            for offset in range(first, last + 1):
                if offset in aborted_offsets:
                    self.recs[offset].set_state(ARCHIVED)
                    self.unwritten.add(offset)
                elif before == offset - 1:
                    kept[-1] = (kept[-1][0], offset, count)
                    before = offset
                else:
                    kept.append((offset, offset, count))
                    before = offset
        return kept

    # ---- acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Errors | OracleWrite | None:
        targets: dict[int, RecordState] = {}
        for batch in batches:
            error = self.acknowledge_batch(member_id, batch, config, now_ms, targets)
            if error:
                return error
        if not targets:
            return None
        for offset, target in targets.items():
            self.recs[offset].to = target
            self.recs[offset].write = self.next_write_id
        return self.write(list(targets), final=False)

    def acknowledge_batch(
        self,
        member_id: str,
        batch: AcknowledgementBatch,
        config: GroupConfig,
        now_ms: int,
        targets: dict[int, RecordState],
    ) -> Errors:
        first, last, types = batch.first_offset, batch.last_offset, batch.acknowledge_types
        if any(kind not in range(5) for kind in types):
            return Errors.INVALID_REQUEST
        if last < self.spso:
            return Errors.NONE
        cached = self.batches()
        if not cached or (cached[0][0] > first and not first < self.spso <= last):
            return Errors.INVALID_RECORD_STATE
        below = [b for b in cached if b[0] <= last]
        if not below or below[-1][1] <= last:
            return Errors.INVALID_REQUEST
        for offset in range(max(first, self.spso), last + 1):
            rec = self.recs.get(offset)
            if rec is None:
                continue
            kind = types[0] if len(types) == 1 else types[offset - first]
            free = rec.state is not ACQUIRED or rec.member != member_id or rec.write is not None or offset in targets
            if free or (kind == 4 and not config.renew_acknowledge_enable):
                return Errors.INVALID_RECORD_STATE
            if kind == 4:
                rec.deadline = now_ms + config.record_lock_duration_ms
            else:
                over = kind == 2 and rec.count >= config.delivery_count_limit
                targets[offset] = ARCHIVED if over else TARGETS[kind]
        return Errors.NONE

    def release_member(self, member_id: str, config: GroupConfig) -> OracleWrite | None:
        offsets = []
        for offset, rec in sorted(self.recs.items()):
            if rec.state is ACQUIRED and rec.member == member_id and rec.write is None:
                over = offset < self.spso or rec.count >= config.delivery_count_limit
                rec.to, rec.write = ARCHIVED if over else AVAILABLE, self.next_write_id
                offsets.append(offset)
        return self.write(offsets, final=False) if offsets else None

    def write(self, offsets: list[int], *, final: bool) -> OracleWrite:
        written = {o: (self.recs[o].target, self.recs[o].count) for o in offsets if o >= self.spso}
        write = OracleWrite(self.next_write_id, self.spso, self.delivery_complete_count, written, offsets, final)
        self.writes[self.next_write_id] = write
        self.next_write_id += 1
        return write

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> None:
        write = self.writes.pop(write_id)
        for offset in [] if write.final else write.offsets:
            rec = self.recs.get(offset)
            if rec is None or rec.write != write_id:
                continue
            if not error:
                rec.set_state(rec.target)
                continue
            rec.write = rec.to = None
            if rec.deadline is not None and rec.deadline <= now_ms:
                rec.release(config.delivery_count_limit, below=offset < self.spso)
                self.unwritten.add(offset)
        if write.final or not error:
            self.advance()

    # ---- time and the log --------------------------------------------------------------------------------------------

    def expire(self, now_ms: int, config: GroupConfig) -> OracleWrite | None:
        offsets = set(self.unwritten)
        self.unwritten = set()
        for offset, rec in self.recs.items():
            if rec.deadline is not None and rec.deadline <= now_ms and rec.write is None:
                rec.release(config.delivery_count_limit, below=offset < self.spso)
                offsets.add(offset)
        if not offsets and not self.needs_write:
            return None
        self.needs_write = False
        return self.write(
            sorted(o for o in offsets if o in self.recs and self.recs[o].state is not ACQUIRED), final=True
        )

    def advance_log_start(self, log_start_offset: int) -> None:
        if log_start_offset <= self.spso:
            return
        for offset, rec in self.recs.items():
            if self.spso <= offset < log_start_offset and rec.target is AVAILABLE:
                rec.set_state(ARCHIVED)
        self.spso = log_start_offset
        self.window_end = max(self.window_end, log_start_offset)
        self.skip_gaps(log_start_offset)


class _Call:
    """One acquire, offset by offset."""

    def __init__(
        self,
        oracle: Oracle,
        batches: Sequence[RecordBatch],
        *,
        member_id: str,
        batch_size: int,
        mode: AcquireMode,
        config: GroupConfig,
        now_ms: int,
    ) -> None:
        self.oracle, self.batches, self.member_id, self.batch_size = oracle, batches, member_id, batch_size
        self.exact = mode is AcquireMode.RECORD_LIMIT
        self.limit = config.delivery_count_limit
        self.threshold = max(2, -(-self.limit // 2))
        self.max_locks = config.partition_max_record_locks
        self.deadline = now_ms + config.record_lock_duration_ms
        self.taken: list[tuple[int, int, int]] = []
        self.count = 0

    def run(self, fetch_offset: int, max_records: int) -> list[tuple[int, int, int]]:
        oracle = self.oracle
        fetch_offset = max(fetch_offset, oracle.spso)
        base, end = self.batches[0].base_offset, self.batches[-1].last_offset + 1
        self.goal = min(max_records, self.max_locks - (oracle.window_end - oracle.spso))
        if self.goal <= 0:
            if fetch_offset >= oracle.window_end:
                return []
            self.goal = min(max_records, oracle.window_end - fetch_offset)
            end = min(end, oracle.window_end)
        oracle.note_missing(fetch_offset, base)
        if base < end:
            self.walk(base, end)
        return self.taken

    def walk(self, base: int, end: int) -> None:
        oracle = self.oracle
        cached = oracle.batches()
        inside = [b for b in cached if b[0] <= base < b[1]]
        position = inside[0][0] if inside else max(base, oracle.spso)
        for batch in [b for b in cached if b[0] < end and b[1] > base]:
            if self.count >= self.goal:
                return
            if oracle.holes and (hole := max(position, oracle.spso, min(oracle.holes))) < batch[0]:
                self.take_new(hole, batch[0])
                if self.count >= self.goal:
                    return
            position = batch[1]
            if not self.take_cached(batch, base, end):
                return
        below = [b[1] for b in cached if b[0] < end]
        start = max([base, oracle.spso, *below[-1:]])
        if self.count < self.goal and start < end:
            self.take_new(start, end)

    def take_cached(self, batch: tuple[int, int], base: int, end: int) -> bool:
        """Kafka's loop over the offsets of a split batch; an unsplit batch gives the same result."""
        recs = self.oracle.recs
        offsets = [
            offset
            for offset in range(max(batch[0], base), min(batch[1], end))
            if offset in recs and recs[offset].state is AVAILABLE
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
        last = self.taken[-1] if self.taken else None
        if last and last[1] == offset - 1 and last[2] == rec.count and self.oracle.recs[last[1]].batch == rec.batch:
            self.taken[-1] = (last[0], offset, rec.count)
        else:
            self.taken.append((offset, offset, rec.count))
        self.count += 1

    def take_new(self, first: int, end: int) -> None:
        oracle, room = self.oracle, self.goal - self.count
        if room < end - first:
            reached = first + room - 1
            holding = [b for b in self.batches if b.base_offset <= reached <= b.last_offset]
            end = min(end, holding[0].last_offset + 1 if holding else reached + 1)
        if not any(b[0] < first for b in oracle.batches()):
            oracle.spso = max(oracle.spso, first)
        cuts = [first]
        if not self.exact and end - first > self.batch_size:
            for batch in self.batches:
                if batch.base_offset < end and batch.base_offset - cuts[-1] >= self.batch_size:
                    cuts.append(batch.base_offset)
        for start, stop in zip(cuts, [*cuts[1:], end], strict=True):
            for offset in range(start, stop):
                rec = oracle.recs[offset] = Rec((start, stop), AVAILABLE, 0)
                if not self.exact or offset < first + room:
                    self.take(offset, rec)
        oracle.holes -= set(range(first, end))
        if end > oracle.window_end:
            oracle.window_end = end
            oracle.holes.clear()
