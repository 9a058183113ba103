"""How `shareq consume` prints records: the formatters and deserializers of Kafka's console consumers, by their names.

Other classes would need a JVM. Source: Kafka 4.4's DefaultMessageFormatter.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import click

from shareq.client.message import Message

Deserializer = Callable[[bytes], bytes]
"""The text of the bytes of a key or value. ValueError: they have another form."""

_TIMESTAMPS = ("NO_TIMESTAMP", "CreateTime", "LogAppendTime")


class Formatter(Protocol):
    def write(self, message: Message) -> bytes:
        """What is printed of a message, its line end included. ValueError: a part cannot be deserialized."""
        ...


def _number(name: str, size: int) -> Deserializer:
    def deserialize(data: bytes) -> bytes:
        if len(data) != size:
            raise ValueError(f"Size of data received by {name}Deserializer is not {size}")
        return b"%d" % int.from_bytes(data, "big", signed=True)

    return deserialize


def _boolean(data: bytes) -> bytes:
    if data not in (b"\0", b"\1"):
        raise ValueError("BooleanDeserializer: must be one byte, 0 or 1")
    return b"true" if data == b"\1" else b"false"


def _utf8(data: bytes) -> bytes:
    """Java replaces what is no UTF-8."""
    return data.decode(errors="replace").encode()


DESERIALIZERS: dict[str, Deserializer] = {
    "String": _utf8,
    "ByteArray": bytes,
    "Bytes": bytes,
    "Short": _number("Short", 2),
    "Integer": _number("Integer", 4),
    "Long": _number("Long", 8),
    "Boolean": _boolean,
    "UUID": lambda data: str(uuid.UUID(data.decode())).encode(),
}
_PACKAGE = "org.apache.kafka.common.serialization."


def deserializer_of(name: str) -> Deserializer:
    """By its class name, with or without package. UsageError for others."""
    found = DESERIALIZERS.get(name.removeprefix(_PACKAGE).removesuffix("Deserializer"))
    if found is None:
        known = ", ".join(f"{short}Deserializer" for short in DESERIALIZERS)
        raise click.UsageError(f"deserializer {name}: must be one of {known}; other classes need Java")
    return found


@dataclass(frozen=True, slots=True)
class DefaultFormatter:
    """The parts of a record that are printed, in the order of _PARTS."""

    parts: frozenset[str] = frozenset({"value"})
    key_separator: bytes = b"\t"
    line_separator: bytes = b"\n"
    headers_separator: bytes = b","
    null: bytes = b"null"
    deserializers: Mapping[str, Deserializer] = field(default_factory=dict)

    def write(self, message: Message) -> bytes:
        cells = [show(self, message) for part, show in _PARTS.items() if part in self.parts]
        return self.key_separator.join(cells) + self.line_separator if cells else b""

    def text(self, part: str, data: bytes | None) -> bytes:
        if data is None:
            return self.null
        deserializer = self.deserializers.get(part)
        return data if deserializer is None else deserializer(data)


def _timestamp(formatter: DefaultFormatter, message: Message) -> bytes:
    del formatter
    kind, timestamp = message.timestamp()
    return f"{_TIMESTAMPS[kind]}:{timestamp}".encode() if kind else b"NO_TIMESTAMP"


def _headers(formatter: DefaultFormatter, message: Message) -> bytes:
    found = [name.encode() + b":" + formatter.text("headers", value) for name, value in message.headers() or ()]
    return formatter.headers_separator.join(found) if found else b"NO_HEADERS"


_PARTS: dict[str, Callable[[DefaultFormatter, Message], bytes]] = {
    "timestamp": _timestamp,
    "partition": lambda _, message: b"Partition:%d" % (message.partition() or 0),
    "offset": lambda _, message: b"Offset:%d" % (message.offset() or 0),
    "delivery": lambda _, message: b"Delivery:%d" % (message.delivery_count() or 0),
    "epoch": lambda _, message: b"Epoch:%d" % (message.leader_epoch() or 0),
    "headers": _headers,
    "key": lambda formatter, message: formatter.text("key", message.key()),
    "value": lambda formatter, message: formatter.text("value", message.value()),
}


class NoOpFormatter:
    """Prints nothing."""

    def write(self, message: Message) -> bytes:
        del message
        return b""


class JsonFormatter:
    """An object a line. Bytes that are no UTF-8 have replacement characters."""

    def __init__(self, deserializers: Mapping[str, Deserializer]) -> None:
        self._deserializers = deserializers

    def write(self, message: Message) -> bytes:
        kind, timestamp = message.timestamp()
        row = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp_type": _TIMESTAMPS[kind],
            "timestamp": timestamp,
            "delivery_count": message.delivery_count(),
            "leader_epoch": message.leader_epoch(),
            "headers": [[name, self._text("headers", value)] for name, value in message.headers() or ()],
            "key": self._text("key", message.key()),
            "value": self._text("value", message.value()),
        }
        return json.dumps(row).encode() + b"\n"

    def _text(self, part: str, data: bytes | None) -> str | None:
        if data is None:
            return None
        return self._deserializers.get(part, bytes)(data).decode(errors="replace")


_SEPARATORS = ("key.separator", "line.separator", "headers.separator", "null.literal")
_DECODED = ("key", "value", "headers")


def formatter_of(name: str, properties: Mapping[str, str], *, as_json: bool) -> Formatter:
    """The formatter of a class name, with or without package. UsageError for other classes and properties."""
    short = name.rpartition(".")[2]
    if short == "NoOpMessageFormatter":
        return NoOpFormatter()
    if short != "DefaultMessageFormatter":
        raise click.UsageError(
            f"--formatter {name}: must be DefaultMessageFormatter or NoOpMessageFormatter; other classes need Java"
        )
    given = dict(properties)
    deserializers = {
        part: deserializer_of(given.pop(f"{part}.deserializer")) for part in _DECODED if f"{part}.deserializer" in given
    }
    if as_json:
        return JsonFormatter(deserializers)
    known = [*(f"print.{part}" for part in _PARTS), *_SEPARATORS, *(f"{part}.deserializer" for part in _DECODED)]
    shown = {part: given.pop(f"print.{part}", str(part == "value")).strip().lower() == "true" for part in _PARTS}
    made = DefaultFormatter(
        frozenset(part for part, is_shown in shown.items() if is_shown),
        given.pop("key.separator", "\t").encode(),
        given.pop("line.separator", "\n").encode(),
        given.pop("headers.separator", ",").encode(),
        given.pop("null.literal", "null").encode(),
        deserializers,
    )
    if given:
        raise click.UsageError(
            f"--formatter-property {next(iter(given))}: is not a property of {short}, which has {', '.join(known)}"
        )
    return made
