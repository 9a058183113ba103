"""Rules of the requests about the cluster as a whole, and of those that only brokers send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shareq.broker.authorization.rulings import Filtered, Rule, Ruling
from shareq.broker.metadata import SHARE_KEYS_FROM
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.errors import Errors
from shareq.model.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.describe import (
    DescribeClusterRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from shareq.model.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaEntity,
)
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.messages.security import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from shareq.model.messages.topics import ElectLeadersRequest, ElectLeadersResponse
from shareq.model.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from shareq.model.rights import Rights

_DENIED = Errors.CLUSTER_AUTHORIZATION_FAILED
_WHY = "Cluster authorization failed."


def on_cluster(operation: AclOperation, refuse: Callable[[Any], Response]) -> Rule:
    """The operation on the cluster; else the response of `refuse(request)`."""

    def rule(request: Any, rights: Rights) -> Ruling:
        return request if rights.on_cluster(operation) else refuse(request)

    return rule


def failed(response: Callable[..., Response]) -> Callable[[Any], Response]:
    """A response with the error alone."""
    return lambda _: response(error_code=_DENIED)


def anyone(request: Any, rights: Rights) -> Ruling:
    """No right is needed."""
    del rights
    return request  # type: ignore[no-any-return]    # of any type


# ---- coordinators, the cluster ---------------------------------------------------------------------------------------

_COORDINATED = {
    int(CoordinatorType.GROUP): (ResourceType.GROUP, Errors.GROUP_AUTHORIZATION_FAILED),
    int(CoordinatorType.TRANSACTION): (
        ResourceType.TRANSACTIONAL_ID,
        Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}


def find_coordinator(request: FindCoordinatorRequest, rights: Rights) -> Ruling:
    """DESCRIBE on each group or transactional id; CLUSTER_ACTION for share coordinators, which only brokers need."""
    found = FindCoordinatorResponse.Coordinator
    if request.key_type == CoordinatorType.SHARE and rights.api_version >= SHARE_KEYS_FROM:
        if rights.on_cluster(AclOperation.CLUSTER_ACTION):
            return request
        refused = tuple(found(key=key, error_code=_DENIED, error_message=_WHY) for key in request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=refused)
    if request.key_type not in _COORDINATED:
        return request
    restype, error = _COORDINATED[request.key_type]
    allowed, denied = rights.split(AclOperation.DESCRIBE, restype, request.coordinator_keys, lambda key: key)
    if not denied:
        return request
    rows = {key: found(key=key, error_code=error) for key in denied}
    if not allowed:
        return FindCoordinatorResponse(coordinators=tuple(rows[key] for key in request.coordinator_keys))

    def complete(response: FindCoordinatorResponse) -> FindCoordinatorResponse:
        others = iter(response.coordinators)
        return replace(response, coordinators=tuple(rows.get(key) or next(others) for key in request.coordinator_keys))

    return Filtered(replace(request, coordinator_keys=allowed), complete)


def describe_cluster(request: DescribeClusterRequest, rights: Rights) -> Ruling:
    """No right is needed; of the authorized operations those that are allowed."""
    if not request.include_cluster_authorized_operations:
        return request

    def complete(response: Any) -> Any:
        if response.error_code:
            return response
        return replace(response, cluster_authorized_operations=rights.cluster_operations())

    return Filtered(request, complete)


def not_elected(request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Refuse all elections that the request names."""
    named = request.topic_partitions or ()
    topics = refused_topics(ElectLeadersResponse, named, error_code=_DENIED, error_message=_WHY)
    return ElectLeadersResponse(error_code=_DENIED, replica_election_results=topics)


def no_reassignments(request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """The error, and the partitions that the request names, without replicas."""
    topics = refused_topics(ListPartitionReassignmentsResponse, request.topics or (), replicas=())
    return ListPartitionReassignmentsResponse(error_code=_DENIED, error_message=_WHY, topics=topics)


# ---- access control lists --------------------------------------------------------------------------------------------


def no_users_described(request: DescribeUserScramCredentialsRequest) -> DescribeUserScramCredentialsResponse:
    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    results = tuple(result(user=user.name, error_code=_DENIED) for user in request.users or ())
    return DescribeUserScramCredentialsResponse(error_code=_DENIED, results=results)


def no_users_altered(request: AlterUserScramCredentialsRequest) -> AlterUserScramCredentialsResponse:
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    deleted, upserted = (one.name for one in request.deletions), (one.name for one in request.upsertions)
    names = dict.fromkeys((*deleted, *upserted))
    return AlterUserScramCredentialsResponse(results=tuple(result(user=name, error_code=_DENIED) for name in names))


def no_quotas_described(request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    del request
    return DescribeClientQuotasResponse(error_code=_DENIED, error_message=_WHY)


def no_quotas_altered(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    made = AlterClientQuotasResponse
    return made(
        entries=tuple(
            made.Entry(
                error_code=_DENIED,
                error_message=_WHY,
                entity=tuple(
                    QuotaEntity(entity_type=one.entity_type, entity_name=one.entity_name) for one in entry.entity
                ),
            )
            for entry in request.entries
        )
    )


def no_acls_created(request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=tuple(CreateAclsResponse.Result(error_code=_DENIED, error_message=_WHY) for _ in request.creations)
    )


def no_acls_deleted(request: DeleteAclsRequest) -> DeleteAclsResponse:
    return DeleteAclsResponse(
        filter_results=tuple(
            DeleteAclsResponse.FilterResult(error_code=_DENIED, error_message=_WHY) for _ in request.filters
        )
    )


# ---- between brokers -------------------------------------------------------------------------------------------------


def no_state(response: Any) -> Callable[[Any], Response]:
    """Refuse a request of the share-group state, partition by partition."""

    def refuse(request: Any) -> Response:
        results = refused_topics(response, request.topics, error_code=_DENIED, error_message=_WHY)
        made: Response = response(results=results)
        return made

    return refuse


def no_markers(request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=tuple(
            WriteTxnMarkersResponse.Marker(
                producer_id=marker.producer_id,
                topics=refused_topics(WriteTxnMarkersResponse, marker.topics, error_code=_DENIED),
            )
            for marker in request.markers
        )
    )
