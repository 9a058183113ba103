"""Decides what a principal may do, as Kafka's StandardAuthorizer does.

A super user may do everything. Else a matching deny decides, then a matching allow; without either the operation is
denied, unless no entry covers the resource at all and `allow.everyone.if.no.acl.found` is set. READ, WRITE, DELETE and
ALTER, when allowed, imply DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS; a deny implies nothing.

Entries are indexed by resource, so that a decision looks at the entries of one resource: those of its name, of "*", and
of each prefix of the name that some entry has. Decisions are cached. Source: Kafka's StandardAuthorizerData and
Authorizer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from shareq.model.acls import (
    ANY_USER,
    OPERATIONS,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
    operation_bits,
)

DECISIONS = 10_000
"""The most decisions in the cache: clients choose the names in their requests."""

_PROBE = "hardcode"
"""The name with which Kafka asks, in `allows_on_any`, whether an authorizer allows everything."""

_IMPLIED_BY = {
    AclOperation.DESCRIBE: frozenset(
        (AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset((AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)),
}


class _Pattern(NamedTuple):
    restype: ResourceType
    type: ResourcePatternType
    name: str


Index = Mapping[_Pattern, frozenset[AclBinding]]


class Acls:
    """All bindings of a cluster, indexed by resource pattern. Immutable: a change makes a new one."""

    __slots__ = ("_index", "_lengths")

    def __init__(self, index: Index | None = None) -> None:
        self._index: Index = index or {}
        lengths: dict[ResourceType, set[int]] = {}
        for pattern in self._index:
            if pattern.type is ResourcePatternType.PREFIXED:
                lengths.setdefault(pattern.restype, set()).add(len(pattern.name))
        self._lengths = {kind: sorted(found) for kind, found in lengths.items()}

    def __iter__(self) -> Iterator[AclBinding]:
        for bindings in self._index.values():
            yield from bindings

    def __len__(self) -> int:
        return sum(map(len, self._index.values()))

    def __contains__(self, binding: AclBinding) -> bool:
        return binding in self._index.get(_pattern(binding), ())

    def changed(self, *, added: Iterable[AclBinding] = (), removed: Iterable[AclBinding] = ()) -> Acls:
        """These bindings with the given changes; the entries of other resources are shared with the new one."""
        index = dict(self._index)
        for binding in removed:
            pattern = _pattern(binding)
            left = index.pop(pattern, frozenset()) - {binding}
            if left:
                index[pattern] = left
        for binding in added:
            pattern = _pattern(binding)
            index[pattern] = index.get(pattern, frozenset()) | {binding}
        return Acls(index)

    def covering(self, restype: ResourceType, name: str) -> Iterator[AclBinding]:
        """The bindings whose pattern covers a resource."""
        index = self._index
        yield from index.get(_Pattern(restype, ResourcePatternType.LITERAL, name), ())
        if name != WILDCARD:
            yield from index.get(_Pattern(restype, ResourcePatternType.LITERAL, WILDCARD), ())
        for length in self._lengths.get(restype, ()):
            if length > len(name):
                break
            yield from index.get(_Pattern(restype, ResourcePatternType.PREFIXED, name[:length]), ())


def _pattern(binding: AclBinding) -> _Pattern:
    return _Pattern(binding.restype, binding.resource_pattern_type, binding.name)


class Authorizer:
    """The decisions of a cluster at one version of its bindings.

    `super_users`: principals that may do everything. `allow_if_uncovered`: the decision about a resource that no
    binding covers.
    """

    __slots__ = ("_allow_if_uncovered", "_decided", "_super_users", "acls")

    def __init__(self, acls: Acls, *, super_users: Collection[str] = (), allow_if_uncovered: bool = False) -> None:
        self.acls = acls
        self._super_users = frozenset(super_users)
        self._allow_if_uncovered = allow_if_uncovered
        self._decided: Callable[[str, str, AclOperation, ResourceType, str], bool] = lru_cache(DECISIONS)(self._decide)

    def with_acls(self, acls: Acls) -> Authorizer:
        """The same with other bindings."""
        return Authorizer(acls, super_users=self._super_users, allow_if_uncovered=self._allow_if_uncovered)

    def allows(self, principal: str, host: str, operation: AclOperation, restype: ResourceType, name: str) -> bool:
        """True if a principal at a host (an address) may do an operation on a resource."""
        return principal in self._super_users or self._decided(principal, host, operation, restype, name)

    def allows_on_any(self, principal: str, host: str, operation: AclOperation, restype: ResourceType) -> bool:
        """True if there is a resource of this type on which the operation is allowed: an allow that no deny covers.

        As in Kafka, no operation implies another one here.
        """
        if self.allows(principal, host, operation, restype, _PROBE):
            return True
        of_type = (binding for binding in self.acls if binding.restype is restype)
        relevant = [
            binding
            for binding in of_type
            if _is_about(binding, principal, host) and binding.operation in (operation, AclOperation.ALL)
        ]
        denied = {_pattern(b) for b in relevant if b.permission_type is AclPermissionType.DENY}
        allowed = [_pattern(b) for b in relevant if b.permission_type is AclPermissionType.ALLOW]
        if _Pattern(restype, ResourcePatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(not _is_dominated(pattern, denied) for pattern in allowed)

    def authorized_operations(self, principal: str, host: str, restype: ResourceType, name: str) -> int:
        """The allowed operations on a resource, as bits."""
        return operation_bits(
            tuple(each for each in OPERATIONS[restype] if self.allows(principal, host, each, restype, name))
        )

    def _decide(self, principal: str, host: str, operation: AclOperation, restype: ResourceType, name: str) -> bool:
        implied_by = _IMPLIED_BY.get(operation, frozenset((operation,)))
        covered = allowed = False
        for binding in self.acls.covering(restype, name):
            covered = True
            if not _is_about(binding, principal, host):
                continue
            if binding.permission_type is AclPermissionType.DENY:
                if binding.operation in (operation, AclOperation.ALL):
                    return False
            elif binding.operation is AclOperation.ALL or binding.operation in implied_by:
                allowed = True
        return allowed if covered else self._allow_if_uncovered


def _is_about(binding: AclBinding, principal: str, host: str) -> bool:
    return binding.principal in (principal, ANY_USER) and binding.host in (host, WILDCARD)


def _is_dominated(allowed: _Pattern, denied: Collection[_Pattern]) -> bool:
    """True if a deny covers all that the pattern of an allow covers. A literal "*" is dominated only by a literal
    "*"."""
    restype, kind, name = allowed
    if kind is ResourcePatternType.LITERAL and name == WILDCARD:
        return False
    if kind is ResourcePatternType.LITERAL and allowed in denied:
        return True
    return any(
        _Pattern(restype, ResourcePatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1)
    )
