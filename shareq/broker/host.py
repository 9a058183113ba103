"""Gives one actor a life: hands it messages, carries out its effects, wakes it when it asked to be woken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shareq.broker.loop import EventLoop, Timer
from shareq.model.actor import Actor, Effect, Message, Tick
from shareq.model.events import Event

TICK = Tick()


class Host:
    """Runs an actor on the loop. `carry` maps a type of effect to what carries it out; all other effects are events.

    A host that is dead hands nothing on and carries nothing out: what comes late for it is lost, as it would be for a
    process that is gone.
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
        """Hand the actor a message and carry out what it asks for."""
        if self.alive:
            self.perform(self.actor.handle(message, self._loop.now_ms()))

    def perform(self, effects: Iterable[Effect]) -> None:
        """Carry out effects, then see when the actor wants to be woken."""
        carry = self._carry
        for effect in effects:
            carrier = carry.get(type(effect))
            if carrier is None:
                self._record(effect)  # type: ignore[arg-type]    # whatever nobody carries out is an event
            else:
                carrier(self, effect)
        wake_at_ms = self.actor.wake_at_ms
        if wake_at_ms is not None and (self._timer is None or wake_at_ms < self._timer.due_ms):
            self._schedule(wake_at_ms)

    def _schedule(self, wake_at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.at(wake_at_ms, self._wake)

    def _wake(self) -> None:
        """A timer stands even when the actor has since put its time off: then it is set anew instead of moved often."""
        self._timer = None
        wake_at_ms = self.actor.wake_at_ms
        if not self.alive or wake_at_ms is None:
            return
        if wake_at_ms <= self._loop.now_ms():
            self.deliver(TICK)
        else:
            self._schedule(wake_at_ms)

    def die(self) -> None:
        """The process is gone, without a word."""
        self.alive = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
