"""What a consumer at work does with its records."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields

from shareq.client.message import Message
from shareq.model.errors import ConfigException
from shareq.model.numbers import plain_fields
from shareq.model.states import AcknowledgeType

POISON, SLOW = b"poison", b"slow"
"""The words in a record's key or value that mark it."""

LONGEST_MS = 3_600_000
"""The longest time that a record may take."""

COMMITS = ("poll", "record")
"""When acknowledgements are sent: with the next poll, or after each record."""

_VERDICTS = ("accept", "release", "reject")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Policy:
    """What a consumer does with its records, one after the other. ConfigException for an invalid value.

    `work_ms`: the time that a record takes; `slow_ms`: the time of a record with the word "slow" in its key or value
    (None: as any other). `poison`: the acknowledge type of a record with the word "poison": "accept", "release" or
    "reject". `release`: the share of all other records that are released, 0.0..1.0. `renew`: renew the locks of the
    records in work after each half of the lock duration. `commit`: acknowledgements are sent with the next "poll", as
    in a plain poll loop, or after each "record".
    """

    work_ms: int = 100
    slow_ms: int | None = None
    poison: str = "accept"
    release: float = 0.0
    renew: bool = False
    commit: str = "poll"

    def __post_init__(self) -> None:
        plain_fields(self)
        for name in ("work_ms", "slow_ms"):
            value = getattr(self, name)
            if value is not None or name == "work_ms":
                whole = isinstance(value, int) and not isinstance(value, bool)
                _check(name, value, whole and 0 <= value <= LONGEST_MS, f"a whole number in 0..{LONGEST_MS}")
        number = isinstance(self.release, (int, float)) and not isinstance(self.release, bool)
        _check("release", self.release, number and 0 <= self.release <= 1, "a number in 0.0..1.0")
        _check("poison", self.poison, self.poison in _VERDICTS, f"one of {', '.join(_VERDICTS)}")
        _check("renew", self.renew, isinstance(self.renew, bool), "True or False")
        _check("commit", self.commit, self.commit in COMMITS, f"one of {', '.join(COMMITS)}")

    def time_ms(self, message: Message) -> int:
        """The time that a record takes."""
        return self.slow_time_ms if _marked(message, SLOW) else self.work_ms

    @property
    def slow_time_ms(self) -> int:
        """The time that a slow record takes."""
        return self.work_ms if self.slow_ms is None else self.slow_ms

    def verdict(self, message: Message, rng: random.Random) -> AcknowledgeType:
        """The acknowledge type of a record."""
        if _marked(message, POISON):
            return AcknowledgeType[self.poison.upper()]
        return AcknowledgeType.RELEASE if self.release and rng.random() < self.release else AcknowledgeType.ACCEPT

    def __repr__(self) -> str:
        """The call that makes it, without the defaults."""
        changed = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return f"Policy({', '.join(f'{name}={value!r}' for name, value in changed)})"


def _marked(message: Message, word: bytes) -> bool:
    return any(isinstance(part, bytes) and word in part for part in (message.key(), message.value()))


def _check(name: str, value: object, legal: bool, allowed: str) -> None:
    if not legal:
        raise ConfigException(f"{name}={value!r}: must be {allowed}")
