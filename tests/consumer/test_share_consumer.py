"""Modes, the callback, renewals, gaps, close, deserializers, metrics. BEHAVIOUR.md, 3 to 10 and 27."""

from __future__ import annotations

import math
from typing import Any

import confluent_kafka.serialization
import pytest

from shareq.broker import Cluster
from shareq.consumer import DeserializingShareConsumer, Message, Messages, ShareConsumer, TopicPartition
from shareq.consumer.metrics import WINDOW_MS, Sampled
from shareq.log.batches import parse_batch
from shareq.log.records import decode, rebuild
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.producer import Producer
from tests.client.fake import Fake, Later, batch
from tests.consumer.fake_share_group import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    FakeShareGroup,
    acks_of,
    consumer_on,
    explicit,
    offsets,
)

P0 = TopicPartition("t", 0)


def new_group(*values: str) -> tuple[Fake, FakeShareGroup]:
    fake = Fake(t=[1])
    group = FakeShareGroup(fake)
    if values:
        group.append("t", 0, batch(0, *values))
    return fake, group


# ---- implicit and explicit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [lambda c: c.poll(0), lambda c: c.commit_sync(), lambda c: c.commit_async()])
def test_implicit_mode_accepts_with_the_next_poll_or_commit(commit: Any) -> None:
    fake, group = new_group("a", "b")
    consumer = consumer_on(fake, "t")
    assert offsets(consumer.poll(5)) == [0, 1]
    commit(consumer)
    fake.run()
    assert set(group.state("t").values()) == {"done"}


def test_close_in_implicit_mode_accepts_no_record() -> None:
    fake, group = new_group("a", "b")
    with consumer_on(fake, "t") as consumer:
        assert offsets(consumer.poll(5)) == [0, 1]
    assert set(group.state("t").values()) == {"available"}
    assert acks_of(fake.requests(ShareAcknowledgeRequest)[-1]) == ""


def test_commit_in_explicit_mode_sends_acknowledged_records_only() -> None:
    fake, group = new_group("a", "b", "c")
    consumer = explicit(fake, "t")
    consumer.poll(5)
    consumer.acknowledge_offset("t", 0, 1)
    assert consumer.commit_sync() == {P0: None}
    assert group.state("t") == {0: "acquired", 1: "done", 2: "acquired"}
    with pytest.raises(IllegalStateException, match=r"^2 records"):
        consumer.poll(0)
    assert consumer.commit_sync() == {}


def test_result_keys_have_offset_0_and_the_error() -> None:
    fake, group = new_group("a")
    consumer = explicit(fake, "t")
    consumer.poll(5)
    group.expire()
    consumer.acknowledge_offset("t", 0, 0)
    ((key, failure),) = consumer.commit_sync().items()
    assert (key.topic, key.partition, key.offset) == ("t", 0, 0)
    assert failure is not None
    assert key.error is failure.error
    assert failure.error == Errors.INVALID_RECORD_STATE


def test_buffered_records_are_delivered_while_acknowledgements_are_sent() -> None:
    fake, group = new_group()
    group.append("t", 0, batch(0, "a", "b"), batch(2, "c", "d"))
    consumer = explicit(fake, "t", max_poll_records=4)
    fake.actor._max_poll_records = 2
    first = consumer.poll(5)
    assert offsets(first) == [0, 1]
    for message in first:
        consumer.acknowledge(message)
    assert offsets(consumer.poll(5)) == [2, 3]
    assert acks_of(fake.requests(ShareAcknowledgeRequest)[0]) == "0-1:1"
    assert len(fake.requests(ShareFetchRequest)) == 1


@pytest.mark.parametrize(
    ("expired", "waited_ms", "counts"),
    [
        pytest.param("drop", 29_000, [1, 1], id="before the end of the lock"),
        pytest.param("drop", 30_000, [2, 2], id="dropped and fetched again"),
        pytest.param("return", 30_000, [1, 1], id="returned all the same"),
    ],
)
def test_buffered_records_whose_lock_has_ended_are_fetched_again(
    expired: str, waited_ms: int, counts: list[int]
) -> None:
    fake, group = new_group()
    group.append("t", 0, batch(0, "a", "b"), batch(2, "c", "d"))
    consumer = explicit(fake, "t", max_poll_records=4, share_expired_records=expired)
    fake.actor._max_poll_records = 2
    for message in consumer.poll(5):
        consumer.acknowledge(message)
    consumer.commit_sync()
    fake.now_ms += waited_ms
    if waited_ms >= 30_000:
        group.expire()
    later = consumer.poll(5)
    assert offsets(later) == [2, 3]
    assert [message.delivery_count() for message in later] == counts


