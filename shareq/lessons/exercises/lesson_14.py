"""Lab: on call. An answer mends an incident and returns its cause; the group must then finish its work without losing
a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shareq.lessons import incidents
from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, ask
from shareq.lessons.incidents import Incident

EXERCISES: Final = Exercises("14")


def _mended(answer: Answer, begin: Callable[[], Incident], seconds: int) -> Passed:
    case = begin()
    before, cause = case.lag, incidents.diagnosis(case)
    named = ask(answer, case)
    case.work(seconds)
    if case.lost:
        raise NotYet(f"✗ records {case.lost} are archived, and they were good")
    if case.lag:
        raise NotYet(f"✗ {case.lag} of {before} records are still waiting after {seconds} s: {case.bench}")
    return check(
        named == cause,
        f"{before} records were waiting, and all are done: {cause}",
        f"all records are done, and the cause is not {named!r}: return one of incidents.CAUSES",
    )


@EXERCISES.judged_by(
    "Reports",
    "Look at the life of record 0. What ends each of its deliveries?",
    "A report takes 40 seconds, and a lock 30.",
    'configure_group(case.bench.group, {"share.record.lock.duration.ms": ...}); the brokers allow up to 60,000.',
)
def reports(answer: Answer) -> Passed:
    return _mended(answer, incidents.reports, 180)


@EXERCISES.judged_by(
    "Orders",
    "Which record is at the SPSO, and which consumer holds it?",
    "The life of record 0 has renewals without an end. Its holder will never accept it.",
    "case.crash(name) ends a consumer; its lock ends 30 seconds later at most.",
)
def orders(answer: Answer) -> Passed:
    return _mended(answer, incidents.orders, 90)


@EXERCISES.judged_by(
    "Payments",
    "The window is empty, records are there, and nothing is acquired. How far may this group read?",
    "It reads what is committed. A producer with the transactional id bank has died in a transaction.",
    'transactional(case.bench, "bank") aborts what its predecessor has left open.',
)
def payments(answer: Answer) -> Passed:
    return _mended(answer, incidents.payments, 20)


@EXERCISES.judged_by(
    "Pictures",
    "The record at the SPSO has the state archiving. Where is it on its way to?",
    "The journal has the reason: DeadLettersWaiting.",
    "create_queue(case.bench) makes the topic that the group names.",
)
def pictures(answer: Answer) -> Passed:
    return _mended(answer, incidents.pictures, 60)


@EXERCISES.judged_by(
    "Letters",
    "No broker has the share-partition in its memory. Which broker would have to lead it?",
    "The partition has one replica. cluster.image.brokers has all brokers, cluster.brokers_alive those that run.",
    "cluster.start_broker(number) starts a broker; its log is as it was.",
)
def letters_home(answer: Answer) -> Passed:
    return _mended(answer, incidents.letters_home, 60)
