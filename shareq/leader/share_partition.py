"""One group's view of one partition on its leader: which records are in flight, who holds them, what is durable.

Pure state: it does no I/O and knows no clock. It is asked, and answers with what is to be persisted; the answer of the
persister comes back through `settle`. Records whose write is under way stay ACQUIRED and are tagged with it, so that
nothing is ever changed and rolled back. What happens without anybody asking for it - a lock that runs out, records that
the log has lost or a transaction has aborted - holds at once, and is written by the next `expire`.

Source: KIP-932, "Share-partition leader"; Kafka's SharePartition for everything that the KIP leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence

from shareq.leader.aborted import aborted_ranges
from shareq.leader.acknowledge import Acknowledgement, PreparedWrite
from shareq.leader.acknowledge import state_batches as batches_of
from shareq.leader.acquire import Acquisition, Taken
from shareq.leader.cell import Cell, Change, settled
from shareq.leader.journal import ABANDONED, Journal
from shareq.leader.locks import Locks
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.events import Event, Run
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_fetch import AcknowledgementBatch, AcquiredRecords
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import AbortedTransaction, RecordBatch
from shareq.model.states import AcquireMode, IsolationLevel, PartitionLoadState, RecordEvent, RecordState, next_state

__all__ = ["PreparedWrite", "SharePartition"]


class SharePartition:
    """The state of one share-partition.

    `status` is the owner's to set; only ACTIVE acquires. `runs()`, `spso` and `speo` are the window, half-open. The
    owner calls `expire` when `next_deadline_ms` has come, and each prepared write has exactly one `settle`.
    """

    __slots__ = (
        "_journal",
        "_locks",
        "_next_write_id",
        "_pending",
        "_unwritten",
        "_unwritten_since_ms",
        "_window",
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
        self._journal = Journal(key, topic) if traced else None
        self._window = Window(self._journal)
        self._locks = Locks()
        self._next_write_id = 0
        self._pending: dict[int, list[Change] | None] = {}  # None: the changes hold whatever becomes of the write
        self._unwritten: list[tuple[int, int]] = []  # changed without a write, for the next `expire`
        self._unwritten_since_ms = 0

    def load(
        self, state_epoch: int, start_offset: int, state_batches: Sequence[StateBatch], *, config: GroupConfig
    ) -> bool:
        """Take in the durable state, with the start offset resolved; False and FAILED if it makes no sense.

        Nobody holds anything; `config` is only told to the journal.
        """
        window = self._window
        if not window.load(start_offset, state_batches):
            self.status = PartitionLoadState.FAILED
            return False
        self.status = PartitionLoadState.ACTIVE
        self.state_epoch = state_epoch
        if self._journal is not None:
            bounds = (window.spso, window.speo)
            self._journal.loaded(bounds, self.runs(), state_epoch, self.leader_epoch, config)
        return True

    # ---- questions ---------------------------------------------------------------------------------------------------

    @property
    def spso(self) -> int:
        """Share-partition start offset: everything below is done with."""
        return self._window.spso

    @property
    def speo(self) -> int:
        """First offset above the window: the KIP's SPEO plus one, or the SPSO if nothing is in flight."""
        return self._window.speo

    @property
    def in_flight(self) -> int:
        """How many offsets the window spans, terminal ones and holes included: what the record locks limit."""
        return self._window.speo - self._window.spso

    @property
    def delivery_complete_count(self) -> int:
        """How many of them are terminal, or will be when their write has come through (KIP-1226)."""
        return self._window.delivery_complete_count

    @property
    def next_fetch_offset(self) -> int:
        """Where to read the log: the first offset that could be acquired."""
        return self._window.next_fetch_offset

    def can_acquire(self, max_record_locks: int) -> bool:
        """Whether something in the window can be taken again, or the window may grow."""
        window = self._window
        return window.speo - window.spso < max_record_locks or window.next_fetch_offset != window.speo

    def runs(self) -> tuple[Run, ...]:
        """The records in flight, holes left out."""
        window = self._window
        return tuple([Run(f, e, cell.state, cell.delivery_count) for f, e, cell in window.cells.runs(window.spso)])

    @property
    def next_deadline_ms(self) -> int | None:
        """When `expire` wants to be called; early is harmless, and it may turn out that nothing has expired."""
        if self._unwritten:
            return self._unwritten_since_ms
        return self._locks.next_ms(self._window.floor)

    def take_events(self) -> list[Event]:
        """What has happened since the last time; always empty unless traced."""
        return [] if self._journal is None else self._journal.take()

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
        now_ms: int,
    ) -> tuple[list[AcquiredRecords], list[RecordBatch]]:
        """Lock records for a member, of the batches that the log gave from `fetch_offset`.

        Answers what was acquired, and the record batches to send: whole ones, from the first acquired offset to the
        last. Limits apply before aborted transactions are filtered out.
        """
        window = self._window
        active = self.status is PartitionLoadState.ACTIVE
        if not active or max_records <= 0 or not batches or batches[-1].last_offset < window.spso:
            return [], []
        acquisition = Acquisition(
            window, batches, member_id=member_id, batch_size=batch_size, mode=mode, config=config, now_ms=now_ms
        )
        self._unwritten_by(acquisition.run(fetch_offset, max_records), now_ms)
        taken = acquisition.taken
        self._lock(acquisition.deadline_ms, taken)
        if aborted and config.isolation_level is IsolationLevel.READ_COMMITTED:
            taken = self._without_aborted(taken, aborted_ranges(batches, aborted), now_ms)
        self._tell_window()
        if not taken:
            return [], []
        first, end = taken[0].first, taken[-1].end
        return (
            [
                AcquiredRecords(first_offset=f, last_offset=e - 1, delivery_count=cell.delivery_count)
                for f, e, cell in taken
            ],
            [batch for batch in batches if batch.base_offset < end and batch.last_offset >= first],
        )

    def _without_aborted(self, taken: list[Taken], ranges: list[tuple[int, int]], now_ms: int) -> list[Taken]:
        """Archive what aborted transactions wrote of the records just acquired; answers the rest."""
        kept, archived = [], []
        for first, end, cell in taken:
            for aborted_first, aborted_end in ranges:
                f, e = max(first, aborted_first), min(end, aborted_end)
                if f < e:
                    gone = settled(RecordState.ARCHIVED, cell.delivery_count)
                    self._window.put(f, e, cell, gone, cause=RecordEvent.ABORTED)
                    archived.append((f, e))
                    if first < f:
                        kept.append(Taken(first, f, cell))
                    first = e
            if first < end:
                kept.append(Taken(first, end, cell))
        self._unwritten_by(archived, now_ms)
        return kept

    # ---- acknowledging -----------------------------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Errors | PreparedWrite | None:
        """What a member says of records: all of it, or none and an error; None where nothing has to be written.

        Errors: INVALID_REQUEST for unknown types and offsets never fetched, INVALID_RECORD_STATE for records that the
        member does not hold, or that have been spoken of already. Below the SPSO anything goes, without effect.
        """
        acknowledgement = Acknowledgement(
            self._window, member_id, write_id=self._next_write_id, config=config, now_ms=now_ms
        )
        error = acknowledgement.take_in(batches)
        if acknowledgement.renewed:
            self._lock(acknowledgement.deadline_ms, acknowledgement.renewed)
        if error:
            if self._journal is not None:
                self._journal.refused(member_id, error)
            return error
        return self._prepare(acknowledgement.changes) if acknowledgement.changes else None

    def release_member(self, member_id: str, config: GroupConfig, now_ms: int) -> PreparedWrite | None:
        """The member's share session has ended: whatever it holds comes back. The attempts count."""
        spso, changes = self._window.spso, []
        for first, end, cell in self._window.cells.runs():
            if cell.member_id == member_id and cell.write_id is None:
                for f, e in _split(first, end, spso):
                    event = RecordEvent.SESSION_RELEASE
                    target = _given_back(cell, event, config) if f >= spso else RecordState.ARCHIVED
                    changes.append((f, e, cell, cell.prepared(event, target, self._next_write_id)))
        return self._prepare(changes) if changes else None

    def _prepare(self, changes: list[Change]) -> PreparedWrite:
        """Tag the records with the write that is to change them."""
        self._window.tag(changes)
        spso = self._window.spso
        return self._write(changes, changes if changes[0][0] >= spso else [c for c in changes if c[0] >= spso])

    def _write(self, changes: list[Change] | None, written: Sequence[Change]) -> PreparedWrite:
        """A state write that says where records are going, and what has to become of `changes` when it has settled."""
        window = self._window
        spso, write_id = window.spso, self._next_write_id
        self._next_write_id += 1
        self._pending[write_id] = changes
        batches = batches_of(written)
        if self._journal is not None:
            self._journal.prepared(write_id, spso, window.delivery_complete_count, batches)
        return PreparedWrite(write_id, spso, window.delivery_complete_count, batches)

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> bool:
        """The persister has answered; says whether the SPSO moved. KeyError for a write that is not under way.

        After a failure its records are held as before, those whose lock has run out meanwhile come back.
        """
        changes = self._pending.pop(write_id)
        if self._journal is not None:
            self._journal.settled(write_id, error)
        if changes is not None and error:
            self._abandon(changes, config, now_ms)
            return False
        if changes is not None:
            self._window.commit(changes)
        moved = self._window.advance()
        self._tell_window()
        return moved

    def _abandon(self, changes: list[Change], config: GroupConfig, now_ms: int) -> None:
        """Untag what still has the write's tag: the log's start or a compaction may have archived some of it."""
        window, lapsed = self._window, []
        for change_first, change_end, _, tagged in changes:
            for first, end, cell in window.cells.overlap(change_first, change_end):
                if cell.write_id == tagged.write_id:
                    held = cell.abandoned()
                    window.put(first, end, cell, held, cause=ABANDONED, why=cell.event)
                    if held.deadline_ms is not None and held.deadline_ms <= now_ms:
                        lapsed += self._give_back(first, end, held, config)
        self._unwritten_by(lapsed, now_ms)

    # ---- time --------------------------------------------------------------------------------------------------------

    def expire(self, now_ms: int, config: GroupConfig) -> PreparedWrite | None:
        """Give back what was locked for too long. Holds at once, whatever becomes of the write.

        Records with a write under way are left to it. The write takes along what changed without one before.
        """
        changed, self._unwritten = self._unwritten, []
        for due_first, due_end in self._locks.pop_due(now_ms):
            for first, end, cell in self._window.cells.overlap(due_first, due_end):
                if cell.deadline_ms is not None and cell.deadline_ms <= now_ms and cell.write_id is None:
                    changed += self._give_back(first, end, cell, config)
        if not changed:
            return None
        return self._write(None, self._settled_runs(changed))

    def _give_back(self, first: int, end: int, cell: Cell, config: GroupConfig) -> list[tuple[int, int]]:
        """The lock of these records has run out. What lies below the SPSO by now is archived."""
        parts = _split(first, end, self._window.spso)
        for f, e in parts:
            state = _given_back(cell, RecordEvent.LOCK_TIMEOUT, config) if f >= self._window.spso else _ARCHIVED
            self._window.put(f, e, cell, settled(state, cell.delivery_count), cause=RecordEvent.LOCK_TIMEOUT)
        return parts

    def _settled_runs(self, ranges: list[tuple[int, int]]) -> list[Change]:
        """What nobody holds in these ranges, in order and each offset once."""
        runs: list[Change] = []
        position = self._window.spso
        for first, end in sorted(ranges):
            if position < end:
                overlap = self._window.cells.overlap(max(first, position), end)
                runs += [(f, e, cell, cell) for f, e, cell in overlap if cell.state is not RecordState.ACQUIRED]
                position = end
        return runs

    def _unwritten_by(self, ranges: list[tuple[int, int]], now_ms: int) -> None:
        if ranges:
            self._unwritten += ranges
            self._unwritten_since_ms = now_ms

    def _lock(self, deadline_ms: int, ranges: Sequence[tuple[int, int] | Taken]) -> None:
        for entry in ranges:
            self._locks.add(deadline_ms, entry[0], entry[1])
        if self._locks.crowded:
            runs = self._window.cells.runs()
            self._locks.rebuild((cell.deadline_ms, f, e) for f, e, cell in runs if cell.deadline_ms is not None)

    # ---- the log's start ---------------------------------------------------------------------------------------------

    def advance_log_start(self, log_start_offset: int, now_ms: int) -> None:
        """The log now begins at this offset. What was waiting below is archived for good, what is held stays held."""
        window = self._window
        if log_start_offset <= window.spso:
            return
        for first, end, cell in window.cells.overlap(window.spso, log_start_offset):
            if cell.to_state is RecordState.AVAILABLE:
                window.put(first, end, cell, settled(_ARCHIVED, cell.delivery_count), cause=RecordEvent.LOG_START)
        window.begin_above(log_start_offset)
        self._tell_window()

    def _tell_window(self) -> None:
        if self._journal is not None:
            self._journal.window(self._window.spso, self._window.speo)


_ARCHIVED = RecordState.ARCHIVED


def _given_back(cell: Cell, event: RecordEvent, config: GroupConfig) -> RecordState:
    """Where a held record goes when it comes back: to be delivered again, if it may."""
    limit = config.delivery_count_limit
    state = next_state(cell.state, event, delivery_count=cell.delivery_count, delivery_count_limit=limit)
    assert state is not None
    return state


def _split(first: int, end: int, at: int) -> list[tuple[int, int]]:
    """[first, end), in two where `at` lies inside."""
    return [(first, at), (at, end)] if first < at < end else [(first, end)]