def test_the_lock_timeout_is_that_of_the_last_response() -> None:
    fake, _ = new_group("a")
    consumer = consumer_on(fake, "t")
    assert consumer.acquisition_lock_timeout_ms() is None
    consumer.poll(5)
    assert consumer.acquisition_lock_timeout_ms() == 30000


# ---- gaps ------------------------------------------------------------------------------------------------------------


def test_a_poll_with_only_gaps_acknowledges_them_and_continues() -> None:
    fake, group = new_group()
    whole = batch(0, "a", "b")
    group.append("t", 0, parse_batch(rebuild(whole, [])))
    consumer = explicit(fake, "t")
    assert consumer.poll(1).is_empty()
    assert set(group.state("t").values()) == {"done"}
    assert acks_of(fake.requests(ShareFetchRequest)[1]) == "0-1:0"


def test_gaps_cannot_be_acknowledged_by_the_application() -> None:
    fake, group = new_group()
    whole = batch(0, "a", "b", "c")
    group.append("t", 0, parse_batch(rebuild(whole, [r for r in decode(whole) if r.offset != 1])))
    consumer = explicit(fake, "t")
    assert offsets(consumer.poll(5)) == [0, 2]
    with pytest.raises(IllegalStateException, match="gap"):
        consumer.acknowledge_offset("t", 0, 1)
    consumer.acknowledge_offset("t", 0, 0)
    consumer.acknowledge_offset("t", 0, 2, REJECT)
    consumer.commit_sync()
    assert acks_of(fake.requests(ShareAcknowledgeRequest)[-1]) == "0:1 1:0 2:3"


# ---- the callback ----------------------------------------------------------------------------------------------------


def test_the_callback_runs_once_per_partition_and_request_before_the_commit_returns() -> None:
    fake = Fake(t=[1, 2])
    group = FakeShareGroup(fake)
    group.append("t", 0, batch(0, "a"))
    group.append("t", 1, batch(0, "b"))
    consumer = explicit(fake, "t")
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda *result: results.append(result))
    for message in consumer.poll(5):
        consumer.acknowledge(message)
    consumer.commit_sync()
    assert sorted(results, key=lambda result: next(iter(result[0])).partition) == [
        ({TopicPartition("t", 0): {0}}, None),
        ({TopicPartition("t", 1): {0}}, None),
    ]


def test_the_callback_runs_inside_calls_of_the_application_only() -> None:
    fake, _ = new_group("a", "b")
    consumer = explicit(fake, "t")
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda *result: results.append(result))
    consumer.poll(5)
    consumer.acknowledge_offset("t", 0, 0)
    consumer.commit_async()
    fake.run(timeout_ms=100)
    consumer.acknowledge_offset("t", 0, 1)
    assert results == []
    consumer.poll(0)
    assert len(results) == 1


def test_an_exception_of_the_callback_is_raised_and_other_results_are_kept() -> None:
    fake, _ = new_group("a", "b")
    consumer = explicit(fake, "t")
    seen: list[Any] = []

    def callback(found: Any, error: Any) -> None:
        seen.append(found)
        raise LookupError("mine")

    consumer.set_acknowledgement_commit_callback(callback)
    consumer.poll(5)
    for offset in (0, 1):
        consumer.acknowledge_offset("t", 0, offset)
        if not offset:
            consumer.commit_async()
    for _ in range(2):
        with pytest.raises(LookupError, match="mine"):
            consumer.commit_sync()
    consumer.commit_sync()
    assert seen == [{P0: {0}}, {P0: {1}}]


