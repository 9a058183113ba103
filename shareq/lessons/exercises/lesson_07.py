"""Lesson 07, real clients: the order of a shift, and acknowledgements without a request of their own.

The judges need no Kafka: shareq's consumer has the interface of confluent-kafka's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from shareq.lessons.bench import Bench
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.crew import Shift, Stint
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.trace import messages

EXERCISES: Final = Exercises("07")

SHIFTS: Final = (
    ("one worker, in order", [(0, 0), (0, 1), (0, 2)], 0),
    ("two partitions in turn, each in order", [(0, 5), (1, 0), (0, 6), (1, 1)], 0),
    ("a record that was overtaken", [(0, 0), (0, 2), (0, 1), (0, 3)], 1),
    ("two partitions, each with one record overtaken", [(0, 1), (1, 7), (0, 0), (1, 6), (0, 2)], 2),
)
"""Title, the (partition, offset) of the stints in the order of their begin, and the pairs in the wrong order."""


def _shift(places: Sequence[tuple[int, int]]) -> Shift:
    stints = [Stint("ann", partition, offset, float(at), at + 0.5) for at, (partition, offset) in enumerate(places)]
    return Shift(("ann",), tuple(stints))


@EXERCISES.judged_by(
    "Out of order",
    "Order means something within a partition only: sort the stints into their partitions first.",
    "Compare each offset of a partition with the next one.",
)
def out_of_order(answer: Answer) -> Passed:
    for title, places, wrong in SHIFTS:
        counted = ask(answer, _shift(places), wants=int)
        if counted != wrong:
            raise NotYet(f"✗ {title}, (partition, offset) = {places}: {wrong}, and you counted {counted}")
    return Passed(f"✓ {len(SHIFTS)} shifts counted")


@EXERCISES.judged_by(
    "Without a request of its own",
    "Which requests carried bob's acknowledgements?",
    "acknowledge only notes the verdict. What does the next poll send?",
)
def without_request(answer: Answer) -> Passed:
    bench = Bench(6, 1, trace_messages=True)
    gus = bench.consumer("gus", most=1)
    ask(answer, gus, gus.poll(1))
    spso = bench.view.snapshot()["spso"]
    alone = len(messages(bench.cluster, client="gus", api="ShareAcknowledge"))
    return check(
        spso == 6 and not alone,
        "accepted on the way to the next records",
        f"the SPSO is {spso}, and there were {alone} ShareAcknowledge requests",
    )
