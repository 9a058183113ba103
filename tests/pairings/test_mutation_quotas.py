"""The quota of changes of topics (KIP-599), with the same requests on shareq and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.client_quotas import CONTROLLER_MUTATION_RATE
from shareq.model.errors import Errors
from shareq.model.messages.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest, MatchType, QuotaEntity
from shareq.model.messages.topics import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest
from tests.kafka.fixtures import Reachable
from tests.polling import eventually
from tests.wire.raw import Raw

RATE = 0.5
"""Partitions a second; eleven times as many at once."""


def limit(raw: Raw, client_id: str) -> None:
    made, filtered = AlterClientQuotasRequest, DescribeClientQuotasRequest
    whose = (QuotaEntity(entity_type="client-id", entity_name=client_id),)
    ops = (made.Op(key=CONTROLLER_MUTATION_RATE, value=RATE, remove=False),)
    (answer,) = raw.ask(made(entries=(made.Entry(entity=whose, ops=ops),), validate_only=False)).entries
    assert answer.error_code is Errors.NONE
    component = filtered.Component(entity_type="client-id", match_type=MatchType.EXACT, match=client_id)
    eventually(lambda: len(raw.ask(filtered(components=(component,), strict=True)).entries), 1)


def test_changes_above_the_quota(broker: Reachable, fresh: Callable[[str], str]) -> None:
    """Each request has a connection of its own: one that is throttled is not read."""
    port, app = int(broker.bootstrap_servers.rpartition(":")[2]), fresh("app")
    large, small, early = fresh("large"), fresh("small"), fresh("early")

    def create(name: str, partitions: int, version: int = 7) -> tuple[str, int]:
        wanted = (CreateTopicsRequest.Topic(name=name, num_partitions=partitions, replication_factor=1),)
        return answered(CreateTopicsRequest(topics=wanted), version, lambda response: response.topics)

    def answered(request: Any, version: int, results: Callable[[Any], Any]) -> tuple[str, int]:
        with Raw(port, client_id=app) as raw:
            response = raw.ask(request, version)
        (result,) = results(response)
        return result.error_code.name, response.throttle_time_ms

    with Raw(port) as free:
        limit(free, app)
        assert create(large, 8) == ("NONE", 0)
        eventually(lambda: create(large, 8)[0], "TOPIC_ALREADY_EXISTS")
        error, throttle_ms = create(small, 1)
        assert error == "THROTTLING_QUOTA_EXCEEDED"
        assert 0 < throttle_ms <= 5000
        grown = CreatePartitionsRequest(topics=(CreatePartitionsRequest.Topic(name=large, count=9),))
        assert answered(grown, 3, lambda response: response.results)[0] == "THROTTLING_QUOTA_EXCEEDED"
        gone = DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name=large),))
        assert answered(gone, 6, lambda response: response.responses)[0] == "THROTTLING_QUOTA_EXCEEDED"
        error, waits_ms = create(early, 4, 5)
        assert error == "NONE"
        assert waits_ms > throttle_ms
        for name in (large, early):
            free.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name=name),)))
