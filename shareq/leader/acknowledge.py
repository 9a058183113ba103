"""What a member says of records: all of it is checked before any of it holds.

Source: KIP-932, "Acknowledgements"; Kafka's SharePartition for the order of the checks and their errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from shareq.leader.cell import Cell, Change
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import ACKNOWLEDGE_EVENT, AcknowledgeType, RecordEvent, next_state

_EVENTS = {int(kind): event for kind, event in ACKNOWLEDGE_EVENT.items()}


class Acknowledgement:
    """One partition's acknowledgement under way. `changes` is what it comes to; nothing of that has happened yet.

    Renewals are the exception: they write nothing, hold at once, and stand whatever comes after them.
    """

    def __init__(self, window: Window, member_id: str, *, write_id: int, config: GroupConfig, now_ms: int) -> None:
        self.changes: list[Change] = []
        self.renewed: list[tuple[int, int]] = []
        self.deadline_ms = now_ms + config.record_lock_duration_ms
        self._window = window
        self._member_id = member_id
        self._write_id = write_id
        self._config = config
        self._said = window.spso  # up to here all has been said: it is out of the window, or came up in this request
        self._last: tuple[Cell | None, int] = (None, -1)
        self._change: Cell | None = None

    def take_in(self, batches: Sequence[AcknowledgementBatch]) -> Errors:
        """Check the batches in order; the first error is the answer. They ascend: that is checked on the wire."""
        spso, overlap = self._window.spso, self._window.cells.overlap
        for batch in batches:
            first, end, types = batch.first_offset, batch.last_offset + 1, batch.acknowledge_types
            if types[0] not in _EVENTS or (len(types) > 1 and not _EVENTS.keys() >= set(types)):
                return Errors.INVALID_REQUEST
            if end <= spso:
                continue
            start = max(first, spso)
            runs = overlap(start, end)
            if len(runs) != 1 or runs[0][0] != start or runs[0][1] != end:
                error = self._outside(first, end, runs)
                if error:
                    return error
            if not (self._say(start, end, types[0], runs) if len(types) == 1 else self._say_each(batch, start)):
                return Errors.INVALID_RECORD_STATE
        return Errors.NONE

    def _outside(self, first: int, end: int, runs: list[tuple[int, int, Cell]]) -> Errors:
        """Whether the range reaches beyond what has been fetched. A hole inside it does not matter."""
        window = self._window
        lowest = window.batches.next_run()
        if lowest is None or (first < lowest[2].first and not first < window.spso < end):
            return Errors.INVALID_RECORD_STATE
        if not runs or runs[-1][1] < end:
            return Errors.INVALID_REQUEST
        return Errors.NONE

    def _say_each(self, batch: AcknowledgementBatch, start: int) -> bool:
        """One type for each offset: as long runs of the same one as there are."""
        end = batch.first_offset
        for kind, group in groupby(batch.acknowledge_types):
            first, end = end, end + len(list(group))
            if end > start:
                runs = self._window.cells.overlap(max(first, start), end)
                if not self._say(max(first, start), end, kind, runs):
                    return False
        return True

    def _say(self, first: int, end: int, kind: int, runs: list[tuple[int, int, Cell]]) -> bool:
        """The member says `kind` of these runs, which is what there is in [first, end). False: it may not."""
        if first < self._said:
            return False
        for run_first, run_end, cell in runs:
            if self._last[0] is not cell or self._last[1] != kind:
                self._last, self._change = (cell, kind), self._judge(cell, kind)
            changed = self._change
            if changed is None:
                return False
            if kind == AcknowledgeType.RENEW:
                self._window.put(run_first, run_end, cell, changed, cause=RecordEvent.RENEW)
                self.renewed.append((run_first, run_end))
            else:
                self.changes.append((run_first, run_end, cell, changed))
        if kind != AcknowledgeType.RENEW:
            self._said = end
        return True

    def _judge(self, cell: Cell, kind: int) -> Cell | None:
        """The cell that records of this one get, or None if the member may not say so."""
        if cell.member_id != self._member_id or cell.write_id is not None:
            return None
        if kind == AcknowledgeType.RENEW:
            return cell.renewed(self.deadline_ms) if self._config.renew_acknowledge_enable else None
        event, limit = _EVENTS[kind], self._config.delivery_count_limit
        target = next_state(cell.state, event, delivery_count=cell.delivery_count, delivery_count_limit=limit)
        return None if target is None else cell.prepared(event, target, self._write_id)


class PreparedWrite(NamedTuple):
    """A state write for the persister; `settle` is to be told its id and what became of it.

    `start_offset` is the SPSO as it is now: it moves only when the write has come through.
    """

    write_id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


def state_batches(runs: Sequence[tuple[int, int, Cell]]) -> tuple[StateBatch, ...]:
    """What a write says of these runs: one batch for neighbours with the same state and count."""
    batches: list[StateBatch] = []
    at, before = -1, None
    for first, end, cell in runs:
        if first == at and before is not None and cell.to_state is before.to_state and cell[2] == before[2]:
            batches[-1] = batches[-1]._replace(last_offset=end - 1)
        else:
            batches.append(StateBatch(first, end - 1, cell.to_state, cell.delivery_count))
        at, before = end, cell
    return tuple(batches)
