"""What requests of early versions mean, on a shareq cluster, on shareq before a Kafka, and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from shareq.model.messages.cluster import FindCoordinatorRequest, ListGroupsRequest, MetadataRequest
from shareq.model.messages.data import ListOffsetsRequest, ProduceRequest
from shareq.model.messages.describe import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    ListConfigResourcesRequest,
)
from shareq.model.messages.features import UpdateFeaturesRequest
from shareq.model.messages.fetch import INITIAL_EPOCH, FetchRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetFetchRequest
from shareq.model.messages.topics import CreateTopicsRequest, DeleteTopicsRequest, ElectLeadersRequest
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from tests.kafka.fixtures import Reachable
from tests.polling import eventually
from tests.wire.raw import Raw

Fresh = Callable[[str], str]
AT = 1_700_000_000_000


@pytest.fixture
def raw(broker: Reachable) -> Iterator[Raw]:
    with Raw(int(broker.bootstrap_servers.rpartition(":")[2])) as made:
        yield made


@pytest.fixture
def topic(raw: Raw, fresh: Fresh) -> str:
    """A topic that is created in the first version, with one partition."""
    return created(raw, fresh("orders"))


def created(raw: Raw, name: str, **configs: str) -> str:
    wanted = CreateTopicsRequest.Topic(
        name=name, num_partitions=1, replication_factor=1, configs=tuple(configs.items())
    )
    (made,) = raw.ask(CreateTopicsRequest(topics=(wanted,), timeout_ms=30_000), 2).topics
    assert made.error_code is Errors.NONE
    metadata = MetadataRequest(topics=(MetadataRequest.Topic(name=name),), allow_auto_topic_creation=True)
    eventually(lambda: raw.ask(metadata, 1).topics[0].error_code, Errors.NONE)
    # Kafka's brokers lead a partition some moments after they show it.
    eventually(lambda: fetched(raw, name, 4), ("NONE", []))
    return name


def batch(*values: bytes, compression: str = "none", **producer: Any) -> bytes:
    return encode_batch([(None, value, [], AT) for value in values], compression=compression, **producer)


def written(raw: Raw, topic: str, records: bytes, version: int, **fields: Any) -> tuple[str, int]:
    """The error and the base offset of a Produce."""
    part = ProduceRequest.Partition(index=0, records=records)
    request = ProduceRequest(topics=(ProduceRequest.Topic(name=topic, partitions=(part,)),), **fields)
    (response,) = raw.ask(request, version).responses
    (partition,) = response.partitions
    assert response.name == topic
    return partition.error_code.name, partition.base_offset


def fetch(topic: str, offset: int = 0, **session: Any) -> FetchRequest:
    part = FetchRequest.Partition(partition=0, fetch_offset=offset)
    return FetchRequest(max_wait_ms=0, topics=(FetchRequest.Topic(topic=topic, partitions=(part,)),), **session)


def fetched(raw: Raw, topic: str, version: int, offset: int = 0) -> tuple[str, list[int]]:
    """The error, and the last offsets of the fetched batches."""
    answer = raw.ask(fetch(topic, offset), version)
    assert (answer.error_code, answer.session_id) == (Errors.NONE, 0)
    (response,) = answer.responses
    (partition,) = response.partitions
    assert response.topic == topic
    return partition.error_code.name, [found.last_offset for found in partition.records]


# ---- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("produce_version", "fetch_version"), [(3, 4), (5, 6), (7, 7), (8, 11), (9, 12)])
def test_records_are_produced_and_fetched_by_name(
    raw: Raw, topic: str, produce_version: int, fetch_version: int
) -> None:
    assert written(raw, topic, batch(b"a", b"b"), produce_version) == ("NONE", 0)
    assert written(raw, topic, batch(b"c"), produce_version) == ("NONE", 2)
    assert fetched(raw, topic, fetch_version) == ("NONE", [1, 2])
    assert fetched(raw, topic, fetch_version, 2) == ("NONE", [2])
    assert fetched(raw, topic, fetch_version, 9) == ("OFFSET_OUT_OF_RANGE", [])


@pytest.mark.parametrize("version", [4, 12])
def test_a_name_without_topic_is_unknown(raw: Raw, version: int) -> None:
    assert fetched(raw, "absent", version) == ("UNKNOWN_TOPIC_OR_PARTITION", [])
    assert written(raw, "absent", batch(b"a"), 3) == ("UNKNOWN_TOPIC_OR_PARTITION", -1)


def test_message_sets_of_old_formats_are_refused(raw: Raw, topic: str) -> None:
    """A message with magic 1: offset, size, CRC, magic, attributes, timestamp, key, value."""
    message = b"\1\0" + AT.to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\0\0\0\1a"
    old = bytes(8) + (len(message) + 4).to_bytes(4, "big") + bytes(4) + message
    assert written(raw, topic, old, 3) == ("INVALID_RECORD", -1)


@pytest.mark.parametrize(("version", "expected"), [(6, ("UNSUPPORTED_COMPRESSION_TYPE", -1)), (7, ("NONE", 0))])
def test_zstd_may_be_produced_from_version_7_on(raw: Raw, topic: str, version: int, expected: tuple[str, int]) -> None:
    assert written(raw, topic, batch(b"a" * 99, compression="zstd"), version) == expected


@pytest.mark.parametrize("version", [4, 9, 10])
def test_topics_with_zstd_are_fetched_in_each_version(raw: Raw, fresh: Fresh, version: int) -> None:
    topic = created(raw, fresh("zstd"), **{"compression.type": "zstd"})
    assert written(raw, topic, batch(b"a"), 3) == ("NONE", 0)
    assert fetched(raw, topic, version) == ("NONE", [0])


def test_a_fetch_session_by_name(raw: Raw, topic: str) -> None:
    """Incremental fetches have changes only; a session cannot go on with topic ids."""
    written(raw, topic, batch(b"a"), 3)
    opened = raw.ask(fetch(topic, 1, session_epoch=INITIAL_EPOCH), 7)
    assert opened.session_id != 0
    session = {"session_id": opened.session_id, "max_wait_ms": 0}
    assert raw.ask(FetchRequest(session_epoch=1, **session), 12).responses == ()
    written(raw, topic, batch(b"b"), 3)
    (changed,) = raw.ask(FetchRequest(session_epoch=2, **session), 12).responses
    assert (changed.topic, [found.last_offset for found in changed.partitions[0].records]) == (topic, [1])
    forgotten = (FetchRequest.ForgottenTopic(topic=topic, partitions=(0,)),)
    by_id = raw.ask(FetchRequest(session_epoch=3, **session), 13)
    assert by_id.error_code is Errors.FETCH_SESSION_TOPIC_ID_ERROR
    closed = raw.ask(FetchRequest(session_epoch=3, forgotten_topics_data=forgotten, **session), 12)
    assert (closed.error_code, closed.session_id, closed.responses) == (Errors.NONE, 0, ())


@pytest.mark.parametrize("version", [1, 3, 6])
def test_offsets_of_timestamps(raw: Raw, topic: str, version: int) -> None:
    written(raw, topic, batch(b"a", b"b"), 3)

    def offset(timestamp: int) -> tuple[str, int, int]:
        part = ListOffsetsRequest.Partition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(topics=(ListOffsetsRequest.Topic(name=topic, partitions=(part,)),))
        (found,) = raw.ask(request, version).topics[0].partitions
        return found.error_code.name, found.offset, found.timestamp

    assert offset(-1) == ("NONE", 2, -1)
    assert offset(-2) == ("NONE", 0, -1)
    assert offset(AT) == ("NONE", 0, AT)
    assert offset(-3) == ("UNSUPPORTED_VERSION", -1, -1)


# ---- topics ----------------------------------------------------------------------------------------------------------


def test_an_empty_list_of_topics_means_all_in_version_0_alone(raw: Raw, topic: str) -> None:
    everything = MetadataRequest(topics=None, allow_auto_topic_creation=True)
    nothing = MetadataRequest(topics=(), allow_auto_topic_creation=True)
    for version in (0, 1, 9):
        assert topic in [found.name for found in raw.ask(everything, version).topics]
    assert raw.ask(nothing, 1).topics == ()


@pytest.mark.parametrize("version", [0, 3])
def test_metadata_before_version_4_creates_missing_topics(raw: Raw, fresh: Fresh, version: int) -> None:
    name = fresh("made")
    request = MetadataRequest(topics=(MetadataRequest.Topic(name=name),), allow_auto_topic_creation=True)
    eventually(lambda: raw.ask(request, version).topics[0].error_code, Errors.NONE)


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name(raw: Raw, topic: str, version: int) -> None:
    request = DeleteTopicsRequest(
        topics=(DeleteTopicsRequest.Topic(name=topic), DeleteTopicsRequest.Topic(name="absent")), timeout_ms=30_000
    )
    answer = {found.name: found.error_code.name for found in raw.ask(request, version).responses}
    assert answer == {topic: "NONE", "absent": "UNKNOWN_TOPIC_OR_PARTITION"}


# ---- groups ----------------------------------------------------------------------------------------------------------


def coordinated(raw: Raw, key: str, key_type: int = 0, version: int = 0) -> str:
    """The key, when it has a coordinator that has loaded its state."""
    request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)
    eventually(lambda: raw.ask(request, version).coordinators[0].error_code, Errors.NONE)
    if key_type == 0:
        eventually(lambda: offsets(raw, key, None, 2)[0], "NONE")
    return key


@pytest.fixture
def group(raw: Raw, fresh: Fresh) -> str:
    return coordinated(raw, fresh("g"))


def offsets(raw: Raw, group: str, topic: str | None, version: int) -> tuple[str, list[tuple[str, int]]]:
    """The error of the group, and error and offset of each partition."""
    topics = None if topic is None else (OffsetFetchRequest.Topic(name=topic, partition_indexes=(0,)),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequest.Group(group_id=group, topics=topics),))
    (found,) = raw.ask(request, version).groups
    partitions = [part for one in found.topics for part in one.partitions]
    return found.error_code.name, [(part.error_code.name, part.committed_offset) for part in partitions]


def join(raw: Raw, group: str, version: int, member_id: str = "") -> Any:
    return raw.ask(
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequest.Protocol(name="range", metadata=b"m"),),
        ),
        version,
    )


def commit(raw: Raw, group: str, topic: str, version: int, **fields: Any) -> str:
    part = OffsetCommitRequest.Partition(partition_index=0, committed_offset=5, committed_metadata="")
    topics = (OffsetCommitRequest.Topic(name=topic, partitions=(part,)),)
    answer = raw.ask(OffsetCommitRequest(group_id=group, topics=topics, **fields), version)
    return str(answer.topics[0].partitions[0].error_code.name)


@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_member_joins_with_one_request(raw: Raw, group: str, topic: str, version: int) -> None:
    """Join, sync, heartbeat, commit, leave: all in the first versions."""
    joined = join(raw, group, version)
    assert joined.error_code is Errors.NONE
    assert (joined.generation_id, joined.leader) == (1, joined.member_id)
    assert [member.member_id for member in joined.members] == [joined.member_id]
    member: dict[str, Any] = {"group_id": group, "generation_id": 1, "member_id": joined.member_id}
    assignment = SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=b"share")
    synced = raw.ask(SyncGroupRequest(assignments=(assignment,), **member), 0)
    assert (synced.error_code, synced.assignment) == (Errors.NONE, b"share")
    assert raw.ask(HeartbeatRequest(**member), 0).error_code is Errors.NONE
    committer = {"generation_id_or_member_epoch": 1, "member_id": joined.member_id}
    assert commit(raw, group, topic, 2, **committer) == "NONE"
    assert commit(raw, group, topic, 2) == "UNKNOWN_MEMBER_ID"
    assert group in [found.group_id for found in raw.ask(ListGroupsRequest(), 0).groups]
    assert raw.ask(LeaveGroupRequest(group_id=group, member_id=joined.member_id), 0).error_code is Errors.NONE
    gone = raw.ask(LeaveGroupRequest(group_id=group, member_id=joined.member_id), 2)
    assert gone.error_code is Errors.UNKNOWN_MEMBER_ID


def test_from_version_4_on_a_member_joins_in_two_steps(raw: Raw, group: str) -> None:
    assert join(raw, group, 4).error_code is Errors.MEMBER_ID_REQUIRED


@pytest.mark.parametrize("version", [0, 6])
def test_a_refused_join_has_an_empty_protocol_name(raw: Raw, group: str, version: int) -> None:
    refused = join(raw, group, version, member_id="x")
    assert (refused.error_code, refused.protocol_name) == (Errors.UNKNOWN_MEMBER_ID, "")


@pytest.mark.parametrize("version", range(1, 8))
def test_offsets_of_one_group(raw: Raw, group: str, topic: str, version: int) -> None:
    assert offsets(raw, group, topic, version) == ("NONE", [("NONE", -1)])
    assert commit(raw, group, topic, min(version + 1, 8)) == "NONE"
    assert offsets(raw, group, topic, version) == ("NONE", [("NONE", 5)])
    if version > 1:
        assert offsets(raw, group, None, version) == ("NONE", [("NONE", 5)])


@pytest.mark.parametrize(("version", "expected"), [(2, "ILLEGAL_GENERATION"), (9, "GROUP_ID_NOT_FOUND")])
def test_a_commit_with_a_generation_needs_the_group(
    raw: Raw, group: str, topic: str, version: int, expected: str
) -> None:
    assert commit(raw, group, topic, version, generation_id_or_member_epoch=1, member_id="m") == expected


# ---- transactions ----------------------------------------------------------------------------------------------------


def test_a_transaction_in_the_first_versions(raw: Raw, group: str, topic: str, fresh: Fresh) -> None:
    name = coordinated(raw, fresh("t"), 1, version=1)

    def begun() -> Any:
        return raw.ask(InitProducerIdRequest(transactional_id=name), 0)

    eventually(lambda: begun().error_code, Errors.NONE)
    started = begun()
    producer: dict[str, Any] = {"producer_id": started.producer_id, "producer_epoch": started.producer_epoch}
    partitions = (AddPartitionsToTxnRequest.Topic(name=topic, partitions=(0,)),)
    adding = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=started.producer_id,
        v3_and_below_producer_epoch=started.producer_epoch,
        v3_and_below_topics=partitions,
    )
    added = raw.ask(adding, 0).results_by_topic_v3_and_below[0].results_by_partition[0]
    assert added.partition_error_code is Errors.NONE
    records = batch(b"a", transactional=True, base_sequence=0, **producer)
    assert written(raw, topic, records, 3, transactional_id=name) == ("NONE", 0)
    with_group = AddOffsetsToTxnRequest(transactional_id=name, group_id=group, **producer)
    assert raw.ask(with_group, 0).error_code is Errors.NONE
    part = OffsetCommitRequest.Partition(partition_index=0, committed_offset=7, committed_metadata="")
    committing = TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        topics=(OffsetCommitRequest.Topic(name=topic, partitions=(part,)),),
        **producer,
    )
    assert raw.ask(committing, 0).topics[0].partitions[0].error_code is Errors.NONE
    ended = raw.ask(EndTxnRequest(transactional_id=name, committed=True, **producer), 0)
    assert ended.error_code is Errors.NONE
    eventually(lambda: offsets(raw, group, topic, 1), ("NONE", [("NONE", 7)]))
    stale = producer | {"producer_epoch": started.producer_epoch + 1}
    fenced = raw.ask(EndTxnRequest(transactional_id=name, committed=True, **stale), 0)
    assert fenced.error_code is Errors.INVALID_PRODUCER_EPOCH


def test_many_transactions_in_one_request(raw: Raw, topic: str, fresh: Fresh) -> None:
    """AddPartitionsToTxn 4 and 5, of brokers: an unknown transactional id is the error of its partitions."""
    name = coordinated(raw, fresh("t"), 1, version=1)
    one = AddPartitionsToTxnRequest.Transaction(
        transactional_id=name,
        producer_id=99,
        producer_epoch=0,
        topics=(AddPartitionsToTxnRequest.Topic(name=topic, partitions=(0,)),),
    )

    def errors(version: int) -> list[str]:
        answer = raw.ask(AddPartitionsToTxnRequest(transactions=(one,)), version)
        assert answer.error_code is Errors.NONE
        results = [topic for each in answer.results_by_transaction for topic in each.topic_results]
        return [part.partition_error_code.name for each in results for part in each.results_by_partition]

    eventually(lambda: errors(4), ["INVALID_PRODUCER_ID_MAPPING"])
    assert errors(5) == ["INVALID_PRODUCER_ID_MAPPING"]


# ---- descriptions ----------------------------------------------------------------------------------------------------


def test_descriptions_in_the_first_versions(raw: Raw, topic: str) -> None:
    (node,) = raw.ask(DescribeClusterRequest(), 0).brokers
    assert written(raw, topic, batch(b"a"), 3) == ("NONE", 0)
    (directory,) = raw.ask(DescribeLogDirsRequest(topics=None), 1).results
    assert topic in [found.name for found in directory.topics]
    assert raw.ask(ListConfigResourcesRequest(resource_types=(16,)), 0).config_resources == ()
    here = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=(0,))
    (elected,) = raw.ask(ElectLeadersRequest(topic_partitions=(here,)), 0).replica_election_results
    assert elected.partition_result[0].error_code is Errors.ELECTION_NOT_NEEDED
    assert node.port == raw.socket.getpeername()[1]


@pytest.mark.parametrize(("version", "named"), [(0, ["group.version"]), (1, ["group.version"]), (2, [])])
def test_features_have_results_before_version_2(raw: Raw, version: int, named: list[str]) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=1)
    answer = raw.ask(UpdateFeaturesRequest(feature_updates=(update,)), version)
    assert (answer.error_code, [result.feature for result in answer.results]) == (Errors.NONE, named)
