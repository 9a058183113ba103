"""Offset by time as a grid of states, for drawing: one sample per pixel, whatever the length of the journal.

A sample is the state of one offset at one time, not a blend: a state that is shorter or thinner than a pixel appears in
proportion to its share. With fewer offsets than rows, each offset has its own row.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shareq.model.events import (
    DurableStateRead,
    Event,
    HoldEnded,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionLoaded,
    WindowMoved,
)
from shareq.model.states import PREPARED, RecordEvent, RecordState
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.runs import RecordStatus, Runs
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.touched import Part
from shareq.trace.journal import Entry
from shareq.trace.views.palette import STATES, UNKNOWNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTHING = 0
_DRAWN = (*STATES, *UNKNOWNS)
PAST = len(_DRAWN)
"""Codes: 0 is no record, from 1 on a state in the palette's order; PAST is added below the SPSO."""
COLUMNS, ROWS = 1000, 480
_CODES = {name: code for code, name in enumerate(_DRAWN, start=1)}
_NAMES = {int(state): state.name.lower() for state in RecordState}
_CODE_OF_STATE = {int(state): _CODES[state.name.lower()] for state in RecordState}
_OUTCOMES = {int(state): state.name.lower() for state in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)}
_OF_WINDOW = frozenset((SharePartitionLoaded, SharePartitionDropped))
_OBSERVED = frozenset((DurableStateRead, RecordsHeld))
_TIMEOUT = str(RecordEvent.LOCK_TIMEOUT)


@dataclass(slots=True)
class Raster:
    """`x` and `offsets` are the edges of columns and rows; `codes` has a row for each range of offsets, ascending.

    `timeouts`: (x, middle of the range) of each expired lock. `outcomes`: final state -> exact number of records.
    `uncertain`: `window_end` is an upper bound.
    """

    x: NDArray[Any]
    offsets: NDArray[Any]
    codes: NDArray[Any]
    spso: NDArray[Any]
    window_end: NDArray[Any]
    timeouts: list[tuple[float, float]] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)
    uncertain: bool = False

    def has(self, code: int) -> bool:
        """True if any sample has this state, in the window or below it."""
        return bool(((self.codes == code) | (self.codes == code + PAST)).any())

    def present(self) -> set[int]:
        """The codes that some samples have."""
        import numpy as np

        return set(np.unique(self.codes).tolist())

    def rectangles(self, code: int) -> Any:
        """The samples of this code as few rectangles: an array (n, 4, 2) of corners."""
        import numpy as np

        mask = np.zeros((self.codes.shape[0], self.codes.shape[1] + 2), np.int8)
        mask[:, 1:-1] = self.codes == code
        rows, left = np.nonzero(np.diff(mask, axis=1) == 1)
        _, right = np.nonzero(np.diff(mask, axis=1) == -1)
        order = np.lexsort((rows, right, left))
        rows, left, right = rows[order], left[order], right[order]
        new = np.ones(len(rows), bool)
        new[1:] = (np.diff(left) != 0) | (np.diff(right) != 0) | (np.diff(rows) != 1)
        starts = np.flatnonzero(new)
        bottoms, tops = rows[starts], rows[np.append(starts[1:], len(rows)) - 1] + 1 if len(rows) else rows
        x0, x1 = self.x[left[starts]], self.x[right[starts]]
        y0, y1 = self.offsets[bottoms], self.offsets[tops]
        return np.stack([np.stack(p, axis=-1) for p in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))], axis=1)


def sample(
    entries: Sequence[Entry],
    xs: Sequence[float],
    span: tuple[float, float],
    *,
    start: SharePartitionState | None = None,
    size: tuple[int, int] = (COLUMNS, ROWS),
) -> Raster:
    """Sample a timeline: `xs` are the ascending x positions of the entries, `span` the range of the x axis.

    `start`: the state before the first of the entries; None: they are all entries of the journal. With a `start` the
    offsets are those that were in the window, without it all that were appended. `size`: maximum columns and rows.
    """
    events = [entry[3] for entry in entries]
    observed = not _OBSERVED.isdisjoint(map(type, events)) or (start is not None and start.observed)
    offsets = _appended(events) if start is None else _in_window(events, start, observed=observed)
    grid = _Grid(offsets, span, size)
    painter = (_ObservedPainter if observed else _Painter)(grid.sampled.tolist(), offsets[0])
    if start is not None:
        painter.begin(start)
    return grid.painted(painter, entries, xs)


