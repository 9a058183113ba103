"""The public interface: names, the order of checks, the configuration, threads. BEHAVIOUR.md, 1 to 6."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable
from typing import Any, cast

import confluent_kafka
import pytest

from shareq.consumer import AcknowledgeType, Message, Messages, ShareConsumer, TopicPartition
from shareq.consumer.config import REJECTED
from shareq.model.configs import GROUP_CONFIGS
from shareq.model.errors import (
    ConcurrentModificationException,
    IllegalStateException,
    KafkaError,
    KafkaException,
    WakeupException,
)
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from tests.client.fake import Fake, batch
from tests.consumer.fake_share_group import FakeShareGroup, consumer_on, explicit, offsets
from tests.polling import PATIENCE_S


def public(thing: type) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("shareq_class", "confluent_class"),
    [
        pytest.param(ShareConsumer, confluent_kafka.ShareConsumer, id="ShareConsumer"),
        pytest.param(Message, confluent_kafka.Message, id="Message"),
        pytest.param(Messages, confluent_kafka.Messages, id="Messages"),
        pytest.param(TopicPartition, confluent_kafka.TopicPartition, id="TopicPartition"),
        pytest.param(AcknowledgeType, confluent_kafka.AcknowledgeType, id="AcknowledgeType"),
    ],
)
def test_every_name_of_confluent_kafka_exists(shareq_class: type, confluent_class: type) -> None:
    assert public(confluent_class) - public(shareq_class) == set()


@pytest.mark.parametrize(
    "text",
    ["t", "t 1", "t 1 5"],
    ids=["topic", "topic and partition", "and offset"],
)
def test_repr_of_topic_partitions_is_that_of_confluent_kafka(text: str) -> None:
    topic, *numbers = text.split()
    arguments = (topic, *map(int, numbers))
    assert repr(TopicPartition(*arguments)) == repr(confluent_kafka.TopicPartition(*arguments))  # type: ignore[arg-type]


# ---- the order of checks ---------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any] | None]] = {
    "subscribe": (lambda c: c.subscribe(["t"]), lambda c: c.subscribe("t")),
    "unsubscribe": (lambda c: c.unsubscribe(), None),
    "subscription": (lambda c: c.subscription(), None),
    "assignment": (lambda c: c.assignment(), None),
    "ready": (lambda c: c.ready(), None),
    "poll": (lambda c: c.poll(0), lambda c: c.poll(None)),
    "acknowledge": (lambda c: c.acknowledge(Message("t", 0, 0)), lambda c: c.acknowledge("t")),
    "acknowledge_offset": (lambda c: c.acknowledge_offset("t", 0, 0), lambda c: c.acknowledge_offset("t", 0, 0, 1.0)),
    "commit_sync": (lambda c: c.commit_sync(0), lambda c: c.commit_sync("1")),
    "commit_async": (lambda c: c.commit_async(), None),
    "set_acknowledgement_commit_callback": (
        lambda c: c.set_acknowledgement_commit_callback(None),
        lambda c: c.set_acknowledgement_commit_callback(3),
    ),
    "share_group_metadata": (lambda c: c.share_group_metadata(), None),
    "acquisition_lock_timeout_ms": (lambda c: c.acquisition_lock_timeout_ms(), None),
}
methods = pytest.mark.parametrize("method", CALLS)
with_arguments = pytest.mark.parametrize("method", [name for name, (_, bad) in CALLS.items() if bad])


def call(method: str, consumer: Any, *, bad: bool = False) -> Any:
    good_call, bad_call = CALLS[method]
    return (bad_call or good_call)(consumer) if bad else good_call(consumer)


def holding(**conf: Any) -> tuple[Fake, ShareConsumer]:
    fake = Fake(t=[1])
    FakeShareGroup(fake).append("t", 0, batch(0, "a", "b"))
    consumer = explicit(fake, "t", **conf)
    consumer.poll(5)
    return fake, consumer


def test_the_table_of_calls_is_complete() -> None:
    free = {"close", "connection", "wakeup", "metrics", "member_id", "set_sasl_credentials"}
    assert public(ShareConsumer) == set(CALLS) | free


def test_ready_is_true_if_a_poll_need_not_wait() -> None:
    fake = Fake(t=[1])
    group = FakeShareGroup(fake)
    consumer = explicit(fake, "t")
    assert not consumer.poll(0)
    assert not consumer.ready()
    group.append("t", 0, batch(0, "a"))
    assert fake.run(consumer.ready, 60_000)
    assert [message.value() for message in consumer.poll(0)] == [b"a"]
    assert not consumer.ready()


@methods
def test_closed_is_checked_first(method: str) -> None:
    _, consumer = holding()
    consumer.close()
    with pytest.raises(IllegalStateException, match="closed"):
        call(method, consumer, bad=True)


@with_arguments
def test_arguments_are_checked_before_threads(method: str) -> None:
    _, consumer = holding()
    with consumer._gate, pytest.raises(TypeError):
        call(method, consumer, bad=True)


@methods
def test_calls_during_a_call_of_another_thread_are_refused(method: str) -> None:
    _, consumer = holding()
    with consumer._gate, pytest.raises(ConcurrentModificationException):
        call(method, consumer)


@pytest.mark.parametrize("method", [*CALLS, "close"])
def test_calls_inside_the_callback_are_refused(method: str) -> None:
    _, consumer = holding()
    caught: list[Exception] = []

    def callback(*_: Any) -> None:
        with pytest.raises(IllegalStateException, match="callback") as raised:
            consumer.close() if method == "close" else call(method, consumer)
        caught.append(raised.value)

    consumer.set_acknowledgement_commit_callback(callback)
    consumer.acknowledge_offset("t", 0, 0)
    consumer.commit_sync()
    assert len(caught) == 1


def test_calls_that_are_allowed_at_any_time() -> None:
    _, consumer = holding()
    with consumer._gate:
        assert consumer.metrics()["records-consumed-total"] == 2
        assert len(consumer.member_id()) == 22
        consumer.wakeup()
    consumer.close()
    consumer.wakeup()
    assert consumer.metrics()["fetch-total"] >= 1


def test_a_second_thread_is_refused_during_a_call() -> None:
    """While one thread is inside a call, a second thread is refused; afterwards its call succeeds."""
    _, consumer = holding()
    entered, leave = threading.Event(), threading.Event()

    def stay_inside() -> None:
        with consumer._gate:
            entered.set()
            leave.wait(PATIENCE_S)

    thread = threading.Thread(target=stay_inside)
    thread.start()
    assert entered.wait(PATIENCE_S)
    with pytest.raises(ConcurrentModificationException, match="another thread"):
        consumer.subscription()
    leave.set()
    thread.join()
    assert consumer.subscription() == ["t"]


# ---- checks of single methods ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        pytest.param("t", TypeError, id="a text"),
        pytest.param(("t",), TypeError, id="a tuple"),
        pytest.param({"t"}, TypeError, id="a set"),
        pytest.param(None, TypeError, id="None"),
        pytest.param([""], ValueError, id="an empty name"),
        pytest.param(["t", "t"], ValueError, id="a name twice"),
        pytest.param([1, "1"], ValueError, id="a name twice, as text"),
    ],
)
def test_subscribe_refuses_invalid_topics(topics: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        consumer_on(Fake(t=[1])).subscribe(topics)


def test_subscribe_takes_elements_as_text_and_replaces() -> None:
    consumer = consumer_on(Fake(t=[1]))
    consumer.subscribe([1, "^x"])  # type: ignore[list-item]
    assert consumer.subscription() == ["1", "^x"]
    consumer.subscribe(["t"])
    assert consumer.subscription() == ["t"]
    consumer.subscribe([])
    assert consumer.subscription() == []


@pytest.mark.parametrize("timeout", [None, "1", True], ids=["None", "a text", "a bool"])
def test_a_timeout_must_be_a_number(timeout: Any) -> None:
    with pytest.raises(TypeError):
        consumer_on(Fake(t=[1]), "t").poll(timeout)


def test_poll_without_subscription_is_refused() -> None:
    with pytest.raises(IllegalStateException, match="not subscribed"):
        consumer_on(Fake(t=[1])).poll(0)


def test_error_of_poll_has_the_number_of_unacknowledged_records() -> None:
    _, consumer = holding()
    consumer.acknowledge_offset("t", 0, 1)
    with pytest.raises(IllegalStateException, match=r"^1 records"):
        consumer.poll(0)
    consumer.unsubscribe()
    with pytest.raises(IllegalStateException, match=r"^1 records"):
        consumer.poll(0)


ACKNOWLEDGEMENTS = [
    pytest.param(Message(None, 0, 0), 1, ValueError, id="no topic"),
    pytest.param(Message("t", -1, 0), 1, ValueError, id="partition below 0"),
    pytest.param(Message("t", None, 0), 1, ValueError, id="no partition"),
    pytest.param(Message("t", 0, -5), 1, ValueError, id="offset below 0"),
    pytest.param(Message("t", 0, None), 1, ValueError, id="no offset"),
    pytest.param(Message(cast(Any, []), 0, 0), 1, ValueError, id="a topic that is not a str"),
    pytest.param(Message("t", 0, 0), 0, ValueError, id="type GAP"),
    pytest.param(Message("t", 0, 0), "gap", ValueError, id="type GAP by name"),
    pytest.param(Message("t", 0, 0), "acept", ValueError, id="a misspelt type"),
    pytest.param(Message("t", 0, 0), 1.0, TypeError, id="a type that is neither int nor str"),
    pytest.param(Message("t", 0, 0), 5, ValueError, id="type 5"),
    pytest.param(Message("t", 0, 7), 1, IllegalStateException, id="not in flight"),
    pytest.param(Message("t", 1, 0), 1, IllegalStateException, id="another partition"),
    pytest.param(Message("u", 0, 0), 1, IllegalStateException, id="another topic"),
    pytest.param(Message("t", 0, 7), 9, ValueError, id="the type is checked before the record"),
]


@pytest.mark.parametrize(("message", "kind", "error"), ACKNOWLEDGEMENTS)
def test_acknowledge_refuses_invalid_arguments(message: Message, kind: Any, error: type[Exception]) -> None:
    _, consumer = holding()
    with pytest.raises(error):
        consumer.acknowledge(message, kind)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param(Message(None, 0, 0), ValueError, id="the position is checked before the mode"),
        pytest.param(Message("t", 0, 0), IllegalStateException, id="implicit mode"),
    ],
)
def test_acknowledge_is_refused_in_implicit_mode(message: Message, error: type[Exception]) -> None:
    consumer = consumer_on(Fake(t=[1]), "t")
    with pytest.raises(error):
        consumer.acknowledge(message, 9)


def test_a_constructed_message_acknowledges_and_the_last_type_counts() -> None:
    _, consumer = holding()
    consumer.acknowledge(Message("t", 0, 0), AcknowledgeType.REJECT)
    consumer.acknowledge(Message("t", 0, 0), AcknowledgeType.RELEASE)
    consumer.acknowledge_offset("t", 0, 1)
    assert [(m.offset(), m.delivery_count()) for m in consumer.poll(1)] == [(0, 2)]


@pytest.mark.parametrize("name", ["release", "RELEASE", "Release"])
def test_acknowledge_types_are_accepted_by_name(name: str) -> None:
    _, consumer = holding()
    consumer.acknowledge(Message("t", 0, 0), name)
    consumer.acknowledge_offset("t", 0, 1, "accept")
    assert [(m.offset(), m.delivery_count()) for m in consumer.poll(1)] == [(0, 2)]


@pytest.mark.parametrize("given", ["acept", "gap", 7, 1.5, None])
def test_error_of_an_unknown_acknowledge_type_lists_all_types(given: Any) -> None:
    _, consumer = holding()
    allowed = r"must be ACCEPT \(1\), RELEASE \(2\), REJECT \(3\) or RENEW \(4\)"
    with pytest.raises((TypeError, ValueError), match=allowed):
        consumer.acknowledge(Message("t", 0, 0), given)


def test_a_sent_acknowledgement_cannot_be_repeated() -> None:
    _, consumer = holding()
    consumer.acknowledge_offset("t", 0, 0)
    consumer.commit_sync()
    with pytest.raises(IllegalStateException, match="not in flight"):
        consumer.acknowledge_offset("t", 0, 0)


def test_sasl_credentials_must_be_two_strings() -> None:
    consumer = consumer_on(Fake(t=[1]))
    consumer.set_sasl_credentials("user", "secret")
    with pytest.raises(TypeError):
        consumer.set_sasl_credentials("user", None)  # type: ignore[arg-type]


# ---- construction ----------------------------------------------------------------------------------------------------


def construct(**conf: Any) -> ShareConsumer:
    keys = {"bootstrap.servers": Fake(t=[1]).address, "group.id": "g"}
    keys |= {key.replace("_", "."): value for key, value in conf.items()}
    return ShareConsumer(keys)


def test_configuration_by_dict_keywords_or_both() -> None:
    fake = Fake(t=[1])
    both = ShareConsumer({"bootstrap.servers": "fake://nowhere", "group.id": "g"}, bootstrap_servers=fake.address)
    alone = ShareConsumer(**{"bootstrap.servers": fake.address, "group.id": ""})
    assert both.member_id() == alone.member_id()
    with pytest.raises(TypeError, match="configuration dict"):
        ShareConsumer()
    with pytest.raises(TypeError, match="configuration dict"):
        ShareConsumer("x")  # type: ignore[arg-type]


def test_a_consumer_cannot_be_initialized_again() -> None:
    consumer = construct()
    with pytest.raises(RuntimeError, match="already initialized"):
        consumer.__init__({"group.id": "g"})  # type: ignore[misc]


def test_group_id_is_required() -> None:
    with pytest.raises(ValueError, match=r"group\.id must be set"):
        ShareConsumer({"bootstrap.servers": "fake://x"})


def test_bootstrap_servers_are_required_and_named_if_unknown() -> None:
    with pytest.raises(KafkaException, match=r"bootstrap\.servers must be set"):
        ShareConsumer({"group.id": "g"})
    with pytest.raises(KafkaException, match="nowhere://x"):
        ShareConsumer({"group.id": "g", "bootstrap.servers": "nowhere://x"})


@pytest.mark.parametrize("key", sorted(REJECTED))
def test_keys_of_a_plain_consumer_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key.replace(".", r"\.")):
        ShareConsumer({"bootstrap.servers": Fake().address, "group.id": "g", key: "x"})


def test_the_error_names_all_refused_keys() -> None:
    with pytest.raises(ValueError, match=r"auto\.offset\.reset, isolation\.level"):
        construct(auto_offset_reset="earliest", isolation_level="read_committed")


@pytest.mark.parametrize("key", ["auto.offset.reset", "heartbeat.interval.ms", "isolation.level", "session.timeout.ms"])
def test_the_error_names_the_configuration_of_the_group(key: str) -> None:
    assert f"share.{key}" in GROUP_CONFIGS
    with pytest.raises(ValueError, match=re.escape(f"share.{key} is a configuration of the group")):
        ShareConsumer({"bootstrap.servers": Fake().address, "group.id": "g", key: "x"})


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        pytest.param("max.poll.records", 0, ">= 1", id="below"),
        pytest.param("max.poll.records", 1 << 31, ">= 1", id="above"),
        pytest.param("max.poll.records", "many", ">= 1", id="no number"),
        pytest.param("max.poll.interval.ms", 0, "1..86400000", id="interval 0"),
        pytest.param("fetch.wait.max.ms", -1, "0..300000", id="a wait below 0"),
        pytest.param("check.crcs", "maybe", "true or false", id="no bool"),
        pytest.param("share.acquire.mode", "greedy", "batch_optimized, record_limit", id="no acquire mode"),
    ],
)
def test_error_of_a_value_out_of_range_names_key_value_and_range(key: str, value: Any, allowed: str) -> None:
    with pytest.raises(KafkaException) as raised:
        construct(**{key: value})
    error = raised.value.error
    assert error == KafkaError._INVALID_ARG
    assert f"{key}={value!r}" in error.str()
    assert allowed in error.str()


@pytest.mark.parametrize("mode", ["EXPLICIT", "Implicit", "auto", "", None], ids=repr)
def test_an_unknown_acknowledgement_mode_is_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match="must be implicit or explicit"):
        construct(share_acknowledgement_mode=mode)


@pytest.mark.parametrize("mode", ["record_limit", "RECORD_LIMIT", "Batch_Optimized"])
def test_an_acquire_mode_is_accepted_in_any_case(mode: str) -> None:
    assert construct(share_acquire_mode=mode).subscription() == []


@pytest.mark.parametrize(
    ("key", "meant"),
    [("max.pol.records", "max.poll.records"), ("zzzzzz", None), ("fetch_min_byte", "fetch.min.bytes")],
)
def test_error_of_a_misspelt_key_suggests_the_nearest_one(key: str, meant: str | None) -> None:
    with pytest.raises(KafkaException) as raised:
        construct(**{key: 1})
    hint = f'; did you mean "{meant}"?' if meant else ")"
    assert raised.value.error.str().endswith(hint)


def test_the_error_names_unknown_keys() -> None:
    with pytest.raises(KafkaException, match="bogus"):
        construct(bogus=1)


@pytest.mark.parametrize(
    "conf",
    [
        {"auto.commit.interval.ms": 1, "enable.auto.offset.store": False, "max.partition.fetch.bytes": 1},
        {"debug": "all", "socket.timeout.ms": 1, "security.protocol": "PLAINTEXT"},
        {"fetch.max.wait.ms": 100, "default.api.timeout.ms": 1, "request.timeout.ms": 5},
    ],
    ids=["ignored", "the transport's", "Java's"],
)
def test_accepted_keys(conf: dict[str, Any]) -> None:
    assert construct(**conf).subscription() == []


def test_a_consumer_is_a_context_manager() -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake)
    with consumer_on(fake, "t") as consumer:
        assert consumer.poll(0).is_empty()
    assert fake.closed
    with pytest.raises(IllegalStateException, match="closed"), consumer:
        pass


def test_signatures_accept_the_positional_arguments_of_confluent_kafka() -> None:
    assert [*inspect.signature(ShareConsumer.acknowledge_offset).parameters][1:] == [
        "topic",
        "partition",
        "offset",
        "ack_type",
    ]
    assert inspect.signature(ShareConsumer.commit_sync).parameters["timeout"].default == 60
    assert inspect.signature(ShareConsumer.poll).parameters["timeout"].default == -1


# ---- wakeup ----------------------------------------------------------------------------------------------------------


def test_wakeup_before_a_poll_ends_the_next_one_without_losing_records() -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake).append("t", 0, batch(0, "a"))
    consumer = consumer_on(fake, "t")
    consumer.wakeup()
    with pytest.raises(WakeupException):
        consumer.poll(5)
    assert offsets(consumer.poll(5)) == [0]


def test_wakeup_during_a_poll_ends_it() -> None:
    fake = Fake(t=[1])
    group = FakeShareGroup(fake)
    consumer = consumer_on(fake, "t")
    heartbeat = group.heartbeat

    def waking(fake: Fake, node: int, request: Any) -> Any:
        if fake.now_ms >= 1_000_000 + 5000:
            fake.actor.wakeup()
        return heartbeat(fake, node, request)

    fake.answers[ShareGroupHeartbeatRequest] = waking
    with pytest.raises(WakeupException):
        consumer.poll(60)
    assert fake.now_ms == 1_000_000 + 5000


def test_wakeup_ends_a_commit_whose_acknowledgements_are_in_flight() -> None:
    fake, consumer = holding()
    desk_answer = fake.answers[ShareAcknowledgeRequest]
    fake.answers[ShareAcknowledgeRequest] = lambda *_: None
    consumer.acknowledge_offset("t", 0, 0)
    consumer.wakeup()
    with pytest.raises(WakeupException):
        consumer.commit_sync()
    sent = fake.pending(ShareAcknowledgeRequest)
    fake.reply(sent.call_id, desk_answer(fake, 1, sent.request))
    fake.answers[ShareAcknowledgeRequest] = desk_answer
    fake.run()
    consumer.acknowledge_offset("t", 0, 1)
    assert consumer.commit_sync() == {TopicPartition("t", 0): None}


def test_a_completed_commit_leaves_the_wakeup_to_the_next_poll() -> None:
    fake = Fake(t=[1])
    FakeShareGroup(fake)
    consumer = consumer_on(fake, "t")
    consumer.wakeup()
    assert consumer.commit_sync() == {}
    with pytest.raises(WakeupException):
        consumer.poll(1)
