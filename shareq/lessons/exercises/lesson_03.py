"""Lesson 03, locks: choose them, keep them, lose them."""

from __future__ import annotations

from typing import Final

from shareq.lessons.bench import Bench, attempt
from shareq.lessons.checks import NotYet, Passed, check, check_life
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.model.errors import KafkaException
from shareq.model.events import AcknowledgementRefused

EXERCISES: Final = Exercises("03")

RECORDS: Final = 20
POLLS_S: Final = (12, 20, 42)
LONGEST_WAIT_S: Final = 45


@EXERCISES.judged_by(
    "A poll that fits",
    "How many records may a poll have, if each takes two seconds and the lock thirty?",
    "most=5 changed nothing above, because the limit is soft. Which mode makes it exact?",
    'share_acquire_mode="record_limit" is the keyword argument.',
)
def poll_that_fits(answer: Answer) -> Passed:
    bench = Bench(RECORDS)
    try:
        cyd = bench.consumer("cyd", **ask(answer, wants=dict))
    except (KafkaException, TypeError) as error:
        reason = error.error.str() if isinstance(error, KafkaException) else error
        raise NotYet(f"✗ bench.consumer does not take this: {reason}") from error
    most = 0
    while len(records := cyd.poll(1)):
        most = max(most, len(records))
        bench.cluster.advance(2_000 * len(records))
        attempt(cyd, records)
    lives = [bench.life(offset) for offset in range(RECORDS)]
    late = max(lives, key=lambda life: life.deliveries)
    return check(
        late.deliveries == 1,
        "each of the 20 records was delivered once",
        f"record {late.offset} was delivered {late.deliveries} times: a poll took longer than its locks"
        f" ({most} records, {2 * most} s; a lock lasts 30)",
    )


@EXERCISES.judged_by(
    "Keep the locks",
    "The fourth record is done after 32 seconds. What must happen before the 30th?",
    "settle(consumer, [...], AcknowledgeType.RENEW) renews; the renewed messages come with the next poll.",
    "Renew all five after the second one, poll them again, go on with the work, and accept all of them at the end.",
)
def keep_the_locks(answer: Answer) -> Passed:
    bench = Bench(5)
    ann = bench.consumer("ann")
    messages = ann.poll(1)
    ask(answer, bench, ann, messages)
    for offset in range(5):
        text = check_life(bench.life(offset), state="acknowledged", deliveries=1, without=["lock_timeout"])[2:]
    moments = bench.life(4).moments
    worked_s = (moments[-1].time_ms - moments[0].time_ms) / 1000
    return check(worked_s >= 40, text, f"the work takes 40 s, and record 4 was done in {worked_s:g}")


@EXERCISES.judged_by(
    "Choose a lock",
    "The lock must last longer than the longest poll.",
    "The records of a dead consumer wait as long as the lock lasts.",
)
def choose_a_lock(answer: Answer) -> Passed:
    lock_ms = ask(answer, wants=int)
    locks = f"locks of {lock_ms / 1000:g} s"
    for seconds in POLLS_S:
        bench = _bench(lock_ms)
        ann = bench.consumer("ann")
        records = ann.poll(1)
        bench.cluster.advance(seconds * 1000)
        if attempt(ann, records) != "ok":
            raise NotYet(f"✗ {locks}: a poll of {seconds} s is refused")
    bench = _bench(lock_ms)
    dead, bob = bench.consumer("dead"), bench.consumer("bob")
    dead.poll(1)
    bench.cluster.crash(dead)
    began_ms = bench.cluster.now_ms
    bob.poll(120)
    waited_s = (bench.cluster.now_ms - began_ms) / 1000
    return check(
        waited_s <= LONGEST_WAIT_S,
        f"{locks}: no poll is refused, and a dead consumer's records wait for {waited_s:g} s",
        f"{locks}: a dead consumer's records wait for {waited_s:g} s, {LONGEST_WAIT_S} are allowed",
    )


def _bench(lock_ms: int) -> Bench:
    with accepted_by_brokers():
        return Bench(5, configs={"share.record.lock.duration.ms": lock_ms})


@EXERCISES.judged_by(
    "Too late, although no other member holds it",
    "When does a lock end, if its holder does nothing?",
    "Poll, let 30 seconds pass, and accept then.",
)
def too_late(answer: Answer) -> Passed:
    bench = Bench(1)
    try:
        ask(answer, bench)
    except NotYet as ended:  # `settle` raises the refusal that is asked for
        if not isinstance(ended.__cause__, KafkaException):
            raise
    refused = bench.cluster.journal.select(AcknowledgementRefused, group=bench.group)
    passed = check_life(bench.life(0), state="available", holders=["ann"])
    return check(bool(refused), passed.removeprefix("✓ ") + ", and the accept was refused", "no accept was refused")
