"""Lesson 01, record states: each answer gives a record a certain life."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench
from shareq.lessons.checks import Passed, check, check_life
from shareq.lessons.exercise import Answer, Exercises, ask

EXERCISES: Final = Exercises("01")


@EXERCISES.judged_by(
    "Archived, but not rejected",
    "Which other arrow of the state diagram ends in archived?",
    "A record that has used up its deliveries is archived. share.delivery.count.limit is 5.",
    "Poll and release in a loop until a poll returns nothing.",
)
def archived(answer: Answer) -> Passed:
    bench = Bench(10)
    ask(answer, bench)
    return check_life(bench.life(3), state="archived", without=["reject"])


@EXERCISES.judged_by(
    "Third time lucky",
    "Which event makes an acquired record available again without a request of its holder?",
    "A lock lasts 30 seconds: bench.cluster.advance(30_000).",
    "A consumer in explicit mode that holds records cannot poll again: take another consumer for each delivery.",
)
def third_time(answer: Answer) -> Passed:
    bench = Bench(10)
    ask(answer, bench)
    return check_life(bench.life(0), state="acknowledged", deliveries=3, without=["release"])


@EXERCISES.judged_by(
    "Before the time is up",
    "A lock ends by an acknowledgement, by its deadline, or ...?",
    "Closing a consumer ends its share session, and the leader releases what it held.",
)
def handed_over(answer: Answer) -> Passed:
    bench = Bench(10)
    ask(answer, bench)
    return check_life(bench.life(0), state="acquired", holders=["ann", "bob"], without=["lock_timeout"])


@EXERCISES.judged_by(
    "A minute's work",
    "Which acknowledge type keeps the record with its holder?",
    "AcknowledgeType.RENEW starts the 30 seconds anew. How many renewals does a minute take?",
    "Renew every 25 seconds, and accept at the end. A poll after a renewal returns the renewed record again.",
)
def minute(answer: Answer) -> Passed:
    bench = Bench(1)
    ask(answer, bench)
    life = bench.life(0)
    passed = check_life(life, state="acknowledged", deliveries=1, without=["lock_timeout"])
    worked_s = (life.moments[-1].time_ms - life.moments[0].time_ms) / 1000
    return check(worked_s > 60, passed.removeprefix("✓ "), f"ann worked for {worked_s:.0f} s, and should for over 60 s")
