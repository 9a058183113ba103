"""Access control lists: DescribeAcls (29), CreateAcls (30) and DeleteAcls (31).

Types, operations and permissions are the numbers of `shareq.model.acls`.
"""

from __future__ import annotations

from typing import ClassVar

from shareq.model.acls import ResourcePatternType
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


@message
class DescribeAclsRequest(Request):
    """One filter; None matches every value."""

    API_KEY: ClassVar[int] = 29

    resource_type_filter: int
    resource_name_filter: str | None = None
    pattern_type_filter: int = ResourcePatternType.LITERAL
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int
    permission_type: int


@message
class DescribeAclsResponse(Response):
    """The matching entries, by resource pattern."""

    @message
    class Acl:
        principal: str
        host: str
        operation: int
        permission_type: int

    @message
    class Resource:
        resource_type: int
        resource_name: str
        pattern_type: int = ResourcePatternType.LITERAL
        acls: tuple[DescribeAclsResponse.Acl, ...] = ()

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    resources: tuple[Resource, ...] = ()


@message
class CreateAclsRequest(Request):
    API_KEY: ClassVar[int] = 30

    @message
    class Creation:
        resource_type: int
        resource_name: str
        resource_pattern_type: int = ResourcePatternType.LITERAL
        principal: str
        host: str
        operation: int
        permission_type: int

    creations: tuple[Creation, ...]


@message
class CreateAclsResponse(Response):
    """One result for each creation, in their order."""

    @message
    class Result:
        error_code: Errors = Errors.NONE
        error_message: str | None = None

    results: tuple[Result, ...] = ()


@message
class DeleteAclsRequest(Request):
    """Deletes the entries that match a filter; None matches every value."""

    API_KEY: ClassVar[int] = 31

    @message
    class Filter:
        resource_type_filter: int
        resource_name_filter: str | None = None
        pattern_type_filter: int = ResourcePatternType.LITERAL
        principal_filter: str | None = None
        host_filter: str | None = None
        operation: int
        permission_type: int

    filters: tuple[Filter, ...]


@message
class DeleteAclsResponse(Response):
    """One result for each filter, in their order, with the deleted entries."""

    @message
    class MatchingAcl:
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        resource_type: int
        resource_name: str
        pattern_type: int = ResourcePatternType.LITERAL
        principal: str
        host: str
        operation: int
        permission_type: int

    @message
    class FilterResult:
        error_code: Errors = Errors.NONE
        error_message: str | None = None
        matching_acls: tuple[DeleteAclsResponse.MatchingAcl, ...] = ()

    filter_results: tuple[FilterResult, ...] = ()
