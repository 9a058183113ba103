"""Transactional acknowledgements over TCP: shareq/leader/experiments/BEHAVIOUR.md, section 7."""

from __future__ import annotations

from shareq import Cluster, Message, Producer, ShareConsumer
from tests.log.committed import committed_values
from tests.polling import QUICK


def test_a_loop_over_tcp_processes_each_record_once() -> None:
    """An aborted transaction is repeated; a committed one is not."""
    config = QUICK | {"shareq.experiments.enable": True}
    with Cluster(brokers=2, clock="wall", config=config) as cluster:
        for topic in ("t", "out"):
            cluster.create_topic(topic)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest"})
        with cluster.serve() as server:
            conf = {"bootstrap.servers": server.bootstrap_servers}
            with (
                Producer({**conf, "transactional.id": "loop"}) as producer,
                ShareConsumer({**conf, "group.id": "g"}) as consumer,
            ):
                producer.init_transactions()
                producer.begin_transaction()
                for number in range(4):
                    producer.produce("t", f"{number}")
                producer.commit_transaction()
                consumer.subscribe(["t"])
                for ends in (producer.abort_transaction, producer.commit_transaction):
                    held: list[Message] = []
                    while len(held) < 4:
                        held += consumer.poll(5)
                    producer.begin_transaction()
                    for message in held:
                        producer.produce("out", message.value())
                    pairs = [(message, "REJECT" if message.offset() == 3 else "ACCEPT") for message in held]
                    producer.send_share_acknowledgements_to_transaction(pairs, consumer.share_group_metadata())
                    ends()
                assert [message.delivery_count() for message in held] == [2, 2, 2, 2]
                assert list(consumer.poll(1)) == []
        assert committed_values(cluster.log("out", 0)) == ["0", "1", "2", "3"]
