"""The bytes of consumer group records, as the classes of Apache Kafka 4.3 write them, and their replay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.consumer_group.member import ConsumerGroupMember, Held, MemberState
from shareq.coordinator.consumer_group.records import (
    CurrentMemberAssignment,
    MemberMetadata,
    Metadata,
    PartitionMetadata,
    Record,
    RecordType,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    Value,
    decode,
    encode,
    tombstone,
)
from shareq.coordinator.consumer_group.state import ConsumerGroup
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group_coordinator import new_shard
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.model.ids import topic_id_from_bytes
from shareq.model.records import CoordinatorRecord

ID = topic_id_from_bytes(bytes(range(16)))
HEX = bytes(range(16)).hex()

BYTES = [
    pytest.param("", Metadata(5, -2), "0003 0001 67", "0000 00000005 01 00 08 fffffffffffffffe", id="3"),
    pytest.param("", Metadata(5), "0003 0001 67", "0000 00000005 00", id="3 without a hash: 0 is the default"),
    pytest.param(
        "m", MemberMetadata("i", "r", "c", "/h", ("a", "b"), "x.*", 300_000, "range"), "0005 0001 67 0001 6d",
        "0000 0269 0272 0263 032f68 03 0261 0262 04782e2a 000493e0 06 72616e6765 01 00 01 00", id="5 with everything",
    ),
    pytest.param(
        "m", MemberMetadata(None, None, "", "", (), None, -1, None), "0005 0001 67 0001 6d",
        "0000 00 00 01 01 01 00 ffffffff 00 01 00 01 00", id="5 with nothing",
    ),
    pytest.param(
        "", TargetAssignmentMetadata(5, 1_700_000_000_000), "0006 0001 67",
        "0000 00000005 01 00 08 0000018bcfe56800", id="6",
    ),
    pytest.param("", TargetAssignmentMetadata(5), "0006 0001 67", "0000 00000005 00", id="6 without a time"),
    pytest.param(
        "m", TargetAssignmentMember({ID: (0, 1)}), "0007 0001 67 0001 6d",
        f"0000 02 {HEX} 03 00000000 00000001 00 00", id="7",
    ),
    pytest.param("m", TargetAssignmentMember({}), "0007 0001 67 0001 6d", "0000 01 00", id="7 with nothing"),
    pytest.param(
        "m", CurrentMemberAssignment(3, 2, MemberState.UNREVOKED_PARTITIONS, {ID: {0: 2, 1: 3}}, {ID: {7: 1}}),
        "0008 0001 67 0001 6d",
        f"0000 00000003 00000002 01 02 {HEX} 03 00000000 00000001 01 00 09 03 00000002 00000003"
        f" 02 {HEX} 02 00000007 01 00 05 02 00000001 00", id="8 with epochs of assignment in tag 0",
    ),
    pytest.param(
        "a.*", RegularExpression(("a", "ab"), 7, 1_700_000_000_000), "0010 0001 67 0003 612e2a",
        "0000 03 0261 036162 0000000000000007 0000018bcfe56800 00", id="16",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "key_hex", "value_hex"), BYTES)
def test_bytes_are_those_of_kafka(name: str, value: Value, key_hex: str, value_hex: str) -> None:
    record = encode("g", value, name)
    assert record == CoordinatorRecord(bytes.fromhex(key_hex), bytes.fromhex(value_hex))
    assert decode(*record) == Record(RecordType(int(key_hex[:4], 16)), "g", name, value)


@pytest.mark.parametrize("kind", RecordType)
def test_tombstones(kind: RecordType) -> None:
    named = kind in (
        RecordType.MEMBER_METADATA,
        RecordType.TARGET_ASSIGNMENT_MEMBER,
        RecordType.CURRENT_MEMBER_ASSIGNMENT,
        RecordType.REGULAR_EXPRESSION,
    )
    name = "m" if named else ""
    record = tombstone(kind, "g", name)
    assert record.value is None
    assert decode(*record) == Record(kind, "g", name, None)


OLD = [
    pytest.param("00", id="no tag: before 4.3"),
    pytest.param("01 00 01 00", id="a null tag"),
    pytest.param("01 00 05 02 00000009", id="one epoch of two partitions"),
]


@pytest.mark.parametrize("tags", OLD)
def test_current_assignment_without_epochs_gets_the_member_epoch(tags: str) -> None:
    value = bytes.fromhex(f"0000 00000003 00000002 00 02 {HEX} 03 00000000 00000001 {tags} 01 00")
    key, _ = tombstone(RecordType.CURRENT_MEMBER_ASSIGNMENT, "g", "m")
    read = decode(key, value).value
    assert read == CurrentMemberAssignment(3, 2, MemberState.STABLE, {ID: {0: 3, 1: 3}}, {})


def test_content_of_a_partition_metadata_record_is_ignored() -> None:
    key, _ = tombstone(RecordType.PARTITION_METADATA, "g")
    assert decode(key, b"\0\0whatever").value == PartitionMetadata()


UNREADABLE = [
    pytest.param(RecordType.METADATA, b"\0\1\0\0\0\5\0", id="an unknown version"),
    pytest.param(RecordType.METADATA, b"\0\0\0\0", id="cut off"),
]


@pytest.mark.parametrize(("kind", "value"), UNREADABLE)
def test_invalid_records_raise(kind: RecordType, value: bytes) -> None:
    key, _ = tombstone(kind, "g")
    with pytest.raises(UnreadableRecordError):
        decode(key, value)


@given(
    name=st.text(min_size=1, max_size=20),
    epochs=st.tuples(*[st.integers(-2, 2**31 - 1)] * 2),
    state=st.sampled_from(MemberState),
    held=st.dictionaries(st.just(ID), st.dictionaries(st.integers(0, 9), st.integers(0, 9), min_size=1)),
)
def test_decoding_inverts_encoding(name: str, epochs: tuple[int, int], state: MemberState, held: Held) -> None:
    sorted_held = {topic: dict(sorted(partitions.items())) for topic, partitions in held.items()}
    value = CurrentMemberAssignment(*epochs, state, sorted_held, {})
    assert decode(*encode("g", value, name)) == Record(RecordType.CURRENT_MEMBER_ASSIGNMENT, "g", name, value)


# ---- replay ----------------------------------------------------------------------------------------------------------


def replayed(*records: CoordinatorRecord) -> GroupShard:
    shard = new_shard()
    for offset, (key, value) in enumerate(records):
        shard.replay(offset, key, value, 0)
    return shard


MEMBER = encode("g", MemberMetadata("i", None, "c", "/h", ("a",), "x.*", 1000, "range"), "m")
HELD = encode("g", CurrentMemberAssignment(3, 2, MemberState.STABLE, {ID: {0: 3}}, {ID: {1: 2}}), "m")
GONE = [
    tombstone(RecordType.CURRENT_MEMBER_ASSIGNMENT, "g", "m"),
    tombstone(RecordType.TARGET_ASSIGNMENT_MEMBER, "g", "m"),
    tombstone(RecordType.MEMBER_METADATA, "g", "m"),
]
TARGET = encode("g", TargetAssignmentMember({ID: (0,)}), "m")


def test_replay_restores_the_group_its_owners_and_subscription_counts() -> None:
    group = replayed(MEMBER, encode("g", Metadata(4, 9)), TARGET, HELD).find(ConsumerGroup, "g")
    assert group is not None
    subscription = frozenset({"a"}), "x.*", "range"
    assert group.members == {
        "m": ConsumerGroupMember(
            "m", "i", None, 1000, "c", "/h", *subscription, 3, 2, MemberState.STABLE, {ID: {0: 3}}, {ID: {1: 2}}
        )
    }
    assert (group.group_epoch, group.metadata_hash, group.assignment_epoch) == (4, 9, 1)
    assert group.static_members == {"i": "m"}
    assert group.owners == {ID: {0: "m", 1: "m"}}
    assert (dict(group.topic_counts), dict(group.regex_counts)) == ({"a": 1}, {"x.*": 1})


def test_tombstones_of_a_member_remove_all_its_state() -> None:
    group = replayed(MEMBER, TARGET, HELD, *GONE).find(ConsumerGroup, "g")
    assert group is not None
    left = group.members, group.targets, group.static_members, group.topic_counts, group.regex_counts
    assert not any(left)
    assert not any(group.owners.values())


def test_tombstones_of_the_former_static_member_keep_the_instance_id() -> None:
    newer = encode("g", MemberMetadata("i", None, "c", "/h", (), None, 1000, None), "n")
    group = replayed(MEMBER, HELD, newer, *GONE).find(ConsumerGroup, "g")
    assert group is not None
    assert group.static_members == {"i": "n"}


ENDS = [
    pytest.param([GONE[2]], id="a member before its current assignment"),
    pytest.param([GONE[0], GONE[2]], id="a member before its target"),
    pytest.param([tombstone(RecordType.TARGET_ASSIGNMENT_METADATA, "g")], id="the target epoch before the targets"),
    pytest.param([tombstone(RecordType.METADATA, "g")], id="the group before its members"),
    pytest.param([*GONE, tombstone(RecordType.METADATA, "g")], id="the group before its target epoch"),
]


@pytest.mark.parametrize("ends", ENDS)
def test_tombstones_in_the_wrong_order_raise(ends: list[CoordinatorRecord]) -> None:
    with pytest.raises(UnreadableRecordError):
        replayed(MEMBER, TARGET, HELD, *ends)


def test_tombstones_of_unknown_keys_are_ignored() -> None:
    groups = replayed(
        *GONE, tombstone(RecordType.METADATA, "g"), tombstone(RecordType.REGULAR_EXPRESSION, "g", "x")
    ).groups
    assert groups == {}


def test_tombstones_of_an_empty_group_delete_it() -> None:
    shard = replayed(encode("g", Metadata(4, 9)))
    group = shard.find(ConsumerGroup, "g")
    assert group is not None
    for key, value in group.tombstones():
        shard.replay(9, key, value, 0)
    assert shard.groups == {}
