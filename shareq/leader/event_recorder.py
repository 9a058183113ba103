"""A share-partition's journal events: every change of its records, its window and its state writes."""

from __future__ import annotations

from collections.abc import Sequence

from shareq.leader.in_flight_state import InFlightState
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.events import (
    AcknowledgementRefused,
    Event,
    ExpiredRecordsSkipped,
    KeyRange,
    KeysLearned,
    RecordsChanged,
    Run,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import KeyRun
from shareq.model.states import RecordEvent


class EventRecorder:
    """Collects the events of one share-partition until `take`. Exists only if the broker is traced."""

    __slots__ = ("_events", "_group_id", "_partition", "_topic", "_window")

    def __init__(self, key: SharePartitionKey, topic: str) -> None:
        self._group_id, self._topic, self._partition = key.group_id, topic, key.partition
        self._events: list[Event] = []
        self._window = (0, 0)

    def take(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def loaded(
        self, window: tuple[int, int], runs: tuple[Run, ...], state_epoch: int, leader_epoch: int, config: GroupConfig
    ) -> None:
        self._window = window
        self._events.append(
            SharePartitionLoaded(
                self._group_id,
                self._topic,
                self._partition,
                *window,
                runs,
                state_epoch,
                leader_epoch,
                config.delivery_count_limit,
                config.partition_max_record_locks,
                config.record_lock_duration_ms,
            )
        )

    def changed(self, cause: str, first: int, end: int, in_flight: InFlightState, why: RecordEvent | None) -> None:
        """Records [first, end) have a new in-flight state. `why`: the event behind a write that has settled."""
        pending = in_flight.write_id is not None
        self._events.append(
            RecordsChanged(
                self._group_id,
                self._topic,
                self._partition,
                cause,
                first,
                end,
                in_flight.state,
                in_flight.delivery_count,
                in_flight.member_id,
                in_flight.deadline_ms,
                in_flight.write_id,
                in_flight.to_state if pending else None,
                in_flight.event if pending else why,
            )
        )

    def keys_learned(self, keys: Sequence[KeyRun], max_in_flight: int) -> None:
        """The keys of records in the window are known; a key that is no text is shown in hexadecimal digits."""
        shown = tuple(KeyRange(first, end, _text(key)) for first, end, key in keys)
        self._events.append(KeysLearned(self._group_id, self._topic, self._partition, shown, max_in_flight))

    def skipped(self, first: int, end: int) -> None:
        """Records [first, end) are too old, and the start of the window passes them."""
        self._events.append(ExpiredRecordsSkipped(self._group_id, self._topic, self._partition, first, end))

    def window(self, spso: int, window_end: int) -> None:
        """Record the bounds of the window if they have changed."""
        if self._window != (spso, window_end):
            self._window = (spso, window_end)
            self._events.append(WindowMoved(self._group_id, self._topic, self._partition, spso, window_end))

    def prepared(
        self, write_id: int, start_offset: int, delivery_complete_count: int, state_batches: tuple[StateBatch, ...]
    ) -> None:
        self._events.append(
            StateWritePrepared(
                self._group_id,
                self._topic,
                self._partition,
                write_id,
                start_offset,
                delivery_complete_count,
                state_batches,
            )
        )

    def settled(self, write_id: int, error: Errors) -> None:
        self._events.append(StateWriteSettled(self._group_id, self._topic, self._partition, write_id, error))

    def refused(self, member_id: str, error: Errors) -> None:
        self._events.append(AcknowledgementRefused(self._group_id, self._topic, self._partition, member_id, error))


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key.hex()
