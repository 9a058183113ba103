"""The messages of one poll."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Self, overload

from shareq.client.message import Message
from shareq.model.printable import escape

SHOWN = 20
"""The number of messages in the HTML table of a notebook."""


class Messages(Sequence[Message]):
    """A read-only sequence of messages; a slice is `Messages` too. Compared by identity, as in confluent-kafka.

    Messages are created on access, so that unread ones cost nothing.
    """

    __slots__ = ("_ends", "_runs")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._runs: list[Sequence[Message]] = [list(messages)]
        self._ends = [len(self._runs[0])]

    @classmethod
    def of(cls, runs: list[Sequence[Message]]) -> Self:
        """The messages of several sequences, concatenated."""
        made = cls()
        made._runs = runs
        made._ends = list(accumulate(map(len, runs)))
        return made

    def records(self) -> list[Message]:
        """A copy of the messages as a list."""
        return list(self)

    def is_empty(self) -> bool:
        """True if the poll returned no message."""
        return not len(self)

    def count(self, value: Any = None) -> int:
        """The number of messages; with an argument, the occurrences of that message, as in every sequence."""
        return len(self) if value is None else super().count(value)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Message]:
        return chain.from_iterable(self._runs)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Messages: ...
    def __getitem__(self, index: int | slice) -> Message | Messages:
        if isinstance(index, slice):
            return Messages(list(self)[index])
        at = range(len(self))[index]
        run = bisect_right(self._ends, at)
        return self._runs[run][at - self._ends[run]]  # counted from the run's end

    def __repr__(self) -> str:
        return f"Messages({list(self)!r})"

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{name}</th>" for name in ("topic", "partition", "offset", "delivery", "key", "value", ""))
        rows = "".join(_row(message) for message in self[:SHOWN])
        more = len(self) - SHOWN
        rest = f"<p>… and {more} more</p>" if more > 0 else ""
        return f"<p>{len(self)} messages</p><table><tr>{heads}</tr>{rows}</table>{rest}"


def _row(message: Message) -> str:
    headers = ", ".join(f"{name}={_text(value)}" for name, value in message.headers() or ())
    error = message.error()
    note = headers if error is None else error.str()
    places = (message.topic(), message.partition(), message.offset(), message.delivery_count())
    cells = [*map(str, places), _text(message.key()), _text(message.value()), note]
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _text(value: object) -> str:
    """Text or decoded bytes, at most 60 characters."""
    value = "" if value is None else value
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
