"""The records of the state topic, byte for byte (BEHAVIOUR.md 26, 29)."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.write_share_group_state.v0.request import StateBatch as KioBatch
from kio.serial import entity_reader

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.records import (
    Stage,
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
    encode_state_record,
)
from shareq.model.ids import SharePartitionKey, topic_id_from_bytes
from shareq.model.messages.share_state import StateBatch
from tests.budgets import cases
from tests.coordinator.share_state.stage import KEY, batches

KEY_HEX = "0002 6731 00112233445566778899aabbccddeeff 00000003"
CREATED = 1700000000000

SNAPSHOT = StateSnapshot(KEY, 2, 5, 7, 100, CREATED, CREATED, batches("100-104/2/1 105-109/0/2"), 5)
SNAPSHOT_HEX = """
    0000 00000002 00000005 00000007 0000000000000064 0000018bcfe56800 0000018bcfe56800 03
    0000000000000064 0000000000000068 02 0001 00  0000000000000069 000000000000006d 00 0002 00
    01 00 04 00000005
"""
UPDATE = StateUpdate(KEY, 2, 7, 105, batches("110-110/4/5"))
UPDATE_HEX = "0000 00000002 00000007 0000000000000069 02 000000000000006e 000000000000006e 04 0005 00 00"
COUNT_ONLY = StateUpdate(KEY, 2, 7, 105, (), 0)
COUNT_ONLY_HEX = "0000 00000002 00000007 0000000000000069 01 01 00 04 00000000"

EXAMPLES = [
    pytest.param(SNAPSHOT, "0000" + KEY_HEX, SNAPSHOT_HEX, 86, id="example 14: a snapshot"),
    pytest.param(UPDATE, "0001" + KEY_HEX, UPDATE_HEX, 40, id="example 15: an update without count"),
    pytest.param(COUNT_ONLY, "0001" + KEY_HEX, COUNT_ONLY_HEX, 26, id="example 15, variant: no batches, count 0"),
]


@pytest.mark.parametrize(("record", "key", "value", "size"), EXAMPLES)
def test_bytes_of_examples(record: StateRecord, key: str, value: str, size: int) -> None:
    encoded = encode_state_record(record)
    assert encoded.key == bytes.fromhex(key)
    assert encoded.value == bytes.fromhex(value)
    assert (len(encoded.key), len(encoded.value)) == (26, size)
    assert decode_state_record(*encoded) == record


def test_tombstone_has_a_snapshot_key_and_no_value() -> None:
    """BEHAVIOUR.md 26."""
    encoded = encode_state_record(StateTombstone(KEY))
    assert encoded == (bytes.fromhex("0000" + KEY_HEX), None)
    assert decode_state_record(*encoded) == StateTombstone(KEY)


def test_bytes_of_a_delta_and_its_tombstone() -> None:
    """BEHAVIOUR.md 33, 37: the index is the last field of the key, the value is that of an update."""
    key = bytes.fromhex("0001" + KEY_HEX + "ff02")
    assert encode_state_record(UPDATE._replace(delta_index=0xFF02)) == (key, bytes.fromhex(UPDATE_HEX))
    assert decode_state_record(key, bytes.fromhex(UPDATE_HEX)) == UPDATE._replace(delta_index=0xFF02)
    assert encode_state_record(StateTombstone(KEY, 0xFF02)) == (key, None)
    assert decode_state_record(key, None) == StateTombstone(KEY, 0xFF02)


def value(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal)


SNAPSHOT_KEY, UPDATE_KEY = bytes.fromhex("0000" + KEY_HEX), bytes.fromhex("0001" + KEY_HEX)
UPDATE_HEAD = "0000 00000002 00000007 0000000000000069"
BATCH = "000000000000006e 000000000000006e 04 0005"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(f"{UPDATE_HEAD} 02 {BATCH} 00 01 07 02 abcd", UPDATE, id="unknown tag of the value"),
        pytest.param(f"{UPDATE_HEAD} 02 {BATCH} 01 03 01 ff 00", UPDATE, id="unknown tag of a batch"),
        pytest.param(f"{UPDATE_HEAD} 01 02 00 04 00000000 05 00", COUNT_ONLY, id="unknown tag after the count"),
        pytest.param(f"{COUNT_ONLY_HEX} ffff", COUNT_ONLY, id="bytes after the message"),
        pytest.param(
            f"{UPDATE_HEAD} 01 01 8101 80 01" + "00" * 128,
            StateUpdate(KEY, 2, 7, 105),
            id="tag number and size of two bytes",
        ),
    ],
)
def test_unknown_tags_and_trailing_bytes_are_ignored(body: str, expected: StateRecord) -> None:
    """BEHAVIOUR.md 26."""
    assert decode_state_record(UPDATE_KEY, value(body)) == expected


@pytest.mark.parametrize("key", [b"\x00\x02", b"\xff\xff" + SNAPSHOT_KEY[2:]], ids=["type 2", "type -1"])
def test_unknown_key_type_is_none(key: bytes) -> None:
    """BEHAVIOUR.md 29."""
    assert decode_state_record(key, b"anything") is None
    assert decode_state_record(key, None) is None


@pytest.mark.parametrize(
    ("key", "body"),
    [
        pytest.param(UPDATE_KEY, None, id="a null update"),
        pytest.param(UPDATE_KEY, value("0001" + UPDATE_HEX.strip()[4:]), id="version 1 of an update"),
        pytest.param(SNAPSHOT_KEY, value("0001" + SNAPSHOT_HEX.strip()[4:]), id="version 1 of a snapshot"),
        pytest.param(UPDATE_KEY, b"", id="no version"),
        pytest.param(UPDATE_KEY, value(UPDATE_HEAD), id="no batches"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} 00 00"), id="null batches"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} 02 {BATCH}"), id="cut off before the tags of a batch"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} 02 {BATCH} 00"), id="cut off before the tags of the value"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} 03 {BATCH} 00 00"), id="fewer batches than announced"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} 01 01 00 04 0000"), id="count cut off"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} 01 01 00 02 0000"), id="count of two bytes"),
        pytest.param(UPDATE_KEY, value(f"{UPDATE_HEAD} ffffffffff01"), id="varint of six bytes"),
        pytest.param(SNAPSHOT_KEY[:-1], None, id="key cut off"),
        pytest.param(b"\x00", None, id="key without a type"),
        pytest.param(b"\x00\x00\xff\xff" + SNAPSHOT_KEY[4:], None, id="null group id"),
        pytest.param(SNAPSHOT_KEY.replace(b"g1", b"\xff\xfe"), None, id="group id is invalid UTF-8"),
    ],
)
def test_invalid_records_raise(key: bytes, body: bytes | None) -> None:
    """BEHAVIOUR.md 29."""
    with pytest.raises(UnreadableRecordError):
        decode_state_record(key, body)


def test_encoding_a_number_out_of_range_raises() -> None:
    with pytest.raises(struct.error):
        encode_state_record(SNAPSHOT._replace(snapshot_epoch=1 << 31))


INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
KEYS = st.builds(
    SharePartitionKey,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    st.binary(min_size=16, max_size=16).map(topic_id_from_bytes),
    INT32,
)
STATE_BATCHES = st.lists(
    st.builds(StateBatch, INT64, INT64, st.integers(-128, 127), st.integers(-(1 << 15), (1 << 15) - 1)), max_size=200
).map(tuple)
DELTA_INDEXES = st.integers(-1, 0xFFFF)
STAGES = st.none() | st.builds(Stage, INT32, st.integers(-(1 << 15), (1 << 15) - 1))
RECORDS: st.SearchStrategy[StateRecord] = st.one_of(
    st.builds(StateSnapshot, KEYS, INT32, INT32, INT32, INT64, INT64, INT64, STATE_BATCHES, INT32),
    st.builds(StateUpdate, KEYS, INT32, INT32, INT64, STATE_BATCHES, INT32, DELTA_INDEXES, STAGES),
    st.builds(StateTombstone, KEYS, DELTA_INDEXES),
)


@given(RECORDS)
def test_decoding_inverts_encoding(record: StateRecord) -> None:
    assert decode_state_record(*encode_state_record(record)) == record


@settings(max_examples=cases(100, 1_000))
@given(st.sampled_from([SNAPSHOT_KEY, UPDATE_KEY]), st.binary(max_size=80), st.booleans())
def test_any_bytes_decode_or_raise_unreadable_record_error(key: bytes, body: bytes, version_0: bool) -> None:
    try:
        record = decode_state_record(key, b"\x00\x00" + body if version_0 else body)
    except UnreadableRecordError:
        return
    assert isinstance(record, StateSnapshot | StateUpdate)


@pytest.mark.parametrize(
    ("count", "length"),
    [
        pytest.param(126, "7f", id="the greatest length in one byte"),
        pytest.param(127, "8001", id="the smallest length in two bytes"),
    ],
)
def test_array_length_of_one_and_two_bytes(count: int, length: str) -> None:
    record = StateUpdate(KEY, 2, 7, 105, tuple(StateBatch(i, i, 2, 1) for i in range(105, 105 + count)), 3)
    encoded = encode_state_record(record)
    body = b"".join(struct.pack(">qqbhx", *batch) for batch in record.state_batches)
    assert encoded.value == value(UPDATE_HEAD) + value(length) + body + value("01 00 04 00000003")
    assert decode_state_record(*encoded) == record


def test_kio_reads_the_batches() -> None:
    """kio generates its codec from Kafka's definitions; a request has the same struct."""
    encoded = encode_state_record(UPDATE).value
    assert encoded is not None
    batch, size = entity_reader(KioBatch)(encoded, 19)
    assert (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count) == (110, 110, 4, 5)
    assert size == 20
