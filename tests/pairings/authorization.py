"""The table API x right: for each request the rights that it needs.

A request is sent by a client with all of its rights, by one without each of them in turn, and by one without any. It
names, where it can, three topics: one that the rights are about (`topic`), one that no client has rights on (`other`),
and one that does not exist (`missing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shareq.model.acls import AclOperation
from shareq.model.messages import (
    classic_group,
    cluster,
    consumer_group,
    describe,
    features,
    share_group,
    share_state,
    transactions,
)
from shareq.model.messages.base import Request
from shareq.model.messages.topics import ResourceType as ConfigResource
from tests.pairings import authorization_requests as ask
from tests.pairings.authorization_requests import MEMBER, Names

READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
ALTER, DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = AclOperation.CLUSTER_ACTION, AclOperation.IDEMPOTENT_WRITE


class Case(NamedTuple):
    """`rights`: operations and the resources of `Names` that they are on, or "cluster". `version`: None for the
    newest. `hides`: without its rights the request is answered without an error, and shows less. `prepare`: the
    administrator's requests before it."""

    name: str
    request: Callable[[Names], Request]
    rights: tuple[tuple[AclOperation, str], ...]
    version: int | None = None
    hides: bool = False
    prepare: tuple[Callable[[Names], Request], ...] = ()


_TXN = (WRITE, "transaction")
_CLUSTER_DESCRIBE, _CLUSTER_ALTER = ((DESCRIBE, "cluster"),), ((ALTER, "cluster"),)
_ACTION = ((CLUSTER_ACTION, "cluster"),)
_GROUP_DESCRIBE, _GROUP_READ = ((DESCRIBE, "group"),), ((READ, "group"),)

