"""The APIs that brokers serve over TCP, and their versions.

The ranges are those of Kafka 4.3 and 4.4, so that a client which they serve is served here, too. A broker advertises
this table, and a client uses the highest version that both sides support. Experiments and the tap have tables of their
own.
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
    share_transactions,
    tap_journal,
    topics,
    transactions,
)
from shareq.model.messages.base import Request, Response


class Api(NamedTuple):
    """A request, its response, and the versions of both (inclusive).

    `sent_from`: the first version with all that shareq's own clients need, if that is not the first of all.
    """

    request: type[Request]
    response: type[Response]
    min_version: int
    max_version: int
    sent_from: int = 0

    @property
    def key(self) -> int:
        return self.request.API_KEY

    @property
    def name(self) -> str:
        return self.request.__name__.removesuffix("Request")


APIS = (
    Api(data.ProduceRequest, data.ProduceResponse, 3, 13, sent_from=10),
    Api(fetch.FetchRequest, fetch.FetchResponse, 4, 18, sent_from=16),
    Api(data.ListOffsetsRequest, data.ListOffsetsResponse, 1, 11, sent_from=7),
    Api(cluster.MetadataRequest, cluster.MetadataResponse, 0, 13, sent_from=10),
    Api(offsets.OffsetCommitRequest, offsets.OffsetCommitResponse, 2, 10, sent_from=9),
    Api(offsets.OffsetFetchRequest, offsets.OffsetFetchResponse, 1, 10, sent_from=9),
    Api(cluster.FindCoordinatorRequest, cluster.FindCoordinatorResponse, 0, 6, sent_from=2),
    Api(classic_group.JoinGroupRequest, classic_group.JoinGroupResponse, 0, 9, sent_from=5),
    Api(classic_group.HeartbeatRequest, classic_group.HeartbeatResponse, 0, 4, sent_from=3),
    Api(classic_group.LeaveGroupRequest, classic_group.LeaveGroupResponse, 0, 5, sent_from=1),
    Api(classic_group.SyncGroupRequest, classic_group.SyncGroupResponse, 0, 5, sent_from=3),
    Api(classic_group.DescribeGroupsRequest, classic_group.DescribeGroupsResponse, 0, 6),
    Api(cluster.ListGroupsRequest, cluster.ListGroupsResponse, 0, 5),
    Api(security.SaslHandshakeRequest, security.SaslHandshakeResponse, 0, 1),
    Api(api_versions.ApiVersionsRequest, api_versions.ApiVersionsResponse, 0, 5),
    Api(topics.CreateTopicsRequest, topics.CreateTopicsResponse, 2, 7, sent_from=4),
    Api(topics.DeleteTopicsRequest, topics.DeleteTopicsResponse, 1, 6, sent_from=4),
    Api(data.DeleteRecordsRequest, data.DeleteRecordsResponse, 0, 2, sent_from=2),
    Api(transactions.InitProducerIdRequest, transactions.InitProducerIdResponse, 0, 5, sent_from=4),
    Api(fetch.OffsetForLeaderEpochRequest, fetch.OffsetForLeaderEpochResponse, 2, 4),
    Api(transactions.AddPartitionsToTxnRequest, transactions.AddPartitionsToTxnResponse, 0, 5),
    Api(transactions.AddOffsetsToTxnRequest, transactions.AddOffsetsToTxnResponse, 0, 4),
    Api(transactions.EndTxnRequest, transactions.EndTxnResponse, 0, 5, sent_from=1),
    Api(transactions.TxnOffsetCommitRequest, transactions.TxnOffsetCommitResponse, 0, 6, sent_from=3),
    Api(acls.DescribeAclsRequest, acls.DescribeAclsResponse, 1, 3),
    Api(acls.CreateAclsRequest, acls.CreateAclsResponse, 1, 3),
    Api(acls.DeleteAclsRequest, acls.DeleteAclsResponse, 1, 3),
    Api(topics.DescribeConfigsRequest, topics.DescribeConfigsResponse, 1, 4),
    Api(topics.AlterConfigsRequest, topics.AlterConfigsResponse, 0, 2, sent_from=2),
    Api(describe.DescribeLogDirsRequest, describe.DescribeLogDirsResponse, 1, 5, sent_from=5),
    Api(security.SaslAuthenticateRequest, security.SaslAuthenticateResponse, 0, 2),
    Api(topics.CreatePartitionsRequest, topics.CreatePartitionsResponse, 0, 3, sent_from=2),
    Api(cluster.DeleteGroupsRequest, cluster.DeleteGroupsResponse, 0, 3, sent_from=2),
    Api(topics.ElectLeadersRequest, topics.ElectLeadersResponse, 0, 2, sent_from=2),
    Api(topics.IncrementalAlterConfigsRequest, topics.IncrementalAlterConfigsResponse, 0, 1, sent_from=1),
    Api(describe.ListPartitionReassignmentsRequest, describe.ListPartitionReassignmentsResponse, 0, 0),
    Api(offsets.OffsetDeleteRequest, offsets.OffsetDeleteResponse, 0, 0),
    Api(quotas.DescribeClientQuotasRequest, quotas.DescribeClientQuotasResponse, 0, 1, sent_from=1),
    Api(quotas.AlterClientQuotasRequest, quotas.AlterClientQuotasResponse, 0, 1, sent_from=1),
    Api(security.DescribeUserScramCredentialsRequest, security.DescribeUserScramCredentialsResponse, 0, 0),
    Api(security.AlterUserScramCredentialsRequest, security.AlterUserScramCredentialsResponse, 0, 0),
    Api(describe.DescribeQuorumRequest, describe.DescribeQuorumResponse, 0, 2, sent_from=2),
    Api(features.UpdateFeaturesRequest, features.UpdateFeaturesResponse, 0, 2, sent_from=2),
    Api(describe.DescribeClusterRequest, describe.DescribeClusterResponse, 0, 2, sent_from=2),
    Api(describe.DescribeProducersRequest, describe.DescribeProducersResponse, 0, 0),
    Api(transactions.DescribeTransactionsRequest, transactions.DescribeTransactionsResponse, 0, 0),
    Api(transactions.ListTransactionsRequest, transactions.ListTransactionsResponse, 0, 2, sent_from=2),
    Api(consumer_group.ConsumerGroupHeartbeatRequest, consumer_group.ConsumerGroupHeartbeatResponse, 0, 1),
    Api(consumer_group.ConsumerGroupDescribeRequest, consumer_group.ConsumerGroupDescribeResponse, 0, 1),
    Api(describe.ListConfigResourcesRequest, describe.ListConfigResourcesResponse, 0, 1, sent_from=1),
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

EXPERIMENTS = (
    Api(share_browse.BrowseShareGroupRequest, share_browse.BrowseShareGroupResponse, 0, 0),
    Api(share_transactions.TxnShareAcknowledgeRequest, share_transactions.TxnShareAcknowledgeResponse, 0, 0),
    Api(share_transactions.EndShareTransactionRequest, share_transactions.EndShareTransactionResponse, 0, 0),
)
"""The APIs of experiments, which Kafka does not have: offered only where the experiments are enabled."""

TAP = (Api(tap_journal.ReadJournalRequest, tap_journal.ReadJournalResponse, 0, 0),)
"""The APIs that a tap answers itself: it adds them to the offers of brokers, which have none of them."""

PRODUCE_OFFERED_FROM = 0
"""The first version of Produce in ApiVersions, though versions 0 to 2 are refused: some clients take a higher one for a
broker without the compression that they use (KAFKA-18659)."""

API_BY_KEY = {api.key: api for api in APIS + EXPERIMENTS + TAP}
