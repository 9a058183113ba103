"""Wrong answers of lesson 03."""

from collections.abc import Sequence

from shareq import AcknowledgeType
from shareq.consumer import Message, ShareConsumer
from shareq.lessons import Bench, attempt, settle


def as_in_the_lesson(bench: Bench, consumer: ShareConsumer, messages: Sequence[Message]) -> None:
    for message in messages:
        bench.cluster.advance(8_000)
        attempt(consumer, [message])


def renews_too_late(bench: Bench, consumer: ShareConsumer, messages: Sequence[Message]) -> None:
    bench.cluster.advance(40_000)
    settle(consumer, messages, AcknowledgeType.RENEW)


def does_no_work(bench: Bench, consumer: ShareConsumer, messages: Sequence[Message]) -> None:
    settle(consumer, messages)


def in_time(bench: Bench) -> None:
    ann = bench.consumer("ann")
    attempt(ann, ann.poll(1))


def waits_only(bench: Bench) -> None:
    bench.consumer("ann").poll(1)
    bench.cluster.advance(30_000)


def bob_takes_it(bench: Bench) -> None:
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    records = ann.poll(1)
    bench.cluster.advance(30_000)
    bob.poll(1)
    attempt(ann, records)


WRONG = {
    "03.1": [
        (lambda: {"most": 1}, "record 0 was delivered 4 times: a poll took longer than its locks"),
        (lambda: {"most": 20, "share_acquire_mode": "record_limit"}, "a poll took longer than its locks"),
        (lambda: {"share_record_lock_duration_ms": 60_000}, "bench.consumer does not take this"),
    ],
    "03.2": [
        (as_in_the_lesson, "this was to be done without lock_timeout"),
        (renews_too_late, "INVALID_RECORD_STATE"),
        (does_no_work, "the work takes 40 s, and record 4 was done in 0"),
    ],
    "03.3": [
        (lambda: 40_000, "locks of 40 s: a poll of 42 s is refused"),
        (lambda: 60_000, "a dead consumer's records wait for 60 s, 45 are allowed"),
        (lambda: 5_000, "the brokers refuse this"),
    ],
    "03.4": [
        (in_time, "record 0 is acknowledged, and should be available"),
        (waits_only, "no accept was refused"),
        (bob_takes_it, "record 0 is acquired, and should be available"),
    ],
}
