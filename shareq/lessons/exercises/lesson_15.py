"""Lab: find the bug. An answer is an invariant: a function from what members have seen to the lines that break a rule.

It must find something in a run of its broken broker, and nothing in any run of the sound one.
"""

from __future__ import annotations

from typing import Final

from shareq.lessons.broken import NOTHING, History, Seen, run
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask, solution_of

EXERCISES: Final = Exercises("15")

SOUND_RUNS: Final = 50
BROKEN_RUNS: Final = 10
SHOWN: Final = 12


def _judge(number: int, answer: Answer) -> Passed:
    caught = [seed for seed in range(BROKEN_RUNS) if _found(answer, number, seed)]
    for seed in range(SOUND_RUNS):
        if found := _found(answer, 0, seed):
            raise NotYet(
                f"✗ the sound broker keeps every rule, and you find something in its run {seed}: {found[0]}\n"
                f"{_story(run(0, seed).history, found[0])}"
            )
    return check(
        bool(caught),
        f"broker {number} is found in {len(caught)} of {BROKEN_RUNS} runs, and the sound one is left alone in "
        f"{SOUND_RUNS}",
        f"you find nothing in {BROKEN_RUNS} runs of broker {number}{_overlooked(number)}",
    )


def _found(answer: Answer, number: int, seed: int) -> list[Seen]:
    """The lines that an answer finds in a run."""
    history = run(number, seed).history
    found: list[Seen] = ask(answer, history, wants=list)
    for line in found:
        if line not in history:
            raise NotYet(f"✗ my_answer returns a list with {line!r}, and should return lines of the history")
    return found


def _overlooked(number: int) -> str:
    """Where the solution finds the defect first; what it is, is for the learner to see."""
    rule = solution_of(f"15.{number}")
    shown = {seed: found for seed in range(BROKEN_RUNS) if (found := rule(run(number, seed).history))}
    seed, found = next(iter(shown.items()))
    return f". The defect shows in {len(shown)} of them, for the first time in run {seed} at {found[0].at_s} s"


def _story(history: History, last: Seen) -> str:
    """What the members saw of that line's record, up to it; of all records if it is about none."""
    before = history.until(last)
    shown = before if last.offset == NOTHING else before.about(last.offset)
    return "\n".join(["what the members saw until then:", *map(str, shown[-SHOWN:])])


def _broker(number: int, *hints: str) -> None:
    EXERCISES.judged_by(f"Broker {number}", *hints)(lambda answer: _judge(number, answer))


_broker(
    1,
    "Look at record 0: run(1, 0).history.about(0). What comes after an accept with the answer ok?",
    "An accepted record is done. Remember the offsets of accepts with the answer ok, and look for later deliveries.",
)
_broker(
    2,
    "Watch the time between two deliveries of one record to two members.",
    "For each record, remember its last delivery. Is the next one less than LOCK_S later?",
    "An accept, release or reject with the answer ok ends a lock, and so does a close of the holder: forget it then.",
)
_broker(
    3,
    "Compare the late answers of run(0, 1) and run(3, 1): which member acknowledges a record that another one has?",
    "For each record, remember who got it last and until when. Does another member get ok meanwhile?",
    "A renewal with the answer ok moves the end of the lock. Below the SPSO every answer is ok, so complain only if "
    "another member holds the record at that moment.",
)
_broker(
    4,
    "Look at records that are released again and again: how often are they delivered?",
    "share.delivery.count.limit is LIMIT. A line has the delivery count as seen.delivery_count.",
    "Not every run shows it. Look at run(4, 3).",
)
_broker(
    5,
    "Cyd renews. Does it help her?",
    "After a renewal with the answer ok, the record is hers for another LOCK_S.",
    "Start from the invariant of broker 2. Only renewed records matter here, and their time starts with the renewal.",
)
_broker(
    6,
    "Compare the delivery counts of one record with its deliveries: run(6, 0).history, and count yourself.",
    "The n-th delivery of a record has the delivery count n, whatever ended the ones before.",
)
_broker(
    7,
    "Members take naps of up to 40 s. What are they answered afterwards, here and in run(0, 0)?",
    "An acknowledgement LOCK_S or more after the member's own delivery, or its last renewal, comes too late.",
    "At its last delivery a record is archived by the time-out, and below the SPSO every answer is ok: leave out "
    "seen.delivery_count == LIMIT, and records that another member has got since.",
)
_broker(
    8,
    "Look at the end: which records were neither accepted nor rejected?",
    "At the end of a run every record is accepted, rejected, or was delivered LIMIT times. There is quiet time for it.",
    "Return the last delivery of each record that is none of the three. The cause: look at what their holder accepted.",
)
_broker(
    9,
    "Look at what follows a close. When do the records of that member come again?",
    "Records that a closed session gives back are the next ones to be delivered: before higher ones, and no fetch gets "
    "nothing before.",
    "They are those that were delivered to the member less than LOCK_S ago, and not for the LIMIT-th time. Leave out "
    "renewed ones, if you like: it is enough to find it once.",
)
_broker(
    10,
    "How far may a delivery be from the lowest record that is not done?",
    "The window has LOCKS offsets. Compute the SPSO from what the members saw: the lowest offset that is not done.",
    "A record that was delivered LIMIT times may be archived without a line in the history: count it as done.",
)
