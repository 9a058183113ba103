"""What every protocol message is: frozen, slotted, keyword-only.

Messages are named as Kafka's protocol names them, fields in snake case; nested structs are nested classes
(`ShareFetchRequest.Partition`). They carry no version: fields that a version lacks keep their defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Decorator of messages and of their nested structs."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


class Request:
    """Base of all requests; `API_KEY` and the class that answers it tie the two together."""

    __slots__ = ()
    API_KEY: ClassVar[int]


class Response:
    """Base of all responses. `throttle_time_ms` is 0 without quotas and is left to the wire."""

    __slots__ = ()
