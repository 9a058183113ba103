"""The rows of the messages picture: one for each message, or one for many equal messages of members without a lifeline
of their own."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from shareq_widgets.pictures.messages_columns import Column
from shareq_widgets.pictures.messages_content import MessagesContent, ShownExchange


class MessageRow(NamedTuple):
    """A request or a response of each of `exchanges`: one, or several equal ones. `order` and `time_ms`: of the first
    request, or of the last response."""

    order: int
    time_ms: int
    exchanges: tuple[ShownExchange, ...]
    is_response: bool

    @property
    def one(self) -> ShownExchange:
        """The exchange, or the first one."""
        return self.exchanges[0]

    @property
    def key(self) -> str:
        return f"{self.one.number} {'response' if self.is_response else 'request'}"

    @property
    def times(self) -> str:
        """The number of messages in front of the words; "" for one."""
        return f"{len(self.exchanges)} × " if len(self.exchanges) > 1 else ""


def rows(content: MessagesContent, columns: Mapping[str, Column]) -> list[MessageRow]:
    """The messages in their order. Equal exchanges of a shared column without another message between them are one."""
    single = [MessageRow(*one.sent, (one,), False) for one in content.exchanges]
    single += [MessageRow(*one.answered, (one,), True) for one in content.exchanges if one.answered]
    single.sort(key=lambda row: row.order)
    kept = () if content.detail is None else (content.detail.number,)
    found: list[MessageRow] = []
    for likeness, group in groupby(single, key=lambda row: _likeness(row.one, columns, kept)):
        run = list(group)
        found += run if likeness is None else _folded(run)
    return sorted(found, key=lambda row: row.order)


def _likeness(one: ShownExchange, columns: Mapping[str, Column], kept: Container[int]) -> tuple[str, ...] | None:
    """What equal exchanges have in common; None for one with rows of its own: of a member with a lifeline, selected,
    failed, lost or without a response."""
    own = columns[one.source].members == 1 or one.number in kept
    if own or one.errors or one.lost or one.answered is None:
        return None
    return one.api, columns[one.target].key, one.label, one.answer


def _folded(run: Sequence[MessageRow]) -> Iterator[MessageRow]:
    """The rows of equal exchanges: one request and one response for those that are complete in the run."""
    ends = {row.one.number for row in run if row.is_response}
    whole = tuple(row.one for row in run if not row.is_response and row.one.number in ends)
    if len(whole) < 2:
        yield from run
        return
    numbers = {one.number for one in whole}
    yield from (row for row in run if row.one.number not in numbers)
    yield MessageRow(*whole[0].sent, whole, False)
    yield MessageRow(*max(one.answered for one in whole if one.answered), whole, True)
