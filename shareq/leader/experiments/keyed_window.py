"""Order by key: a window that keeps a record back while an earlier one of its key is unfinished.

`lanes` has the lane of each offset with a key; like `batches` it repeats no state. After a load keys are unknown:
`unlearned` are AVAILABLE records whose key no read has shown yet. Rules: BEHAVIOUR.md, "Order by key".
"""

from __future__ import annotations

from collections.abc import Sequence

from shareq.leader.event_recorder import EventRecorder
from shareq.leader.experiments.lanes import Lane
from shareq.leader.experiments.resting_window import RestingWindow
from shareq.leader.in_flight_state import InFlightState
from shareq.leader.run_map import FLOOR, RunMap
from shareq.model.records import KeyRun
from shareq.model.states import RecordState

_AVAILABLE = RecordState.AVAILABLE


class KeyedWindow(RestingWindow):
    """`most`: the records of a key that may be held at once, set at the load. `begin` and `end` enclose an
    acquisition."""

    __slots__ = ("_by_key", "_keys", "_staged_unlearned", "_touched", "lanes", "most", "unlearned")

    def __init__(self, recorder: EventRecorder | None) -> None:
        super().__init__(recorder)
        self.lanes: RunMap[Lane] = RunMap()
        self.unlearned: RunMap[bool] = RunMap()
        self._staged_unlearned: RunMap[bool] = RunMap()
        """Records that were staged at the load: unlearned again when they are AVAILABLE."""
        self.most = 1
        self._by_key: dict[bytes, Lane] = {}
        self._keys: Sequence[KeyRun] | None = None
        self._touched: list[Lane] = []

    # ---- an acquisition ----------------------------------------------------------------------------------------------

    def begin(self, keys: Sequence[KeyRun], first: int, end: int) -> None:
        """An acquisition begins, of records [first, end) that have these keys. Learn those of loaded records."""
        self._keys = keys
        for f, e, _ in self.unlearned.overlap(first, end):
            self.unlearned.assign(f, e, None)
            self._learn(f, e)
            for lane_first, lane_end, lane in self.lanes.overlap(f, e):
                self.available.assign(lane_first, lane_end, None)
                lane.move(lane_first, lane_end, None, _AVAILABLE)
                self._refresh(lane)

    def end(self) -> None:
        """The acquisition has ended: the lanes from which it has taken records are closed."""
        self._keys = None
        touched, self._touched = self._touched, []
        for lane in touched:
            lane.taken = 0
            self._refresh(lane)

    def _learn(self, first: int, end: int) -> None:
        """Assign [first, end) to lanes, by the keys of the read."""
        runs = [(max(f, first), min(e, end), key) for f, e, key in self._keys or () if f < end and first < e]
        for f, e, key in runs:
            lane = self._by_key.get(key)
            if lane is None:
                lane = self._by_key[key] = Lane(key)
            self.lanes.assign(f, e, lane)
        if runs and self.recorder is not None:
            self.recorder.keys_learned(runs, self.most)

    # ---- changes -----------------------------------------------------------------------------------------------------

    def _set(self, first: int, end: int, old: InFlightState | None, new: InFlightState) -> None:
        if old is None:
            self._enter(first, end, new)
        super()._set(first, end, old, new)
        before, after = None if old is None else old.state, new.state
        if before is after and after is not _AVAILABLE:
            return
        if before is _AVAILABLE:
            self._no_longer_available(first, end, after)
        elif after is _AVAILABLE:
            for f, e, _ in self._staged_unlearned.overlap(first, end):
                self._staged_unlearned.assign(f, e, None)
                self.unlearned.assign(f, e, True)
        changed = self.lanes.overlap(first, end)
        for f, e, lane in changed:
            lane.move(f, e, before, after)
            lane.open = [offset for offset in lane.open if not f <= offset < e]
            if after is RecordState.ACQUIRED:
                lane.taken += e - f
                self._touched.append(lane)
        for _, _, lane in changed:  # a lane may have several of the records: all of them have moved now
            self._refresh(lane)

    def _no_longer_available(self, first: int, end: int, after: RecordState) -> None:
        """Outside of an acquisition, records become ACQUIRED because they were staged before the load."""
        if self._keys is None and after is RecordState.ACQUIRED:
            for f, e, _ in self.unlearned.overlap(first, end):
                self._staged_unlearned.assign(f, e, True)
        self.unlearned.assign(first, end, None)

    def _enter(self, first: int, end: int, new: InFlightState) -> None:
        """Records are new in the window: read from the log, or loaded without their keys. Finished ones have no
        lane."""
        if new.to_state not in (_AVAILABLE, RecordState.ACQUIRED):
            return
        if self._keys is not None:
            self._learn(first, end)
        elif new.state is _AVAILABLE:
            self.unlearned.assign(first, end, True)

    def _index_available(self, first: int, end: int, new: InFlightState) -> None:
        """Records with a key are left to their lanes."""
        position, keyed = first, self.lanes.overlap(first, end)
        if keyed:
            self.available.assign(first, end, None)
        for f, e, _ in keyed:
            if position < f:
                super()._index_available(position, f, new)
            position = e
        if position < end:
            super()._index_available(position, end, new)

    def _refresh(self, lane: Lane) -> None:
        """Bring `available` up to date for a changed lane."""
        if lane.empty and self._by_key.get(lane.key) is lane:
            del self._by_key[lane.key]
        if not lane.waiting and not lane.open:
            return
        states, acquirable = self.states, []
        for offset in lane.acquirable(self.most):
            in_flight = states.get(offset)
            assert in_flight is not None, "a waiting record is in the window"
            if not in_flight.rests:
                acquirable.append(offset)
                if offset not in lane.open:
                    self.available.assign(offset, offset + 1, in_flight)
        for offset in lane.open:
            if offset not in acquirable:
                self.available.assign(offset, offset + 1, None)
        lane.open = acquirable

    def _forget_below(self, offset: int) -> None:
        super()._forget_below(offset)
        self.lanes.assign(FLOOR, offset, None)
        self._staged_unlearned.assign(FLOOR, offset, None)
