"""Encoding and decoding of records: every shape, every codec, and damage, which is always a CorruptBatch.

All of it holds for the compiled codec of records, and for the pure one of the browser.
"""

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.records.readers import read_batch

from shareq.log import pure_codec, records
from shareq.log.batches import LOG_APPEND_TIME, parse_batch, restamp, stamp_crc
from shareq.log.records import (
    CODECS,
    BatchBuilder,
    CorruptBatch,
    Headers,
    Record,
    decode,
    decode_key_values,
    encode_batch,
    encode_coordinator_records,
    rebuild,
    restamp_timestamps,
    stream,
)
from shareq.model.records import CoordinatorRecord
from tests.log.support import NOW, batch, broken, patched

Row = tuple[bytes | None, bytes | None, Headers, int]

SHAPES: list[Row] = [
    (b"key", b"value", [("h", b"1")], 1000),
    (None, b"no key", [], 999),
    (b"tombstone", None, [], 2000),
    (b"", b"", [("empty", b""), ("null", None), ("empty", b"again")], 0),
    (None, None, [("naïve ☕", b"\x00\xff")], 1 << 41),
]

small = st.binary(max_size=20)
rows = st.lists(
    st.tuples(
        st.none() | small,
        st.none() | small,
        st.lists(st.tuples(st.text(max_size=5), st.none() | small), max_size=3),
        st.integers(0, 1 << 42),
    ),
    min_size=1,
    max_size=30,
)


@pytest.fixture(params=["compiled", "pure"], scope="module", autouse=True)
def record_codec(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "pure":
            patch.setattr(records, "_codec", lambda: pure_codec)
        yield


def plain(record: Record) -> Row:
    return record.key, record.value, record.headers, record.timestamp


@pytest.mark.parametrize("compression", CODECS)
def test_all_shapes_can_be_encoded_and_decoded_in_all_codecs(compression: str) -> None:
    records = SHAPES * 20  # repetitive enough for every codec to save bytes
    data = encode_batch(records, compression=compression)
    assert parse_batch(data).attributes == CODECS[compression]
    found = decode(restamp(data, 50, 0), check_crc=True)
    assert [plain(record) for record in found] == records
    assert [record.offset for record in found] == list(range(50, 150))
    assert {record.timestamp_type for record in found} == {0}


@given(rows=rows, compression=st.sampled_from(list(CODECS)))
def test_decoding_inverts_encoding(rows: list[Row], compression: str) -> None:
    parsed = parse_batch(encode_batch(rows, compression=compression))
    assert [plain(record) for record in decode(parsed, check_crc=True)] == rows
    assert parsed.max_timestamp == max(row[3] for row in rows)
    assert parsed.record_count == parsed.last_offset + 1 == len(rows)


@given(rows=rows)
def test_kio_decodes_the_same_records(rows: list[Row]) -> None:
    """kio shares no code with aiokafka, and checks the CRC. It supports whole milliseconds from the year 1 to 9999."""
    data = restamp(encode_batch(rows, producer_id=9, producer_epoch=3, base_sequence=17), 77, 5)
    parsed, size = read_batch(data, 0)
    assert size == len(data)
    assert (parsed.base_offset, parsed.producer_id, parsed.producer_epoch, parsed.base_sequence) == (77, 9, 3, 17)
    assert [(r.key, r.value) for r in parsed.records] == [row[:2] for row in rows]
    assert [[(h.key, h.value) for h in r.headers] for r in parsed.records] == [
        [(key.encode(), value) for key, value in row[2]] for row in rows
    ]


def test_a_builder_accepts_records_until_the_batch_is_full() -> None:
    builder = BatchBuilder(200)
    taken = [builder.append(None, b"x" * 50, [], NOW) for _ in range(4)]
    assert taken == [True, True, False, False]
    assert (builder.record_count, builder.size_bytes <= 200) == (2, True)
    builder.set_producer_state(4, 1, 30)
    parsed = parse_batch(builder.build())
    assert parsed[5:9] == (4, 1, 30, 2)
    assert [record.value for record in decode(parsed, check_crc=True)] == [b"x" * 50] * 2


def test_the_first_record_always_fits() -> None:
    builder = BatchBuilder(100)
    assert builder.append(b"k", b"x" * 500, [], NOW)
    assert not builder.append(b"k", b"", [], NOW)
    assert len(decode(builder.build())) == 1


def test_negative_timestamps_are_refused() -> None:
    with pytest.raises(ValueError, match="timestamp -1: must be >= 0"):
        encode_batch([(b"k", b"v", [], -1)])


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([])


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(("text", b"", []), id="key"),
        pytest.param((b"", "text", []), id="value"),
        pytest.param((b"", b"", [(b"h", b"")]), id="header name"),
        pytest.param((b"", b"", [("h", "text")]), id="header value"),
    ],
)
def test_other_types_than_bytes_are_refused_and_leave_the_builder_usable(record: tuple[bytes, bytes, Headers]) -> None:
    builder = BatchBuilder(1000)
    with pytest.raises(TypeError):
        builder.append(*record, NOW)
    assert builder.append(b"k", b"v", [], NOW)
    assert [r.value for r in decode(builder.build(), check_crc=True)] == [b"v"]


