"""Compaction: of each key the latest record stays, at its own offset, in its own batch.

What goes leaves true gaps, inside of batches and between them. The records of aborted transactions go; a marker goes
when nothing of its transaction is left. A tombstone, and such a marker, first stays for `delete.retention.ms`, so that
a slow reader learns of it. A batch that is the last of its producer stays, empty if need be, as in Kafka, where the
producer's sequence would be lost otherwise. Source: Kafka's LogCleaner; KIP-534 for the delete horizon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shareq.log.config import LogConfig
from shareq.log.records import Record, decode, decode_control, parse_batch, rebuild
from shareq.log.segments import SegmentView
from shareq.model.records import AbortedTransaction, RecordBatch


class History(NamedTuple):
    """What compaction has to know besides the batches: aborted transactions, and where producers' last batches end."""

    aborted: Sequence[AbortedTransaction]
    producers_last_offsets: set[int]


class Compactor:
    """A log's memory of its compactions: how far it is clean, and until when which batch keeps its tombstones.

    Kafka writes the second, the delete horizon, into the batch; here it stands beside it, so that no batch is rewritten
    for it. Horizons are ms since the epoch, by base offset.
    """

    def __init__(self) -> None:
        self._clean_until = 0
        self._horizons: dict[int, int] = {}

    def cleanable_until(
        self, segments: Sequence[SegmentView], last_stable_offset: int, config: LogConfig, now_ms: int
    ) -> int | None:
        """The end of what is to be compacted now, None where it is not worth it yet.

        Never the active segment, nothing at or above the last stable offset, nothing younger than
        `min.compaction.lag.ms`; and only if more than `min.cleanable.dirty.ratio` of it is uncompacted, or has been for
        longer than `max.compaction.lag.ms`, or tombstones are due to go.
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
        """What stays of these batches, all of which end below `until`.

        Raises CorruptBatch, and nothing is changed, where one of them cannot be read.
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
        """Forget what concerned batches that are gone."""
        for base_offset in [base for base in self._horizons if base < first_offset]:
            del self._horizons[base_offset]

    def _live(self, batch: RecordBatch, latest: dict[bytes, int], config: LogConfig, now_ms: int) -> list[Record]:
        """The records that are their key's latest; of tombstones those whose time has not run out."""
        live = [r for r in decode(batch) if r.key is not None and latest[r.key] == r.offset]
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
        """The marker, unless nothing of its transaction is left and its time has run out."""
        if batch.producer_id in in_transaction:
            in_transaction.remove(batch.producer_id)
            return batch
        return None if self._is_due(batch, config, now_ms) else batch

    def _is_due(self, batch: RecordBatch, config: LogConfig, now_ms: int) -> bool:
        """Whether the delete horizon is past. It is set when a compaction first meets the tombstone or the marker."""
        return self._horizons.setdefault(batch.base_offset, now_ms + config.delete_retention_ms) <= now_ms


def _is_marker(batch: RecordBatch) -> bool:
    """True if the control batch ends a transaction, or did before an earlier compaction emptied it. Kafka keeps all
    others: they say, for example, who leads."""
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
    return {record.key: record.offset for batch in batches for record in decode(batch) if record.key is not None}


def _reduced(batch: RecordBatch, live: Sequence[Record], is_producers_last: bool) -> RecordBatch | None:
    """The batch with its live records only: itself where all are, None where none is and nobody needs it."""
    if not live and not is_producers_last:
        return None
    return batch if len(live) == batch.record_count else parse_batch(rebuild(batch, live))
