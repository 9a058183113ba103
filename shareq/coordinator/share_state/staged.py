"""Staged updates: the writes of open transactions in one partition of the state topic (an experiment). Rules:
`leader/experiments/BEHAVIOUR.md`, "Transactional acknowledgements"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shareq.coordinator.share_state.records import StateUpdate
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_state import Producer, StagedBatch, StateBatch
from shareq.model.state_batches import combine


@dataclass(slots=True)
class _Open:
    """What an open transaction has staged in one share-partition. `first_record`: the offset of its first record in the
    log; `updates`: the number of its records."""

    state_epoch: int
    first_record: int
    batches: tuple[StateBatch, ...] = ()
    updates: int = 0


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """What a transaction had staged in one share-partition when it ended; `first_record`, `updates` as in `_Open`."""

    key: SharePartitionKey
    producer: Producer
    committed: bool
    state_epoch: int
    first_record: int
    batches: tuple[StateBatch, ...]
    updates: int


class StagedUpdates:
    """The staged updates by share-partition and producer. Only the replay of records and markers changes them."""

    def __init__(self) -> None:
        self._open: dict[SharePartitionKey, dict[Producer, _Open]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def batches(self, key: SharePartitionKey) -> tuple[StagedBatch, ...]:
        """What is staged in the share-partition, with the producers."""
        found = self._open.get(key, {})
        return tuple(StagedBatch(*producer, *batch) for producer, staged in found.items() for batch in staged.batches)

    def first_records(self) -> Iterator[int]:
        """The offset of the first record of each open transaction in each share-partition."""
        return (staged.first_record for found in self._open.values() for staged in found.values())

    def add(self, offset: int, key: SharePartitionKey, producer: Producer, record: StateUpdate) -> None:
        """A staged update was appended at `offset`. The state may not be known yet, if its snapshot was pruned; the
        next one decides whether the state epoch is still the same."""
        assert record.stage is not None
        found = self._open.setdefault(key, {})
        staged = found.get(producer)
        if staged is None or staged.state_epoch != record.stage.state_epoch:
            staged = found[producer] = _Open(record.stage.state_epoch, offset)
        staged.batches = combine(staged.batches, record.state_batches, -1)
        staged.updates += 1

    def end(self, producer_id: int, committed: bool) -> list[EndedTransaction]:
        """Remove what the producer has staged: its transaction has ended."""
        ended = []
        for key, found in list(self._open.items()):
            for producer in [producer for producer in found if producer.id == producer_id]:
                one = found.pop(producer)
                ended.append(
                    EndedTransaction(
                        key, producer, committed, one.state_epoch, one.first_record, one.batches, one.updates
                    )
                )
            if not found:
                del self._open[key]
        return ended

    def drop(self, key: SharePartitionKey, state_epoch: int | None = None) -> None:
        """Drop what is staged in a share-partition that was deleted; or what has another state epoch, because the
        share-partition was initialized since."""
        found = self._open.get(key)
        if found is None:
            return
        for producer in [p for p, staged in found.items() if staged.state_epoch != state_epoch]:
            del found[producer]
        if not found:
            del self._open[key]
