"""Events of a share-partition: a fold of the events gives its state after every step."""

from __future__ import annotations

from random import Random
from typing import Any

from shareq.model.errors import Errors
from shareq.model.events import AcknowledgementRefused
from shareq.model.states import RecordEvent, RecordState
from tests.leader.oracle_stage import OracleStage, random_step
from tests.leader.share_partition_stage import SharePartitionStage
from tests.trace.naive_fold import NaiveFold, Records


def live(stage: OracleStage) -> Records:
    return {
        offset: (rec.state, rec.count, rec.member, rec.deadline, rec.write, rec.to)
        for offset, rec in stage.oracle.recs.items()
        if offset >= stage.oracle.spso
    }


def test_the_fold_of_the_events_is_the_state(seed: int) -> None:
    for number in range(12):
        rng = Random(f"{seed}/{number}")
        stage = OracleStage(rng, traced=True)
        fold = NaiveFold()
        for _ in range(200):
            for event in stage.subject.take_events():
                fold.take(event)
            assert fold.window == (stage.subject.spso, stage.subject.window_end)
            assert fold.records == live(stage)
            assert fold.writes == set(stage.oracle.writes)
            random_step(rng, stage)


def events(stage: SharePartitionStage) -> list[tuple[Any, ...]]:
    """Type and fields of the recorded events, without the share-partition's key."""
    return [(type(event).__name__, *event[3:]) for event in stage.partition.take_events()]


def test_events_of_an_accepted_batch() -> None:
    stage = SharePartitionStage(traced=True)
    stage.fetch("m", "0-4")
    write = stage.ack("m", "0-4:1")
    stage.ok(write)
    acquired, acknowledged = RecordState.ACQUIRED, RecordState.ACKNOWLEDGED
    held = (0, 5, acquired, 1, "m", 30000)
    assert events(stage) == [
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
    stage = SharePartitionStage(traced=True)
    stage.fetch("m", "0-4")
    write = stage.ack("m", "0-4:2")
    stage.tick(30000)
    events(stage)
    stage.fail(write)
    back = (0, 5, RecordState.AVAILABLE, 1, None, None, None, None, None)
    assert events(stage) == [
        ("StateWriteSettled", 0, Errors.UNKNOWN_SERVER_ERROR),
        ("RecordsChanged", "abandoned", 0, 5, RecordState.ACQUIRED, 1, "m", 30000, None, None, RecordEvent.RELEASE),
        ("RecordsChanged", RecordEvent.LOCK_TIMEOUT, *back),
    ]


def test_records_archived_during_a_write_have_no_second_event() -> None:
    stage = SharePartitionStage(traced=True)
    stage.fetch("m", "0-4")
    write = stage.ack("m", "0-4:2")
    stage.log_start(3)
    events(stage)
    stage.fail(write)
    held = ("RecordsChanged", "abandoned", 3, 5, RecordState.ACQUIRED, 1, "m", 30000, None, None, RecordEvent.RELEASE)
    assert events(stage) == [("StateWriteSettled", 0, Errors.UNKNOWN_SERVER_ERROR), held]


def test_a_refused_acknowledgement_is_an_event() -> None:
    stage = SharePartitionStage(traced=True)
    stage.fetch("m", "0-4")
    events(stage)
    stage.error("n", "0-4:1")
    assert events(stage) == [(AcknowledgementRefused.__name__, "n", Errors.INVALID_RECORD_STATE)]


def test_an_untraced_share_partition_records_no_event() -> None:
    stage = SharePartitionStage()
    stage.fetch("m", "0-4")
    stage.acknowledge("m", "0-4:1")
    assert stage.partition.take_events() == []
