"""The base of every protocol message: frozen, slotted, keyword-only.

Messages have the names of Kafka's protocol, with fields in snake case; nested structs are nested classes
(`ShareFetchRequest.Partition`). They carry no version: fields that a version lacks keep their defaults.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar, dataclass_transform

from shareq.model.frozen import frozen

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def message(cls: type[T]) -> type[T]:
    """Decorator of messages and of their nested structs."""
    made: Any = frozen(cls)
    made.__repr__ = _repr
    result: type[T] = made
    return result


def _repr(self: Any) -> str:
    hidden = getattr(type(self), "SECRETS", ())
    shown = {name: getattr(self, name) for name in self.__match_args__}
    values = ", ".join([f"{n}=<{len(v)} B>" if n in hidden else f"{n}={v!r}" for n, v in shown.items()])
    return f"{type(self).__qualname__}({values})"


class Request:
    """Base of all requests; `API_KEY` is the same as that of the response class."""

    __slots__ = ()
    API_KEY: ClassVar[int]


class Response:
    """Base of all responses. Most leave `throttle_time_ms` out: the server counts most quotas, and writes it."""

    __slots__ = ()
