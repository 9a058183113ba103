"""The bytes of the record of a classic group, as the classes of Apache Kafka 4.3 write them, and its replay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shareq.coordinator.classic_group.records import (
    GroupMetadata,
    MemberMetadata,
    decode,
    encode,
    tombstone,
)
from shareq.coordinator.classic_group.state import ClassicGroup
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.group_coordinator import new_shard
from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_group.records import Metadata
from shareq.coordinator.share_group.records import encode as encode_share
from shareq.model.records import CoordinatorRecord
from tests.coordinator.groups.members import subscription

KEY = "0002000167"
T = 1_700_000_000_000
M1 = MemberMetadata("m1", None, "c", "/h", 300_000, 45_000, b"\1\2", b"\3")
M2 = MemberMetadata("m2", "i", "c", "/h", -1, 10_000, b"", b"")
BY_VERSION = {
    0: "0000 0008 636f6e73756d6572 00000005 0005 72616e6765 0002 6d31 00000002"
    " 0002 6d31 0001 63 0002 2f68 0000afc8 00000002 0102 00000001 03"
    " 0002 6d32 0001 63 0002 2f68 00002710 00000000 00000000",
    1: "0001 0008 636f6e73756d6572 00000005 0005 72616e6765 0002 6d31 00000002"
    " 0002 6d31 0001 63 0002 2f68 000493e0 0000afc8 00000002 0102 00000001 03"
    " 0002 6d32 0001 63 0002 2f68 ffffffff 00002710 00000000 00000000",
    2: "0002 0008 636f6e73756d6572 00000005 0005 72616e6765 0002 6d31 0000018bcfe56800 00000002"
    " 0002 6d31 0001 63 0002 2f68 000493e0 0000afc8 00000002 0102 00000001 03"
    " 0002 6d32 0001 63 0002 2f68 ffffffff 00002710 00000000 00000000",
    3: "0003 0008 636f6e73756d6572 00000005 0005 72616e6765 0002 6d31 0000018bcfe56800 00000002"
    " 0002 6d31 ffff 0001 63 0002 2f68 000493e0 0000afc8 00000002 0102 00000001 03"
    " 0002 6d32 0001 69 0001 63 0002 2f68 ffffffff 00002710 00000000 00000000",
    4: "0004 09 636f6e73756d6572 00000005 06 72616e6765 03 6d31 0000018bcfe56800 03"
    " 03 6d31 00 02 63 03 2f68 000493e0 0000afc8 03 0102 02 03 00"
    " 03 6d32 02 69 02 63 03 2f68 ffffffff 00002710 01 01 00 00",
}
FULL = GroupMetadata("consumer", 5, "range", "m1", T, (M1, M2))
EMPTY = GroupMetadata("", 0, None, None, -1, ())
EMPTY_BYTES = "0003 0000 00000000 ffff ffff ffffffffffffffff 00000000"


@pytest.mark.parametrize(
    ("value", "expected"), [pytest.param(FULL, BY_VERSION[3], id="full"), pytest.param(EMPTY, EMPTY_BYTES, id="empty")]
)
def test_bytes_are_those_of_kafka(value: GroupMetadata, expected: str) -> None:
    assert encode("g", value) == CoordinatorRecord(bytes.fromhex(KEY), bytes.fromhex(expected))


@pytest.mark.parametrize(
    ("version", "since_ms", "instance_id"),
    [(0, -1, None), (1, -1, None), (2, T, None), (3, T, "i"), (4, T, "i")],
)
def test_all_versions_are_decoded(version: int, since_ms: int, instance_id: str | None) -> None:
    """Fields that a version lacks have their defaults."""
    read = decode(bytes.fromhex(KEY), bytes.fromhex(BY_VERSION[version]))
    first = M1 if version else M1._replace(rebalance_timeout_ms=-1)
    second = M2._replace(group_instance_id=instance_id)
    assert read == ("g", FULL._replace(current_state_timestamp=since_ms, members=(first, second)))


@pytest.mark.parametrize(
    "value",
    ["", "0005 00", "ffff 00", BY_VERSION[3][:-4], BY_VERSION[4][:-6], "0003 0001 ff"],
    ids=["empty", "a newer version", "a negative version", "cut off", "cut off, flexible", "invalid UTF-8"],
)
def test_invalid_records_raise(value: str) -> None:
    with pytest.raises(UnreadableRecordError):
        decode(bytes.fromhex(KEY), bytes.fromhex(value))


names = st.text(max_size=5)
members = st.builds(
    MemberMetadata,
    names,
    st.none() | names,
    names,
    names,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=5),
    st.binary(max_size=5),
)
values = st.builds(
    GroupMetadata,
    names,
    st.integers(0, 2**31 - 1),
    st.none() | names,
    st.none() | names,
    st.integers(-1, 2**63 - 1),
    st.lists(members, max_size=3).map(tuple),
)


@given(names, values)
def test_decoding_inverts_encoding(group_id: str, value: GroupMetadata) -> None:
    assert decode(*encode(group_id, value)) == (group_id, value)


# ---- replay ----------------------------------------------------------------------------------------------------------

STABLE = FULL._replace(members=(M1._replace(subscription=subscription("t1", "t2")), M2))


def shard_with(*records: CoordinatorRecord) -> GroupShard:
    shard = new_shard()
    for offset, (key, value) in enumerate(records):
        shard.replay(offset, key, value, 0)
    return shard


def group_of(*records: CoordinatorRecord) -> ClassicGroup:
    group = shard_with(*records).find(ClassicGroup, "g")
    assert group is not None
    return group


def test_replayed_group_with_members_is_stable() -> None:
    group = group_of(encode("g", STABLE._replace(members=STABLE.members[:1])))
    assert (group.state, group.generation_id, group.leader_id, group.state_since_ms) == ("Stable", 5, "m1", T)
    assert (group.protocol_type, group.protocol_name, group.topics) == (
        "consumer",
        "range",
        frozenset({"t1", "t2"}),
    )
    member = group.members["m1"]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms, member.assignment) == (45_000, 300_000, b"\3")
    assert (member.is_new, member.awaiting_join, member.metadata("range")) == (False, None, subscription("t1", "t2"))


def test_rebalance_timeout_of_minus_1_is_the_session_timeout() -> None:
    assert group_of(encode("g", STABLE)).members["m2"].rebalance_timeout_ms == 10_000


def test_replayed_group_without_members_is_empty() -> None:
    group = group_of(encode("g", EMPTY))
    assert (group.state, group.state_since_ms, group.topics, group.is_simple) == ("Empty", None, None, True)


def test_invalid_subscriptions_have_no_topics() -> None:
    assert group_of(encode("g", FULL)).topics == frozenset()


def test_record_replaces_the_group_and_tombstone_deletes_it() -> None:
    assert group_of(encode("g", STABLE), encode("g", EMPTY)).members == {}
    assert shard_with(encode("g", STABLE), tombstone("g")).groups == {}
    assert shard_with(tombstone("g")).groups == {}


SHARE = encode_share("g", Metadata(1, 0))


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([encode("g", STABLE), SHARE], id="a share record for a classic group"),
        pytest.param([SHARE, encode("g", STABLE)], id="a classic record for a share group"),
    ],
)
def test_records_of_two_types_under_one_id_raise(records: list[CoordinatorRecord]) -> None:
    with pytest.raises(UnreadableRecordError, match="g is of type"):
        shard_with(*records)
