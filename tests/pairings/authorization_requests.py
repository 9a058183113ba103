"""The requests of the table API x right."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shareq.log.records import encode_batch
from shareq.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from shareq.model.ids import TopicId
from shareq.model.messages import (
    acls,
    classic_group,
    cluster,
    consumer_group,
    data,
    describe,
    fetch,
    offsets,
    quotas,
    security,
    share_fetch,
    share_group,
    topics,
    transactions,
)
from shareq.model.messages.base import Request
from shareq.model.messages.topics import ResourceType as ConfigResource

READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
ALTER, DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE
MEMBER = "member-of-nobody"


class Names(NamedTuple):
    """The resources of one client. `id_of` gives the id of `topic` and of `other`."""

    topic: str
    other: str
    missing: str
    group: str
    transaction: str
    id_of: Callable[[str], TopicId]


def resource(what: str, names: Names) -> tuple[ResourceType, str]:
    """The type and the name of a right's resource."""
    return {
        "topic": (ResourceType.TOPIC, names.topic),
        "missing": (ResourceType.TOPIC, names.missing),
        "group": (ResourceType.GROUP, names.group),
        "transaction": (ResourceType.TRANSACTIONAL_ID, names.transaction),
        "cluster": (ResourceType.CLUSTER, CLUSTER_NAME),
    }[what]


# ---- requests --------------------------------------------------------------------------------------------------------

UNKNOWN_ID = TopicId("x" * 21 + "A")
PLAIN = encode_batch([(None, b"x", [], 1_700_000_000_000)])
TRANSACTIONAL = encode_batch(
    [(None, b"x", [], 1_700_000_000_000)], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
)


def produce(records: bytes, transactional: bool = False) -> Callable[[Names], Request]:
    def request(names: Names) -> Request:
        part = (data.ProduceRequest.Partition(index=0, records=records),)
        ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
        return data.ProduceRequest(
            transactional_id=names.transaction if transactional else None,
            topics=tuple(data.ProduceRequest.Topic(topic_id=topic_id, partitions=part) for topic_id in ids),
        )

    return request


def fetch_ids(names: Names) -> Request:
    part = (fetch.FetchRequest.Partition(partition=0, fetch_offset=0),)
    ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
    return fetch.FetchRequest(
        max_wait_ms=0, topics=tuple(fetch.FetchRequest.Topic(topic_id=topic_id, partitions=part) for topic_id in ids)
    )


def three(names: Names) -> tuple[str, str, str]:
    return names.topic, names.other, names.missing


def list_offsets(names: Names) -> Request:
    part = (data.ListOffsetsRequest.Partition(partition_index=0, timestamp=-1),)
    return data.ListOffsetsRequest(
        topics=tuple(data.ListOffsetsRequest.Topic(name=name, partitions=part) for name in three(names))
    )


def leader_epochs(names: Names) -> Request:
    part = (fetch.OffsetForLeaderEpochRequest.Partition(partition=0, leader_epoch=0),)
    return fetch.OffsetForLeaderEpochRequest(
        topics=tuple(fetch.OffsetForLeaderEpochRequest.Topic(topic=name, partitions=part) for name in three(names))
    )


def metadata(*, create: bool = False, operations: bool = False) -> Callable[[Names], Request]:
    def request(names: Names) -> Request:
        return cluster.MetadataRequest(
            topics=tuple(cluster.MetadataRequest.Topic(name=name) for name in three(names)),
            allow_auto_topic_creation=create,
            include_topic_authorized_operations=operations,
        )

    return request


def metadata_by_id(names: Names) -> Request:
    ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
    return cluster.MetadataRequest(topics=tuple(cluster.MetadataRequest.Topic(topic_id=topic_id) for topic_id in ids))


def described_partitions(names: Names) -> Request:
    wanted = tuple(describe.DescribeTopicPartitionsRequest.Topic(name=name) for name in three(names))
    return describe.DescribeTopicPartitionsRequest(topics=wanted)


def delete_records(names: Names) -> Request:
    part = (data.DeleteRecordsRequest.Partition(partition_index=0, offset=0),)
    return data.DeleteRecordsRequest(
        topics=tuple(data.DeleteRecordsRequest.Topic(name=name, partitions=part) for name in three(names))
    )


def describe_producers(names: Names) -> Request:
    return describe.DescribeProducersRequest(
        topics=tuple(
            describe.DescribeProducersRequest.Topic(name=name, partition_indexes=(0,)) for name in three(names)
        )
    )


