"""Replay (BEHAVIOUR.md 27 to 29) and the pruning offset (BEHAVIOUR.md 30)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.records import (
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    encode_state_record,
)
from shareq.coordinator.share_state.state import KeyState, PruningOffsets, StateShard
from shareq.model.ids import SharePartitionKey
from tests.coordinator.share_state.stage import KEY, TOPIC, batches, image

TEXT = "100-104/2/1 105-109/0/2"
SNAPSHOT = StateSnapshot(KEY, 2, 5, 7, 100, 1000, 2000, batches(TEXT), 5)
UPDATE = StateUpdate(KEY, 2, 8, 105, batches("105-106/2/2"), 3)


def replayed(*records: StateRecord, limit: int = 500) -> StateShard:
    cluster = image(snapshot_update_records_per_snapshot=limit)
    shard = StateShard(lambda: cluster)
    for offset, record in enumerate(records):
        key, value = encode_state_record(record)
        shard.replay(offset, key, value, 0)
    return shard


def state(*values: int, text: str = "", created: int = 0, written: int = 0, fences: tuple[int, int]) -> KeyState:
    """`values`: snapshot epoch, state epoch, leader epoch, start offset, count, updates. `fences`: leader, state."""
    ss, se, le, so, dcc, updates = values
    return KeyState(ss, se, le, so, dcc, batches(text), created, written, *fences, updates)


LATER = StateSnapshot(KEY, 3, 4, 6, 50, 3000, 3000, (), 0)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(
            [SNAPSHOT], state(2, 5, 7, 100, 5, 0, text=TEXT, created=1000, written=2000, fences=(7, 5)), id="snapshot"
        ),
        pytest.param(
            [SNAPSHOT, LATER],
            state(3, 4, 6, 50, 0, 0, created=3000, written=3000, fences=(7, 5)),
            id="a snapshot replaces the state; the fences keep their maxima",
        ),
        pytest.param(
            [SNAPSHOT, UPDATE],
            state(
                2, 5, 8, 105, 3, 1, text="105-106/2/2 107-109/0/2", created=1000, written=2000, fences=(8, 5)
            ),
            id="an update combines and keeps snapshot epoch, state epoch and times",
        ),
        pytest.param(
            [SNAPSHOT, UPDATE._replace(start_offset=-1, leader_epoch=-1, delivery_complete_count=-1)],
            state(
                2, 5, 7, 100, -1, 1,
                text="100-104/2/1 105-106/2/2 107-109/0/2", created=1000, written=2000, fences=(7, 5),
            ),
            id="-1 in an update keeps offset and leader epoch, and replaces the count",
        ),
        pytest.param(
            [SNAPSHOT, UPDATE._replace(leader_epoch=6)],
            state(
                2, 5, 6, 105, 3, 1, text="105-106/2/2 107-109/0/2", created=1000, written=2000, fences=(7, 5)
            ),
            id="a lower leader epoch is applied, its fence stays",
        ),
        pytest.param(
            [SNAPSHOT, UPDATE._replace(snapshot_epoch=77)],
            state(
                2, 5, 8, 105, 3, 1, text="105-106/2/2 107-109/0/2", created=1000, written=2000, fences=(8, 5)
            ),
            id="an update with another snapshot epoch is applied",
        ),
        pytest.param(
            [UPDATE], state(2, 0, 8, 105, 3, 1, text="105-106/2/2", fences=(8, -1)), id="an update without a state"
        ),
        pytest.param([SNAPSHOT, StateTombstone(KEY)], None, id="tombstone"),
        pytest.param([StateTombstone(KEY)], None, id="tombstone without a state"),
        pytest.param(
            [SNAPSHOT, UPDATE, StateTombstone(KEY), LATER],
            state(3, 4, 6, 50, 0, 0, created=3000, written=3000, fences=(6, 4)),
            id="a tombstone clears fences and updates",
        ),
    ],
)  # fmt: skip
def test_replayed_state(records: list[StateRecord], expected: KeyState | None) -> None:
    assert replayed(*records).states.get(KEY) == expected


@pytest.mark.parametrize(
    ("limit", "updates", "expected"),
    [
        pytest.param(2, 1, 1, id="an early snapshot does not reset the count"),
        pytest.param(2, 2, 0, id="a snapshot that was due resets it"),
        pytest.param(2, 3, 0, id="an overdue snapshot resets it"),
        pytest.param(0, 0, 0, id="limit 0"),
    ],
)
def test_update_count_after_a_snapshot(limit: int, updates: int, expected: int) -> None:
    """BEHAVIOUR.md 24."""
    shard = replayed(SNAPSHOT, *[UPDATE] * updates, SNAPSHOT, limit=limit)
    assert shard.states[KEY].update_count == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(encode_state_record(UPDATE).key, None, id="null update"),
        pytest.param(encode_state_record(UPDATE).key, b"\x00\x01", id="unknown version"),
        pytest.param(encode_state_record(SNAPSHOT).key, b"\x00\x00\x00", id="cut off"),
    ],
)
def test_unreadable_record_raises(key: bytes, value: bytes | None) -> None:
    """BEHAVIOUR.md 29."""
    shard = replayed(SNAPSHOT)
    with pytest.raises(UnreadableRecordError):
        shard.replay(1, key, value, 0)


def test_unknown_key_type_is_skipped() -> None:
    """BEHAVIOUR.md 29."""
    shard = replayed(SNAPSHOT)
    shard.replay(1, b"\x00\x09whatever", b"\x00\x00", 0)
    assert shard.states == replayed(SNAPSHOT).states


# ---- pruning ---------------------------------------------------------------------------------------------------------


def key(name: str) -> SharePartitionKey:
    return SharePartitionKey(name, TOPIC, 0)


def redundant_offsets(steps: str) -> list[int]:
    """`redundant_before` after each step: `A@5` is a snapshot of A at offset 5, `B†@12` a tombstone."""
    offsets, seen = PruningOffsets(), []
    for step in steps.split():
        name, offset = step.split("@")
        if name.endswith("†"):
            offsets.tombstone(key(name[:-1]), int(offset))
        else:
            offsets.snapshot(key(name), int(offset))
        seen.append(offsets.redundant_before)
    return seen


@pytest.mark.parametrize(
    ("steps", "redundant_before"),
    [
        pytest.param("A@5 B@6 A@9 B†@12 C@14 A@20", [5, 5, 6, 9, 9, 14], id="example 16"),
        pytest.param(
            "A@5 B@6 A†@8 B@9 B†@11 C@15",
            [5, 5, 6, 9, 11, 15],
            id="example 17, hard case 24: a deleted key does not hold back pruning",
        ),
        pytest.param("A@0", [0], id="example 18: none"),
    ],
)
def test_examples_of_pruning(steps: str, redundant_before: list[int]) -> None:
    """BEHAVIOUR.md 30."""
    assert redundant_offsets(steps) == redundant_before


@given(st.lists(st.tuples(st.sampled_from("ABCDEF"), st.booleans()), max_size=40))
def test_pruning_offset_equals_the_minimum_over_all_keys(steps: list[tuple[str, bool]]) -> None:
    """BEHAVIOUR.md 30."""
    latest: dict[str, int] = {}
    expected = []
    for offset, (name, ends) in enumerate(steps):
        latest[name] = offset
        expected.append(min(latest.values()))
        if ends:
            del latest[name]
    text = " ".join(f"{name}{'†' * ends}@{offset}" for offset, (name, ends) in enumerate(steps))
    assert redundant_offsets(text) == expected
