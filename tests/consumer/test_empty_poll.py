"""An empty poll logs a hint, once for each reason. BEHAVIOUR.md, 11 and 12."""

from __future__ import annotations

import logging
import socket

import pytest

from shareq import Cluster, Producer, ShareConsumer
from shareq.client.calls import UNREACHABLE_MS
from shareq.client.patience import SILENT_MS
from shareq.consumer.share_consumer import SIGN_MS
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from tests.client.fake import Fake, batch
from tests.consumer.fake_share_group import FakeShareGroup, consumer_on
from tests.house.wrong_addresses import silent_address

MISSING = "topic 'nope' does not exist"
UNASSIGNED = "has not assigned a partition"
AT_THE_END = "share.auto.offset.reset=earliest"


@pytest.fixture
def hints(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "shareq.consumer")
    return caplog


def test_a_missing_topic_is_logged_once(hints: pytest.LogCaptureFixture) -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake)
    consumer = consumer_on(fake, "t", "nope")
    for _ in range(3):
        assert not consumer.poll(5)
    assert [message.count(MISSING) for message in hints.messages].count(1) == 1


def test_a_missing_assignment_is_logged_once(hints: pytest.LogCaptureFixture) -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake, at_once=False)
    consumer = consumer_on(fake, "t")
    for _ in range(3):
        assert not consumer.poll(0.5)
    assert len(hints.messages) == 1
    assert UNASSIGNED in hints.messages[0]


def test_a_broker_that_cannot_be_reached_is_the_reason(hints: pytest.LogCaptureFixture) -> None:
    """And not the group, of which nothing is known."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with ShareConsumer({"bootstrap.servers": address, "group.id": "g"}) as consumer:
            consumer.subscribe(["t"])
            consumer.poll(0.3)
    assert hints.messages == [
        f"poll is empty: broker at {address} cannot be reached: connection refused; the consumer tries again"
    ]


def test_a_consumer_without_any_record_logs_a_hint_about_the_start_offset(hints: pytest.LogCaptureFixture) -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake)
    consumer = consumer_on(fake, "t")
    for _ in range(3):
        assert not consumer.poll(2)
    assert len(hints.messages) == 1
    assert AT_THE_END in hints.messages[0]


def test_no_hint_after_records_or_for_polls_that_do_not_wait(hints: pytest.LogCaptureFixture) -> None:
    fake = Fake(t=[1])
    group = FakeShareGroup(fake)
    consumer = consumer_on(fake, "t")
    assert not consumer.poll(0)
    group.append("t", 0, batch(0, "a"))
    assert len(consumer.poll(5)) == 1
    assert not consumer.poll(5)
    assert hints.messages == []


def test_records_produced_before_a_new_group_cause_a_hint(hints: pytest.LogCaptureFixture) -> None:
    with Cluster(brokers=1) as cluster:
        address = cluster.bootstrap_servers
        cluster.create_topic("t", 1)
        with Producer({"bootstrap.servers": address}) as producer:
            producer.produce("t", b"early")
            producer.flush()
        with ShareConsumer({"bootstrap.servers": address, "group.id": "g"}) as consumer:
            consumer.subscribe(["t"])
            assert not consumer.poll(20)
    assert any(AT_THE_END in message for message in hints.messages)


def test_poll_without_a_reachable_broker_raises() -> None:
    fake = Fake(t=[1])
    fake.answers[MetadataRequest] = fake.answers[FindCoordinatorRequest] = lambda *_: Errors.NETWORK_EXCEPTION
    consumer = consumer_on(fake, "t")
    began_ms = fake.now_ms
    for _ in range(2):
        with pytest.raises(KafkaException, match="no broker is reachable") as raised:
            consumer.poll(60)
        assert raised.value.error == KafkaError._TRANSPORT
    assert fake.now_ms - began_ms < 15_000


@pytest.mark.parametrize("wait_s", [-1, 60])
def test_a_long_poll_logs_the_reason_before_it_ends(hints: pytest.LogCaptureFixture, wait_s: float) -> None:
    """A person who has typed a wrong address reads it at once, and not when the poll gives up."""
    fake = Fake(t=[1])
    logged_ms: list[int] = []

    def refuse(*_: object) -> Errors:
        if hints.messages and not logged_ms:
            logged_ms.append(fake.now_ms)
        return Errors.NETWORK_EXCEPTION

    fake.answers[MetadataRequest] = fake.answers[FindCoordinatorRequest] = refuse
    consumer = consumer_on(fake, "t")
    began_ms = fake.now_ms
    with pytest.raises(KafkaException, match="no broker is reachable"):
        consumer.poll(wait_s)
    assert hints.messages == ["poll is empty: connections fail; the consumer tries again"]
    assert SIGN_MS <= logged_ms[0] - began_ms < UNREACHABLE_MS


def test_no_error_if_a_broker_has_answered_before() -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake)
    consumer = consumer_on(fake, "t")
    assert not consumer.poll(1)
    for request in list(fake.answers):
        fake.answers[request] = lambda *_: Errors.NETWORK_EXCEPTION
    assert not consumer.poll(60)


def test_a_closed_port_is_an_error_of_poll() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    consumer = ShareConsumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "g"})
    consumer.subscribe(["t"])
    with pytest.raises(KafkaException, match=f"no broker is reachable.*{port}"):
        consumer.poll(60)
    consumer.close(0)


def test_a_silent_address_is_an_empty_poll_with_a_hint(hints: pytest.LogCaptureFixture) -> None:
    with silent_address() as address:
        consumer = ShareConsumer({"bootstrap.servers": address, "group.id": "g"})
        consumer.subscribe(["t"])
        assert not consumer.poll(SILENT_MS / 1000 + 0.1)
        consumer.connection.close()
    assert hints.messages == [f"poll is empty: {address} does not answer; the consumer tries until it does"]
