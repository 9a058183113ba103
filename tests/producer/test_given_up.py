"""Records that time out: when, with which error, and batches that arrive after that. BEHAVIOUR.md, 7, 11 and 13."""

from __future__ import annotations

from typing import Any

import pytest

from shareq import Cluster, Producer
from shareq.broker.network import Network
from shareq.log.batches import parse_batch
from shareq.log.records import decode
from shareq.model.errors import Errors, KafkaError
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.transactions import InitProducerIdRequest
from shareq.model.states import IsolationLevel
from shareq.producer.transaction import LAST_EPOCH
from tests.client.fake import Fake, Later
from tests.producer.stage import FakeLeader, Reports, places, setup, with_coordinator

TIMED_OUT = KafkaError._MSG_TIMED_OUT


# ---- timeouts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout_ms", [3000, 300_000])
@pytest.mark.parametrize("idempotence", [False, True], ids=["plain", "idempotent"])
def test_records_time_out_without_a_reachable_broker(timeout_ms: int, idempotence: bool) -> None:
    fake, _, _, producer = with_coordinator(enable_idempotence=idempotence, message_timeout_ms=timeout_ms)
    fake.answers[MetadataRequest] = lambda *_: Errors.NETWORK_EXCEPTION
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    assert producer.flush() == 0
    assert (reports, fake.now_ms - 1_000_000) == ([(TIMED_OUT, -1, -1001)], timeout_ms)


def test_records_time_out_without_a_producer_id() -> None:
    fake, _, coordinator, producer = with_coordinator(enable_idempotence=True, message_timeout_ms=3000)
    coordinator.errors = [Errors.COORDINATOR_LOAD_IN_PROGRESS] * 1000
    reports = Reports()
    producer.produce("t", "a", partition=0, on_delivery=reports)
    assert producer.flush() == 0
    assert (reports, fake.now_ms - 1_000_000) == ([(TIMED_OUT, 0, -1001)], 3000)


def test_a_request_times_out_with_its_records() -> None:
    fake, leader, producer = setup(message_timeout_ms=3000)
    fake.answers[ProduceRequest] = lambda *_: None
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    assert producer.flush() == 0
    assert (reports, fake.now_ms - 1_000_000) == ([(TIMED_OUT, 0, -1001)], 3000)
    late = fake.pending(ProduceRequest)
    fake.reply(late.call_id, leader.produce(fake, 1, late.request))
    fake.run()
    assert reports == [(TIMED_OUT, 0, -1001)]


def test_a_topic_is_unknown_only_after_a_response_of_a_broker() -> None:
    fake = Fake()
    FakeLeader(fake)
    metadata = fake.answers[MetadataRequest]
    fake.answers[MetadataRequest] = lambda *_: Errors.NETWORK_EXCEPTION
    producer = Producer({"bootstrap.servers": fake.address})
    reports = Reports()
    producer.produce("typo", "a", on_delivery=reports)
    assert producer.flush(60) == 1
    fake.answers[MetadataRequest] = metadata
    assert producer.flush() == 0
    assert reports == [(KafkaError._UNKNOWN_TOPIC, -1, -1001)]
    assert 1_090_000 <= fake.now_ms < 1_092_000


def test_close_reports_dropped_records() -> None:
    fake, _, producer = setup()
    fake.answers[ProduceRequest] = lambda *_: None
    reports = Reports()
    producer.produce("t", "sent", on_delivery=reports)
    fake.run(timeout_ms=10)
    producer.produce("t", "waits", on_delivery=reports)
    assert producer.close(2) is False
    assert [code for code, _, _ in reports] == [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT]
    assert (len(producer), fake.now_ms, fake.closed) == (0, 1_002_010, True)


def test_close_returns_true_if_all_records_are_delivered() -> None:
    _, leader, producer = setup()
    producer.produce("t", "a")
    assert producer.close(2) is True
    assert (leader.values(), producer.close()) == ([b"a"], True)


# ---- idempotence -----------------------------------------------------------------------------------------------------


def test_records_after_a_timed_out_batch_have_the_next_epoch() -> None:
    """The producer id stays the same, so brokers refuse the late batch (KIP-360); other partitions continue."""
    fake, leader, _, producer = with_coordinator(enable_idempotence=True, message_timeout_ms=3000)
    producer.produce("t", "one", partition=0)
    producer.produce("t", "one", partition=1)
    producer.flush()
    fake.answers[ProduceRequest] = lambda *_: None
    producer.produce("t", "two", partition=0)
    producer.flush()
    late = parse_batch(fake.pending(ProduceRequest).request.topics[0].partitions[0].records)
    fake.answers[ProduceRequest] = leader.produce
    for partition in (0, 1):
        producer.produce("t", "three", partition=partition)
        producer.flush()
    assert (late.producer_id, late.producer_epoch, late.base_sequence) == (7, 0, 1)
    assert places(leader) == [(7, 0, 0, False), (7, 0, 0, False), (7, 1, 0, False), (7, 1, 0, False)]
    assert len(fake.requests(InitProducerIdRequest)) == 1


