"""AlterClientQuotas and DescribeClientQuotas, with Kafka's errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Cluster
from shareq.broker.client_quotas import alter_client_quotas, describe_client_quotas
from shareq.model.client_quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    entity,
)
from shareq.model.errors import Errors
from shareq.model.events import ConfigChanged
from shareq.model.messages.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest, MatchType, QuotaEntity

Ops = tuple[tuple[str, float | None], ...]
Names = tuple[tuple[str, str | None], ...]
ALICE = (("user", "alice"),)
ALICES_APP = (("client-id", "app"), ("user", "alice"))
EVERYONE = (("user", None),)
APP = (("client-id", "app"),)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as made:
        yield made


def alter(cluster: Cluster, *entries: tuple[Names, Ops], validate_only: bool = False) -> list[tuple[Errors, str]]:
    made = AlterClientQuotasRequest
    request = made(
        entries=tuple(
            made.Entry(
                entity=tuple(QuotaEntity(entity_type=kind, entity_name=name) for kind, name in names),
                ops=tuple(made.Op(key=key, value=value or 0, remove=value is None) for key, value in ops),
            )
            for names, ops in entries
        ),
        validate_only=validate_only,
    )
    answered = alter_client_quotas(request, cluster._runtime.controller).entries
    return [(entry.error_code, entry.error_message or "") for entry in answered]


def describe(cluster: Cluster, *components: tuple[str, MatchType, str | None], strict: bool = False) -> object:
    made = DescribeClientQuotasRequest
    parts = tuple(made.Component(entity_type=kind, match_type=how, match=match) for kind, how, match in components)
    response = describe_client_quotas(made(components=parts, strict=strict), cluster.image)
    if response.error_code:
        return response.error_code, response.error_message
    assert response.entries is not None
    return {
        tuple((one.entity_type, one.entity_name) for one in entry.entity): {v.key: v.value for v in entry.values}
        for entry in response.entries
    }


def test_quotas_are_set_changed_and_removed(cluster: Cluster) -> None:
    assert alter(cluster, (ALICE, ((PRODUCER_BYTE_RATE, 1000), (REQUEST_PERCENTAGE, 12.5)))) == [(Errors.NONE, "")]
    alter(cluster, (ALICE, ((PRODUCER_BYTE_RATE, None), (CONSUMER_BYTE_RATE, 500))))
    assert describe(cluster) == {ALICE: {CONSUMER_BYTE_RATE: 500, REQUEST_PERCENTAGE: 12.5}}
    assert cluster.image.client_quotas == {entity(user="alice"): {CONSUMER_BYTE_RATE: 500, REQUEST_PERCENTAGE: 12.5}}
    changed = [entry.event for entry in cluster.journal.select(ConfigChanged)]
    assert changed[:2] == [
        ConfigChanged("quota:user=alice", PRODUCER_BYTE_RATE, "1000"),
        ConfigChanged("quota:user=alice", REQUEST_PERCENTAGE, "12.5"),
    ]
    assert ConfigChanged("quota:user=alice", PRODUCER_BYTE_RATE, None) in changed


def test_validation_alone_changes_nothing(cluster: Cluster) -> None:
    assert alter(cluster, (ALICE, ((PRODUCER_BYTE_RATE, 1000),)), validate_only=True) == [(Errors.NONE, "")]
    assert describe(cluster) == {}


def test_filters(cluster: Cluster) -> None:
    one = ((PRODUCER_BYTE_RATE, 1.0),)
    alter(cluster, *((names, one) for names in (ALICE, ALICES_APP, EVERYONE, APP)))
    exact, default, any_name = MatchType
    assert describe(cluster) == {names: dict(one) for names in (ALICE, ALICES_APP, EVERYONE, APP)}
    assert set(describe(cluster, ("user", exact, "alice"))) == {ALICE, ALICES_APP}  # type: ignore[call-overload]
    assert describe(cluster, ("user", exact, "alice"), strict=True) == {ALICE: dict(one)}
    assert describe(cluster, ("user", default, None)) == {EVERYONE: dict(one)}
    assert describe(cluster, ("user", any_name, None), strict=True) == {ALICE: dict(one), EVERYONE: dict(one)}
    assert describe(cluster, ("user", any_name, None), ("client-id", exact, "app")) == {ALICES_APP: dict(one)}
    assert describe(cluster, strict=True) == {}


@pytest.mark.parametrize(
    ("names", "ops", "why"),
    [
        ((), (), "Invalid empty client quota entity"),
        ((("topic", "t"),), (), "Unhandled client quota entity type: topic"),
        ((("user", ""),), (), "Empty user not supported"),
        ((("user", "a"), ("user", None)), (), "duplicate entity entry user"),
        ((("ip", "::1"), ("user", "a")), (), "Invalid empty client quota entity"),
        ((("ip", "localhost"),), (), "localhost is not a valid IP address"),
        ((("ip", "0:0::1"),), (), "ip 0:0::1: must be written ::1"),
        ((("ip", "::1"),), ((PRODUCER_BYTE_RATE, 1.0),), "must be one of connection_creation_rate"),
        ((("ip", None),), ((CONNECTION_CREATION_RATE, 0.5),), "connection_creation_rate must be a Long value"),
        (ALICE, ((CONNECTION_CREATION_RATE, 1.0),), "Invalid configuration key connection_creation_rate"),
        (ALICE, (("bytes", 1.0),), "Invalid configuration key bytes"),
        (ALICE, ((PRODUCER_BYTE_RATE, 1.0), (PRODUCER_BYTE_RATE, None)), "Duplicate quota key producer_byte_rate"),
        (ALICE, ((PRODUCER_BYTE_RATE, 1.5),), "Configuration producer_byte_rate must be a Long value"),
        (ALICE, ((REQUEST_PERCENTAGE, 0.0),), "request_percentage=0.*: must be above 0"),
        (ALICE, ((REQUEST_PERCENTAGE, float("nan")),), "request_percentage=nan: must be above 0"),
        (ALICE, ((PRODUCER_BYTE_RATE, float("inf")),), "producer_byte_rate=inf: must be above 0"),
    ],
)
def test_what_makes_no_sense_is_refused(cluster: Cluster, names: Names, ops: Ops, why: str) -> None:
    ((error, message),) = alter(cluster, (names, ops))
    assert error is Errors.INVALID_REQUEST
    assert why.replace(".*", "") in message.replace("0.0", "0")
    assert describe(cluster) == {}


def test_an_entity_that_is_named_twice_is_not_changed(cluster: Cluster) -> None:
    ops: Ops = ((PRODUCER_BYTE_RATE, 1.0),)
    ((error, message),) = alter(cluster, (ALICE, ops), (ALICE, ops))
    assert (error, "duplicate entity" in message) == (Errors.INVALID_REQUEST, True)
    assert describe(cluster) == {}


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ((("", MatchType.EXACT, "a"),), Errors.INVALID_REQUEST),
        ((("topic", MatchType.EXACT, "a"),), Errors.UNSUPPORTED_VERSION),
        ((("user", MatchType.EXACT, None),), Errors.INVALID_REQUEST),
        ((("user", MatchType.DEFAULT, "a"),), Errors.INVALID_REQUEST),
        ((("user", 3, None),), Errors.INVALID_REQUEST),
        ((("user", MatchType.EXACT, "a"), ("user", MatchType.EXACT, "b")), Errors.INVALID_REQUEST),
        ((("user", MatchType.EXACT, "a"), ("ip", MatchType.EXACT, "b")), Errors.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(cluster: Cluster, components: tuple, error: Errors) -> None:  # type: ignore[type-arg]
    found = describe(cluster, *components)
    assert isinstance(found, tuple)
    assert found[0] is error
