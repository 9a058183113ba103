"""What a newcomer reads after a mistake: a sentence that names the mistake, and what is right."""

from __future__ import annotations

from typing import Any

import pytest

from shareq import Cluster, Producer, ShareConsumer, raster, view
from shareq_widgets import control_room, strip

NAMES = {
    "Cluster": Cluster, "Producer": Producer, "ShareConsumer": ShareConsumer, "control_room": control_room,
    "raster": raster, "strip": strip, "view": view,
}  # fmt: skip

MISTAKES = (
    ("Cluster(brokers=0)", "brokers=0: must be 1..100"),
    ("Cluster(clock='real')", "clock='real': must be 'virtual', 'wall' or a factor in 0.001..1000"),
    ("Cluster(config={'share.record.lock.duration.ms': 5000})", "use cluster.configure_group(group_id, "),
    ("Cluster(persister='disk')", "must be one of state-topic, compacted-topic, control-records, none"),
    ("cluster.create_topic('orders')", "topic 'orders' already exists"),
    ("cluster.create_topic('a b')", "topic 'a b': must be 1 to 249 characters of "),
    ("cluster.create_topic('x', 0)", "topic 'x': 0 partitions: must be 1 or more"),
    ("cluster.configure_group('payments', {'lock': 5})", "lock='5': unknown group configuration"),
    ("cluster.kill_broker(7)", "broker_id=7: must be one of [0, 1, 2]"),
    ("cluster.start_broker(1)", "broker 1 is running already"),
    ("cluster.advance(-1)", "ms=-1: must be >= 0, time does not run backwards"),
    ("cluster.advance('5 s')", "ms='5 s': must be a number of milliseconds"),
    ("cluster.serve()", "use Cluster(clock='wall'), or a factor such as clock=10.0"),
    ("view(cluster, 'payments', 'oders')", "topic='oders': the journal has no such topic, it has 'orders'"),
    ("view(cluster, 'payment', 'orders')", "group='payment': the journal has no such group, it has 'payments'"),
    ("raster(cluster, 'nobody', 'orders')", "group='nobody': the journal has no such group, it has 'payments'"),
    ("strip(cluster, group='payments', topic='orders', partition=9)", "topic 'orders' has the partitions 0"),
    ("ShareConsumer({'bootstrap.servers': servers})", "group.id must be set"),
    ("ShareConsumer({'group.id': 'g'})", "bootstrap.servers must be set: inproc://name or host:port"),
    ("consumer({'auto.offset.reset': 'earliest'})", "share.auto.offset.reset is a configuration of the group"),
    ("consumer({'enable.auto.commit': True})", "not applicable to a share consumer: enable.auto.commit"),
    ("consumer().subscribe('orders')", "expected a list of topics, not str"),
    ("consumer().poll(1)", "Consumer is not subscribed to any topics"),
    ("producer.produce('orders', {'a': 1})", "value must be bytes, str or None, not dict"),
    ("control_room(cluster, group='payments')", "missing 1 required keyword-only argument: 'topic'"),
    ("room('oders')", "topic='oders': the cluster has no such topic, it has 'orders'"),
    ("room('orders', theme='blue')", "theme must be one of auto, light, dark, not 'blue'"),
    ("room('orders').panel.steering.do('produse', 5)", "'produse': must be one of produce"),
    ("room('orders').panel.steering.do('produce', -3)", "produce=-3: must be a whole number in 1..100000"),
    ("room('orders').panel.steering.do('add consumer', 'acept')", "must be one of 'accept', "),
    ("room('orders').begin_story('crash')", "the story must be one of poison, crashed consumer, "),
    ("control_room('127.0.0.1:1', group='g', topic='t')", "127.0.0.1:1 cannot be shown: the cluster does not answer"),
)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names of the mistakes: a cluster on which a consumer has polled."""
    cluster = Cluster(brokers=3)
    cluster.create_topic("orders")
    cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
    servers = {"bootstrap.servers": cluster.bootstrap_servers}

    def consumer(more: dict[str, Any] | None = None) -> ShareConsumer:
        return ShareConsumer({**servers, "group.id": "payments", **(more or {})})

    def room(topic: str, **more: Any) -> Any:
        return control_room(cluster, group="payments", topic=topic, **more)

    producer = Producer(servers)
    producer.produce("orders", b"")
    producer.flush()
    first = consumer()
    first.subscribe(["orders"])
    first.poll(6)
    made = {"cluster": cluster, "servers": cluster.bootstrap_servers, "producer": producer}
    return {**NAMES, **made, "consumer": consumer, "room": room}


@pytest.mark.parametrize(("mistake", "answer"), MISTAKES, ids=[mistake for mistake, _ in MISTAKES])
def test_a_mistake_has_an_answer_that_says_what_is_right(names: dict[str, Any], mistake: str, answer: str) -> None:
    with pytest.raises(Exception) as found:
        exec(mistake, dict(names))
    assert answer in str(found.value)
