"""A cluster with traced messages for tests: consumers that accept, release and reject, a crash, a killed broker."""

from __future__ import annotations

from random import Random

from shareq import Cluster, Producer, ShareConsumer
from shareq.model.states import AcknowledgeType

GROUP, TOPIC = "g", "orders"


def traced_cluster(seed: int = 5, *, latency_ms: int = 0, rounds: int = 14) -> Cluster:
    """Three brokers, three partitions; `latency_ms` of each direction of the network."""
    draw = Random(seed)
    cluster = Cluster(brokers=3, seed=seed, trace_messages=True, latency_ms=latency_ms)
    cluster.create_topic(TOPIC, 3)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": "15000"})
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    explicit = {**config, "group.id": GROUP, "share.acknowledgement.mode": "explicit", "max.poll.records": 7}
    first, second = (ShareConsumer({**explicit, "client.id": f"clerk-{n}"}) for n in (1, 2))
    with Producer(config) as producer:
        for consumer in (first, second):
            consumer.subscribe([TOPIC])
            consumer.poll(6)
        for place in range(rounds):
            for number in range(draw.randrange(12)):
                producer.produce(TOPIC, b"x", partition=number % 3)
            producer.flush()
            _work(first, draw)
            if place < rounds // 2:
                _work(second, draw)
            elif place == rounds // 2:
                second.poll(1)
                cluster.crash(second)
                cluster.kill_broker(2)
        cluster.advance(20_000)
        _work(first, draw)
    first.close()
    return cluster


def _work(consumer: ShareConsumer, draw: Random) -> None:
    accept, release, reject = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
    for record in consumer.poll(1):
        consumer.acknowledge(record, draw.choice((accept, accept, accept, release, reject)))
    if draw.random() < 0.3:
        consumer.commit_sync(2)
