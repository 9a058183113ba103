"""Errands: work of a leader that waits for logs, the persister, other brokers or time, and not for a fetch. An errand
is a generator: it yields what it asks for, and gets the answer."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from shareq.leader.leader_context import LeaderContext
from shareq.model.actor import Answer, Effect, LogRead, OffsetFound
from shareq.model.workflow import Pause

Ask = Callable[[int], Effect] | Pause
"""Makes the effect of this id, whose result the errand waits for; or a time to wait."""

Errand = Generator[Ask, Any, None]

Handler = Callable[[Any], None]


class Errands:
    """The errands under way of one leader. They take the answers to what they have asked for out of its `handlers`."""

    def __init__(self, context: LeaderContext, handlers: dict[type, Handler]) -> None:
        self._context = context
        self._waiting: dict[int, Errand] = {}
        for kind in (Answer, LogRead, OffsetFound):
            handlers[kind] = self._unless_of_errand(handlers[kind])

    def begin(self, errand: Errand) -> None:
        """Run an errand until it waits."""
        self._go_on(errand, None)

    def _unless_of_errand(self, others: Handler) -> Handler:
        def handle(message: Answer | LogRead | OffsetFound) -> None:
            errand = self._waiting.pop(message.id, None)
            if errand is None:
                others(message)
            else:
                self._go_on(errand, message)

        return handle

    def _go_on(self, errand: Errand, message: object) -> None:
        """Give an errand what it has waited for, until it waits again or ends."""
        try:
            ask = errand.send(message)
        except StopIteration:
            return
        if isinstance(ask, Pause):
            self._context.deadlines.set(partial(self._go_on, errand, None), self._context.now_ms + ask.ms)
            return
        call_id = self._context.next_id()
        self._waiting[call_id] = errand
        self._context.effects.append(ask(call_id))