def sample_part(timeline: PartitionTimeline, part: Part, span_ms: tuple[float, float], size: tuple[int, int]) -> Raster:
    """Sample a part of a timeline by the times of its entries, with the offsets that were in the window.

    `timeouts` and `outcomes` are not counted: the changes that no sampled offset has are not read, unless the journal
    is an observer's.
    """
    import numpy as np

    first, entries = part.first, timeline.entries
    start = timeline.state(first)
    if start.observed or any(type(entry.event) in _OBSERVED for entry in part.others):
        read = entries[first : part.stop]
        return sample(read, [entry[1] for entry in read], span_ms, start=start, size=size)
    changes = part.changes
    of_window = [entries[first + place][3] for place in changes.windows]
    low, end = _in_window(of_window, start, observed=False)
    firsts, ends = np.array([low, *changes.firsts]), np.array([end, *changes.ends])
    grid = _Grid((int(firsts.min()), int(ends.max())), span_ms, size)
    painter = _Painter(grid.sampled.tolist(), int(firsts.min()))
    painter.begin(start)
    painted = np.searchsorted(grid.sampled, firsts[1:]) < np.searchsorted(grid.sampled, ends[1:])
    places = sorted([changes.places[number] for number in np.flatnonzero(painted).tolist()] + changes.windows)
    read = [entries[first + place] for place in places]
    return grid.painted(painter, read, [entry[1] for entry in read])


class _Grid:
    """The columns and rows of a raster; `sampled` has the offset of each row."""

    def __init__(self, offsets: tuple[int, int], span: tuple[float, float], size: tuple[int, int]) -> None:
        import numpy as np

        (low, high), (columns, rows) = offsets, size
        self._x, self._edges = np.linspace(*span, columns + 1), np.linspace(low, high, min(high - low, rows) + 1)
        self.sampled: NDArray[Any] = np.floor((self._edges[:-1] + self._edges[1:]) / 2).astype(int)

    def painted(self, painter: _Painter, entries: Sequence[Entry], xs: Sequence[float]) -> Raster:
        """The raster of what a painter makes of these entries."""
        import numpy as np

        x, columns, position = self._x, len(self._x) - 1, 0
        codes, spso, window_end = (
            np.zeros((len(self.sampled), columns), np.uint8), np.zeros(columns), np.zeros(columns),
        )  # fmt: skip
        for column, centre in enumerate(((x[:-1] + x[1:]) / 2).tolist()):
            stop = bisect_right(xs, centre, position)
            painter.read(entries[position:stop], xs[position:stop])
            position = stop
            codes[:, column], spso[column], window_end[column] = painter.column(), painter.spso, painter.window_end
        painter.read(entries[position:], xs[position:])
        counts = painter.timeouts, painter.outcomes, painter.uncertain
        return Raster(x, self._edges, codes, spso, window_end, *counts)


def _appended(events: Sequence[Event]) -> tuple[int, int]:
    """The range of all offsets that were appended or in flight."""
    ranges = [(e.first, e.end) for e in events if isinstance(e, (RecordsAppended, RecordsChanged))]
    return min((first for first, _ in ranges), default=0), max((end for _, end in ranges), default=1)


def _in_window(events: Sequence[Event], start: SharePartitionState, *, observed: bool) -> tuple[int, int]:
    """The range of the offsets that were in the window, at the start or later; if observed, up to the log end."""
    known = start.loaded or start.observed or start.window_end > start.spso
    lows, ends = ([start.spso], [start.window_end, start.runs.end]) if known else ([], [])
    ends += [start.log_end] if observed else []
    types = set(map(type, events))
    for event_type, first, end in [place for place in _RANGES if place[0] in types]:
        found: list[Any] = [event for event in events if type(event) is event_type]
        lows += [event[first] for event in found]
        ends += [event[end] for event in found]
    for event in events if observed else ():
        if isinstance(event, DurableStateRead) and event.spso >= 0:
            lows.append(event.spso)
            ends.append(event.spso)
        elif isinstance(event, RecordsAppended):
            ends.append(event.end)
    low = min(lows, default=0)
    return low, max([low + 1, *ends])


_RANGES = tuple(
    (event_type, event_type._fields.index(first), event_type._fields.index(end))
    for event_type, first, end in (
        (RecordsChanged, "first", "end"),
        (RecordsHeld, "first", "end"),
        (SharePartitionLoaded, "spso", "window_end"),
        (WindowMoved, "spso", "window_end"),
    )
)
"""Event types with the places of the fields that are a range of offsets in the window."""


