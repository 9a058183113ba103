"""A compacted state topic: checkpoints, deltas, their indices. BEHAVIOUR.md, 33 to 38; `test_random.py` has mutants."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.coordinator.share_state import StateSnapshot, StateTombstone, StateUpdate
from shareq.coordinator.share_state.compacted import FIRST_SPAN, MAX_SPAN, CompactedShard, DeltaIndices
from shareq.coordinator.share_state.records import encode_state_record
from shareq.model.errors import Errors
from shareq.model.events import StateRecordWritten
from shareq.model.ids import SharePartitionKey
from shareq.model.image import ClusterImage
from shareq.model.state_designs import StateDesign
from tests.coordinator.share_state.stage import HOME, KEY, OTHER, TOPIC, Stage, batches, image, topic_image

HOUR_MS = 3_600_000


def stage(*, traced: bool = False, **configs: Any) -> Stage:
    """A coordinator with a compacted topic."""
    topics = (topic_image("t", TOPIC, 4), topic_image("u", OTHER, 4))
    return Stage(image(*topics, design=StateDesign.COMPACTED_TOPIC, **configs), traced=traced)


def kinds(made: Stage) -> list[str]:
    """The records of KEY, checkpoints as C with epoch and deltas as D with index."""
    names = []
    for record in made.written():
        if isinstance(record, StateSnapshot):
            names.append(f"C{record.snapshot_epoch}")
        else:
            names.append(f"D{record.delta_index}" if isinstance(record, StateUpdate) else f"null{record.delta_index}")
    return names


def test_the_walk_of_the_kip() -> None:
    """BEHAVIOUR.md 34: the example of KIP-932; the sixth change is a checkpoint, as six deltas would be too large."""
    walk = stage()
    walk.initialize(3, 100)
    for so, dcc, text in [
        (100, 10, "100-109/2/1"),
        (110, 0, "110-110/0/1"),
        (110, 1, "119-119/2/1"),
        (110, 1, "111-112/0/1"),
        (110, 7, "113-118/2/1"),
        (110, 8, "110-110/2/2"),
        (111, 9, "111-112/2/2"),
    ]:
        assert walk.write(text, so=so, dcc=dcc, le=0) is Errors.NONE
    assert kinds(walk) == ["C0", "D0", "D1", "D2", "D3", "D4", "C1", "D5"]
    checkpoint, delta = walk.written()[-2:]
    assert isinstance(checkpoint, StateSnapshot)
    assert isinstance(delta, StateUpdate)
    assert checkpoint.state_batches == batches("110-110/2/2 111-112/0/1 113-119/2/1")
    assert (delta.snapshot_epoch, delta.start_offset) == (1, 111)
    walk.compact(HOME, len(walk.logs[HOME]))
    walk.start()
    state = walk.read(0)
    assert (state.start_offset, state.state_batches) == (111, batches("111-112/2/2 113-119/2/1"))


def test_a_checkpoint_that_is_not_larger_replaces_a_delta() -> None:
    """BEHAVIOUR.md 34."""
    made = stage()
    made.initialize(3, 100)
    made.write("101-103/2/1", so=100, le=0)
    made.write("100-100/2/1 104-104/2/1", so=100, le=0)
    assert kinds(made) == ["C0", "D0", "C1"]
    assert made.read(0).state_batches == batches("100-104/2/1")


@pytest.mark.parametrize(("limit", "expected"), [(0, ["C0", "C1", "C2", "C3"]), (2, ["C0", "D0", "D1", "C1"])])
def test_the_limit_of_updates_is_one_of_deltas(limit: int, expected: list[str]) -> None:
    """BEHAVIOUR.md 34."""
    made = stage(snapshot_update_records_per_snapshot=limit)
    made.initialize(3, 100)
    for offset in (100, 102, 104):
        made.write(f"{offset}-{offset}/0/1", so=100, le=0)
    assert kinds(made) == expected


# ---- indices ---------------------------------------------------------------------------------------------------------


def test_indices_go_on_after_a_checkpoint_and_begin_again_at_the_span() -> None:
    """BEHAVIOUR.md 35."""
    made = stage(snapshot_update_records_per_snapshot=7)
    made.initialize(3, 0)
    for n in range(24):
        made.write(f"{2 * n}-{2 * n}/2/1", so=2 * n, le=0)
    deltas = [record.delta_index for record in made.written() if isinstance(record, StateUpdate)]
    assert deltas == [*range(FIRST_SPAN), *range(len(deltas) - FIRST_SPAN)]
    assert len(deltas) > FIRST_SPAN


def test_the_span_doubles_when_all_indices_are_in_use() -> None:
    """BEHAVIOUR.md 35: no index is used twice between checkpoints; at the largest span there is none left."""
    indices = DeltaIndices(FIRST_SPAN)
    indices.written(5, 10)
    for expected in [*range(6, 16), *range(5), 16, 17]:
        assert indices.next() == expected
        indices.written(expected, 10)
    assert indices.span == 2 * FIRST_SPAN
    assert indices.delta_bytes == 180
    for index in range(MAX_SPAN):
        indices.written(index, 10)
    assert indices.next() is None
    indices.begin()
    assert (indices.next(), indices.delta_bytes) == (0, 0)


def replayed(*records: StateSnapshot | StateUpdate | StateTombstone) -> CompactedShard:
    shard = CompactedShard(ClusterImage)
    for offset, record in enumerate(records):
        shard.replay(offset, *encode_state_record(record), 0)
    return shard


CHECKPOINT = StateSnapshot(KEY, 7, 3, 0, 100, 0, 0, batches("100-104/2/1"), 5)
DELTA = StateUpdate(KEY, 7, 0, 105, batches("110-110/0/1"), 0, 40)


def test_a_load_finds_the_span_and_the_last_index() -> None:
    """BEHAVIOUR.md 35."""
    indices = replayed(CHECKPOINT, DELTA).indices[KEY]
    assert (indices.span, indices.last, indices.next(), indices.used, indices.alive) == (64, 40, 41, {40}, {40})


@pytest.mark.parametrize(
    ("before", "delta"),
    [
        pytest.param((), DELTA, id="without a checkpoint"),
        pytest.param((CHECKPOINT,), DELTA._replace(snapshot_epoch=6), id="of an earlier checkpoint"),
    ],
)
def test_an_orphan_changes_no_state(before: tuple[Any, ...], delta: StateUpdate) -> None:
    """BEHAVIOUR.md 36."""
    shard = replayed(*before, delta)
    assert shard.states == replayed(*before).states
    assert shard.indices[KEY].last == 40


def test_a_change_of_its_checkpoint_is_applied() -> None:
    shard = replayed(CHECKPOINT, DELTA)
    assert (shard.states[KEY].start_offset, shard.states[KEY].state_batches) == (105, batches("110-110/0/1"))


# ---- deletions, jobs, journal ----------------------------------------------------------------------------------------


def test_a_deletion_leaves_nothing_after_compaction() -> None:
    """BEHAVIOUR.md 37: a batch of tombstones, of the checkpoint and of each delta; the group can begin anew."""
    made = stage()
    made.initialize(3, 100)
    made.write("100-104/2/1", so=100, le=0)
    made.write("106-106/2/1", so=105, le=0)
    assert made.delete() is Errors.NONE
    assert kinds(made) == ["C0", "D0", "D1", "null-1", "null0", "null1"]
    made.compact(HOME, len(made.logs[HOME]))
    assert made.removed[HOME] == {0, 1, 2}
    assert made.delete() is Errors.NONE, "there is no state, and no record"
    assert len(made.logs[HOME]) == 6
    made.initialize(3, 0)
    made.write("0-4/2/1", so=0, le=0)
    assert kinds(made)[6:] == ["C0", "D0"]
    made.start()
    assert made.read(0).state_batches == batches("0-4/2/1")


def test_a_deleted_topic_is_deleted_with_its_deltas() -> None:
    """BEHAVIOUR.md 37."""
    made = stage(state_partitions=1)
    other = SharePartitionKey("g1", OTHER, 0)
    made.initialize(3, 100)
    made.initialize(3, 100, key=other)
    made.write("100-104/2/1", so=100, le=0)
    made.write("100-104/2/1", so=100, le=0, key=other)
    gone = image(topic_image("u", OTHER, 4), state_partitions=1, design=StateDesign.COMPACTED_TOPIC)
    made.change(gone)
    assert [r for r in made.written() if isinstance(r, StateTombstone)] == [
        StateTombstone(KEY),
        StateTombstone(KEY, 0),
    ]
    made.start()
    assert made.read(0, key=other).state_batches == batches("100-104/2/1")
    assert made.read(0).error_code is Errors.INVALID_REQUEST


def test_there_is_no_pruning_and_no_cold_snapshot() -> None:
    """BEHAVIOUR.md 38."""
    made = stage(snapshot_update_records_per_snapshot=0)
    made.initialize(3, 100)
    made.write("100-104/2/1", so=100, le=0)
    assert made.coordinator.wake_at_ms is None
    made.wait_until(HOUR_MS)
    assert not made.deletions
    assert kinds(made) == ["C0", "C1"]


def test_the_journal_names_checkpoints_deltas_and_their_indices() -> None:
    """The tombstones of deltas change no state, and have no event."""
    made = stage(traced=True)
    made.initialize(3, 100)
    made.write("100-104/2/1", so=100, le=0)
    made.delete()
    events = [event for event in made.events if isinstance(event, StateRecordWritten)]
    assert [(event.kind, event.delta_index) for event in events] == [
        ("checkpoint", -1),
        ("delta", 0),
        ("tombstone", -1),
    ]
