"""Solutions of the lab "on call"."""

from __future__ import annotations

from typing import Final

from shareq.lessons.incidents import Incident
from shareq.lessons.letters import create_queue
from shareq.lessons.transactions import transactional


def reports(case: Incident) -> None:
    case.bench.cluster.configure_group(case.bench.group, {"share.record.lock.duration.ms": 60_000})


def orders(case: Incident) -> None:
    case.crash("keeper")


def payments(case: Incident) -> None:
    transactional(case.bench, "bank")


def pictures(case: Incident) -> None:
    create_queue(case.bench)


def letters_home(case: Incident) -> None:
    cluster = case.bench.cluster
    for broker in set(cluster.image.brokers) - set(cluster.brokers_alive):
        cluster.start_broker(broker)


SOLUTIONS: Final = {"14.1": reports, "14.2": orders, "14.3": payments, "14.4": pictures, "14.5": letters_home}
