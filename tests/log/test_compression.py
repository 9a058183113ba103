"""Decompression is bounded: a batch that unpacks to more than its topic allows is refused before memory is taken."""

import cramjam
import pytest

from shareq.log.batches import HEADER_BYTES, CorruptBatch, parse_batch
from shareq.log.compression import CODECS, EXPANSION, MOST_BYTES, OversizedBatch, limit_of, uncompressed
from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, encode_batch
from shareq.log.validation import RECORDS_AT_ONCE
from shareq.model.errors import Errors
from tests.log.support import NOW, patched

MIB = 1 << 20
COMPRESSED = [name for name in CODECS if name != "none"]


def append(log: MemoryLog, data: bytes) -> Errors:
    return log.append(data, now_ms=NOW, leader_epoch=0).error


def of_zeros(size: int, codec: str) -> bytes:
    return encode_batch([(b"k", bytes(size), (), NOW)], compression=codec)


def with_payload(payload: bytes, codec: str, count: int = 1) -> bytes:
    """A batch with these bytes for compressed records, and a correct CRC."""
    header = bytearray(encode_batch([(b"k", b"v", (), NOW)])[:HEADER_BYTES])
    header[8:12] = (HEADER_BYTES - 12 + len(payload)).to_bytes(4, "big")
    header[22] = CODECS[codec]
    header[23:27] = (count - 1).to_bytes(4, "big")
    header[57:61] = count.to_bytes(4, "big")
    return patched(bytes(header) + payload, 23, bytes(header[23:27]))


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_batch_above_the_limit_is_refused_and_one_at_the_limit_is_read(codec: str) -> None:
    batch = parse_batch(of_zeros(2 * MIB, codec))
    size = len(uncompressed(batch).data) - HEADER_BYTES
    assert len(uncompressed(batch, size).data) - HEADER_BYTES == size > 2 * MIB
    with pytest.raises(OversizedBatch, match=f"more than {size - 1} bytes"):
        uncompressed(batch, size - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_small_batch_that_expands_far_is_read(codec: str) -> None:
    """More than the guess from its size: it moves from the small room to the large one."""
    batch = parse_batch(of_zeros(100_000, codec))
    (record,) = decode(uncompressed(batch))
    assert record.value == bytes(100_000)


def test_the_raw_format_of_snappy_is_read_and_bounded_too() -> None:
    plain = uncompressed(parse_batch(of_zeros(MIB, "snappy"))).data[HEADER_BYTES:]
    batch = parse_batch(with_payload(bytes(cramjam.snappy.compress_raw(plain)), "snappy"))
    assert uncompressed(batch).data[HEADER_BYTES:] == plain
    with pytest.raises(OversizedBatch):
        uncompressed(batch, MIB)


def test_a_block_of_snappy_that_claims_four_gigabytes_is_refused() -> None:
    with pytest.raises(OversizedBatch):
        uncompressed(parse_batch(with_payload(b"\xff\xff\xff\xff\x0f" + bytes(20), "snappy")))


@pytest.mark.parametrize("length", [-5, 0, 1 << 20], ids=["backwards", "empty", "beyond the end"])
def test_blocks_of_snappy_lie_within_the_batch(length: int) -> None:
    payload = b"\x82SNAPPY\0" + bytes([0, 0, 0, 1, 0, 0, 0, 1]) + length.to_bytes(4, "big", signed=True) + bytes(30)
    with pytest.raises(CorruptBatch, match="a block of snappy"):
        uncompressed(parse_batch(with_payload(payload, "snappy")))


def test_a_topic_takes_sixteen_times_its_largest_message() -> None:
    log = MemoryLog(LogConfig(max_message_bytes=MIB))
    assert append(log, of_zeros(EXPANSION * MIB - 100, "zstd")) is Errors.NONE
    assert append(log, of_zeros(EXPANSION * MIB, "zstd")) is Errors.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 1


def test_a_topic_that_compresses_again_has_the_same_limit() -> None:
    log = MemoryLog(LogConfig(max_message_bytes=MIB, compression_type="lz4"))
    assert append(log, of_zeros(EXPANSION * MIB, "zstd")) is Errors.MESSAGE_TOO_LARGE
    assert append(log, of_zeros(EXPANSION * MIB - 100, "zstd")) is Errors.NONE


def test_a_compressed_batch_has_no_more_records_than_a_plain_one() -> None:
    config = LogConfig(max_message_bytes=7000)

    def of_records(count: int) -> bytes:
        return encode_batch([(None, None, (), NOW)] * count, compression="zstd")

    assert len(of_records(1001)) < 7000
    assert append(MemoryLog(config), of_records(1000)) is Errors.NONE
    assert append(MemoryLog(config), of_records(1001)) is Errors.MESSAGE_TOO_LARGE


def test_no_limit_is_above_that_of_readers() -> None:
    """Else a broker would accept what no consumer reads."""
    assert limit_of(1_048_588) == 16_777_408
    assert limit_of((1 << 31) - 1) == MOST_BYTES


def test_errors_of_records_name_those_of_one_chunk() -> None:
    """As many as a batch can hold would take far more memory than the batch."""
    keyless = encode_batch([(None, b"", (), NOW)] * (2 * RECORDS_AT_ONCE), compression="zstd")
    refused = MemoryLog(LogConfig(cleanup_policy="compact")).append(keyless, now_ms=NOW, leader_epoch=0)
    assert refused.error is Errors.INVALID_RECORD
    assert [index for index, _ in refused.record_errors] == list(range(RECORDS_AT_ONCE))


@pytest.mark.parametrize("late", [RECORDS_AT_ONCE - 1, RECORDS_AT_ONCE, RECORDS_AT_ONCE + 1])
def test_records_around_the_end_of_a_chunk_are_checked(late: int) -> None:
    log = MemoryLog()
    times = [NOW + (7_200_000 if index == late else -index % 1000) for index in range(RECORDS_AT_ONCE + 2)]
    refused = log.append(
        encode_batch([(b"k", b"", (), time) for time in times], compression="gzip"), now_ms=NOW, leader_epoch=0
    )
    assert [index for index, _ in refused.record_errors] == [late]
    assert append(log, encode_batch([(b"k", b"", (), min(time, NOW)) for time in times])) is Errors.NONE
