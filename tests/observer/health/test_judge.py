"""Verdicts and diagnoses: successive readings of one group, and the report on the last one. No clock, no cluster.

Ids cite sections of shareq/observer/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pytest

from shareq.model.messages.share_state import StateBatch
from shareq.model.waits import Wait
from shareq.observer.health.judge import Judge
from shareq.observer.health.reading import Durable, GroupReading, Head, Member, Reading
from shareq.observer.health.report import Diagnosis, GroupReport, Kind, PartitionReport, Report, Verdict

AT = ("orders", 0)
LOCK_S = 30
START_S = 1_000_000
IDLE, MOVING, WAITING = Verdict.IDLE, Verdict.MOVING, Verdict.WAITING
UNKNOWN, UNATTENDED, STUCK = Verdict.UNKNOWN, Verdict.UNATTENDED, Verdict.STUCK


def ms(second: int) -> int:
    """Seconds of a case as a time; cases begin at second 0, and brokers may have stored earlier times."""
    return (START_S + second) * 1000


def batches(*texts: str) -> tuple[StateBatch, ...]:
    """first-last/state/count."""
    return tuple(StateBatch(*map(int, text.replace("/", "-").split("-"))) for text in texts)


class Look(NamedTuple):
    """One reading of one share-partition at second `at`.

    `moved`, `changed`, `waiting`: seconds of the times that brokers have stored. `spso` None: no durable state.
    `members`: the number of members with the partition, then that of members without; None: not described.
    """

    at: int
    spso: int | None = 10
    end: int | None = 60
    finished: int = 0
    states: tuple[str, ...] = ()
    moved: int | None = None
    changed: int | None = None
    waiting: int | None = None
    members: tuple[int, int] | None = (1, 0)
    log_start: int | None = 0
    stable: int | None = None
    leader: int = 1
    reset: str = "latest"
    head: tuple[int, int] | None = None
    exists: bool | None = True
    trouble: str = ""
    state_read: bool = True
    configs: tuple[tuple[str, str], ...] = ()

    def durable(self) -> Durable | None:
        if self.spso is None:
            return None
        times = [None if each is None else ms(each) for each in (self.moved, self.changed, self.waiting)]
        return Durable(self.spso, self.finished, batches(*self.states), *times)

    def reading(self) -> Reading:
        group = GroupReading(
            exists=self.exists,
            state="Stable",
            members=self._members(),
            configs={"share.record.lock.duration.ms": f"{LOCK_S}000", "share.auto.offset.reset": self.reset}
            | dict(self.configs),
            durable={AT: self.durable()} if self.exists else {},
            state_read=self.state_read,
            heads={} if self.head is None else {AT: Head(self.head[0], ms(self.head[1]))},
            trouble=self.trouble,
        )
        return Reading(
            groups={"crew": group},
            leaders={AT: self.leader},
            log_starts={} if self.log_start is None else {AT: self.log_start},
            ends={} if self.end is None else {AT: self.end},
            stable_ends={} if self.stable is None else {AT: self.stable},
        )

    def _members(self) -> tuple[Member, ...] | None:
        if self.members is None:
            return None
        having, without = self.members
        held = [Member(f"id-{n}", f"anna-{n}", "/127.0.0.1", frozenset({AT})) for n in range(having)]
        return (*held, *(Member(f"id-x{n}", f"ben-{n}", "/127.0.0.1", frozenset()) for n in range(without)))


def judged(looks: Iterable[Look], judge: Judge | None = None) -> Report:
    """The report on the last one."""
    judge = judge or Judge("here:9092")
    for look in looks:
        report = judge.judge(look.reading(), ms(look.at))
    return report


def group_of(report: Report) -> GroupReport:
    (group,) = report.groups
    return group


def of(report: Report) -> PartitionReport:
    (partition,) = group_of(report).partitions
    return partition


def every(seconds: int, until: int, look: Look) -> list[Look]:
    """The same look again and again."""
    return [look._replace(at=at) for at in range(look.at, until + 1, seconds)]


def case(name: str, looks: list[Look], verdict: Verdict, *kinds: Kind) -> object:
    return pytest.param(looks, verdict, kinds, id=name)


IDLE_NOT_STUCK = [
    case("3.1 the SPSO is at the end, first reading", [Look(0, 60)], IDLE),
    case("3.1 an idle group for an hour", every(60, 3600, Look(0, 60)), IDLE),
    case("3.1 idle since long ago by the state topic", [Look(0, 60, moved=-7200, changed=-7200)], IDLE),
    case("3.1 idle without members", every(60, 600, Look(0, 60, members=(0, 0))), IDLE),
    case("3.1 an empty log that was never used", every(60, 600, Look(0, None, 0)), IDLE),
    case("3.1 all records behind the SPSO are finished", every(60, 600, Look(0, 10, finished=50)), IDLE),
    case("3.1 idle after a move", [Look(0, 10), Look(2, 60), *every(60, 600, Look(40, 60))], IDLE),
    case("3.2 records wait, no members", [Look(0, members=(0, 0))], UNATTENDED, Kind.NO_MEMBERS),
    case(
        "3.2 records wait, another member", [Look(0, members=(0, 1))], UNATTENDED, Kind.PARTITION_UNASSIGNED
    ),
    case(
        "3.2 the members have left a group that moved", [Look(0, 10), Look(2, 20), Look(4, 20, members=(0, 0))],
        UNATTENDED, Kind.NO_MEMBERS,
    ),
    case("3.3 the SPSO moves", [Look(0, 10), Look(2, 11)], MOVING),
    case("3.3 it moves slowly, once in a lock duration", [Look(n * 30, 10 + n) for n in range(20)], MOVING),
    case(
        "3.3 it moves slowly while the lag grows",
        [Look(n * 20, 10 + n, 60 + 1000 * n) for n in range(20)], MOVING,
    ),
    case("3.3 it moved a lock duration ago", [Look(0, 10), Look(2, 20), Look(2 + LOCK_S, 20)], MOVING),
    case("3.3 it moved just before the first reading", [Look(0, moved=-5, waiting=-5)], MOVING),
    case("3.4 records wait since the first reading", every(5, LOCK_S, Look(0)), WAITING),
    case("3.4 for longer than the lock", every(5, LOCK_S + 5, Look(0)), STUCK, Kind.STATE_NOT_MOVING),
    case("3.4 the lock duration is the group's",
         every(5, 35, Look(0, configs=(("share.record.lock.duration.ms", "60000"),))), WAITING),
    case("3.4 records that come now do not wait since the last move",
         [*every(60, 600, Look(0, 60)), Look(610, 60, 61)], WAITING),
    case("3.4 they are stuck a lock duration later",
         [*every(60, 600, Look(0, 60)), *every(10, 650, Look(610, 60, 61))], STUCK, Kind.STATE_NOT_MOVING),
    case("3.4 it does not move for longer than the lock", [Look(0, 10), *every(5, 45, Look(2, 20))], STUCK,
         Kind.STATE_NOT_MOVING),
    case("3.4 it has moved again", [Look(0, 10), *every(5, 47, Look(2, 20)), Look(50, 21)], MOVING),
    case("3.4 a member that was seen now for the first time is not stuck", [Look(0, moved=-7200, waiting=-7200)],
         WAITING),
    case("3.4 a member that joins an unattended group has a lock duration",
         [*every(60, 600, Look(0, members=(0, 0))), *every(10, 640, Look(610))], WAITING),
    case("3.4 and is stuck after that",
         [*every(60, 600, Look(0, members=(0, 0))), *every(10, 650, Look(610))], STUCK, Kind.STATE_NOT_MOVING),
    case("3.4 a pause without members counts from its end",
         [*every(10, 60, Look(0)), Look(70, members=(0, 0)), *every(10, 100, Look(80))], WAITING),
    case("3.5 the state topic shows the wait of the first reading",
         [Look(0, moved=-60, waiting=-60), Look(31, moved=-60, waiting=-60)], STUCK, Kind.STATE_NOT_MOVING),
    case("3.5 a broker's clock is 10 minutes slow: it moves",
         [Look(n * 5, 10 + n, moved=n * 5 - 600, waiting=n * 5 - 600) for n in range(20)], MOVING),
    case("3.5 a broker's clock is 10 minutes fast: it is stuck",
         every(5, 40, Look(0, moved=600, waiting=600)), STUCK, Kind.STATE_NOT_MOVING),
    case("3.6 an open transaction at the SPSO",
         every(10, 600, Look(0, 10, stable=10)), WAITING, Kind.OPEN_TRANSACTION),
    case("3.6 records before the open transaction do wait",
         every(10, 600, Look(0, 10, stable=11)), STUCK, Kind.STATE_NOT_MOVING),
    case("3.6 the transaction has just ended",
         [*every(10, 600, Look(0, 10, stable=10, waiting=-60)), Look(602, 10, stable=60, waiting=-60)], WAITING),
    case("3.7 retention has removed all records", every(10, 600, Look(0, 10, log_start=60)), IDLE),
    case("3.7 retention has removed some", every(10, 600, Look(0, 10, log_start=40)), STUCK, Kind.STATE_NOT_MOVING),
    case("3.8 the end is not known", every(10, 600, Look(0, end=None)), UNKNOWN),
    case("3.8 the members are not known", every(10, 600, Look(0, members=None, trouble="no answer")), UNKNOWN,
         Kind.NOT_READABLE),
    case("3.8 known again, a member has a lock duration",
         [*every(10, 600, Look(0)), Look(610, members=None, trouble="no answer"), Look(620)], WAITING),
    case("3.8 idle is certain without members' names", [Look(0, 60, members=None, trouble="no answer")], IDLE,
         Kind.NOT_READABLE),
    case("3.8 no durable start, latest", every(10, 600, Look(0, None)), UNKNOWN, Kind.NOT_INITIALIZED),
    case("2.5 no durable start, earliest: the record at the log start waits",
         every(10, 600, Look(0, None, reset="earliest")), STUCK, Kind.STATE_NOT_MOVING, Kind.NOT_INITIALIZED),
    case("2.5 no durable start, latest, and records since then",
         [Look(0, None, 60), *every(10, 600, Look(10, None, 70))], STUCK, Kind.STATE_NOT_MOVING, Kind.NOT_INITIALIZED),
    case("2.5 no durable start and no member", every(10, 600, Look(0, None, members=(0, 0))), UNKNOWN),
]  # fmt: skip


@pytest.mark.parametrize(("looks", "verdict", "kinds"), IDLE_NOT_STUCK)
def test_verdicts(looks: list[Look], verdict: Verdict, kinds: tuple[Kind, ...]) -> None:
    report = judged(looks)
    assert of(report).verdict is group_of(report).verdict is verdict
    found = [d.kind for d in group_of(report).diagnoses]
    assert [kind for kind in found if kind is not Kind.MEMBER_UNASSIGNED] == list(kinds)


def test_a_stuck_group_differs_from_an_idle_one_in_every_reading() -> None:
    """3.1, 3.4: two groups that differ only in one record; the one without it is IDLE from the first reading on."""
    idle, stuck = Judge("here:9092"), Judge("here:9092")
    pairs = [
        (of(judged([Look(at, 60, 60)], idle)).verdict, of(judged([Look(at, 60, 61)], stuck)).verdict)
        for at in range(0, 3600, 10)
    ]
    assert {first for first, _ in pairs} == {IDLE}
    assert [second for _, second in pairs[:5]] == [WAITING] * 4 + [STUCK]
    assert {second for _, second in pairs[4:]} == {STUCK}


def test_a_wait_is_younger_than_the_last_reading_without_it() -> None:
    """3.5: the state topic shows that the record at the SPSO may have been there, and a reading that it was not."""
    looks = [*every(60, 600, Look(0, 60, waiting=-60)), Look(610, 60, 61, waiting=-60)]
    assert of(judged(looks)).since_ms == ms(600)
    moved = [Look(0, 10), Look(5, 20, waiting=-600)]
    assert of(judged(moved)).since_ms == ms(0)


def test_the_report_on_an_idle_partition_follows_its_readings() -> None:
    """3.1: members, end and log start may change while it stays idle."""
    idle = Look(0, 60)
    changed = [Look(10, 60, members=(3, 0)), Look(10, 70, 70), Look(10, 60, leader=2), Look(10, 60, state_read=False)]
    found = [of(judged([idle, idle._replace(at=5), each])) for each in changed]
    assert [p.verdict for p in found] == [IDLE] * 4
    assert [found[0].members, found[1].end_offset, found[2].leader] == [3, 70, 2]
    assert found[3].finished_records is None


# ---- diagnoses -------------------------------------------------------------------------------------------------------


PAUSED = (("shareq.delivery.enable", "false"),)
FULL_AT_20 = (("share.partition.max.record.locks", "20"),)


@pytest.mark.parametrize(
    ("look", "wait"),
    [
        pytest.param(Look(0, 60), Wait.LOG_END, id="no record waits"),
        pytest.param(Look(0, 60, configs=PAUSED), Wait.LOG_END, id="paused, none waits"),
        pytest.param(Look(0, 10, stable=10), Wait.LOG_END, id="an open transaction"),
        pytest.param(Look(0, 10), None, id="records wait"),
        pytest.param(Look(0, 10, configs=PAUSED), Wait.PAUSED, id="paused"),
        pytest.param(Look(0, 10, 3000, states=("2008-2008/2/1",)), None, id="one place is left"),
        pytest.param(Look(0, 10, 3000, states=("2009-2009/2/1",)), Wait.WINDOW_FULL, id="full, by Kafka's default"),
        pytest.param(Look(0, 10, 3000, states=("10-10/3/5", "2009-2009/2/1")), Wait.DEAD_LETTERS, id="dead letters"),
        pytest.param(Look(0, 10, 3000, states=("10-10/0/5", "2009-2009/2/1")), Wait.WINDOW_FULL, id="full, returned"),
        pytest.param(Look(0, 10, None), None, id="the end is not known"),
        pytest.param(Look(0, None), None, id="the start is not known"),
    ],
)
def test_what_a_share_partition_certainly_waits_for(look: Look, wait: Wait | None) -> None:
    """2.6."""
    assert of(judged([look])).waits is wait


def diagnosis(looks: list[Look], kind: Kind) -> Diagnosis:
    return next(d for d in group_of(judged(looks)).diagnoses if d.kind is kind)


STILL = Look(0, 10, finished=3, states=("11-13/2/1",), moved=-60, waiting=-60)

SENTENCES = [
    pytest.param(
        [*every(10, 30, STILL._replace(changed=-60)),
         STILL._replace(at=40, finished=4, states=("11-14/2/1",), changed=40)],
        Kind.WINDOW_STUCK, 10, -60,
        "crew orders-0: the window is stuck on offset 10 since ? (1 min): a member holds it, or it was not delivered;"
        " 4 records behind it are finished",
        id="4.1 records behind it are acknowledged",
    ),
    pytest.param(
        every(10, 40, Look(0, 10, states=("10-10/0/3", "11-11/2/1"), finished=1, waiting=-60, changed=-60)),
        Kind.STATE_NOT_MOVING, 10, -60,
        "crew orders-0: the state does not move; offset 10 waits since ? (1 min): it was returned after delivery 3;"
        " 1 record behind it is finished",
        id="4.2 a returned record",
    ),
    pytest.param(
        every(10, 40, Look(0, 10, states=("10-10/3/5",), changed=-60)), Kind.STATE_NOT_MOVING, 10, 0,
        "crew orders-0: the state does not move; offset 10 waits since ? (40 s): it waits for the dead letter queue",
        id="4.2 a record on its way to the dead letter queue",
    ),
    pytest.param(
        every(10, 40, Look(0, 10, changed=-60, configs=PAUSED)), Kind.STATE_NOT_MOVING, 10, 0,
        "crew orders-0: the state does not move; offset 10 waits since ? (40 s):"
        " the group is paused: shareq.delivery.enable=false",
        id="4.2 the group is paused",
    ),
    pytest.param(
        every(10, 40, Look(0, 10, finished=1, states=("29-29/2/1",), changed=-60, configs=FULL_AT_20)),
        Kind.STATE_NOT_MOVING, 10, 0,
        "crew orders-0: the state does not move; offset 10 waits since ? (40 s):"
        " a member holds it, or it was not delivered; the window is full; 1 record behind it is finished",
        id="4.2 the window is full",
    ),
    pytest.param(
        every(10, 40, Look(0, 10, states=("10-29/3/5",), changed=-60, configs=FULL_AT_20)),
        Kind.STATE_NOT_MOVING, 10, 0,
        "crew orders-0: the state does not move; offset 10 waits since ? (40 s): the window is full, and its first"
        " unfinished record is on its way to the dead-letter queue",
        id="4.2 the window is full of records on their way to the dead letter queue",
    ),
    pytest.param(
        every(10, 40, Look(0, 10, state_read=False)), Kind.WINDOW_STUCK, 10, 0,
        "crew orders-0: the window is stuck on offset 10 since ? (40 s)",
        id="4.1 the durable state cannot be read",
    ),
    pytest.param(
        [Look(0, states=("10-10/0/1", "12-14/0/4"))], Kind.POISON, 12, 0,
        "crew orders-0: offset 12 was delivered 4 times of at most 5, so its next delivery is the last"
        " (2 records more like it)",
        id="4.3 the next delivery is the last",
    ),
    pytest.param(
        [Look(0, states=("10-10/0/2",), configs=(("share.delivery.count.limit", "3"),))], Kind.POISON, 10, 0,
        "crew orders-0: offset 10 was delivered 2 times of at most 3, so its next delivery is the last",
        id="4.3 the limit is the group's",
    ),
    pytest.param(
        [Look(0, members=(0, 0), waiting=-90)], Kind.NO_MEMBERS, None, -90,
        "crew has no members: 50 records wait since ? (1 min)", id="4.4 no members",
    ),
    pytest.param(
        [Look(0, 10, 11, members=(0, 0)), Look(7200, 10, 11, members=(0, 0))], Kind.NO_MEMBERS, None, 0,
        "crew has no members: 1 record waits since ? (2 h)", id="4.4 one record",
    ),
    pytest.param(
        every(5, 20, Look(0, members=(0, 1))), Kind.PARTITION_UNASSIGNED, 10, 0,
        "crew orders-0 has no member, and its records wait since ? (20 s)", id="4.5 no member has it",
    ),
    pytest.param(
        every(5, 15, Look(0, 60, members=(1, 1))), Kind.MEMBER_UNASSIGNED, None, 0,
        "crew: ben-0 has no partitions since ? (15 s)", id="4.6 a member without partitions",
    ),
    pytest.param(
        every(5, 15, Look(0, 60, members=(0, 7))), Kind.MEMBER_UNASSIGNED, None, 0,
        "crew: ben-0, ben-1, ben-2, ben-3, ben-4 and others have no partitions since ? (15 s)",
        id="4.6 many members",
    ),
    pytest.param(
        [Look(0, None)], Kind.NOT_INITIALIZED, None, None,
        "crew orders-0 has no durable start offset: no outcome of a record is stored yet", id="4.7 no durable state",
    ),
    pytest.param(
        [Look(0, -1, reset="earliest")], Kind.NOT_INITIALIZED, None, None,
        "crew orders-0 has no durable start offset: no outcome of a record is stored yet", id="4.7 initialized only",
    ),
    pytest.param(
        [Look(0, 10, stable=10)], Kind.OPEN_TRANSACTION, 10, None,
        "crew orders-0: offset 10 belongs to an open transaction, for which the group waits",
        id="4.8 an open transaction",
    ),
    pytest.param(
        every(5, 10, Look(0, leader=-1)), Kind.LEADER_UNAVAILABLE, None, 0,
        "crew orders-0 has no leader since ? (10 s)",
        id="4.9 no leader",
    ),
    pytest.param(
        every(5, 10, Look(0, exists=False, members=None)), Kind.GROUP_UNKNOWN, None, 0,
        "crew does not exist since ? (10 s)", id="4.10 no such group",
    ),
    pytest.param(
        every(5, 10, Look(0, exists=None, members=None, trouble="GROUP_AUTHORIZATION_FAILED")), Kind.NOT_READABLE,
        None, 0,
        "crew cannot be read since ? (10 s): GROUP_AUTHORIZATION_FAILED", id="4.10 it cannot be read",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("looks", "kind", "offset", "since", "sentence"), SENTENCES)
def test_diagnoses(looks: list[Look], kind: Kind, offset: int | None, since: int | None, sentence: str) -> None:
    """The time of day in a sentence depends on the time zone; here it is `?`."""
    found = diagnosis(looks, kind)
    assert (found.group, found.offset, found.since_ms) == ("crew", offset, None if since is None else ms(since))
    head, time_of_day, tail = found.sentence.partition(" since ")
    assert head + (f" since ?{tail[8:]}" if time_of_day else "") == sentence


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(Look(0, states=("10-10/0/3",)), id="4.3 two deliveries are left"),
        pytest.param(Look(0, states=("11-11/4/5",), finished=1), id="4.3 an archived record"),
        pytest.param(Look(0, states=("11-11/2/5",), finished=1), id="4.3 a record acknowledged at the last delivery"),
        pytest.param(Look(0, states=("10-10/0/0",), configs=(("share.delivery.count.limit", "1"),)), id="4.3 new"),
    ],
)  # fmt: skip
def test_no_poison(look: Look) -> None:
    assert Kind.POISON not in {d.kind for d in group_of(judged([look])).diagnoses}


def test_the_time_of_a_diagnosis_begins_again_when_it_has_ended() -> None:
    """4.11."""
    poison, cured = Look(0, states=("10-10/0/4",)), Look(5, 11)
    assert diagnosis([poison, cured, poison._replace(at=9)], Kind.POISON).since_ms == ms(9)
    leaderless, led = Look(0, leader=-1), Look(5)
    assert diagnosis([leaderless, led, leaderless._replace(at=9)], Kind.LEADER_UNAVAILABLE).since_ms == ms(9)
    alone = Look(0, 60, members=(1, 1))
    assert diagnosis([alone, Look(5, 60), *every(15, 21, alone._replace(at=6))], Kind.MEMBER_UNASSIGNED).since_ms == ms(
        6
    )


# ---- figures ---------------------------------------------------------------------------------------------------------

FIGURES = [
    pytest.param(Look(0, 60), {"lag_records": 0, "in_flight_at_least_records": 0, "in_flight_at_most_records": 0,
                               "oldest_unfinished_age_ms": None, "since_ms": None}, id="2.2 idle"),
    pytest.param(
        Look(0, 10, finished=5, states=("12-16/2/1", "20-21/0/2")),
        {"lag_records": 45, "finished_records": 5, "in_flight_at_least_records": 12, "in_flight_at_most_records": 50,
         "returned_records": 2, "poison_records": 0, "delivery_count_max": 2},
        id="2.3 states behind the SPSO",
    ),
    pytest.param(Look(0, 10, 14, states=("10-13/0/1",)),
                 {"in_flight_at_least_records": 4, "in_flight_at_most_records": 4}, id="2.3 exact to the end"),
    pytest.param(Look(0, 10, finished=5, state_read=False),
                 {"lag_records": 45, "finished_records": None, "in_flight_at_least_records": None,
                  "in_flight_at_most_records": 50, "returned_records": None, "poison_records": None,
                  "delivery_count_max": None}, id="2.3 the state cannot be read: unknown"),
    pytest.param(Look(0, 10, finished=8, states=("12-19/2/1",), log_start=15),
                 {"start_offset": 10, "lag_records": 40, "finished_records": 5, "in_flight_at_most_records": 45},
                 id="2.2 below the log start no record is counted"),
    pytest.param(Look(0, 10, head=(10, -95)),
                 {"oldest_unfinished_age_ms": 95_000, "oldest_unfinished_timestamp_ms": ms(-95)}, id="2.4 an age"),
    pytest.param(Look(0, 10, head=(10, 95)), {"oldest_unfinished_age_ms": 0}, id="2.4 a timestamp of the future"),
    pytest.param(Look(0, 11, head=(10, -95)), {"oldest_unfinished_age_ms": None}, id="2.4 of another record"),
    pytest.param(Look(0, None, reset="earliest", log_start=20),
                 {"start_offset": None, "lag_records": 40, "in_flight_at_least_records": None}, id="2.5 earliest"),
    pytest.param(Look(0, None), {"start_offset": None, "lag_records": None, "in_flight_at_most_records": None},
                 id="2.5 latest"),
    pytest.param(Look(0, members=(2, 1)), {"members": 2}, id="2.1 members with the partition"),
    pytest.param(Look(0, leader=-1, end=None), {"leader": None, "end_offset": None, "lag_records": None},
                 id="3.8 without a leader"),
]  # fmt: skip


@pytest.mark.parametrize(("look", "figures"), FIGURES)
def test_figures(look: Look, figures: dict[str, object]) -> None:
    found = of(judged([look]))._asdict()
    assert {name: found[name] for name in figures} == figures


def test_a_group_sums_its_partitions_and_has_the_most_urgent_verdict() -> None:
    """3.9: two topics of one group, one of them unknown."""
    reading = Look(0, 10, 60, head=(10, -7), members=(0, 0)).reading()
    other = ("bills", 3)
    reading.groups["crew"].durable[other] = Durable(5)
    report = group_of(Judge("here:9092").judge(reading, ms(0)))
    assert [p.name for p in report.partitions] == ["bills-3", "orders-0"]
    assert [p.verdict for p in report.partitions] == [UNKNOWN, UNATTENDED]
    assert (report.verdict, report.lag_records, report.partitions_of_unknown_lag) == (UNATTENDED, 50, 1)
    assert (report.oldest_unfinished_age_ms, report.since_ms) == (7000, ms(0))


@pytest.mark.parametrize(
    ("group", "verdict"),
    [
        pytest.param(
            GroupReading(exists=True, state="Empty", members=()), IDLE, id="3.1 an empty group without topics"
        ),
        pytest.param(GroupReading(exists=False), UNKNOWN, id="3.8 no such group"),
        pytest.param(GroupReading(exists=True, trouble="no answer"), UNKNOWN, id="3.8 not readable"),
    ],
)
def test_a_group_without_partitions(group: GroupReading, verdict: Verdict) -> None:
    report = group_of(Judge("here:9092").judge(Reading(groups={"crew": group}), ms(0)))
    assert (report.verdict, report.lag_records, report.partitions) == (verdict, 0, ())


# ---- readings that fail, groups that go ------------------------------------------------------------------------------


def test_an_unreachable_cluster_leaves_the_last_report() -> None:
    """1.8: the time is that of the first failure."""
    judge = Judge("here:9092")
    before = judged([Look(0)], judge)
    lost = Reading(unreachable=True, trouble="the cluster does not answer")
    judge.judge(lost, ms(5))
    report = judge.fail("_TIMED_OUT", ms(10))
    assert (report.unreachable_since_ms, report.trouble, report.time_ms) == (ms(5), "_TIMED_OUT", ms(10))
    assert report.groups == before.groups
    again = judged([Look(15)], judge)
    assert (again.unreachable_since_ms, again.trouble) == (None, "")
    assert of(again).since_ms == ms(0)


def test_a_wait_goes_on_while_the_cluster_is_unreachable() -> None:
    """3.4, 3.5: the SPSO has not moved meanwhile, and members have a lock duration for what they get anew."""
    judge = Judge("here:9092")
    judged(every(10, 50, Look(0)), judge)
    judge.fail("no answer", ms(60))
    after = of(judged([Look(100)], judge))
    assert (after.verdict, after.since_ms) == (WAITING, ms(0))
    assert of(judged([Look(131)], judge)).verdict is STUCK


def test_a_group_that_is_deleted_and_created_again_begins_anew() -> None:
    looks = [*every(10, 600, Look(0)), Look(610, exists=False, members=None), Look(620)]
    assert of(judged(looks)).since_ms == ms(620)


def test_a_report_is_plain_json_values_with_the_documented_keys() -> None:
    """6.1, 6.2, 6.3, 6.4."""
    from json import dumps, loads
    from pathlib import Path

    import shareq.observer

    report = judged(every(10, 40, Look(0, states=("10-10/0/4",))))
    text = dumps(report.to_dict())
    plain = loads(text)
    assert plain == report.to_dict()
    (group,) = plain["groups"]
    (partition,) = group["partitions"]
    assert (partition["verdict"], group["diagnoses"][0]["kind"]) == ("stuck", "state_not_moving")
    rules = (Path(shareq.observer.__file__).parent / "BEHAVIOUR.md").read_text().partition("## 6 JSON")[2]
    for place, number in ((plain, "6.1"), (group, "6.2"), (partition, "6.3"), (group["diagnoses"][0], "6.4")):
        section = rules.partition(f"\n{number} ")[2].partition("\n\n")[0]
        assert [key for key in place if f"`{key}`" not in section] == []
