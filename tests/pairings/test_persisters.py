"""Share consumers of each kind on a cluster of shareq with each persister; and ordinary consumers, which read a log
with control records. `SHAREQ_PERSISTERS=control-records` runs the other pairings with that persister."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

from shareq import Admin, Cluster, Producer
from shareq.kafka import tools
from tests.kafka.fixtures import shareq_config
from tests.pairings.stage import LONG_LOCKS
from tests.persisters import KEEPING
from tests.polling import PATIENCE_S, QUICK, take
from tests.proxy.members import ACCEPT, REJECT, RELEASE, Client, Got, Shareq, accept

ISOLATION = ("read_uncommitted", "read_committed")


class Stage:
    """A topic with records a to d, each in its own batch. `offsets`: those of all records, in order."""

    def __init__(self, cluster: Cluster, servers: str) -> None:
        self.cluster, self.servers = cluster, servers
        self.offsets: list[int | None] = []
        cluster.create_topic("orders")
        for group in ("g", "other"):
            cluster.configure_group(group, {"share.auto.offset.reset": "earliest", **LONG_LOCKS})
        self.write("a", "b", "c", "d")

    def write(self, *values: str) -> None:
        with Producer({"bootstrap.servers": self.servers, "linger.ms": 0}) as producer:
            for value in values:
                producer.produce("orders", value, on_delivery=lambda _, message: self.offsets.append(message.offset()))
                assert producer.flush(PATIENCE_S) == 0

    def work(self, client: Client) -> None:
        """Accept a, reject c, release b and d; then write e."""
        member = client.open("first", self.servers, "g", "orders")
        for record, kind in zip(take(member, 4), (ACCEPT, RELEASE, REJECT, RELEASE), strict=True):
            member.acknowledge(record, kind)
            member.commit()
        member.close()
        self.write("e")

    def accept(self, client: Client, group: str, count: int) -> list[Got]:
        """Accept the next records of the group."""
        member = client.open("second", self.servers, group, "orders")
        found = accept(member, count)
        assert {result.error for result in member.results()} == {"NONE"}
        member.close()
        return found


@pytest.fixture(params=KEEPING)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Cluster(brokers=1, clock="wall", config=shareq_config() | QUICK, persister=request.param)
    with made as cluster, cluster.serve() as server:
        yield Stage(cluster, server.bootstrap_servers)


def test_each_client_works_with_each_persister(stage: Stage, share_client: Client) -> None:
    """A second consumer continues; another group has every record."""
    stage.work(share_client)
    _, b, _, d, e = stage.offsets
    assert stage.accept(share_client, "g", 3) == [(0, b, 2), (0, d, 2), (0, e, 1)]
    with Admin({"bootstrap.servers": stage.servers}) as admin:
        assert admin.list_share_group_offsets("g").total == 0
    assert stage.accept(share_client, "other", 5) == [(0, offset, 1) for offset in stage.offsets]
    assert bool(len(stage.cluster.log("orders", 0).hidden)) == ("control-records" in repr(stage.cluster))


@pytest.mark.parametrize("isolation", ISOLATION)
def test_an_ordinary_consumer_gets_every_record(stage: Stage, isolation: str) -> None:
    stage.work(Shareq())
    conf = {"bootstrap.servers": stage.servers, "group.id": "reader", "isolation.level": isolation}
    reader = confluent_kafka.Consumer({**conf, "auto.offset.reset": "earliest"})
    reader.assign([confluent_kafka.TopicPartition("orders", 0, 0)])
    found = [(message.offset(), message.value()) for message in reader.consume(5, PATIENCE_S)]
    reader.close()
    assert found == list(zip(stage.offsets, (b"a", b"b", b"c", b"d", b"e"), strict=True))


@pytest.mark.kafka
@pytest.mark.parametrize("isolation", ISOLATION)
def test_javas_ordinary_consumer_gets_every_record(stage: Stage, isolation: str) -> None:
    stage.work(Shareq())
    read = ("--topic", "orders", "--from-beginning", "--isolation-level", isolation, "--max-messages", "5")
    printed = tools.run(
        "kafka-console-consumer",
        *("--bootstrap-server", stage.servers, *read, "--formatter-property", "print.offset=true"),
        *("--timeout-ms", str(1000 * int(PATIENCE_S))),
    ).stdout
    expected = [f"Offset:{offset}\t{value}" for offset, value in zip(stage.offsets, "abcde", strict=True)]
    assert printed.splitlines() == expected
