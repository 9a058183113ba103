"""Administration as a state machine: an operation is a workflow that yields requests and receives their replies.

    replies = yield [Send(node, request), ...]      # sent at the same time; replies in the same order
    yield Pause(ms)                                # wait
    return result

The core is independent of topics and groups: it sends requests, runs pauses, and ends operations at their deadlines.
"""

from __future__ import annotations

import random
from typing import Any, TypeVar

from shareq.client.calls import Backoff, Calls
from shareq.client.config import ClientConfig
from shareq.model.actor import Answer, Effect, Message
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.base import Response
from shareq.model.workflow import LATER, Pause, Pauses, Reply, Send, Task, Waiter, Workflow, Workflows

__all__ = ["AdminCore", "Operation", "OperationTask", "OutOfTime", "Pause", "Reply", "Send"]

T = TypeVar("T")

Operation = Workflow[T]


class OutOfTime(KafkaException):
    """Thrown into an operation at its deadline: it may return a partial result, but send no request.

    `replies` to the requests in flight: those that have arrived, None for the others.
    """

    def __init__(self, error: KafkaError, replies: list[Reply | None]) -> None:
        super().__init__(error)
        self.replies = replies


class OperationTask(Task[T]):
    """A running operation. Once `done`, `result()` returns its result or raises its error."""

    __slots__ = ("_failure", "_value", "core", "deadline_ms", "why")

    def __init__(self, core: AdminCore, workflows: Workflows, operation: Operation[T], deadline_ms: int) -> None:
        super().__init__(workflows, operation, self._keep)
        self.core = core
        self.deadline_ms = deadline_ms
        self.why = ""
        """What the operation waits for; empty if unknown."""
        self._value: T | None = None
        self._failure: Exception | None = None

    def _keep(self, value: T) -> None:
        self._value = value
        self.core.finished(self)

    def result(self) -> T:
        assert self.done
        if self._failure is not None:
            raise self._failure
        return self._value  # type: ignore[return-value]    # done without failure: the operation's own result

    def fail(self, failure: Exception) -> None:
        """Store the exception that the operation raised; `result()` raises it in the caller's thread."""
        self.done = True
        self._failure = KafkaException(failure.error) if isinstance(failure, OutOfTime) else failure
        self.core.finished(self)

    def abort(self, failure: KafkaException) -> None:
        """Close the operation and fail it."""
        self.steps.close()
        self.fail(failure)


class AdminCore:
    """An actor that runs operations; calls, replies and deadlines drive it."""

    def __init__(self, config: ClientConfig, rng: random.Random) -> None:
        self.client_id: str = config["client.id"]
        self.calls = Calls(config["request.timeout.ms"])
        self.backoff = Backoff(rng, config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._workflows = Workflows({Send: self._begin_send, Pause: self._begin_pause})
        self._pauses = Pauses()
        self._tasks: list[OperationTask[Any]] = []
        self._now_ms = 0

    @property
    def wake_at_ms(self) -> int | None:
        times = [task.deadline_ms for task in self._tasks]
        pause_ms = self._pauses.wake_at_ms
        return min(times if pause_ms is None else [*times, pause_ms], default=None)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        self._now_ms = now_ms
        if isinstance(message, Answer):
            self.calls.answered(message, now_ms)
        for task in list(self._tasks):
            if now_ms >= task.deadline_ms:
                self._time_is_up(task)
        self._pauses.end_due(now_ms)
        return self.calls.take_effects()

    def start(self, operation: Operation[T], timeout_ms: float, now_ms: int) -> OperationTask[T]:
        """Start an operation; it fails with _TIMED_OUT if it is not done within `timeout_ms`."""
        self._now_ms = now_ms
        task = OperationTask(self, self._workflows, operation, now_ms + int(timeout_ms))
        self._tasks.append(task)
        task.resume(None)
        return task

    def _begin_send(self, step: Send, waiter: Waiter) -> Any:
        def answered(response: Response | None, error: Errors, now_ms: int) -> None:
            self._now_ms = now_ms
            reason, task = self.calls.reason, waiter.task
            if response is None and not error.retriable and not task.done:  # for example an unsupported version
                assert isinstance(task, OperationTask)
                task.abort(KafkaException(KafkaError(error, reason or None)))
            else:
                waiter.resume(Reply(response, error, reason))

        self.calls.send(step.node, step.request, answered)
        return LATER

    def _begin_pause(self, pause: Pause, task: OperationTask[Any]) -> Any:
        task.why = pause.why
        return self._pauses.begin(self._now_ms + pause.ms, task)

    def _time_is_up(self, task: OperationTask[Any]) -> None:
        why = f": {task.why}" if task.why else ""
        error = KafkaError(KafkaError._TIMED_OUT, f"the operation timed out{why}")
        task.throw(OutOfTime(error, task.joint.results if task.joint else []))

    def abandon(self, task: OperationTask[Any]) -> None:
        """Close an operation whose caller has stopped waiting. Requests that were sent may still take effect."""
        if not task.done:
            task.end(None)

    def finished(self, task: OperationTask[Any]) -> None:
        self._tasks.remove(task)
