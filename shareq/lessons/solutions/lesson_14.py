"""Solutions of the lab "on call"."""

from __future__ import annotations

from typing import Final

from shareq.lessons.incidents import Incident
from shareq.lessons.letters import create_queue
from shareq.lessons.transactions import transactional


def reports(case: Incident) -> str:
    case.bench.cluster.configure_group(case.bench.group, {"share.record.lock.duration.ms": 60_000})
    return "the work takes longer than the lock"


def orders(case: Incident) -> str:
    case.crash("keeper")
    return "a consumer keeps a record for ever"


def payments(case: Incident) -> str:
    transactional(case.bench, "bank")
    return "a transaction is open"


def pictures(case: Incident) -> str:
    create_queue(case.bench)
    return "the dead-letter queue is missing"


def letters_home(case: Incident) -> str:
    cluster = case.bench.cluster
    for broker in set(cluster.image.brokers) - set(cluster.brokers_alive):
        cluster.start_broker(broker)
    return "the leader's broker is dead"


SOLUTIONS: Final = {"14.1": reports, "14.2": orders, "14.3": payments, "14.4": pictures, "14.5": letters_home}
