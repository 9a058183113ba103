"""Wrong answers of the lab "find the bug"."""

from itertools import pairwise
from typing import Any

from shareq.lessons.broken import LIMIT, LOCK_S, LOCKS, RECORDS, History, Seen

CRIES = "the sound broker keeps every rule, and you find something in its run"
MISSES = "you find nothing in 10 runs of broker"


def deliveries(history: History) -> list[Seen]:
    return [seen for seen in history if seen.what == "delivered"]


def any_accept_is_final(history: History) -> list[Seen]:
    """Forgets that an accept may be refused."""
    done = set()
    broken = []
    for seen in history:
        if seen.what == "accept":
            done.add(seen.offset)
        if seen.what == "delivered" and seen.offset in done:
            broken.append(seen)
    return broken


def delivered_twice(history: History) -> list[Seen]:
    """Takes at least once for exactly once."""
    offsets = [seen.offset for seen in history]
    return [seen for seen in deliveries(history) if offsets.count(seen.offset) > 2]


def accepts(history: History) -> list[str]:
    """Returns texts."""
    return [f"accepted: {seen.offset}" for seen in history if seen.what == "accept"]


def rejected_is_done(history: History) -> list[Seen]:
    done, broken = set(), []
    for seen in history:
        if seen.what == "reject" and seen.answer == "ok":
            done.add(seen.offset)
        if seen.what == "delivered" and seen.offset in done:
            broken.append(seen)
    return broken


def soon_again(history: History, *, given_back: bool = False, to_another: bool = False) -> list[Seen]:
    """Two deliveries within a lock; forgets what ends a lock early."""
    last: dict[int, Seen] = {}
    broken = []
    for seen in history:
        if seen.what == "delivered":
            before = last.get(seen.offset)
            if before and seen.at_s < before.at_s + LOCK_S and (not to_another or before.member != seen.member):
                broken.append(seen)
            last[seen.offset] = seen
        elif given_back and seen.answer == "ok":
            last.pop(seen.offset, None)
    return broken


def forgets_closings(history: History) -> list[Seen]:
    return soon_again(history, given_back=True)


def only_to_others(history: History) -> list[Seen]:
    return soon_again(history, to_another=True)


def ok_only_for_the_last(history: History) -> list[Seen]:
    """Forgets that below the SPSO everything is ok."""
    last: dict[int, str] = {}
    broken = []
    for seen in history:
        if seen.what == "delivered":
            last[seen.offset] = seen.member
        elif seen.answer == "ok" and last.get(seen.offset) != seen.member:
            broken.append(seen)
    return broken


def never_delivered_to(history: History) -> list[Seen]:
    """An acknowledgement by a member that never had the record: no client sends one."""
    had = set()
    broken = []
    for seen in history:
        if seen.what == "delivered":
            had.add((seen.member, seen.offset))
        elif seen.answer == "ok" and (seen.member, seen.offset) not in had:
            broken.append(seen)
    return broken


def refusals(history: History) -> list[Seen]:
    return [seen for seen in history if seen.answer not in ("", "ok")]


def at_the_limit(history: History) -> list[Seen]:
    return [seen for seen in history if seen.delivery_count >= LIMIT]


def counts_above_ten(history: History) -> list[Seen]:
    return [seen for seen in history if seen.delivery_count > 2 * LIMIT]


def number_of_deliveries(history: History) -> int:
    return max(seen.delivery_count for seen in history)


def no_delivery_after_a_renewal(history: History) -> list[Seen]:
    """A renewed record may well come again, after its time."""
    renewed = set()
    broken = []
    for seen in history:
        if seen.what == "renew" and seen.answer == "ok":
            renewed.add(seen.offset)
        if seen.what == "delivered" and seen.offset in renewed:
            broken.append(seen)
    return broken


def refused_renewals(history: History) -> list[Seen]:
    return [seen for seen in history if seen.what == "renew" and seen.answer != "ok"]


def counts_fall(history: History) -> list[Seen]:
    """A count that stays is not noticed."""
    last: dict[int, int] = {}
    broken = []
    for seen in deliveries(history):
        if seen.delivery_count < last.get(seen.offset, 0):
            broken.append(seen)
        last[seen.offset] = seen.delivery_count
    return broken


def counts_are_one(history: History) -> list[Seen]:
    return [seen for seen in history if seen.delivery_count > 1]


