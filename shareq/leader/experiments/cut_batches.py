"""Record batches that are cut to the acquired records, for order by key. Rules: BEHAVIOUR.md, "Order by key"."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.log.batches import CorruptBatch, parse_batch
from shareq.log.records import rebuild, stream
from shareq.model.messages.share_fetch import AcquiredRecords
from shareq.model.records import RecordBatch


def acquired_only(batches: Sequence[RecordBatch], acquired: Sequence[AcquiredRecords]) -> list[RecordBatch]:
    """The batches that have acquired records, with these records only: in the form that compaction leaves. Both
    sequences ascend. Markers, and batches that cannot be decoded, stay whole."""
    kept, at = [], 0
    for batch in batches:
        while at < len(acquired) and acquired[at].last_offset < batch.base_offset:
            at += 1
        stop = at
        while stop < len(acquired) and acquired[stop].first_offset <= batch.last_offset:
            stop += 1
        if at < stop:
            kept.append(_cut(batch, acquired[at:stop]))
    return kept


def _cut(batch: RecordBatch, acquired: Sequence[AcquiredRecords]) -> RecordBatch:
    whole = acquired[0].first_offset <= batch.base_offset and acquired[-1].last_offset >= batch.last_offset
    if batch.is_control or (whole and len(acquired) == 1):
        return batch
    offsets = {offset for run in acquired for offset in range(run.first_offset, run.last_offset + 1)}
    try:
        records = [record for record in stream(batch) if record.offset in offsets]
    except CorruptBatch:
        return batch
    return batch if len(records) == batch.record_count else parse_batch(rebuild(batch, records))
