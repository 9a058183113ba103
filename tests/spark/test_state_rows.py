"""The log of the state topic as rows, without Spark: columns of each record, and states equal to the coordinator's."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateTombstone, StateUpdate
from shareq.coordinator.share_state.records import encode_state_record as encode
from shareq.coordinator.share_state.state import KeyState
from shareq.log.batches import restamp
from shareq.log.records import encode_coordinator_records
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord
from shareq.spark.state_rows import RECORDS, STATES, ReadEnd, history, records, segments, states
from tests.coordinator.share_state.stage import KEY, OTHER, TOPIC, Stage, batches, image, topic_image

OLD = SharePartitionKey("g1", OTHER, 0)
NAMES: dict[str, str] = {TOPIC: "orders"}
SNAPSHOT = StateSnapshot(KEY, 2, 5, 7, 100, 1000, 2000, batches("100-104/2/1 105-109/0/2"), 5)
UPDATE = StateUpdate(KEY, 2, 8, 105, batches("110-110/4/5"), 0)
DELTA = UPDATE._replace(delta_index=7)

UNKNOWN = CoordinatorRecord(b"\0\7", b"")
BROKEN = CoordinatorRecord(encode(UPDATE).key, b"\0\0\1")
NO_KEY: Any = (None, b"?")


def table(log: Sequence[Any], first: int = 0) -> pa.Table:
    """A log as raw columns; its record at offset n was written at n seconds."""
    offsets = range(first, first + len(log))
    return pa.table(
        {
            "partition": pa.array([3] * len(log), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array([offset * 1_000_000 for offset in offsets], pa.timestamp("us", tz="UTC")),
            "key": pa.array([key for key, _ in log], pa.binary()),
            "value": pa.array([value for _, value in log], pa.binary()),
        }
    )


def log_of(*entries: StateRecord | CoordinatorRecord) -> list[Any]:
    return [encode(entry) if isinstance(entry, StateRecord) else entry for entry in entries]


def as_state(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of the coordinator's state in a row."""
    found = {name: value for name, value in row.items() if name in KeyState.__slots__}
    found["state_batches"] = tuple(StateBatch(**each) for each in row["state_batches"])
    for name in ("create_timestamp", "write_timestamp"):
        found[name] = (row[name] - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
    return found


def logged_state(state: KeyState) -> dict[str, Any]:
    """A state without its count of updates, which is not in the log."""
    return {name: value for name, value in asdict(state).items() if name != "update_count"}


def by_key(rows: Iterable[dict[str, Any]]) -> dict[SharePartitionKey, dict[str, Any]]:
    return {SharePartitionKey(row["group_id"], row["topic_id"], row["partition"]): row for row in rows}


# ---- records ---------------------------------------------------------------------------------------------------------


def row_of(entry: Any) -> dict[str, Any]:
    """The columns of a record at offset 4, without those that are null."""
    (batch,) = records(table([entry], first=4).to_batches(), NAMES)
    assert batch.schema == RECORDS
    (row,) = batch.to_pylist()
    return {name: value for name, value in row.items() if value is not None}


PLACE = {"state_partition": 3, "offset": 4, "timestamp": datetime.fromtimestamp(4, UTC)}
NAMED = {"group_id": "g1", "topic_id": TOPIC, "topic": "orders", "partition": 3}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param(
            encode(SNAPSHOT),
            NAMED
            | {"kind": "snapshot", "snapshot_epoch": 2, "state_epoch": 5, "leader_epoch": 7, "start_offset": 100}
            | {"delivery_complete_count": 5, "state_batches": [b._asdict() for b in SNAPSHOT.state_batches]}
            | {"create_timestamp": datetime.fromtimestamp(1, UTC), "write_timestamp": datetime.fromtimestamp(2, UTC)},
            id="snapshot",
        ),
        pytest.param(
            encode(UPDATE),
            NAMED
            | {"kind": "update", "snapshot_epoch": 2, "leader_epoch": 8, "start_offset": 105}
            | {"delivery_complete_count": 0, "state_batches": [b._asdict() for b in UPDATE.state_batches]},
            id="update",
        ),
        pytest.param(encode(StateTombstone(KEY)), NAMED | {"kind": "tombstone"}, id="tombstone"),
        pytest.param(
            encode(DELTA),
            NAMED
            | {"kind": "delta", "snapshot_epoch": 2, "leader_epoch": 8, "start_offset": 105}
            | {"delivery_complete_count": 0, "state_batches": [b._asdict() for b in UPDATE.state_batches]},
            id="delta",
        ),
        pytest.param(encode(StateTombstone(KEY, 7)), NAMED | {"kind": "null delta"}, id="null delta"),
        pytest.param(UNKNOWN, {"kind": "unknown"}, id="a key of another type"),
        pytest.param(NO_KEY, {"kind": "unknown"}, id="no key"),
        pytest.param(
            BROKEN, {"kind": "unreadable", "error": "16 bytes wanted at 2 of 3"}, id="a value that ends too soon"
        ),
    ],
)
def test_a_state_record_has_the_expected_columns(entry: Any, expected: dict[str, Any]) -> None:
    assert row_of(entry) == PLACE | expected