def late_is_refused(history: History) -> list[Seen]:
    """Forgets renewals."""
    last: dict[tuple[str, int], float] = {}
    broken = []
    for seen in history:
        if seen.what == "delivered":
            last[seen.member, seen.offset] = seen.at_s
        elif seen.answer == "ok" and seen.at_s >= last[seen.member, seen.offset] + LOCK_S:
            broken.append(seen)
    return broken


def late_renewals_are_refused(history: History) -> list[Seen]:
    return [seen for seen in refusals(history) if seen.what == "renew"]


def not_delivered_for_long(history: History) -> list[Seen]:
    """A record may rest for longer than a lock: behind a full window, or because it is done."""
    last: dict[int, Seen] = {}
    for seen in deliveries(history):
        last[seen.offset] = seen
    return [seen for seen in last.values() if seen.at_s + LOCK_S < history[-1].at_s]


def all_are_accepted(history: History) -> list[Seen]:
    """Forgets rejects and the limit."""
    accepted = {seen.offset for seen in history if seen.what == "accept" and seen.answer == "ok"}
    return [seen for seen in deliveries(history) if seen.offset not in accepted]


def all_are_delivered(history: History) -> list[Seen]:
    seen = {seen.offset for seen in history}
    return [] if seen >= set(range(RECORDS)) else [history[-1]]


def anything_after_a_close(history: History) -> list[Seen]:
    closed = set()
    broken = []
    for seen in history:
        if seen.what == "close":
            closed.add(seen.member)
        elif seen.member in closed:
            broken.append(seen)
    return broken


def ok_after_a_close(history: History) -> list[Seen]:
    return [seen for before, seen in pairwise(history) if before.what == "close" and seen.answer == "ok"]


def nothing_after_a_close(history: History) -> list[Seen]:
    """An empty fetch after a close is right if the member held nothing."""
    return [seen for before, seen in pairwise(history) if "close" in before and "nothing" in seen]


def too_many_held(history: History) -> list[Seen]:
    """Counts the records in hands; the window counts offsets."""
    held: dict[int, str] = {}
    broken = []
    for seen in history:
        if seen.what == "delivered":
            held[seen.offset] = seen.member
        elif seen.answer == "ok" and seen.what != "renew":
            held.pop(seen.offset, None)
        if len(held) > 3 * LOCKS:
            broken.append(seen)
    return broken


def spso_by_accepts(history: History) -> list[Seen]:
    """Forgets that rejected records, and those at the limit, are done."""
    done: set[int] = set()
    broken = []
    for seen in history:
        if seen.what == "accept" and seen.answer == "ok":
            done.add(seen.offset)
        spso = min(set(range(RECORDS + 1)) - done)
        if seen.what == "delivered" and seen.offset >= spso + LOCKS:
            broken.append(seen)
    return broken


def always_true(history: History) -> Any:
    return True


WRONG = {
    "15.1": [
        (any_accept_is_final, CRIES),
        (rejected_is_done, f"{MISSES} 1. The defect shows in 10 of them, for the first time in run 0 at 6.0 s"),
        (accepts, "and should return lines of the history"),
    ],
    "15.2": [(soon_again, CRIES), (forgets_closings, CRIES), (refusals, CRIES)],
    "15.3": [(ok_only_for_the_last, CRIES), (never_delivered_to, f"{MISSES} 3"), (refusals, CRIES)],
    "15.4": [
        (at_the_limit, CRIES),
        (counts_above_ten, f"{MISSES} 4"),
        (number_of_deliveries, "and should return a list"),
    ],
    "15.5": [(no_delivery_after_a_renewal, CRIES), (refused_renewals, CRIES), (only_to_others, CRIES)],
    "15.6": [(counts_fall, f"{MISSES} 6"), (counts_are_one, CRIES), (always_true, "and should return a list")],
    "15.7": [(late_is_refused, CRIES), (late_renewals_are_refused, CRIES), (not_delivered_for_long, CRIES)],
    "15.8": [(all_are_accepted, CRIES), (all_are_delivered, f"{MISSES} 8"), (delivered_twice, CRIES)],
    "15.9": [(anything_after_a_close, CRIES), (ok_after_a_close, CRIES), (nothing_after_a_close, CRIES)],
    "15.10": [(too_many_held, f"{MISSES} 10"), (spso_by_accepts, CRIES), (delivered_twice, CRIES)],
}
