"""Administration as a state machine: an operation is a generator that yields questions and is sent the answers.

    replies = yield [Ask(node, request), ...]      # asked at the same time; the answers come in the same order
    yield Pause(ms)                                # let time pass
    return result

The core knows nothing about topics or groups. It sends, waits, and ends an operation whose time is up.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import Any, Generic, NamedTuple, TypeVar

from shareq.client.calls import Backoff, Calls
from shareq.client.config import ClientConfig
from shareq.model.actor import Answer, Effect, Message
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.base import Request, Response

T = TypeVar("T")


class Ask(NamedTuple):
    """A request to one broker."""

    node: int
    request: Request


class Pause(NamedTuple):
    """`why`: what the operation waits for, for the error of an operation whose time is up."""

    ms: int
    why: str = ""


class Reply(NamedTuple):
    """A response, or None with the error and its reason as text."""

    response: Any
    error: Errors
    reason: str = ""


class OutOfTime(KafkaException):
    """Thrown into an operation whose time is up: it may return a partial result, but send no request.

    `replies` to the requests in flight: those that arrived, None for the others.
    """

    def __init__(self, error: KafkaError, replies: list[Reply | None]) -> None:
        super().__init__(error)
        self.replies = replies


Operation = Generator[list[Ask] | Pause, list[Reply], T]


class Task(Generic[T]):
    """An operation under way. Once `done`, `result()` returns or raises what came out."""

    def __init__(self, operation: Operation[T], deadline_ms: int) -> None:
        self.operation = operation
        self.deadline_ms = deadline_ms
        self.resume_at_ms: int | None = None
        self.why = ""
        self.done = False
        self._value: T | None = None
        self._failure: Exception | None = None
        self.replies: list[Reply | None] = []
        self._generation = 0

    def result(self) -> T:
        assert self.done
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]    # done without failure: the operation's own result

    def expect(self, count: int) -> int:
        """Wait for `count` replies; the number returned tells replies of earlier rounds from these."""
        self.replies = [None] * count
        self._generation += 1
        return self._generation

    def reply(self, generation: int, position: int, reply: Reply) -> list[Reply] | None:
        """Take one reply in; all of them once the last has come."""
        if generation != self._generation or self.done:
            return None
        self.replies[position] = reply
        replies = [reply for reply in self.replies if reply is not None]
        return replies if len(replies) == len(self.replies) else None

    def finish(self, value: T | None, failure: Exception | None = None) -> None:
        self.done = True
        self._value = value
        self._failure = failure


class AdminCore:
    """Runs operations: an actor that acts only on calls and replies."""

    def __init__(self, config: ClientConfig, rng: random.Random) -> None:
        self.client_id: str = config["client.id"]
        self.calls = Calls(config["request.timeout.ms"])
        self.backoff = Backoff(rng, config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._tasks: list[Task[Any]] = []

    @property
    def wake_at_ms(self) -> int | None:
        times = [min(task.deadline_ms, task.resume_at_ms or task.deadline_ms) for task in self._tasks]
        return min(times, default=None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        if isinstance(message, Answer):
            self.calls.answered(message, now_ms)
        for task in list(self._tasks):
            if now_ms >= task.deadline_ms:
                self._time_is_up(task)
            elif task.resume_at_ms is not None and now_ms >= task.resume_at_ms:
                self._advance(task, [], now_ms)
        return self.calls.take_effects()

    def start(self, operation: Operation[T], timeout_ms: float, now_ms: int) -> Task[T]:
        """Begin an operation; it fails with _TIMED_OUT when it is not done within `timeout_ms`."""
        task = Task(operation, now_ms + int(timeout_ms))
        self._tasks.append(task)
        self._advance(task, None, now_ms)
        return task

    def _advance(self, task: Task[Any], replies: list[Reply] | None, now_ms: int) -> None:
        """Continue the operation up to its next request, or to its end."""
        task.resume_at_ms = None
        task.replies = []
        try:
            step = next(task.operation) if replies is None else task.operation.send(replies)
        except StopIteration as end:
            self._finish(task, end.value)
            return
        except Exception as failure:  # raised again by `result()`
            self._finish(task, None, failure)
            return
        if isinstance(step, Pause):
            task.resume_at_ms, task.why = now_ms + step.ms, step.why
            return
        generation = task.expect(len(step))
        for position, ask in enumerate(step):
            self._ask(task, generation, position, ask)
        if not step:
            self._advance(task, [], now_ms)

    def _ask(self, task: Task[Any], generation: int, position: int, ask: Ask) -> None:
        def answered(response: Response | None, error: Errors, now_ms: int) -> None:
            reason = self.calls.reason
            if response is None and not error.retriable and not task.done:  # the broker is too old, or worse
                task.operation.close()
                self._finish(task, None, KafkaException(KafkaError(error, reason or None)))
                return
            replies = task.reply(generation, position, Reply(response, error, reason))
            if replies is not None:
                self._advance(task, replies, now_ms)

        self.calls.send(ask.node, ask.request, answered)

    def _time_is_up(self, task: Task[Any]) -> None:
        why = f": {task.why}" if task.why else ""
        error = KafkaError(KafkaError._TIMED_OUT, f"the operation timed out{why}")
        try:
            task.operation.throw(OutOfTime(error, task.replies))
        except StopIteration as end:
            self._finish(task, end.value)
        except Exception as failure:
            self._finish(task, None, KafkaException(error) if isinstance(failure, OutOfTime) else failure)
        else:  # it has asked for more
            task.operation.close()
            self._finish(task, None, KafkaException(error))

    def abandon(self, task: Task[Any]) -> None:
        """Whoever asked does not wait any more: ask nothing further. What was sent may still be carried out."""
        if not task.done:
            task.operation.close()
            self._finish(task, None)

    def _finish(self, task: Task[Any], value: object, failure: Exception | None = None) -> None:
        self._tasks.remove(task)
        task.finish(value, failure)
