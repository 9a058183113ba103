"""A share-partition whose records may be acknowledged in a producer's transaction. Rules: BEHAVIOUR.md, "Transactional
acknowledgements".

A staged record stays ACQUIRED and carries the id of the write that has staged it, like one whose write takes long: so
lock time-outs, the ends of share sessions and acknowledgements pass it by. `to_state` stays ACQUIRED, because nothing
is done, or counted, before the transaction ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from shareq.leader.acknowledge import Acknowledgement
from shareq.leader.in_flight_state import InFlightChange, InFlightState, without_holder
from shareq.leader.share_partition import SharePartition
from shareq.leader.state_writes import PreparedWrite, state_batches
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.messages.share_state import Producer, StagedBatch, StateBatch
from shareq.model.state_batches import combine
from shareq.model.states import (
    STAGED,
    TXN_COMMIT,
    AcknowledgeType,
    LoadEvent,
    RecordEvent,
    RecordState,
)

UNCHANGED = -1
"""The start offset and the delivery complete count of a write that stages: it changes neither."""

_TYPES = frozenset({AcknowledgeType.ACCEPT, AcknowledgeType.REJECT})
_STAGED_STATES = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED})


@dataclass(slots=True)
class _Transaction:
    """The staged acknowledgements of one transaction: by the id of their write, with the final state of each record.
    `unsettled`: the writes under way."""

    batches: dict[int, tuple[StateBatch, ...]] = field(default_factory=dict)
    unsettled: set[int] = field(default_factory=set)


class StagingSharePartition(SharePartition):
    """Has the interface of SharePartition, and stages. `start_is_durable`: the start offset is stored, so that a staged
    write, which stores none, may follow."""

    __slots__ = ("_loaded", "_transactions", "_writes_of", "start_is_durable")

    def __init__(self, key: SharePartitionKey, topic: str, *, leader_epoch: int, traced: bool) -> None:
        super().__init__(key, topic, leader_epoch=leader_epoch, traced=traced)
        self.start_is_durable = False
        self._loaded: frozenset[Producer] = frozenset()
        self._transactions: dict[Producer, _Transaction] = {}
        self._writes_of: dict[int, tuple[Producer, list[InFlightChange]]] = {}

    # ---- loading -----------------------------------------------------------------------------------------------------

    def load(
        self,
        state_epoch: int,
        start_offset: int,
        state_batches: Sequence[StateBatch],
        *,
        config: GroupConfig,
        staged: Sequence[StagedBatch] = (),
    ) -> bool:
        """Staged records are loaded as ACQUIRED, without a holder."""
        if not all(map(_is_valid, staged)):
            self.step(LoadEvent.INVALID)
            return False
        if not staged:
            return super().load(state_epoch, start_offset, state_batches, config=config)
        kept = [StateBatch(b.first_offset, b.last_offset, RecordState.AVAILABLE, b.delivery_count) for b in staged]
        if not super().load(state_epoch, start_offset, combine(state_batches, kept, start_offset), config=config):
            return False
        self.start_is_durable = True
        self._loaded = frozenset(batch.producer for batch in staged)
        for batch in staged:
            self._load_staged(batch)
        return True

    def _load_staged(self, batch: StagedBatch) -> None:
        """Stage what is still as it was when the batch was staged: a later delivery has replaced the others."""
        first, end, count = batch.first_offset, batch.last_offset + 1, batch.delivery_count
        event = RecordEvent.ACCEPT if batch.delivery_state == RecordState.ACKNOWLEDGED else RecordEvent.REJECT
        write_id = self._next_write_id()
        self._transaction(batch.producer).batches[write_id] = (_stored(batch),)
        for f, e, in_flight in self._window.states.overlap(first, end):
            if (in_flight.state, in_flight.delivery_count) == (RecordState.AVAILABLE, count):
                staged = InFlightState(RecordState.ACQUIRED, RecordState.ACQUIRED, count, None, None, write_id, event)
                self._window.put(f, e, in_flight, staged, cause=STAGED, why=event)

    # ---- staging -----------------------------------------------------------------------------------------------------

    def write_start(self, now_ms: int) -> PreparedWrite | None:
        """The write that has to settle before the first `stage`, because a staged write stores no start offset; None if
        one has settled since the load."""
        if self.start_is_durable:
            return None
        self._writes.unwritten_since_ms = now_ms
        return self._writes.prepare_unwritten()

    def stage(
        self,
        producer: Producer,
        member_id: str,
        batches: Sequence[AcknowledgementBatch],
        config: GroupConfig,
        now_ms: int,
    ) -> Errors | PreparedWrite | None:
        """Stage acknowledgements in the producer's transaction, all or none. Returns the write, which belongs into that
        transaction, an error, or None if there is nothing to write. ValueError before `write_start` has settled.

        Errors: those of `acknowledge`; INVALID_REQUEST for other types than ACCEPT and REJECT; INVALID_RECORD_STATE for
        offsets below the SPSO; INVALID_PRODUCER_EPOCH if a later epoch of the producer has staged records here.
        """
        if not self.start_is_durable:
            raise ValueError("the start offset is not durable: write_start comes first")
        changes = self._checked(producer, member_id, batches, config, now_ms)
        if isinstance(changes, Errors):
            return self._refused(member_id, changes)
        if not changes:
            return None
        write = PreparedWrite(self._next_write_id(), UNCHANGED, UNCHANGED, state_batches(changes))
        for first, end, old, new in changes:
            staged = new._replace(to_state=RecordState.ACQUIRED)
            self._window.put(first, end, old, staged, cause=STAGED, why=new.event)
        transaction = self._transaction(producer)
        transaction.batches[write.write_id] = write.state_batches
        transaction.unsettled.add(write.write_id)
        self._writes_of[write.write_id] = producer, changes
        if self._recorder is not None:
            self._recorder.prepared(*write)
        return write

    def stage_error(
        self,
        producer: Producer,
        member_id: str,
        batches: Sequence[AcknowledgementBatch],
        config: GroupConfig,
        now_ms: int,
    ) -> Errors:
        """The error that `stage` would return now; nothing is staged."""
        changes = self._checked(producer, member_id, batches, config, now_ms)
        return self._refused(member_id, changes) if isinstance(changes, Errors) else Errors.NONE

    def _checked(
        self,
        producer: Producer,
        member_id: str,
        batches: Sequence[AcknowledgementBatch],
        config: GroupConfig,
        now_ms: int,
    ) -> Errors | list[InFlightChange]:
        """The changes of acknowledgements to stage, or their error.

        An acknowledgement outside of transactions has no effect below the SPSO, and no error. In a transaction it has:
        another member may have finished the record there.
        """
        if not all(_TYPES.issuperset(batch.acknowledge_types) for batch in batches):
            return Errors.INVALID_REQUEST
        if any(id_ == producer.id and epoch > producer.epoch for id_, epoch in self._transactions):
            return Errors.INVALID_PRODUCER_EPOCH
        if any(batch.first_offset < self._window.spso for batch in batches):
            return Errors.INVALID_RECORD_STATE
        acknowledgement = Acknowledgement(
            self._window, member_id, write_id=self._writes.next_id, config=config, now_ms=now_ms
        )
        return acknowledgement.check(batches) or acknowledgement.changes

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> bool:
        """A write that has staged its records changes no record. One that has failed stages none: they are held as
        before, and released if their lock has expired meanwhile."""
        found = self._writes_of.pop(write_id, None)
        if found is None:
            moved = super().settle(write_id, error, config, now_ms)
            self.start_is_durable = self.start_is_durable or not error
            return moved
        if self._recorder is not None:
            self._recorder.settled(write_id, error)
        producer, changes = found
        transaction = self._transactions.get(producer)
        if transaction is not None and write_id in transaction.unsettled:  # else it has ended before the answer
            transaction.unsettled.discard(write_id)
            if error:
                del transaction.batches[write_id]
                self._forget_empty(producer)
                self._unstage(write_id, changes, config, now_ms)
        return False

    def _unstage(self, write_id: int, changes: Sequence[InFlightChange], config: GroupConfig, now_ms: int) -> None:
        window = self._window
        for change_first, change_end, _, _ in changes:
            for first, end, in_flight in window.states.overlap(change_first, change_end):
                if in_flight.write_id == write_id:
                    held = window.abandon(first, end, in_flight)
                    if held.expired(now_ms):
                        window.release(first, end, held, RecordEvent.LOCK_TIMEOUT, config)
                        self._writes.note_unwritten([(first, end)], now_ms)

    # ---- the end of a transaction ------------------------------------------------------------------------------------

    def end_transaction(self, producer: Producer, committed: bool, config: GroupConfig, now_ms: int) -> bool:
        """The transaction of this producer and epoch has ended, durably. Returns True if the SPSO moved.

        Committed records reach their final state, which the share coordinator has stored. Records of an aborted
        transaction are available again; the next `expire` writes them. A transaction without staged records, or one
        that has ended before, changes nothing.
        """
        transaction = self._transactions.pop(producer, None)
        if transaction is None:
            return False
        self._writes.dead_letters |= config.dead_letter_queue
        for write_id, batches in transaction.batches.items():
            for batch in batches:
                for first, end, in_flight in self._window.states.overlap(batch.first_offset, batch.last_offset + 1):
                    if in_flight.write_id != write_id:
                        continue
                    if committed:
                        self._commit(first, end, in_flight, RecordState(batch.delivery_state))
                    else:
                        self._window.release(first, end, in_flight, RecordEvent.TXN_ABORT, config)
                        self._writes.note_unwritten([(first, end)], now_ms)
        moved = self._window.advance()
        self._record_window()
        return moved

    def store_start(self, now_ms: int) -> None:
        """The SPSO has moved without a write: the next `expire` returns one, with the SPSO and the delivery complete
        count. Nobody waits for it: the records are durable already."""
        if self._writes.unwritten_since_ms is None:
            self._writes.unwritten_since_ms = now_ms

    def _commit(self, first: int, end: int, in_flight: InFlightState, state: RecordState) -> None:
        final = without_holder(state, in_flight.delivery_count, in_flight.event)
        self._window.put(first, end, in_flight, final, cause=TXN_COMMIT, why=in_flight.event)
        self._writes.note_letters(first, end)

    def reread(
        self,
        stored: Sequence[StateBatch],
        staged: Iterable[StagedBatch],
        config: GroupConfig,
        now_ms: int,
        among: Collection[Producer],
    ) -> bool:
        """End those of the transactions that have ended according to the durable state, which was read again: their end
        may have been lost with a coordinator. `among`: the transactions that `settled` had before the read began; it
        says nothing about others. Returns True if the SPSO moved.

        A transaction that is not staged there any more was committed if its records have their final state, else
        aborted. One with a write under way is left alone: it is not known whether the read contains that.
        """
        open_ = {batch.producer for batch in staged}
        moved = False
        for producer, transaction in list(self._transactions.items()):
            if producer in among and producer not in open_ and not transaction.unsettled:
                batches = [batch for found in transaction.batches.values() for batch in found]
                committed = any(_contains(stored, batch) for batch in batches)
                moved = self.end_transaction(producer, committed, config, now_ms) or moved
        return moved

    # ---- help --------------------------------------------------------------------------------------------------------

    @property
    def staged_by(self) -> tuple[Producer, ...]:
        """The producers with an open transaction in which records of this share-partition are staged."""
        return tuple(self._transactions)

    @property
    def staged_at_load(self) -> bool:
        """True while a transaction is open that had staged records before the load."""
        return not self._loaded.isdisjoint(self._transactions)

    @property
    def settled(self) -> frozenset[Producer]:
        """Those of them that have no write under way."""
        return frozenset(producer for producer, found in self._transactions.items() if not found.unsettled)

    def _transaction(self, producer: Producer) -> _Transaction:
        return self._transactions.setdefault(producer, _Transaction())

    def _forget_empty(self, producer: Producer) -> None:
        if not self._transactions[producer].batches:
            del self._transactions[producer]

    def _next_write_id(self) -> int:
        write_id = self._writes.next_id
        self._writes.next_id += 1
        return write_id


def _is_valid(batch: StagedBatch) -> bool:
    return (
        0 <= batch.first_offset <= batch.last_offset
        and batch.delivery_state in _STAGED_STATES
        and batch.delivery_count > 0
    )


def _stored(batch: StagedBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)


def _contains(stored: Iterable[StateBatch], batch: StateBatch) -> bool:
    """True if a record of the batch is stored with the batch's final state."""
    return any(
        found.first_offset <= batch.last_offset and batch.first_offset <= found.last_offset and found[2:] == batch[2:]
        for found in stored
    )