@pytest.mark.parametrize("compression", CODECS)
def test_one_wrong_byte_is_a_corrupt_batch(compression: str) -> None:
    data = restamp(encode_batch(SHAPES * 20, compression=compression), 40, 0)
    for at in (21, 61, 70, len(data) // 2, len(data) - 1):
        with pytest.raises(CorruptBatch, match="at offset 40: the CRC does not match") as caught:
            decode(broken(data, at), check_crc=True)
        assert caught.value.base_offset == 40


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(patched(batch(b"a", b"b"), 57, b"\0\0\0\3"), "CorruptRecord", id="a record too few"),
        pytest.param(patched(batch(b"a", b"b"), 57, b"\0\0\0\1"), "unconsumed bytes", id="a record too many"),
        pytest.param(patched(batch(b"a", b"b"), 61, b"\x7f"), "CorruptRecord", id="record length"),
        pytest.param(patched(batch(b"a" * 99, compression="gzip"), 61, b"\0" * 8), "gzip", id="gzip"),
        pytest.param(patched(batch(b"a" * 999, compression="snappy"), 61, b"\xff" * 30), "snappy", id="snappy"),
        pytest.param(patched(batch(b"a" * 99, compression="lz4"), 61, b"\0" * 8), "lz4", id="lz4"),
        pytest.param(patched(batch(b"a" * 99, compression="zstd"), 61, b"\0" * 8), "DecompressionError", id="zstd"),
        pytest.param(patched(batch(b"a"), 21, b"\0\5"), "codec 5", id="unknown codec"),
    ],
)
def test_unreadable_records_with_a_correct_crc_are_a_corrupt_batch(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        decode(restamp(data, 3, 0), check_crc=True)


def test_damaged_batches_are_corrupt_or_unchanged(seed: int) -> None:
    rng = random.Random(seed)
    whole = encode_batch(SHAPES)
    for _ in range(5000):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(57, len(whole))] = rng.randrange(256)
        found = SHAPES
        with suppress(CorruptBatch):
            found = [plain(record) for record in decode(bytes(damaged))]
        assert len(found) == len(SHAPES)


@pytest.mark.parametrize("kept", [[], [0], [4], [1, 3], [0, 1, 2, 3, 4]], ids=str)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_rebuilt_batch_has_gaps_and_keeps_everything_else(kept: list[int], compression: str) -> None:
    data = encode_batch(
        SHAPES, compression=compression, producer_id=7, producer_epoch=1, base_sequence=5, transactional=True
    )
    before = parse_batch(restamp(data, 20, 3))
    records = decode(before)
    after = parse_batch(rebuild(before, [records[index] for index in kept]))
    assert (after.base_offset, after.last_offset, after.leader_epoch) == (20, 24, 3)
    assert after[5:9] == (7, 1, 5, len(kept))
    assert after.is_transactional
    assert after.max_timestamp == max([SHAPES[index][3] for index in kept], default=before.max_timestamp)
    found = decode(after, check_crc=True)
    assert [(record.offset, plain(record)) for record in found] == [(20 + index, SHAPES[index]) for index in kept]