def test_an_unknown_topic_id_has_no_name() -> None:
    assert "topic" not in row_of(encode(StateTombstone(OLD)))


# ---- states ----------------------------------------------------------------------------------------------------------


def test_a_state_is_a_snapshot_with_its_updates() -> None:
    found = states(table(log_of(SNAPSHOT, UPDATE)), moment=ReadEnd(), names=NAMES)
    assert found.schema == STATES
    (row,) = found.to_pylist()
    assert (row["kind"], row["offset"], row["topic"], row["complete"]) == ("update", 1, "orders", True)
    assert as_state(row) == {
        "snapshot_epoch": 2,
        "state_epoch": 5,
        "leader_epoch": 8,
        "start_offset": 105,
        "delivery_complete_count": 0,
        "state_batches": batches("105-109/0/2 110-110/4/5"),
        "create_timestamp": 1000,
        "write_timestamp": 2000,
        "leader_epoch_fence": 8,
        "state_epoch_fence": 5,
    }


@pytest.mark.parametrize(
    ("first", "log", "complete"),
    [
        pytest.param(0, log_of(UPDATE), True, id="an update that begins the log"),
        pytest.param(5, log_of(UPDATE), False, id="an update whose snapshot has been pruned"),
        pytest.param(5, log_of(SNAPSHOT, UPDATE), True, id="a pruned log that begins with a snapshot"),
        pytest.param(0, [*log_of(SNAPSHOT), BROKEN], False, id="an unreadable record after it"),
        pytest.param(0, [BROKEN, *log_of(SNAPSHOT)], True, id="an unreadable record before it"),
        pytest.param(0, [*log_of(SNAPSHOT), UNKNOWN], True, id="a key of another type"),
        pytest.param(0, [*log_of(SNAPSHOT), NO_KEY, *log_of(UPDATE)], True, id="no key"),
        pytest.param(5, log_of(StateTombstone(KEY), UPDATE), True, id="an update after a tombstone"),
        pytest.param(5, log_of(SNAPSHOT, StateTombstone(KEY, 6), DELTA), True, id="a checkpoint, then deltas"),
    ],
)
def test_a_state_without_gaps_is_complete(first: int, log: list[Any], complete: bool) -> None:
    (row,) = states(table(log, first), moment=ReadEnd(), names={}).to_pylist()
    assert row["complete"] == complete


def test_a_gap_makes_states_incomplete_until_the_next_snapshot() -> None:
    other = SNAPSHOT._replace(key=OLD)
    log = table(log_of(SNAPSHOT, other, UPDATE, UPDATE, other))
    found = states(log.take([4, 0, 1, 3]), moment=ReadEnd(), names={})  # in any order, without the record at 2
    assert {key: row["complete"] for key, row in by_key(found.to_pylist()).items()} == {KEY: False, OLD: True}


