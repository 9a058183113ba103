"""Lesson 04, groups: assignments, epochs, sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from shareq.lessons.checks import NotYet, Passed, check
from shareq.lessons.exercise import Answer, Exercises, accepted_by_brokers, ask
from shareq.lessons.office import Office
from shareq.model.events import HeartbeatReceived, MemberLeft

EXERCISES: Final = Exercises("04")

MEMBERS: Final = 10
NOTICED_S: Final = 20


@EXERCISES.judged_by(
    "Ten members, four partitions",
    "The assignor plans ⌈members / partitions⌉ members for each partition.",
    "With three members for each of four partitions there are twelve places. Ten members share them nearly equally.",
)
def ten_members(answer: Answer) -> Passed:
    numbers = ask(answer, wants=tuple)
    if len(numbers) != 2 or not all(isinstance(number, int) for number in numbers):
        raise NotYet(f"✗ my_answer returns {numbers!r}, and should return two whole numbers")
    office = Office()
    team = [office.join(f"member {number}") for number in range(MEMBERS)]
    office.cluster.advance(12_000)
    held = office.partitions
    members = max(Counter(index for indexes in held.values() for index in indexes).values())
    partitions = max(map(len, held.values()))
    if numbers[0] != members:
        raise NotYet(f"✗ not {numbers[0]} members of a partition: {len(team)} members share four of them")
    return check(
        numbers[1] == partitions,
        f"a partition has {members} members at most, and a member {partitions} partitions at most",
        f"not {numbers[1]} partitions of a member: {members} members of each partition make {4 * members} places",
    )


@EXERCISES.judged_by(
    "Read the epochs",
    "Which events of a member's life raise the group epoch?",
    "A member that joins raises it by one.",
    "A member that leaves raises it by one more: close().",
)
def two_epochs(answer: Answer) -> Passed:
    office = Office()
    team = [office.join(name) for name in ("ann", "bob")]
    office.cluster.advance(12_000)
    before = office.view.group_epoch
    ask(answer, office)
    office.cluster.advance(6_000)
    raised = office.view.group_epoch - before
    return check(
        raised == len(team),
        f"the group epoch is {before + raised}, two more than {before}",
        f"the group epoch was raised by {raised}, and should have been by 2",
    )


@EXERCISES.judged_by(
    "Notice it sooner",
    "The session time-out says how long a member may be silent.",
    "group.share.session.timeout.ms must not be below group.share.min.session.timeout.ms: lower both.",
    "20 seconds at most, but more than one heartbeat interval of 5 seconds: one heartbeat may be lost.",
)
def noticed_sooner(answer: Answer) -> Passed:
    office = _office(ask(answer, wants=dict))
    team = {name: office.join(name) for name in ("ann", "bob")}
    office.cluster.advance(12_000)
    office.cluster.crash(team["bob"])
    office.cluster.advance(60_000)
    if "ann" not in office.epochs:
        raise NotYet("✗ ann is out, too, although she is well: the time-out is shorter than the heartbeat's interval")
    [(crashed, gone_ms)] = _last_ms(office, MemberLeft).items()
    silent_s = (gone_ms - _last_ms(office, HeartbeatReceived)[crashed]) / 1000
    return check(
        silent_s <= NOTICED_S,
        f"a crashed member is out after {silent_s:g} s",
        f"a crashed member is out after {silent_s:g} s, {NOTICED_S} are allowed",
    )


def _last_ms(office: Office, kind: type) -> dict[str, int]:
    """Member id -> the time of its last event of a kind."""
    events: list[tuple[Any, int]] = [(entry.event, entry.time_ms) for entry in office.cluster.journal.select(kind)]
    return {event.member_id: time_ms for event, time_ms in events}


@EXERCISES.judged_by(
    "Every member, every partition",
    "The assignor computes which member fetches from where. Its configuration is group.share.assignors.",
    "Besides simple there is all_to_all.",
)
def everywhere(answer: Answer) -> Passed:
    office = _office(ask(answer, wants=dict))
    team = [office.join(name) for name in ("ann", "bob", "cyd")]
    office.cluster.advance(12_000)
    fewest = min(map(len, office.partitions.values()))
    return check(
        fewest == 4,
        f"each of the {len(team)} members fetches from all four partitions",
        f"a member fetches from {fewest} of the four partitions",
    )


def _office(config: Mapping[str, Any]) -> Office:
    with accepted_by_brokers():
        return Office(config=config)
