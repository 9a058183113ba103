"""The five requests: checks, results and records (BEHAVIOUR.md 11 to 24)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from shareq.coordinator.share_state import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.coordinator.share_state.rules import advance
from shareq.coordinator.share_state.state import KeyState
from shareq.model.errors import Errors
from shareq.model.events import StateRecordWritten
from shareq.model.ids import SharePartitionKey, topic_id_from_bytes
from shareq.model.messages.share_state import StateBatch
from tests.coordinator.share_state.stage import (
    KEY,
    TOPIC,
    Delete,
    Initialize,
    Read,
    Stage,
    Summary,
    Write,
    batches,
    image,
    named,
    topic_image,
)

NONE, INVALID, UNKNOWN = Errors.NONE, Errors.INVALID_REQUEST, Errors.UNKNOWN_TOPIC_OR_PARTITION
LEADER, STATE = Errors.FENCED_LEADER_EPOCH, Errors.FENCED_STATE_EPOCH

NEGATIVE = SharePartitionKey("g1", TOPIC, -1)
NO_PARTITION = SharePartitionKey("g1", TOPIC, 4)
NO_TOPIC = SharePartitionKey("g1", topic_id_from_bytes(b"N" * 16), 0)


def snapshot(ss: int, se: int, le: int, so: int, dcc: int) -> tuple[object, ...]:
    return "snapshot", ss, se, le, so, dcc, ()


def update(ss: int, le: int, so: int, dcc: int, text: str = "") -> tuple[object, ...]:
    return "update", ss, le, so, dcc, batches(text)


def shape(record: StateRecord) -> tuple[object, ...]:
    """A record without its key and its times."""
    if isinstance(record, StateTombstone):
        return ("tombstone",)
    position = record.leader_epoch, record.start_offset, record.delivery_complete_count, record.state_batches
    if isinstance(record, StateUpdate):
        return "update", record.snapshot_epoch, *position
    assert isinstance(record, StateSnapshot)
    return "snapshot", record.snapshot_epoch, record.state_epoch, *position


# ---- checks ----------------------------------------------------------------------------------------------------------


def fenced() -> Stage:
    """KEY is initialized at state epoch 3 and read at leader epoch 5."""
    stage = Stage()
    stage.initialize(3)
    stage.read(5)
    return stage


def orphaned() -> Stage:
    """As `fenced`, but the topic is deleted, and the tombstone could not be appended."""
    stage = fenced()
    stage.append_error = Errors.NOT_ENOUGH_REPLICAS
    stage.change(image(topic_image("v", topic_id_from_bytes(b"V" * 16), 1)))
    stage.append_error = NONE
    return stage


def checks() -> list[object]:
    """A row for each check of each request (BEHAVIOUR.md 11 to 17). Later checks fail, too, so that the rows show the
    order."""
    init, write = {"start_offset": 0}, {"start_offset": 0, "delivery_complete_count": 0}
    rows = [
        ("Initialize rule 11", Stage, Initialize, NEGATIVE, {"state_epoch": -1, **init}, INVALID),
        ("Initialize rule 12", fenced, Initialize, KEY, {"state_epoch": -1, **init}, INVALID),
        ("Initialize rule 15", fenced, Initialize, KEY, {"state_epoch": 2, **init}, STATE),
        ("Initialize rule 15 before rule 16", orphaned, Initialize, KEY, {"state_epoch": 2, **init}, STATE),
        ("Initialize rule 16", orphaned, Initialize, KEY, {"state_epoch": 3, **init}, UNKNOWN),
        ("Initialize rule 16, no such partition", Stage, Initialize, NO_PARTITION, {"state_epoch": 0, **init}, UNKNOWN),
        ("Initialize passes", fenced, Initialize, KEY, {"state_epoch": 3, **init}, NONE),
        ("Read rule 11", Stage, Read, NEGATIVE, {"leader_epoch": 5}, INVALID),
        ("Read rule 12", fenced, Read, KEY, {"leader_epoch": -1}, INVALID),
        ("Read rule 13", Stage, Read, KEY, {"leader_epoch": 5}, INVALID),
        ("Read rule 13 before rule 16", Stage, Read, NO_TOPIC, {"leader_epoch": 5}, INVALID),
        ("Read rule 14", fenced, Read, KEY, {"leader_epoch": 4}, LEADER),
        ("Read rule 14 before rule 16", orphaned, Read, KEY, {"leader_epoch": 4}, LEADER),
        ("Read rule 16", orphaned, Read, KEY, {"leader_epoch": 5}, UNKNOWN),
        ("Read passes", fenced, Read, KEY, {"leader_epoch": 5}, NONE),
        ("Write rule 11", Stage, Write, NEGATIVE, {"state_epoch": 3, "leader_epoch": 5, **write}, INVALID),
        ("Write rule 12 leader epoch", fenced, Write, KEY, {"state_epoch": 3, "leader_epoch": -1, **write}, INVALID),
        ("Write rule 12 state epoch", fenced, Write, KEY, {"state_epoch": -1, "leader_epoch": 5, **write}, INVALID),
        ("Write rule 13", Stage, Write, KEY, {"state_epoch": 3, "leader_epoch": 5, **write}, INVALID),
        ("Write rule 14 before rule 15", fenced, Write, KEY, {"state_epoch": 2, "leader_epoch": 4, **write}, LEADER),
        ("Write rule 15", fenced, Write, KEY, {"state_epoch": 2, "leader_epoch": 5, **write}, STATE),
        ("Write rule 15 before rule 16", orphaned, Write, KEY, {"state_epoch": 2, "leader_epoch": 5, **write}, STATE),
        ("Write rule 16", orphaned, Write, KEY, {"state_epoch": 3, "leader_epoch": 5, **write}, UNKNOWN),
        ("Write passes", fenced, Write, KEY, {"state_epoch": 3, "leader_epoch": 5, **write}, NONE),
        ("Summary rule 11", Stage, Summary, NEGATIVE, {}, INVALID),
        ("Summary ignores a low leader epoch", fenced, Summary, KEY, {"leader_epoch": 1}, NONE),
        ("Summary needs no state", Stage, Summary, KEY, {}, NONE),
        ("Summary rule 16", orphaned, Summary, KEY, {}, UNKNOWN),
        ("Summary rule 16, no state", Stage, Summary, NO_TOPIC, {}, UNKNOWN),
        ("Delete rule 11", Stage, Delete, NEGATIVE, {}, INVALID),
        ("Delete needs no state", Stage, Delete, KEY, {}, NONE),
        ("Delete rule 16", orphaned, Delete, KEY, {}, UNKNOWN),
        ("Delete passes", fenced, Delete, KEY, {}, NONE),
    ]
    return [pytest.param(*row[1:], id=row[0]) for row in rows]


@pytest.mark.parametrize(("make", "request_type", "key", "fields", "error"), checks())
def test_first_failing_check_is_the_error(
    make: Callable[[], Stage], request_type: type, key: SharePartitionKey, fields: dict[str, int], error: Errors
) -> None:
    stage = make()
    before = [len(log) for log in stage.logs.values()]
    entry = stage.one(named(request_type, key, **fields))
    assert (entry.partition, entry.error_code) == (key.partition, error)
    assert (entry.error_message is None) == (error is NONE)
    if error:
        assert [len(log) for log in stage.logs.values()] == before
        rest = {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0, "delivery_complete_count": -1}
        assert all(getattr(entry, name, value) == value for name, value in rest.items())
        assert getattr(entry, "state_batches", ()) == ()


def test_offsets_counts_and_batches_are_not_validated() -> None:
    """BEHAVIOUR.md 17."""
    stage = Stage()
    assert stage.initialize(0, -5) is NONE
    assert stage.write("9-4/1/-7 3-3/77/0", so=-7, dcc=-9, se=0, le=0) is NONE
    assert stage.summary().start_offset == -5
    assert stage.read(0).state_batches == (StateBatch(3, 3, 77, 0),)


# ---- effects ---------------------------------------------------------------------------------------------------------


def test_requests_and_records_of_one_key() -> None:
    """BEHAVIOUR.md example 20."""
    stage, seen = Stage(), 0

    def recorded() -> list[tuple[object, ...]]:
        """The records written since the last call."""
        nonlocal seen
        fresh = [shape(record) for record in stage.written()[seen:]]
        seen += len(fresh)
        return fresh

    def memory() -> tuple[StateBatch, ...]:
        batches_in_memory: tuple[StateBatch, ...] = stage.read(5).state_batches
        return batches_in_memory

    assert (stage.write(so=0), stage.read(5).error_code) == (INVALID, INVALID)
    empty = stage.summary()
    assert (empty.error_code, empty.start_offset, empty.delivery_complete_count) == (NONE, -1, -1)
    assert (empty.leader_epoch, empty.state_epoch) == (0, 0)
    assert recorded() == []

    assert stage.initialize(3, -1) is NONE
    assert recorded() == [snapshot(0, 3, 0, -1, -1)]
    assert stage.read(5).error_code is NONE
    assert recorded() == [update(0, 5, -1, -1)]
    assert (stage.read(4).error_code, stage.read(5).error_code) == (LEADER, NONE)
    assert (stage.write(se=2, le=5), stage.write(se=3, le=4)) == (STATE, LEADER)
    assert recorded() == []

    assert stage.write("100-104/2/1 105-109/0/2", so=100, dcc=5, se=7, le=9) is NONE
    assert recorded() == [update(0, 5, 100, 5, "100-104/2/1 105-109/0/2")]
    assert stage.read(5).state_epoch == 3
    assert stage.write("100-106/2/1", so=105, dcc=0) is NONE
    assert recorded() == [update(0, 5, 105, 0, "105-106/2/1")]
    assert memory() == batches("105-109/0/2")
    assert stage.write("107-107/4/5", so=-1, dcc=9) is NONE
    assert recorded() == [update(0, 5, 105, 0, "107-107/4/5")]
    assert memory() == batches("105-106/0/2 107-107/4/5 108-109/0/2")
    assert stage.write(so=105, dcc=-1) is NONE
    assert recorded() == [update(0, 5, 105, 0)]
    assert stage.write(so=120, dcc=-1) is NONE
    assert recorded() == [update(0, 5, 120, -1)]
    assert memory() == ()

    assert (stage.initialize(3, 50), recorded()) == (NONE, []), "in Kafka 4.4 an equal state epoch overwrites"
    assert stage.initialize(4, 50) is NONE
    assert recorded() == [snapshot(1, 4, 0, 50, 0)]
    assert stage.summary().leader_epoch == 0
    assert (stage.read(4).error_code, stage.read(5).error_code) == (LEADER, NONE)
    assert recorded() == []
    assert stage.summary().leader_epoch == 0
    assert stage.write("50-51/2/1", so=50, dcc=2, se=4) is NONE
    assert recorded() == [update(1, 0, 50, 2, "50-51/2/1")]
    assert (stage.initialize(3), stage.delete(), stage.delete()) == (STATE, NONE, NONE)
    assert recorded() == [("tombstone",)]
    assert stage.read(5).error_code is INVALID


@pytest.mark.parametrize(
    ("so", "dcc", "expected"),
    [
        pytest.param(101, 7, (101, 7), id="greater: the request's count"),
        pytest.param(101, -1, (101, -1), id="greater: the request's count, also -1"),
        pytest.param(100, 7, (100, 7), id="equal: the higher count, the request's"),
        pytest.param(100, 3, (100, 4), id="equal: the higher count, the current one"),
        pytest.param(100, -1, (100, 4), id="equal: -1 changes nothing"),
        pytest.param(99, 7, (100, 4), id="hard case 22: smaller changes nothing"),
        pytest.param(-1, 7, (100, 4), id="hard case 22: -1 keeps both"),
    ],
)
def test_start_offset_and_count_after_a_write(so: int, dcc: int, expected: tuple[int, int]) -> None:
    """BEHAVIOUR.md 21."""
    write = Write.Partition(partition=3, state_epoch=3, leader_epoch=5, start_offset=so, delivery_complete_count=dcc)
    change = advance(KeyState(0, start_offset=100, delivery_complete_count=4), write)
    assert (change.start_offset, change.delivery_complete_count) == expected


@pytest.mark.parametrize("limit", [500, 0], ids=["update", "snapshot"])
def test_late_write_moves_nothing_back(limit: int) -> None:
    """BEHAVIOUR.md 21, hard case 22."""
    stage = Stage(image(topic_image("t", TOPIC, 4), snapshot_update_records_per_snapshot=limit))
    stage.initialize(3, 0)
    stage.write(so=100, dcc=4)
    stage.write("98-103/2/1", so=90, dcc=8)
    record = stage.written()[-1]
    assert isinstance(record, StateUpdate if limit else StateSnapshot)
    assert (record.start_offset, record.delivery_complete_count) == (100, 4)
    assert record.state_batches == batches("100-103/2/1")


def test_only_initialize_changes_the_state_epoch_and_only_read_the_leader_epoch() -> None:
    """BEHAVIOUR.md 18-20, hard case 21."""
    stage = Stage()

    def epochs() -> tuple[int, int]:
        entry = stage.summary()
        return entry.state_epoch, entry.leader_epoch

    stage.initialize(3)
    assert epochs() == (3, 0)
    stage.read(5)
    assert epochs() == (3, 5)
    stage.write(se=9, le=9)
    assert epochs() == (3, 5)
    stage.initialize(4)
    assert epochs() == (4, 0)
    assert stage.write(se=4, le=4) is LEADER, "an initialization does not reset the fence"


def test_initialize_at_an_offset_stores_count_0() -> None:
    """BEHAVIOUR.md 18, hard case 28. So the lag is known right after offsets were altered (KAFKA-20034)."""
    stage = Stage()
    stage.initialize(0, -1)
    assert stage.summary().delivery_complete_count == -1
    stage.initialize(1, 7)
    assert stage.summary().delivery_complete_count == 0


@pytest.mark.parametrize("start_offset", [-1, 50, 70])
def test_repeated_initialization_changes_nothing(start_offset: int) -> None:
    """BEHAVIOUR.md 18, hard case 29. In Kafka 4.4 it overwrites, so that records accepted since the first attempt are
    delivered again."""
    stage = Stage()
    stage.initialize(3, 50)
    stage.write("51-55/2/1", so=50, dcc=5)
    written = len(stage.written())
    assert stage.initialize(3, start_offset) is NONE
    assert len(stage.written()) == written
    assert stage.read(5).state_batches == batches("51-55/2/1")
    assert stage.summary().delivery_complete_count == 5
    assert stage.initialize(4, start_offset) is NONE
    assert stage.read(5).state_batches == ()


# ---- snapshots and updates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "steps", "kinds"),
    [
        pytest.param(2, "I w w w w w w w", "S0 u0 u0 S1 u1 u1 S2 u2", id="limit 2"),
        pytest.param(0, "I w w w", "S0 S1 S2 S3", id="limit 0: every write is a snapshot"),
        pytest.param(2, "I w I w w", "S0 u0 S1 u1 S2", id="limit 2: an initialization does not reset the count"),
        pytest.param(1, "I w w w w", "S0 u0 S1 u1 S2", id="hard case 23: no cycle has more updates than the limit"),
        pytest.param(1, "I r w R w", "S0 u0 S1 u1 S2", id="reads that write a record count, too"),
        pytest.param(2, "I w w D I w w w", "S0 u0 u0 T S0 u0 u0 S1", id="a tombstone resets the count"),
    ],
)
def test_sequence_of_snapshots_and_updates(limit: int, steps: str, kinds: str) -> None:
    """BEHAVIOUR.md 23, 24."""
    stage = Stage(image(topic_image("t", TOPIC, 4), snapshot_update_records_per_snapshot=limit))
    epochs = count(3)
    do = {
        "I": lambda: stage.initialize(next(epochs), 0),
        "w": lambda: stage.write(so=1, le=9, se=9),
        "r": lambda: stage.read(5).error_code,
        "R": lambda: stage.read(6).error_code,
        "D": stage.delete,
    }
    assert all(do[step]() is NONE for step in steps.split())
    letters = {"snapshot": "S", "update": "u", "tombstone": "T"}
    shapes = [shape(record) for record in stage.written()]
    assert " ".join(letters[str(s[0])] + (str(s[1]) if len(s) > 1 else "") for s in shapes) == kinds


def test_snapshot_of_a_write_has_combined_batches_and_new_times() -> None:
    """BEHAVIOUR.md 23."""
    stage = Stage(image(topic_image("t", TOPIC, 4), snapshot_update_records_per_snapshot=1))
    stage.now_ms = 1000
    stage.initialize(3, 0)
    stage.now_ms = 2000
    stage.write("0-9/2/1", so=0)
    stage.now_ms = 3000
    stage.write("10-14/2/1", so=5, dcc=2)
    expected = StateSnapshot(KEY, 1, 3, 0, 5, 3000, 3000, batches("5-14/2/1"), 2)
    assert stage.written()[-1] == expected


def test_snapshot_of_a_read_contains_the_whole_state() -> None:
    """BEHAVIOUR.md 19, 23."""
    stage = Stage(image(topic_image("t", TOPIC, 4), snapshot_update_records_per_snapshot=1))
    stage.initialize(3, 0)
    stage.write("2-9/2/1", so=2, dcc=8)
    entry = stage.read(6)
    assert (entry.start_offset, entry.state_batches) == (2, batches("2-9/2/1"))
    assert shape(stage.written()[-1]) == (*snapshot(1, 3, 6, 2, 8)[:-1], batches("2-9/2/1"))


def test_each_record_is_traced_if_enabled() -> None:
    stage = Stage(traced=True)
    stage.events.clear()
    stage.initialize(3, 7)
    stage.write("8-9/2/1", so=7)
    stage.delete()
    assert stage.events == [
        StateRecordWritten(str(KEY), "snapshot", 0, 7, ()),
        StateRecordWritten(str(KEY), "update", 0, 7, batches("8-9/2/1")),
        StateRecordWritten(str(KEY), "tombstone", -1, -1, ()),
    ]
    untraced = Stage()
    untraced.initialize()
    assert untraced.events == []