def test_deltas_of_a_compacted_topic_change_only_the_state_of_their_checkpoint() -> None:
    """Compaction leaves deltas whose checkpoint it has removed."""
    orphan = DELTA._replace(snapshot_epoch=1, start_offset=300)
    found = history(table(log_of(orphan, SNAPSHOT, orphan, DELTA, StateTombstone(KEY, 7))), names=NAMES).to_pylist()
    assert [(row["kind"], row["start_offset"]) for row in found] == [
        ("delta", None),
        ("snapshot", 100),
        ("delta", 100),
        ("delta", 105),
        ("null delta", 105),
    ]


def test_the_history_has_the_state_after_each_record() -> None:
    found = history(table(log_of(SNAPSHOT, UPDATE, StateTombstone(KEY))), names=NAMES).to_pylist()
    assert [(row["kind"], row["start_offset"]) for row in found] == [
        ("snapshot", 100),
        ("update", 105),
        ("tombstone", None),
    ]
    assert {row["topic"] for row in found} == {"orders"}
    assert found[2]["state_batches"] is None


@pytest.mark.parametrize(
    ("at", "spso"),
    [
        pytest.param(None, [120], id="now"),
        pytest.param(0, [], id="before anything"),
        pytest.param(1, [100], id="an end of the log"),
        pytest.param(99, [120], id="an end beyond it"),
        pytest.param({3: 2}, [105], id="an end per partition"),
        pytest.param({4: 2}, [], id="an end of only another partition"),
        pytest.param(datetime.fromtimestamp(1, UTC), [105], id="a time, to the microsecond"),
        pytest.param(datetime.fromtimestamp(0.999999, UTC), [100], id="just before"),
        pytest.param(datetime.fromtimestamp(1, timezone(timedelta(hours=5))), [105], id="a time in another zone"),
        pytest.param(datetime.fromtimestamp(1), [105], id="a local time"),  # noqa: DTZ006    # a naive time, as users write it
        pytest.param(datetime(1969, 1, 1, tzinfo=UTC), [], id="before the epoch"),
    ],
)
def test_states_are_those_at_a_moment(at: Any, spso: list[int]) -> None:
    log = log_of(SNAPSHOT, UPDATE, UPDATE._replace(start_offset=120, state_batches=()))
    found = states(table(log), moment=ReadEnd.of(at), names={}).to_pylist()
    assert [row["start_offset"] for row in found] == spso


@pytest.mark.parametrize("at", ["yesterday", 1.5, True])
def test_invalid_moments_are_refused(at: Any) -> None:
    with pytest.raises(ValueError, match=r"at=.*: must be an offset, offsets by partition, or a datetime"):
        ReadEnd.of(at)


# ---- the coordinator's states ----------------------------------------------------------------------------------------

KEYS = [SharePartitionKey(group, topic, p) for group in ("g", "h:i") for topic in (TOPIC, OTHER) for p in (0, 1)]


def coordinated(rng: random.Random, steps: int) -> tuple[list[Any], list[tuple[int, dict[Any, KeyState]]]]:
    """The log of a share coordinator with one partition, and its states at several ends of the log."""
    stage = Stage(
        image(
            *(topic_image(name, topic, 2) for name, topic in (("t", TOPIC), ("u", OTHER))),
            state_partitions=1,
            snapshot_update_records_per_snapshot=3,
        )
    )
    moments = []
    for _ in range(steps):
        stage.wait(rng.randrange(100_000))
        key, spso = rng.choice(KEYS), rng.randrange(30)
        runs = f"{spso}-{spso + rng.randrange(9)}/{rng.choice([0, 2, 4])}/{rng.randrange(1, 5)}"
        action = rng.choice(["initialize", "read", "write", "write", "write", "delete"])
        if action == "initialize":
            stage.initialize(rng.randrange(3, 5), spso, key)
        elif action == "read":
            stage.read(rng.randrange(5, 9), key)
        elif action == "write":
            stage.write(runs, so=spso - rng.randrange(5), dcc=rng.randrange(9), se=4, le=9, key=key)
        elif rng.random() < 0.3:
            stage.delete(key)
        shard = stage.coordinator._runtime.shard(0)
        assert shard is not None
        moments.append((len(stage.logs.get(0, [])), deepcopy(shard.states)))
    return stage.logs[0], moments


