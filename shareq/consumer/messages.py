"""What one poll returned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, overload

from shareq.client.message import Message

SHOWN = 20
"""How many messages the HTML table of a notebook shows."""


class Messages(Sequence[Message]):
    """A read-only sequence of messages; a slice is `Messages` too. Compared by identity, as in confluent-kafka."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages = messages if isinstance(messages, list) else list(messages)

    def records(self) -> list[Message]:
        """A copy of the messages as a list."""
        return list(self._messages)

    def is_empty(self) -> bool:
        return not self._messages

    def count(self, value: Any = None) -> int:
        """How many messages there are; with a message, how often it is among them, as every sequence tells."""
        return len(self._messages) if value is None else self._messages.count(value)

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Messages: ...
    def __getitem__(self, index: int | slice) -> Message | Messages:
        found = self._messages[index]
        return Messages(found) if isinstance(found, list) else found

    def __repr__(self) -> str:
        return f"Messages({self._messages!r})"

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{name}</th>" for name in ("topic", "partition", "offset", "delivery", "key", "value", ""))
        rows = "".join(_row(message) for message in self._messages[:SHOWN])
        more = len(self._messages) - SHOWN
        rest = f"<p>… and {more} more</p>" if more > 0 else ""
        return f"<p>{len(self._messages)} messages</p><table><tr>{heads}</tr>{rows}</table>{rest}"


def _row(message: Message) -> str:
    headers = ", ".join(f"{name}={_text(value)}" for name, value in message.headers() or ())
    error = message.error()
    note = headers if error is None else error.str()
    places = (message.topic(), message.partition(), message.offset(), message.delivery_count())
    cells = [*map(str, places), _text(message.key()), _text(message.value()), note]
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _text(value: object) -> str:
    """Bytes as text where they are text, shortened."""
    value = "" if value is None else value
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= 60 else text[:57] + "…"
