"""One record as an application sees it, in confluent-kafka's shape."""

from __future__ import annotations

from typing import Any, NamedTuple

from shareq.log.records import Record
from shareq.model.errors import KafkaError

TIMESTAMP_NOT_AVAILABLE = 0
TIMESTAMP_CREATE_TIME = 1
TIMESTAMP_LOG_APPEND_TIME = 2


class Origin(NamedTuple):
    """The fields that all records of a delivered run share, so that a message costs two references."""

    topic: str | None = None
    partition: int | None = None
    delivery_count: int | None = None
    leader_epoch: int | None = None
    error: KafkaError | None = None
    latency: float | None = None


class Fields(NamedTuple):
    """The fields of a record that was not decoded: built by hand, or changed by a setter."""

    offset: int | None = None
    key: Any = None
    value: Any = None
    headers: Any = None
    timestamp: int = 0
    timestamp_type: int | None = None


class Message:
    """A record and its origin. `error()` is None for a readable one; `delivery_count()` starts at 1."""

    __slots__ = ("_origin", "_record")

    _origin: Origin
    _record: Record | Fields

    def __init__(
        self,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        key: Any = None,
        value: Any = None,
        *,
        headers: Any = None,
        error: KafkaError | None = None,
        timestamp: tuple[int, int] | None = None,
        latency: float | None = None,
        leader_epoch: int | None = None,
        delivery_count: int | None = None,
    ) -> None:
        kind, when = timestamp or (TIMESTAMP_NOT_AVAILABLE, 0)
        self._origin = Origin(topic, partition, delivery_count, leader_epoch, error, latency)
        self._record = Fields(offset, key, value, headers, when, kind - 1 if kind else None)

    def topic(self) -> str | None:
        """Name of the topic."""
        return self._origin.topic

    def partition(self) -> int | None:
        """Number of the partition."""
        return self._origin.partition

    def offset(self) -> int | None:
        """Offset of the record in its partition."""
        return self._record.offset

    def key(self) -> Any:
        """The key: bytes, or None if the record has none; after a deserializer, what that returned."""
        return self._record.key

    def value(self) -> Any:
        """The value: bytes, or None for a tombstone; after a deserializer, what that returned."""
        return self._record.value

    deserialized_key = key
    deserialized_value = value

    def headers(self) -> Any:
        """A list of (name, bytes or None) in order, or None where there is no header."""
        return self._record.headers or None

    def error(self) -> KafkaError | None:
        """The error of a delivery report or of a message that could not be read; None if there is none."""
        return self._origin.error

    def timestamp(self) -> tuple[int, int]:
        """(type, ms since the epoch); the type is one of the TIMESTAMP_ constants."""
        kind = self._record.timestamp_type
        return (TIMESTAMP_NOT_AVAILABLE, 0) if kind is None else (kind + 1, self._record.timestamp)

    def latency(self) -> float | None:
        """Seconds from produce to its acknowledgement, on delivery reports only."""
        return self._origin.latency

    def leader_epoch(self) -> int | None:
        """Leader epoch of the record batch; None if unknown."""
        return self._origin.leader_epoch

    def delivery_count(self) -> int | None:
        """Number of deliveries of the record in its share group, this one included; None outside of share groups."""
        return self._origin.delivery_count

    def _changing(self) -> None:
        """Called before a change, for the sequence that created the message."""

    def set_key(self, key: Any) -> None:
        """Replace the key, as a deserializer does."""
        self._record = self._fields()._replace(key=key)

    def set_value(self, value: Any) -> None:
        """Replace the value, as a deserializer does."""
        self._record = self._fields()._replace(value=value)

    def set_headers(self, headers: Any) -> None:
        """Replace the headers: a list of (name, bytes) or None."""
        self._record = self._fields()._replace(headers=headers)

    def set_topic(self, topic: str | None) -> None:
        """Replace the topic's name."""
        self._changing()
        self._origin = self._origin._replace(topic=topic)

    def set_error(self, error: KafkaError | None) -> None:
        """Replace the error."""
        self._changing()
        self._origin = self._origin._replace(error=error)

    def _fields(self) -> Fields:
        """The record's fields, to be changed."""
        self._changing()
        return self._content()

    def _content(self) -> Fields:
        record = self._record
        if isinstance(record, Fields):
            return record
        return Fields(record.offset, record.key, record.value, record.headers, record.timestamp, record.timestamp_type)

    def __len__(self) -> int:
        value = self._record.value
        return 0 if value is None else len(value)

    def __repr__(self) -> str:
        topic, partition, count, _, error, _ = self._origin
        where = f"{topic!r}, {partition}, {self._record.offset}"
        counted = "" if count is None else f", delivery_count={count}"
        failed = "" if error is None else f", error={error}"
        return f"Message({where}, key={self._record.key!r}, value={self._record.value!r}{counted}{failed})"


class ReceivedMessage(Message):
    """A message of a decoded record: two references, because there are many."""

    __slots__ = ()

    def __init__(self, record: Record | Fields, origin: Origin) -> None:
        self._record = record
        self._origin = origin

    def __eq__(self, other: object) -> bool:
        """True for a message of the same record, delivered at the same time, with the same content."""
        if not isinstance(other, ReceivedMessage):
            return NotImplemented
        return self._origin == other._origin and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._record.offset)

    def __reduce__(self) -> tuple[type[ReceivedMessage], tuple[Fields, Origin]]:
        """For pickle and copy: the record without the batch that it came in."""
        return ReceivedMessage, (self._content(), self._origin)
