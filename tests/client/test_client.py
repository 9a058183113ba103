"""Shared parts of the clients: calls, back-off, metadata, coordinator lookup, the gate, configurations, messages."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import confluent_kafka
import pytest

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.config import ClientConfig, merged
from shareq.client.coordinator import CoordinatorLookup
from shareq.client.message import Fields, Message, Origin, ReceivedMessage
from shareq.client.metadata import Metadata
from shareq.client.shell import Gate, perform, timeout_ms
from shareq.client.topic_partition import TopicPartition
from shareq.log.records import decode
from shareq.model.actor import ANY_NODE, Answer, Call
from shareq.model.configs import ConfigDef
from shareq.model.errors import (
    ConcurrentModificationException,
    Errors,
    IllegalStateException,
    KafkaError,
    KafkaException,
)
from shareq.model.events import BrokerStarted
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.cluster import (
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.share_fetch import LeaderIdAndEpoch
from tests.client.fake import batch, topic_id


class CallRecorder:
    """Collects the calls of a part of a client and delivers answers to them."""

    def __init__(self) -> None:
        self.calls = Calls(1234)
        self.backoff = Backoff(random.Random(1))
        self.sent: list[Call] = []

    def take(self) -> list[Any]:
        calls = [effect for effect in self.calls.take_effects() if isinstance(effect, Call)]
        self.sent += calls
        return [call.request for call in calls]

    def answer(self, response: Any, now_ms: int, error: Errors = Errors.NONE) -> None:
        self.calls.answered(Answer(self.sent[-1].id, response, error), now_ms)


# ---- calls and back-off ----------------------------------------------------------------------------------------------


def test_an_answer_is_delivered_once_to_its_caller() -> None:
    calls = Calls(1234)
    seen: list[Any] = []
    calls.send(3, MetadataRequest(), lambda *answer: seen.append(("first", *answer)))
    calls.send(4, MetadataRequest(), lambda *answer: seen.append(("second", *answer)))
    calls.emit(BrokerStarted(1))
    first, second, event = calls.take_effects()
    assert isinstance(first, Call)
    assert isinstance(second, Call)
    assert (first.node, first.timeout_ms, event) == (3, 1234, BrokerStarted(1))
    calls.answered(Answer(second.id, None, Errors.NETWORK_EXCEPTION), 7)
    calls.answered(Answer(second.id, None, Errors.NETWORK_EXCEPTION), 8)
    assert seen == [("second", None, Errors.NETWORK_EXCEPTION, 7)]
    assert calls.take_effects() == []


@pytest.mark.parametrize("error", [Errors.NETWORK_EXCEPTION, Errors.REQUEST_TIMED_OUT], ids=lambda e: e.name)
def test_a_request_without_a_response_is_no_sign_of_a_broker(error: Errors) -> None:
    """Else a producer would not log that nothing answers, if its first request times out before it does."""
    recorder = CallRecorder()
    for _ in range(2):
        recorder.calls.send(3, MetadataRequest(), lambda *_: None)
    recorder.take()
    recorder.answer(None, 7, error)
    assert not recorder.calls.reached
    assert bool(recorder.calls.refusal) is (error is Errors.NETWORK_EXCEPTION)
    recorder.answer(MetadataResponse(brokers=(), cluster_id="c", controller_id=1), 8)
    assert (recorder.calls.reached, recorder.calls.refusal) == (True, "")


@pytest.mark.parametrize(("attempts", "base"), [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (50, 1000)], ids=str)
def test_pauses_double_up_to_a_maximum_with_jitter(attempts: int, base: int) -> None:
    backoff = Backoff(random.Random(3))
    pauses = {backoff.delay_ms(attempts) for _ in range(200)}
    assert 0.8 * base <= min(pauses) < base < max(pauses) <= 1.2 * base


@pytest.mark.parametrize(
    ("times", "first"), [((), None), ((None,), None), ((3, None, 2), 2)], ids=["none", "never", "some"]
)
def test_earliest_ignores_none(times: tuple[int | None, ...], first: int | None) -> None:
    assert earliest(*times) == first


# ---- metadata --------------------------------------------------------------------------------------------------------


def topic(name: str, *leaders: int, epoch: int = 0, recreated: bool = False) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(
        name=name,
        topic_id=topic_id(name + "!" * recreated),
        partitions=tuple(
            MetadataResponse.Partition(partition_index=index, leader_id=leader, leader_epoch=epoch)
            for index, leader in enumerate(leaders)
        ),
    )


def metadata_of(*topics: MetadataResponse.Topic) -> MetadataResponse:
    return MetadataResponse(brokers=(), cluster_id="c", controller_id=0, topics=topics)


def cache() -> tuple[CallRecorder, Metadata, list[int]]:
    recorder = CallRecorder()
    updates: list[int] = []
    return recorder, Metadata(recorder.calls, recorder.backoff, lambda: updates.append(1)), updates


def key(name: str, partition: int) -> TopicIdPartition:
    return TopicIdPartition(topic_id(name), partition)


def test_wanted_topics_are_requested_once() -> None:
    recorder, metadata, updates = cache()
    metadata.want_names(["t", "u"])
    metadata.want_names(["t"])
    metadata.pump(0)
    metadata.pump(0)
    (request,) = recorder.take()
    assert [topic.name for topic in request.topics] == ["t", "u"]
    assert recorder.sent[0].node == ANY_NODE
    recorder.answer(metadata_of(topic("t", 1, 2)), 5)
    assert (metadata.leader(key("t", 1)), metadata.leader(key("t", 2)), metadata.leader(key("u", 0))) == (2, -1, -1)
    assert updates == [1]
    assert metadata.wake_at_ms is None


def test_ids_are_requested_before_names_in_a_separate_request() -> None:
    recorder, metadata, _ = cache()
    metadata.want_names(["t"])
    metadata.want_ids([topic_id("u")])
    metadata.pump(0)
    (request,) = recorder.take()
    assert [(topic.name, topic.topic_id) for topic in request.topics] == [(None, topic_id("u"))]
    recorder.answer(metadata_of(topic("u", 1)), 0)
    assert metadata.wake_at_ms is not None
    metadata.pump(metadata.wake_at_ms)
    (request,) = recorder.take()
    assert [topic.name for topic in request.topics] == ["t"]


def test_refreshes_back_off_and_recover() -> None:
    recorder, metadata, _ = cache()
    times, now_ms = [], 0
    for _ in range(6):
        metadata.want_names(["t"])
        now_ms = max(now_ms, metadata.wake_at_ms or 0)
        metadata.pump(now_ms)
        recorder.take()
        recorder.answer(metadata_of(), now_ms)
        times.append(now_ms)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses == sorted(pauses)
    assert 80 <= pauses[0] <= 120
    now_ms += 10_000
    metadata.want_names(["t"])
    metadata.pump(now_ms)
    recorder.answer(metadata_of(), now_ms) if recorder.take() else None
    metadata.want_names(["t"])
    assert metadata.wake_at_ms is not None
    assert metadata.wake_at_ms - now_ms <= 120


def test_a_request_without_a_response_is_repeated() -> None:
    recorder, metadata, updates = cache()
    metadata.want_names(["t"])
    metadata.want_ids([topic_id("u")])
    metadata.pump(0)
    recorder.take()
    recorder.answer(None, 0, Errors.NETWORK_EXCEPTION)
    assert metadata.wake_at_ms is not None
    metadata.pump(metadata.wake_at_ms)
    (request,) = recorder.take()
    assert request.topics[0].topic_id == topic_id("u")
    assert updates == []


def test_errors_are_kept_and_a_deleted_topic_is_dropped() -> None:
    recorder, metadata, _ = cache()
    for answer in (
        topic("t", 1),
        MetadataResponse.Topic(name="t", topic_id=topic_id("t"), error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        metadata.want_names(["t"])
        metadata.pump(100_000)
        recorder.take()
        recorder.answer(metadata_of(answer), 0)
    assert metadata.errors == {"t": Errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert (metadata.topics, metadata.by_id) == ({}, {})


def test_a_recreated_topic_replaces_the_former_one() -> None:
    recorder, metadata, _ = cache()
    for answer in (topic("t", 1), topic("t", 2, recreated=True)):
        metadata.want_names(["t"])
        metadata.pump(100_000)
        recorder.take()
        recorder.answer(metadata_of(answer), 0)
    assert list(metadata.by_id) == [topic_id("t!")]


@pytest.mark.parametrize(
    ("place", "leader", "moves"),
    [
        pytest.param(key("t", 0), LeaderIdAndEpoch(leader_id=2, leader_epoch=6), True, id="newer"),
        pytest.param(key("t", 0), LeaderIdAndEpoch(leader_id=2, leader_epoch=5), False, id="the same epoch"),
        pytest.param(key("t", 0), LeaderIdAndEpoch(), False, id="no leader"),
        pytest.param(key("t", 9), LeaderIdAndEpoch(leader_id=2, leader_epoch=6), False, id="unknown partition"),
        pytest.param(key("u", 0), LeaderIdAndEpoch(leader_id=2, leader_epoch=6), False, id="unknown topic"),
    ],
)
def test_a_newer_leader_epoch_replaces_the_leader(
    place: TopicIdPartition, leader: LeaderIdAndEpoch, moves: bool
) -> None:
    recorder, metadata, _ = cache()
    metadata.want_names(["t"])
    metadata.pump(0)
    recorder.take()
    recorder.answer(metadata_of(topic("t", 1, epoch=5)), 0)
    assert metadata.moved(place, leader) == moves
    assert metadata.leader(key("t", 0)) == (2 if moves else 1)


# ---- the coordinator -------------------------------------------------------------------------------------------------


def lookup() -> tuple[CallRecorder, CoordinatorLookup]:
    recorder = CallRecorder()
    return recorder, CoordinatorLookup(recorder.calls, recorder.backoff, "g")


def found(node: int = 3, error: Errors = Errors.NONE) -> FindCoordinatorResponse:
    coordinator = FindCoordinatorResponse.Coordinator(key="g", node_id=node, error_code=error, error_message="why")
    return FindCoordinatorResponse(coordinators=(coordinator,))


def test_a_coordinator_is_looked_up_once_until_it_is_invalidated() -> None:
    recorder, coordinator = lookup()
    coordinator.pump(0)
    assert recorder.take() == []
    coordinator.want()
    coordinator.pump(0)
    coordinator.pump(0)
    assert len(recorder.take()) == 1
    recorder.answer(found(), 0)
    coordinator.want()
    coordinator.pump(0)
    assert (coordinator.node, coordinator.wake_at_ms, recorder.take()) == (3, None, [])
    coordinator.forget()
    coordinator.want()
    coordinator.pump(0)
    assert len(recorder.take()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((found(-1, Errors.COORDINATOR_NOT_AVAILABLE), Errors.NONE), id="not available"),
        pytest.param((found(-1, Errors.COORDINATOR_LOAD_IN_PROGRESS), Errors.NONE), id="loading"),
        pytest.param((None, Errors.NETWORK_EXCEPTION), id="disconnected"),
        pytest.param((None, Errors.REQUEST_TIMED_OUT), id="no answer"),
    ],
)
def test_the_lookup_of_an_unavailable_coordinator_is_repeated(answer: tuple[Any, Errors]) -> None:
    recorder, coordinator = lookup()
    coordinator.want()
    coordinator.pump(0)
    recorder.take()
    recorder.answer(answer[0], 50, answer[1])
    assert coordinator.wake_at_ms is not None
    assert 130 <= coordinator.wake_at_ms <= 170
    coordinator.pump(coordinator.wake_at_ms - 1)
    assert recorder.take() == []
    coordinator.pump(coordinator.wake_at_ms)
    assert len(recorder.take()) == 1


def test_a_final_error_of_the_lookup_is_fatal() -> None:
    recorder, coordinator = lookup()
    coordinator.want()
    coordinator.pump(0)
    recorder.take()
    recorder.answer(found(-1, Errors.INVALID_GROUP_ID), 0)
    assert coordinator.fatal == (Errors.INVALID_GROUP_ID, "why")
    assert coordinator.wake_at_ms is None


# ---- the gate and the shell ------------------------------------------------------------------------------------------


def test_the_gate_admits_one_call_at_a_time() -> None:
    gate = Gate("Thing")
    with gate:
        with pytest.raises(ConcurrentModificationException, match="Thing is not safe"), gate:
            pass
        gate.in_callback = True
        with pytest.raises(IllegalStateException, match="callback"), gate:
            pass
        gate.in_callback = False
    with gate:
        pass


def test_the_gate_opens_again_after_an_error() -> None:
    gate = Gate("Thing")
    with pytest.raises(LookupError), gate:
        raise LookupError
    with gate:
        pass


def test_effects_are_performed_although_the_call_raises() -> None:
    calls = Calls()
    performed: list[Any] = []

    class Connection:
        def run(self, action: Any) -> None:
            performed.extend(action(5))

    def call(now_ms: int) -> None:
        calls.emit(BrokerStarted(now_ms))
        raise IllegalStateException("mine")

    with pytest.raises(IllegalStateException, match="mine"):
        perform(Connection(), calls, call)  # type: ignore[arg-type]
    assert performed == [BrokerStarted(5)]


@pytest.mark.parametrize(("seconds", "ms"), [(1, 1000), (0.25, 250), (0, 0), (-1, None), (-0.5, None)], ids=str)
def test_seconds_become_milliseconds(seconds: float, ms: float | None) -> None:
    assert timeout_ms(seconds) == ms


# ---- configuration ---------------------------------------------------------------------------------------------------


def config(conf: dict[str, Any]) -> ClientConfig:
    return ClientConfig(
        {"bootstrap.servers": "x", **conf},
        [ConfigDef("number", 5, "", 1, 10)],
        ignored=frozenset({"old"}),
        rejected={"no": "use yes", "nono": ""},
        client="thing",
    )


def test_defaults_and_given_values() -> None:
    assert (config({})["number"], config({"number": "7"})["number"], config({})["client.id"]) == (5, 7, "shareq")
    assert config({"old": 1, "socket.timeout.ms": 1})["number"] == 5


@pytest.mark.parametrize(
    ("conf", "error", "text"),
    [
        pytest.param({"number": 11}, KafkaException, r"number=11: must be 1\.\.10", id="out of range"),
        pytest.param({"number": "x"}, KafkaException, "number='x'", id="no number"),
        pytest.param({"no.such.key": 1}, KafkaException, "no.such.key", id="unknown"),
        pytest.param({"nono": 1, "no": 1}, ValueError, "not applicable to a thing: no, nono; use yes", id="rejected"),
        pytest.param({"bootstrap.servers": ""}, KafkaException, "bootstrap.servers must be set", id="no address"),
    ],
)
def test_invalid_configurations_are_refused(conf: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        config(conf)


def test_keywords_override_the_dict_and_may_have_underscores() -> None:
    assert merged({"a.b": 1, "c": 2}, {"a_b": 3}) == {"a.b": 3, "c": 2}
    assert merged(None, {"error_cb": print, "group.id": "g"}) == {"error_cb": print, "group.id": "g"}


# ---- messages and partitions -----------------------------------------------------------------------------------------

BUILT = Message(
    "t", 1, 5, b"k", b"value", headers=[("h", b"x")], timestamp=(2, 77), delivery_count=3, leader_epoch=4, latency=0.5
)


@pytest.mark.parametrize(
    "method",
    ["topic", "partition", "offset", "key", "value", "headers", "error", "timestamp", "latency", "leader_epoch",
     "delivery_count", "__len__", "deserialized_key", "deserialized_value"],
)  # fmt: skip
def test_messages_return_the_same_as_those_of_confluent_kafka(method: str) -> None:
    confluent = confluent_kafka.Message("t", 1, 5, b"k", b"value", [("h", b"x")], None, (2, 77), 0.5, 4, 3)
    assert getattr(BUILT, method)() == getattr(confluent, method)()
    assert getattr(Message("t"), method)() == getattr(confluent_kafka.Message("t"), method)()


def test_a_received_message_has_the_fields_of_its_record() -> None:
    (record,) = decode(batch(7, "v", key=b"k"))
    message = ReceivedMessage(record, Origin("t", 2, 1, 3))
    assert (message.topic(), message.partition(), message.offset(), message.key(), message.value()) == (
        "t",
        2,
        7,
        b"k",
        b"v",
    )
    assert (message.timestamp(), message.headers(), message.delivery_count(), message.leader_epoch()) == (
        (1, 1007),
        None,
        1,
        3,
    )
    assert isinstance(message, Message)


def test_setters_change_one_message_only() -> None:
    records = decode(batch(0, "a", "b"))
    origin = Origin("t", 0, 1, 3)
    first, second = (ReceivedMessage(record, origin) for record in records)
    first.set_key("k")
    first.set_value([1, 2])
    first.set_headers([("h", b"1")])
    first.set_topic("u")
    first.set_error(KafkaError(2))
    assert (first.key(), first.value(), first.headers(), first.topic(), first.offset()) == (
        "k",
        [1, 2],
        [("h", b"1")],
        "u",
        0,
    )
    assert first.error() == 2
    assert (second.key(), second.value(), second.topic(), second.error()) == (None, b"b", "t", None)


def test_repr_of_messages() -> None:
    assert repr(BUILT) == "Message('t', 1, 5, key=b'k', value=b'value', delivery_count=3)"
    assert "error=KafkaError" in repr(ReceivedMessage(Fields(1), Origin(error=KafkaError(2))))


def test_topic_partitions_compare_by_topic_and_partition() -> None:
    one = TopicPartition("t", 1, 5, error=KafkaError(3))
    assert one == TopicPartition("t", 1)
    assert {one: "x"}[TopicPartition("t", 1, 9)] == "x"
    assert one != TopicPartition("t", 2)
    assert one != ("t", 1)
    assert min([TopicPartition("u", 0), TopicPartition("t", 2), TopicPartition("t", 1)]) == one
    with pytest.raises(TypeError):
        TopicPartition(3)  # type: ignore[arg-type]
