"""A random crew at work on a broker: it takes its time, forgets records, is late, and leaves work to others."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Final

from shareq.lessons.broken.defects import DEFECTS
from shareq.lessons.broken.seen import NOTHING, History, Seen
from shareq.lessons.broken.small_broker import LOCK_S, SmallBroker
from shareq.lessons.life import Life, life
from shareq.model.states import AcknowledgeType

BUSY_MS: Final = 300_000
QUIET_MS: Final = 2 * LOCK_S * 1000
MOST_HELD: Final = 3
_KINDS: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.RENEW)
_HABITS: Final = {"ann": (6, 2, 1, 1), "bob": (3, 5, 1, 0), "cyd": (2, 1, 0, 8)}
"""How often each member says which of `_KINDS`: bob gives up soon, cyd keeps what she has."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run: the broker with its journal, and what the members have seen."""

    broker: SmallBroker
    history: History

    def life(self, offset: int) -> Life:
        """The life of the record at an offset, from the journal."""
        return life(self.broker, self.broker.group, self.broker.topic, 0, offset)


@cache
def run(number: int, seed: int) -> Run:
    """A crew at work on a broker: 0 is the sound one, 1 to 10 are broken. Equal arguments give the same run.

    Three members work for five minutes. Then comes quiet time: they are gone, and for a minute, and as long as there
    are records, a fourth member accepts what it gets.
    """
    crew = _Crew(SmallBroker(DEFECTS[number]), random.Random(seed))
    crew.work()
    crew.quiet_time()
    return Run(crew.broker, History(crew.history))


class _Crew:
    def __init__(self, broker: SmallBroker, rng: random.Random) -> None:
        self.broker = broker
        self.history: list[Seen] = []
        self._rng = rng
        self._hands: dict[str, list[int]] = {name: [] for name in _HABITS}
        self._naps_until_ms = dict.fromkeys(_HABITS, 0)

    def work(self) -> None:
        while self.broker.now_ms < BUSY_MS:
            name = self._rng.choice(tuple(_HABITS))
            if self._naps_until_ms[name] <= self.broker.now_ms:
                self._turn(name, self._hands[name])
            self.broker.advance(self._rng.choice((500, 1_000, 2_000)))

    def quiet_time(self) -> None:
        end_ms = self.broker.now_ms + QUIET_MS
        while self._fetch("dan") is not None or self.broker.now_ms < end_ms:
            if self.history[-1].what == "delivered":
                self._acknowledge("dan", self.history[-1].offset, AcknowledgeType.ACCEPT)
            self.broker.advance(500)

    def _turn(self, name: str, hand: list[int]) -> None:
        rng, chance = self._rng, self._rng.random()
        if chance < 0.03:
            self.broker.close(name)
            hand.clear()
            self._note("close", name)
        elif chance < 0.08:
            self._naps_until_ms[name] = self.broker.now_ms + rng.choice((10_000, 20_000, 40_000))
        elif not hand or (len(hand) < MOST_HELD and chance < 0.35):
            offset = self._fetch(name)
            if offset is not None and offset not in hand:
                hand.append(offset)
        else:
            [kind] = rng.choices(_KINDS, _HABITS[name])
            offset = rng.choice(hand)
            answer = self._acknowledge(name, offset, kind)
            if kind is not AcknowledgeType.RENEW or answer != "ok":
                hand.remove(offset)

    def _fetch(self, name: str) -> int | None:
        got = self.broker.fetch(name)
        if got is None:
            self._note("nothing", name)
            return None
        self._note("delivered", name, *got)
        return got[0]

    def _acknowledge(self, name: str, offset: int, kind: AcknowledgeType) -> str:
        answer = self.broker.acknowledge(name, offset, kind)
        self._note(kind.name.lower(), name, offset, answer=answer)
        return answer

    def _note(self, what: str, name: str, offset: int = NOTHING, count: int = 0, *, answer: str = "") -> None:
        self.history.append(Seen(self.broker.now_ms / 1000, what, name, offset, count, answer))
