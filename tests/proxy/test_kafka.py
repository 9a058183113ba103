"""The tap in front of Apache Kafka: its journal equals what the clients' own program has got and acknowledged."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import confluent_kafka
import pytest

from shareq import AcknowledgeType, Admin, NewTopic, Producer, ShareConsumer, tap, view
from shareq.kafka import LocalKafka, tools
from shareq.model.errors import ConfigException, IllegalStateException
from shareq.model.events import AcknowledgementsSent, HoldEnded, LeaderElected, MemberJoined, MemberLeft, RecordsHeld
from shareq.proxy import Tap
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, configure, eventually, take
from tests.tools.java_tools import started
from tests.trace.histories import fold

RECORDS = 60
PARTITIONS = 2
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
CAUSE = {ACCEPT: "accept", RELEASE: "release", REJECT: "reject"}

Happening = tuple[str, int, int, str, int]
"""(what, partition, offset, client id, delivery count)."""


@pytest.fixture
def tapped(kafka: Reachable) -> Iterator[Tap]:
    with tap(kafka.bootstrap_servers, interval_ms=100) as made:
        yield made
        assert not made.failures


@pytest.fixture
def names(tapped: Tap, fresh: Callable[[str], str]) -> tuple[str, str]:
    """A group, and a topic with records."""
    group, topic, servers = fresh("crew"), fresh("orders"), {"bootstrap.servers": tapped.bootstrap_servers}
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)]).check()
        configs = {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 60_000}
        configure(admin, group, configs)
    with Producer(servers) as producer:
        for number in range(RECORDS):
            producer.produce(topic, f"{number}", partition=number % PARTITIONS)
    return group, topic


def of_shareq(conf: dict[str, object]) -> Any:
    return ShareConsumer({**conf, "max.poll.records": 7})


def of_confluent(conf: dict[str, object]) -> Any:
    return confluent_kafka.ShareConsumer({**conf, "max.poll.records": 7})


def poll(consumer: Any) -> list[Any]:
    found: list[Any] = consumer.poll(0.5)
    return [message for message in found if not message.error()]


@pytest.mark.parametrize("make", [of_shareq, of_confluent])
def test_the_journal_equals_the_log_of_the_program(
    tapped: Tap, names: tuple[str, str], seed: int, make: Callable[[dict[str, object]], Any]
) -> None:
    """BEHAVIOUR.md, 3.1, 3.2, 4.4: every record got and every acknowledgement, offset by offset."""
    (group, topic), rng = names, random.Random(seed)
    program: Counter[Happening] = Counter()
    crew = {}
    for name in ("anna", "ben"):
        conf = {"bootstrap.servers": tapped.bootstrap_servers, "group.id": group, "client.id": name}
        crew[name] = make({**conf, "share.acknowledgement.mode": "explicit"})
        crew[name].subscribe([topic])
    finished: set[tuple[int, int]] = set()
    while len(finished) < RECORDS:
        name = rng.choice(["anna", "ben"])
        for message in poll(crew[name]):
            at = (message.partition(), message.offset())
            verdict = rng.choice([ACCEPT, ACCEPT, REJECT] + [RELEASE] * (message.delivery_count() < 4))
            crew[name].acknowledge(message, confluent_verdict(make, verdict))
            program["acquire", *at, name, message.delivery_count()] += 1
            program[CAUSE[verdict], *at, name, message.delivery_count()] += 1
            if verdict != RELEASE:
                finished.add(at)
        crew[name].commit_sync()
    for consumer in crew.values():
        consumer.close()
    assert tapped.refresh()
    assert seen(tapped, group) == program
    sent = [entry.event for entry in tapped.journal.select(AcknowledgementsSent, group=group)]
    assert not any(event.error for event in sent if isinstance(event, AcknowledgementsSent))
    for partition in range(PARTITIONS):
        fold(tapped.journal, group, topic, partition)
        shown = partial(text_of, tapped, group, topic, partition)
        eventually(shown, f"SPSO {RECORDS // PARTITIONS} | empty")


def text_of(source: Any, group: str, topic: str, partition: int = 0) -> str:
    return str(view(source, group, topic, partition).snapshot()["text"])


def confluent_verdict(make: Callable[..., Any], verdict: AcknowledgeType) -> Any:
    """The type of acknowledgement of the client's own library."""
    if make is of_shareq:
        return verdict
    return getattr(confluent_kafka.AcknowledgeType, verdict.name)


