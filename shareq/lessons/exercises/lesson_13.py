"""Lesson 13, three places: what is left after a kill, and a program that asks the protocol instead of a place."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench, settle
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.model.events import RecordsDelivered
from shareq.model.states import AcknowledgeType

EXERCISES: Final = Exercises("13")

_ACTS: Final = (
    ("delivered", (0, 1, 2, 3)),
    ("acknowledged", (0, 1, 2)),
    ("committed", (0, 1, 2)),
    ("delivered", (4, 5)),
    ("acknowledged", (3, 4)),
    ("committed", (3, 4)),
    ("acknowledged", (5,)),
    ("delivered", (6, 7)),
    ("acknowledged", (6,)),
)
_AGAIN: Final = {5, 6, 7}


@EXERCISES.judged_by(
    "What comes again",
    "Which acknowledgements were records in Kafka's log when the process was killed?",
    "An acknowledgement that was not committed is in the client. For the next leader it does not exist.",
    "Records that were delivered, minus those that were committed.",
)
def comes_again(answer: Answer) -> Passed:
    again = ask(answer, [(what, list(offsets)) for what, offsets in _ACTS], wants=set)
    if not all(isinstance(offset, int) for offset in again):
        raise NotYet(f"✗ my_answer returns {again!r}, and should return a set of offsets")
    for offset in sorted(_AGAIN ^ again):
        acts = [what for what, offsets in _ACTS if offset in offsets]
        comes = "comes again" if offset in _AGAIN else "does not come again"
        raise NotYet(f"✗ record {offset} was {', '.join(acts) or 'never delivered'}, and {comes}")
    return Passed(f"✓ {', '.join(map(str, sorted(again)))} come again: they were delivered, and not committed")


@EXERCISES.judged_by(
    "How much is left",
    "A consumer that polls would change what it measures. Which client only asks?",
    "Admin has list_share_group_offsets(group); its result has a number for each partition, and .total.",
)
def left(answer: Answer) -> Passed:
    bench = Bench(*[10] * 3)
    ann = bench.consumer("ann", most=1)
    first = ann.poll(1)
    settle(ann, first[5:])
    settle(ann, first[:1], AcknowledgeType.REJECT)
    ann.close()
    delivered = len(bench.cluster.journal.select(RecordsDelivered))
    number = ask(answer, bench.cluster.bootstrap_servers, bench.group, wants=int)
    if len(bench.cluster.journal.select(RecordsDelivered)) > delivered:
        raise NotYet("✗ your answer has acquired records: it should only ask")
    lag = bench.view.snapshot()["lag"]
    return check(
        number == lag,
        f"{lag} records are left, and none was acquired by asking",
        f"not {number}: of 30 records, five are accepted and one is rejected",
    )