def test_records_without_a_timestamp_can_be_rebuilt() -> None:
    """shareq's producer never writes -1, but other clients may: three records at -1, 7 and -1."""
    before = parse_batch(
        patched(encode_batch([(b"k", b"v", [], t) for t in (8, 16, 8)]), 27, (-1).to_bytes(8, "big", signed=True))
    )
    assert [r.timestamp for r in decode(before)] == [-1, 7, -1]
    after = parse_batch(rebuild(before, decode(before)))
    assert [r.timestamp for r in decode(after, check_crc=True)] == [-1, 7, -1]
    assert (after.base_timestamp, after.max_timestamp) == (-1, 7)


def test_a_batch_can_change_its_codec() -> None:
    before = parse_batch(restamp(encode_batch(SHAPES * 20, compression="lz4"), 20, 3))
    after = parse_batch(rebuild(before, decode(before), codec=CODECS["zstd"]))
    assert after.attributes == CODECS["zstd"]
    assert [plain(r) for r in decode(after, check_crc=True)] == SHAPES * 20


def test_log_append_time_gives_all_records_the_largest_timestamp() -> None:
    stamped = patched(patched(batch(b"a", b"b", timestamp=10), 21, b"\0\x08"), 35, (99).to_bytes(8, "big"))
    assert [(r.timestamp, r.timestamp_type) for r in decode(stamped)] == [(99, 1), (99, 1)]
    before = parse_batch(stamped)
    kept = decode(rebuild(before, decode(before)[1:]))
    assert [(r.offset, r.timestamp, r.timestamp_type) for r in kept] == [(1, 99, 1)]


def test_coordinator_records_are_encoded_and_decoded() -> None:
    records = [CoordinatorRecord(b"a", b"1"), CoordinatorRecord(b"b", None), CoordinatorRecord(b"a", b"")]
    parsed = parse_batch(restamp(encode_coordinator_records(records, NOW), 10, 0))
    assert parsed[3:-1] == (NOW, NOW, -1, -1, -1, 3, 0)
    assert decode_key_values(parsed) == [(10, b"a", b"1"), (11, b"b", None), (12, b"a", b"")]
    assert all(record.headers == [] for record in decode(parsed))


def test_coordinator_records_without_a_key_are_skipped() -> None:
    assert decode_key_values(encode_batch([(None, b"x", [], 0), (b"k", b"v", [], 0)])) == [(1, b"k", b"v")]


BAD_NAMES = [
    pytest.param(b"na\xefve", "na�ve", id="Latin-1"),
    pytest.param(b"\xff\xfe", "��", id="no UTF-8 at all"),
    pytest.param(b"\xe2\x98", "�", id="cut off"),
    pytest.param(b"a\xed\xa0\x80b", "a�b", id="a surrogate"),
]


@pytest.mark.parametrize(("name", "read"), BAD_NAMES)
def test_a_header_name_that_is_not_utf8_is_read_as_by_kafkas_clients(name: bytes, read: str) -> None:
    at = encode_batch(rows_with("x" * len(name)))
    batch = parse_batch(stamp_crc(bytearray(at.replace(b"x" * len(name), name))))
    expected = [(offset, row) for offset, row in enumerate(rows_with(read))]
    assert [(record.offset, plain(record)) for record in decode(batch, check_crc=True)] == expected
    assert [(record.offset, plain(record)) for record in stream(batch, check_crc=True)] == expected
    rebuilt = rebuild(batch, stream(batch), codec=CODECS["gzip"])
    assert [(record.offset, plain(record)) for record in decode(parse_batch(rebuilt))] == expected
    appended = parse_batch(restamp_timestamps(batch, batch.attributes | LOG_APPEND_TIME, NOW))
    assert [(record.timestamp, record.timestamp_type) for record in decode(appended)] == [(NOW, 1)] * 3


def rows_with(name: str) -> list[Row]:
    return [(b"k", b"v", [("ok", b"1")], NOW), (None, None, [(name, b"2"), ("n", None)], 1 << 41), (b"", b"", [], 0)]
