"""Client quotas: DescribeClientQuotas (48) and AlterClientQuotas (49). Source: KIP-546."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response, message


class MatchType(IntEnum):
    """How a component of a filter matches the name of an entity; SPECIFIED: any name, and the default."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@message
class QuotaEntity:
    """A user, a client id or an IP address. `entity_name`: None for the default."""

    entity_type: str
    entity_name: str | None


@message
class DescribeClientQuotasRequest(Request):
    """The quotas whose entities match all components; `strict`: and have no other types."""

    API_KEY: ClassVar[int] = 48

    @message
    class Component:
        entity_type: str
        match_type: int
        match: str | None = None

    components: tuple[Component, ...]
    strict: bool = False


@message
class DescribeClientQuotasResponse(Response):
    """`entries`: None with an error."""

    @message
    class Value:
        key: str
        value: float

    @message
    class Entry:
        entity: tuple[QuotaEntity, ...]
        values: tuple[DescribeClientQuotasResponse.Value, ...]

    error_code: Errors = Errors.NONE
    error_message: str | None = None
    entries: tuple[Entry, ...] | None = None


@message
class AlterClientQuotasRequest(Request):
    """With `remove` the value is ignored."""

    API_KEY: ClassVar[int] = 49

    @message
    class Op:
        key: str
        value: float
        remove: bool

    @message
    class Entry:
        entity: tuple[QuotaEntity, ...]
        ops: tuple[AlterClientQuotasRequest.Op, ...]

    entries: tuple[Entry, ...]
    validate_only: bool = False


@message
class AlterClientQuotasResponse(Response):
    @message
    class Entry:
        error_code: Errors
        error_message: str | None
        entity: tuple[QuotaEntity, ...]

    entries: tuple[Entry, ...] = ()
