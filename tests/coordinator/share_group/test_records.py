"""The bytes of share group records, and their replay."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group_coordinator import new_shard
from shareq.coordinator.runtime.codec import Reader, Writer
from shareq.coordinator.runtime.record_codec import DecodedRecord
from shareq.coordinator.runtime.shard import ShardState, UnreadableRecordError
from shareq.coordinator.share_group.records import (
    CurrentMemberAssignment,
    GroupRecord,
    MemberMetadata,
    Metadata,
    NamedTopic,
    NamedTopicPartitions,
    RecordType,
    StatePartitionMetadata,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TopicPartitions,
    Value,
    decode,
    encode,
    tombstone,
)
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.ids import topic_id_from_bytes
from shareq.model.records import CoordinatorRecord
from tests.coordinator.share_group.test_initialize import settled

ID = topic_id_from_bytes(bytes(range(16)))
ID_HEX = bytes(range(16)).hex()

BYTES = [
    pytest.param(
        "m", MemberMetadata("r", "c", "/h", ("a", "b")),
        "000a 0001 67 0001 6d", "0000 0272 0263 032f68 03 0261 0262 00", id="10 with a rack",
    ),
    pytest.param(
        "m", MemberMetadata(None, "", "", ()),
        "000a 0001 67 0001 6d", "0000 00 01 01 01 00", id="10 without a rack and topics",
    ),
    pytest.param(
        "", Metadata(5, -2), "000b 0001 67", "0000 00000005 fffffffffffffffe 00", id="11",
    ),
    pytest.param(
        "", TargetAssignmentMetadata(5, 1_700_000_000_000),
        "000c 0001 67", "0000 00000005 01 00 08 0000018bcfe56800", id="12 with a timestamp in tag 0",
    ),
    pytest.param(
        "", TargetAssignmentMetadata(5), "000c 0001 67", "0000 00000005 00", id="12 without a timestamp",
    ),
    pytest.param(
        "m", TargetAssignmentMember((TopicPartitions(ID, (0, 1)),)),
        "000d 0001 67 0001 6d", f"0000 02 {ID_HEX} 03 00000000 00000001 00 00", id="13",
    ),
    pytest.param(
        "m", TargetAssignmentMember(()), "000d 0001 67 0001 6d", "0000 01 00", id="13 without topics",
    ),
    pytest.param(
        "m", CurrentMemberAssignment(3, 2, 0, (TopicPartitions(ID, (7,)),)),
        "000e 0001 67 0001 6d", f"0000 00000003 00000002 00 02 {ID_HEX} 02 00000007 00 00", id="14",
    ),
    pytest.param(
        "", StatePartitionMetadata(
            (NamedTopicPartitions(ID, "t", (1,)),), (NamedTopicPartitions(ID, "t", (0,)),), (NamedTopic(ID, "u"),)
        ),
        "000f 0001 67",
        f"0000 02 {ID_HEX} 0274 02 00000001 00 02 {ID_HEX} 0274 02 00000000 00 02 {ID_HEX} 0275 00 00", id="15",
    ),
    pytest.param("", StatePartitionMetadata(), "000f 0001 67", "0000 01 01 01 00", id="15 with empty lists"),
]  # fmt: skip


@pytest.mark.parametrize(("member", "value", "key_hex", "value_hex"), BYTES)
def test_records_are_written_byte_for_byte(member: str, value: Value, key_hex: str, value_hex: str) -> None:
    """BEHAVIOUR.md 45."""
    record = encode("g", value, member)
    assert record == CoordinatorRecord(bytes.fromhex(key_hex), bytes.fromhex(value_hex))
    assert decode(*record) == GroupRecord(RecordType(record.key[1]), "g", member, value)


@pytest.mark.parametrize("kind", list(RecordType), ids=lambda kind: kind.name)
def test_tombstones_have_the_key_of_their_record(kind: RecordType) -> None:
    """BEHAVIOUR.md 45."""
    member = "m" if kind in (10, 13, 14) else ""
    record = tombstone(kind, "g", member)
    assert record.value is None
    assert decode(*record) == GroupRecord(kind, "g", member, None)


int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
ids = st.binary(min_size=16, max_size=16).map(topic_id_from_bytes)
indexes = st.lists(int32s, max_size=200).map(tuple)
topics = st.lists(st.builds(TopicPartitions, ids, indexes), max_size=3).map(tuple)
named = st.lists(st.builds(NamedTopicPartitions, ids, text, indexes), max_size=3).map(tuple)
going = st.lists(st.builds(NamedTopic, ids, text), max_size=3).map(tuple)
values = st.one_of(
    st.builds(MemberMetadata, st.none() | text, text, text, st.lists(text, max_size=3).map(tuple)),
    st.builds(Metadata, int32s, int64s),
    st.builds(TargetAssignmentMetadata, int32s, int64s),
    st.builds(TargetAssignmentMember, topics),
    st.builds(CurrentMemberAssignment, int32s, int32s, st.integers(-128, 127), topics),
    st.builds(StatePartitionMetadata, named, named, going),
)


@given(text, text.filter(bool), values)
def test_decoding_inverts_encoding(group_id: str, member_id: str, value: Value) -> None:
    record = decode(*encode(group_id, value, member_id))
    assert isinstance(record, DecodedRecord)
    assert (record.group_id, record.value) == (group_id, value)


@given(values, st.data())
def test_truncated_record_raises_unreadable_record_error_only(value: Value, data: st.DataObject) -> None:
    """A record without its empty tag section at the end is accepted."""
    key, raw = encode("g", value, "m")
    assert raw is not None
    cut = raw[: data.draw(st.integers(0, len(raw) - 1))]
    try:
        record = decode(key, cut)
    except UnreadableRecordError:
        return
    assert isinstance(record, DecodedRecord)
    assert cut == raw[:-1]


def test_unknown_tags_are_ignored() -> None:
    key, _ = encode("g", TargetAssignmentMetadata(5))
    raw = Writer().int16(0).int32(5).tags([(9, b"xyz"), (0, struct.pack(">q", 77))]).finish()
    record = decode(key, raw)
    assert isinstance(record, DecodedRecord)
    assert record.value == TargetAssignmentMetadata(5, 77)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("000b 0001 67", "0001 00000005 0000000000000000 00", id="an unknown version"),
        pytest.param("000b 0005 67", "0000 00", id="a key that is cut off"),
        pytest.param("000b 0001 ff", "0000 00", id="a name of invalid UTF-8"),
        pytest.param("000b ffff", "0000 00", id="a negative length"),
        pytest.param("00", "0000 00", id="a type that is cut off"),
        pytest.param("000d 0001 67 0001 6d", "0000 ffffffffff7f", id="a varint without end"),
    ],
)
def test_invalid_records_raise(key: str, value: str) -> None:
    with pytest.raises(UnreadableRecordError):
        decode(bytes.fromhex(key), bytes.fromhex(value))


@given(st.integers(0, (1 << 31) - 1))
def test_varint_decoding_inverts_encoding(number: int) -> None:
    assert Reader(Writer().uvarint(number).finish()).uvarint() == number


# ---- replay ----------------------------------------------------------------------------------------------------------


def shard_with(*records: CoordinatorRecord) -> GroupShard:
    shard = new_shard()
    for offset, record in enumerate(records):
        shard.replay(offset, *record, 1000)
    return shard


MEMBER = encode("g", MemberMetadata(None, "c", "/h", ("t",)), "m")
CURRENT = encode("g", CurrentMemberAssignment(3, 2, 0, (TopicPartitions(ID, (1, 0)),)), "m")
TARGET = encode("g", TargetAssignmentMember((TopicPartitions(ID, (0, 1)),)), "m")
TARGET_METADATA = encode("g", TargetAssignmentMetadata(3, 99))
CURRENT_T = tombstone(RecordType.CURRENT_MEMBER_ASSIGNMENT, "g", "m")
TARGET_T = tombstone(RecordType.TARGET_ASSIGNMENT_MEMBER, "g", "m")
MEMBER_T = tombstone(RecordType.MEMBER_METADATA, "g", "m")
TARGET_METADATA_T = tombstone(RecordType.TARGET_ASSIGNMENT_METADATA, "g")
STATE_T = tombstone(RecordType.STATE_PARTITION_METADATA, "g")
GROUP_T = tombstone(RecordType.METADATA, "g")


@pytest.mark.parametrize("record", [MEMBER, CURRENT, TARGET, TARGET_METADATA, encode("g", Metadata(1, 0))])
def test_any_record_creates_the_group(record: CoordinatorRecord) -> None:
    """BEHAVIOUR.md 40."""
    assert list(shard_with(record).groups) == ["g"]


def share_group(*records: CoordinatorRecord) -> ShareGroup:
    group = shard_with(*records).find(ShareGroup, "g")
    assert group is not None
    return group


@pytest.mark.parametrize("record", [CURRENT_T, TARGET_T, MEMBER_T, TARGET_METADATA_T, STATE_T, GROUP_T])
def test_tombstones_of_unknown_groups_and_members_are_ignored(record: CoordinatorRecord) -> None:
    """BEHAVIOUR.md 41."""
    assert shard_with(record).groups == {}
    if record in (CURRENT_T, TARGET_T, MEMBER_T):
        assert share_group(encode("g", Metadata(1, 0)), record).members == {}


def test_new_group_has_epoch_1_and_no_targets() -> None:
    """BEHAVIOUR.md 40."""
    group = share_group(encode("g", StatePartitionMetadata()))
    assert (group.group_epoch, group.assignment_epoch, group.assignment_timestamp_ms) == (1, 1, 0)


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([MEMBER, MEMBER_T], id="10T without 14T"),
        pytest.param([MEMBER, CURRENT_T, TARGET, MEMBER_T], id="10T with a target left"),
        pytest.param([TARGET, TARGET_METADATA_T], id="12T with a target left"),
        pytest.param([TARGET_METADATA, GROUP_T], id="11T without 12T"),
        pytest.param([TARGET_METADATA_T, MEMBER, TARGET_METADATA_T, GROUP_T], id="11T with a member left"),
    ],
)
def test_tombstones_in_an_impossible_order_fail_the_load(records: list[CoordinatorRecord]) -> None:
    """BEHAVIOUR.md 41."""
    with pytest.raises(UnreadableRecordError):
        shard_with(*records)


def test_tombstones_remove_the_member_and_then_the_group() -> None:
    """BEHAVIOUR.md 41."""
    records = [MEMBER, TARGET, TARGET_METADATA, CURRENT, CURRENT_T, TARGET_T, MEMBER_T]
    group = share_group(*records)
    assert (group.members, group.targets, group.subscriptions) == ({}, {}, {})
    assert shard_with(*records, TARGET_METADATA_T, STATE_T, GROUP_T).groups == {}


# ---- other records -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [9, 17, 99, -1])
@pytest.mark.parametrize("value", [b"\0\0?", None], ids=["value", "tombstone"])
def test_records_of_unknown_types_are_skipped(kind: int, value: bytes | None) -> None:
    """BEHAVIOUR.md 42."""
    record = CoordinatorRecord(Writer().int16(kind).string("g").finish(), value)
    assert shard_with(record).groups == {}


def test_unreadable_log_leaves_the_shard_failed() -> None:
    """BEHAVIOUR.md 42."""
    stage = settled(t1=1)
    stage.logs[stage.shard_of()].append(CoordinatorRecord(b"\0\x0b\0\1g", b"\0\7"))
    stage.fail_over()
    assert stage.coordinator._runtime.state(stage.shard_of()) is ShardState.FAILED
    assert stage.heartbeat("A", 3) == "NOT_COORDINATOR"