def seen(tapped: Tap, group: str) -> Counter[Happening]:
    """The acquisitions and confirmed acknowledgements in the journal, by the names of the clients.

    Acquired records that no poll has returned before the consumer was closed end with its session.
    """
    joined = [entry.event for entry in tapped.journal.select(MemberJoined, group=group)]
    clients = {event.member_id: event.client_id for event in joined if isinstance(event, MemberJoined)}
    found: Counter[Happening] = Counter()
    for entry in tapped.journal.select(RecordsHeld, HoldEnded, group=group):
        event = entry.event
        assert isinstance(event, RecordsHeld | HoldEnded)
        for offset in range(event.first, event.end):
            key = (event.partition, offset, clients[event.member_id], event.delivery_count)
            if isinstance(event, RecordsHeld):
                found["acquire", *key] += 1
            elif not event.inferred:
                found[event.cause, *key] += 1
            else:
                found["acquire", *key] -= 1
    return +found


def test_a_java_consumer_is_seen(tapped: Tap, names: tuple[str, str]) -> None:
    """Kafka's own console share consumer, which accepts what it prints."""
    group, topic = names
    arguments = ("--bootstrap-server", tapped.bootstrap_servers, "--topic", topic, "--group", group)
    command = tools.command("kafka-console-share-consumer", *arguments, "--max-messages", str(RECORDS))
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert sorted(map(int, done.stdout.split())) == [*range(RECORDS)]
    eventually(lambda: [event.reason for event in events(tapped, group, MemberLeft)], ["left"])
    for partition in range(PARTITIONS):
        held, ended = (
            sorted(offset for event in events(tapped, group, kind) if event.partition == partition
                   for offset in range(event.first, event.end))
            for kind in (RecordsHeld, HoldEnded)
        )  # fmt: skip
        assert held == ended == [*range(RECORDS // PARTITIONS)]
    assert {(event.cause, event.inferred) for event in events(tapped, group, HoldEnded)} == {("accept", False)}


def test_javas_tools_print_the_same_through_the_tap(kafka: Reachable, tapped: Tap, names: tuple[str, str]) -> None:
    group, topic = names
    conf = {"bootstrap.servers": tapped.bootstrap_servers, "group.id": group, "client.id": "anna"}
    with ShareConsumer(conf) as anna, started() as java:
        anna.subscribe([topic])
        take(anna, RECORDS)
        anna.commit_sync()
        for tool, *args in (
            ("kafka-share-groups", "--describe", "--group", group),
            ("kafka-share-groups", "--describe", "--group", group, "--members"),
            ("kafka-topics", "--describe", "--topic", topic),
            ("kafka-configs", "--describe", "--group", group),
        ):
            direct, tapping = (
                java.run(tool, "--bootstrap-server", address, *args)
                for address in (kafka.bootstrap_servers, tapped.bootstrap_servers)
            )
            assert (tapping.returncode, tapping.stdout) == (0, direct.stdout), tapping.stderr
            assert (group if "--group" in args else topic) in tapping.stdout


def events(tapped: Tap, group: str, kind: type) -> list[Any]:
    return [entry.event for entry in tapped.journal.select(kind, group=group)]


def test_a_lock_that_kafka_ends_is_inferred(tapped: Tap, names: tuple[str, str]) -> None:
    """BEHAVIOUR.md, 3.4: the next delivery confirms it."""
    group, topic = names
    with Admin({"bootstrap.servers": tapped.bootstrap_servers}) as admin:
        configure(admin, group, {"share.record.lock.duration.ms": 1000})
    conf = {"bootstrap.servers": tapped.bootstrap_servers, "group.id": group, "share.acknowledgement.mode": "explicit"}
    with ShareConsumer({**conf, "client.id": "anna"}) as anna:
        anna.subscribe([topic])
        take(anna, 1)
        eventually(lambda: bool(events(tapped, group, HoldEnded)), True)
        ended = events(tapped, group, HoldEnded)[0]
        assert (ended.cause, ended.inferred, ended.delivery_count) == ("lock_timeout", True, 1)
    with ShareConsumer({**conf, "client.id": "ben"}) as ben:
        ben.subscribe([topic])
        eventually(partial(delivered_again, tapped, group, ben), True)


def delivered_again(tapped: Tap, group: str, consumer: Any) -> bool:
    """Poll and accept; true if a record has its second delivery: a consumer can begin with records that are new."""
    for message in poll(consumer):
        consumer.acknowledge(message, ACCEPT)
    consumer.commit_sync()
    return any(event.delivery_count > 1 for event in events(tapped, group, RecordsHeld))


def test_clients_follow_a_new_leader_through_the_tap(kafka_of_three: LocalKafka, fresh: Callable[[str], str]) -> None:
    """BEHAVIOUR.md, 1.2, 3.7: three brokers; the leader is killed, and its successor delivers again what was held."""
    group, topic = fresh("crew"), fresh("orders")
    with tap(kafka_of_three.bootstrap_servers, interval_ms=100) as made:
        servers = {"bootstrap.servers": made.bootstrap_servers}
        with Admin(servers) as admin:
            admin.create_topics([NewTopic(topic, 1)]).check()
            configure(admin, group, {"share.auto.offset.reset": "earliest"})
            leader = admin.describe_topics([topic])[topic].partitions[0].leader
        with Producer(servers) as producer:
            for number in range(10):
                producer.produce(topic, f"{number}")
        conf = {**servers, "group.id": group, "client.id": "anna", "share.acknowledgement.mode": "explicit"}
        with ShareConsumer(conf) as anna:
            anna.subscribe([topic])
            messages = take(anna, 10)
            for message in messages:
                anna.acknowledge(message, ACCEPT if message.offset() < 4 else RELEASE)
            assert not any(anna.commit_sync().values())
            kafka_of_three.kill_broker(leader)
            try:
                again = take(anna, 6)
                assert sorted(message.offset() for message in again) == [4, 5, 6, 7, 8, 9]
                for message in again:
                    anna.acknowledge(message, ACCEPT)
                assert not any(anna.commit_sync().values())
            finally:
                kafka_of_three.start_broker(leader)
        eventually(lambda: text_of(made, group, topic), "SPSO 10 | empty")
        elected = [entry.event.leader for entry in made.journal if isinstance(entry.event, LeaderElected)]
        assert elected[0] == leader
        assert set(elected) != {leader}
        assert not made.failures


@pytest.mark.kafka
def test_a_local_kafka_with_a_tap() -> None:
    """Clients get the address of the tap; views take the local Kafka as they take a cluster."""
    with LocalKafka(tap=True) as kafka:
        assert kafka.bootstrap_servers == kafka.tap.bootstrap_servers != kafka.direct_servers
        servers = {"bootstrap.servers": kafka.bootstrap_servers}
        with Admin(servers) as admin:
            admin.create_topics([NewTopic("orders", 1)]).check()
            configure(admin, "crew", {"share.auto.offset.reset": "earliest"})
        with Producer(servers) as producer:
            producer.produce("orders", "0")
        with ShareConsumer({**servers, "group.id": "crew", "client.id": "anna"}) as anna:
            anna.subscribe(["orders"])
            take(anna, 1)
            eventually(lambda: text_of(kafka, "crew", "orders").partition(" (")[0], "SPSO 0 | A | SPEO 0")
    assert "closed" in repr(kafka.tap)
    with pytest.raises(IllegalStateException, match="not running"):
        kafka.bootstrap_servers  # noqa: B018


def test_a_local_kafka_without_a_tap() -> None:
    with pytest.raises(IllegalStateException, match=r"LocalKafka\(tap=True\)"):
        LocalKafka().tap  # noqa: B018
    with pytest.raises(ConfigException, match="trace_messages=True: needs tap=True"):
        LocalKafka(trace_messages=True)
