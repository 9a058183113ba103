"""Clusters under random moves: polls, crashes, departures, broker failures, failed writes, configurations."""

from __future__ import annotations

from functools import cache
from random import Random

from shareq import Cluster, Producer, ShareConsumer

GROUP, TOPICS = "g", {"orders": 3, "bills": 1}


def random_cluster(seed: int, moves: int = 60, *, trace_messages: bool = False) -> Cluster:
    """A cluster with a journal of some seconds to minutes, after random moves. Members are not closed at the end."""
    draw = Random(seed)
    cluster = Cluster(brokers=3, seed=seed, trace_messages=trace_messages, latency_ms=draw.choice((0, 3)))
    for topic, partitions in TOPICS.items():
        cluster.create_topic(topic, partitions)
    cluster.configure_group(GROUP, {"share.auto.offset.reset": "earliest"})
    crew: list[ShareConsumer] = []
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for _ in range(moves):
            move(draw, cluster, producer, crew)
    return cluster


@cache
def recorded_cluster(seed: int, moves: int = 60) -> Cluster:
    """A random cluster for tests that only read its journal."""
    return random_cluster(seed, moves)


def move(draw: Random, cluster: Cluster, producer: Producer, crew: list[ShareConsumer]) -> None:
    """One random move."""
    kind = draw.choices(
        ("produce", "poll", "advance", "join", "crash", "close", "kill", "start", "fail"),
        (6, 14, 4, 4, 1, 1, 1, 2, 1),
    )[0]
    if kind == "produce":
        for _ in range(draw.randrange(30)):
            topic = draw.choice(list(TOPICS))
            producer.produce(topic, b"x", partition=draw.randrange(TOPICS[topic]))
    elif kind == "poll" and crew:
        draw.choice(crew).poll(draw.choice((1, 2, 3)))
    elif kind == "join" and len(crew) < 4:
        config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP, "client.id": f"clerk-{len(crew)}"}
        crew.append(ShareConsumer(config))
        crew[-1].subscribe(draw.sample(list(TOPICS), draw.choice((1, 2))))
        crew[-1].poll(2)
    elif kind == "advance":
        cluster.advance(draw.choice((500, 6_000, 20_000)))
    else:
        _trouble(kind, draw, cluster, crew)


def _trouble(kind: str, draw: Random, cluster: Cluster, crew: list[ShareConsumer]) -> None:
    running = list(cluster.brokers_alive)
    stopped = sorted({0, 1, 2} - set(running))
    if kind in ("crash", "close") and crew:
        leaving = crew.pop(draw.randrange(len(crew)))
        if kind == "crash":
            cluster.crash(leaving)
        else:
            leaving.close()
    elif kind == "kill" and len(running) > 1:
        draw.choice((cluster.kill_broker, cluster.stop_broker))(draw.choice(running))
    elif kind == "start" and stopped:
        cluster.start_broker(draw.choice(stopped))
    elif kind == "fail":
        cluster.fail_appends("__share_group_state", times=draw.choice((1, 3)))
