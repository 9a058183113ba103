"""Three brokers behind the tap: its clients work on while the group's coordinator dies, and then a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from shareq import Admin, NewTopic, Producer, tap
from shareq.kafka import LocalKafka
from shareq.model.events import HoldEnded, LeaderElected, MemberJoined
from shareq.proxy import Tap
from tests.polling import configure, eventually
from tests.proxy.members import ACCEPT, Client, Confluent, Member, Shareq
from tests.proxy.test_kafka import text_of

PARTITIONS = 3
RECORDS = 30
"""The records of each load and partition."""

Accepted = set[tuple[str, int, int]]
"""(client id, partition, offset)."""


class Crew:
    """Consumers of one group, which accept each record. `confirmed`: by the results that the clients have got."""

    def __init__(self, tapped: Tap, group: str, topic: str) -> None:
        self.tapped, self.group, self.topic = tapped, group, topic
        self.produced = 0
        self.confirmed: Accepted = set()
        clients: dict[str, Client] = {"anna": Shareq(), "ben": Confluent(), "cora": Shareq()}
        servers = tapped.bootstrap_servers
        self.members: dict[str, Member] = {
            name: client.open(name, servers, group, topic) for name, client in clients.items()
        }

    def work(self) -> None:
        """Produce, and poll until all records are finished."""
        with Producer({"bootstrap.servers": self.tapped.bootstrap_servers}) as producer:
            for number in range(RECORDS * PARTITIONS):
                producer.produce(self.topic, f"{number}", partition=number % PARTITIONS)
        self.produced += RECORDS
        eventually(self._round, [f"SPSO {self.produced} | empty"] * PARTITIONS)

    def close(self) -> None:
        for name, member in self.members.items():
            member.close()
            self._note(name, member)

    def _round(self) -> list[str]:
        for name, member in self.members.items():
            for record in member.poll(0.2):
                member.acknowledge(record, ACCEPT)
            self._note(name, member)
        return [text_of(self.tapped, self.group, self.topic, partition) for partition in range(PARTITIONS)]

    def _note(self, name: str, member: Member) -> None:
        self.confirmed |= {(name, at.partition, at.offset) for at in member.results() if at.error == "NONE"}


@contextmanager
def killed(kafka: LocalKafka, broker_id: int) -> Iterator[None]:
    """Kill a broker at the begin of the block, beside its work; start it again at the end."""
    with ThreadPoolExecutor(1) as pool:
        death = pool.submit(kafka.kill_broker, broker_id)
        try:
            yield
        finally:
            death.result()
            kafka.start_broker(broker_id)


def accepted(tapped: Tap, group: str) -> Accepted:
    """The accepted records by the journal."""
    joined = [entry.event for entry in tapped.journal.select(MemberJoined, group=group)]
    clients = {event.member_id: event.client_id for event in joined if isinstance(event, MemberJoined)}
    ended = [entry.event for entry in tapped.journal.select(HoldEnded, group=group)]
    return {
        (clients[event.member_id], event.partition, offset)
        for event in ended
        if isinstance(event, HoldEnded) and event.cause == "accept"
        for offset in range(event.first, event.end)
    }


def test_clients_work_on_while_brokers_die(kafka_of_three: LocalKafka, fresh: Callable[[str], str]) -> None:
    """BEHAVIOUR.md, 1.2, 3.7: all records are finished, and each confirmed acceptance is in the journal."""
    group, topic = fresh("crew"), fresh("orders")
    with tap(kafka_of_three.bootstrap_servers, interval_ms=100) as tapped:
        with Admin({"bootstrap.servers": tapped.bootstrap_servers}) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS)]).check()
            configure(admin, group, {"share.auto.offset.reset": "earliest"})
            crew = Crew(tapped, group, topic)
            crew.work()
            with killed(kafka_of_three, admin.describe_share_groups([group])[group].coordinator):
                crew.work()
            leader = admin.describe_topics([topic])[topic].partitions[0].leader
            with killed(kafka_of_three, leader):
                crew.work()
        crew.close()
        elected = [entry.event for entry in tapped.journal.select(LeaderElected)]
        leaders = [event.leader for event in elected if isinstance(event, LeaderElected) and event[:2] == (topic, 0)]
        assert leader in leaders[:-1]
        assert crew.confirmed <= accepted(tapped, group)
        assert len({at[1:] for at in crew.confirmed}) == len(crew.confirmed) > 2 * RECORDS * PARTITIONS
        assert not tapped.failures