def commit(names: Names) -> Request:
    part = (offsets.OffsetCommitRequest.Partition(partition_index=0, committed_offset=1),)
    ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
    return offsets.OffsetCommitRequest(
        group_id=names.group,
        topics=tuple(offsets.OffsetCommitRequest.Topic(topic_id=topic_id, partitions=part) for topic_id in ids),
    )


def fetched_offsets(names: Names) -> Request:
    ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
    wanted = tuple(offsets.OffsetFetchRequest.Topic(topic_id=topic_id, partition_indexes=(0,)) for topic_id in ids)
    groups = (
        offsets.OffsetFetchRequest.Group(group_id="group-of-others", topics=None),
        offsets.OffsetFetchRequest.Group(group_id=names.group, topics=wanted),
    )
    return offsets.OffsetFetchRequest(groups=groups)


def all_offsets(names: Names) -> Request:
    groups = tuple(offsets.OffsetFetchRequest.Group(group_id=group, topics=None) for group in both_groups(names))
    return offsets.OffsetFetchRequest(groups=groups)


def deleted_offsets(names: Names) -> Request:
    part = (offsets.OffsetDeleteRequest.Partition(partition_index=0),)
    return offsets.OffsetDeleteRequest(
        group_id=names.group,
        topics=tuple(offsets.OffsetDeleteRequest.Topic(name=name, partitions=part) for name in three(names)),
    )


def share_offsets(names: Names) -> Request:
    wanted = tuple(
        share_group.DescribeShareGroupOffsetsRequest.Topic(topic_name=name, partitions=(0,)) for name in three(names)
    )
    groups = (
        share_group.DescribeShareGroupOffsetsRequest.Group(group_id="group-of-others", topics=None),
        share_group.DescribeShareGroupOffsetsRequest.Group(group_id=names.group, topics=wanted),
    )
    return share_group.DescribeShareGroupOffsetsRequest(groups=groups)


def all_share_offsets(names: Names) -> Request:
    groups = tuple(
        share_group.DescribeShareGroupOffsetsRequest.Group(group_id=group, topics=None) for group in both_groups(names)
    )
    return share_group.DescribeShareGroupOffsetsRequest(groups=groups)


def altered_share_offset(names: Names) -> Request:
    part = (share_group.AlterShareGroupOffsetsRequest.Partition(partition_index=0, start_offset=0),)
    topic = share_group.AlterShareGroupOffsetsRequest.Topic(topic_name=names.topic, partitions=part)
    return share_group.AlterShareGroupOffsetsRequest(group_id=names.group, topics=(topic,))


def altered_share_offsets(names: Names) -> Request:
    part = (share_group.AlterShareGroupOffsetsRequest.Partition(partition_index=0, start_offset=0),)
    return share_group.AlterShareGroupOffsetsRequest(
        group_id=names.group,
        topics=tuple(
            share_group.AlterShareGroupOffsetsRequest.Topic(topic_name=name, partitions=part) for name in three(names)
        ),
    )


def deleted_share_offsets(names: Names) -> Request:
    return share_group.DeleteShareGroupOffsetsRequest(
        group_id=names.group,
        topics=tuple(share_group.DeleteShareGroupOffsetsRequest.Topic(topic_name=name) for name in three(names)),
    )


def share_heartbeat(names: Names) -> Request:
    return share_group.ShareGroupHeartbeatRequest(
        group_id=names.group, member_id=MEMBER, member_epoch=0, subscribed_topic_names=(names.topic,)
    )


def share_fetch_ids(names: Names) -> Request:
    part = (share_fetch.ShareFetchRequest.Partition(partition_index=0),)
    ids = (names.id_of(names.topic), names.id_of(names.other))  # with an unknown one, Kafka fails the whole request
    return share_fetch.ShareFetchRequest(
        group_id=names.group,
        member_id=MEMBER,
        share_session_epoch=0,
        max_wait_ms=0,
        topics=tuple(share_fetch.ShareFetchRequest.Topic(topic_id=topic_id, partitions=part) for topic_id in ids),
    )


def share_acknowledge(names: Names) -> Request:
    """Without a session there is no answer about topics; `test_sessions` has those."""
    return share_fetch.ShareAcknowledgeRequest(group_id=names.group, member_id=MEMBER, share_session_epoch=1)


def consumer_heartbeat(names: Names) -> Request:
    return consumer_group.ConsumerGroupHeartbeatRequest(
        group_id=names.group,
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(names.topic,),
        topic_partitions=(),
    )


