"""The APIs that brokers serve over TCP, and their versions.

The ranges are those of librdkafka 2.16 and of Kafka 4.4's Java clients and tools; a broker advertises exactly this
table, and a client uses the highest version that both sides support. Those of experiments have a table of their own.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.messages import (
    acls,
    api_versions,
    classic_group,
    cluster,
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
    topics,
    transactions,
)
from shareq.model.messages.base import Request, Response


class Api(NamedTuple):
    """A request, its response, and the versions of both (inclusive)."""

    request: type[Request]
    response: type[Response]
    min_version: int
    max_version: int

    @property
    def key(self) -> int:
        return self.request.API_KEY

    @property
    def name(self) -> str:
        return self.request.__name__.removesuffix("Request")


APIS = (
    Api(data.ProduceRequest, data.ProduceResponse, 10, 13),
    Api(fetch.FetchRequest, fetch.FetchResponse, 16, 18),
    Api(data.ListOffsetsRequest, data.ListOffsetsResponse, 7, 11),
    Api(cluster.MetadataRequest, cluster.MetadataResponse, 10, 13),
    Api(offsets.OffsetCommitRequest, offsets.OffsetCommitResponse, 9, 10),
    Api(offsets.OffsetFetchRequest, offsets.OffsetFetchResponse, 9, 10),
    Api(cluster.FindCoordinatorRequest, cluster.FindCoordinatorResponse, 2, 6),
    Api(classic_group.JoinGroupRequest, classic_group.JoinGroupResponse, 5, 9),
    Api(classic_group.HeartbeatRequest, classic_group.HeartbeatResponse, 3, 4),
    Api(classic_group.LeaveGroupRequest, classic_group.LeaveGroupResponse, 1, 5),
    Api(classic_group.SyncGroupRequest, classic_group.SyncGroupResponse, 3, 5),
    Api(classic_group.DescribeGroupsRequest, classic_group.DescribeGroupsResponse, 0, 6),
    Api(cluster.ListGroupsRequest, cluster.ListGroupsResponse, 0, 5),
    Api(security.SaslHandshakeRequest, security.SaslHandshakeResponse, 0, 1),
    Api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse, 0, 5),
    Api(topics.CreateTopicsRequest, topics.CreateTopicsResponse, 4, 7),
    Api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse, 4, 6),
    Api(data.DeleteRecordsRequest, data.DeleteRecordsResponse, 2, 2),
    Api(transactions.InitProducerIdRequest, transactions.InitProducerIdResponse, 4, 5),
    Api(fetch.OffsetForLeaderEpochRequest, fetch.OffsetForLeaderEpochResponse, 2, 4),
    Api(transactions.AddPartitionsToTxnRequest, transactions.AddPartitionsToTxnResponse, 0, 3),
    Api(transactions.AddOffsetsToTxnRequest, transactions.AddOffsetsToTxnResponse, 0, 4),
    Api(transactions.EndTxnRequest, transactions.EndTxnResponse, 1, 5),
    Api(transactions.TxnOffsetCommitRequest, transactions.TxnOffsetCommitResponse, 3, 6),
    Api(acls.DescribeAclsRequest, acls.DescribeAclsResponse, 1, 3),
    Api(acls.CreateAclsRequest, acls.CreateAclsResponse, 1, 3),
    Api(acls.DeleteAclsRequest, acls.DeleteAclsResponse, 1, 3),
    Api(topics.DescribeConfigsRequest, topics.DescribeConfigsResponse, 1, 4),
    Api(topics.AlterConfigsRequest, topics.AlterConfigsResponse, 2, 2),
    Api(describe.DescribeLogDirsRequest, describe.DescribeLogDirsResponse, 5, 5),
    Api(security.SaslAuthenticateRequest, security.SaslAuthenticateResponse, 0, 2),
    Api(topics.CreatePartitionsRequest, topics.CreatePartitionsResponse, 2, 3),
    Api(cluster.DeleteGroupsRequest, cluster.DeleteGroupsResponse, 2, 3),
    Api(topics.ElectLeadersRequest, topics.ElectLeadersResponse, 2, 2),
    Api(topics.IncrementalAlterConfigsRequest, topics.IncrementalAlterConfigsResponse, 1, 1),
    Api(describe.ListPartitionReassignmentsRequest, describe.ListPartitionReassignmentsResponse, 0, 0),
    Api(offsets.OffsetDeleteRequest, offsets.OffsetDeleteResponse, 0, 0),
    Api(quotas.DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse, 1, 1),
    Api(quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse, 1, 1),
    Api(security.DescribeUserScramCredentialsRequest, security.DescribeUserScramCredentialsResponse, 0, 0),
    Api(security.AlterUserScramCredentialsRequest, security.AlterUserScramCredentialsResponse, 0, 0),
    Api(describe.DescribeQuorumRequest, describe.DescribeQuorumResponse, 2, 2),
    Api(features.UpdateFeaturesRequest, features.UpdateFeaturesResponse, 2, 2),
    Api(describe.DescribeClusterRequest, describe.DescribeClusterResponse, 2, 2),
    Api(describe.DescribeProducersRequest, describe.DescribeProducersResponse, 0, 0),
    Api(transactions.DescribeTransactionsRequest, transactions.DescribeTransactionsResponse, 0, 0),
    Api(transactions.ListTransactionsRequest, transactions.ListTransactionsResponse, 2, 2),
    Api(consumer_group.ConsumerGroupHeartbeatRequest, consumer_group.ConsumerGroupHeartbeatResponse, 0, 1),
    Api(consumer_group.ConsumerGroupDescribeRequest, consumer_group.ConsumerGroupDescribeResponse, 0, 1),
    Api(describe.ListConfigResourcesRequest, describe.ListConfigResourcesResponse, 1, 1),
    Api(describe.DescribeTopicPartitionsRequest, describe.DescribeTopicPartitionsResponse, 0, 0),
    Api(share_group.ShareGroupHeartbeatRequest, share_group.ShareGroupHeartbeatResponse, 1, 1),
    Api(share_group.ShareGroupDescribeRequest, share_group.ShareGroupDescribeResponse, 1, 1),
    Api(share_fetch.ShareFetchRequest, share_fetch.ShareFetchResponse, 1, 2),
    Api(share_fetch.ShareAcknowledgeRequest, share_fetch.ShareAcknowledgeResponse, 1, 2),
    Api(share_state.InitializeShareGroupStateRequest, share_state.InitializeShareGroupStateResponse, 0, 0),
    Api(share_state.ReadShareGroupStateRequest, share_state.ReadShareGroupStateResponse, 0, 0),
    Api(share_state.WriteShareGroupStateRequest, share_state.WriteShareGroupStateResponse, 0, 1),
    Api(share_state.DeleteShareGroupStateRequest, share_state.DeleteShareGroupStateResponse, 0, 0),
    Api(share_state.ReadShareGroupStateSummaryRequest, share_state.ReadShareGroupStateSummaryResponse, 0, 1),
    Api(share_group.DescribeShareGroupOffsetsRequest, share_group.DescribeShareGroupOffsetsResponse, 0, 1),
    Api(share_group.AlterShareGroupOffsetsRequest, share_group.AlterShareGroupOffsetsResponse, 0, 0),
    Api(share_group.DeleteShareGroupOffsetsRequest, share_group.DeleteShareGroupOffsetsResponse, 0, 0),
)
"""All APIs, by API key."""

EXPERIMENTS = (Api(share_browse.BrowseShareGroupRequest, share_browse.BrowseShareGroupResponse, 0, 0),)
"""The APIs of experiments, which Kafka does not have: offered only where the experiments are enabled."""

API_BY_KEY = {api.key: api for api in APIS + EXPERIMENTS}
