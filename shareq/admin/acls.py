"""Access control lists: create, describe, delete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, TypeVar

from shareq.admin.broker_routing import BrokerRouting, failure
from shareq.admin.core import Operation
from shareq.admin.results import DeletedAcls, Done, Results
from shareq.client.arguments import items, text
from shareq.model.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from shareq.model.errors import Errors, KafkaException
from shareq.model.messages.acls import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

E = TypeVar("E", bound=IntEnum)


def create_acls(routing: BrokerRouting, acls: Sequence[AclBinding]) -> Operation[Results[AclBinding, Done]]:
    creations = tuple(
        CreateAclsRequest.Creation(
            resource_type=acl.restype,
            resource_name=acl.name,
            resource_pattern_type=acl.resource_pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    )
    response = yield from routing.any_broker(CreateAclsRequest(creations=creations))
    return Results(
        {
            acl: Done(name=acl.name, error=failure(result.error_code, result.error_message))
            for acl, result in zip(acls, response.results, strict=True)
        }
    )


def describe_acls(routing: BrokerRouting, wanted: AclBindingFilter) -> Operation[list[AclBinding]]:
    response: DescribeAclsResponse = yield from routing.any_broker(DescribeAclsRequest(**_wanted(wanted)))
    error = failure(response.error_code, response.error_message)
    if error is not None:
        raise KafkaException(error)
    return sorted(_found(resource, acl) for resource in response.resources for acl in resource.acls)


def delete_acls(
    routing: BrokerRouting, filters: Sequence[AclBindingFilter]
) -> Operation[Results[AclBindingFilter, DeletedAcls]]:
    requested = tuple(DeleteAclsRequest.Filter(**_wanted(wanted)) for wanted in filters)
    response = yield from routing.any_broker(DeleteAclsRequest(filters=requested))
    return Results({wanted: _deleted(result) for wanted, result in zip(filters, response.filter_results, strict=True)})


def _wanted(wanted: AclBindingFilter) -> dict[str, Any]:
    """The fields of a filter, of both requests."""
    return {
        "resource_type_filter": wanted.restype,
        "resource_name_filter": wanted.name,
        "pattern_type_filter": wanted.resource_pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission_type,
    }


def _deleted(result: DeleteAclsResponse.FilterResult) -> DeletedAcls:
    """The bindings that are gone, and the first error."""
    outcomes = [(result.error_code, result.error_message)]
    outcomes += [(acl.error_code, acl.error_message) for acl in result.matching_acls]
    error, why = next((outcome for outcome in outcomes if outcome[0]), (Errors.NONE, None))
    return DeletedAcls(
        acls=tuple(sorted(_found(acl, acl) for acl in result.matching_acls if not acl.error_code)),
        error=failure(error, why),
    )


def _found(resource: Any, acl: Any) -> AclBinding:
    """The binding of a response, which may have the resource apart."""
    return AclBinding(
        ResourceType(resource.resource_type),
        resource.resource_name,
        ResourcePatternType(resource.pattern_type),
        acl.principal,
        acl.host,
        AclOperation(acl.operation),
        AclPermissionType(acl.permission_type),
    )


# ---- arguments -------------------------------------------------------------------------------------------------------


def bindings_of(acls: Iterable[AclBinding]) -> list[AclBinding]:
    """Bindings to create, each once. Types may be given by their names; the broker refuses invalid combinations."""
    return _each_once("acls", acls, AclBinding, _binding)


def filters_of(filters: Iterable[AclBindingFilter]) -> list[AclBindingFilter]:
    return _each_once("filters", filters, AclBindingFilter, filter_of)


T = TypeVar("T", AclBinding, AclBindingFilter)


def _each_once(what: str, given: Iterable[T], kind: type[T], checked: Callable[[T], T]) -> list[T]:
    found = [checked(each) for each in items(what, given)]
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{what} must not be empty, and each {kind.__name__} must be given once")
    return found


def _binding(acl: object) -> AclBinding:
    if not isinstance(acl, AclBinding):
        raise TypeError(f"an access control list must be an AclBinding, not {acl!r:.100}")
    return AclBinding(
        _member(ResourceType, acl.restype),
        text("name", acl.name),
        _member(ResourcePatternType, acl.resource_pattern_type),
        text("principal", acl.principal),
        text("host", acl.host),
        _member(AclOperation, acl.operation),
        _member(AclPermissionType, acl.permission_type),
    )


def filter_of(wanted: object) -> AclBindingFilter:
    if not isinstance(wanted, AclBindingFilter):
        raise TypeError(f"a filter must be an AclBindingFilter, not {wanted!r:.100}")
    name, principal, host = (
        None if value is None else text(what, value)
        for what, value in (("name", wanted.name), ("principal", wanted.principal), ("host", wanted.host))
    )
    return AclBindingFilter(
        _member(ResourceType, wanted.restype),
        name,
        _member(ResourcePatternType, wanted.resource_pattern_type),
        principal,
        host,
        _member(AclOperation, wanted.operation),
        _member(AclPermissionType, wanted.permission_type),
    )


def _member(kind: type[E], value: object) -> E:
    """A member, from itself or from its name in any case."""
    if isinstance(value, str) and value.upper() in kind.__members__:
        return kind[value.upper()]
    if isinstance(value, kind):
        return value
    known = ", ".join(name.lower() for name in kind.__members__)
    raise ValueError(f"{value!r:.100} is no {kind.__name__}: must be one of {known}")
