"""One group's state of one partition on its leader: in-flight records, their holders, and what is durable.

Pure state: no I/O and no clock. Methods return the writes to persist; the persister's answer comes in through `settle`.
Records with a write under way stay ACQUIRED and carry the write's id, so no change is ever rolled back. Changes
without a request (expired locks, records missing from the log, aborted transactions) take effect at once, and the next
`expire` writes them.

Source: KIP-932, "Share-partition leader"; Kafka's SharePartition for everything that the KIP leaves open. Rules:
BEHAVIOUR.md in this folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from shareq.leader.aborted_transactions import aborted_ranges
from shareq.leader.acknowledge import Acknowledgement
from shareq.leader.acquire import Acquisition
from shareq.leader.acquisition_locks import AcquisitionLocks
from shareq.leader.event_recorder import EventRecorder
from shareq.leader.in_flight_state import InFlightChange, InFlightState
from shareq.leader.state_writes import PreparedWrite, StateWrites
from shareq.leader.window import Window
from shareq.model.actor import DeadLetter
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.events import Event, Run
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_fetch import AcknowledgementBatch, AcquiredRecords
from shareq.model.messages.share_state import StagedBatch, StateBatch
from shareq.model.records import AbortedTransaction, KeyRun, RecordBatch
from shareq.model.states import (
    LOAD_TRANSITIONS,
    AcquireMode,
    IsolationLevel,
    LoadEvent,
    PartitionLoadState,
    RecordEvent,
    RecordState,
)
from shareq.model.waits import Wait, window_wait

__all__ = ["PreparedWrite", "SharePartition"]


class SharePartition:
    """The state of one share-partition.

    `step` alone changes `status`; only ACTIVE acquires. The owner calls `expire` at `next_deadline_ms`, and `settle`
    once for each prepared write. Offset ranges are half-open.
    """

    needs_keys: ClassVar = False
    """A fetch has to read the keys of the records, too."""

    _acquisition: ClassVar[type[Acquisition]] = Acquisition

    __slots__ = (
        "_locks",
        "_recorder",
        "_window",
        "_writes",
        "key",
        "leader_epoch",
        "state_epoch",
        "status",
        "topic",
    )

    def __init__(self, key: SharePartitionKey, topic: str, *, leader_epoch: int, traced: bool) -> None:
        self.key = key
        self.topic = topic
        self.leader_epoch = leader_epoch
        self.state_epoch = -1
        self.status = PartitionLoadState.EMPTY
        self._recorder = EventRecorder(key, topic) if traced else None
        self._window = self._new_window()
        self._locks = AcquisitionLocks()
        self._writes = StateWrites(self._window)

    def _new_window(self) -> Window:
        """The window; `leader/experiments` has others."""
        return Window(self._recorder)

    def load(
        self,
        state_epoch: int,
        start_offset: int,
        state_batches: Sequence[StateBatch],
        *,
        config: GroupConfig,
        staged: Sequence[StagedBatch] = (),  # noqa: ARG002 only `leader/experiments` stages
    ) -> bool:
        """Load the durable state with its resolved start offset. Returns False and sets FAILED if the state is invalid.

        No record has a holder afterwards. Records that are ARCHIVING continue on their way to the dead-letter queue.
        """
        window = self._window
        if not window.load(start_offset, state_batches, config.delivery_count_limit):
            self.step(LoadEvent.INVALID)
            return False
        self.step(LoadEvent.LOADED)
        self.state_epoch = state_epoch
        if self._recorder is not None:
            bounds = (window.spso, window.window_end)
            self._recorder.loaded(bounds, self.runs(), state_epoch, self.leader_epoch, config)
        self._writes.note_letters(window.spso, window.window_end)
        return True

    def step(self, event: LoadEvent) -> None:
        """Change `status`. KeyError for an event that cannot occur in it."""
        self.status = LOAD_TRANSITIONS[self.status, event]

    # ---- queries -----------------------------------------------------------------------------------------------------

    @property
    def window(self) -> Window:
        """The records in flight, to be looked at: only the share-partition changes them."""
        return self._window

    @property
    def spso(self) -> int:
        """Share-partition start offset: no record below it is delivered again."""
        return self._window.spso

    @property
    def window_end(self) -> int:
        """First offset above the window: the offset after the KIP's SPEO, or the SPSO if nothing is in flight."""
        return self._window.window_end

    @property
    def window_size(self) -> int:
        """The number of offsets in the window, including terminal ones and holes. The record lock limit bounds it."""
        return self._window.window_end - self._window.spso

    @property
    def delivery_complete_count(self) -> int:
        """The number of offsets in the window that are terminal, or will be when their write has settled (KIP-1226)."""
        return self._window.delivery_complete_count

    @property
    def next_fetch_offset(self) -> int:
        """The first offset that could be acquired: the next read of the log begins there."""
        return self._window.next_fetch_offset

    def can_acquire(self, max_record_locks: int) -> bool:
        """True if the window may grow or holds AVAILABLE records."""
        window = self._window
        return window.window_end - window.spso < max_record_locks or window.next_fetch_offset != window.window_end

    def waits_for(self, *, full: bool, at_log_end: bool) -> Wait | None:
        """What the window waits for; None if it is neither `full` nor has all records of the log."""
        if not full and not at_log_end:
            return None
        if self._window.available.next_run() is not None:
            return Wait.LOG_END  # the log has lost what is AVAILABLE
        return window_wait(self._window.states.runs(), full=full)

    def runs(self) -> tuple[Run, ...]:
        """The records in flight, holes left out."""
        runs = self._window.states.runs(self._window.spso)
        return tuple([Run(first, end, in_flight.state, in_flight.delivery_count) for first, end, in_flight in runs])

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `expire` (ms), or None. An early call is harmless; possibly no lock has expired."""
        since_ms = self._writes.unwritten_since_ms
        return self._locks.next_ms(self._window.floor) if since_ms is None else since_ms

    def take_events(self) -> list[Event]:
        """Remove and return the events since the last call; empty unless traced."""
        return [] if self._recorder is None else self._recorder.take()

    # ---- fetching ----------------------------------------------------------------------------------------------------

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
        keys: Sequence[KeyRun] = (),  # noqa: ARG002 used where `needs_keys`
        now_ms: int,
    ) -> tuple[list[AcquiredRecords], list[RecordBatch]]:
        """Acquire records for a member, of the batches that were read from `fetch_offset`.

        Returns the acquired ranges, and the record batches to send: whole ones, from the first acquired offset to the
        last. Limits apply before aborted transactions are filtered out. `keys` are those of the records, if
        `needs_keys`.
        """
        window = self._window
        active = self.status is PartitionLoadState.ACTIVE
        if not active or max_records <= 0 or not batches or batches[-1].last_offset < window.spso:
            return [], []
        acquisition = self._acquisition(
            window, batches, member_id=member_id, batch_size=batch_size, mode=mode, config=config, now_ms=now_ms
        )
        acquisition.run(fetch_offset, max_records)
        self._lock(acquisition.deadline_ms, acquisition.taken)
        if aborted and config.isolation_level is IsolationLevel.READ_COMMITTED:
            acquisition.archive_aborted(aborted_ranges(batches, aborted))
        self._writes.note_unwritten(acquisition.archived, now_ms)
        self._record_window()
        taken = acquisition.taken
        if not taken:
            return [], []
        first, end = taken[0][0], taken[-1][1]
        return (
            [
                AcquiredRecords(first_offset=f, last_offset=e - 1, delivery_count=in_flight[2])
                for f, e, in_flight in taken
            ],
            [batch for batch in batches if batch.base_offset < end and batch.last_offset >= first],
        )

    def _lock(self, deadline_ms: int, runs: Sequence[tuple[int, int, InFlightState]]) -> None:
        for first, end, _ in runs:
            self._locks.add(deadline_ms, first, end)
        if self._locks.crowded:
            held = [
                (in_flight.deadline_ms, f, e)
                for f, e, in_flight in self._window.states.runs()
                if in_flight.member_id is not None and in_flight.deadline_ms is not None
            ]
            self._locks.rebuild(held)

    # ---- acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Errors | PreparedWrite | None:
        """Acknowledge records of a member, all or none. Returns the write, an error, or None if there is nothing
        to write.

        Errors: INVALID_REQUEST for unknown types and for offsets that were never fetched; INVALID_RECORD_STATE for
        records that the member does not hold, or that the request names twice. Offsets below the SPSO are accepted
        without effect.
        """
        acknowledgement = Acknowledgement(
            self._window, member_id, write_id=self._writes.next_id, config=config, now_ms=now_ms
        )
        self._writes.dead_letters |= config.dead_letter_queue
        error = acknowledgement.check(batches)
        self._lock(acknowledgement.deadline_ms, acknowledgement.renewed)
        if error:
            return self._refused(member_id, error)
        return self._writes.prepare(acknowledgement.changes) if acknowledgement.changes else None

    def _refused(self, member_id: str, error: Errors) -> Errors:
        if self._recorder is not None:
            self._recorder.refused(member_id, error)
        return error

    def release_member(self, member_id: str, config: GroupConfig) -> PreparedWrite | None:
        """Release all records of a member whose share session has ended. The attempts count.

        Walks all runs in flight, because sessions end rarely.
        """
        window, event = self._window, RecordEvent.SESSION_RELEASE
        self._writes.dead_letters |= config.dead_letter_queue
        changes: list[InFlightChange] = []
        for first, end, in_flight in window.states.runs():
            if in_flight.member_id == member_id and in_flight.write_id is None:
                for f, e in window.split(first, end):
                    to_state = window.state_after_release(f, in_flight, event, config)
                    changes.append((f, e, in_flight, in_flight.prepared(event, to_state, self._writes.next_id)))
        return self._writes.prepare(changes) if changes else None

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> bool:
        """Apply the persister's answer to a write. Returns True if the SPSO moved. KeyError for a write that is not
        under way.

        After a failure its records are held as before; records whose lock has expired meanwhile are released.
        """
        moved = self._writes.settle(write_id, error, config, now_ms)
        self._record_window()
        return moved

    def unblock(self, config: GroupConfig, now_ms: int) -> None:
        """Request a state write if the window is full, has no AVAILABLE record, and its start could move.

        Only a write that settles moves the start, and a full window has no record left whose acknowledgement would
        cause a write. The owner calls this after each change; the next `expire` returns the write.
        """
        if not self.can_acquire(config.partition_max_record_locks) and self._window.can_advance:
            self._writes.request_write(now_ms)

    # ---- the dead-letter queue ---------------------------------------------------------------------------------------

    def take_letters(self) -> list[DeadLetter]:
        """Remove and return the records to send to the dead-letter queue: durable as ARCHIVING, in order of offset for
        each write. Each one is to be given to `dead_lettered` later."""
        letters = self._writes.letters
        if letters:
            self._writes.letters = []
        return letters

    def dead_lettered(self, ranges: Sequence[tuple[int, int]], now_ms: int) -> PreparedWrite | None:
        """The way to the dead-letter queue has ended for these records: archive them. Returns the write.

        As after an expiry, this takes effect at once, even if the write fails later: the next load sends them again.
        """
        event = RecordEvent.DEAD_LETTERED
        for first, end in ranges:
            for f, e, in_flight in self._window.states.overlap(first, end):
                if in_flight.state is RecordState.ARCHIVING:
                    self._window.archive(f, e, in_flight, event)
        self._writes.note_unwritten(ranges, now_ms)
        return self._writes.prepare_unwritten()

    # ---- time, and the log's start -----------------------------------------------------------------------------------

    def expire(self, now_ms: int, config: GroupConfig) -> PreparedWrite | None:
        """Release records whose lock has expired. This takes effect at once, even if the write fails later.

        Records with a write under way are left to that write. The returned write contains the earlier changes that have
        no write yet.
        """
        window = self._window
        self._writes.dead_letters |= config.dead_letter_queue
        for due_first, due_end in self._locks.pop_due(now_ms):
            for first, end, in_flight in window.states.overlap(due_first, due_end):
                if in_flight.expired(now_ms) and in_flight.write_id is None:
                    window.release(first, end, in_flight, RecordEvent.LOCK_TIMEOUT, config)
                    self._writes.note_unwritten([(first, end)], now_ms)
        return self._writes.prepare_unwritten()

    def note_missing(self, first: int, end: int, now_ms: int) -> bool:
        """A read from `first` found no record up to the log's end at `end`. True if that changes the window.

        Compaction removed those records; holes need not be fetched again.
        """
        window = self._window
        if not first < end or first >= window.window_end:
            return False
        first_gap = window.first_gap
        archived = window.archive_missing(first, end)
        self._writes.note_unwritten(archived, now_ms)
        return bool(archived) or window.first_gap != first_gap

    def advance_log_start(self, log_start_offset: int) -> None:
        """The log now begins at `log_start_offset`. AVAILABLE records below are archived, acquired ones stay acquired.

        Nothing is written now; the next write contains the new SPSO.
        """
        if log_start_offset > self._window.spso:
            self._window.raise_log_start(log_start_offset)
            self._record_window()

    def _record_window(self) -> None:
        if self._recorder is not None:
            self._recorder.window(self._window.spso, self._window.window_end)
