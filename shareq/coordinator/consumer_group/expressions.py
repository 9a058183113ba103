"""Subscriptions by regular expression, resolved against the topics that exist.

Source: KIP-848, "Regex based subscription".
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from shareq.coordinator.consumer_group.records import RegularExpression
from shareq.coordinator.expressions import ExpressionError, compile_expression
from shareq.model.acls import AclOperation, ResourceType
from shareq.model.actor import ClientContext
from shareq.model.image import ClusterImage

BATCH_INTERVAL_MS = 10_000
"""The minimum interval between two resolutions of a group's expressions."""


def resolve(regex: str, image: ClusterImage, now_ms: int, client: ClientContext) -> RegularExpression:
    """The topics whose whole name matches, and which the client may describe: a member of a group shares its view."""
    found = _matching(regex, image.topics)
    if image.authorizer is not None:
        host = client.client_host.removeprefix("/")
        may = partial(image.authorizer.allows, client.principal, host, AclOperation.DESCRIBE, ResourceType.TOPIC)
        found = [name for name in found if may(name)]
    return RegularExpression(tuple(sorted(found)), image.version, now_ms)


def has_new_match(regex: str, known: Iterable[str], names: Iterable[str]) -> bool:
    """True if the expression matches one of `names` that is not in `known`."""
    return any(name not in known for name in _matching(regex, names))


def _matching(regex: str, names: Iterable[str]) -> list[str]:
    """The names that match. An expression that cannot be compiled, as one replayed from a log, matches nothing."""
    try:
        matches = compile_expression(regex)
    except ExpressionError:
        return []
    return [name for name in names if matches(name)]
