"""Solutions of lesson 01."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench, settle
from shareq.model.states import AcknowledgeType


def archived(bench: Bench) -> None:
    ann = bench.consumer("ann")
    while len(messages := ann.poll(1)):
        settle(ann, messages, AcknowledgeType.RELEASE)


def third_time(bench: Bench) -> None:
    for name in ("ann", "bob"):
        bench.consumer(name).poll(1)
        bench.cluster.advance(30_000)
    cyd = bench.consumer("cyd")
    settle(cyd, cyd.poll(1))


def handed_over(bench: Bench) -> None:
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    ann.poll(1)
    ann.close()
    bob.poll(1)


def minute(bench: Bench) -> None:
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    for _ in range(3):
        bench.cluster.advance(25_000)
        settle(ann, messages, AcknowledgeType.RENEW)
    settle(ann, ann.poll(1))


SOLUTIONS: Final = {"01.1": archived, "01.2": third_time, "01.3": handed_over, "01.4": minute}
