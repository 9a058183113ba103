"""Records that fail without a callback are logged. BEHAVIOUR.md, 9."""

from __future__ import annotations

import logging

import pytest

from shareq import Cluster, Producer
from shareq.model.errors import Errors
from shareq.model.messages.cluster import MetadataRequest
from tests.client.fake import Fake


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "shareq.producer")
    return caplog


def test_flush_logs_the_missing_topic(log: pytest.LogCaptureFixture) -> None:
    with Cluster(brokers=1) as cluster, Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for _ in range(3):
            producer.produce("nope", b"x")
        assert producer.flush(1) == 3
        assert producer.flush(1) == 3
        assert [m for m in log.messages if "topic 'nope' does not exist" in m] == log.messages[:1]
        assert producer.flush(60) == 0
    assert "3 records for topic 'nope' were not delivered: " in log.messages[1]
    assert len(log.messages) == 2


def test_flush_logs_the_missing_partition(log: pytest.LogCaptureFixture) -> None:
    with Cluster(brokers=1) as cluster, Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        cluster.create_topic("t", 2)
        producer.produce("t", b"x", partition=7)
        assert producer.flush(60) == 0
    (message,) = log.messages
    assert "1 records for topic 't' were not delivered: topic 't' has no partition 7" in message


def test_records_with_a_callback_and_purged_ones_are_not_logged(log: pytest.LogCaptureFixture) -> None:
    reported: list[object] = []
    with Cluster(brokers=1) as cluster, Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        cluster.create_topic("t", 2)
        producer.produce("t", b"x", partition=7, on_delivery=lambda error, _: reported.append(error))
        assert producer.flush(60) == 0
        producer.produce("t", b"x")
        producer.purge()
        producer.poll(0)
    assert len(reported) == 1
    assert log.messages == []


def test_flush_without_a_reachable_broker_is_logged(log: pytest.LogCaptureFixture) -> None:
    """Once when the first connection fails, since the address may be wrong; then whenever they have failed for long."""
    fake = Fake(t=[1])
    fake.answers[MetadataRequest] = lambda *_: Errors.NETWORK_EXCEPTION
    producer = Producer({"bootstrap.servers": fake.address})
    producer.produce("t", b"x")
    assert producer.flush(1) == 1
    assert log.messages == ["records wait: connections fail"]
    assert producer.flush(6) == 1
    assert log.messages.count("records wait: connections fail") == 1
    assert [m for m in log.messages if m.startswith("records wait: no broker is reachable")]