def join(names: Names) -> Request:
    protocol = classic_group.JoinGroupRequest.Protocol(name="range", metadata=b"")
    return classic_group.JoinGroupRequest(
        group_id=names.group,
        session_timeout_ms=1,  # a member that may join is refused for this, and does not stay
        protocol_type="consumer",
        protocols=(protocol,),
    )


def sync(names: Names) -> Request:
    return classic_group.SyncGroupRequest(
        group_id=names.group, generation_id=1, member_id=MEMBER, protocol_type="consumer", protocol_name="range"
    )


def leave(names: Names) -> Request:
    member = classic_group.LeaveGroupRequest.MemberIdentity(member_id=MEMBER)
    return classic_group.LeaveGroupRequest(group_id=names.group, members=(member,))


def both_groups(names: Names) -> tuple[str, str]:
    return "group-of-others", names.group


def coordinator(kind: int, what: str) -> Callable[[Names], Request]:
    def request(names: Names) -> Request:
        keys = ("of-others", getattr(names, what)) if what else (f"g:{UNKNOWN_ID}:0",)
        return cluster.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)

    return request


def init_producer(names: Names) -> Request:
    return transactions.InitProducerIdRequest(transactional_id=names.transaction)


def add_partitions(names: Names) -> Request:
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=names.transaction,
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=tuple(
            transactions.AddPartitionsToTxnRequest.Topic(name=name, partitions=(0,)) for name in (names.topic,)
        ),
    )


def add_more_partitions(names: Names) -> Request:
    one = add_partitions(names)
    assert isinstance(one, transactions.AddPartitionsToTxnRequest)
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=names.transaction,
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=tuple(
            transactions.AddPartitionsToTxnRequest.Topic(name=name, partitions=(0,)) for name in three(names)
        ),
    )


def add_offsets(names: Names) -> Request:
    return transactions.AddOffsetsToTxnRequest(
        transactional_id=names.transaction, producer_id=7, producer_epoch=0, group_id=names.group
    )


def end(names: Names) -> Request:
    return transactions.EndTxnRequest(
        transactional_id=names.transaction, producer_id=7, producer_epoch=0, committed=False
    )


def commit_in_transaction(names: Names) -> Request:
    topic = offsets.OffsetCommitRequest.Topic
    part = (offsets.OffsetCommitRequest.Partition(partition_index=0, committed_offset=1),)
    return _commit_in_transaction(
        names, tuple(topic(name=name, partitions=part) for name in (names.topic, names.other))
    )


def commit_in_transaction_by_id(names: Names) -> Request:
    topic = offsets.OffsetCommitRequest.Topic
    part = (offsets.OffsetCommitRequest.Partition(partition_index=0, committed_offset=1),)
    ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
    return _commit_in_transaction(names, tuple(topic(topic_id=topic_id, partitions=part) for topic_id in ids))


def _commit_in_transaction(names: Names, topics: tuple[offsets.OffsetCommitRequest.Topic, ...]) -> Request:
    return transactions.TxnOffsetCommitRequest(
        transactional_id=names.transaction, group_id=names.group, producer_id=7, producer_epoch=0, topics=topics
    )


def create(names: Names) -> Request:
    wanted = (names.missing, f"{names.missing}-too")
    return topics.CreateTopicsRequest(
        topics=tuple(
            topics.CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1) for name in wanted
        )
    )


def delete(names: Names) -> Request:
    by_name = tuple(topics.DeleteTopicsRequest.Topic(name=name) for name in three(names))
    return topics.DeleteTopicsRequest(topics=by_name)


def delete_by_id(names: Names) -> Request:
    ids = (names.id_of(names.topic), names.id_of(names.other), UNKNOWN_ID)
    return topics.DeleteTopicsRequest(topics=tuple(topics.DeleteTopicsRequest.Topic(topic_id=each) for each in ids))


def grow(names: Names) -> Request:
    return topics.CreatePartitionsRequest(
        topics=tuple(topics.CreatePartitionsRequest.Topic(name=name, count=2) for name in three(names))
    )


def describe_configs(kind: ConfigResource, what: str) -> Callable[[Names], Request]:
    def request(names: Names) -> Request:
        named = getattr(names, what) if what else "0"
        wanted = [
            topics.DescribeConfigsRequest.Resource(resource_type=kind, resource_name=named, configuration_keys=())
        ]
        if what == "topic":
            wanted += [
                topics.DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name)
                for name in (names.other, names.missing)
            ]
        return topics.DescribeConfigsRequest(resources=tuple(wanted))

    return request