def test_close_completes_although_the_callback_raises() -> None:
    fake, group = new_group("a")
    consumer = explicit(fake, "t")

    def callback(*_: Any) -> None:
        raise LookupError("mine")

    consumer.set_acknowledgement_commit_callback(callback)
    consumer.poll(5)
    consumer.acknowledge_offset("t", 0, 0)
    with pytest.raises(LookupError, match="mine"):
        consumer.close()
    assert fake.closed
    assert group.state("t") == {0: "done"}
    consumer.close()


def test_without_a_callback_no_results_are_kept() -> None:
    fake, _ = new_group("a")
    consumer = explicit(fake, "t")
    consumer.poll(5)
    consumer.acknowledge_offset("t", 0, 0)
    consumer.commit_sync()
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda *result: results.append(result))
    consumer.commit_sync()
    assert results == []


def test_the_callback_can_wake_the_consumer_up() -> None:
    fake, _ = new_group("a")
    consumer = explicit(fake, "t")
    consumer.set_acknowledgement_commit_callback(lambda *_: consumer.wakeup())
    consumer.poll(5)
    consumer.acknowledge_offset("t", 0, 0)
    consumer.commit_sync()
    with pytest.raises(Exception, match="wakeup"):
        consumer.poll(5)


# ---- renewals --------------------------------------------------------------------------------------------------------


def test_a_renewed_record_can_be_acknowledged_without_another_poll() -> None:
    fake, group = new_group("a", "b")
    consumer = explicit(fake, "t")
    first, second = consumer.poll(5)
    consumer.acknowledge(first, RENEW)
    consumer.acknowledge(second, RENEW)
    assert consumer.commit_sync() == {P0: None}
    assert set(group.state("t").values()) == {"acquired"}
    consumer.acknowledge(first, ACCEPT)
    assert consumer.poll(5).records() == [second]
    consumer.acknowledge(second, RELEASE)
    assert [(m.offset(), m.delivery_count()) for m in consumer.poll(5)] == [(1, 2)]


def test_the_callback_receives_a_failed_renewal_and_the_record_is_dropped() -> None:
    fake, group = new_group("a")
    consumer = explicit(fake, "t")
    results: list[Any] = []
    consumer.set_acknowledgement_commit_callback(lambda _, error: results.append(error and error.error.code()))
    (message,) = consumer.poll(5)
    group.expire()
    consumer.acknowledge(message, RENEW)
    consumer.commit_sync()
    assert results == [Errors.INVALID_RECORD_STATE]
    with pytest.raises(IllegalStateException):
        consumer.acknowledge(message)


def test_only_requests_with_a_renewal_have_is_renew_ack() -> None:
    fake, _ = new_group("a", "b")
    consumer = explicit(fake, "t")
    first, second = consumer.poll(5)
    consumer.acknowledge(first, RENEW)
    consumer.commit_sync()
    consumer.acknowledge(second)
    consumer.commit_sync()
    assert [request.is_renew_ack for request in fake.requests(ShareAcknowledgeRequest)] == [True, False]


def test_a_broker_without_renewals_is_an_error_and_the_session_continues() -> None:
    """The client does not send the request, so the session continues. BEHAVIOUR.md, 27."""
    fake, _ = new_group("a")
    consumer = explicit(fake, "t")
    (message,) = consumer.poll(5)
    acknowledge = fake.answers[ShareAcknowledgeRequest]
    fake.answers[ShareAcknowledgeRequest] = lambda f, node, request: Errors.UNSUPPORTED_VERSION
    consumer.acknowledge(message, RENEW)
    ((_, error),) = consumer.commit_sync().items()
    assert error is not None
    assert error.error == Errors.UNSUPPORTED_VERSION
    fake.answers[ShareAcknowledgeRequest] = acknowledge
    with pytest.raises(KafkaException) as raised:
        consumer.poll(0)
    assert raised.value.error == Errors.UNSUPPORTED_VERSION
    assert not consumer.poll(1)
    assert [request.share_session_epoch for request in fake.requests(ShareFetchRequest)].count(0) == 1


