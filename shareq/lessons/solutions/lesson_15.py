"""Solutions of the lab "find the bug": each looks for lines that break one rule."""

from __future__ import annotations

from typing import Final

from shareq.lessons.broken import LIMIT, LOCK_S, LOCKS, RECORDS, History, Seen


def accepted_is_done(history: History) -> list[Seen]:
    done, broken = set(), []
    for seen in history:
        if seen.what == "accept" and seen.answer == "ok":
            done.add(seen.offset)
        if seen.what == "delivered" and seen.offset in done:
            broken.append(seen)
    return broken


def locks_last(history: History) -> list[Seen]:
    held: dict[int, Seen] = {}
    broken = []
    for seen in history:
        if seen.what == "delivered":
            before = held.get(seen.offset)
            if before and seen.at_s < before.at_s + LOCK_S:
                broken.append(seen)
            held[seen.offset] = seen
        elif seen.what == "close":
            held = {offset: last for offset, last in held.items() if last.member != seen.member}
        elif seen.answer == "ok" and seen.what != "renew":
            held.pop(seen.offset, None)
    return broken


def only_the_holder(history: History) -> list[Seen]:
    held: dict[int, tuple[str, float]] = {}  # holder, and the end of the lock
    broken = []
    for seen in history:
        holder, until_s = held.get(seen.offset, ("", 0))
        if seen.what == "delivered":
            held[seen.offset] = seen.member, seen.at_s + LOCK_S
        elif seen.what == "close":
            held = {offset: (name, end_s) for offset, (name, end_s) in held.items() if name != seen.member}
        elif seen.answer == "ok" and holder not in ("", seen.member) and seen.at_s < until_s:
            broken.append(seen)  # a record without a holder may be below the SPSO, where every answer is ok
        elif seen.answer == "ok" and seen.what == "renew":
            held[seen.offset] = seen.member, seen.at_s + LOCK_S
        elif seen.answer == "ok":
            held.pop(seen.offset, None)
    return broken


def five_deliveries(history: History) -> list[Seen]:
    return [seen for seen in history if seen.delivery_count > LIMIT]


def renewals_last(history: History) -> list[Seen]:
    until_s: dict[int, tuple[str, float]] = {}  # of renewed records: holder, and the end of the lock
    broken = []
    for seen in history:
        if seen.what == "delivered":
            _, end_s = until_s.pop(seen.offset, ("", 0))
            if seen.at_s < end_s:
                broken.append(seen)
        elif seen.what == "close":
            until_s = {offset: held for offset, held in until_s.items() if held[0] != seen.member}
        elif seen.answer == "ok" and seen.what == "renew":
            until_s[seen.offset] = seen.member, seen.at_s + LOCK_S
        elif seen.answer == "ok":
            until_s.pop(seen.offset, None)
    return broken


def counts_grow(history: History) -> list[Seen]:
    deliveries: dict[int, int] = {}
    broken = []
    for seen in history:
        if seen.what == "delivered":
            deliveries[seen.offset] = deliveries.get(seen.offset, 0) + 1
            if seen.delivery_count != deliveries[seen.offset]:
                broken.append(seen)
    return broken


def too_late_is_refused(history: History) -> list[Seen]:
    last: dict[int, Seen] = {}  # the last delivery or renewal of each record
    broken = []
    for seen in history:
        before = last.get(seen.offset)
        late = before is not None and before.member == seen.member and seen.at_s >= before.at_s + LOCK_S
        if seen.what == "delivered":
            last[seen.offset] = seen
        elif seen.answer == "ok" and late and before is not None and before.delivery_count < LIMIT:
            broken.append(seen)
        elif seen.answer == "ok" and seen.what == "renew" and before is not None:
            last[seen.offset] = before._replace(at_s=seen.at_s)
        elif seen.answer == "ok":
            last.pop(seen.offset, None)
    return broken


def nothing_is_lost(history: History) -> list[Seen]:
    last: dict[int, Seen] = {}
    ended = set()
    for seen in history:
        if seen.what == "delivered":
            last[seen.offset] = seen
        if (seen.what in ("accept", "reject") and seen.answer == "ok") or seen.delivery_count == LIMIT:
            ended.add(seen.offset)
    return [seen for offset, seen in last.items() if offset not in ended]


def closing_gives_back(history: History) -> list[Seen]:
    held: dict[int, Seen] = {}
    free: set[int] = set()  # given back by a closed session, and to be delivered before anything above
    broken = []
    for seen in history:
        if seen.what == "close":
            mine = [last for last in held.values() if last.member == seen.member and seen.at_s < last.at_s + LOCK_S]
            free |= {last.offset for last in mine if last.delivery_count < LIMIT}
            held = {offset: last for offset, last in held.items() if last.member != seen.member}
        elif seen.what == "delivered":
            if any(offset < seen.offset for offset in free):
                broken.append(seen)
            free.discard(seen.offset)
            held[seen.offset] = seen
        elif seen.what == "nothing" and free:
            broken.append(seen)
        elif seen.answer == "ok" and seen.what != "renew":
            held.pop(seen.offset, None)
    return broken


def the_window_is_bounded(history: History) -> list[Seen]:
    ended: set[int] = set()
    broken = []
    for seen in history:
        if (seen.what in ("accept", "reject") and seen.answer == "ok") or seen.delivery_count == LIMIT:
            ended.add(seen.offset)  # after the fifth delivery a record may be archived without a word
        spso = min(offset for offset in range(RECORDS + 1) if offset not in ended)
        if seen.what == "delivered" and seen.offset >= spso + LOCKS:
            broken.append(seen)
    return broken


SOLUTIONS: Final = {
    "15.1": accepted_is_done,
    "15.2": locks_last,
    "15.3": only_the_holder,
    "15.4": five_deliveries,
    "15.5": renewals_last,
    "15.6": counts_grow,
    "15.7": too_late_is_refused,
    "15.8": nothing_is_lost,
    "15.9": closing_gives_back,
    "15.10": the_window_is_bounded,
}
