"""A bench for experiments: one partition, one group, and joining without a wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.consumer import Message, ShareConsumer
from shareq.lessons.life import Life, life
from shareq.model.errors import KafkaException
from shareq.model.state_designs import PERSISTER_CLASS, StateDesign, design_of
from shareq.model.states import AcknowledgeType
from shareq.producer import Producer
from shareq.trace import view


class Bench:
    """A cluster on a virtual clock, one topic of one partition with record batches of the given sizes, and a group
    that starts at `start`: an offset, "earliest" or "latest". `brokers`: their number. `trace_messages`, `persister`,
    `latency_ms`: as of a cluster.

    Joining takes no time: the group's start offset is set before its first member joins, which otherwise takes a
    heartbeat, and its assignment interval is 0. `configs` are further configurations of the group, `config` those of
    the brokers.
    """

    group, topic = "crew", "jobs"

    def __init__(
        self,
        *batches: int,
        start: int | str = "earliest",
        configs: Mapping[str, object] | None = None,
        config: Mapping[str, object] | None = None,
        brokers: int = 1,
        trace_messages: bool = False,
        persister: str | None = None,
        latency_ms: int = 0,
    ) -> None:
        shared: Any = {"trace_messages": trace_messages, "persister": persister, "latency_ms": latency_ms}
        self.cluster = Cluster(brokers=brokers, config=config, **shared)
        self.cluster.create_topic(self.topic)
        self.cluster.configure_group(self.group, {"share.assignment.interval.ms": 0, **(configs or {})})
        self.view = view(self.cluster, self.group, self.topic)
        self._producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers})
        self.produce(*batches)
        self.admin = Admin({"bootstrap.servers": self.cluster.bootstrap_servers})
        self.admin.alter_share_group_offsets(self.group, {self.topic: start}).check()

    def produce(self, *batches: int) -> None:
        """Append record batches of these sizes."""
        for size in batches:
            end = self.cluster.log(self.topic, 0).log_end_offset
            for offset in range(end, end + size):
                self._producer.produce(self.topic, f"job {offset}")
            self._producer.flush()

    def consumer(self, name: str, most: int = 500, **more: object) -> ShareConsumer:
        """A subscribed consumer that acknowledges explicitly; `most` is its max.poll.records. Its first poll joins.

        `more` are configurations with underscores for dots, such as share_acquire_mode="record_limit".
        """
        conf = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "group.id": self.group,
            "client.id": name,
            "max.poll.records": most,
            "share.acknowledgement.mode": "explicit",
        }
        consumer = ShareConsumer({**conf, **{key.replace("_", "."): value for key, value in more.items()}})
        consumer.subscribe([self.topic])
        return consumer

    @property
    def persister(self) -> StateDesign:
        """Where the states of records are kept."""
        return design_of(self.cluster.image.broker_config[PERSISTER_CLASS])

    @property
    def leader(self) -> int:
        """The broker that leads the partition."""
        return self.cluster.image.topics[self.topic].partitions[0].leader

    def life(self, offset: int) -> Life:
        """The life of the record at an offset of the bench's partition."""
        return life(self.cluster, self.group, self.topic, 0, offset)

    def __repr__(self) -> str:
        return str(self.view.snapshot()["text"])


def settle(
    consumer: ShareConsumer, messages: Iterable[Message], verdict: AcknowledgeType = AcknowledgeType.ACCEPT
) -> None:
    """Acknowledge several records with one type and wait until that is durable; KafkaException if the leader
    refuses."""
    for message in messages:
        consumer.acknowledge(message, verdict)
    for error in consumer.commit_sync().values():
        if error is not None:
            raise error


def attempt(
    consumer: ShareConsumer, messages: Iterable[Message], verdict: AcknowledgeType = AcknowledgeType.ACCEPT
) -> str:
    """Do what `settle` does, and return "ok" or the name of the leader's error."""
    try:
        settle(consumer, messages, verdict)
    except KafkaException as refused:
        return refused.error.name()
    return "ok"


def with_one_stuck(bench: Bench, workers: int, seconds: int) -> list[int]:
    """One consumer takes the first batch, accepts all but the first record, and stops polling; the `workers` poll once
    a second and accept their records. Returns the number of records delivered to the workers in each second."""
    silent = bench.consumer("silent", most=1)
    settle(silent, silent.poll(1)[1:])
    team = [bench.consumer(f"worker-{number}", most=1) for number in range(1, workers + 1)]
    delivered = []
    for _ in range(seconds):
        polled = [(worker, worker.poll(0)) for worker in team]
        for worker, messages in polled:
            settle(worker, messages)
        delivered.append(sum(len(messages) for _, messages in polled))
        bench.cluster.advance(1000)
    return delivered
