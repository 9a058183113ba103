"""Lesson 00, the tour: change one thing, and say what changes."""

from __future__ import annotations

from typing import Final

from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.lessons.small_tour import POISON, Toured, small_tour

EXERCISES: Final = Exercises("00")

LONGEST_S: Final = 16
FIGURES: Final = ("deliveries", "accepted", "archived", "accepted twice")


@EXERCISES.judged_by(
    "Half the standstill",
    "How long does the partition wait, and for what?",
    "It waits until the dead clerk's locks end. Which configuration of the group says how long a lock lasts?",
    "Return a dict: the name of the configuration, and a number of milliseconds. The brokers allow 15,000 to 60,000.",
)
def standstill(answer: Answer) -> Passed:
    configs = ask(answer, wants=dict)
    with accepted_by_brokers():
        toured = small_tour(configs)
    seconds = toured.standstill_s
    return check(
        seconds <= LONGEST_S,
        f"no partition stands still for more than {seconds:g} s",
        f"a partition stands still for {seconds:g} s, and {LONGEST_S} were allowed",
    )


@EXERCISES.judged_by(
    "Two clerks die",
    "What does a share group promise: how often a record is delivered, or that it is finished?",
    "Records that a dead clerk holds are delivered again. Are they accepted again?",
)
def two_clerks(answer: Answer) -> Passed:
    named = ask(answer, wants=(set, list, tuple))
    if unknown := [name for name in named if name not in FIGURES]:
        raise NotYet(f"✗ {unknown[0]!r} is not one of the figures {', '.join(FIGURES)}")
    one, two = (_figures(small_tour(dead_clerks=dead)) for dead in (1, 2))
    for name in FIGURES:
        changes = one[name] != two[name]
        if changes != (name in named):
            what = f"changes, from {one[name]:,} to {two[name]:,}" if changes else f"stays at {one[name]:,}"
            raise NotYet(f"✗ look at {name} again: it {what}")
    return check(
        True, f"only the number of deliveries changes, from {one['deliveries']:,} to {two['deliveries']:,}", ""
    )


def _figures(toured: Toured) -> dict[str, int]:
    books = toured.books
    values = (toured.report.delivered, books.accepted, books.archived, books.accepted_twice)
    return dict(zip(FIGURES, values, strict=True))


@EXERCISES.judged_by(
    "Deliveries that no count shows",
    "books[partition].deliveries has the acquisitions of each record, books[partition].delivery_count its last count.",
    "A record that was delivered as often as its count says has a difference of 0.",
    "Sum deliveries - delivery_count over all records of all partitions: books.values().",
)
def uncounted(answer: Answer) -> Passed:
    toured = small_tour()
    number = ask(answer, toured.books, wants=int)
    counted = sum(count * records for count, records in toured.books.attempts.items())
    truth = toured.report.delivered - counted
    return check(
        number == truth,
        f"{truth:,} of {toured.report.delivered:,} deliveries are in no delivery count",
        f"not {number:,}: there were {toured.report.delivered:,} deliveries, and the counts add up to {counted:,}",
    )


@EXERCISES.judged_by(
    "The lowest limit",
    "Which records were delivered most often, and why? A time-out uses up a delivery, as a failed attempt does.",
    "A flight may fail at its first delivery, and be in the hands of the dead clerk at its second one.",
    "Then its third delivery must be allowed.",
)
def lowest_limit(answer: Answer) -> Passed:
    limit = ask(answer, wants=int)
    with accepted_by_brokers():
        lost = _good_records_archived(limit)
    if lost:
        raise NotYet(f"✗ with a limit of {limit} the group archives {lost:,} flights that are not poison")
    return check(
        limit == 2 or _good_records_archived(limit - 1) > 0,
        f"with a limit of {limit} only poison is archived, and with {limit - 1} other flights are, too",
        f"a limit of {limit} is high enough, and so is {limit - 1}",
    )


def _good_records_archived(limit: int) -> int:
    books = small_tour({"share.delivery.count.limit": limit}).books
    return books.archived - POISON