def alter_configs(kind: ConfigResource, what: str, key: str, value: str) -> Callable[[Names], Request]:
    def request(names: Names) -> Request:
        config = topics.IncrementalAlterConfigsRequest.Config(name=key, config_operation=0, value=value)
        resources = [getattr(names, what) if what else ""]
        if what == "topic":
            resources += [names.other, names.missing]
        return topics.IncrementalAlterConfigsRequest(
            resources=tuple(
                topics.IncrementalAlterConfigsRequest.Resource(
                    resource_type=kind, resource_name=name, configs=(config,)
                )
                for name in resources
            ),
            validate_only=True,
        )

    return request


def legacy_alter(names: Names) -> Request:
    config = topics.AlterConfigsRequest.Config(name="retention.ms", value="1000")
    return topics.AlterConfigsRequest(
        resources=tuple(
            topics.AlterConfigsRequest.Resource(
                resource_type=ConfigResource.TOPIC, resource_name=name, configs=(config,)
            )
            for name in three(names)
        ),
        validate_only=True,
    )


def elect(names: Names) -> Request:
    partitions = topics.ElectLeadersRequest.TopicPartitions(topic=names.topic, partitions=(0,))
    return topics.ElectLeadersRequest(topic_partitions=(partitions,))


def reassignments(names: Names) -> Request:
    wanted = describe.ListPartitionReassignmentsRequest.Topic(name=names.topic, partition_indexes=(0,))
    return describe.ListPartitionReassignmentsRequest(topics=(wanted,))


def quorum(names: Names) -> Request:
    del names
    part = (describe.DescribeQuorumRequest.Partition(partition_index=0),)
    return describe.DescribeQuorumRequest(
        topics=(describe.DescribeQuorumRequest.Topic(topic_name="__cluster_metadata", partitions=part),)
    )


def log_dirs(names: Names) -> Request:
    wanted = describe.DescribeLogDirsRequest.Topic(topic=names.topic, partitions=(0,))
    return describe.DescribeLogDirsRequest(topics=(wanted,))


def create_acl(names: Names) -> Request:
    creation = acls.CreateAclsRequest.Creation(
        resource_type=ResourceType.TOPIC,
        resource_name=names.missing,
        principal="User:somebody",
        host="*",
        operation=READ,
        permission_type=3,
    )
    return acls.CreateAclsRequest(creations=(creation,))


def delete_acl(names: Names) -> Request:
    wanted = acls.DeleteAclsRequest.Filter(
        resource_type_filter=ResourceType.TOPIC, resource_name_filter=names.other, operation=1, permission_type=1
    )
    return acls.DeleteAclsRequest(filters=(wanted,))


def describe_acl(names: Names) -> Request:
    return acls.DescribeAclsRequest(
        resource_type_filter=ResourceType.TOPIC, resource_name_filter=names.other, operation=1, permission_type=1
    )


def describe_user(names: Names) -> Request:
    return security.DescribeUserScramCredentialsRequest(
        users=(security.DescribeUserScramCredentialsRequest.UserName(name=names.other),)
    )


def delete_user(names: Names) -> Request:
    deletion = security.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=names.other, mechanism=1)
    return security.AlterUserScramCredentialsRequest(deletions=(deletion,))


def describe_quotas(names: Names) -> Request:
    component = quotas.DescribeClientQuotasRequest.Component(entity_type="user", match_type=0, match=names.other)
    return quotas.DescribeClientQuotasRequest(components=(component,))


def alter_quotas(names: Names) -> Request:
    """Of a user, without a change."""
    whose = quotas.QuotaEntity(entity_type="user", entity_name=names.other)
    op = quotas.AlterClientQuotasRequest.Op(key="producer_byte_rate", value=1.0, remove=False)
    entry = quotas.AlterClientQuotasRequest.Entry(entity=(whose,), ops=(op,))
    return quotas.AlterClientQuotasRequest(entries=(entry,), validate_only=True)


def state(request: type, **fields: int) -> Callable[[Names], Request]:
    def made(names: Names) -> Request:
        part = request.Partition(partition=0, **fields)  # type: ignore[attr-defined]    # all five have one
        topic = request.Topic(topic_id=UNKNOWN_ID, partitions=(part,))  # type: ignore[attr-defined]
        found: Request = request(group_id=names.group, topics=(topic,))
        return found

    return made