def test_a_broker_without_share_groups_is_an_error() -> None:
    fake, _ = new_group("a")
    fake.answers[ShareGroupHeartbeatRequest] = lambda f, node, request: Errors.UNSUPPORTED_VERSION
    consumer = consumer_on(fake, "t")
    with pytest.raises(KafkaException) as raised:
        consumer.poll(5)
    assert raised.value.error == Errors.UNSUPPORTED_VERSION


def test_other_records_are_returned_while_a_renewal_is_in_flight() -> None:
    fake, group = new_group("a")
    fake.topics["t"] = [1, 2]
    consumer = explicit(fake, "t")
    (first,) = consumer.poll(5)
    fake.answers[ShareAcknowledgeRequest] = lambda f, n, request: Later(3000, group.acknowledge(f, n, request))
    consumer.acknowledge(first, RENEW)
    group.append("t", 1, batch(0, "b"))
    (other,) = consumer.poll(5)
    assert other.value() == b"b"
    consumer.acknowledge(other)
    assert consumer.poll(5).records() == [first]


ROUNDS: dict[str, Any] = {
    "commit_sync": lambda consumer: consumer.commit_sync(10),
    "commit_async": lambda consumer: consumer.commit_async(),
    "poll alone": lambda consumer: None,
}


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
@pytest.mark.parametrize("limit", [1, 500])
@pytest.mark.parametrize("latency_ms", [0, 2])
@pytest.mark.parametrize("round_", ROUNDS.values(), ids=ROUNDS)
def test_a_consumer_that_renews_a_record_in_each_poll_receives_the_others(
    round_: Any, latency_ms: int, limit: int, mode: str
) -> None:
    """`max.poll.records` does not count renewed records: with 1, a poll returns the renewed record and another one."""
    with Cluster(brokers=2, seed=1, latency_ms=latency_ms) as cluster:
        cluster.create_topic("t", 2)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        boot = {"bootstrap.servers": cluster.bootstrap_servers}
        producer = Producer(boot)
        for i in range(20):
            producer.produce("t", str(i), partition=i % 2)
            producer.flush(10)
        keys = {"share.acknowledgement.mode": "explicit", "max.poll.records": limit, "share.acquire.mode": mode}
        consumer = ShareConsumer({**boot, "group.id": "g", **keys})
        consumer.subscribe(["t"])
        others: list[Any] = []
        kept = 0
        for _ in range(60):
            messages = consumer.poll(1)
            for message in messages:
                mine = message.value() == b"0"
                consumer.acknowledge(message, RENEW if mine else ACCEPT)
                kept += mine
                others += [] if mine else [message.value()]
            assert len({(m.partition(), m.offset()) for m in messages}) == len(messages) <= limit + 1
            round_(consumer)
        assert sorted(others, key=int) == [b"%d" % i for i in range(1, 20)]
        assert kept >= 20, "the renewed record is returned, too"


def test_a_poll_returns_renewed_and_fetched_records() -> None:
    fake, group = new_group("a")
    consumer = explicit(fake, "t", max_poll_records=1)
    (first,) = consumer.poll(5)
    group.append("t", 0, batch(1, "b"))
    consumer.acknowledge(first, RENEW)
    assert consumer.commit_sync() == {P0: None}
    assert offsets(consumer.poll(5)) == [0, 1]


# ---- close -----------------------------------------------------------------------------------------------------------


def test_close_sends_acknowledgements_releases_and_leaves_in_this_order() -> None:
    fake, group = new_group("a", "b")
    consumer = explicit(fake, "t")
    consumer.poll(5)
    consumer.acknowledge_offset("t", 0, 0)
    consumer.close()
    sent, left = (sent.request for sent in fake.sent[-2:])
    assert (sent.share_session_epoch, acks_of(sent)) == (-1, "0:1")
    assert left.member_epoch == -1
    assert group.state("t") == {0: "done", 1: "available"}
    assert fake.closed


def test_close_waits_for_a_fetch_in_flight() -> None:
    fake, _ = new_group()
    consumer = consumer_on(fake, "t")
    consumer.poll(0.1)
    began_ms = fake.now_ms
    consumer.close()
    assert fake.now_ms - began_ms == 400
    assert fake.requests(ShareAcknowledgeRequest)[-1].share_session_epoch == -1


