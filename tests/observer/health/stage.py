"""A cluster in this process on virtual time, its clients, and monitors whose requests and responses a test sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shareq import AcknowledgeType, Cluster, ShareConsumer
from shareq.admin.core import AdminCore
from shareq.client.calls import Calls, OnAnswer
from shareq.model.errors import Errors
from shareq.model.messages.base import Request, Response
from shareq.observer.health import GroupReport, Kind, PartitionReport, Report
from tests.observer.stage import Stage

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


class ClusterStage(Stage):
    """A cluster on virtual time, whose groups begin at the earliest offset, with locks of 30 s and 3 deliveries."""

    def __init__(self, brokers: int = 1) -> None:
        self.cluster = Cluster(brokers=brokers, seed=7)
        super().__init__(self.cluster.bootstrap_servers)
        self.configure("crew")

    def configure(self, group: str, **more: object) -> None:
        configs = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 3}
        self.cluster.configure_group(group, {**configs, **more})

    def close(self) -> None:
        super().close()
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
