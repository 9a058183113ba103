"""The bytes of committed offsets, as the classes of Apache Kafka 4.3 write them, and their replay."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.classic_group.state import ClassicGroup
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group_coordinator import new_shard
from shareq.coordinator.offsets.records import NO_EXPIRY, OffsetCommit, OffsetKey, decode, encode, tombstone
from shareq.coordinator.offsets.state import Offsets
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.ids import ZERO_TOPIC_ID, topic_id_from_bytes
from shareq.model.records import CoordinatorRecord

ID = topic_id_from_bytes(bytes(range(16)))
T = 1_700_000_000_000
OFFSET_KEY = OffsetKey("g", "t1", 3)
KEY = "0001 0001 67 0002 7431 00000003"
COMMIT = OffsetCommit(42, 7, "hi", T, ID)


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        pytest.param(
            COMMIT,
            "0004 000000000000002a 00000007 03 6869 0000018bcfe56800 01 00 10 000102030405060708090a0b0c0d0e0f",
            id="with the topic's id",
        ),
        pytest.param(
            OffsetCommit(42, -1, "", T), "0004 000000000000002a ffffffff 01 0000018bcfe56800 00", id="without"
        ),
    ],
)
def test_bytes_are_those_of_kafka(commit: OffsetCommit, expected: str) -> None:
    assert encode(OFFSET_KEY, commit) == CoordinatorRecord(bytes.fromhex(KEY), bytes.fromhex(expected))


def test_tombstone_has_the_key_and_no_value() -> None:
    assert tombstone(OFFSET_KEY) == CoordinatorRecord(bytes.fromhex(KEY), None)
    assert decode(*tombstone(OFFSET_KEY)) == (OFFSET_KEY, None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000 000000000000002a 0002 6869 0000018bcfe56800", OffsetCommit(42, -1, "hi", T)),
        (
            "0001 000000000000002a 0002 6869 0000018bcfe56800 0000018bcfe56be8",
            OffsetCommit(42, -1, "hi", T, ZERO_TOPIC_ID, T + 1000),
        ),
        ("0002 000000000000002a 0002 6869 0000018bcfe56800", OffsetCommit(42, -1, "hi", T)),
        ("0003 000000000000002a 00000007 0002 6869 0000018bcfe56800", OffsetCommit(42, 7, "hi", T)),
        ("0004 000000000000002a 00000007 03 6869 0000018bcfe56800 00", OffsetCommit(42, 7, "hi", T)),
    ],
    ids=["v0", "v1", "v2", "v3", "v4"],
)
@pytest.mark.parametrize("kind", ["0000", "0001"])
def test_all_versions_are_decoded(kind: str, value: str, expected: OffsetCommit) -> None:
    assert decode(bytes.fromhex(kind + KEY[4:]), bytes.fromhex(value)) == (OFFSET_KEY, expected)


@pytest.mark.parametrize("value", ["", "0005", "ffff", "0004 00", "0003 000000000000002a 00000007 0009 6869"])
def test_invalid_records_raise(value: str) -> None:
    with pytest.raises(UnreadableRecordError):
        decode(bytes.fromhex(KEY), bytes.fromhex(value))


names = st.text(max_size=5)
commits = st.builds(
    OffsetCommit,
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    names,
    st.integers(0, 2**63 - 1),
    st.binary(min_size=16, max_size=16).map(topic_id_from_bytes),
    st.just(NO_EXPIRY),
)


@given(st.builds(OffsetKey, names, names, st.integers(0, 2**31 - 1)), commits)
def test_decoding_inverts_encoding(key: OffsetKey, commit: OffsetCommit) -> None:
    assert decode(*encode(key, commit)) == (key, commit)


def test_an_expiry_time_is_written_in_version_1() -> None:
    """It has neither leader epoch nor topic id."""
    commit = OffsetCommit(42, 7, "hi", T, topic_id_from_bytes(b"t" * 16), expire_timestamp=T + 1)
    _, value = encode(OFFSET_KEY, commit)
    assert value is not None
    assert value[:2] == b"\0\1"
    expected = commit._replace(leader_epoch=-1, topic_id=ZERO_TOPIC_ID)
    assert decode(*encode(OFFSET_KEY, commit)) == (OFFSET_KEY, expected)


# ---- replay ----------------------------------------------------------------------------------------------------------

Step = tuple[str, int, int]
"""("commit", offset, producer or -1), ("remove", 0, -1), ("end", 0 or 1, producer)."""


def replay_steps(steps: Sequence[Step]) -> GroupShard:
    shard = new_shard()
    for at, (what, number, producer_id) in enumerate(steps):
        if what == "end":
            shard.replay_marker(producer_id, bool(number), 0)
        elif what == "remove":
            shard.replay(at, *tombstone(OFFSET_KEY), 0)
        elif producer_id == -1:
            shard.replay(at, *encode(OFFSET_KEY, OffsetCommit(number, -1, "", T)), 0)
        else:
            shard.replay_transactional(at, *encode(OFFSET_KEY, OffsetCommit(number, -1, "", T)), producer_id, 0)
    return shard


COMMITTED, ABORTED = 1, 0


@pytest.mark.parametrize(
    ("steps", "offset", "pending"),
    [
        pytest.param([("commit", 5, -1)], 5, False, id="a commit"),
        pytest.param(
            [("commit", 5, -1), ("commit", 3, -1)], 3, False, id="the later record wins, not the larger offset"
        ),
        pytest.param([("commit", 5, -1), ("remove", 0, -1)], None, False, id="removed"),
        pytest.param([("remove", 0, -1)], None, False, id="nothing to remove"),
        pytest.param([("commit", 5, 9)], None, True, id="in an open transaction"),
        pytest.param([("commit", 5, 9), ("end", COMMITTED, 9)], 5, False, id="committed"),
        pytest.param([("commit", 5, 9), ("end", ABORTED, 9)], None, False, id="aborted"),
        pytest.param([("commit", 5, 9), ("end", COMMITTED, 8)], None, True, id="another producer's marker"),
        pytest.param([("end", COMMITTED, 9)], None, False, id="a marker without a transaction"),
        pytest.param(
            [("commit", 5, 9), ("commit", 6, -1), ("end", COMMITTED, 9)], 6, False, id="the later record wins"
        ),
        pytest.param(
            [("commit", 4, -1), ("commit", 5, 9), ("end", COMMITTED, 9)],
            5,
            False,
            id="a commit of a transaction after a plain one",
        ),
        pytest.param(
            [("commit", 5, 9), ("commit", 6, 8), ("end", COMMITTED, 8)], 6, True, id="two transactions, one open"
        ),
        pytest.param(
            [("commit", 5, 9), ("commit", 6, 8), ("end", COMMITTED, 8), ("end", COMMITTED, 9)],
            6,
            False,
            id="two transactions, the first one ends last",
        ),
        pytest.param(
            [("commit", 5, 9), ("commit", 7, 9), ("end", COMMITTED, 9)], 7, False, id="two commits in one transaction"
        ),
        pytest.param(
            [("commit", 5, 9), ("remove", 0, -1), ("end", COMMITTED, 9)], None, False, id="removed while it is open"
        ),
    ],
)
def test_committed_and_pending_offset_after_replay(steps: list[Step], offset: int | None, pending: bool) -> None:
    offsets = replay_steps(steps).own(Offsets)
    commit = offsets.get(OFFSET_KEY)
    assert (commit.offset if commit else None, offsets.is_pending(OFFSET_KEY)) == (offset, pending)


steps = st.lists(
    st.tuples(st.just("commit"), st.integers(0, 99), st.sampled_from([-1, 8, 9]))
    | st.tuples(st.just("remove"), st.just(0), st.just(-1))
    | st.tuples(st.just("end"), st.integers(0, 1), st.sampled_from([8, 9])),
    max_size=12,
)


@given(steps)
def test_replay_of_any_history_gives_the_last_effective_commit(history: list[Step]) -> None:
    """Oracle: of all effective commits that are not removed later, the last one in the log."""
    counts: dict[int, int] = {}
    waiting: dict[int, dict[int, int]] = {8: {}, 9: {}}
    for at, (what, number, producer_id) in enumerate(history):
        if what == "remove":
            counts.clear()
            waiting = {8: {}, 9: {}}
        elif what == "end":
            ended = waiting.pop(producer_id)
            waiting[producer_id] = {}
            counts.update(ended if number else {})
        elif producer_id == -1:
            counts[at] = number
        else:
            waiting[producer_id] = {at: number}
    offsets = replay_steps(history).own(Offsets)
    commit = offsets.get(OFFSET_KEY)
    assert (commit.offset if commit else None) == (counts[max(counts)] if counts else None)
    assert offsets.is_pending(OFFSET_KEY) == any(waiting.values())
    assert list(offsets.pending_keys("g")) == ([OFFSET_KEY] if any(waiting.values()) else [])
    assert dict(offsets.topics("g")).keys() == ({"t1"} if counts else set())


def test_offset_of_an_absent_group_creates_a_simple_group() -> None:
    shard = replay_steps([("commit", 5, -1)])
    group = shard.find(ClassicGroup, "g")
    assert group is not None
    assert (group.is_simple, group.state, group.protocol_type) == (True, "Empty", "")


def test_transactional_record_that_is_no_offset_raises() -> None:
    shard = new_shard()
    with pytest.raises(UnreadableRecordError, match="only offsets"):
        shard.replay_transactional(0, b"\0\2\0\1g", None, 9, 0)
