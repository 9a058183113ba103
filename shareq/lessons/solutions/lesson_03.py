"""Solutions of lesson 03."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shareq.consumer import Message, ShareConsumer
from shareq.lessons.bench import Bench, attempt, settle
from shareq.model.states import AcknowledgeType


def poll_that_fits() -> dict[str, object]:
    return {"most": 10, "share_acquire_mode": "record_limit"}  # 20 s of work, and 10 to spare


def keep_the_locks(bench: Bench, consumer: ShareConsumer, messages: Iterable[Message]) -> None:
    for done, _ in enumerate(list(messages), 1):
        bench.cluster.advance(8_000)
        if done % 2 == 0:
            settle(consumer, messages, AcknowledgeType.RENEW)
            messages = consumer.poll(1)
    settle(consumer, messages)


def choose_a_lock() -> int:
    return 45_000


def too_late(bench: Bench) -> None:
    ann = bench.consumer("ann")
    records = ann.poll(1)
    bench.cluster.advance(30_000)
    attempt(ann, records)


SOLUTIONS: Final = {"03.1": poll_that_fits, "03.2": keep_the_locks, "03.3": choose_a_lock, "03.4": too_late}