def test_records_that_arrive_during_close_are_released() -> None:
    fake, group = new_group()
    consumer = consumer_on(fake, "t")
    fake.answers[ShareFetchRequest] = lambda *_: None
    consumer.poll(0)
    group.append("t", 0, batch(0, "a"))
    sent = fake.pending(ShareFetchRequest)
    fake.reply(sent.call_id, group.fetch(fake, 1, sent.request), after_ms=200)
    consumer.close()
    assert group.state("t") == {0: "available"}


def test_close_waits_out_a_back_off() -> None:
    fake, _ = new_group()
    consumer = consumer_on(fake, "t")
    consumer.poll(0.6)
    fake.answers[ShareFetchRequest] = lambda *_: Later(100, ShareFetchResponse(error_code=Errors.UNKNOWN_SERVER_ERROR))
    consumer.poll(0.5)
    began_ms = fake.now_ms
    consumer.close()
    assert 0 < fake.now_ms - began_ms < 500
    assert fake.requests(ShareAcknowledgeRequest)[-1].share_session_epoch == -1


def test_close_ends_at_its_timeout() -> None:
    fake, _ = new_group("a")
    consumer = consumer_on(fake, "t")
    consumer.poll(5)
    fake.answers[ShareAcknowledgeRequest] = fake.answers[ShareGroupHeartbeatRequest] = lambda *_: None
    began_ms = fake.now_ms
    consumer.close()
    assert fake.now_ms - began_ms == 30_000
    assert fake.closed


def test_close_without_the_cluster_succeeds() -> None:
    fake, _ = new_group("a")
    consumer = consumer_on(fake, "t")
    consumer.poll(5)
    fake.dead = True
    consumer.close()
    assert fake.closed


def test_close_succeeds_although_the_leave_heartbeat_is_refused() -> None:
    fake, _ = new_group("a")
    consumer = consumer_on(fake, "t")
    consumer.poll(5)
    refused = ShareAcknowledgeResponse(error_code=Errors.SHARE_SESSION_NOT_FOUND)
    fake.answers[ShareAcknowledgeRequest] = lambda *_: refused
    consumer.close()
    assert fake.requests(ShareGroupHeartbeatRequest)[-1].member_epoch == -1


# ---- deserializers ---------------------------------------------------------------------------------------------------


def fail(*_: Any) -> Any:
    raise ValueError("cannot read this")


@pytest.mark.parametrize(
    ("key_deserializer", "value_deserializer", "key", "value", "code"),
    [
        pytest.param(None, None, b"k", b"v", None, id="none"),
        pytest.param(
            lambda b, _: b.decode(), lambda b, c: (b, c.topic, str(c.field)), "k", (b"v", "t", "value"), None, id="both"
        ),
        pytest.param(fail, lambda b, _: 1, b"k", b"v", KafkaError._KEY_DESERIALIZATION, id="the key fails"),
        pytest.param(lambda b, _: 1, fail, b"k", b"v", KafkaError._VALUE_DESERIALIZATION, id="the value fails"),
        pytest.param(
            confluent_kafka.serialization.StringDeserializer(), None, "k", b"v", None, id="one of confluent-kafka's"
        ),
    ],
)
def test_deserializers_change_both_or_neither(
    key_deserializer: Any, value_deserializer: Any, key: Any, value: Any, code: int | None
) -> None:
    fake = Fake(t=[1])
    group = FakeShareGroup(fake)
    group.append("t", 0, batch(0, b"v", key=b"k"))
    conf = {"bootstrap.servers": fake.address, "group.id": "g", "share.acknowledgement.mode": "explicit"}
    given = {"key.deserializer": key_deserializer, "value.deserializer": value_deserializer}
    consumer = DeserializingShareConsumer(conf | given)
    consumer.subscribe(["t"])
    (message,) = consumer.poll(5)
    error = message.error()
    assert (message.key(), message.value(), error and error.code()) == (key, value, code)
    with pytest.raises(IllegalStateException, match=r"^1 records"):
        consumer.poll(0)
    consumer.acknowledge(message, REJECT)
    assert consumer.commit_sync() == {P0: None}


