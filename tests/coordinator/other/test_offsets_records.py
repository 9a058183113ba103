"""The bytes of committed offsets (made by Kafka 4.3's own classes), and what replay makes of them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.groups.shard import GroupShard
from shareq.coordinator.other.classic.state import ClassicGroup
from shareq.coordinator.other.offsets.records import NO_EXPIRY, OffsetCommit, OffsetKey, decode, encode, tombstone
from shareq.coordinator.shard import UnreadableRecordError
from shareq.model.ids import ZERO_TOPIC_ID, topic_id_from_bytes
from shareq.model.records import CoordinatorRecord

ID = topic_id_from_bytes(bytes(range(16)))
T = 1_700_000_000_000
WHOSE = OffsetKey("g", "t1", 3)
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
def test_written_as_kafka_writes_them(commit: OffsetCommit, expected: str) -> None:
    assert encode(WHOSE, commit) == CoordinatorRecord(bytes.fromhex(KEY), bytes.fromhex(expected))


def test_tombstones_have_the_key_alone() -> None:
    assert tombstone(WHOSE) == CoordinatorRecord(bytes.fromhex(KEY), None)
    assert decode(*tombstone(WHOSE)) == (WHOSE, None)


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
def test_every_version_is_understood(kind: str, value: str, expected: OffsetCommit) -> None:
    assert decode(bytes.fromhex(kind + KEY[4:]), bytes.fromhex(value)) == (WHOSE, expected)


@pytest.mark.parametrize("value", ["", "0005", "ffff", "0004 00", "0003 000000000000002a 00000007 0009 6869"])
def test_what_makes_no_sense_is_unreadable(value: str) -> None:
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
def test_what_is_written_is_read(key: OffsetKey, commit: OffsetCommit) -> None:
    assert decode(*encode(key, commit)) == (key, commit)


# ---- replay ----------------------------------------------------------------------------------------------------------

Step = tuple[str, int, int]
"""("commit", offset, producer or -1), ("remove", 0, -1), ("end", 0 or 1, producer)."""


def play(steps: Sequence[Step]) -> GroupShard:
    shard = GroupShard()
    for at, (what, number, producer_id) in enumerate(steps):
        if what == "end":
            shard.replay_marker(producer_id, bool(number), 0)
        elif what == "remove":
            shard.replay(at, *tombstone(WHOSE), 0)
        elif producer_id == -1:
            shard.replay(at, *encode(WHOSE, OffsetCommit(number, -1, "", T)), 0)
        else:
            shard.replay_transactional(at, *encode(WHOSE, OffsetCommit(number, -1, "", T)), producer_id, 0)
    return shard


COMMITTED, ABORTED = 1, 0


@pytest.mark.parametrize(
    ("steps", "offset", "pending"),
    [
        pytest.param([("commit", 5, -1)], 5, False, id="a commit"),
        pytest.param([("commit", 5, -1), ("commit", 3, -1)], 3, False, id="the later one counts, not the larger one"),
        pytest.param([("commit", 5, -1), ("remove", 0, -1)], None, False, id="removed"),
        pytest.param([("remove", 0, -1)], None, False, id="nothing to remove"),
        pytest.param([("commit", 5, 9)], None, True, id="in an open transaction"),
        pytest.param([("commit", 5, 9), ("end", COMMITTED, 9)], 5, False, id="committed"),
        pytest.param([("commit", 5, 9), ("end", ABORTED, 9)], None, False, id="aborted"),
        pytest.param([("commit", 5, 9), ("end", COMMITTED, 8)], None, True, id="another producer's marker"),
        pytest.param([("end", COMMITTED, 9)], None, False, id="a marker without a transaction"),
        pytest.param(
            [("commit", 5, 9), ("commit", 6, -1), ("end", COMMITTED, 9)], 6, False, id="what stands later counts"
        ),
        pytest.param(
            [("commit", 4, -1), ("commit", 5, 9), ("end", COMMITTED, 9)], 5, False, id="a transaction after a commit"
        ),
        pytest.param(
            [("commit", 5, 9), ("commit", 6, 8), ("end", COMMITTED, 8)], 6, True, id="two transactions, one open"
        ),
        pytest.param(
            [("commit", 5, 9), ("commit", 6, 8), ("end", COMMITTED, 8), ("end", COMMITTED, 9)],
            6,
            False,
            id="two transactions, the first to write ends last",
        ),
        pytest.param([("commit", 5, 9), ("commit", 7, 9), ("end", COMMITTED, 9)], 7, False, id="twice in one"),
        pytest.param(
            [("commit", 5, 9), ("remove", 0, -1), ("end", COMMITTED, 9)], None, False, id="removed while it is open"
        ),
    ],
)
def test_what_counts(steps: list[Step], offset: int | None, pending: bool) -> None:
    offsets = play(steps).offsets
    commit = offsets.get(WHOSE)
    assert (commit.offset if commit else None, offsets.is_pending(WHOSE)) == (offset, pending)


steps = st.lists(
    st.tuples(st.just("commit"), st.integers(0, 99), st.sampled_from([-1, 8, 9]))
    | st.tuples(st.just("remove"), st.just(0), st.just(-1))
    | st.tuples(st.just("end"), st.integers(0, 1), st.sampled_from([8, 9])),
    max_size=12,
)


@given(steps)
def test_any_history_counts_as_the_plain_reading_of_the_log(history: list[Step]) -> None:
    """The oracle: of all commits that count and are not removed later, the last one in the log."""
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
    offsets = play(history).offsets
    commit = offsets.get(WHOSE)
    assert (commit.offset if commit else None) == (counts[max(counts)] if counts else None)
    assert offsets.is_pending(WHOSE) == any(waiting.values())
    assert list(offsets.pending_keys("g")) == ([WHOSE] if any(waiting.values()) else [])
    assert dict(offsets.topics("g")).keys() == ({"t1"} if counts else set())


def test_offsets_make_a_group_that_is_only_a_name() -> None:
    shard = play([("commit", 5, -1)])
    group = shard.find(ClassicGroup, "g")
    assert group is not None
    assert (group.is_simple, group.state, group.protocol_type) == (True, "Empty", "")


def test_only_offsets_belong_to_transactions() -> None:
    shard = GroupShard()
    with pytest.raises(UnreadableRecordError, match="only offsets"):
        shard.replay_transactional(0, b"\0\2\0\1g", None, 9, 0)
