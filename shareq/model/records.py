"""Record batches as the broker handles them: a parsed header and the encoded bytes; records are not decoded."""

from __future__ import annotations

from typing import NamedTuple

NO_PRODUCER_ID = -1


class RecordBatch(NamedTuple):
    """One record batch (magic 2) as it is stored in a log.

    `data` is the whole batch, header included, with `base_offset` and `leader_epoch` already stamped. Offsets are
    absolute; `last_offset` is inclusive, as in the batch header. Timestamps in ms since the epoch, -1 if none.
    Source: Kafka's message format, "Record Batch".
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    attributes: int
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & 0x20)


class AbortedTransaction(NamedTuple):
    """An aborted transaction in the log's transaction index; offsets absolute, `last_offset` is the marker's."""

    producer_id: int
    first_offset: int
    last_offset: int


KeyRun = tuple[int, int, bytes]
"""(first, end, key): adjacent records [first, end) with one key. Records without a key are in no run."""


class CoordinatorRecord(NamedTuple):
    """A key and a value for a coordinator's own log; a value of None is a tombstone."""

    key: bytes
    value: bytes | None
