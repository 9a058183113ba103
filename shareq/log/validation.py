"""Validation of a batch before the append: Kafka's checks of Produce that depend on the batch alone.

`admit` runs them in Kafka's order and returns the batch to store, or the first refusal. `producer_states` checks what
depends on the producer's history.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from shareq.log.batches import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    CorruptBatch,
    complete_size,
    crc_matches,
    parse_batch,
)
from shareq.log.compression import CODECS, OversizedBatch, limit_of, uncompressed
from shareq.log.config import LogConfig
from shareq.log.record_columns import WORTH_A_LOOK, largest_timestamp_delta
from shareq.log.records import Record, rebuild, restamp_timestamps, stream
from shareq.model.config_def import LONG_MAX
from shareq.model.errors import Errors
from shareq.model.records import RecordBatch

RECORDS_AT_ONCE = 10_000
"""How many records of a batch exist as objects at a time. A refusal names the invalid records of one such chunk."""

LEAST_RECORD_BYTES = 7
"""The size of a record without key, value and headers. A batch has at most as many records as it could have without
compression, because checking one costs time whatever its size."""

_MAGIC_AT = 16
_TARGET_CODECS = CODECS | {"uncompressed": 0}
_REJECTED = "one or more records have been rejected"
_timestamp = attrgetter("timestamp")


class BatchRefusal(NamedTuple):
    """Why a batch is refused. `record_errors`: (index, text) of each invalid record."""

    error: Errors
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()


def admit(
    data: bytes, config: LogConfig, now_ms: int, validate: bool, *, from_coordinator: bool = False
) -> RecordBatch | BatchRefusal:
    """The batch to store, still at base offset 0, or the first refusal.

    Records are decoded only if `validate` is set or the topic's configuration requires it.
    """
    batch = frame(data)
    if isinstance(batch, BatchRefusal):
        return batch
    refusal = _check_header(batch, config, validate) or (None if from_coordinator else _check_producer(batch))
    if refusal:
        return refusal
    if batch.attributes & LOG_APPEND_TIME:  # only the log sets this bit; the records' own timestamps count
        batch = _stamped(batch, batch.attributes & ~LOG_APPEND_TIME, batch.max_timestamp)
    if validate or _needs_records(batch, config, now_ms):
        batch = _with_records(batch, config, now_ms)
        if isinstance(batch, BatchRefusal):
            return batch
    return _stamped(batch, batch.attributes | LOG_APPEND_TIME, now_ms) if config.log_append_time else batch


def looks_transactional(data: bytes) -> bool:
    """True if `data` begins with a transactional batch."""
    return len(data) >= HEADER_BYTES and data[_MAGIC_AT] == MAGIC and bool(data[ATTRIBUTES_AT + 1] & TRANSACTIONAL)


def frame(data: bytes) -> RecordBatch | BatchRefusal:
    """The one complete batch in `data`; a cut-off second one is dropped silently, as in Kafka."""
    size = complete_size(data)
    if not size:
        return BatchRefusal(Errors.INVALID_RECORD, "there is no complete record batch")
    magic = data[_MAGIC_AT]
    if magic > MAGIC:
        return BatchRefusal(Errors.CORRUPT_MESSAGE, f"magic {magic} is unknown")
    if magic < MAGIC:
        return BatchRefusal(Errors.INVALID_RECORD, f"magic {magic} is not supported, only magic {MAGIC}")
    if len(data) > size and complete_size(data, size):
        return BatchRefusal(Errors.INVALID_RECORD, "there is more than one record batch")
    return parse_batch(data[:size])


def _check_header(batch: RecordBatch, config: LogConfig, validate: bool) -> BatchRefusal | None:
    if batch.base_offset:
        return BatchRefusal(Errors.INVALID_RECORD, f"the base offset is {batch.base_offset} instead of 0")
    if batch.size > config.max_message_bytes:
        return _too_large(batch.size, config)
    if validate and not crc_matches(batch.data):
        return BatchRefusal(Errors.CORRUPT_MESSAGE, "the CRC does not match")
    if batch.record_count <= 0 or batch.record_count != batch.last_offset + 1:
        return BatchRefusal(
            Errors.INVALID_RECORD, f"{batch.record_count} records, but the last offset delta is {batch.last_offset}"
        )
    if batch.attributes & CONTROL:
        return BatchRefusal(Errors.INVALID_RECORD, "a client must not write a control batch")
    return None


def _check_producer(batch: RecordBatch) -> BatchRefusal | None:
    """Check producer id and sequence. Coordinators are exempt: they write for producers without sequences."""
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        return BatchRefusal(
            Errors.INVALID_RECORD, f"producer {batch.producer_id} sent sequence {batch.base_sequence}: must be >= 0"
        )
    if batch.producer_id < 0 and batch.is_transactional:
        return BatchRefusal(Errors.INVALID_RECORD, "a transactional batch without a producer id")
    return None


def _needs_records(batch: RecordBatch, config: LogConfig, now_ms: int) -> bool:
    if config.compact or _recompresses(batch, config):
        return True
    bounded = config.message_timestamp_before_max_ms != LONG_MAX
    ahead = batch.max_timestamp - now_ms > config.message_timestamp_after_max_ms
    return not config.log_append_time and (bounded or ahead)


def _with_records(batch: RecordBatch, config: LogConfig, now_ms: int) -> RecordBatch | BatchRefusal:
    """The batch in the topic's codec and with its true largest timestamp, or the refusal of its records.

    The records are decoded in chunks, twice if they are to be compressed again: their number is the producer's choice.
    """
    if batch.record_count > config.max_message_bytes // LEAST_RECORD_BYTES:
        return BatchRefusal(
            Errors.MESSAGE_TOO_LARGE, f"{batch.record_count} records never fit in max.message.bytes uncompressed"
        )
    try:
        plain = uncompressed(batch, limit_of(config.max_message_bytes))
        found = _largest_timestamp_by_columns(plain, config, now_ms)
        largest = _largest_timestamp(plain, config, now_ms) if found is None else found
    except OversizedBatch as error:
        return BatchRefusal(Errors.MESSAGE_TOO_LARGE, f"the batch {error.reason}")
    except CorruptBatch as error:
        return BatchRefusal(Errors.INVALID_RECORD, error.reason)
    if isinstance(largest, BatchRefusal):
        return largest
    if _recompresses(batch, config):
        batch = parse_batch(rebuild(batch, stream(plain), codec=_TARGET_CODECS[config.compression_type]))
        if batch.size > config.max_message_bytes:
            return _too_large(batch.size, config)
    return batch if largest == batch.max_timestamp else _stamped(batch, batch.attributes, largest)


def _largest_timestamp(plain: RecordBatch, config: LogConfig, now_ms: int) -> int | BatchRefusal:
    """The largest timestamp of the records, or the refusal of the first chunk with invalid ones."""
    largest = -1
    records = stream(plain)
    for first in range(0, plain.record_count, RECORDS_AT_ONCE):
        chunk = list(islice(records, RECORDS_AT_ONCE))
        timestamps = list(map(_timestamp, chunk))
        refusal = _check_keys(chunk, first, config) or _check_timestamps(timestamps, first, config, now_ms)
        if refusal:
            return refusal
        largest = max(largest, *timestamps)
    next(records, None)  # the codec checks the end of the batch
    return largest


def _largest_timestamp_by_columns(batch: RecordBatch, config: LogConfig, now_ms: int) -> int | None:
    """The largest timestamp, if the batch passes without decoding; None if its records must be decoded."""
    if batch.record_count < WORTH_A_LOOK or config.compact:
        return None
    if config.message_timestamp_before_max_ms != LONG_MAX:
        return None
    delta = largest_timestamp_delta(batch.data, HEADER_BYTES, batch.record_count)
    if delta is None:
        return None
    largest = batch.base_timestamp + delta
    too_new = largest - now_ms > config.message_timestamp_after_max_ms and not config.log_append_time
    return None if too_new else largest


def _check_keys(records: Sequence[Record], first: int, config: LogConfig) -> BatchRefusal | None:
    if not config.compact:
        return None
    keyless = tuple(
        (index, "a compacted topic requires a key for every record")
        for index, record in enumerate(records, first)
        if record.key is None
    )
    return BatchRefusal(Errors.INVALID_RECORD, _REJECTED, keyless) if keyless else None


def _check_timestamps(timestamps: Sequence[int], first: int, config: LogConfig, now_ms: int) -> BatchRefusal | None:
    if config.log_append_time:
        return None
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    if max(timestamps) <= latest and min(timestamps) >= earliest:
        return None
    off = tuple(
        (index, f"timestamp {timestamp} is not within {earliest}..{latest}")
        for index, timestamp in enumerate(timestamps, first)
        if timestamp > latest or -1 != timestamp < earliest
    )
    return BatchRefusal(Errors.INVALID_TIMESTAMP, _REJECTED, off) if off else None


def _recompresses(batch: RecordBatch, config: LogConfig) -> bool:
    codec = config.compression_type
    return codec != "producer" and _TARGET_CODECS[codec] != batch.attributes & CODEC_MASK


def _stamped(batch: RecordBatch, attributes: int, max_timestamp: int) -> RecordBatch:
    return parse_batch(restamp_timestamps(batch, attributes, max_timestamp))


def _too_large(size: int, config: LogConfig) -> BatchRefusal:
    return BatchRefusal(
        Errors.MESSAGE_TOO_LARGE, f"the batch has {size} bytes, max.message.bytes is {config.max_message_bytes}"
    )