def test_a_retry_keeps_its_epoch_when_a_batch_of_another_partition_times_out() -> None:
    fake, leader, _, producer = with_coordinator(enable_idempotence=True)
    fake.answers[ProduceRequest] = lambda f, n, request: Later(500, Errors.NETWORK_EXCEPTION)
    producer.produce("t", "retried", partition=1)
    fake.run(timeout_ms=100)
    fake.answers[ProduceRequest] = leader.produce
    leader.errors = [Errors.INVALID_RECORD]
    producer.produce("t", "refused", partition=0)
    fake.run(timeout_ms=100)
    producer.produce("t", "next", partition=1)
    assert producer.flush() == 0
    assert places(leader) == [(7, 0, 0, False), (7, 1, 0, False)]
    assert leader.values(1) == [b"retried", b"next"]


def test_a_new_producer_id_is_requested_after_the_last_epoch() -> None:
    fake, leader, _, producer = with_coordinator(enable_idempotence=True)
    producer.produce("t", "a", partition=0)
    producer.flush()
    producer._core.identity.producer_epoch = LAST_EPOCH
    leader.errors = [Errors.INVALID_RECORD]
    for value in "bc":
        producer.produce("t", value, partition=0)
        producer.flush()
    assert places(leader) == [(7, 0, 0, False), (7, 0, 0, False)]
    assert len(fake.requests(InitProducerIdRequest)) == 2


@pytest.mark.parametrize("in_flight", [False, True], ids=["queue", "queue and in flight"])
def test_purging_a_batch_that_waits_for_its_retry_leaves_no_gap_in_sequences(in_flight: bool) -> None:
    fake, leader, _, producer = with_coordinator(
        enable_idempotence=True, retry_backoff_ms=3000, retry_backoff_max_ms=3000
    )
    reports = Reports()
    producer.produce("t", "one", partition=0, on_delivery=reports)
    producer.flush()
    leader.errors = [Errors.NETWORK_EXCEPTION]
    producer.produce("t", "two", partition=0, on_delivery=reports)
    fake.run(timeout_ms=1000)
    producer.purge(in_queue=True, in_flight=in_flight)
    producer.produce("t", "three", partition=0, on_delivery=reports)
    assert producer.flush() == 0
    assert places(leader) == [(7, 0, 0, False), (7, 1, 0, False)]
    assert [code for code, _, _ in reports] == [None, KafkaError._PURGE_QUEUE, None]


def test_the_log_refuses_a_late_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the public API on a cluster in process: the batch is delayed, and arrives after its successor."""
    hand_over, held = Network._hand_over, []
    answers: list[Any] = []

    def hold(network: Network, broker: Any, exchange_id: int, request: Any, client: Any) -> None:
        if isinstance(request, ProduceRequest):
            held.append((network, broker, exchange_id, request, client))
        else:
            hand_over(network, broker, exchange_id, request, client)

    with Cluster(brokers=1) as cluster:
        cluster.create_topic("t", partitions=1)
        conf = {"enable.idempotence": True, "message.timeout.ms": 2000}
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, **conf})
        reports = Reports()
        producer.produce("t", "one", on_delivery=reports)
        producer.flush()
        monkeypatch.setattr(Network, "_hand_over", hold)
        producer.produce("t", "two", on_delivery=reports)
        assert producer.flush(10) == 0
        monkeypatch.undo()
        producer.produce("t", "three", on_delivery=reports)
        assert producer.flush() == 0
        answer = Network.answer
        monkeypatch.setattr(Network, "answer", lambda *a: (answers.append(a[3]), answer(*a))[1])  # type: ignore[func-returns-value]
        for late in held:
            hand_over(*late)
        assert [code for code, _, _ in reports] == [None, TIMED_OUT, None]
        log = cluster.log("t", 0)
        read = log.read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED)
        values = [record.value for batch in read.batches for record in decode(batch)]
        assert values == [b"one", b"three"]
        assert [a.responses[0].partitions[0].error_code for a in answers] == [Errors.INVALID_PRODUCER_EPOCH]
