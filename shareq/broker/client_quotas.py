"""AlterClientQuotas and DescribeClientQuotas.

Source: KIP-546; the order of checks and the messages are those of Kafka's ClientQuotaControlManager and
ClientQuotasImage.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address

from shareq.broker.controller import Controller
from shareq.broker.placement import NO_ERROR, ErrorWithMessage
from shareq.model.client_quotas import ADDRESS_QUOTA_KEYS, CLIENT_ID, IP, QUOTA_KEYS, USER, WHOLE_NUMBERS, Entity
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    MatchType,
    QuotaEntity,
)

Op = AlterClientQuotasRequest.Op
Component = DescribeClientQuotasRequest.Component

_TYPES = frozenset({USER, CLIENT_ID, IP})
_SPECIFIED = object()
"""Matches every name."""


def alter_client_quotas(request: AlterClientQuotasRequest, controller: Controller) -> AlterClientQuotasResponse:
    """Make all changes of entries without an error; an entity that is named twice is not changed."""
    errors: dict[Entity, ErrorWithMessage] = {}
    changes: dict[Entity, dict[str, float | None]] = {}
    for entry in request.entries:
        names = tuple(sorted(((one.entity_type, one.entity_name) for one in entry.entity), key=str))
        error = _refusal_of_entity(names) if names not in errors else _invalid(f"Ignoring duplicate entity {names}")
        errors[names] = error if error[0] else _refusal_of_ops(names, entry.ops)
        if errors[names] == NO_ERROR:
            changes[names] = {op.key: None if op.remove else op.value for op in entry.ops}
        else:
            changes.pop(names, None)
    if changes and not request.validate_only:
        controller.alter_client_quotas(changes)
    made = AlterClientQuotasResponse
    entries = tuple(
        made.Entry(
            error_code=error,
            error_message=why or None,
            entity=tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in names),
        )
        for names, (error, why) in errors.items()
    )
    return made(entries=entries)


def _refusal_of_entity(names: Entity) -> ErrorWithMessage:
    if not names:
        return _invalid("Invalid empty client quota entity")
    kinds = Counter(kind for kind, _ in names)
    for kind, name in names:
        if kind not in _TYPES:
            return _invalid(f"Unhandled client quota entity type: {kind}")
        if kinds[kind] > 1:
            return _invalid(f"Invalid empty client quota entity, duplicate entity entry {kind}")
        if name == "":
            return _invalid(f"Empty {kind} not supported")
    if IP in kinds and len(kinds) > 1:
        return _invalid("Invalid empty client quota entity")
    address = dict(names).get(IP)
    return NO_ERROR if address is None else _refusal_of_address(address)


def _refusal_of_address(address: str) -> ErrorWithMessage:
    try:
        usual = str(ip_address(address))
    except ValueError:
        return _invalid(f"{address} is not a valid IP address")
    return NO_ERROR if usual == address else _invalid(f"ip {address}: must be written {usual}")


def _refusal_of_ops(names: Entity, ops: tuple[Op, ...]) -> ErrorWithMessage:
    named = Counter(op.key for op in ops)
    known = ADDRESS_QUOTA_KEYS if IP in dict(names) else QUOTA_KEYS
    for op in ops:
        if named[op.key] > 1:
            return _invalid(f"Duplicate quota key {op.key}")
        if op.key not in known:
            return _invalid(f"Invalid configuration key {op.key}: must be one of {', '.join(sorted(known))}")
        if op.remove:
            continue
        if not 0 < op.value < float("inf"):
            return _invalid(f"{op.key}={op.value}: must be above 0")
        if op.key in WHOLE_NUMBERS and not float(op.value).is_integer():
            return _invalid(f"Configuration {op.key} must be a Long value")
    return NO_ERROR


def _invalid(why: str) -> ErrorWithMessage:
    return Errors.INVALID_REQUEST, why


def describe_client_quotas(request: DescribeClientQuotasRequest, image: ClusterImage) -> DescribeClientQuotasResponse:
    """The quotas whose entities match, those of all without a filter."""
    wanted: dict[str, object] = {}
    for component in request.components:
        error, why = _refusal_of_component(component, wanted)
        if error:
            return DescribeClientQuotasResponse(error_code=error, error_message=why)
        wanted[component.entity_type] = _SPECIFIED if component.match_type == MatchType.SPECIFIED else component.match
    if IP in wanted and len(wanted) > 1:
        why = (
            "Invalid entity filter component combination. "
            "IP filter component should not be used with user or clientId filter component."
        )
        return DescribeClientQuotasResponse(error_code=Errors.INVALID_REQUEST, error_message=why)
    made = DescribeClientQuotasResponse
    entries = tuple(
        made.Entry(
            entity=tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in names),
            values=tuple(made.Value(key=key, value=value) for key, value in values.items()),
        )
        for names, values in sorted(image.client_quotas.items(), key=str)
        if _matches(names, wanted, strict=request.strict)
    )
    return made(entries=entries)


def _refusal_of_component(component: Component, known: dict[str, object]) -> ErrorWithMessage:
    kind, match = component.entity_type, component.match
    if not kind:
        return _invalid("Invalid empty entity type.")
    if kind in known:
        return _invalid(f"Entity type {kind} cannot appear more than once in the filter.")
    if kind not in _TYPES:
        return Errors.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
    if component.match_type not in set(MatchType):
        return _invalid(f"Unknown match type {component.match_type}")
    name = f"MATCH_TYPE_{MatchType(component.match_type).name}"
    if component.match_type == MatchType.EXACT and match is None:
        return _invalid(f"Request specified {name}, but set match string to null.")
    if component.match_type != MatchType.EXACT and match is not None:
        return _invalid(f"Request specified {name}, but also specified a match string.")
    return NO_ERROR


def _matches(names: Entity, wanted: dict[str, object], *, strict: bool) -> bool:
    """A strict filter without components matches none."""
    found = dict(names)
    if strict and (len(found) != len(wanted) or not wanted):
        return False
    return all(kind in found and match in (_SPECIFIED, found[kind]) for kind, match in wanted.items())
