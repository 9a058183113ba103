"""Events of a share-partition: a fold of the events gives its state after every step."""

from __future__ import annotations

from random import Random
from typing import Any

from shareq.model.errors import Errors
from shareq.model.events import (
    AcknowledgementRefused,
    Event,
    RecordsChanged,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    WindowMoved,
)
from shareq.model.states import RecordEvent, RecordState
from tests.leader.oracle_rig import Rig, random_step
from tests.leader.share_partition_harness import SharePartitionHarness

Records = dict[int, tuple[Any, ...]]


class Fold:
    """The state of a share-partition, computed from its events only."""

    def __init__(self) -> None:
        self.window = (0, 0)
        self.records: Records = {}
        self.writes: set[int] = set()

    def take(self, events: list[Event]) -> None:
        for event in events:
            match event:
                case SharePartitionLoaded(spso=spso, window_end=window_end, runs=runs):
                    self.window, self.writes = (spso, window_end), set()
                    self.records = {
                        offset: (run.state, run.delivery_count, None, None, None, None)
                        for run in runs
                        for offset in range(run.first, run.end)
                    }
                case RecordsChanged(first=first, end=end):
                    self.records |= dict.fromkeys(range(first, end), event[6:12])
                case WindowMoved(spso=spso, window_end=window_end):
                    assert self.window != (spso, window_end)
                    self.window = (spso, window_end)
                    self.records = {offset: record for offset, record in self.records.items() if offset >= spso}
                case StateWritePrepared(write_id=write_id):
                    self.writes.add(write_id)
                case StateWriteSettled(write_id=write_id):
                    self.writes.remove(write_id)


def live(rig: Rig) -> Records:
    return {
        offset: (rec.state, rec.count, rec.member, rec.deadline, rec.write, rec.to)
        for offset, rec in rig.oracle.recs.items()
        if offset >= rig.oracle.spso
    }


def test_the_fold_of_the_events_is_the_state(seed: int) -> None:
    for number in range(12):
        rng = Random(f"{seed}/{number}")
        rig = Rig(rng, traced=True)
        fold = Fold()
        for _ in range(200):
            fold.take(rig.subject.take_events())
            assert fold.window == (rig.subject.spso, rig.subject.window_end)
            assert fold.records == live(rig)
            assert fold.writes == set(rig.oracle.writes)
            random_step(rng, rig)


def events(harness: SharePartitionHarness) -> list[tuple[Any, ...]]:
    """Type and fields of the recorded events, without the share-partition's key."""
    return [(type(event).__name__, *event[3:]) for event in harness.partition.take_events()]


def test_events_of_an_accepted_batch() -> None:
    harness = SharePartitionHarness(traced=True)
    harness.fetch("m", "0-4")
    write = harness.ack("m", "0-4:1")
    harness.ok(write)
    acquired, acknowledged = RecordState.ACQUIRED, RecordState.ACKNOWLEDGED
    held = (0, 5, acquired, 1, "m", 30000)
    assert events(harness) == [
        ("SharePartitionLoaded", 0, 0, (), 3, 1, 5, 2000, 30000),
        ("RecordsChanged", RecordEvent.ACQUIRE, *held, None, None, None),
        ("WindowMoved", 0, 5),
        ("RecordsChanged", "prepared", *held, 0, acknowledged, RecordEvent.ACCEPT),
        ("StateWritePrepared", 0, 0, 5, write.state_batches),
        ("StateWriteSettled", 0, Errors.NONE),
        ("RecordsChanged", "settled", 0, 5, acknowledged, 1, None, None, None, None, RecordEvent.ACCEPT),
        ("WindowMoved", 5, 5),
    ]


def test_events_of_a_failed_write() -> None:
    harness = SharePartitionHarness(traced=True)
    harness.fetch("m", "0-4")
    write = harness.ack("m", "0-4:2")
    harness.tick(30000)
    events(harness)
    harness.fail(write)
    back = (0, 5, RecordState.AVAILABLE, 1, None, None, None, None, None)
    assert events(harness) == [
        ("StateWriteSettled", 0, Errors.UNKNOWN_SERVER_ERROR),
        ("RecordsChanged", "abandoned", 0, 5, RecordState.ACQUIRED, 1, "m", 30000, None, None, RecordEvent.RELEASE),
        ("RecordsChanged", RecordEvent.LOCK_TIMEOUT, *back),
    ]


def test_records_archived_during_a_write_have_no_second_event() -> None:
    harness = SharePartitionHarness(traced=True)
    harness.fetch("m", "0-4")
    write = harness.ack("m", "0-4:2")
    harness.log_start(3)
    events(harness)
    harness.fail(write)
    held = ("RecordsChanged", "abandoned", 3, 5, RecordState.ACQUIRED, 1, "m", 30000, None, None, RecordEvent.RELEASE)
    assert events(harness) == [("StateWriteSettled", 0, Errors.UNKNOWN_SERVER_ERROR), held]


def test_a_refused_acknowledgement_is_an_event() -> None:
    harness = SharePartitionHarness(traced=True)
    harness.fetch("m", "0-4")
    events(harness)
    harness.error("n", "0-4:1")
    assert events(harness) == [(AcknowledgementRefused.__name__, "n", Errors.INVALID_RECORD_STATE)]


def test_an_untraced_share_partition_records_no_event() -> None:
    harness = SharePartitionHarness()
    harness.fetch("m", "0-4")
    harness.acknowledge("m", "0-4:1")
    assert harness.partition.take_events() == []
