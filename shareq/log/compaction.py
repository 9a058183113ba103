"""Compaction: the latest record of each key stays, at its own offset, in its own batch.

Removed records leave gaps in the offsets, within batches and between them. The records of aborted transactions are
removed; a marker is removed when no record of its transaction is left. Tombstones and such markers first stay for
`delete.retention.ms`, so that slow readers see them. The last batch of a producer stays, empty if necessary, because
Kafka restores the producer's sequence from it. Source: Kafka's LogCleaner; KIP-534 for the delete horizon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shareq.log.config import LogConfig
from shareq.log.records import Record, decode_control, parse_batch, rebuild, stream
from shareq.log.segments import SegmentView
from shareq.model.records import AbortedTransaction, RecordBatch


class History(NamedTuple):
    """Compaction's input besides the batches: aborted transactions, and the last offsets of producers' last batches."""

    aborted: Sequence[AbortedTransaction]
    producers_last_offsets: set[int]


class Compactor:
    """The compaction state of a log: the offset up to which it is clean, and the delete horizon of each batch.

    Kafka writes the delete horizon into the batch; here it is kept beside the batch, which is therefore not rewritten.
    Horizons are ms since the epoch, by base offset.
    """

    def __init__(self) -> None:
        self._clean_until = 0
        self._horizons: dict[int, int] = {}

    def cleanable_until(
        self, segments: Sequence[SegmentView], last_stable_offset: int, config: LogConfig, now_ms: int
    ) -> int | None:
        """The offset up to which the log is to be compacted now; None if compaction is not due.

        Excluded: the active segment, offsets at or above the last stable offset, segments younger than
        `min.compaction.lag.ms`. Due: more than `min.cleanable.dirty.ratio` of the rest is uncompacted, a part of it has
        been so for longer than `max.compaction.lag.ms`, or tombstones have passed their delete horizon.
        """
        until = clean = dirty = 0
        overdue = any(horizon <= now_ms for horizon in self._horizons.values())
        for segment in segments[:-1]:
            too_young = now_ms - segment.max_timestamp < config.min_compaction_lag_ms > 0
            if segment.end_offset > last_stable_offset or too_young:
                break
            until = segment.end_offset
            if until <= self._clean_until:
                clean += segment.size_bytes
            else:
                dirty += segment.size_bytes
                overdue = overdue or now_ms - segment.max_timestamp > config.max_compaction_lag_ms
        worth_it = dirty > config.min_cleanable_dirty_ratio * (clean + dirty)
        return until if until and (worth_it or overdue) else None

    def compact(
        self, batches: Sequence[RecordBatch], until: int, history: History, config: LogConfig, now_ms: int
    ) -> list[RecordBatch]:
        """The batches that remain of `batches`, all of which end below `until`.

        Raises CorruptBatch, without any change, if one of them cannot be read.
        """
        aborted = _aborted_bases(batches, history.aborted)
        latest = _latest_offsets(b for b in batches if not b.is_control and b.base_offset not in aborted)
        markers = {b.base_offset for b in batches if b.is_control and _is_marker(b)}
        self._clean_until = max(self._clean_until, until)
        kept = []
        in_transaction: set[int] = set()
        for batch in batches:
            if batch.base_offset in markers:
                stays = self._marker(batch, in_transaction, config, now_ms)
            elif batch.is_control:
                stays = batch
            else:
                live = [] if batch.base_offset in aborted else self._live(batch, latest, config, now_ms)
                stays = _reduced(batch, live, batch.last_offset in history.producers_last_offsets)
                if live and batch.is_transactional:
                    in_transaction.add(batch.producer_id)
            if stays is None:
                self._horizons.pop(batch.base_offset, None)
            else:
                kept.append(stays)
        return kept

    def log_start_moved(self, first_offset: int) -> None:
        """Drop the horizons of batches below `first_offset`."""
        for base_offset in [base for base in self._horizons if base < first_offset]:
            del self._horizons[base_offset]

    def _live(self, batch: RecordBatch, latest: dict[bytes, int], config: LogConfig, now_ms: int) -> list[Record]:
        """The latest records of their keys, without the tombstones that have passed their delete horizon."""
        live = [r for r in stream(batch) if r.key is not None and latest[r.key] == r.offset]
        if all(record.value is not None for record in live):
            self._horizons.pop(batch.base_offset, None)
            return live
        if self._is_due(batch, config, now_ms):
            del self._horizons[batch.base_offset]
            return [record for record in live if record.value is not None]
        return live

    def _marker(
        self, batch: RecordBatch, in_transaction: set[int], config: LogConfig, now_ms: int
    ) -> RecordBatch | None:
        """The marker; None if no record of its transaction is left and its delete horizon has passed."""
        if batch.producer_id in in_transaction:
            in_transaction.remove(batch.producer_id)
            return batch
        return None if self._is_due(batch, config, now_ms) else batch

    def _is_due(self, batch: RecordBatch, config: LogConfig, now_ms: int) -> bool:
        """True if the delete horizon has passed. The first compaction that meets the batch sets the horizon."""
        return self._horizons.setdefault(batch.base_offset, now_ms + config.delete_retention_ms) <= now_ms


def _is_marker(batch: RecordBatch) -> bool:
    """True if the control batch is a transaction marker, possibly emptied by an earlier compaction. Kafka keeps all
    other control batches, such as leader changes."""
    return not batch.record_count or decode_control(batch) is not None


def _aborted_bases(batches: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction]) -> set[int]:
    """Base offsets of the data batches that belong to aborted transactions."""
    by_producer: dict[int, list[AbortedTransaction]] = defaultdict(list)
    for transaction in aborted:
        by_producer[transaction.producer_id].append(transaction)
    return {
        batch.base_offset
        for batch in batches
        if batch.is_transactional and not batch.is_control
        for transaction in by_producer.get(batch.producer_id, ())
        if transaction.first_offset <= batch.base_offset < transaction.last_offset
    }


def _latest_offsets(batches: Iterable[RecordBatch]) -> dict[bytes, int]:
    return {record.key: record.offset for batch in batches for record in stream(batch) if record.key is not None}


def _reduced(batch: RecordBatch, live: Sequence[Record], is_producers_last: bool) -> RecordBatch | None:
    """The batch with only its live records; None if there are none and it is not the last batch of its producer."""
    if not live and not is_producers_last:
        return None
    return batch if len(live) == batch.record_count else parse_batch(rebuild(batch, live))
