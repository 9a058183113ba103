"""Runs one actor: delivers messages, carries out effects, and wakes it at `wake_at_ms`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shareq.broker.loop import EventLoop, Timer
from shareq.model.actor import Actor, Effect, Failed, Message, Tick
from shareq.model.events import Event
from shareq.model.gauges import Gauge, Gauged, summed

TICK = Tick()


def gauges_of(hosts: Iterable[Host]) -> Counter[Gauge]:
    """Values of Kafka's metrics that follow from no event, as the actors of the hosts have them now; their sums."""
    return summed(host.actor for host in hosts if isinstance(host.actor, Gauged))


def raise_failed(effects: Iterable[Effect], loop: EventLoop) -> None:
    """Raise the error of each `Failed`, as `raise_later`."""
    raise_later([effect.error for effect in effects if isinstance(effect, Failed)], loop)


def raise_later(failures: Iterable[Exception], loop: EventLoop) -> None:
    """Raise each failure in an event of its own: the operation under way is another one."""
    for failure in failures:
        loop.post(_raise, failure)


def _raise(failure: Exception) -> None:
    raise failure


class Host:
    """Runs an actor on the loop. `carry` maps each type of effect to its handler; all other effects are events.

    A dead host, like a terminated process, drops messages and carries out no effects.
    """

    __slots__ = ("_carry", "_loop", "_record", "_timer", "actor", "alive", "name")

    def __init__(
        self,
        name: str,
        actor: Actor,
        loop: EventLoop,
        carry: Mapping[type, Callable[[Host, Any], None]],
        record: Callable[[Event], None],
    ) -> None:
        self.name = name
        self.actor = actor
        self.alive = True
        self._loop = loop
        self._carry = carry
        self._record = record
        self._timer: Timer | None = None

    def deliver(self, message: Message) -> None:
        """Deliver a message to the actor and carry out its effects."""
        if not self.alive:
            return
        try:
            effects = self.actor.handle(message, self._loop.time_ms())
        except Exception:
            self._reschedule()  # the actor's other deadlines do not depend on this message
            raise
        self.perform(effects)

    def perform(self, effects: Iterable[Effect]) -> None:
        """Carry out effects, then set the timer for `wake_at_ms`. An effect that raises prevents no other one."""
        carry = self._carry
        failures = []
        for effect in effects:
            carrier = carry.get(type(effect))
            try:
                if carrier is not None:
                    carrier(self, effect)
                elif type(effect) is Failed:
                    failures.append(effect.error)
                else:
                    self._record(effect)  # type: ignore[arg-type]    # an effect without a carrier is an event
            except Exception as failure:
                failures.append(failure)
        self._reschedule()
        raise_later(failures, self._loop)

    def _reschedule(self) -> None:
        wake_at_ms = self.actor.wake_at_ms
        if wake_at_ms is not None and (self._timer is None or wake_at_ms < self._timer.due_ms):
            self._schedule(wake_at_ms)

    def _schedule(self, wake_at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.at(wake_at_ms, self._wake)

    def _wake(self) -> None:
        """Deliver a Tick. If `wake_at_ms` was postponed, set the timer again: cheaper than moving it each time."""
        self._timer = None
        wake_at_ms = self.actor.wake_at_ms
        if not self.alive or wake_at_ms is None:
            return
        if wake_at_ms <= self._loop.time_ms():
            self.deliver(TICK)
        else:
            self._schedule(wake_at_ms)

    def die(self) -> None:
        """End the process: deliver no more messages."""
        self.alive = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