def test_deserializers_take_a_dict_only() -> None:
    with pytest.raises(TypeError, match="configuration dict"):
        DeserializingShareConsumer("x")  # type: ignore[arg-type]


# ---- messages --------------------------------------------------------------------------------------------------------


def test_messages_are_a_read_only_sequence() -> None:
    fake, _ = new_group("a", "b", "c")
    messages = consumer_on(fake, "t").poll(5)
    first, *rest = messages
    assert (len(messages), messages.count(), bool(messages), messages.is_empty()) == (3, 3, True, False)
    assert messages[0] == first
    assert messages[-1] == rest[-1] != first
    assert isinstance(messages[1:], Messages)
    assert list(messages[1:]) == rest
    assert list(reversed(messages)) == [*reversed(rest), first]
    assert first in messages
    assert messages.index(rest[0]) == 1
    assert messages.records() == [first, *rest]
    assert messages != Messages(messages.records())
    with pytest.raises(TypeError):
        messages[0] = first  # type: ignore[index]


def test_repr_and_html_of_messages() -> None:
    strange = Message("t", 0, 1, None, b"<b>\xff", headers=[("h", None)], error=KafkaError(2, "broken"))
    many = Messages([strange] + [Message("t", 0, offset, b"k", "v" * 100) for offset in range(30)])
    html = many._repr_html_()
    assert "<p>31 messages</p>" in html
    assert "&lt;b&gt;\\xff" in html
    assert "broken" in html
    assert "… and 11 more" in html
    assert "v" * 58 not in html
    assert repr(many[1:2]) == f"Messages([Message('t', 0, 0, key=b'k', value={'v' * 100!r})])"


# ---- metrics ---------------------------------------------------------------------------------------------------------

METRICS = {
    "last-poll-seconds-ago", "time-between-poll-avg", "time-between-poll-max", "poll-idle-ratio-avg",
    "bytes-consumed-rate", "bytes-consumed-total", "records-consumed-rate", "records-consumed-total",
    "fetch-size-avg", "fetch-size-max", "records-per-request-avg", "records-per-request-max",
    "fetch-latency-avg", "fetch-latency-max", "fetch-throttle-time-avg", "fetch-throttle-time-max",
    "acknowledgements-send-rate", "acknowledgements-send-total", "acknowledgements-error-rate",
    "acknowledgements-error-total", "fetch-rate", "fetch-total", "heartbeat-rate", "heartbeat-total",
    "heartbeat-response-time-max", "last-heartbeat-seconds-ago", "rebalance-total", "rebalance-rate-per-hour",
}  # fmt: skip


def test_metrics_have_the_names_of_kafka() -> None:
    fake, _ = new_group("a", "b")
    consumer = consumer_on(fake, "t")
    assert set(consumer.metrics()) == METRICS
    assert math.isnan(consumer.metrics()["fetch-latency-avg"])
    consumer.poll(5)
    fake.now_ms += 2000
    consumer.poll(1)
    values = consumer.metrics()
    assert values["records-consumed-total"] == values["records-per-request-max"] == 2
    assert values["acknowledgements-send-total"] == 2
    assert values["fetch-total"] == 4
    assert values["fetch-latency-max"] == 500
    assert (values["time-between-poll-avg"], values["poll-idle-ratio-avg"]) == (2000, 0)
    assert values["last-poll-seconds-ago"] == 1
    assert (values["heartbeat-total"], values["rebalance-total"]) == (2, 1)


def test_sampled_values_cover_two_windows() -> None:
    sampled = Sampled()
    sampled.record(10, 0)
    sampled.record(20, 1000)
    assert (sampled.average(1000), sampled.maximum(1000), sampled.rate(1000)) == (15, 20, 30)
    sampled.record(3, WINDOW_MS)
    assert (sampled.average(WINDOW_MS), sampled.maximum(WINDOW_MS)) == (11, 20)
    assert sampled.rate(WINDOW_MS) == pytest.approx(33 / 30)
    assert sampled.maximum(2 * WINDOW_MS) == 3
    assert math.isnan(sampled.average(4 * WINDOW_MS))
    assert (sampled.total, sampled.count) == (33, 3)
