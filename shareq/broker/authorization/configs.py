"""Rules of the requests about configurations: on the topic or the group, and for all other resources on the cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

from shareq.broker.authorization.rulings import Ruling, without
from shareq.model import acls
from shareq.model.acls import AclOperation
from shareq.model.errors import Errors
from shareq.model.messages.topics import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceType,
)
from shareq.model.rights import Rights

_RESOURCES = {
    int(ResourceType.TOPIC): (acls.ResourceType.TOPIC, Errors.TOPIC_AUTHORIZATION_FAILED),
    int(ResourceType.GROUP): (acls.ResourceType.GROUP, Errors.GROUP_AUTHORIZATION_FAILED),
    **dict.fromkeys(
        (int(ResourceType.BROKER), int(ResourceType.BROKER_LOGGER), int(ResourceType.CLIENT_METRICS)),
        (acls.ResourceType.CLUSTER, Errors.CLUSTER_AUTHORIZATION_FAILED),
    ),
}
"""The type of a resource with configurations -> the resource of its rights, and the error without them. Other types are
refused with any rights."""


def describe(request: DescribeConfigsRequest, rights: Rights) -> Ruling:
    """DESCRIBE_CONFIGS on each resource."""
    allowed, denied = _split(request, rights, AclOperation.DESCRIBE_CONFIGS)
    refused = tuple(_refused(DescribeConfigsResponse.Result, resource) for resource in denied)
    return without(request, refused, "results", resources=allowed)


def alter(request: AlterConfigsRequest, rights: Rights) -> Ruling:
    """ALTER_CONFIGS on each resource."""
    return _altered(request, rights, AlterConfigsResponse.Result)


def incremental_alter(request: IncrementalAlterConfigsRequest, rights: Rights) -> Ruling:
    """ALTER_CONFIGS on each resource."""
    return _altered(request, rights, IncrementalAlterConfigsResponse.Result)


def _altered(request: Any, rights: Rights, result: Any) -> Ruling:
    allowed, denied = _split(request, rights, AclOperation.ALTER_CONFIGS)
    return without(request, tuple(_refused(result, resource) for resource in denied), "responses", resources=allowed)


def _split(request: Any, rights: Rights, operation: AclOperation) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The resources that may be used so, with those that are refused anyway, and the others."""
    counts = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    twice = operation is AclOperation.ALTER_CONFIGS
    allowed: list[Any] = []
    denied: list[Any] = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        if kind not in _RESOURCES or (twice and counts[kind, name] > 1):
            allowed.append(resource)
            continue
        restype, _ = _RESOURCES[kind]
        on_cluster = restype is acls.ResourceType.CLUSTER
        may = rights.on_cluster(operation) if on_cluster else rights.may(operation, restype, name)
        (allowed if may else denied).append(resource)
    return tuple(allowed), tuple(denied)


def _refused(result: Any, resource: Any) -> Any:
    _, error = _RESOURCES[resource.resource_type]
    return result(resource_type=resource.resource_type, resource_name=resource.resource_name, error_code=error)
