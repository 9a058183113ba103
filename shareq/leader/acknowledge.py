"""Acknowledgements of one share-partition: every batch is checked before any change takes effect.

Source: KIP-932, "Acknowledgements"; Kafka's SharePartition for the order of the checks and their errors. Rules:
BEHAVIOUR.md, "Acknowledging".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from shareq.leader.in_flight_state import InFlightChange, InFlightState, new_state
from shareq.leader.window import Window
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.states import ACKNOWLEDGE_EVENT, AcknowledgeType, RecordEvent, RecordState, next_state

_EVENTS = {int(kind): event for kind, event in ACKNOWLEDGE_EVENT.items()}
_WRITTEN = frozenset(_EVENTS) - {int(AcknowledgeType.RENEW)}


class Acknowledgement:
    """One partition's acknowledgement during its checks. `changes` are collected and applied only if all batches pass.

    Renewals are the exception: they write nothing, take effect at once, and stay even if a later batch fails.
    """

    def __init__(self, window: Window, member_id: str, *, write_id: int, config: GroupConfig, now_ms: int) -> None:
        self.changes: list[InFlightChange] = []
        self.renewed: list[tuple[int, int, InFlightState]] = []
        self.deadline_ms = now_ms + config.record_lock_duration_ms
        self._window = window
        self._member_id = member_id
        self._write_id = write_id
        self._config = config
        self._targets: dict[tuple[int, int], tuple[RecordEvent, RecordState | None]] = {}
        self._acknowledged_end = window.spso  # offsets below are outside the window or acknowledged by this request

    def check(self, batches: Sequence[AcknowledgementBatch]) -> Errors:
        """Check the batches in order and return the first error. Callers pass ascending batches; the wire check ensures
        that."""
        firsts = [batch.first_offset for batch in batches]
        ends = [batch.last_offset + 1 for batch in batches]
        judged, judged_kind, change = None, -1, None
        changes, done_end = self.changes, self._acknowledged_end
        for first, end, batch, in_flight in zip(
            firsts, ends, batches, self._window.states.uniform(firsts, ends), strict=True
        ):
            types = batch.acknowledge_types
            if in_flight is None or first < done_end or len(types) != 1 or types[0] not in _WRITTEN or self.renewed:
                self._acknowledged_end = done_end
                error = self._check_mixed_batch(first, end, types)
                if error:
                    return error
                done_end = self._acknowledged_end
                continue
            kind = types[0]
            if in_flight is not judged or kind != judged_kind:
                judged, judged_kind, change = in_flight, kind, self._state_after(in_flight, kind)
                if change is None:
                    return Errors.INVALID_RECORD_STATE
            assert change is not None
            changes.append((first, end, in_flight, change))
            done_end = end
        self._acknowledged_end = done_end
        return Errors.NONE

    def _check_mixed_batch(self, first: int, end: int, types: Sequence[int]) -> Errors:
        """Check one batch that is not a single acknowledge type for a part of a single run."""
        spso = self._window.spso
        if not _EVENTS.keys() >= set(types) or len(types) not in (1, end - first):
            return Errors.INVALID_REQUEST
        if end <= spso:
            return Errors.NONE
        error = self._bounds_error(first, end)
        for kind, kind_first, kind_end in _by_type(first, end, types):
            if not error and kind_end > spso:
                error = self._acknowledge_range(max(kind_first, spso), kind_end, kind)
        return error

    def _bounds_error(self, first: int, end: int) -> Errors:
        """The error of a range that reaches beyond the fetched records. A hole inside the range is no error."""
        window = self._window
        lowest = window.batches.next_run()
        if lowest is None or (first < lowest[2].first and not first < window.spso < end):
            return Errors.INVALID_RECORD_STATE
        last = window.batches.before(end)
        return Errors.INVALID_REQUEST if last is None or last.end < end else Errors.NONE

    def _acknowledge_range(self, first: int, end: int, kind: int) -> Errors:
        """Apply one acknowledge type to all runs in [first, end)."""
        if first < self._acknowledged_end:
            return Errors.INVALID_RECORD_STATE
        for run_first, run_end, in_flight in self._window.states.overlap(first, end):
            change = self._state_after(in_flight, kind)
            if change is None:
                return Errors.INVALID_RECORD_STATE
            if kind in _WRITTEN:
                self.changes.append((run_first, run_end, in_flight, change))
            else:
                self._window.put(run_first, run_end, in_flight, change, cause=RecordEvent.RENEW)
                self.renewed.append((run_first, run_end, change))
        if kind in _WRITTEN:
            self._acknowledged_end = end
        return Errors.NONE

    def _state_after(self, in_flight: InFlightState, kind: int) -> InFlightState | None:
        """The state of an acknowledged record, or None if the member cannot acknowledge it with this type."""
        state, _, count, member_id, deadline_ms, write_id, _ = in_flight
        if member_id != self._member_id or write_id is not None:
            return None
        if kind not in _WRITTEN:
            return in_flight.renewed(self.deadline_ms) if self._config.renew_acknowledge_enable else None
        goes = self._targets.get((kind, count))
        if goes is None:
            goes = self._targets[kind, count] = self._target_state(count, _EVENTS[kind])
        event, target = goes
        if target is None:
            return None
        return new_state((state, target, count, member_id, deadline_ms, self._write_id, event))

    def _target_state(self, count: int, event: RecordEvent) -> tuple[RecordEvent, RecordState | None]:
        """The event, and the next state of an acquired record after it, which depends only on the delivery count."""
        config = self._config
        return event, next_state(
            RecordState.ACQUIRED,
            event,
            delivery_count=count,
            delivery_count_limit=config.delivery_count_limit,
            dead_letter_queue=config.dead_letter_queue,
        )


def _by_type(first: int, end: int, types: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(type, first, end) for each run of offsets with the same type."""
    if len(types) == 1:
        yield types[0], first, end
        return
    for kind, group in groupby(types):
        end = first + len(list(group))
        yield kind, first, end
        first = end
