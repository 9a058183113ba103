"""The records of `__transaction_state`, byte for byte as Kafka writes them at transaction.version 2.

A key is its type (int16, 0) and the transactional id in plain form; a value is its version (int16, 1) and a flexible
struct; a null value deletes the id. Source: Kafka's TransactionLogKey.json and TransactionLogValue.json.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.transactions.states import TransactionState
from shareq.model.ids import TopicPartition
from shareq.model.records import NO_PRODUCER_ID, CoordinatorRecord

_KEY_TYPE = 0
_VALUE_VERSION = 1
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_VERSION = 0, 1, 2
_INT64 = struct.Struct(">q")
_INT16 = struct.Struct(">h")
_STATES = tuple(TransactionState)


class Transaction(NamedTuple):
    """The durable state of a transactional id. Times in ms since the epoch; `start_ms` is -1 without transaction.

    `next_producer_id`, in Prepare*: the producer id after completion, if the epochs of the present id are used up.
    `previous_producer_id`: the id before the present one. `client_version`: the transaction.version that the client
    uses.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    last_update_ms: int = -1
    start_ms: int = -1
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    def next_pair(self) -> tuple[int, int]:
        """Producer id and epoch after the decided transaction is complete."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch


def encode_key(transactional_id: str) -> bytes:
    return Writer().int16(_KEY_TYPE).string(transactional_id).finish()


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """The record that deletes a transactional id."""
    return CoordinatorRecord(encode_key(transactional_id), None)


def encode_transaction(transaction: Transaction) -> CoordinatorRecord:
    """The record of a transactional id. In Empty the partitions are written as null, as in Kafka."""
    writer = Writer().int16(_VALUE_VERSION)
    writer.int64(transaction.producer_id).int16(transaction.producer_epoch)
    writer.int32(transaction.timeout_ms).int8(transaction.state.status)
    if transaction.state is TransactionState.EMPTY:
        writer.uvarint(0)
    else:
        writer.array(by_topic(transaction.partitions), _write_topic)
    writer.int64(transaction.last_update_ms).int64(transaction.start_ms).tags(_tags(transaction))
    return CoordinatorRecord(encode_key(transaction.transactional_id), writer.finish())


def by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, tuple[int, ...]]]:
    """Partitions grouped by topic, topics and partitions ascending."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [(topic, tuple(indexes)) for topic, indexes in topics.items()]


def _write_topic(writer: Writer, topic: tuple[str, tuple[int, ...]]) -> None:
    writer.compact_string(topic[0]).int32s(topic[1]).tags()


def _tags(transaction: Transaction) -> list[tuple[int, bytes]]:
    """The tagged fields that differ from their defaults."""
    tags: list[tuple[int, bytes]] = []
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        tags.append((_PREVIOUS_PRODUCER_ID, _INT64.pack(transaction.previous_producer_id)))
    if transaction.next_producer_id != NO_PRODUCER_ID:
        tags.append((_NEXT_PRODUCER_ID, _INT64.pack(transaction.next_producer_id)))
    if transaction.client_version:
        tags.append((_CLIENT_VERSION, _INT16.pack(transaction.client_version)))
    return tags


def decode_transaction(key: bytes, value: bytes | None) -> tuple[str, Transaction | None] | None:
    """The transactional id and its state, None for a tombstone. None instead of both if the key type is unknown.

    Raises UnreadableRecordError if the version of the value is unknown or the bytes are invalid.
    """
    reader = Reader(key)
    if reader.int16() != _KEY_TYPE:
        return None
    transactional_id = reader.string()
    if value is None:
        return transactional_id, None
    try:
        return transactional_id, _decode_value(transactional_id, Reader(value))
    except struct.error as error:
        raise UnreadableRecordError(f"{transactional_id}: {error}") from error


def _decode_value(transactional_id: str, reader: Reader) -> Transaction:
    version = reader.int16()
    if version != _VALUE_VERSION:
        raise UnreadableRecordError(
            f"{transactional_id}: record version {version} is unknown; allowed is {_VALUE_VERSION}"
        )
    producer_id, epoch, timeout_ms, status = reader.int64(), reader.int16(), reader.int32(), reader.int8()
    if not 0 <= status < len(_STATES):
        raise UnreadableRecordError(
            f"{transactional_id}: status {status} is unknown; allowed are 0 to {len(_STATES) - 1}"
        )
    partitions = frozenset(partition for topic in reader.array(_read_topic) for partition in topic)
    last_update_ms, start_ms, tags = reader.int64(), reader.int64(), reader.tags()
    return Transaction(
        transactional_id,
        producer_id,
        epoch,
        timeout_ms,
        _STATES[status],
        partitions,
        last_update_ms,
        start_ms,
        _INT64.unpack(tags[_PREVIOUS_PRODUCER_ID])[0] if _PREVIOUS_PRODUCER_ID in tags else NO_PRODUCER_ID,
        _INT64.unpack(tags[_NEXT_PRODUCER_ID])[0] if _NEXT_PRODUCER_ID in tags else NO_PRODUCER_ID,
        _INT16.unpack(tags[_CLIENT_VERSION])[0] if _CLIENT_VERSION in tags else 0,
    )


def _read_topic(reader: Reader) -> list[TopicPartition]:
    topic, indexes = reader.compact_string(), reader.int32s()
    reader.tags()
    return [TopicPartition(topic, index) for index in indexes]
