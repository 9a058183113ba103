"""Access control lists as data: the operations on resources that principals are allowed or denied.

A binding names a principal and a host, an operation, and a resource by its name or by a prefix of it; a filter matches
bindings. Names are those of confluent-kafka, numbers those of the protocol. `shareq.model.authorizer` decides by them.
Source: KIP-11, KIP-290 (prefixes); Kafka's AclBinding, ResourcePatternFilter.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
"""As the name of a literal pattern: every resource. As a host: every host."""

ANY_USER = "User:*"
"""The principal of bindings for every user."""

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""


class ResourceType(IntEnum):
    """What an access control list is about; ANY matches all in a filter."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
    BROKER = 4
    """confluent-kafka's name of CLUSTER."""


class ResourcePatternType(IntEnum):
    """LITERAL and PREFIXED are those of bindings. In filters MATCH means all bindings that apply to a name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What may be done. ALL means every operation in a binding, ANY matches all in a filter."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(IntEnum):
    """A deny is stronger than any allow; ANY matches both in a filter."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


OPERATIONS: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations on a resource. Those on topics, groups and the cluster are what descriptions report as authorized
operations."""


def operation_bits(operations: tuple[AclOperation, ...]) -> int:
    """Authorized operations as the protocol has them: bit `1 << code` for each."""
    return sum(1 << operation for operation in operations)


class AclBinding(NamedTuple):
    """One entry: `principal` ("User:alice", "User:*") from `host` (an address, or "*") is allowed or denied `operation`
    on the resources that the pattern covers: the one of this name (LITERAL; "*": all), or those whose names begin with
    it (PREFIXED)."""

    restype: ResourceType
    name: str
    resource_pattern_type: ResourcePatternType
    principal: str
    host: str
    operation: AclOperation
    permission_type: AclPermissionType

    def __str__(self) -> str:
        """The binding as a sentence: "User:alice from 10.0.0.1 may READ TOPIC orders"; a prefix ends with "…"."""
        where = "" if self.host == WILDCARD else f" from {self.host}"
        may = "may" if self.permission_type is AclPermissionType.ALLOW else "may not"
        more = "…" if self.resource_pattern_type is ResourcePatternType.PREFIXED else ""
        return f"{self.principal}{where} {may} {self.operation.name} {self.restype.name} {self.name}{more}"


class AclBindingFilter(NamedTuple):
    """Matches bindings. None, and ANY, match every value; with the pattern type MATCH the name is that of a resource,
    and every binding that applies to it matches."""

    restype: ResourceType = ResourceType.ANY
    name: str | None = None
    resource_pattern_type: ResourcePatternType = ResourcePatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY

    def matches(self, binding: AclBinding) -> bool:
        """True if all fields match."""
        return (
            self.restype in (ResourceType.ANY, binding.restype)
            and self._matches_name(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (AclOperation.ANY, binding.operation)
            and self.permission_type in (AclPermissionType.ANY, binding.permission_type)
        )

    def _matches_name(self, binding: AclBinding) -> bool:
        kind, name = self.resource_pattern_type, self.name
        if kind not in (ResourcePatternType.ANY, ResourcePatternType.MATCH, binding.resource_pattern_type):
            return False
        if name is None or name == binding.name:
            return True
        if kind is not ResourcePatternType.MATCH:
            return False
        if binding.resource_pattern_type is ResourcePatternType.PREFIXED:
            return name.startswith(binding.name)
        return binding.name == WILDCARD
