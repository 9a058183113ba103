"""A cluster in this process on virtual time, its clients, and monitors whose requests and responses a test sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shareq import AcknowledgeType, Admin, Cluster, Monitor, Producer, ShareConsumer, monitor
from shareq.admin.core import AdminCore
from shareq.client.calls import Calls, OnAnswer
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.observer.health import GroupReport, Kind, PartitionReport, Report

ACCEPT, RELEASE, REJECT, RENEW = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
    AcknowledgeType.RENEW,
)


class Spy:
    """The requests of monitors. `change[type]`: makes another response of a response; None: there was none."""

    def __init__(self) -> None:
        self.sent: list[Request] = []
        self.change: dict[type[Request], Callable[[Any, Any], Response | None]] = {}

    def take(self, *kinds: type[Request]) -> list[Any]:
        """The requests since the last call, of these kinds or of all."""
        taken, self.sent = self.sent, []
        return [request for request in taken if not kinds or isinstance(request, kinds)]

    def admin_core(self, *args: Any) -> AdminCore:
        core = AdminCore(*args)
        core.calls = _SpiedCalls(self)
        return core


class _SpiedCalls(Calls):
    __slots__ = ("_spy",)

    def __init__(self, spy: Spy) -> None:
        super().__init__(5000)
        self._spy = spy

    def send(self, node: int, request: Request, on_answer: OnAnswer) -> None:
        self._spy.sent.append(request)
        change = self._spy.change.get(type(request))

        def answered(response: Response | None, error: Errors, now_ms: int) -> None:
            if change is not None and response is not None:
                response = change(request, response)
                error = Errors.NONE if response is not None else Errors.NETWORK_EXCEPTION
            on_answer(response, error, now_ms)

        super().send(node, request, answered)


class Stage:
    """`crew` is a group that begins at the earliest offset, with locks of 30 s and at most 3 deliveries."""

    def __init__(self, brokers: int = 1) -> None:
        self.cluster = Cluster(brokers=brokers, seed=7)
        self.address = self.cluster.bootstrap_servers
        self.conf: dict[str, object] = {"bootstrap.servers": self.address}
        self.admin = Admin(self.conf)
        self.configure("crew")
        self._clients: list[Any] = [self.admin]

    def configure(self, group: str, **more: object) -> None:
        configs = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 3}
        self.cluster.configure_group(group, {**configs, **more})

    def produce(self, topic: str, count: int, partition: int = 0, **options: Any) -> None:
        with Producer(self.conf) as producer:
            for number in range(count):
                producer.produce(topic, f"{number}", partition=partition, **options)

    def consumer(self, name: str = "anna", group: str = "crew", topics: Iterable[str] = ("orders",)) -> ShareConsumer:
        conf = {**self.conf, "group.id": group, "client.id": name, "share.acknowledgement.mode": "explicit"}
        made = ShareConsumer({**conf, "max.poll.records": 10})
        made.subscribe(list(topics))
        self._clients.append(made)
        return made

    def monitor(self, *groups: str, interval_ms: int = 2000) -> Monitor:
        made = monitor(self.address, groups or None, interval_ms=interval_ms)
        self._clients.append(made)
        return made

    def close(self) -> None:
        for client in reversed(self._clients):
            client.close()
        self.cluster.close()


def finish(consumer: ShareConsumer, messages: Iterable[Any], kind: AcknowledgeType = ACCEPT) -> None:
    for message in messages:
        consumer.acknowledge(message, kind)
    assert not any(consumer.commit_sync().values())


def group_in(report: Report, name: str = "crew") -> GroupReport:
    return next(group for group in report.groups if group.group == name)


def partition_in(report: Report, topic: str = "orders", index: int = 0, group: str = "crew") -> PartitionReport:
    return next(p for p in group_in(report, group).partitions if (p.topic, p.partition) == (topic, index))


def kinds_in(report: Report, name: str = "crew") -> list[Kind]:
    return [d.kind for d in group_in(report, name).diagnoses]
