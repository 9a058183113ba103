"""Who in a broker answers which request: an actor, now or later, or a function, at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.broker import metadata, offsets
from shareq.broker.controller import Controller
from shareq.broker.data_plane import DataPlane
from shareq.broker.host import Host
from shareq.model.actor import ClientContext
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
from shareq.model.messages.data import DeleteRecordsRequest, ListOffsetsRequest
from shareq.model.messages.describe import DescribeProducersRequest
from shareq.model.messages.fetch import FetchRequest, OffsetForLeaderEpochRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
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
from shareq.model.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
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

Answering = Callable[[Any, ClientContext], Response]


def actors(
    *, leader: Host, groups: Host, states: Host, fetches: Host, transactions: Host, admission: Host
) -> dict[type[Request], Host]:
    """Requests that an actor answers, now or later."""
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
        WriteTxnMarkersRequest: admission,
        InitializeShareGroupStateRequest: states,
        ReadShareGroupStateRequest: states,
        WriteShareGroupStateRequest: states,
        DeleteShareGroupStateRequest: states,
        ReadShareGroupStateSummaryRequest: states,
    }


def answers(controller: Controller, data: DataPlane) -> dict[type[Request], Answering]:
    """Requests that are answered at once."""
    return {
        ListOffsetsRequest: lambda request, client: offsets.list_offsets(request, client, data),
        OffsetForLeaderEpochRequest: lambda request, _: offsets.offsets_for_leader_epochs(request, data),
        DeleteRecordsRequest: lambda request, _: offsets.delete_records(request, data),
        DescribeProducersRequest: lambda request, _: offsets.describe_producers(request, data),
        AllocateProducerIdsRequest: lambda _, __: controller.allocate_producer_ids(),
        MetadataRequest: lambda request, _: metadata.metadata(request, controller.image),
        FindCoordinatorRequest: lambda request, _: metadata.find_coordinators(request, controller),
        CreateTopicsRequest: lambda request, _: metadata.create_topics(request, controller),
        DeleteTopicsRequest: lambda request, _: metadata.delete_topics(request, controller),
        CreatePartitionsRequest: lambda request, _: metadata.create_partitions(request, controller),
        DescribeConfigsRequest: lambda request, _: metadata.describe_configs(request, controller.image),
        IncrementalAlterConfigsRequest: lambda request, _: metadata.alter_configs(request, controller),
    }
