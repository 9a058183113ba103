"""The observer as a state machine: one look after another, with a pause between them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from shareq.admin.core import AdminCore, Task
from shareq.client.calls import earliest
from shareq.client.config import ClientConfig
from shareq.model.actor import Effect, Message
from shareq.model.errors import KafkaException
from shareq.observer.looking import Look, Looking
from shareq.observer.telling import Teller

REQUEST_TIMEOUT_MS = 5_000
LOOK_TIMEOUT_MS = 20_000
"""When a look is given up: the next one begins with what this one has read."""


class ObserverCore:
    """An actor that asks and never changes anything. `begun` and `ended` count looks."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        topics: Sequence[str] | None,
        *,
        teller: Teller,
        rng: random.Random,
        interval_ms: int,
    ) -> None:
        conf = {"bootstrap.servers": bootstrap_servers, "request.timeout.ms": REQUEST_TIMEOUT_MS}
        self._asker = AdminCore(ClientConfig(conf, (), client="observer"), rng)
        self._looking = Looking(group, topics)
        self._teller = teller
        self._interval_ms = interval_ms
        self._task: Task[Look] | None = None
        self._next_ms = 0
        self._hurried = False
        self.begun = self.ended = 0

    @property
    def wake_at_ms(self) -> int | None:
        return earliest(self._asker.wake_at_ms, self._next_ms if self._task is None else None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        return [*self._asker.handle(message, now_ms), *self._go_on(now_ms)]

    def look_now(self, now_ms: int) -> list[Effect]:
        """Begin the next look at once, or as soon as the one under way has ended."""
        self._next_ms, self._hurried = now_ms, True
        return self._go_on(now_ms)

    def _go_on(self, now_ms: int) -> list[Effect]:
        """Tell what a look has seen that is over; begin the next where it is time."""
        if self._task is not None and self._task.done:
            task, self._task = self._task, None
            self.ended += 1
            try:
                self._teller.saw(task.result(), now_ms)
            except KafkaException as failure:
                self._teller.failed(failure.error.str(), now_ms)
            self._next_ms = now_ms + (0 if self._hurried else self._interval_ms)
        if self._task is None and now_ms >= self._next_ms:
            self.begun += 1
            self._hurried = False
            self._task = self._asker.start(self._looking.look(), LOOK_TIMEOUT_MS, now_ms)
        return self._asker.calls.take_effects()
