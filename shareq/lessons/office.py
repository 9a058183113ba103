"""An office for lessons about groups: a topic of several partitions, members by name, and a table of the group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.model.events import (
    GroupEpochBumped,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    SharePartitionsInitialized,
)
from shareq.producer import Producer
from shareq.trace import GroupView, group_view

JOINED_S: Final = 10
"""The longest wait for the answer to the first heartbeat, in seconds of the cluster's time."""


class Office:
    """A cluster on a virtual clock with a topic of some partitions, and a group that starts at the earliest records.

    `brokers`: their number. `config` and `configs` are further configurations of the brokers and of the group.
    """

    group, topic = "crew", "jobs"

    def __init__(
        self,
        partitions: int = 4,
        *,
        brokers: int = 1,
        config: Mapping[str, object] | None = None,
        configs: Mapping[str, object] | None = None,
    ) -> None:
        self.cluster = Cluster(brokers=brokers, config=config, seed=4)
        self.cluster.create_topic(self.topic, partitions=partitions)
        self.cluster.configure_group(self.group, {"share.auto.offset.reset": "earliest", **(configs or {})})

    def join(self, name: str) -> ShareConsumer:
        """A consumer that has become a member by its first heartbeat; it acknowledges explicitly."""
        consumer = ShareConsumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": self.group,
                "client.id": name,
                "share.acknowledgement.mode": "explicit",
            }
        )
        consumer.subscribe([self.topic])
        consumer.poll(0)
        self.cluster.wait(lambda: name in self.epochs, JOINED_S)
        return consumer

    def produce(self, partition: int, records: int) -> None:
        """Append one record batch to a partition."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "linger.ms": 60_000})
        for number in range(records):
            producer.produce(self.topic, f"job {number}", partition=partition)
        producer.flush()

    @property
    def view(self) -> GroupView:
        """The group as its coordinator has it now."""
        return group_view(self.cluster, self.group)

    @property
    def epochs(self) -> dict[str, int]:
        """Member -> its member epoch."""
        return {member.client_id: member.member_epoch for member in self.view.members.values()}

    @property
    def partitions(self) -> dict[str, tuple[int, ...]]:
        """Member -> the partitions of its current assignment."""
        return {
            member.client_id: tuple(index for _, indexes in member.assignment for index in sorted(indexes))
            for member in self.view.members.values()
        }

    def history(self, since_s: float = 0) -> str:
        """The group's events from a time of the cluster on, one a line."""
        entries = self.cluster.journal.select(*_SHOWN, group=self.group)
        names = {e.event.member_id: e.event.client_id for e in entries if isinstance(e.event, MemberJoined)}
        origin_ms = self.cluster.origin_ms
        lines = [((entry.time_ms - origin_ms) / 1000, _text(entry.event, names)) for entry in entries]
        return "\n".join(f"{seconds:7.3f} s  {text}" for seconds, text in lines if seconds >= since_s)

    def __repr__(self) -> str:
        seconds = (self.cluster.now_ms - self.cluster.origin_ms) / 1000
        held = self.partitions
        members = [
            f"{name}: epoch {epoch}, partitions {list(held[name])}" for name, epoch in sorted(self.epochs.items())
        ]
        return f"{seconds:.0f} s, group epoch {self.view.group_epoch}" + "".join(f"\n  {line}" for line in members)


_SHOWN = (MemberJoined, MemberLeft, GroupEpochBumped, SharePartitionsInitialized, MemberReconciled)


def _text(event: object, names: Mapping[str, str]) -> str:
    match event:
        case MemberJoined():
            return f"{event.client_id} joins"
        case MemberLeft():
            return f"{names[event.member_id]} is gone: {event.reason}"
        case GroupEpochBumped():
            return f"group epoch {event.group_epoch}: {event.reason}"
        case SharePartitionsInitialized():
            return f"share-partitions {', '.join(map(str, event.partitions))} are initialized"
        case MemberReconciled():
            return f"{names[event.member_id]} moves to member epoch {event.member_epoch}"
    raise AssertionError(event)
