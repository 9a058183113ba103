"""Naive model of the share-partition: one object per offset, every method looks at all of them.

It follows Kafka's rules in Kafka's order without regard to cost, and shares only the names of states and messages with
`shareq.leader`. Ends of offset ranges are exclusive, as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shareq.lessons.oracle.naive_acquire import Acquiring, KeyedAcquiring
from shareq.lessons.oracle.naive_window import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, NaiveWindow, Rec
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import AcquireMode, IsolationLevel, RecordState

TARGETS = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}
RENEWED = 4

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
    archiving: list[int]


class Oracle(NaiveWindow):
    """Has the methods and results of SharePartition."""

    def __init__(self) -> None:
        super().__init__()
        self.needs_write = False  # a write without records is needed, so that the window moves
        self.writes: dict[int, OracleWrite] = {}
        self.next_write_id = 0
        self.letters: list[tuple[int, int, bool, bool]] = []  # offset, delivery count, rejected, expired

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(self, start_offset: int, state_batches: Iterable[StateBatch], limit: int) -> None:
        self.spso = self.window_end = start_offset
        for first, last, state, count in sorted(state_batches):
            for offset in range(first, last + 1):
                self.recs[offset] = Rec((first, last + 1), RecordState(state), count, rejected=count < limit)
            self.window_end = last + 1
        self.holes = set(range(start_offset, self.window_end)) - set(self.recs)
        self.unlearned = set(self.recs)
        self.advance()
        self.send(list(self.recs))

    # ---- the dead-letter queue ---------------------------------------------------------------------------------------

    def send(self, offsets: Iterable[int]) -> None:
        """Archiving records that are written become letters, once."""
        for offset in sorted(offsets):
            rec = self.recs.get(offset)
            if rec is not None and rec.state is ARCHIVING and not rec.sent:
                rec.sent = True
                self.letters.append((offset, rec.count, rec.rejected, rec.expired))

    def dead_lettered(self, offsets: Iterable[int]) -> OracleWrite:
        for offset in offsets:
            self.recs[offset].set_state(ARCHIVED)
            self.unwritten.add(offset)
        return self.write_unwritten()

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
        keys: Mapping[int, bytes] | None = None,
    ) -> list[tuple[int, int, int]]:
        """Acquired runs (first, last, delivery count). `keys`: of the records, with order by key."""
        if max_records <= 0 or not batches or batches[-1].last_offset < self.spso:
            return []
        limits: dict[str, Any] = {"member_id": member_id, "batch_size": batch_size, "mode": mode}
        if self.most is None:
            call = Acquiring(self, batches, config=config, now_ms=now_ms, **limits)
        else:
            call = KeyedAcquiring(self, batches, config=config, now_ms=now_ms, **limits)
            call.keys = self.committed_keys(batches, aborted, keys or {}, config)
            self.learn(batches, call.keys)
        taken = call.run(fetch_offset, max_records)
        self.taking.clear()
        if taken:
            self.skip_gaps(taken[-1][1] + 1)
        if config.isolation_level is IsolationLevel.READ_COMMITTED:
            taken = self.drop_aborted(batches, aborted, taken)
        return taken

    def learn(self, batches: Sequence[RecordBatch], keys: Mapping[int, bytes]) -> None:
        """The keys of records that were loaded, and that this read has."""
        read = {o for o in self.unlearned if batches[0].base_offset <= o <= batches[-1].last_offset}
        for offset in read & self.recs.keys():
            if self.recs[offset].state is AVAILABLE:
                self.recs[offset].key = keys.get(offset)
        self.unlearned -= read

    def committed_keys(
        self,
        batches: Sequence[RecordBatch],
        aborted: Sequence[AbortedTransaction],
        keys: Mapping[int, bytes],
        config: GroupConfig,
    ) -> Mapping[int, bytes]:
        """The keys without those of aborted records, which wait for no other record."""
        dropped = self.aborted_offsets(batches, aborted) if config.isolation_level else set()
        return {offset: key for offset, key in keys.items() if offset not in dropped}

    def drop_aborted(
        self, batches: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction], taken: list[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        aborted_offsets = self.aborted_offsets(batches, aborted)
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

    @staticmethod
    def aborted_offsets(batches: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction]) -> set[int]:
        return {
            offset
            for batch in batches
            for transaction in aborted
            if batch.is_transactional and not batch.is_control and batch.producer_id == transaction.producer_id
            if transaction.first_offset <= batch.last_offset <= transaction.last_offset
            for offset in range(batch.base_offset, batch.last_offset + 1)
        }

    # ---- acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Errors | OracleWrite | None:
        targets: dict[int, RecordState] = {}
        if config.experiments is not None:
            longest = config.experiments.release_backoff_max_ms
            if any(batch.release_delay_ms != -1 and not 0 <= batch.release_delay_ms <= longest for batch in batches):
                return Errors.INVALID_REQUEST
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
        if any(kind not in (*TARGETS, RENEWED) for kind in types):
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
            if free or (kind == RENEWED and not config.renew_acknowledge_enable):
                return Errors.INVALID_RECORD_STATE
            if kind == RENEWED:
                rec.deadline = now_ms + config.record_lock_duration_ms
            else:
                archived = ARCHIVING if config.dead_letter_queue and kind == 3 else TARGETS[kind]
                returned = TARGETS[kind] is AVAILABLE
                targets[offset] = rec.after_release(config, below=False) if returned else archived
                rec.rejected = kind == 3
                rec.delay = batch.release_delay_ms if kind == 2 else None
        return Errors.NONE

    def release_member(self, member_id: str, config: GroupConfig) -> OracleWrite | None:
        offsets = []
        for offset, rec in sorted(self.recs.items()):
            if rec.state is ACQUIRED and rec.member == member_id and rec.write is None:
                rec.to, rec.write = rec.after_release(config, below=offset < self.spso), self.next_write_id
                rec.rejected, rec.delay = False, None
                offsets.append(offset)
        return self.write(offsets, final=False) if offsets else None

    def write(self, offsets: list[int], *, final: bool) -> OracleWrite:
        written = {o: (self.recs[o].target, self.recs[o].count) for o in offsets if o >= self.spso}
        archiving = [o for o in offsets if self.recs[o].target is ARCHIVING]
        write = OracleWrite(
            self.next_write_id, self.spso, self.delivery_complete_count, written, offsets, final, archiving
        )
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
                delay = rec.delay
                rec.set_state(rec.target)
                if delay is not None and rec.state is AVAILABLE:
                    self.rest(rec, delay, config, now_ms)
                continue
            rec.write = rec.to = rec.delay = None
            if rec.deadline is not None and rec.deadline <= now_ms:
                rec.rejected = False
                rec.release(config, below=offset < self.spso)
                self.unwritten.add(offset)
        if write.final or not error:
            self.send(write.archiving)
            self.advance()

    def rest(self, rec: Rec, delay: int, config: GroupConfig, now_ms: int) -> None:
        """A record is released: it rests as its client has asked, else by the rule of the group."""
        experiments = config.experiments
        if experiments is not None and delay < 0:
            delay = min(experiments.release_backoff_max_ms, experiments.release_backoff_ms * 2 ** (rec.count - 1))
        if experiments is not None and delay > 0:
            rec.deadline = now_ms + delay

    # ---- time and the log --------------------------------------------------------------------------------------------

    def expire(self, now_ms: int, config: GroupConfig) -> OracleWrite | None:
        for offset, rec in self.recs.items():
            if rec.deadline is not None and rec.deadline <= now_ms and rec.write is None:
                if rec.state is AVAILABLE:
                    rec.deadline = None
                    continue
                rec.rejected = False
                rec.release(config, below=offset < self.spso)
                self.unwritten.add(offset)
        return self.write_unwritten() if self.unwritten or self.needs_write else None

    def write_unwritten(self) -> OracleWrite:
        offsets, self.unwritten = self.unwritten, set()
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
