"""The places in a timeline that can concern one offset: a long timeline is not read for the few changes of a record.

Each block of entries has the ranges of the offsets that it changes and appends, and the greatest SPSO that it moves to.
The other entries, such as loads, are rare; a block lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from shareq.model.events import (
    RecordsAppended,
    RecordsChanged,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.trace.journal import Entry

BLOCK: Final = 256

Range = tuple[int, int]
"""From the lowest offset to the end of the highest one."""
NOTHING: Final[Range] = (0, 0)


class Block(NamedTuple):
    """What BLOCK entries concern. `others`: the entries of all types that have no range here."""

    changed: Range
    appended: Range
    spso: int
    has_topic: bool
    others: tuple[Entry, ...]

    def may_change(self, offset: int) -> bool:
        """True if an entry may append or change the record at this offset."""
        return self.changed[0] <= offset < self.changed[1] or self.appended[0] <= offset < self.appended[1]


class Blocks:
    """The complete blocks of a timeline that may still grow; `entries` is a list that only grows."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._blocks: list[Block] = []

    def since(self, number: int) -> Iterator[Block]:
        """The blocks from a number on."""
        for begin in range(len(self._blocks) * BLOCK, len(self._entries) - BLOCK + 1, BLOCK):
            self._blocks.append(_block(self._entries[begin : begin + BLOCK]))
        return islice(self._blocks, number, None)


_WITH_RANGES = frozenset((RecordsChanged, RecordsAppended, WindowMoved, StateWritePrepared, StateWriteSettled))


def _block(entries: list[Entry]) -> Block:
    events: list[Any] = [entry[3] for entry in entries]
    present = set(map(type, events))
    changed = [event for event in events if type(event) is RecordsChanged]
    appended = [event for event in events if type(event) is RecordsAppended] if RecordsAppended in present else []
    return Block(
        (min([event[4] for event in changed]), max([event[5] for event in changed])) if changed else NOTHING,
        (min([event[2] for event in appended]), max([event[3] for event in appended])) if appended else NOTHING,
        max([event[3] for event in events if type(event) is WindowMoved], default=0),
        TopicCreated in present or TopicDeleted in present,
        () if present <= _WITH_RANGES else tuple(e for e in entries if type(e[3]) not in _WITH_RANGES),
    )
