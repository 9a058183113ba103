"""The checks of an append, one row each, and their order. BEHAVIOUR.md, 1 to 4."""

import pytest

from shareq.log.batches import CRC_AT, complete_size, parse_batch, restamp, stamp_crc
from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.log.records import CODECS, decode, encode_batch
from shareq.log.results import AppendResult
from shareq.model.errors import Errors
from tests.log.support import NOW, batch, batches, broken, contents, patched

HOUR = 3_600_000
GOOD = batch(b"a", b"b")
DEFAULT = LogConfig()
COMPACT = LogConfig(cleanup_policy="compact")
SMALL = LogConfig(max_message_bytes=len(GOOD) - 1)
LOG_APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")
PAST_BOUNDED = LogConfig(message_timestamp_before_max_ms=HOUR)

CONTROL = patched(GOOD, 22, b"\x30")
NEGATIVE_SEQUENCE = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=-1)
AHEAD = batch(b"a", b"b", timestamp=NOW + HOUR + 1)
BEHIND = batch(b"a", timestamp=NOW - HOUR - 1)


def append(log: MemoryLog, data: bytes, **options: bool) -> AppendResult:
    return log.append(data, now_ms=NOW, leader_epoch=0, **options)


@pytest.mark.parametrize(
    ("data", "config", "error", "message"),
    [
        pytest.param(b"", DEFAULT, Errors.INVALID_RECORD, "no complete", id="empty"),
        pytest.param(GOOD[:-1], DEFAULT, Errors.INVALID_RECORD, "no complete", id="cut off"),
        pytest.param(GOOD + GOOD, DEFAULT, Errors.INVALID_RECORD, "more than one", id="two batches"),
        pytest.param(patched(GOOD, 16, b"\0"), DEFAULT, Errors.INVALID_RECORD, "magic 0", id="magic 0"),
        pytest.param(patched(GOOD, 16, b"\1"), DEFAULT, Errors.INVALID_RECORD, "magic 1", id="magic 1"),
        pytest.param(patched(GOOD, 16, b"\3"), DEFAULT, Errors.CORRUPT_MESSAGE, "magic 3", id="magic 3"),
        pytest.param(patched(GOOD, 16, b"\xff"), DEFAULT, Errors.CORRUPT_MESSAGE, "magic 255", id="magic below 0"),
        pytest.param(restamp(GOOD, 1, 0), DEFAULT, Errors.INVALID_RECORD, "base offset is 1", id="base offset"),
        pytest.param(GOOD, SMALL, Errors.MESSAGE_TOO_LARGE, "max.message.bytes", id="size"),
        pytest.param(broken(GOOD, CRC_AT), DEFAULT, Errors.CORRUPT_MESSAGE, "CRC", id="crc"),
        pytest.param(broken(GOOD, 70), DEFAULT, Errors.CORRUPT_MESSAGE, "CRC", id="a record's byte"),
        pytest.param(
            patched(patched(GOOD, 57, b"\0\0\0\0"), 23, b"\xff\xff\xff\xff"),
            DEFAULT,
            Errors.INVALID_RECORD,
            "0 records",
            id="no record",
        ),
        pytest.param(patched(GOOD, 57, b"\0\0\0\1"), DEFAULT, Errors.INVALID_RECORD, "1 records, but", id="count"),
        pytest.param(patched(GOOD, 23, b"\0\0\0\2"), DEFAULT, Errors.INVALID_RECORD, "2 records, but", id="delta"),
        pytest.param(CONTROL, DEFAULT, Errors.INVALID_RECORD, "control", id="control bit"),
        pytest.param(NEGATIVE_SEQUENCE, DEFAULT, Errors.INVALID_RECORD, "sequence -1", id="producer without sequence"),
        pytest.param(
            batch(b"a", transactional=True),
            DEFAULT,
            Errors.INVALID_RECORD,
            "without a producer id",
            id="transaction without producer",
        ),
        pytest.param(
            patched(patched(GOOD, 57, b"\0\0\0\3"), 23, b"\0\0\0\2"),
            DEFAULT,
            Errors.INVALID_RECORD,
            "Can't read",
            id="fewer records than counted",
        ),
        pytest.param(
            patched(patched(GOOD, 57, b"\0\0\0\1"), 23, b"\0\0\0\0"),
            DEFAULT,
            Errors.INVALID_RECORD,
            "unconsumed",
            id="more records than counted",
        ),
        pytest.param(AHEAD, DEFAULT, Errors.INVALID_TIMESTAMP, "rejected", id="an hour ahead"),
        pytest.param(BEHIND, PAST_BOUNDED, Errors.INVALID_TIMESTAMP, "rejected", id="too far behind"),
        pytest.param(batch(b"a", key=None), COMPACT, Errors.INVALID_RECORD, "rejected", id="no key"),
    ],
)
def test_invalid_batches_are_refused(data: bytes, config: LogConfig, error: Errors, message: str) -> None:
    log = MemoryLog(config)
    result = append(log, data)
    assert (result.error, result.base_offset, result.last_offset) == (error, -1, -1)
    assert message in (result.message or "")
    assert (log.log_end_offset, log.size_in_bytes, batches(log)) == (0, 0, ())


