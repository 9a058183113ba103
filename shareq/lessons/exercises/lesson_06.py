"""Lesson 06, failover: what a new leader knows, and which writes are refused."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from shareq.lessons.bench import Bench, attempt, settle
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.lessons.late_write import late_write
from shareq.model.states import AcknowledgeType

EXERCISES: Final = Exercises("06")

PAYMENTS: Final = 40


@EXERCISES.judged_by(
    "Which records come twice?",
    "What is in the state topic? Accepted, rejected, released, timed out; not acquired, not renewed.",
    "Records 2 to 5 were written as available, with count 1. Bob's deliveries of them are in memory only.",
    "Each delivery raises the count that the new leader has read by one.",
)
def come_twice(answer: Answer) -> Passed:
    named = ask(answer, wants=dict)
    bench = Bench(6, brokers=3)
    ann, bob = bench.consumer("ann"), bench.consumer("bob")
    six = ann.poll(1)
    settle(ann, six[:1])
    settle(ann, six[1:2], AcknowledgeType.REJECT)
    settle(ann, six[2:3], AcknowledgeType.RELEASE)
    bench.cluster.advance(30_000)
    four = bob.poll(1)
    settle(bob, four[1:2])
    settle(bob, four[2:3], AcknowledgeType.RENEW)
    truth = _after_failover(bench)
    for offset in range(6):
        if named.get(offset) != truth.get(offset):
            was = f"delivers it with count {truth[offset]}" if offset in truth else "never delivers it"
            raise NotYet(f"✗ look at record {offset} again: you say {named.get(offset)}, and the new leader {was}")
    return check(named == truth, f"the new leader delivers {truth}", f"there are no records {set(named) - set(truth)}")


def _after_failover(bench: Bench) -> dict[int, int]:
    """Kill the leader's broker, and poll: offset -> delivery count."""
    bench.cluster.kill_broker(bench.leader)
    bench.cluster.advance(5_000)
    return {record.offset() or 0: record.delivery_count() or 0 for record in bench.consumer("cyd").poll(5)}


@EXERCISES.judged_by(
    "Two times ok",
    "When is an acknowledgement of a record neither counted nor refused?",
    "Below the SPSO. So bob must have accepted the record before ann's accept arrives.",
    "Ann polls, 30 seconds pass, bob polls and accepts, and then ann does.",
)
def two_times_ok(answer: Answer) -> Passed:
    bench = Bench(1, brokers=1)
    results = ask(answer, bench, wants=tuple)
    life = bench.life(0)
    if sorted(life.holders) != ["ann", "bob"]:
        raise NotYet(f"✗ record 0 must have been held by ann and bob, and was by {life.holders}; its life:\n{life}")
    if results != ("ok", "ok"):
        raise NotYet(f"✗ the results are {results}, and should be ('ok', 'ok')")
    accepts = life.events.count("accept")
    return check(accepts == 1, "two times ok, and one accept in the journal", f"the journal has {accepts} accepts")


@EXERCISES.judged_by(
    "Work that may be repeated",
    "Why is delivery_count() of no use here?",
    "What is the same in both deliveries of a record, and different for all others?",
    "message.topic(), message.partition() and message.offset() together; add them to `booked`.",
)
def repeatable(answer: Answer) -> Passed:
    bench = Bench(*[5] * (PAYMENTS // 5), brokers=3)
    bookings: Counter[int] = Counter()
    booked: set[Any] = set()
    ann, bob = bench.consumer("ann", most=1), bench.consumer("bob", most=1)

    def book(consumer: Any) -> Any:
        messages = consumer.poll(1)
        bookings.update(m.offset() for m in messages if ask(answer, m, booked, wants=bool))
        return messages

    settle(bob, book(bob), AcknowledgeType.RELEASE)  # booked, and then the answer of the bank is lost
    settle(ann, book(ann))
    in_hand = book(ann)
    bench.cluster.kill_broker(bench.leader)
    attempt(ann, in_hand)
    while len(messages := book(bob)):
        attempt(bob, messages)
    wrong = [offset for offset in range(PAYMENTS) if bookings[offset] != 1]
    return check(
        not wrong,
        f"each of {PAYMENTS} payments is booked once, in {bench.life(0).deliveries} deliveries of the first",
        f"payment {wrong[:1]} is booked {bookings[wrong[0]] if wrong else 1} times",
    )


@EXERCISES.judged_by(
    "Which epoch may write?",
    "The leader epoch grows by one with each election.",
    "The share coordinator has seen the epoch of the last leader that has read the state.",
)
def lowest_epoch(answer: Answer) -> Passed:
    named = ask(answer, wants=int)
    bench = Bench(*[1] * 5, brokers=3)
    for _ in range(2):
        bench.consumer("ann", most=1).poll(5)
        bench.cluster.kill_broker(bench.leader)
        bench.cluster.advance(60_000)
        bench.cluster.start_broker(next(iter(set(bench.cluster.image.brokers) - set(bench.cluster.brokers_alive))))
    bench.consumer("ann", most=1).poll(5)
    if (refused := late_write(bench, 4, leader_epoch=named)) != "ok":
        raise NotYet(f"✗ a write with leader epoch {named} is answered with {refused}")
    lower = late_write(bench, 4, leader_epoch=named - 1) if named else "nothing lower"
    return check(lower != "ok", f"{named} is taken, and a lower one is refused: {lower}", f"{named - 1} is taken, too")
