"""What the entries of a long timeline concern, by blocks: it is not read for the few changes of a record, and not event
by event for the picture of a minute.

Each block of entries has the ranges of the offsets that it changes and appends, and the greatest SPSO that it moves to.
The other entries, such as loads, are rare; a block lists them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import compress
from operator import itemgetter
from typing import Any, Final, NamedTuple

from shareq.model.events import (
    RecordsAppended,
    RecordsChanged,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import PREPARED, RecordEvent
from shareq.trace.journal import Entry

BLOCK: Final = 256

Range = tuple[int, int]
"""From the lowest offset to the end of the highest one."""
NOTHING: Final[Range] = (0, 0)


class Changes(NamedTuple):
    """The places of the changes of records, but for prepared writes, which change no state; the first offset and the
    end of each; and the places of the events that set the window."""

    places: list[int]
    firsts: list[int]
    ends: list[int]
    windows: list[int]

    def within(self, first: int, stop: int, begin: int) -> Changes:
        """Those at places from `first` to `stop`, as places that count from `begin`."""
        part = slice(bisect_left(self.places, first), bisect_left(self.places, stop))
        places = [place - begin for place in self.places[part]]
        windows = [place - begin for place in self.windows if first <= place < stop]
        return Changes(places, self.firsts[part], self.ends[part], windows)


class Block(NamedTuple):
    """What BLOCK entries concern. `timeouts`: the entries of expired locks; `others`: those of all types that have no
    range here."""

    changed: Range
    appended: Range
    spso: int
    has_topic: bool
    changes: Changes
    timeouts: tuple[Entry, ...]
    others: tuple[Entry, ...]

    def may_change(self, offset: int) -> bool:
        """True if an entry may append or change the record at this offset."""
        return self.changed[0] <= offset < self.changed[1] or self.appended[0] <= offset < self.appended[1]


class Part(NamedTuple):
    """What the entries from `first` to `stop` of a timeline concern; the places count from the first of them."""

    first: int
    stop: int
    changes: Changes
    timeouts: list[Entry]
    others: list[Entry]


class Blocks:
    """The blocks of a timeline that may still grow, read when asked; `entries` is a list that only grows."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._blocks: dict[int, Block] = {}

    def since(self, number: int) -> Iterator[Block]:
        """The complete blocks from a number on."""
        return map(self._block, range(number, len(self._entries) // BLOCK))

    def part(self, first: int, stop: int) -> Part:
        """The entries from `first` to `stop`. The cost follows the blocks."""
        found = Part(first, stop, Changes([], [], [], []), [], [])
        if first >= stop:
            return found
        low, high = self._entries[first].order, self._entries[stop - 1].order
        for number in range(first // BLOCK, -(-stop // BLOCK)):
            block, begin = self._block(number), number * BLOCK
            new = block.changes.within(first - begin, stop - begin, first - begin)
            for known, more in zip(found.changes, new, strict=True):
                known.extend(more)
            found.timeouts.extend(entry for entry in block.timeouts if low <= entry.order <= high)
            found.others.extend(entry for entry in block.others if low <= entry.order <= high)
        return found

    def _block(self, number: int) -> Block:
        """A block. One that is not complete is not kept."""
        found = self._blocks.get(number)
        if found is None:
            entries = self._entries[number * BLOCK : number * BLOCK + BLOCK]
            found = _block(entries)
            if len(entries) == BLOCK:
                self._blocks[number] = found
        return found


_WITH_RANGES = frozenset((RecordsChanged, RecordsAppended, WindowMoved, StateWritePrepared, StateWriteSettled))
_OF_WINDOW = frozenset((WindowMoved, SharePartitionLoaded, SharePartitionDropped))
_TIMEOUT = str(RecordEvent.LOCK_TIMEOUT)


def _block(entries: list[Entry]) -> Block:
    events: list[Any] = [entry[3] for entry in entries]
    types = list(map(type, events))
    present = set(types)
    places = [place for place, kind in enumerate(types) if kind is RecordsChanged]
    changed = [events[place] for place in places]
    firsts, ends, causes = (list(map(itemgetter(field), changed)) for field in (4, 5, 3))
    range_changed = (min(firsts), max(ends)) if changed else NOTHING
    if PREPARED in causes:
        at_once = [cause != PREPARED for cause in causes]
        places, firsts, ends = (list(compress(values, at_once)) for values in (places, firsts, ends))
    timeouts = [entries[place] for place in places if events[place][3] == _TIMEOUT] if _TIMEOUT in causes else ()
    appended = [event for event in events if type(event) is RecordsAppended] if RecordsAppended in present else []
    windows = [place for place, kind in enumerate(types) if kind in _OF_WINDOW]
    return Block(
        range_changed,
        (min([event[2] for event in appended]), max([event[3] for event in appended])) if appended else NOTHING,
        max([events[place][3] for place in windows if types[place] is WindowMoved], default=0),
        TopicCreated in present or TopicDeleted in present,
        Changes(places, firsts, ends, windows),
        tuple(timeouts),
        () if present <= _WITH_RANGES else tuple(e for e in entries if type(e[3]) not in _WITH_RANGES),
    )