@pytest.mark.parametrize(
    ("data", "config"),
    [
        pytest.param(GOOD, DEFAULT, id="plain"),
        pytest.param(GOOD + GOOD[:-1], DEFAULT, id="an incomplete batch behind it is dropped"),
        pytest.param(GOOD, LogConfig(max_message_bytes=len(GOOD)), id="exactly max.message.bytes"),
        pytest.param(batch(b"a", b"b", timestamp=NOW + HOUR), DEFAULT, id="exactly an hour ahead"),
        pytest.param(batch(b"a", b"b", timestamp=0), DEFAULT, id="1970"),
        pytest.param(batch(b"a", b"b", timestamp=NOW - HOUR), PAST_BOUNDED, id="exactly the bound behind"),
        pytest.param(AHEAD, LOG_APPEND_TIME, id="ahead, but LogAppendTime ignores it"),
        pytest.param(batch(b"a", b"b", key=None), DEFAULT, id="no key"),
        pytest.param(batch(b"a", None), COMPACT, id="tombstone"),
    ],
)
def test_valid_batches_are_appended(data: bytes, config: LogConfig) -> None:
    log = MemoryLog(config)
    result = append(log, data)
    assert result == AppendResult(Errors.NONE, 0, 1, NOW if config.log_append_time else -1, 0)
    assert len(contents(log)) == 2
    assert batches(log)[0].size == complete_size(data)


def test_a_record_without_timestamp_passes_any_bound() -> None:
    data = patched(patched(batch(b"a", timestamp=0), 27, b"\xff" * 8), 35, b"\xff" * 8)
    assert append(MemoryLog(PAST_BOUNDED), data).error is Errors.NONE


def test_record_errors_name_the_invalid_records() -> None:
    mixed = encode_batch([(b"k", b"", (), NOW), (None, b"", (), NOW + HOUR + 1), (None, b"", (), NOW)])
    assert append(MemoryLog(COMPACT), mixed).record_errors == (
        (1, "a compacted topic requires a key for every record"),
        (2, "a compacted topic requires a key for every record"),
    )
    assert append(MemoryLog(), mixed).record_errors == (
        (1, f"timestamp {NOW + HOUR + 1} is not within {NOW - (1 << 63) + 1}..{NOW + HOUR}"),
    )


ORDER = [
    pytest.param(patched(restamp(GOOD, 1, 0), 16, b"\3"), SMALL, Errors.CORRUPT_MESSAGE, id="magic before base offset"),
    pytest.param(restamp(GOOD, 1, 0), SMALL, Errors.INVALID_RECORD, id="base offset before size"),
    pytest.param(broken(GOOD, 70), SMALL, Errors.MESSAGE_TOO_LARGE, id="size before crc"),
    pytest.param(broken(CONTROL, CRC_AT), DEFAULT, Errors.CORRUPT_MESSAGE, id="crc before control bit"),
    pytest.param(patched(AHEAD, 22, b"\x30"), DEFAULT, Errors.INVALID_RECORD, id="control bit before timestamps"),
    pytest.param(
        batch(b"a", key=None, timestamp=NOW + 2 * HOUR), COMPACT, Errors.INVALID_RECORD, id="keys before timestamps"
    ),
    pytest.param(
        batch(b"a", timestamp=NOW + 2 * HOUR, producer_id=1, producer_epoch=0, base_sequence=9),
        DEFAULT,
        Errors.INVALID_TIMESTAMP,
        id="timestamps before sequences",
    ),
]


@pytest.mark.parametrize(("data", "config", "error"), ORDER)
def test_the_first_failed_check_gives_the_error(data: bytes, config: LogConfig, error: Errors) -> None:
    log = MemoryLog(config)
    append(log, batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0))
    assert append(log, data).error is error


@pytest.mark.parametrize(
    ("data", "config", "error"),
    [
        pytest.param(broken(GOOD, CRC_AT), DEFAULT, Errors.NONE, id="the crc is trusted"),
        pytest.param(CONTROL, DEFAULT, Errors.INVALID_RECORD, id="the control bit is not"),
        pytest.param(GOOD, SMALL, Errors.MESSAGE_TOO_LARGE, id="the size is not"),
        pytest.param(AHEAD, DEFAULT, Errors.INVALID_TIMESTAMP, id="timestamps are not"),
        pytest.param(BEHIND, PAST_BOUNDED, Errors.INVALID_TIMESTAMP, id="old timestamps are not"),
        pytest.param(batch(b"a", key=None), COMPACT, Errors.INVALID_RECORD, id="keys are not"),
    ],
)
def test_without_validation_only_the_crc_is_trusted(data: bytes, config: LogConfig, error: Errors) -> None:
    assert append(MemoryLog(config), data, validate=False).error is error


