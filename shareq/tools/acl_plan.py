"""Which access control lists the options of `shareq acls` describe.

Patterns and entries are written as Java writes them. Source: Kafka's AclCommand, AclEntry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import click

from shareq.model.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from shareq.tools.options import flag, texts


class Pattern(NamedTuple):
    """Resources of one type, by name."""

    restype: ResourceType
    name: str
    type: ResourcePatternType

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.restype.name}, name={self.name}, patternType={self.type.name})"


class Entry(NamedTuple):
    """What is allowed or denied to whom."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermissionType

    def __str__(self) -> str:
        operation, permission = self.operation.name, self.permission.name
        return f"(principal={self.principal}, host={self.host}, operation={operation}, permissionType={permission})"


Entries = Mapping[Pattern, Sequence[Entry]]

CLUSTER = Pattern(ResourceType.CLUSTER, CLUSTER_NAME, ResourcePatternType.LITERAL)

_NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
"""The options that name a resource."""

_BY_NAME = {each.name.replace("_", ""): each for each in AclOperation}

_ROLES = {
    "producer": {
        ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
        ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
    },
    "consumer": {
        ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
        ResourceType.GROUP: (AclOperation.READ,),
    },
}
"""The operations that a role needs, by type of resource."""


def binding_of(pattern: Pattern, entry: Entry) -> AclBinding:
    """The access control list of an entry."""
    return AclBinding(pattern.restype, pattern.name, pattern.type, *entry)


def parts_of(binding: AclBinding) -> tuple[Pattern, Entry]:
    """The inverse of `binding_of`."""
    return Pattern(*binding[:3]), Entry(*binding[3:])


def filter_of(pattern: Pattern, entry: Entry | None = None) -> AclBindingFilter:
    """Matches an entry of a pattern, or all of its entries."""
    if entry is None:
        return AclBindingFilter(*pattern)
    return AclBindingFilter(pattern.restype, pattern.name, pattern.type, *entry)


def resources(given: Mapping[str, object], pattern_type: ResourcePatternType) -> list[Pattern]:
    """The resources that the options name, each once. The cluster has a literal pattern only, as in Kafka's tool."""
    found = [
        Pattern(restype, name.strip(), pattern_type)
        for option, restype in _NAMED.items()
        for name in texts(given[option])
    ]
    if (given["cluster"] or given["idempotent"]) and pattern_type is ResourcePatternType.LITERAL:
        found.append(CLUSTER)
    return list(dict.fromkeys(found))


def of_options(given: Mapping[str, object], found: Iterable[Pattern]) -> Entries:
    """The entries of each resource: those of the options, or those of the roles --producer and --consumer. UsageError:
    an operation does not exist for a resource."""
    if not given["producer"] and not given["consumer"]:
        operations = [_operation(name) for name in texts(given["operation"])] or [AclOperation.ALL]
        entries = _entries(given, operations)
        for pattern in found:
            _check(pattern.restype, operations)
        return dict.fromkeys(found, entries)
    needed: dict[Pattern, list[AclOperation]] = {}
    for role, operations_of in _ROLES.items():
        for pattern in found if given[role] else ():
            needed.setdefault(pattern, []).extend(operations_of.get(pattern.restype, ()))
    if given["idempotent"]:
        needed[CLUSTER] = [AclOperation.IDEMPOTENT_WRITE]
    return {pattern: _entries(given, operations) for pattern, operations in needed.items() if operations}


def _entries(given: Mapping[str, object], operations: Iterable[AclOperation]) -> list[Entry]:
    """Each operation for each principal from each host, once."""
    found = []
    for verb, permission in (("allow", AclPermissionType.ALLOW), ("deny", AclPermissionType.DENY)):
        principals = map(principal, texts(given[f"{verb}_principal"]))
        hosts = [host.strip() for host in texts(given[f"{verb}_host"])] or [WILDCARD]
        found += [Entry(*parts, permission) for parts in product(principals, hosts, operations)]
    return list(dict.fromkeys(found))


def principal(text: str) -> str:
    """UsageError for a text that is not type:name."""
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise click.UsageError(f"{text!r} is not a principal, which has a type and a name, such as User:alice")
    return text.strip()


def _operation(text: str) -> AclOperation:
    """The operation of this name, in any case, with underscores or without."""
    found = _BY_NAME.get(text.strip().upper().replace("_", ""))
    if found is None or found <= AclOperation.ANY:
        known = ", ".join(each.name for each in AclOperation if each > AclOperation.ANY)
        raise click.UsageError(f"{flag('operation')} {text}: is not an operation: must be one of {known}")
    return found


def _check(restype: ResourceType, operations: Iterable[AclOperation]) -> None:
    supported = (*OPERATIONS[restype], AclOperation.ALL)
    for operation in operations:
        if operation not in supported:
            names = ", ".join(each.name for each in supported)
            raise click.UsageError(f"{operation.name} is not an operation on a {restype.name}, which has {names}")
