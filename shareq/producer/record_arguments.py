"""Checks and conversions of the arguments of `produce`, before the record is queued."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from shareq.client.arguments import INT32_MAX, INT64_MAX, utf8_length, whole
from shareq.log.records import Headers
from shareq.model.errors import KafkaError, KafkaException


def content_bytes(what: str, value: object) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as why:
            raise ValueError(f"{what}={value!r:.100}: must be text that UTF-8 can encode ({why.reason})") from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{what} must be bytes, str or None, not {type(value).__name__}")


def checked_arguments(partition: object, timestamp: object, on_delivery: object) -> tuple[int, int]:
    """Partition and timestamp as integers; a timestamp of None is 0."""
    if on_delivery is not None and not callable(on_delivery):
        raise TypeError(f"on_delivery must be callable, not {type(on_delivery).__name__}")
    try:
        return whole("partition", partition, -1, INT32_MAX), whole("timestamp", timestamp or 0, 0, INT64_MAX)
    except ValueError as why:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, str(why))) from None


def record_headers(headers: object) -> Headers:
    """Pairs of name and value from a dict or a list of pairs. A name may be UTF-8 bytes, as in confluent-kafka."""
    if not isinstance(headers, (Mapping, list, tuple)):
        raise TypeError(f"headers must be a dict or a list of (name, value) pairs, not {type(headers).__name__}")
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple([pair if _is_plain(pair) else _header(pair) for pair in pairs])


def _is_plain(pair: object) -> TypeGuard[tuple[str, bytes]]:
    """True if the pair needs no conversion, the usual case."""
    if pair.__class__ is not tuple or len(pair) != 2:
        return False
    name, value = pair
    return name.__class__ is str and value.__class__ is bytes and name.isascii()


def headers_size(headers: Headers) -> int:
    """The bytes of names and values, which count against message.max.bytes."""
    return sum([len(name.encode()) + len(value or b"") for name, value in headers])


def _header(pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"headers must be (name, value) pairs, not {pair!r:.100}")
    name, value = pair
    if isinstance(name, bytes):
        try:
            name = name.decode()
        except UnicodeDecodeError as why:
            raise ValueError(f"header name {name!r:.100}: must be UTF-8 ({why.reason})") from None
    if not isinstance(name, str):
        raise TypeError(f"the name of a header must be a str, not {type(name).__name__}")
    utf8_length("header name", name)
    return name, content_bytes(f"header {name!r}", value)
