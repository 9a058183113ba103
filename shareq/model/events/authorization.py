"""Events of the authorizer."""

from __future__ import annotations

from typing import NamedTuple, Self

from shareq.model.acls import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType


class AclChanged(NamedTuple):
    """An access control list was `added` or removed. `operation`, `resource_type` and `pattern_type` are names, such as
    "READ", "TOPIC" and "PREFIXED"; `allows` is False for a deny."""

    principal: str
    host: str
    operation: str
    resource_type: str
    name: str
    pattern_type: str
    allows: bool
    added: bool

    @classmethod
    def of(cls, binding: AclBinding, *, added: bool) -> Self:
        return cls(
            binding.principal,
            binding.host,
            binding.operation.name,
            binding.restype.name,
            binding.name,
            binding.resource_pattern_type.name,
            binding.permission_type is AclPermissionType.ALLOW,
            added,
        )

    @property
    def binding(self) -> AclBinding:
        return AclBinding(
            ResourceType[self.resource_type],
            self.name,
            ResourcePatternType[self.pattern_type],
            self.principal,
            self.host,
            AclOperation[self.operation],
            AclPermissionType.ALLOW if self.allows else AclPermissionType.DENY,
        )


class AuthorizationDenied(NamedTuple):
    """A broker refused an operation on a resource. `api` without "Request"; `host` is the client's address."""

    principal: str
    host: str
    operation: str
    resource_type: str
    name: str
    api: str
