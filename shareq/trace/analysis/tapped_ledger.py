"""The ledger of a share-partition from the journal of a tap through which all members of the group are connected.

Each delivery and each confirmed acknowledgement has passed the tap, or is in a durable state that observers have read.
Unknown are the ends of records before the tap, and those by acknowledgements whose responses were lost with a leader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from shareq.model.events import (
    DeliveriesUnseen,
    DurableStateRead,
    HoldEnded,
    LeaderElected,
    LogStartMoved,
    RecordsAppended,
    RecordsHeld,
)
from shareq.model.states import TERMINAL, RecordState
from shareq.trace.journal import Entry

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEVER, UNKNOWN = -1, -2
"""States of an offset that was never in flight, and of a record that is finished, unknown how."""
UNFINISHED = tuple(int(state) for state in RecordState if state not in TERMINAL)
"""States of an offset that was in flight and may still end in another way."""
_AVAILABLE, _ACQUIRED = int(RecordState.AVAILABLE), int(RecordState.ACQUIRED)
_ARCHIVING = int(RecordState.ARCHIVING)
_COUNTED = {int(RecordState.ACKNOWLEDGED): "times_accepted", int(RecordState.ARCHIVED): "times_archived"}


class TappedLedger:
    """The arrays of a `PartitionLedger`; apply `entries` in order, then `finish`. Ranges are indices, half-open."""

    times_accepted: NDArray[Any]
    times_archived: NDArray[Any]

    def __init__(self, entries: Sequence[Entry], unseen: Sequence[DeliveriesUnseen]) -> None:
        import numpy as np

        events = [entry.event for entry in entries]
        ranges = [(e.first, e.end) for e in events if isinstance(e, RecordsAppended | RecordsHeld)]
        self.base = min((first for first, _ in ranges), default=0)
        size = max((end for _, end in ranges), default=0) - self.base
        self.state = np.full(size, NEVER, np.int8)
        self.delivery_count = np.zeros(size, np.int16)
        self.deliveries, self.times_accepted, self.times_archived = (np.zeros(size, np.int32) for _ in range(3))
        self._counted = np.zeros(size, np.int16)
        """The delivery count of the last delivery, 0 if the next one is another in any case."""
        self._log_start = 0
        self._durable_spso: int | None = None
        for event in events:
            handler = self.HANDLERS.get(type(event))
            if handler is not None:
                handler(self, event)
        for event in unseen:
            self.deliveries[self._slice(event.first, event.end)] += event.last_count - event.first_count + 1

    def finish(self, spso: int) -> None:
        """Records below the SPSO are finished; KIP-932: those below the log start are archived."""
        import numpy as np

        for end, state in ((min(spso, self._log_start), int(RecordState.ARCHIVED)), (spso, UNKNOWN)):
            below = self.state[self._slice(0, end)]
            below[below == _ARCHIVING] = int(RecordState.ARCHIVED)  # the SPSO passes it when it is archived
            below[np.isin(below, UNFINISHED)] = state

    # ---- events ------------------------------------------------------------------------------------------------------

    def _held(self, event: RecordsHeld) -> None:
        """A renewed lock, or one that had not run out after all, is no delivery."""
        at = self._slice(event.first, event.end)
        self.deliveries[at] += self._counted[at] != event.delivery_count
        self._counted[at] = self.delivery_count[at] = event.delivery_count
        self.state[at] = _ACQUIRED

    def _ended(self, event: HoldEnded) -> None:
        """The late end of an earlier delivery changes nothing, nor does one that a durable state has shown."""
        at = self._slice(event.first, event.end)
        which = self._counted[at] <= event.delivery_count
        for terminal in _COUNTED:
            which &= self.state[at] != terminal
        self._become(at, event.state, which)

    def _read(self, event: DurableStateRead) -> None:
        """Terminal records here were acknowledged; before the first read, their end is unknown."""
        import numpy as np

        before = self._durable_spso
        self._durable_spso = event.spso
        if before is None:
            self.state[self._slice(0, event.spso)] = UNKNOWN
        elif event.spso < before:  # the offsets of the group were reset
            self._counted[:] = 0
        for run in event.named:
            at = self._slice(run.first, run.end)
            if before is None:
                self.deliveries[at] = self.delivery_count[at] = self._counted[at] = run.delivery_count
                self._become(at, run.state, self.state[at] != run.state)
            elif run.state in _COUNTED:
                self._become(at, run.state, np.isin(self.state[at], UNFINISHED))

    def _elected(self, event: LeaderElected) -> None:
        """The locks of the former leader are void, and so are counts that are not durable."""
        del event
        self.state[self.state == _ACQUIRED] = _AVAILABLE
        self._counted[:] = 0

    def _log_started(self, event: LogStartMoved) -> None:
        self._log_start = event.log_start_offset

    # ---- arrays ------------------------------------------------------------------------------------------------------

    def _slice(self, first: int, end: int) -> slice:
        return slice(max(first - self.base, 0), max(end - self.base, 0))

    def _become(self, at: slice, state: int, which: NDArray[Any]) -> None:
        """Set the state of the records `which` of a slice, and count them."""
        self.state[at][which] = state
        if state in _COUNTED:
            getattr(self, _COUNTED[state])[at] += which

    HANDLERS: ClassVar[dict[type, Callable[[TappedLedger, Any], None]]] = {
        RecordsHeld: _held,
        HoldEnded: _ended,
        DurableStateRead: _read,
        LeaderElected: _elected,
        LogStartMoved: _log_started,
    }
