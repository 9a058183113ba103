"""Client quotas as data: how much users, client ids and addresses may use, and which quota counts for a client.

Source: KIP-13, KIP-124 (request_percentage), KIP-546, KIP-599 (controller_mutation_rate), KIP-612
(connection_creation_rate); Kafka's QuotaConfig and DefaultQuotaCallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

WHOLE_NUMBERS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONNECTION_CREATION_RATE})
"""The quotas in bytes and connections a second. The others, in percent of the time of one processor and in partitions
a second, may have fractions."""

QUOTA_KEYS: Final = frozenset({PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE})
"""The quotas of users and client ids."""

ADDRESS_QUOTA_KEYS: Final = frozenset({CONNECTION_CREATION_RATE})
"""The quotas of addresses."""

Entity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: types and names, sorted by type. The name None stands for all without a quota of their own."""

Quotas = Mapping[Entity, Mapping[str, float]]
"""The quotas by entity and key."""

QuotaChanges = Mapping[Entity, Mapping[str, float | None]]
"""Quotas to set, by entity and key; None removes one."""


def entity(**names: str | None) -> Entity:
    """`entity(user="alice", client_id=None)`."""
    return tuple(sorted((kind.replace("_", "-"), name) for kind, name in names.items()))


def altered_quotas(quotas: Quotas, changes: QuotaChanges) -> Quotas:
    """The quotas after changes; an entity without a quota is not kept."""
    altered = {one: dict(values) for one, values in quotas.items()}
    for one, values in changes.items():
        merged = {**altered.get(one, {}), **values}
        altered[one] = {key: value for key, value in sorted(merged.items()) if value is not None}
    return MappingProxyType({one: MappingProxyType(values) for one, values in altered.items() if values})


def quota_of_address(quotas: Quotas, address: str) -> float | None:
    """How many connections a second an address may open: its own quota, else the default of all addresses."""
    for names in (entity(ip=address), entity(ip=None)):
        limit = quotas.get(names, {}).get(CONNECTION_CREATION_RATE)
        if limit is not None:
            return limit
    return None


class Quota(NamedTuple):
    """A limit, and the user, the client id, or both, that share it; empty for the other."""

    limit: float
    user: str
    client_id: str


def quota_of(quotas: Quotas, key: str, user: str, client_id: str) -> Quota | None:
    """The quota of a client: that of the most exact entity. A quota of a user is shared by the clients of that user,
    one of a client id by all users; a default is for each of them alone."""
    for names in _entities(user, client_id):
        limit = quotas.get(names, {}).get(key)
        if limit is not None:
            kinds = {kind for kind, _ in names}
            return Quota(limit, user if USER in kinds else "", client_id if CLIENT_ID in kinds else "")
    return None


@lru_cache(maxsize=1024)
def _entities(user: str, client_id: str) -> tuple[Entity, ...]:
    """Those that a client belongs to, in Kafka's order."""
    return (
        entity(user=user, client_id=client_id),
        entity(user=user, client_id=None),
        entity(user=user),
        entity(user=None, client_id=client_id),
        entity(user=None, client_id=None),
        entity(user=None),
        entity(client_id=client_id),
        entity(client_id=None),
    )
