"""Client quotas: describe and alter."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.admin.broker_routing import BrokerRouting, failure
from shareq.admin.core import Operation
from shareq.admin.results import ClientQuotas
from shareq.client.arguments import mapping, text
from shareq.model.errors import KafkaException
from shareq.model.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    MatchType,
    QuotaEntity,
)
from shareq.model.numbers import plain


def entity_of(entity: Mapping[str, str | None]) -> dict[str, str | None]:
    """Types and names; TypeError or ValueError for one that is no text."""
    return {
        text("entity type", kind): None if name is None else text(f"entity {kind}", name)
        for kind, name in mapping("entity", entity).items()
    }


def quotas_of(quotas: Mapping[str, float | None]) -> dict[str, float | None]:
    """The quotas by key; TypeError for one that is no number."""
    quotas = {key: plain(value) for key, value in mapping("quotas", quotas).items()}
    for key, value in quotas.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise TypeError(f"quotas: {key}={value!r}: must be a number, or None to remove the quota")
    return {text("quota", key): value for key, value in quotas.items()}


def describe_client_quotas(
    routing: BrokerRouting, entity: Mapping[str, str | None], *, strict: bool
) -> Operation[list[ClientQuotas]]:
    components = tuple(
        DescribeClientQuotasRequest.Component(
            entity_type=kind, match_type=MatchType.DEFAULT if name is None else MatchType.EXACT, match=name
        )
        for kind, name in entity.items()
    )
    response: DescribeClientQuotasResponse = yield from routing.any_broker(
        DescribeClientQuotasRequest(components=components, strict=strict)
    )
    error = failure(response.error_code, response.error_message)
    if error is not None:
        raise KafkaException(error)
    return [
        ClientQuotas(
            entity={one.entity_type: one.entity_name for one in entry.entity},
            quotas={one.key: one.value for one in entry.values},
        )
        for entry in response.entries or ()
    ]


def alter_client_quotas(
    routing: BrokerRouting,
    entity: Mapping[str, str | None],
    quotas: Mapping[str, float | None],
    *,
    validate_only: bool,
) -> Operation[None]:
    made = AlterClientQuotasRequest
    entry = made.Entry(
        entity=tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity.items()),
        ops=tuple(made.Op(key=key, value=float(value or 0), remove=value is None) for key, value in quotas.items()),
    )
    response: AlterClientQuotasResponse = yield from routing.any_broker(
        made(entries=(entry,), validate_only=validate_only)
    )
    for answered in response.entries:
        error = failure(answered.error_code, answered.error_message)
        if error is not None:
            raise KafkaException(error)
