"""Checks of the arguments of a client's calls, before anything is queued or sent.

TypeError for a value of another type, ValueError for one out of range; the message names the argument, the value and
what is allowed. The limits are those of Kafka's protocol, so that what passes here can be encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, SupportsIndex, TypeVar

from shareq.model.numbers import plain

INT16_MAX = (1 << 15) - 1
INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1

T = TypeVar("T")


def whole(what: str, value: object, low: int, high: int) -> int:
    """An integer of low..high, of any type that can be an index, except bool."""
    number = plain(value)
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        raise TypeError(f"{what} must be an int, not {type(value).__name__} ({value!r:.100})")
    number = index(number)
    if not low <= number <= high:
        raise ValueError(f"{what}={value!r}: must be {low}..{high}")
    return number


def text(what: str, value: object, *, empty: bool = False) -> str:
    """A str that fits into UTF-8 and the protocol's 16-bit length; `empty` allows ""."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    if not value and not empty:
        raise ValueError(f"{what} must not be empty")
    if utf8_length(what, value) > INT16_MAX:
        raise ValueError(f"{what} of {len(value)} characters: must be at most {INT16_MAX} bytes in UTF-8")
    return value


def utf8_length(what: str, value: str) -> int:
    """The length of the text in bytes. ValueError for a lone surrogate."""
    try:
        return len(value.encode())
    except UnicodeEncodeError as why:
        raise ValueError(f"{what}={value!r}: must be text that UTF-8 can encode ({why.reason})") from None


def items(what: str, values: Iterable[T]) -> list[T]:
    """The elements of a list or another iterable, but not the characters of a str or bytes."""
    if isinstance(values, (str, bytes, bytearray)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a list, not {values!r}")
    return list(values)


def mapping(what: str, values: Mapping[Any, T]) -> dict[Any, T]:
    if not isinstance(values, Mapping):
        raise TypeError(f"{what} must be a dict, not {type(values).__name__}")
    return dict(values)