def test_the_log_stamps_only_offset_and_epoch() -> None:
    log = MemoryLog()
    for epoch in (0, 3):
        assert log.append(GOOD, now_ms=NOW, leader_epoch=epoch).error is Errors.NONE
    first, second = batches(log)
    assert (second.base_offset, second.last_offset, second.leader_epoch) == (2, 3, 3)
    assert parse_batch(second.data) == second
    assert first.data[16:] == second.data[16:] == GOOD[16:]
    assert log.size_in_bytes == 2 * len(GOOD)


def test_log_append_time_stamps_all_records() -> None:
    log = MemoryLog(LOG_APPEND_TIME)
    for timestamp in (5, NOW + 9 * HOUR):
        assert append(log, batch(b"a", b"b", timestamp=timestamp)).log_append_time_ms == NOW
    for kept in batches(log):
        assert kept.attributes == 0x08
        assert [(r.timestamp, r.timestamp_type) for r in decode(kept, check_crc=True)] == [(NOW, 1)] * 2


def test_a_client_cannot_claim_log_append_time() -> None:
    log = MemoryLog()
    assert append(log, patched(patched(GOOD, 22, b"\x08"), 35, b"\0" * 8)).error is Errors.NONE
    (kept,) = batches(log)
    assert (kept.attributes, kept.max_timestamp) == (0, NOW)
    assert [(r.timestamp, r.timestamp_type) for r in decode(kept, check_crc=True)] == [(NOW, 0)] * 2


def test_the_largest_timestamp_is_corrected() -> None:
    log = MemoryLog()
    assert append(log, patched(GOOD, 35, (5).to_bytes(8, "big"))).error is Errors.NONE
    assert batches(log)[0].max_timestamp == NOW
    assert len(contents(log)) == 2


@pytest.mark.parametrize("target", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("source", ["none", "lz4"])
@pytest.mark.parametrize("validate", [True, False])
def test_batches_are_stored_in_the_compression_type(target: str, source: str, validate: bool) -> None:
    log = MemoryLog(LogConfig(compression_type=target))
    data = encode_batch([(b"k", b"v" * 100, (), NOW)] * 20, compression=source)
    assert append(log, data, validate=validate).error is Errors.NONE
    (kept,) = batches(log)
    expected = {"producer": source, "uncompressed": "none"}.get(target, target)
    assert kept.attributes == CODECS[expected]
    assert contents(log) == [(offset, b"k", b"v" * 100) for offset in range(20)]
    if expected == source:
        assert kept.data[16:] == data[16:]


@pytest.mark.parametrize("target", ["producer", "gzip"])
@pytest.mark.parametrize("compact", [True, False])
def test_a_header_name_that_is_not_utf8_is_stored(target: str, compact: bool) -> None:
    """As it is, as in Kafka; a batch that the log compresses anew gets what readers read."""
    log = MemoryLog(LogConfig(compression_type=target, cleanup_policy="compact" if compact else "delete"))
    data = encode_batch([(b"k", b"v", [("naXve", b"1")], NOW)])
    data = stamp_crc(bytearray(data.replace(b"naXve", b"na\xefve")))
    assert append(log, data, validate=True).error is Errors.NONE
    (kept,) = batches(log)
    assert (b"na\xefve" in kept.data) == (target == "producer")
    assert [record.headers for record in decode(kept)] == [[("na\ufffdve", b"1")]]


def test_a_batch_may_become_too_large_by_recompression() -> None:
    log = MemoryLog(LogConfig(compression_type="uncompressed", max_message_bytes=1000))
    assert (
        append(log, encode_batch([(b"k", b"v" * 2000, (), NOW)], compression="zstd")).error is Errors.MESSAGE_TOO_LARGE
    )


def test_a_full_log_refuses_appends() -> None:
    log = MemoryLog(capacity_bytes=2 * len(GOOD))
    idempotent = batch(b"a", b"b", producer_id=1, producer_epoch=0, base_sequence=0)
    assert append(log, idempotent).error is Errors.NONE
    assert append(log, GOOD).error is Errors.NONE
    refused = append(log, GOOD)
    assert (refused.error, log.log_end_offset) == (Errors.KAFKA_STORAGE_ERROR, 4)
    assert "log full" in (refused.message or "")
    marker = log.append_control(
        committed=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, now_ms=NOW, leader_epoch=0
    )
    assert marker.error is Errors.KAFKA_STORAGE_ERROR
    assert append(log, idempotent).base_offset == 0, "a duplicate needs no room"
    assert log.delete_records(2) is Errors.NONE
    assert append(log, GOOD).base_offset == 4
