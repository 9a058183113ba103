"""Lesson 02, the window: where its ends are, and what holds them."""

from __future__ import annotations

from typing import Any, Final

from shareq.lessons.bench import Bench, settle, with_one_stuck
from shareq.lessons.checks import NotYet, Passed, check, check_window
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.model.states import AcknowledgeType

EXERCISES: Final = Exercises("02")

LOCKS: Final = "share.partition.max.record.locks"
MOST_LOCKS: Final = 1_500


@EXERCISES.judged_by(
    "Where is the SPSO?",
    "The SPSO is the lowest offset that is not done. Which of 0 to 9 are done, and which is the lowest of the others?",
    "The SPEO is the last offset of the window. Does any acknowledgement move it?",
    "The lag is the end of the log, minus the SPSO, minus the records above the SPSO that are done.",
)
def three_numbers(answer: Answer) -> Passed:
    spso, speo, lag = numbers = _three(ask(answer, wants=tuple))
    bench = Bench(10)
    ann = bench.consumer("ann")
    ten = ann.poll(1)
    settle(ann, [ten[1], ten[2], ten[3], ten[7], ten[8]])
    settle(ann, ten[:1], AcknowledgeType.REJECT)
    settle(ann, ten[4:5], AcknowledgeType.RELEASE)
    snapshot = bench.view.snapshot()
    check_window(snapshot, spso=spso, speo=speo)
    return check(
        lag == snapshot["lag"],
        f"SPSO, SPEO and lag are {numbers}",
        f"the lag is not {lag}: which records above the SPSO are done with?",
    )


def _three(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(numbers) != 3 or not all(isinstance(number, int) for number in numbers):
        raise NotYet(f"✗ my_answer returns {numbers!r}, and should return three whole numbers: SPSO, SPEO and lag")
    return numbers


@EXERCISES.judged_by(
    "A window wide enough",
    "How many records do the four workers finish while the lock on the stuck record lasts?",
    "Four workers, ten records a second each, thirty seconds.",
    "The batch with the stuck record is in the window, too.",
)
def wide_enough(answer: Answer) -> Passed:
    locks = ask(answer, wants=int)
    if not 100 <= locks <= MOST_LOCKS:
        raise NotYet(f"✗ {locks:,} locks: Kafka allows no fewer than 100, and the task no more than {MOST_LOCKS:,}")
    bench = Bench(*[10] * 140, configs={LOCKS: locks})
    idle = with_one_stuck(bench, workers=4, seconds=32).count(0)
    return check(not idle, f"{locks:,} locks: always something to do", f"{locks:,} locks: nothing to do for {idle} s")


@EXERCISES.judged_by(
    "Nothing was accepted",
    "What moves the start of the log? What moves the start of a group?",
    "bench.admin has delete_records and alter_share_group_offsets; both were used above.",
)
def begin_at_seven(answer: Answer) -> Passed:
    bench = Bench(10)
    ask(answer, bench)
    if bench.view.snapshot()["members"]:
        raise NotYet("✗ there was a consumer, and the task allows none")
    first = bench.consumer("ann").poll(1)[0].offset()
    return check(first == 7, "the group begins at 7", f"the group begins at {first}, and should begin at 7")


@EXERCISES.judged_by(
    "Patience",
    "The worker is idle from the moment at which the window is full until the stuck record's lock ends.",
    "The window is full after 9 seconds. When must the lock end?",
    "share.record.lock.duration.ms is at least 15,000.",
)
def patience(answer: Answer) -> Passed:
    configs = ask(answer, wants=dict)
    if LOCKS in configs:
        raise NotYet(f"✗ {LOCKS} must stay at 100: change another configuration")
    with accepted_by_brokers():
        bench = Bench(*[10] * 20, configs={LOCKS: 100, **configs})
    idle = with_one_stuck(bench, workers=1, seconds=20).count(0)
    return check(idle <= 6, f"idle for {idle} of 20 s", f"idle for {idle} of 20 s, and six were allowed")
