"""The responses to DescribeAcls, CreateAcls and DeleteAcls. The controller makes the changes.

Source: Kafka's AclApis, AclControlManager.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

from shareq.broker.controller import Controller
from shareq.broker.placement import NO_ERROR, ErrorWithMessage
from shareq.model.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

E = TypeVar("E", bound=IntEnum)

_DISABLED: ErrorWithMessage = (Errors.SECURITY_DISABLED, "No Authorizer is configured.")
_PATTERNS = (ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED)
_PERMISSIONS = (AclPermissionType.ALLOW, AclPermissionType.DENY)


def describe_acls(request: DescribeAclsRequest, image: ClusterImage) -> DescribeAclsResponse:
    """The bindings that match the filter, by resource pattern."""
    if image.authorizer is None:
        return DescribeAclsResponse(error_code=_DISABLED[0], error_message=_DISABLED[1])
    wanted = _filter(request)
    error, why = _refuse_filter(wanted)
    if error:
        return DescribeAclsResponse(error_code=error, error_message=why)
    found: dict[tuple[ResourceType, str, ResourcePatternType], list[DescribeAclsResponse.Acl]] = {}
    for binding in image.authorizer.acls:
        if wanted.matches(binding):
            acl = DescribeAclsResponse.Acl(
                principal=binding.principal,
                host=binding.host,
                operation=binding.operation,
                permission_type=binding.permission_type,
            )
            found.setdefault((binding.restype, binding.name, binding.resource_pattern_type), []).append(acl)
    return DescribeAclsResponse(
        resources=tuple(
            DescribeAclsResponse.Resource(
                resource_type=restype, resource_name=name, pattern_type=pattern, acls=tuple(entries)
            )
            for (restype, name, pattern), entries in found.items()
        )
    )


def create_acls(request: CreateAclsRequest, controller: Controller) -> CreateAclsResponse:
    """Add the valid bindings; one that exists already is no error."""
    if controller.image.authorizer is None:
        outcomes = [_DISABLED] * len(request.creations)
    else:
        bindings = [_binding(creation) for creation in request.creations]
        outcomes = [_refuse(binding) for binding in bindings]
        controller.change_acls(
            added=[binding for binding, (error, _) in zip(bindings, outcomes, strict=True) if not error]
        )
    return CreateAclsResponse(
        results=tuple(CreateAclsResponse.Result(error_code=error, error_message=why) for error, why in outcomes)
    )


def delete_acls(request: DeleteAclsRequest, controller: Controller) -> DeleteAclsResponse:
    """Remove the bindings that match a filter. A binding that several filters match is in each of their results."""
    authorizer = controller.image.authorizer
    results = []
    removed: list[AclBinding] = []
    for wanted in map(_filter, request.filters):
        error, why = _DISABLED if authorizer is None else _refuse_filter(wanted)
        if authorizer is None or error:
            results.append(DeleteAclsResponse.FilterResult(error_code=error, error_message=why))
            continue
        matching = [binding for binding in authorizer.acls if wanted.matches(binding)]
        removed += matching
        results.append(DeleteAclsResponse.FilterResult(matching_acls=tuple(map(_removed, matching))))
    if removed:
        controller.change_acls(removed=removed)
    return DeleteAclsResponse(filter_results=tuple(results))


def _removed(binding: AclBinding) -> DeleteAclsResponse.MatchingAcl:
    return DeleteAclsResponse.MatchingAcl(
        resource_type=binding.restype,
        resource_name=binding.name,
        pattern_type=binding.resource_pattern_type,
        principal=binding.principal,
        host=binding.host,
        operation=binding.operation,
        permission_type=binding.permission_type,
    )


# ---- from the wire ---------------------------------------------------------------------------------------------------


def _known(kind: type[E], number: int) -> E:
    """The member of this number; UNKNOWN if there is none, as in Kafka."""
    return kind(number) if number in kind.__members__.values() else kind(0)


def _binding(creation: CreateAclsRequest.Creation) -> AclBinding:
    return AclBinding(
        _known(ResourceType, creation.resource_type),
        creation.resource_name,
        _known(ResourcePatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        _known(AclOperation, creation.operation),
        _known(AclPermissionType, creation.permission_type),
    )


def _filter(wanted: DescribeAclsRequest | DeleteAclsRequest.Filter) -> AclBindingFilter:
    return AclBindingFilter(
        _known(ResourceType, wanted.resource_type_filter),
        wanted.resource_name_filter,
        _known(ResourcePatternType, wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        _known(AclOperation, wanted.operation),
        _known(AclPermissionType, wanted.permission_type),
    )


def _refuse_filter(wanted: AclBindingFilter) -> ErrorWithMessage:
    if not (wanted.restype and wanted.resource_pattern_type):
        return Errors.INVALID_REQUEST, "the filter has an unknown resource type or pattern type"
    if not (wanted.operation and wanted.permission_type):
        return Errors.INVALID_REQUEST, "the filter has an unknown operation or permission type"
    return NO_ERROR


def _refuse(binding: AclBinding) -> ErrorWithMessage:
    """The error of a new binding, in Kafka's order."""
    restype, name, principal = binding.restype, binding.name, binding.principal
    checks = (
        (restype is ResourceType.CLUSTER and name != CLUSTER_NAME, f"the only CLUSTER resource is {CLUSTER_NAME!r}"),
        (not name, "the resource name is empty"),
        (restype in (ResourceType.UNKNOWN, ResourceType.ANY), f"resource type {restype.name} is not one of resources"),
        (
            binding.resource_pattern_type not in _PATTERNS,
            f"pattern type {binding.resource_pattern_type.name}: must be LITERAL or PREFIXED",
        ),
        (
            binding.operation in (AclOperation.UNKNOWN, AclOperation.ANY),
            f"operation {binding.operation.name} is not one that can be allowed or denied",
        ),
        (
            binding.permission_type not in _PERMISSIONS,
            f"permission type {binding.permission_type.name}: must be ALLOW or DENY",
        ),
        (":" not in principal, f"{principal!r} is not a principal, which has a type and a name, such as User:alice"),
    )
    return next(((Errors.INVALID_REQUEST, why) for wrong, why in checks if wrong), NO_ERROR)
