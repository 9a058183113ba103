"""Working a queue off: turns, verdicts, incidents, and the account of it."""

from __future__ import annotations

import random

import pytest

from shareq.broker import Cluster
from shareq.consumer import Message, ShareConsumer
from shareq.model.errors import ConfigException
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer
from shareq.trace import ledger
from shareq.workload import Incident, Report, failing_once, work_off


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(brokers=3, seed=5)
    made.create_topic("work", 2)
    made.configure_group("g", {"share.auto.offset.reset": "earliest"})
    producer = Producer({"bootstrap.servers": made.bootstrap_servers, "batch.size": 1000})
    for number in range(1000):
        producer.produce("work", str(number), partition=number % 2)
    assert producer.flush() == 0
    return made


def team_of(cluster: Cluster, members: int, mode: str = "explicit") -> list[ShareConsumer]:
    conf = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": "g",
        "share.acknowledgement.mode": mode,
        "max.poll.records": 50,
    }
    team = [ShareConsumer(conf) for _ in range(members)]
    for consumer in team:
        consumer.subscribe(["work"])
    return team


def is_poison(message: Message) -> bool:
    return bool(message.value().endswith(b"7"))


def run(cluster: Cluster, team: list[ShareConsumer], *incidents: Incident, failure_rate: float = 0.0) -> Report:
    def done() -> bool:
        books = ledger(cluster, "g", "work")
        return books.accepted + books.archived == books.records

    return work_off(
        team,
        failing_once(is_poison, failure_rate=failure_rate, rng=random.Random(1)),
        done=done,
        incidents=incidents,
        every_round=lambda: cluster.advance(1000),
    )


def test_without_trouble_every_record_is_delivered_once(cluster: Cluster) -> None:
    report = run(cluster, team_of(cluster, 3))
    assert report.delivered == 1000
    assert dict(report.verdicts) == {"ACCEPT": 900, "REJECT": 100}
    assert repr(report) == "1,000 deliveries to 3 consumers: accept 900, reject 100"
    books = ledger(cluster, "g", "work")
    assert (books.accepted, books.archived, books.attempts) == (900, 100, {1: 1000})


def test_what_fails_once_comes_twice(cluster: Cluster) -> None:
    report = run(cluster, team_of(cluster, 3), failure_rate=1.0)
    assert dict(report.verdicts) == {"ACCEPT": 900, "REJECT": 100, "RELEASE": 900}
    assert ledger(cluster, "g", "work").attempts == {1: 100, 2: 900}


def test_a_consumer_that_an_incident_took_away_gets_no_more_turns(cluster: Cluster) -> None:
    team = team_of(cluster, 3)
    calls: list[str] = []

    def crash() -> None:
        calls.append("crash")
        cluster.crash(team.pop(1))

    def kill() -> None:
        calls.append("kill")
        cluster.kill_broker(0)

    report = run(cluster, team, Incident(400, kill), Incident(200, crash))
    assert calls == ["crash", "kill"]
    assert len(team) == 2
    books = ledger(cluster, "g", "work")
    assert (books.accepted, books.archived, books.accepted_twice) == (900, 100, 0)
    assert report.delivered > 1000


def test_progress_is_reported_delivery_by_delivery(cluster: Cluster) -> None:
    delivered: list[int] = []
    report = work_off(
        team_of(cluster, 2),
        lambda _: AcknowledgeType.ACCEPT,
        done=lambda: True,
        on_delivered=delivered.append,
        poll_timeout=10,
    )
    assert sum(delivered) == report.delivered == 1000
    assert len(delivered) == report.turns


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_a_rate_is_a_share(rate: float) -> None:
    with pytest.raises(ConfigException, match=rf"failure_rate={rate}: must be 0\.0\.\.1\.0"):
        failing_once(is_poison, failure_rate=rate, rng=random.Random(1))
