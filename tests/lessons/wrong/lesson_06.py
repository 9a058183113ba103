"""Wrong answers of lesson 06."""

from typing import Any

from shareq.consumer import Message
from shareq.lessons import Bench, attempt


def both_at_once(bench: Bench) -> tuple[str, str]:
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    anns = ann.poll(1)
    bench.cluster.advance(30_000)
    bobs = bob.poll(1)
    return attempt(ann, anns), attempt(bob, bobs)


def ann_alone(bench: Bench) -> tuple[str, str]:
    ann = bench.consumer("ann")
    return attempt(ann, ann.poll(1)), "ok"


def makes_it_up(bench: Bench) -> tuple[str, str]:
    return "ok", "ok"


def never_again(message: Message, booked: set[Any]) -> bool:
    return message.delivery_count() == 1


def always(message: Message, booked: set[Any]) -> bool:
    return True


def by_offset_and_count(message: Message, booked: set[Any]) -> bool:
    new = (message.offset(), message.delivery_count()) not in booked
    booked.add((message.offset(), message.delivery_count()))
    return new


WRONG = {
    "06.1": [
        (lambda: {2: 2, 4: 3, 5: 3}, "look at record 4 again: you say 3, and the new leader delivers it with count 2"),
        (lambda: {2: 2, 5: 2}, "look at record 4 again: you say None, and the new leader delivers it with count 2"),
        (
            lambda: {2: 2, 3: 2, 4: 2, 5: 2},
            "look at record 3 again: you say 2, and the new leader never delivers it",
        ),
    ],
    "06.2": [
        (both_at_once, "the results are ('INVALID_RECORD_STATE', 'ok')"),
        (ann_alone, "record 0 must have been held by ann and bob"),
        (makes_it_up, "record 0 must have been held by ann and bob"),
    ],
    "06.3": [
        (never_again, "is booked 2 times"),
        (always, "is booked 2 times"),
        (by_offset_and_count, "is booked 2 times"),
    ],
    "06.4": [
        (lambda: 0, "a write with leader epoch 0 is answered with FENCED_LEADER_EPOCH"),
        (lambda: 1, "a write with leader epoch 1 is answered with FENCED_LEADER_EPOCH"),
        (lambda: 3, "2 is taken, too"),
    ],
}
