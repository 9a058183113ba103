"""The rule of each request that a broker answers. The table and the route table have the same requests, those of
experiments included.

A rule returns the request, if its sender may make it; the response with the error, if not; or what is left of it.
Source: Kafka's KafkaApis, ControllerApis, AclApis. Rules: BEHAVIOUR.md of `broker`, "Authorization".
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from shareq.broker.authorization import cluster, configs, group_offsets, groups, logs, topics, transactions
from shareq.broker.authorization.cluster import anyone, failed, no_state, on_cluster
from shareq.broker.authorization.groups import reads_group, share_request
from shareq.broker.authorization.rulings import Rule
from shareq.model.acls import AclOperation
from shareq.model.messages import (
    acls,
    classic_group,
    consumer_group,
    data,
    describe,
    features,
    fetch,
    offsets,
    quotas,
    security,
    share_browse,
    share_fetch,
    share_group,
    share_state,
    share_transactions,
)
from shareq.model.messages import cluster as discovery
from shareq.model.messages import topics as administration
from shareq.model.messages import transactions as of_transactions
from shareq.model.messages.base import Request

_ALTER, _DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
_DESCRIBE_CONFIGS, _CLUSTER_ACTION = AclOperation.DESCRIBE_CONFIGS, AclOperation.CLUSTER_ACTION

_RECORDS: dict[type[Request], Rule] = {
    data.ProduceRequest: logs.produce,
    fetch.FetchRequest: anyone,  # the topics are checked with the session
    data.ListOffsetsRequest: logs.list_offsets,
    fetch.OffsetForLeaderEpochRequest: logs.offsets_for_leader_epochs,
    data.DeleteRecordsRequest: logs.delete_records,
    describe.DescribeProducersRequest: logs.describe_producers,
    share_fetch.ShareFetchRequest: share_request,
    share_fetch.ShareAcknowledgeRequest: share_request,
    share_browse.BrowseShareGroupRequest: groups.browse_share_group,
}

_GROUPS: dict[type[Request], Rule] = {
    classic_group.JoinGroupRequest: reads_group(classic_group.JoinGroupResponse),
    classic_group.SyncGroupRequest: reads_group(classic_group.SyncGroupResponse),
    classic_group.HeartbeatRequest: reads_group(classic_group.HeartbeatResponse),
    classic_group.LeaveGroupRequest: reads_group(classic_group.LeaveGroupResponse),
    classic_group.DescribeGroupsRequest: groups.describe_groups,
    consumer_group.ConsumerGroupHeartbeatRequest: groups.consumer_heartbeat,
    consumer_group.ConsumerGroupDescribeRequest: groups.describe_consumer_groups,
    share_group.ShareGroupHeartbeatRequest: groups.share_heartbeat,
    share_group.ShareGroupDescribeRequest: groups.describe_share_groups,
    discovery.ListGroupsRequest: groups.list_groups,
    discovery.DeleteGroupsRequest: groups.delete_groups,
    offsets.OffsetCommitRequest: group_offsets.commit,
    offsets.OffsetFetchRequest: group_offsets.fetch,
    offsets.OffsetDeleteRequest: group_offsets.delete,
    share_group.DescribeShareGroupOffsetsRequest: group_offsets.describe_share_offsets,
    share_group.AlterShareGroupOffsetsRequest: group_offsets.alter_share_offsets,
    share_group.DeleteShareGroupOffsetsRequest: group_offsets.delete_share_offsets,
}

_TRANSACTIONS: dict[type[Request], Rule] = {
    of_transactions.InitProducerIdRequest: transactions.init_producer_id,
    of_transactions.AddPartitionsToTxnRequest: transactions.add_partitions,
    of_transactions.AddOffsetsToTxnRequest: transactions.add_offsets,
    of_transactions.EndTxnRequest: transactions.end,
    of_transactions.TxnOffsetCommitRequest: transactions.commit_offsets,
    share_transactions.TxnShareAcknowledgeRequest: transactions.acknowledge_share,
    of_transactions.DescribeTransactionsRequest: transactions.describe,
    of_transactions.ListTransactionsRequest: transactions.list_all,
}

_TOPICS: dict[type[Request], Rule] = {
    discovery.MetadataRequest: topics.metadata,
    describe.DescribeTopicPartitionsRequest: topics.describe_topic_partitions,
    administration.CreateTopicsRequest: topics.create_topics,
    administration.DeleteTopicsRequest: topics.delete_topics,
    administration.CreatePartitionsRequest: topics.create_partitions,
    administration.DescribeConfigsRequest: configs.describe,
    administration.AlterConfigsRequest: configs.alter,
    administration.IncrementalAlterConfigsRequest: configs.incremental_alter,
}

_CLUSTER: dict[type[Request], Rule] = {
    discovery.FindCoordinatorRequest: cluster.find_coordinator,
    describe.DescribeClusterRequest: cluster.describe_cluster,
    administration.ElectLeadersRequest: on_cluster(_ALTER, cluster.not_elected),
    features.UpdateFeaturesRequest: on_cluster(_ALTER, failed(features.UpdateFeaturesResponse)),
    describe.DescribeLogDirsRequest: on_cluster(_DESCRIBE, failed(describe.DescribeLogDirsResponse)),
    describe.DescribeQuorumRequest: on_cluster(_DESCRIBE, failed(describe.DescribeQuorumResponse)),
    describe.ListPartitionReassignmentsRequest: on_cluster(_DESCRIBE, cluster.no_reassignments),
    describe.ListConfigResourcesRequest: on_cluster(_DESCRIBE_CONFIGS, failed(describe.ListConfigResourcesResponse)),
    acls.DescribeAclsRequest: on_cluster(_DESCRIBE, failed(acls.DescribeAclsResponse)),
    acls.CreateAclsRequest: on_cluster(_ALTER, cluster.no_acls_created),
    acls.DeleteAclsRequest: on_cluster(_ALTER, cluster.no_acls_deleted),
    security.DescribeUserScramCredentialsRequest: on_cluster(_DESCRIBE, cluster.no_users_described),
    security.AlterUserScramCredentialsRequest: on_cluster(_ALTER, cluster.no_users_altered),
    quotas.DescribeClientQuotasRequest: on_cluster(_DESCRIBE_CONFIGS, cluster.no_quotas_described),
    quotas.AlterClientQuotasRequest: on_cluster(AclOperation.ALTER_CONFIGS, cluster.no_quotas_altered),
    security.SaslHandshakeRequest: anyone,
    security.SaslAuthenticateRequest: anyone,
}

_BETWEEN_BROKERS: dict[type[Request], Rule] = {
    of_transactions.WriteTxnMarkersRequest: on_cluster(_CLUSTER_ACTION, cluster.no_markers),
    share_transactions.EndShareTransactionRequest: on_cluster(
        _CLUSTER_ACTION, failed(share_transactions.EndShareTransactionResponse)
    ),
    of_transactions.AllocateProducerIdsRequest: on_cluster(
        _CLUSTER_ACTION, failed(of_transactions.AllocateProducerIdsResponse)
    ),
    **{
        request: on_cluster(_CLUSTER_ACTION, no_state(response))
        for request, response in (
            (share_state.InitializeShareGroupStateRequest, share_state.InitializeShareGroupStateResponse),
            (share_state.ReadShareGroupStateRequest, share_state.ReadShareGroupStateResponse),
            (share_state.WriteShareGroupStateRequest, share_state.WriteShareGroupStateResponse),
            (share_state.DeleteShareGroupStateRequest, share_state.DeleteShareGroupStateResponse),
            (share_state.ReadShareGroupStateSummaryRequest, share_state.ReadShareGroupStateSummaryResponse),
        )
    },
}

RULES: Mapping[type[Request], Rule] = MappingProxyType(
    {**_RECORDS, **_GROUPS, **_TRANSACTIONS, **_TOPICS, **_CLUSTER, **_BETWEEN_BROKERS}
)
"""Request type -> rule."""
