"""A cluster at an address, a group of it, and clients."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from shareq import Admin, Monitor, NewTopic, Producer, ShareConsumer, monitor
from tests.polling import configure

RECORDS = 10


class Stage:
    """A group and its topics, of which `topic` is the first; `close` closes all clients."""

    def __init__(self, address: str, group: str = "crew", topic: str = "orders", *topics: str) -> None:
        self.address, self.group, self.topic, self.topics = address, group, topic, (topic, *topics)
        self.conf: dict[str, object] = {"bootstrap.servers": address}
        self.stack = ExitStack()
        self.admin = self.stack.enter_context(Admin(self.conf))

    def create(self, partitions: int, **configs: object) -> None:
        """Create the topic, with records in its first partition, and configure the group."""
        self.admin.create_topics([NewTopic(self.topic, partitions)]).check()
        configure(self.admin, self.group, {"share.auto.offset.reset": "earliest", **configs})
        self.produce(self.topic, RECORDS)

    def produce(self, topic: str, count: int, partition: int = 0, **options: Any) -> None:
        with Producer(self.conf) as producer:
            for number in range(count):
                producer.produce(topic, f"{number}", partition=partition, **options)

    def consumer(
        self, name: str = "anna", group: str = "", topics: Iterable[str] = (), most: int = 10
    ) -> ShareConsumer:
        conf = {**self.conf, "group.id": group or self.group, "client.id": name, "max.poll.records": most}
        made = self.stack.enter_context(ShareConsumer({**conf, "share.acknowledgement.mode": "explicit"}))
        made.subscribe(list(topics or self.topics))
        return made

    def monitor(self, *groups: str, interval_ms: int = 2000) -> Monitor:
        return self.stack.enter_context(monitor(self.address, groups or None, interval_ms=interval_ms))

    def close(self) -> None:
        self.stack.close()
