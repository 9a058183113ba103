"""The records of `__transaction_state`: bytes as Apache Kafka 4.3 writes them, round trips, and invalid records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.transactions.records import (
    Transaction,
    decode_transaction,
    encode_key,
    encode_transaction,
    tombstone,
)
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.ids import TopicPartition

S = TransactionState
KEY = bytes.fromhex("0000000a7061796d656e74732d31")
UPDATED_MS, STARTED_MS = 1_700_000_000_123, 1_700_000_000_100

EMPTY = Transaction("payments-1", 1000, 3, 60_000, last_update_ms=UPDATED_MS)
ONGOING = EMPTY._replace(
    state=S.ONGOING,
    partitions=frozenset(
        {TopicPartition("orders", 2), TopicPartition("orders", 0), TopicPartition("__consumer_offsets", 7)}
    ),
    start_ms=STARTED_MS,
    client_version=2,
)
ROTATING = ONGOING._replace(
    state=S.PREPARE_COMMIT,
    partitions=frozenset(),
    producer_epoch=32767,
    previous_producer_id=12,
    next_producer_id=2000,
)

KAFKA_BYTES = [
    pytest.param(
        EMPTY,
        "000100000000000003e800030000ea6000000000018bcfe5687bffffffffffffffff00",
        id="Empty: null partitions, no tags",
    ),
    pytest.param(
        ONGOING,
        "000100000000000003e800030000ea600103135f5f636f6e73756d65725f6f666673657473020000000700"
        "076f7264657273030000000000000002000000018bcfe5687b0000018bcfe568640102020002",
        id="Ongoing: partitions by topic, client version",
    ),
    pytest.param(
        ROTATING,
        "000100000000000003e87fff0000ea6002010000018bcfe5687b0000018bcfe56864"
        "030008000000000000000c010800000000000007d002020002",
        id="PrepareCommit: no partitions, previous and next producer id",
    ),
]


@pytest.mark.parametrize(("transaction", "expected"), KAFKA_BYTES)
def test_bytes_are_those_of_kafka(transaction: Transaction, expected: str) -> None:
    key, value = encode_transaction(transaction)
    assert key == KEY
    assert value is not None
    assert value.hex() == expected
    assert decode_transaction(KEY, bytes.fromhex(expected)) == ("payments-1", transaction)


def test_tombstone_has_no_value() -> None:
    assert tombstone("payments-1") == (KEY, None)
    assert decode_transaction(KEY, None) == ("payments-1", None)


def test_key_of_another_type_is_skipped() -> None:
    assert decode_transaction(b"\x00\x01" + KEY[2:], b"whatever") is None


def test_unknown_tags_are_ignored() -> None:
    value = encode_transaction(EMPTY).value
    assert value is not None
    later = value[:-1] + bytes.fromhex("01" + "03" + "02" + "0005")
    assert decode_transaction(KEY, later) == ("payments-1", EMPTY)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(b"", None, id="a key without a type"),
        pytest.param(b"\x00\x00\x00\x09abc", None, id="a key that ends early"),
        pytest.param(KEY, b"", id="a value without a version"),
        pytest.param(KEY, b"\x00\x02" + bytes(40), id="an unknown version"),
        pytest.param(KEY, bytes.fromhex("000100000000000003e800030000ea60"), id="a value that ends early"),
        pytest.param(KEY, bytes.fromhex("000100000000000003e800030000ea6007") + bytes(20), id="an unknown status"),
        pytest.param(
            KEY,
            bytes.fromhex("000100000000000003e800030000ea6000000000018bcfe5687bffffffffffffffff01000100"),
            id="a tag of the wrong size",
        ),
    ],
)
def test_invalid_records_raise(key: bytes, value: bytes | None) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_transaction(key, value)


_int64 = st.integers(-1, (1 << 63) - 1)
_partitions = st.frozensets(
    st.builds(TopicPartition, st.text(min_size=1, max_size=20).filter(lambda t: t.isprintable()), st.integers(0, 99)),
    max_size=6,
)


@given(
    st.builds(
        Transaction,
        transactional_id=st.text(max_size=30).filter(str.isprintable),
        producer_id=_int64,
        producer_epoch=st.integers(-1, 32767),
        timeout_ms=st.integers(0, (1 << 31) - 1),
        state=st.sampled_from([s for s in S if s is not S.EMPTY]),
        partitions=_partitions,
        last_update_ms=_int64,
        start_ms=_int64,
        previous_producer_id=_int64,
        next_producer_id=_int64,
        client_version=st.integers(0, 2),
    )
)
def test_decoding_inverts_encoding(transaction: Transaction) -> None:
    record = encode_transaction(transaction)
    assert record.key == encode_key(transaction.transactional_id)
    assert decode_transaction(*record) == (transaction.transactional_id, transaction)