CASES = (
    Case("Produce", ask.produce(ask.PLAIN), ((WRITE, "topic"),)),
    Case("Produce, transactional", ask.produce(ask.TRANSACTIONAL, True), ((WRITE, "topic"), _TXN)),
    Case("Fetch", ask.fetch_ids, ((READ, "topic"),)),
    Case("ListOffsets", ask.list_offsets, ((DESCRIBE, "topic"),)),
    Case("OffsetForLeaderEpoch", ask.leader_epochs, ((DESCRIBE, "topic"),)),
    Case("OffsetForLeaderEpoch, as a broker", ask.leader_epochs, _ACTION),
    Case("Metadata", ask.metadata(), ((DESCRIBE, "topic"),)),
    Case(
        "Metadata, operations",
        ask.metadata(operations=True),
        ((DESCRIBE_CONFIGS, "topic"), (WRITE, "topic"), (CREATE, "missing"), (DESCRIBE, "missing")),
        hides=True,
    ),
    Case("Metadata, by id", ask.metadata_by_id, ((DESCRIBE, "topic"),)),
    Case("Metadata, all", lambda _: cluster.MetadataRequest(), ((READ, "topic"),), hides=True),
    Case("Metadata, create", ask.metadata(create=True), ((DESCRIBE, "missing"), (CREATE, "missing"))),
    Case("Metadata, create in the cluster", ask.metadata(create=True), ((DESCRIBE, "missing"), (CREATE, "cluster"))),
    Case(
        "Metadata 10, operations of the cluster",
        lambda _: cluster.MetadataRequest(topics=(), include_cluster_authorized_operations=True),
        ((DESCRIBE, "cluster"), (ALTER_CONFIGS, "cluster")),
        version=10,
        hides=True,
    ),
    Case("DescribeTopicPartitions", ask.described_partitions, ((DESCRIBE, "topic"),)),
    Case(
        "DescribeTopicPartitions, all",
        lambda _: describe.DescribeTopicPartitionsRequest(),
        ((DESCRIBE, "topic"),),
        hides=True,
    ),
    Case(
        "DescribeCluster",
        lambda _: describe.DescribeClusterRequest(include_cluster_authorized_operations=True),
        ((DESCRIBE, "cluster"), (CREATE, "cluster")),
        hides=True,
    ),
    Case("CreateTopics", ask.create, ((CREATE, "missing"), (DESCRIBE_CONFIGS, "missing"))),
    Case("CreateTopics, in the cluster", ask.create, ((CREATE, "cluster"),)),
    Case("DeleteTopics", ask.delete, ((DELETE, "topic"),)),
    Case("DeleteTopics, visible", ask.delete, ((DELETE, "topic"), (DESCRIBE, "topic"))),
    Case("DeleteTopics, by id", ask.delete_by_id, ((DELETE, "topic"), (DESCRIBE, "topic"))),
    Case("DeleteTopics, in the cluster", ask.delete, ((DELETE, "cluster"),)),
    Case("CreatePartitions", ask.grow, ((ALTER, "topic"),)),
    Case("DeleteRecords", ask.delete_records, ((DELETE, "topic"),)),
    Case("DescribeProducers", ask.describe_producers, ((READ, "topic"),)),
    Case("DescribeConfigs, topic", ask.describe_configs(ConfigResource.TOPIC, "topic"), ((DESCRIBE_CONFIGS, "topic"),)),
    Case("DescribeConfigs, implied", ask.describe_configs(ConfigResource.TOPIC, "topic"), ((ALTER_CONFIGS, "topic"),)),
    Case("DescribeConfigs, group", ask.describe_configs(ConfigResource.GROUP, "group"), ((DESCRIBE_CONFIGS, "group"),)),
    Case("DescribeConfigs, broker", ask.describe_configs(ConfigResource.BROKER, ""), ((DESCRIBE_CONFIGS, "cluster"),)),
    Case(
        "IncrementalAlterConfigs, topic",
        ask.alter_configs(ConfigResource.TOPIC, "topic", "retention.ms", "1000"),
        ((ALTER_CONFIGS, "topic"),),
    ),
    Case(
        "IncrementalAlterConfigs, group",
        ask.alter_configs(ConfigResource.GROUP, "group", "share.auto.offset.reset", "earliest"),
        ((ALTER_CONFIGS, "group"),),
    ),
    Case(
        "IncrementalAlterConfigs, brokers",
        ask.alter_configs(ConfigResource.BROKER, "", "log.retention.ms", "1000"),
        ((ALTER_CONFIGS, "cluster"),),
    ),
    Case("AlterConfigs", ask.legacy_alter, ((ALTER_CONFIGS, "topic"),)),
    Case("ListConfigResources", lambda _: describe.ListConfigResourcesRequest(), ((DESCRIBE_CONFIGS, "cluster"),)),
    Case("ElectLeaders", ask.elect, _CLUSTER_ALTER),
    Case("ListPartitionReassignments", ask.reassignments, _CLUSTER_DESCRIBE),
    Case("DescribeLogDirs", ask.log_dirs, _CLUSTER_DESCRIBE),
    Case("DescribeQuorum", ask.quorum, _CLUSTER_DESCRIBE),
    Case(
        "UpdateFeatures",
        lambda _: features.UpdateFeaturesRequest(feature_updates=(), validate_only=True),
        _CLUSTER_ALTER,
    ),
    Case("DescribeAcls", ask.describe_acl, _CLUSTER_DESCRIBE),
    Case("CreateAcls", ask.create_acl, _CLUSTER_ALTER),
    Case("DeleteAcls", ask.delete_acl, _CLUSTER_ALTER),
    Case("DescribeUserScramCredentials", ask.describe_user, _CLUSTER_DESCRIBE),
    Case("DescribeClientQuotas", ask.describe_quotas, ((DESCRIBE_CONFIGS, "cluster"),)),
    Case("AlterClientQuotas", ask.alter_quotas, ((ALTER_CONFIGS, "cluster"),)),
    Case("AlterUserScramCredentials", ask.delete_user, _CLUSTER_ALTER),
    Case("FindCoordinator, group", ask.coordinator(0, "group"), _GROUP_DESCRIBE),
    Case("FindCoordinator, transaction", ask.coordinator(1, "transaction"), ((DESCRIBE, "transaction"),)),
    Case("FindCoordinator, share", ask.coordinator(2, ""), _ACTION),
    Case("JoinGroup", ask.join, _GROUP_READ),
    Case("SyncGroup", ask.sync, _GROUP_READ),
    Case(
        "Heartbeat",
        lambda n: classic_group.HeartbeatRequest(group_id=n.group, generation_id=1, member_id=MEMBER),
        _GROUP_READ,
    ),
    Case("LeaveGroup", ask.leave, _GROUP_READ),
    Case(
        "DescribeGroups",
        lambda n: classic_group.DescribeGroupsRequest(groups=ask.both_groups(n), include_authorized_operations=True),
        _GROUP_DESCRIBE,
    ),
    Case("ConsumerGroupHeartbeat", ask.consumer_heartbeat, ((READ, "group"), (DESCRIBE, "topic"))),
    Case(
        "ConsumerGroupDescribe",
        lambda n: consumer_group.ConsumerGroupDescribeRequest(group_ids=ask.both_groups(n)),
        _GROUP_DESCRIBE,
    ),
    Case("OffsetCommit", ask.commit, ((READ, "group"), (READ, "topic"))),
    Case("OffsetFetch", ask.fetched_offsets, ((DESCRIBE, "group"), (DESCRIBE, "topic"))),
    Case(
        "OffsetFetch, all topics",
        ask.all_offsets,
        ((DESCRIBE, "group"), (DESCRIBE, "topic")),
        hides=True,
        prepare=(ask.commit,),
    ),
    Case("OffsetDelete", ask.deleted_offsets, ((DELETE, "group"), (READ, "topic")), prepare=(ask.commit,)),
    Case(
        "DeleteGroups",
        lambda n: cluster.DeleteGroupsRequest(groups_names=ask.both_groups(n)),
        ((DELETE, "group"),),
        prepare=(ask.commit,),
    ),
    Case("ListGroups", lambda _: cluster.ListGroupsRequest(), _GROUP_DESCRIBE, hides=True, prepare=(ask.commit,)),
    Case(
        "ListGroups, in the cluster",
        lambda _: cluster.ListGroupsRequest(),
        _CLUSTER_DESCRIBE,
        hides=True,
        prepare=(ask.commit,),
    ),
    Case("ShareGroupHeartbeat", ask.share_heartbeat, ((READ, "group"), (DESCRIBE, "topic"))),
    Case(
        "ShareGroupHeartbeat, no member",
        lambda n: share_group.ShareGroupHeartbeatRequest(
            group_id=n.group, member_id="", member_epoch=0, subscribed_topic_names=(n.topic,)
        ),
        ((READ, "group"), (DESCRIBE, "topic")),
        hides=True,
    ),
    Case(
        "ShareGroupDescribe",
        lambda n: share_group.ShareGroupDescribeRequest(group_ids=ask.both_groups(n)),
        _GROUP_DESCRIBE,
    ),
    Case("ShareFetch", ask.share_fetch_ids, ((READ, "group"), (READ, "topic"))),
    Case("ShareAcknowledge", ask.share_acknowledge, _GROUP_READ),
    Case("DescribeShareGroupOffsets", ask.share_offsets, ((DESCRIBE, "group"), (DESCRIBE, "topic"))),
    Case(
        "DescribeShareGroupOffsets, all topics",
        ask.all_share_offsets,
        ((DESCRIBE, "group"), (DESCRIBE, "topic")),
        hides=True,
        prepare=(ask.altered_share_offset,),
    ),
    Case("AlterShareGroupOffsets", ask.altered_share_offsets, ((READ, "group"), (READ, "topic"))),
    Case(
        "DeleteShareGroupOffsets",
        ask.deleted_share_offsets,
        ((DELETE, "group"), (READ, "topic")),
        prepare=(ask.altered_share_offset,),
    ),
    Case("InitProducerId", ask.init_producer, (_TXN,)),
    Case(
        "InitProducerId, idempotent", lambda _: transactions.InitProducerIdRequest(), ((IDEMPOTENT_WRITE, "cluster"),)
    ),
    Case("InitProducerId, any topic", lambda _: transactions.InitProducerIdRequest(), ((WRITE, "topic"),)),
    # Newer versions are for brokers.
    Case("AddPartitionsToTxn", ask.add_partitions, (_TXN, (WRITE, "topic")), version=3),
    Case("AddPartitionsToTxn, more", ask.add_more_partitions, (_TXN, (WRITE, "topic")), version=3),
    Case("AddOffsetsToTxn", ask.add_offsets, (_TXN, (READ, "group"))),
    Case("EndTxn", ask.end, (_TXN,)),
    Case("TxnOffsetCommit", ask.commit_in_transaction, (_TXN, (READ, "group"), (READ, "topic")), version=5),
    Case("TxnOffsetCommit, by id", ask.commit_in_transaction_by_id, (_TXN, (READ, "group"), (READ, "topic"))),
    Case(
        "DescribeTransactions",
        lambda n: transactions.DescribeTransactionsRequest(transactional_ids=("of-others", n.transaction)),
        ((DESCRIBE, "transaction"),),
    ),
    Case(
        "ListTransactions",
        lambda _: transactions.ListTransactionsRequest(),
        ((DESCRIBE, "transaction"),),
        hides=True,
        prepare=(ask.init_producer,),
    ),
    Case(
        "InitializeShareGroupState",
        ask.state(share_state.InitializeShareGroupStateRequest, state_epoch=0, start_offset=0),
        _ACTION,
    ),
    Case("ReadShareGroupState", ask.state(share_state.ReadShareGroupStateRequest, leader_epoch=0), _ACTION),
    Case(
        "WriteShareGroupState",
        ask.state(share_state.WriteShareGroupStateRequest, state_epoch=0, leader_epoch=0, start_offset=0),
        _ACTION,
    ),
    Case("DeleteShareGroupState", ask.state(share_state.DeleteShareGroupStateRequest), _ACTION),
    Case("ReadShareGroupStateSummary", ask.state(share_state.ReadShareGroupStateSummaryRequest), _ACTION),
)
