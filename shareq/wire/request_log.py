"""The log of the requests that a server has answered: one line each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from shareq.model.errors import Errors
from shareq.model.printable import printable


class ServedRequest(NamedTuple):
    """A request and its result. `time_ms`: the cluster's time of the response; sizes are in bytes without the size
    prefix; `answer`: "ok", the names of the errors in the response, or why there is none."""

    time_ms: int
    peer: str
    broker_id: int
    client_id: str
    api: str
    version: int
    request_size: int
    response_size: int
    answer: str
    duration_ms: float

    def __str__(self) -> str:
        time = datetime.fromtimestamp(self.time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        return (
            f"{time} {self.peer} -> {self.broker_id} {printable(self.client_id) or '-'} {self.api} v{self.version} "
            f"{self.request_size} B: {self.answer}, {self.response_size} B, {self.duration_ms:.1f} ms"
        )


def errors_of(message: object) -> tuple[Errors, ...]:
    """The different errors in a response, at any depth, in order of first appearance."""
    return tuple(dict.fromkeys(_errors(message)))


def _errors(value: Any) -> Iterator[Errors]:
    if isinstance(value, Errors):
        if value:
            yield value
    elif type(value) is tuple:
        for one in value:
            yield from _errors(one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _errors(getattr(value, name))
