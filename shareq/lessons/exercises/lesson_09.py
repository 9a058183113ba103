"""Lesson 09, poison: kinds of errors, retries with time, and letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shareq.consumer import Message, Messages, ShareConsumer
from shareq.lessons.bench import Bench, settle
from shareq.lessons.checks import NotYet, Passed, check, check_life
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.lessons.letters import create_queue, letters, name_queue
from shareq.model.errors import IllegalStateException
from shareq.model.states import AcknowledgeType

EXERCISES: Final = Exercises("09")

POISON, LATER = 7, 3
"""The offsets of the records that never succeed, and at the second delivery."""
MOST_POLLS: Final = 200
OUTAGE_S: Final = 120


def _process(message: Message) -> None:
    if message.offset() == POISON:
        raise ValueError("no amount")
    if message.offset() == LATER and message.delivery_count() == 1:
        raise TimeoutError("the bank does not answer")


@EXERCISES.judged_by(
    "Two kinds of errors",
    "Which acknowledge type ends a record at once, and which one lets it come again?",
    "except ValueError: reject; except TimeoutError: release.",
)
def two_kinds(answer: Answer) -> Passed:
    bench = Bench(10)
    ann = bench.consumer("ann")
    for messages in _polls(ann):
        for message in messages:
            settle(ann, [message], ask(answer, message, _process, wants=AcknowledgeType))
    for offset in range(10):
        state = "archived" if offset == POISON else "acknowledged"
        check_life(bench.life(offset), state=state, deliveries=2 if offset == LATER else 1)
    return Passed("✓ poison was delivered once and archived, the record with a time-out twice and accepted")


@EXERCISES.judged_by(
    "Two minutes",
    "Five releases at once use up five deliveries. What keeps a record without costing a delivery?",
    "Renew before the lock ends: settle(consumer, messages, AcknowledgeType.RENEW), then poll the same records again.",
    "while not up(): wait 25 seconds, renew, messages = consumer.poll(1). Accept at the end.",
)
def two_minutes(answer: Answer) -> Passed:
    bench = Bench(3)
    ends_ms = bench.cluster.now_ms + OUTAGE_S * 1000
    accepted_early: list[int] = []

    def up() -> bool:
        return bench.cluster.now_ms >= ends_ms

    ann = bench.consumer("ann")
    for messages in _polls(ann):
        ask(answer, bench, ann, messages, up)
        if not up() and bench.life(0).state == "acknowledged":
            accepted_early.append(0)
    if accepted_early:
        raise NotYet("✗ record 0 was accepted while the service was down")
    life = bench.life(0)
    passed = check_life(life, state="acknowledged")
    return check(
        life.deliveries <= 2,
        passed.removeprefix("✓ "),
        f"record 0 took {life.deliveries} deliveries, two are allowed; its life:\n{life}",
    )


def _polls(consumer: ShareConsumer) -> Iterator[Messages]:
    """All polls until one returns nothing. NotYet if records are renewed without end: no limit counts renewals."""
    for _ in range(MOST_POLLS):
        try:
            messages = consumer.poll(1)
        except IllegalStateException as refused:
            raise NotYet(f"✗ every poll must end with acknowledgements: {refused}") from refused
        if not messages:
            return
        yield messages
    raise NotYet(f"✗ after {MOST_POLLS} polls there are still records: those that are renewed come again, without end")


@EXERCISES.judged_by(
    "The lowest limit for a whole batch",
    "Below which limit is there no throttled delivery?",
    "With a limit above 2, a record with one delivery left is delivered alone.",
)
def lowest_limit(answer: Answer) -> Passed:
    limit = ask(answer, wants=int)
    lost = _lost(limit)
    if lost != [POISON]:
        raise NotYet(f"✗ with a limit of {limit} the records {lost} are archived")
    lower = _lost(limit - 1)
    return check(
        lower != [POISON],
        f"a limit of {limit} archives {lost} only, and one of {limit - 1} archives {lower}",
        f"a limit of {limit - 1} is enough",
    )


def _lost(limit: int) -> list[int]:
    """The records that are archived if each poll with poison is released as a whole."""
    with accepted_by_brokers():
        bench = Bench(10, configs={"share.delivery.count.limit": limit})
    ann = bench.consumer("ann")
    while len(messages := ann.poll(1)):
        bad = POISON in [message.offset() for message in messages]
        settle(ann, messages, AcknowledgeType.RELEASE if bad else AcknowledgeType.ACCEPT)
    return [offset for offset in range(10) if bench.life(offset).state == "archived"]


@EXERCISES.judged_by(
    "Return to sender",
    "The letter's own topic is the queue. Look at its headers.",
    "letter.headers() is a list of (name, bytes): __dlq.errors.topic, .partition and .offset.",
    "dict(letter.headers())['__dlq.errors.offset'].decode() is the offset as text.",
)
def return_to_sender(answer: Answer) -> Passed:
    bench = Bench(4, 4)
    name_queue(bench)
    create_queue(bench)
    ann = bench.consumer("ann", most=1)
    settle(ann, ann.poll(1))
    settle(ann, ann.poll(1)[2:3], AcknowledgeType.REJECT)
    bench.cluster.advance(1_000)
    [letter] = letters(bench)
    place = ask(answer, letter, wants=tuple)
    truth = (bench.topic, 0, 6)
    numbers = "" if list(map(type, place)) == [str, int, int] else ": a text and two whole numbers are asked for"
    return check(place == truth, f"the letter is a copy of {truth}", f"the record was not at {place}{numbers}")
