"""Short ways to write batches down and to look into a log."""

from collections.abc import Iterable, Sequence
from typing import Any

from shareq.log.batches import stamp_crc
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, encode_batch
from shareq.log.results import ReadResult
from shareq.model.records import RecordBatch
from shareq.model.states import IsolationLevel

NOW = 1_700_000_000_000
UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED
COMMITTED = IsolationLevel.READ_COMMITTED
EVERYTHING = 1 << 30


def batch(*values: bytes | None, key: bytes | None = b"k", timestamp: int = NOW, **options: Any) -> bytes:
    """A batch of these values, one record each."""
    return encode_batch([(key, value, (), timestamp) for value in values], **options)


def from_producer(
    count: int, sequence: int, *, epoch: int = 0, producer: int = 7, transactional: bool = False
) -> bytes:
    return batch(
        *[b"v%d" % index for index in range(count)],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def patched(data: bytes, at: int, replacement: bytes) -> bytes:
    """The batch with some bytes overwritten, and the CRC right again."""
    changed = bytearray(data)
    changed[at : at + len(replacement)] = replacement
    return stamp_crc(changed)


def broken(data: bytes, at: int) -> bytes:
    """The batch with one byte turned over, and the CRC as it was."""
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)


def batches(log: MemoryLog, isolation: IsolationLevel = UNCOMMITTED) -> tuple[RecordBatch, ...]:
    return log.read(log.log_start_offset, max_bytes=EVERYTHING, isolation=isolation).batches


def contents(log: MemoryLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """(offset, key, value) of every record that a reader without isolation gets, markers left out."""
    return [
        (record.offset, record.key, record.value)
        for found in batches(log)
        if not found.is_control
        for record in decode(found, check_crc=True)
    ]


def offsets(found: Sequence[RecordBatch]) -> list[tuple[int, int]]:
    return [(one.base_offset, one.last_offset) for one in found]


def visible(read: ReadResult, offset: int) -> Iterable[tuple[int, bytes | None, bytes | None, int]]:
    """The records from `offset` on that a consumer hands out: it drops what the list of aborted transactions names."""
    waiting = sorted(read.aborted, key=lambda transaction: transaction.first_offset)
    aborting: set[int] = set()
    for batch in read.batches:
        while waiting and waiting[0].first_offset <= batch.last_offset:
            aborting.add(waiting.pop(0).producer_id)
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            yield from data_of(batch, offset)


def data_of(batch: RecordBatch, offset: int) -> Iterable[tuple[int, bytes | None, bytes | None, int]]:
    for record in decode(batch, check_crc=True):
        if record.offset >= offset:
            yield record.offset, record.key, record.value, record.timestamp
