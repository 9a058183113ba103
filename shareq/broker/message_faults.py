"""Faults of single messages between clients and brokers: loss, delay, and brokers that do not reach each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from shareq.model.errors import ConfigException
from shareq.model.events import Event, FaultInjected
from shareq.model.numbers import plain

CLIENT = -1
"""The sender of a request that is not a broker."""

MAX_DELAY_MS = 3_600_000


class MessageFaults:
    """What happens to each request and each response of a cluster in this process; nothing at first.

    A lost request reaches no broker, after a lost response the broker has done its work; both end with the sender's
    time-out. Messages with different delays overtake each other.
    """

    def __init__(self, rng: random.Random, record: Callable[[Event], None], brokers: Collection[int] = ()) -> None:
        self._rng = rng
        self._brokers = brokers
        self._record = record
        self._loss = 0.0
        self._delay_ms = 0
        self._cuts: set[frozenset[int]] = set()
        self.active = False

    def disturb(self, *, loss: float = 0.0, delay_ms: int = 0) -> None:
        """Lose each message with probability `loss`, and delay it by 0 to `delay_ms`, until this is changed.
        ConfigException outside 0..1 and 0..3600000."""
        loss, delay_ms = plain(loss), plain(delay_ms)
        if isinstance(loss, bool) or not isinstance(loss, (int, float)) or not 0 <= loss <= 1:
            raise ConfigException(f"loss={loss!r}: must be a probability in 0..1")
        if isinstance(delay_ms, bool) or not isinstance(delay_ms, int) or not 0 <= delay_ms <= MAX_DELAY_MS:
            raise ConfigException(f"delay_ms={delay_ms!r}: must be a whole number in 0..{MAX_DELAY_MS}")
        self._loss, self._delay_ms = loss, delay_ms
        self._changed(f"{loss:.0%} of the messages are lost, the others up to {delay_ms} ms late")

    def cut(self, first: int, second: int) -> None:
        """Lose all messages between two brokers, in both directions. Clients reach both.
        ConfigException for what is no broker of the cluster, running or not, and for one broker twice."""
        first, second = plain(first), plain(second)
        for name, broker_id in (("first", first), ("second", second)):
            if isinstance(broker_id, bool) or broker_id not in self._brokers:
                raise ConfigException(f"{name}={broker_id!r}: must be one of {sorted(self._brokers)}")
        if first == second:
            raise ConfigException(f"first={first!r}, second={second!r}: must be two brokers")
        self._cuts.add(frozenset((first, second)))
        self._changed(f"no message passes between brokers {first} and {second}")

    def heal(self) -> None:
        """End all faults. What is lost stays lost."""
        self._loss, self._delay_ms = 0.0, 0
        self._cuts.clear()
        if self.active:
            self._changed("all messages pass again")

    def _changed(self, what: str) -> None:
        self._record(FaultInjected(what))
        self.active = bool(self._loss or self._delay_ms or self._cuts)

    def fate(self, sender: int, broker_id: int) -> int | None:
        """How much later (ms) a message between the sender of a request and a broker arrives; None if it is lost."""
        if frozenset((sender, broker_id)) in self._cuts or self._rng.random() < self._loss:
            return None
        return self._rng.randint(0, self._delay_ms)
