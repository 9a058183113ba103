"""Polling as a state machine: one poll after another, with a pause between them. `ObserverCore` polls one group."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from shareq.admin.core import AdminCore, Operation, OperationTask
from shareq.client.calls import earliest
from shareq.client.config import ClientConfig
from shareq.model.actor import Effect, Message
from shareq.model.errors import KafkaException
from shareq.observer.cluster_poll import ClusterPoll
from shareq.observer.poll_result import PollResult

REQUEST_TIMEOUT_MS = 5_000
POLL_TIMEOUT_MS = 20_000
"""Time limit of a poll; the next one continues from the position in the state topic that this one has reached."""

T = TypeVar("T")


class PollWriter(Protocol):
    """Takes the results of the polls of a group; `JournalWriter` writes them at once."""

    def write_poll(self, poll: PollResult, now_ms: int, begun_ms: int) -> None: ...
    def write_failure(self, reason: str, now_ms: int) -> None: ...


class PollingCore(Generic[T]):
    """An actor that only reads. `polls_begun` and `polls_ended` count polls.

    `poll(begun_ms)` is the operation of one poll, `take(result, now_ms, begun_ms)` takes its result, and
    `fail(error, now_ms)` the error of one that has none.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        poll: Callable[[int], Operation[T]],
        take: Callable[[T, int, int], None],
        fail: Callable[[KafkaException, int], None],
        *,
        rng: random.Random,
        interval_ms: int,
    ) -> None:
        conf = {"bootstrap.servers": bootstrap_servers, "request.timeout.ms": REQUEST_TIMEOUT_MS}
        self._admin = AdminCore(ClientConfig(conf, (), client="observer"), rng)
        self._poll, self._take, self._fail = poll, take, fail
        self._interval_ms = interval_ms
        self._task: OperationTask[T] | None = None
        self._next_ms = self._begun_ms = 0
        self._poll_at_once = False
        self.polls_begun = self.polls_ended = 0

    @property
    def wake_at_ms(self) -> int | None:
        return earliest(self._admin.wake_at_ms, self._next_ms if self._task is None else None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        return [*self._admin.handle(message, now_ms), *self._advance(now_ms)]

    def poll_now(self, now_ms: int) -> list[Effect]:
        """Begin the next poll at once, or as soon as the one under way has ended."""
        self._next_ms, self._poll_at_once = now_ms, True
        return self._advance(now_ms)

    def _advance(self, now_ms: int) -> list[Effect]:
        """Pass on the result of a finished poll; begin the next poll when it is due."""
        if self._task is not None and self._task.done:
            task, self._task = self._task, None
            self.polls_ended += 1
            try:
                self._take(task.result(), now_ms, self._begun_ms)
            except KafkaException as failure:
                self._fail(failure, now_ms)
            self._next_ms = now_ms + (0 if self._poll_at_once else self._interval_ms)
        if self._task is None and now_ms >= self._next_ms:
            self.polls_begun += 1
            self._begun_ms = now_ms
            self._poll_at_once = False
            self._task = self._admin.start(self._poll(now_ms), POLL_TIMEOUT_MS, now_ms)
        return self._admin.calls.take_effects()


class ObserverCore(PollingCore[PollResult]):
    """Polls one group and writes its journal."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        topics: Sequence[str] | None,
        *,
        writer: PollWriter,
        rng: random.Random,
        interval_ms: int,
    ) -> None:
        polls = ClusterPoll(group, topics)
        super().__init__(
            bootstrap_servers,
            lambda _: polls.poll(),
            writer.write_poll,
            lambda failure, now_ms: writer.write_failure(failure.error.str(), now_ms),
            rng=rng,
            interval_ms=interval_ms,
        )
