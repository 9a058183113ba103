"""The route table of a broker: for each request type the actor, or the function, that answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from shareq.broker import (
    acls,
    alter_configs,
    client_quotas,
    configs,
    describe_cluster,
    features,
    metadata,
    offsets,
    topics,
    user_credentials,
)
from shareq.broker.controller import Controller
from shareq.broker.data_plane import DataPlane
from shareq.broker.host import Host
from shareq.model.actor import ClientContext
from shareq.model.experiments import ENABLE
from shareq.model.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from shareq.model.messages.cluster import (
    DeleteGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
)
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from shareq.model.messages.data import DeleteRecordsRequest, ListOffsetsRequest, ProduceRequest
from shareq.model.messages.describe import (
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
)
from shareq.model.messages.features import UpdateFeaturesRequest
from shareq.model.messages.fetch import FetchRequest, OffsetForLeaderEpochRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from shareq.model.messages.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from shareq.model.messages.security import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from shareq.model.messages.share_browse import BrowseShareGroupRequest
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from shareq.model.messages.share_transactions import EndShareTransactionRequest, TxnShareAcknowledgeRequest
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from shareq.model.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AllocateProducerIdsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)

Answer = Callable[[Any, ClientContext], Response]
"""A function that returns the response at once."""

Route = Host | Answer

BETWEEN_BROKERS: frozenset[type[Request]] = frozenset({AllocateProducerIdsRequest, WriteTxnMarkersRequest})
"""Requests between brokers, which clients cannot send."""

_OF_EXPERIMENTS = (BrowseShareGroupRequest, TxnShareAcknowledgeRequest, EndShareTransactionRequest)
"""Requests to leaders that exist only where the experiments are enabled."""


class Hosts(NamedTuple):
    """The hosts of the actors that answer requests."""

    leader: Host
    groups: Host
    states: Host
    fetches: Host
    transactions: Host
    verification: Host


def routes(hosts: Hosts, produce: Answer, controller: Controller, data: DataPlane) -> dict[type[Request], Route]:
    """The route of each request type that a broker accepts."""
    return {
        ProduceRequest: produce,
        **_to_actors(hosts),
        **(dict.fromkeys(_OF_EXPERIMENTS, hosts.leader) if controller.image.broker_config[ENABLE] else {}),
        **_about_logs(controller, data),
        **_about_the_cluster(controller, data),
        **_about_users(controller),
        **{api: _in_one_image(answer, controller) for api, answer in _about_topics(controller, data).items()},
    }


def _in_one_image(answer: Answer, controller: Controller) -> Answer:
    """Make all changes of a request in one image."""

    def answered(request: Any, client: ClientContext) -> Response:
        with controller.together():
            return answer(request, client)

    return answered


def _to_actors(hosts: Hosts) -> dict[type[Request], Route]:
    leader, groups, states, fetches, transactions, verification = hosts
    return {
        ShareFetchRequest: leader,
        ShareAcknowledgeRequest: leader,
        FetchRequest: fetches,
        ConsumerGroupHeartbeatRequest: groups,
        ConsumerGroupDescribeRequest: groups,
        JoinGroupRequest: groups,
        SyncGroupRequest: groups,
        HeartbeatRequest: groups,
        LeaveGroupRequest: groups,
        DescribeGroupsRequest: groups,
        OffsetCommitRequest: groups,
        TxnOffsetCommitRequest: groups,
        OffsetFetchRequest: groups,
        OffsetDeleteRequest: groups,
        ShareGroupHeartbeatRequest: groups,
        ShareGroupDescribeRequest: groups,
        ListGroupsRequest: groups,
        DeleteGroupsRequest: groups,
        DescribeShareGroupOffsetsRequest: groups,
        AlterShareGroupOffsetsRequest: groups,
        DeleteShareGroupOffsetsRequest: groups,
        InitProducerIdRequest: transactions,
        AddPartitionsToTxnRequest: transactions,
        AddOffsetsToTxnRequest: transactions,
        EndTxnRequest: transactions,
        DescribeTransactionsRequest: transactions,
        ListTransactionsRequest: transactions,
        WriteTxnMarkersRequest: verification,
        InitializeShareGroupStateRequest: states,
        ReadShareGroupStateRequest: states,
        WriteShareGroupStateRequest: states,
        DeleteShareGroupStateRequest: states,
        ReadShareGroupStateSummaryRequest: states,
    }


def _about_logs(controller: Controller, data: DataPlane) -> dict[type[Request], Route]:
    return {
        ListOffsetsRequest: lambda request, client: offsets.list_offsets(request, client, data),
        OffsetForLeaderEpochRequest: lambda request, _: offsets.offsets_for_leader_epochs(request, data),
        DeleteRecordsRequest: lambda request, _: offsets.delete_records(request, data),
        DescribeProducersRequest: lambda request, _: offsets.describe_producers(request, data),
        AllocateProducerIdsRequest: lambda _, __: controller.allocate_producer_ids(),
    }


def _about_the_cluster(controller: Controller, data: DataPlane) -> dict[type[Request], Route]:
    return {
        FindCoordinatorRequest: lambda request, client: metadata.find_coordinators(request, client, controller),
        DescribeClusterRequest: lambda request, _: metadata.describe_cluster(request, controller.image),
        DescribeTopicPartitionsRequest: lambda request, _: metadata.describe_topic_partitions(
            request, controller.image
        ),
        DescribeLogDirsRequest: lambda request, _: describe_cluster.describe_log_dirs(request, data),
        DescribeQuorumRequest: lambda request, _: describe_cluster.describe_quorum(request, controller.image),
        ListPartitionReassignmentsRequest: lambda request, _: describe_cluster.list_partition_reassignments(request),
        ListConfigResourcesRequest: lambda request, _: describe_cluster.list_config_resources(
            request, controller.image
        ),
    }


def _about_users(controller: Controller) -> dict[type[Request], Route]:
    return {
        DescribeUserScramCredentialsRequest: lambda request, _: user_credentials.describe_users(
            request, controller.image
        ),
        AlterUserScramCredentialsRequest: lambda request, _: user_credentials.alter_users(request, controller),
        DescribeClientQuotasRequest: lambda request, _: client_quotas.describe_client_quotas(request, controller.image),
        AlterClientQuotasRequest: lambda request, _: client_quotas.alter_client_quotas(request, controller),
        SaslHandshakeRequest: lambda request, _: user_credentials.no_authentication(request),
        SaslAuthenticateRequest: lambda request, _: user_credentials.no_authentication(request),
    }


def _about_topics(controller: Controller, data: DataPlane) -> dict[type[Request], Answer]:
    return {
        MetadataRequest: lambda request, client: metadata.metadata(request, controller, client),
        CreateTopicsRequest: lambda request, client: topics.create_topics(request, controller, client),
        DeleteTopicsRequest: lambda request, client: topics.delete_topics(request, controller, client),
        CreatePartitionsRequest: lambda request, client: topics.create_partitions(request, controller, client),
        ElectLeadersRequest: lambda request, _: topics.elect_leaders(request, controller),
        DescribeAclsRequest: lambda request, _: acls.describe_acls(request, controller.image),
        CreateAclsRequest: lambda request, _: acls.create_acls(request, controller),
        DeleteAclsRequest: lambda request, _: acls.delete_acls(request, controller),
        UpdateFeaturesRequest: lambda request, client: features.update_features(
            request, controller, client.api_version
        ),
        DescribeConfigsRequest: lambda request, _: configs.describe_configs(request, controller.image, data.broker_id),
        AlterConfigsRequest: lambda request, _: alter_configs.alter_configs(request, controller, data.broker_id),
        IncrementalAlterConfigsRequest: lambda request, _: alter_configs.incremental_alter_configs(
            request, controller, data.broker_id
        ),
    }
