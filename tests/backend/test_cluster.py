"""A cluster on the topics of an Apache Kafka, in this process. BEHAVIOUR.md of the backend."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import confluent_kafka
import pytest

from shareq import Admin, Cluster, ConfigException, KafkaException, Producer, metrics
from shareq.broker.backend import runtime
from shareq.broker.backend.processes import NODES
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC
from shareq.kafka import LocalKafka
from shareq.model.errors import Errors, IllegalStateException
from shareq.model.events import LeaderElected, TopicCreated, TopicDeleted
from shareq.model.messages.base import Request, Response
from shareq.model.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from shareq.model.states import AcknowledgeType
from shareq.trace.analysis.metrics import LEFT_OUT
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.wire.frames import decode_response, encode_request
from tests.backend.stage import GROUP, Stage, finish, seen
from tests.kafka.fixtures import START_S
from tests.polling import PATIENCE_S, eventually, take
from tests.proxy.sockets import exactly

Fresh = Callable[[str], str]


@pytest.fixture
def stage(backend: LocalKafka, fresh: Fresh) -> Iterator[Stage]:
    made = Stage(backend, fresh)
    with made.stack:
        yield made


@pytest.fixture
def newest(kafka: LocalKafka, fresh: Fresh) -> Iterator[Stage]:
    made = Stage(kafka, fresh)
    with made.stack:
        yield made


def events_of(cluster: Cluster) -> list[Any]:
    return [entry.event for entry in cluster.journal.entries()]


def slots(cluster: Cluster, topic: str) -> list[int]:
    """The slots of the processes that lead the partitions of a topic, each once per partition."""
    return sorted(partition.leader // NODES for partition in cluster.image.topics[topic].partitions)


# ---- a process ends, the next one continues ---------------------------------------------------------------------


@pytest.mark.kafka
def test_the_next_process_continues_with_group_states_and_configurations(stage: Stage) -> None:
    first = stage.prepared()
    stage.produce("a", "b", "c", "d")
    consumer = stage.consumer(first)
    a, b, c, d = take(consumer, 4)
    finish(consumer, [b])
    finish(consumer, [c], AcknowledgeType.RELEASE)
    del a, d
    consumer.close()
    first.close()

    second = stage.cluster()
    assert second.image.group_configs[stage.group] == {key: str(value) for key, value in GROUP.items()}
    again = take(stage.consumer(second), 3)
    assert seen(again) == [(b"a", 2), (b"c", 2), (b"d", 2)]


@pytest.mark.kafka
def test_metrics_that_follow_from_no_event_are_those_of_the_process(stage: Stage) -> None:
    cluster = stage.prepared()
    stage.produce("a")
    consumer = stage.consumer(cluster)
    (message,) = take(consumer, 1)
    assert metrics(cluster).value("SharePartitionsCount") == 1
    assert metrics(cluster).value("num-partitions", state="failed") == 0
    assert metrics(cluster).left_out == LEFT_OUT
    finish(consumer, [message])
    consumer.close()
    eventually(lambda: metrics(cluster).value("SharePartitionsCount"), 0)


@pytest.mark.kafka
def test_what_is_accepted_is_so_for_good(stage: Stage) -> None:
    first = stage.prepared()
    stage.produce("a", "b", "c")
    consumer = stage.consumer(first)
    a, b, _ = take(consumer, 3)
    finish(consumer, [a, b])
    assert stage.lag(first) == 1
    consumer.close()
    first.close()
    second = stage.cluster()
    assert stage.lag(second) == 1
    assert seen(take(stage.consumer(second), 1)) == [(b"c", 2)]


def test_leaders_continue_after_the_topic_of_terms_was_deleted(newest: Stage) -> None:
    """BEHAVIOUR.md, 6.7: the epochs in the states are those of terms that a new topic does not reach."""
    first = newest.prepared()
    for number in range(10):
        first.configure_group(newest.group, {"share.record.lock.duration.ms": 600_000 + number})
    first.close()
    second = newest.cluster()
    newest.produce("a", "b", "c")
    consumer = newest.consumer(second)
    a, b, _ = take(consumer, 3)
    finish(consumer, [a, b])
    consumer.close()
    second.close()
    with Admin({"bootstrap.servers": newest.kafka.bootstrap_servers}) as admin:
        admin.delete_topics([GROUP_CONFIGS_TOPIC]).check()
        eventually(lambda: GROUP_CONFIGS_TOPIC in admin.list_topics(), False)
    third = newest.cluster()
    consumer = newest.consumer(third)
    messages = take(consumer, 1)
    assert seen(messages) == [(b"c", 2)]
    finish(consumer, messages)
    assert newest.lag(third) == 0


@pytest.mark.kafka
def test_served_processes_share_the_work(stage: Stage) -> None:
    first = stage.prepared(2)
    first.serve()
    held = stage.consumer(first)
    second = stage.cluster()
    second.serve()
    eventually(lambda: [slots(cluster, stage.topic) for cluster in (first, second)], [[0, 1], [0, 1]])
    stage.produce("a", "b")
    finish(held, messages := take(held, 2))
    assert seen(messages) == [(b"a", 1), (b"b", 1)]
    other = stage.consumer(second)
    stage.produce("c", "d")
    got: list[Any] = []
    while len(got) < 2:
        for consumer in (held, other):
            if found := list(consumer.poll(0.1)):
                finish(consumer, found)
                got += found
    assert sorted(seen(got)) == [(b"c", 1), (b"d", 1)]
    assert stage.lag(first) == stage.lag(second) == 0


def test_a_process_that_is_not_served_uses_those_that_are(newest: Stage) -> None:
    first = newest.prepared(2)
    first.serve()
    second = newest.cluster()
    second.configure_group(newest.group, {"share.delivery.count.limit": 7})
    assert first.image.group_configs[newest.group]["share.delivery.count.limit"] == "7"
    newest.produce("a", "b")
    finish(consumer := newest.consumer(second), messages := take(consumer, 2))
    assert seen(messages) == [(b"a", 1), (b"b", 1)]
    assert slots(second, newest.topic) == [0, 0]
    assert newest.lag(first) == 0


def test_a_process_that_can_reach_no_other_is_refused(newest: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "ALONE_S", 0.2)
    newest.cluster()
    with pytest.raises(KafkaException, match="another process works on it that cannot be reached"):
        newest.cluster()


# ---- logs and topics of the backend -----------------------------------------------------------------------------


@pytest.mark.kafka
def test_records_of_other_programs_arrive(stage: Stage) -> None:
    consumer = stage.consumer(stage.prepared())
    stage.produce("a")
    finish(consumer, first := take(consumer, 1))
    stage.produce("b", "c")
    finish(consumer, rest := take(consumer, 2))
    assert seen(first + rest) == [(b"a", 1), (b"b", 1), (b"c", 1)]


def test_an_aborted_transaction_is_skipped(newest: Stage) -> None:
    cluster = newest.prepared()
    cluster.configure_group(newest.group, {"share.isolation.level": "read_committed"})
    conf = {"bootstrap.servers": newest.kafka.bootstrap_servers, "transactional.id": newest.topic}
    producer = confluent_kafka.Producer(conf)
    producer.init_transactions(PATIENCE_S)
    for value, end in (("aborted", producer.abort_transaction), ("committed", producer.commit_transaction)):
        producer.begin_transaction()
        producer.produce(newest.topic, value)
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)
    assert seen(take(newest.consumer(cluster), 1)) == [(b"committed", 1)]


def test_deleted_records_move_the_start(newest: Stage) -> None:
    cluster = newest.prepared()
    newest.produce("a", "b", "c")
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.delete_records({(newest.topic, 0): 2}).check()
        consumer = newest.consumer(cluster)
        assert seen(take(consumer, 1)) == [(b"c", 1)]


def test_a_topic_that_is_deleted_and_created_again_is_a_new_one(newest: Stage) -> None:
    cluster = newest.prepared()
    newest.produce("old")
    consumer = newest.consumer(cluster)
    finish(consumer, old := take(consumer, 1))
    assert seen(old) == [(b"old", 1)]
    with Admin({"bootstrap.servers": newest.kafka.bootstrap_servers}) as admin:
        admin.delete_topics([newest.topic]).check()
        eventually(lambda: newest.topic in cluster.image.topics, False)
        admin.create_topics([newest.topic]).check()
    newest.produce("new")
    assert seen(take(consumer, 1)) == [(b"new", 1)]
    events = [type(event) for event in events_of(cluster) if getattr(event, "topic", "") == newest.topic]
    assert [kind for kind in events if kind in (TopicCreated, TopicDeleted)] == [
        TopicCreated,
        TopicDeleted,
        TopicCreated,
    ]


def test_new_partitions_are_assigned(newest: Stage) -> None:
    cluster = newest.prepared()
    consumer = newest.consumer(cluster)
    newest.produce("a")
    finish(consumer, take(consumer, 1))
    with Admin({"bootstrap.servers": newest.kafka.bootstrap_servers}) as admin:
        admin.create_partitions({newest.topic: 3}).check()
    with Producer({"bootstrap.servers": newest.kafka.bootstrap_servers}) as producer:
        eventually(lambda: len(cluster.image.topics[newest.topic].partitions), 3)
        producer.produce(newest.topic, "far", partition=2)
    assert seen(take(consumer, 1)) == [(b"far", 1)]


# ---- views ------------------------------------------------------------------------------------------------------


def test_the_journal_shows_topics_leaders_and_windows(newest: Stage) -> None:
    cluster = newest.prepared()
    newest.produce("a", "b", "c")
    consumer = newest.consumer(cluster)
    a, _, _ = take(consumer, 3)
    finish(consumer, [a])
    timeline = PartitionTimeline(cluster.journal, newest.group, newest.topic, 0)
    timeline.refresh()
    now = timeline.state(len(timeline.entries))
    assert (now.spso, now.window_end, now.log_end) == (1, 3, 3)
    assert [kind for kind in map(type, events_of(cluster)) if kind is LeaderElected]


# ---- groups of other types --------------------------------------------------------------------------------------


def test_an_id_is_of_one_type_on_both_sides(newest: Stage) -> None:
    cluster = newest.prepared()
    newest.produce("a")
    take(newest.consumer(cluster), 1)
    server = newest.stack.enter_context(cluster.serve())
    conf = {"bootstrap.servers": server.bootstrap_servers, "group.id": newest.group}
    errors = {"classic": "Inconsistent group protocol", "consumer": "The group id does not exist"}  # as Kafka's
    for protocol, error in errors.items():
        found: list[Any] = []
        other = confluent_kafka.Consumer({**conf, "group.protocol": protocol, "error_cb": found.append})
        newest.stack.callback(other.close)
        other.subscribe([newest.topic])
        eventually(partial(has_failed, other, found), True)
        assert error in str(found[0])


def test_an_id_is_of_one_type_at_every_process(newest: Stage) -> None:
    """BEHAVIOUR.md, 5.5: also at one that does not lead the shard of the share group."""
    first = newest.prepared(2)
    first.serve()
    second = newest.cluster()
    second.serve()
    eventually(lambda: [slots(cluster, newest.topic) for cluster in (first, second)], [[0, 1], [0, 1]])
    newest.produce("a")
    take(newest.consumer(first), 1)
    protocols = (JoinGroupRequest.Protocol(name="range", metadata=b""),)
    for cluster in (first, second):
        joining = JoinGroupRequest(
            group_id=newest.group, session_timeout_ms=6000, rebalance_timeout_ms=6000, member_id="",
            protocol_type="consumer", protocols=protocols,
        )  # fmt: skip
        response = exchange(cluster, joining, 9)
        assert isinstance(response, JoinGroupResponse)
        assert response.error_code is Errors.INCONSISTENT_GROUP_PROTOCOL


def exchange(cluster: Cluster, request: Request, version: int) -> Response:
    """Send a request to the served process of a cluster."""
    assert cluster._server is not None
    host, _, port = cluster._server.bootstrap_servers.partition(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as opened:
        opened.sendall(encode_request(request, version, 1, "test"))
        size = int.from_bytes(exactly(opened, 4), "big")
        return decode_response(request.API_KEY, version, exactly(opened, size))[1]


def has_failed(consumer: confluent_kafka.Consumer, errors: list[Any]) -> bool:
    """Poll once; true if the callback or the poll has reported an error."""
    message = consumer.poll(0.1)
    if message is not None and message.error():
        errors.append(message.error())
    return bool(errors)


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param({"brokers": 3}, "brokers=3: brokers and network are those of the backend", id="brokers"),
        pytest.param({"racks": ["a"]}, "racks=['a']: brokers and network are", id="racks"),
        pytest.param({"latency_ms": 5}, "latency_ms=5: brokers and network are", id="latency"),
        pytest.param({"clock": "virtual"}, "clock='virtual': a backend has real time", id="virtual clock"),
        pytest.param({"backend": "nowhere"}, "bootstrap.servers", id="no address"),
        pytest.param({"config": {"share.isolation.level": "x"}}, "configure_group", id="group's key"),
    ],
)
def test_arguments_that_a_backend_does_not_allow(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ConfigException, KafkaException), match=re.escape(text)):
        Cluster(**{"backend": "127.0.0.1:1", **arguments})


def test_a_backend_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "START_S", 0.2)
    with pytest.raises(KafkaException, match=r"backend='127.0.0.1:1': not ready within 0.2 s: .*127.0.0.1:1"):
        Cluster(backend="127.0.0.1:1")


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda cluster: cluster.kill_broker(0), id="kill"),
        pytest.param(lambda cluster: cluster.stop_broker(0), id="stop"),
        pytest.param(lambda cluster: cluster.start_broker(0), id="start"),
        pytest.param(lambda cluster: cluster.elect_preferred_leaders(), id="elect"),
        pytest.param(lambda cluster: cluster.fail_appends("orders"), id="fail appends"),
        pytest.param(lambda cluster: cluster.delay_appends("__share_group_state", 5), id="delay appends"),
        pytest.param(lambda cluster: cluster.clean_logs(), id="clean"),
        pytest.param(lambda cluster: cluster.log("orders", 0), id="log"),
    ],
)
def test_what_only_brokers_in_memory_can_do_is_refused(newest: Stage, call: Callable[[Cluster], object]) -> None:
    cluster = newest.cluster()
    with pytest.raises(IllegalStateException, match=f"are those of {newest.kafka.bootstrap_servers}"):
        call(cluster)


def test_a_topic_that_the_backend_refuses_is_an_error(newest: Stage) -> None:
    cluster = newest.prepared()
    with pytest.raises(KafkaException, match="already exists"):
        cluster.create_topic(newest.topic)


# ---- the backend fails ------------------------------------------------------------------------------------------


@pytest.mark.kafka
def test_clients_continue_when_the_backend_restarts(fresh: Fresh) -> None:
    with LocalKafka(timeout=START_S) as kafka:
        stage = Stage(kafka, fresh)
        with stage.stack:
            cluster = stage.prepared()
            stage.produce("a", "b")
            consumer = stage.consumer(cluster)
            a, b = take(consumer, 2)
            finish(consumer, [a])
            server = stage.stack.enter_context(cluster.serve())
            conf = {"bootstrap.servers": server.bootstrap_servers, "request.timeout.ms": START_S * 1000}
            admin = stage.stack.enter_context(Admin(conf))
            kafka.kill_broker(0)
            consumer.acknowledge(b)
            consumer.commit_async()
            with ThreadPoolExecutor(1) as pool:
                listed = pool.submit(admin.list_topics)  # a client that is new waits for the backend
                kafka.start_broker(0)
                assert stage.topic in listed.result()
            stage.produce("c")
            (c,) = take(consumer, 1)
            assert seen([c]) == [(b"c", 1)]
            finish(consumer, [c])
            eventually(lambda: stage.lag(cluster), 0)
