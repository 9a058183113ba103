"""The steps that a leader is tried with: the table of the KIP, as scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from shareq.lessons.own_leader.record import Leader


class Settings(NamedTuple):
    """The arguments of a leader, and the end of the log."""

    lock_ms: int = 30_000
    limit: int = 3
    locks: int = 6
    log_end: int = 10


Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A method of a leader, and its arguments."""


class Fetch(NamedTuple):
    """A member fetches up to `most` records."""

    member: str
    most: int

    def call(self, leader: Leader, settings: Settings, now_ms: int) -> Call:
        return leader.acquire, (self.member, self.most, settings.log_end, now_ms)

    def __str__(self) -> str:
        return f"{self.member} fetches up to {self.most}"


class Acknowledge(NamedTuple):
    """A member acknowledges records, in ascending order of offset."""

    member: str
    offsets: tuple[int, ...]
    kind: str

    def call(self, leader: Leader, _: Settings, now_ms: int) -> Call:
        return leader.acknowledge, (self.member, list(self.offsets), self.kind, now_ms)

    def __str__(self) -> str:
        return f"{self.member}: {self.kind} {', '.join(map(str, self.offsets))}"


class Wait(NamedTuple):
    """Time passes; then the leader ends the locks whose deadline has come."""

    seconds: int

    def call(self, leader: Leader, _: Settings, now_ms: int) -> Call:
        return leader.expire, (now_ms,)

    def __str__(self) -> str:
        return f"{self.seconds} s pass"


Step = Fetch | Acknowledge | Wait


def time_after(step: Step, now_ms: int) -> int:
    """The time at which a step is carried out: a wait ends later than it begins."""
    return now_ms + step.seconds * 1000 if isinstance(step, Wait) else now_ms


class Script(NamedTuple):
    """Steps in order; the title is the rule that they try."""

    title: str
    steps: tuple[Step, ...]
    settings: Settings = Settings()


def _script(title: str, *steps: Step, **settings: int) -> Script:
    return Script(title, steps, Settings(**settings))


def _says(member: str, kind: str, *offsets: int) -> Acknowledge:
    return Acknowledge(member, offsets, kind)


SCRIPTS: Final[Mapping[str, Sequence[Script]]] = MappingProxyType(
    {
        "acquiring": (
            _script("new records come in order, each to one member", Fetch("ann", 2), Fetch("bob", 3), Fetch("ann", 1)),
            _script("the log has an end", Fetch("ann", 2), Fetch("bob", 5), Fetch("cyd", 1), log_end=3),
            _script("the record locks bound the window", Fetch("ann", 4), Fetch("bob", 4), Fetch("cyd", 1)),
        ),
        "acknowledging": (
            _script("an accepted record is done", Fetch("ann", 2), _says("ann", "accept", 0, 1), Fetch("bob", 1)),
            _script(
                "a released record comes again, with the next count",
                Fetch("ann", 2),
                _says("ann", "release", 0),
                Fetch("bob", 2),
            ),
            _script("a rejected record is archived", Fetch("ann", 2), _says("ann", "reject", 1), Fetch("bob", 2)),
            _script(
                "only the holder acknowledges",
                Fetch("ann", 1),
                _says("bob", "accept", 0),
                _says("ann", "accept", 0),
            ),
            _script(
                "only an acquired record is acknowledged",
                Fetch("ann", 3),
                _says("ann", "release", 1),
                _says("ann", "accept", 1),
                _says("ann", "accept", 2),
                _says("ann", "accept", 2),
            ),
            _script(
                "all or none",
                Fetch("ann", 2),
                Fetch("bob", 1),
                _says("ann", "accept", 0, 1, 2),
                _says("ann", "accept", 0, 1),
            ),
        ),
        "time": (
            _script(
                "a lock ends with its deadline, not before",
                Fetch("ann", 1),
                Wait(29),
                Fetch("bob", 1),
                Wait(1),
                Fetch("cyd", 1),
            ),
            _script("each lock has its own deadline", Fetch("ann", 1), Wait(10), Fetch("bob", 1), Wait(20), Wait(10)),
            _script("after the deadline it is too late", Fetch("ann", 1), Wait(30), _says("ann", "accept", 0)),
            _script(
                "a renewal starts the lock anew",
                Fetch("ann", 1),
                Wait(20),
                _says("ann", "renew", 0),
                Wait(20),
                _says("ann", "accept", 0),
            ),
            _script("only the holder renews", Fetch("ann", 1), Wait(20), _says("bob", "renew", 0), Wait(10)),
        ),
        "the window": (
            _script(
                "the SPSO passes what is done, up to the first record that is not",
                Fetch("ann", 4),
                _says("ann", "accept", 1),
                _says("ann", "reject", 3),
                _says("ann", "accept", 0),
                _says("ann", "accept", 2),
            ),
            _script(
                "a release after the last delivery archives the record",
                Fetch("ann", 1),
                _says("ann", "release", 0),
                Fetch("bob", 1),
                _says("bob", "release", 0),
                log_end=1,
                limit=2,
            ),
            _script(
                "a time-out after the last delivery archives the record, and the SPSO moves",
                Fetch("ann", 1),
                Wait(30),
                Fetch("bob", 1),
                Wait(30),
                Fetch("cyd", 1),
                limit=2,
            ),
            _script(
                "records that are done still fill the window",
                Fetch("ann", 1),
                Fetch("bob", 5),
                _says("bob", "accept", 1, 2, 3, 4, 5),
                Fetch("bob", 1),
                _says("ann", "accept", 0),
                Fetch("bob", 2),
            ),
            _script(
                "a full window delivers what is available in it",
                Fetch("ann", 6),
                _says("ann", "release", 2),
                Fetch("bob", 3),
            ),
            _script(
                "below the SPSO everything is ok, without effect",
                Fetch("ann", 3),
                _says("ann", "accept", 0),
                _says("bob", "release", 0),
                _says("ann", "accept", 0, 1),
                Fetch("bob", 1),
            ),
        ),
    }
)
"""The topic of an exercise -> its scripts."""
