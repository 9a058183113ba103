"""Decoding of a coordinator's log: records, the transactions of records, and markers."""

from __future__ import annotations

from shareq.log.records import ControlType, decode_control, decode_key_values
from shareq.log.results import ReadResult
from shareq.model.actor import EndMarker, RecordsRead
from shareq.model.records import RecordBatch

CHUNK_BYTES = 5 << 20
"""Size in bytes of a coordinator's reads while it loads (Kafka: `load.buffer.size`)."""


def records_read(read_id: int, read: ReadResult, offset: int) -> RecordsRead:
    """The records, transactions and markers from `offset` on. The first batch may begin below `offset`."""
    records: list[tuple[int, bytes, bytes | None]] = []
    producer_ids: dict[int, int] = {}
    markers: list[EndMarker] = []
    for batch in read.batches:
        if batch.is_control:
            markers += _marker(batch)
            continue
        found = [record for record in decode_key_values(batch) if record[0] >= offset]
        records += found
        if batch.is_transactional:
            producer_ids.update((record[0], batch.producer_id) for record in found)
    next_offset = read.batches[-1].last_offset + 1 if read.batches else read.high_watermark
    done = next_offset >= read.high_watermark
    return RecordsRead(read_id, read.error, records, next_offset, done, producer_ids, markers)


def _marker(batch: RecordBatch) -> list[EndMarker]:
    """The transaction marker in a control batch; empty if it is of another type, or emptied by compaction."""
    kind = decode_control(batch) if batch.record_count else None
    return [] if kind is None else [EndMarker(batch.base_offset, batch.producer_id, kind is ControlType.COMMIT)]
