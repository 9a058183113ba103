"""The format that records of share groups and of consumer groups share: a key holds the group id, and for most types a
member id or an expression; a value is one struct of version 0. Source: Kafka's *GroupMetadataKey.json,
ShareGroup*Key.json and their values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.records import CoordinatorRecord

Type = TypeVar("Type", bound=IntEnum)
Value = TypeVar("Value")


class DecodedRecord(NamedTuple, Generic[Type, Value]):
    """A decoded record: `value` None is a tombstone. `name` is a member id or an expression, "" if the key has none."""

    type: Type
    group_id: str
    name: str
    value: Value | None


class RecordCodec(Generic[Type, Value]):
    """Writes and reads the records with a key type in `types`; keys with a type in `named` have a name after the
    group."""

    def __init__(
        self,
        types: type[Type],
        named: Collection[Type],
        write: Mapping[type, tuple[Type, Callable[..., None]]],
        read: Mapping[Type, Callable[[Reader], Value]],
    ) -> None:
        self._types = types
        self._named = frozenset(named)
        self._write = write
        self._read = read

    def encode(self, group_id: str, value: Value, name: str = "") -> CoordinatorRecord:
        """The record that sets `value`; `name` for the types that have one in the key."""
        record_type, write = self._write[type(value)]
        out = Writer().int16(0)
        write(out, value)
        return CoordinatorRecord(self._key(record_type, group_id, name), out.finish())

    def tombstone(self, record_type: Type, group_id: str, name: str = "") -> CoordinatorRecord:
        """The tombstone of the key."""
        return CoordinatorRecord(self._key(record_type, group_id, name), None)

    def _key(self, record_type: Type, group_id: str, name: str) -> bytes:
        out = Writer().int16(record_type).string(group_id)
        if record_type in self._named:
            assert name, f"the key of a {record_type.name} record needs a name"
            out.string(name)
        return out.finish()

    def decode(self, key: bytes, value: bytes | None) -> DecodedRecord[Type, Value]:
        """The record. Raises UnreadableRecordError if it is invalid; its type must be one of `types`."""
        given = Reader(key)
        record_type = self._types(given.int16())
        group_id = given.string()
        name = given.string() if record_type in self._named else ""
        if value is None:
            return DecodedRecord(record_type, group_id, name, None)
        body = Reader(value)
        version = body.int16()
        if version != 0:
            raise UnreadableRecordError(f"{record_type.name} has version {version}; must be 0")
        return DecodedRecord(record_type, group_id, name, self._read[record_type](body))