class _Painter:
    """The states of the sampled offsets after each entry."""

    def __init__(self, offsets: list[int], low: int) -> None:
        import numpy as np

        self._offsets = offsets
        self._codes = np.zeros(len(offsets), np.uint8)
        self._loaded_by = -1
        self.spso = self.window_end = low
        self.timeouts: list[tuple[float, float]] = []
        self.outcomes = dict.fromkeys(_OUTCOMES.values(), 0)

    @property
    def uncertain(self) -> bool:
        """True if the end of the window is an upper bound."""
        return False

    def begin(self, state: SharePartitionState) -> None:
        """Start from a state instead of an empty partition."""
        self._loaded_by = state.loaded_by
        self.spso, self.window_end = state.spso, state.window_end
        for first, end, status in (*state.past, *state.runs):
            self._paint(first, end, status.name)

    def column(self) -> NDArray[Any]:
        """The codes after the last entry, with PAST added below the SPSO."""
        codes = self._codes.copy()
        below = codes[: bisect_left(self._offsets, self.spso)]
        below[below != NOTHING] += PAST
        return codes

    def read(self, entries: Sequence[Entry], xs: Sequence[float]) -> None:
        """Apply the next entries, which are at these x positions."""
        for entry, x in zip(entries, xs, strict=True):
            event = entry[3]
            if type(event) is WindowMoved:
                if self._loaded_by in (-1, entry[2]):
                    self.spso, self.window_end = event.spso, event.window_end
            elif type(event) is not RecordsChanged:
                if type(event) in _OF_WINDOW:
                    self._apply(entry)
            elif event[3] != PREPARED and self._loaded_by in (-1, entry[2]):
                first, end, state = event[4], event[5], event[6]
                left = bisect_left(self._offsets, first)
                if left < len(self._offsets) and self._offsets[left] < end:
                    self._codes[left : bisect_left(self._offsets, end, left)] = _CODE_OF_STATE[state]
                if event[3] == _TIMEOUT:
                    self.timeouts.append((x, (first + end) / 2))
                if state in _OUTCOMES:
                    self.outcomes[_OUTCOMES[state]] += end - first

    def _apply(self, entry: Entry) -> None:
        """Apply a load, or the end of one."""
        event = entry.event
        if isinstance(event, SharePartitionLoaded):
            self._loaded_by = entry.broker_id
            self.spso, self.window_end = event.spso, event.window_end
            self._codes[bisect_left(self._offsets, event.spso) :] = NOTHING
            for first, end, state, _ in event.runs:
                self._paint(first, end, _NAMES[state])
        elif isinstance(event, SharePartitionDropped) and self._loaded_by in (-1, entry.broker_id):
            self._loaded_by = -1

    def _paint(self, first: int, end: int, name: str) -> None:
        left = bisect_left(self._offsets, first)
        self._codes[left : bisect_left(self._offsets, end, left)] = _CODES[name]


class _ObservedPainter(_Painter):
    """The states of an observed share-partition after each entry, computed by the fold."""

    def __init__(self, offsets: list[int], low: int) -> None:
        super().__init__(offsets, low)
        self._state = SharePartitionState("", "", 0)
        self._completed = Runs()

    @property
    def uncertain(self) -> bool:
        return self._state.uncertain

    def begin(self, state: SharePartitionState) -> None:
        super().begin(state)
        self._state = state.copy()

    def read(self, entries: Sequence[Entry], xs: Sequence[float]) -> None:
        for entry, x in zip(entries, xs, strict=True):
            self._fold(entry, x)

    def _fold(self, entry: Entry, x: float) -> None:
        apply_entry(self._state, entry)
        self.spso, self.window_end = self._state.spso, self._state.window_end
        for first, end, status in self._state.runs:
            self._paint(first, end, status.name)
        event = entry.event
        if isinstance(event, HoldEnded):
            self._let_go(event, x)
        elif isinstance(event, DurableStateRead):
            for first, end, state, delivery_count in event.named:
                if _NAMES[state] in self.outcomes:
                    self._settle(first, end, RecordStatus(RecordState(state), delivery_count))

    def _let_go(self, event: HoldEnded, x: float) -> None:
        if event.cause == RecordEvent.LOCK_TIMEOUT:
            self.timeouts.append((x, (event.first + event.end) / 2))
        if _NAMES[event.state] in self.outcomes:
            self._settle(event.first, event.end, RecordStatus(RecordState(event.state), event.delivery_count))

    def _settle(self, first: int, end: int, status: RecordStatus) -> None:
        """Count records that became terminal, once each: every read repeats the durable state."""
        self._paint(first, end, status.name)
        self.outcomes[status.name] += (
            end - first - sum(stop - begin for begin, stop, _ in self._completed.overlap(first, end))
        )
        self._completed.assign(first, end, status)
