"""State writes: what goes to the persister, and what becomes of the records when it has answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shareq.leader.cell import Change
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordEvent, RecordState


class PreparedWrite(NamedTuple):
    """A state write for the persister; `settle` is to be told its id and what became of it.

    `start_offset` is the SPSO as it is now: it moves only when the write has come through.
    """

    write_id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class Writes:
    """The writes under way, and what is still to be written.

    A write is about changes that wait for it (`prepare`), or about changes that hold already (`write_down`): those that
    no request asked for, so that no request waits for them. A write without changes is possible: `want` asks for one.
    """

    __slots__ = ("_to_write", "_under_way", "_window", "next_id", "to_write_since_ms")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._under_way: dict[int, list[Change]] = {}
        self._to_write: list[tuple[int, int]] = []
        self.to_write_since_ms: int | None = None
        self.next_id = 0

    def prepare(self, changes: list[Change]) -> PreparedWrite:
        """Tag the records with the write that is to change them."""
        window = self._window
        window.tag(changes)
        spso = window.spso
        # Release and time-out also reach records held below the SPSO, of which nothing needs to be stored.
        stored = changes if changes[0][0] >= spso else [change for change in changes if change[0] >= spso]
        return self._begin(changes, stored)

    def note(self, ranges: Sequence[tuple[int, int]], now_ms: int) -> None:
        """These records have changed, and it is still to be written."""
        if ranges:
            self._to_write += ranges
            self.to_write_since_ms = now_ms

    def want(self, now_ms: int) -> None:
        """The SPSO could move and nothing else would be written: a write that settles moves it."""
        if not self._under_way and self.to_write_since_ms is None:
            self.to_write_since_ms = now_ms

    def write_down(self) -> PreparedWrite | None:
        """A write of all that was noted and that no member holds by now, each offset once; None if none is wanted."""
        if self.to_write_since_ms is None:
            return None
        stored: list[Change] = []
        position = self._window.spso
        for first, end in sorted(self._to_write):
            if position < end:
                runs = self._window.cells.overlap(max(first, position), end)
                stored += [(f, e, cell, cell) for f, e, cell in runs if cell.state is not RecordState.ACQUIRED]
                position = end
        self._to_write = []
        self.to_write_since_ms = None
        return self._begin([], stored)

    def _begin(self, changes: list[Change], stored: Sequence[Change]) -> PreparedWrite:
        window, write_id = self._window, self.next_id
        self.next_id += 1
        self._under_way[write_id] = changes
        write = PreparedWrite(write_id, window.spso, window.delivery_complete_count, state_batches(stored))
        if window.journal is not None:
            window.journal.prepared(*write)
        return write

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> bool:
        """The persister has answered; says whether the SPSO moved. KeyError for a write that is not under way."""
        window, changes = self._window, self._under_way.pop(write_id)
        if window.journal is not None:
            window.journal.settled(write_id, error)
        if changes and error:
            self._abandon(changes, config, now_ms)
            return False
        window.commit(changes)
        return window.advance()

    def _abandon(self, changes: list[Change], config: GroupConfig, now_ms: int) -> None:
        """Hold the records as before; those whose lock has run out meanwhile come back.

        What has lost the write's tag was archived by the log's start or by compaction, and stays so.
        """
        window = self._window
        for change_first, change_end, _, tagged in changes:
            for first, end, cell in window.cells.overlap(change_first, change_end):
                if cell.write_id == tagged.write_id:
                    held = window.abandon(first, end, cell)
                    if held.expired(now_ms):
                        window.give_back(first, end, held, RecordEvent.LOCK_TIMEOUT, config.delivery_count_limit)
                        self.note([(first, end)], now_ms)


def state_batches(changes: Sequence[Change]) -> tuple[StateBatch, ...]:
    """What a write says of these: one batch for neighbours that go the same way with the same count."""
    batches: list[StateBatch] = []
    at, state, count = -1, RecordState.AVAILABLE, -1
    for first, end, _, cell in changes:
        to_state, delivery_count = cell[1], cell[2]
        if first == at and to_state is state and delivery_count == count:
            batches[-1] = StateBatch(batches[-1].first_offset, end - 1, state, count)
        else:
            state, count = to_state, delivery_count
            batches.append(StateBatch(first, end - 1, state, count))
        at = end
    return tuple(batches)