def test_states_equal_the_coordinators_at_every_moment(seed: int) -> None:
    log, moments = coordinated(random.Random(seed), 120)
    for end, truth in moments:
        found = by_key(states(table(log), moment=ReadEnd(end=end), names={}).to_pylist())
        assert {key: as_state(row) for key, row in found.items()} == {
            key: logged_state(state) for key, state in truth.items()
        }
        assert all(row["complete"] for row in found.values())


def test_complete_states_of_a_truncated_log_are_right(seed: int) -> None:
    """Wherever the log is cut. Fences are not compared: they may come from records before the cut."""
    log, moments = coordinated(random.Random(seed), 120)
    end, truth = moments[-1]
    assert end == len(log)
    for first in range(0, end, 7):
        rows = by_key(states(table(log[first:], first), moment=ReadEnd(), names={}).to_pylist())
        found = {key: as_state(row) for key, row in rows.items() if row["complete"]}
        for state in found.values():
            del state["leader_epoch_fence"], state["state_epoch_fence"]
        for key, row in found.items():
            expected = logged_state(truth[key])
            assert {name: expected[name] for name in row} == row


# ---- segments --------------------------------------------------------------------------------------------------------


def files(**contents: bytes) -> list[pa.RecordBatch]:
    """Files as Spark's source for binary files gives them."""
    paths = [f"file:/data/{path}" for path in contents]
    return [pa.RecordBatch.from_pydict({"path": paths, "content": list(contents.values())})]


def segment(*bases: int) -> bytes:
    """A batch of two records at each of these offsets."""
    batch = encode_coordinator_records(log_of(SNAPSHOT, UPDATE), 4000)
    return b"".join(restamp(batch, base, 0) for base in bases)


HOME = f"{SHARE_STATE_TOPIC}-3/00000000000000000000.log"


@pytest.mark.parametrize(
    ("content", "offsets"),
    [
        pytest.param(b"", [], id="an empty segment"),
        pytest.param(segment(0, 2), [0, 1, 2, 3], id="two batches"),
        pytest.param(segment(0, 2)[:-1], [0, 1], id="a last batch that is still being written"),
        pytest.param(segment(0) + bytes(500), [0, 1], id="preallocated space"),
    ],
)
def test_the_batches_of_a_segment_are_read(content: bytes, offsets: list[int]) -> None:
    rows = [row for batch in segments(files(**{HOME: content})) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == offsets
    assert {row["partition"] for row in rows} <= {3}
    assert {row["timestamp"] for row in rows} <= {datetime.fromtimestamp(4, UTC)}
    assert [(row["key"], row["value"]) for row in rows[:2]] == log_of(SNAPSHOT, UPDATE)[: len(rows)]


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        pytest.param(HOME, segment(0)[:-1] + b"?", "the CRC does not match", id="a changed byte"),
        pytest.param(HOME, bytes(11) + b"2" + b"\1" * 50, "magic is 1", id="batches of an old format"),
        pytest.param("orders-3/0.log", segment(0), "is not in a folder named", id="a segment of another topic"),
    ],
)
def test_a_file_that_is_not_a_segment_is_refused_by_name(path: str, content: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=rf"file:/data/{path}: .*{reason}"):
        list(segments(files(**{path: content})))
