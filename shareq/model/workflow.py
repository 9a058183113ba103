"""Workflows: work that spans several messages is a generator that yields steps and receives their results.

    reply = yield Send(node, request)                     # a request to a broker
    first, second = yield [Send(...), other_workflow()]   # several at once; the results in the same order
    yield Pause(ms)
    return result

`Workflows` runs them. It implements lists, nested workflows and promises. The actor that owns the workflows implements
all other steps, in a table from the type of a step to a function `perform(step, waiter)`. That function returns the
result; or it returns LATER, and calls `waiter.resume(result)` when the result is available. A failed step raises
nothing: its error is its result. A workflow past its deadline is closed, or an exception is thrown into it; later
results of its steps are dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Mapping
from types import GeneratorType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from shareq.model.errors import Errors
from shareq.model.messages.base import Request

T = TypeVar("T")

Workflow = Generator[Any, Any, T]
"""Yields steps, returns a `T`."""


# ---- steps that several actors share ---------------------------------------------------------------------------------


class Send(NamedTuple):
    """A request to broker `node` (ANY_NODE: any live broker). The result is a `Reply`."""

    node: int
    request: Request


class SendToPersister(NamedTuple):
    """A share-state request (83-87, one group) to this broker's persister. The result is a `Reply`."""

    request: Request


class Reply(NamedTuple):
    """The result of a request; if `response` is None, `error` is the cause and `reason` describes it."""

    response: Any
    error: Errors
    reason: str = ""


class Pause(NamedTuple):
    """Wait for a time. `why`: the reason for the wait, for the error if the workflow's deadline passes before."""

    ms: int
    why: str = ""


class Waiter(Protocol):
    """The receiver of the result of a step. `done`: the result is no longer needed."""

    @property
    def task(self) -> Task[Any]: ...

    @property
    def done(self) -> bool: ...

    def resume(self, result: Any) -> None: ...


class Promise(Generic[T]):
    """A result that another workflow produces: yielding it waits for `keep`. Later calls of `keep` have no effect."""

    __slots__ = ("_is_kept", "_result", "_waiter")

    def __init__(self) -> None:
        self._is_kept = False
        self._result: T | None = None
        self._waiter: Waiter | None = None

    def keep(self, result: T) -> None:
        if self._is_kept:
            return
        self._is_kept, self._result = True, result
        if self._waiter is not None:
            self._waiter.resume(result)

    def wait(self, waiter: Waiter) -> Any:
        assert self._waiter is None, "only one workflow may wait for a promise"
        self._waiter = waiter
        return self._result if self._is_kept else LATER


class _Later:
    """The type of LATER."""

    __slots__ = ()


LATER = _Later()
"""Returned in place of a result: `waiter.resume` will pass it."""

Perform = Callable[[Any, Any], Any]
"""Begins a step: (step, waiter). Returns the result or LATER."""


# ---- running ---------------------------------------------------------------------------------------------------------


class Task(Generic[T]):
    """A running workflow. `on_result(result)` is called once, with the first of: an early answer, the returned
    value."""

    __slots__ = ("answered", "done", "joint", "on_result", "steps", "workflows")

    def __init__(self, workflows: Workflows, steps: Workflow[T], on_result: Callable[[T], object]) -> None:
        self.workflows = workflows
        self.steps = steps
        self.on_result = on_result
        self.answered = False
        self.done = False
        self.joint: _Joint | None = None
        """The list of steps that the workflow waits for now."""

    @property
    def task(self) -> Task[T]:
        """The task that waits: itself."""
        return self

    def resume(self, result: Any) -> None:
        """Continue the workflow to its next wait, or to its end."""
        if self.done:
            return
        begin, send = self.workflows.begin, self.steps.send
        try:
            while result is not LATER:
                result = begin(send(result), self)
        except StopIteration as end:
            self.finish(end.value)
        except Exception as failure:
            self.fail(failure)

    def answer(self, result: T) -> None:
        """Report the result now; the workflow continues, and its returned value is dropped."""
        if not self.answered:
            self.answered = True
            self.on_result(result)

    def finish(self, result: T) -> None:
        self.done = True
        self.answer(result)

    def fail(self, failure: Exception) -> None:
        """Handle an exception of the workflow. By default it is a defect and is raised; actors may override this."""
        self.done = True
        raise failure

    def end(self, result: T) -> None:
        """Close the workflow and report this result."""
        self.done = True
        self.steps.close()
        self.answer(result)

    def throw(self, failure: Exception) -> None:
        """Raise `failure` where the workflow waits. It may return a result; if it yields another step, it is closed."""
        self.done = True
        try:
            self.steps.throw(failure)
        except StopIteration as end:
            self.finish(end.value)
        except Exception as raised:
            self.fail(raised)
        else:
            self.steps.close()
            self.fail(failure)


class _Joint:
    """A list of steps that a workflow waits for. `results`: None for each step that is not done yet."""

    __slots__ = ("open", "results", "task")

    def __init__(self, task: Task[Any], count: int) -> None:
        self.task = task
        self.results: list[Any] = [None] * count
        self.open = count

    @property
    def done(self) -> bool:
        return self.task.done

    def put(self, position: int, result: Any) -> None:
        self.results[position] = result
        self.open -= 1
        if not self.open:
            self.task.joint = None
            self.task.resume(self.results)


class _Part:
    """One step of a list of steps."""

    __slots__ = ("joint", "position")

    def __init__(self, joint: _Joint, position: int) -> None:
        self.joint = joint
        self.position = position

    @property
    def task(self) -> Task[Any]:
        """The task that waits for the list."""
        return self.joint.task

    @property
    def done(self) -> bool:
        return self.joint.done

    def resume(self, result: Any) -> None:
        self.joint.put(self.position, result)


def _drop(result: object) -> None:
    """Ignore the result."""
    del result


class Workflows:
    """Runs the workflows of one actor. `perform` maps each type of step to the function that begins it."""

    task_type: type[Task[Any]] = Task

    def __init__(self, perform: Mapping[type, Perform]) -> None:
        self._perform: dict[type, Perform] = {
            list: self._begin_several,
            GeneratorType: self._begin_workflow,
            Promise: Promise.wait,
            **perform,
        }

    def start(self, steps: Workflow[T], on_result: Callable[[T], object] = _drop) -> Task[T]:
        """Run a workflow up to its first wait."""
        task = self.task_type(self, steps, on_result)
        task.resume(None)
        return task

    def begin(self, step: Any, waiter: Any) -> Any:
        """Begin a step. Returns its result or LATER."""
        return self._perform[type(step)](step, waiter)

    def _begin_several(self, steps: list[Any], task: Task[Any]) -> Any:
        joint = task.joint = _Joint(task, len(steps))
        joint.open += 1  # counted until all are begun, so that no step resumes the task too early
        for position, step in enumerate(steps):
            result = self.begin(step, _Part(joint, position))
            if result is not LATER:
                joint.put(position, result)
        joint.open -= 1
        if joint.open:
            return LATER
        task.joint = None
        return joint.results

    def _begin_workflow(self, steps: Workflow[Any], waiter: Waiter) -> Any:
        self.start(steps, waiter.resume)
        return LATER


class Pauses:
    """The pauses of an actor's workflows, by the time at which they end."""

    __slots__ = ("_count", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiter]] = []
        self._count = 0

    @property
    def wake_at_ms(self) -> int | None:
        """The end of the first pause; pauses of finished workflows are ignored."""
        while self._heap and self._heap[0][2].done:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def begin(self, until_ms: int, waiter: Waiter) -> Any:
        self._count += 1
        heapq.heappush(self._heap, (until_ms, self._count, waiter))
        return LATER

    def end_all(self) -> None:
        """Resume all paused workflows. The exception of one is raised after the others are resumed."""
        heap, self._heap = self._heap, []
        failures = []
        for _, _, waiter in sorted(heap, key=lambda entry: entry[:2]):
            try:
                if not waiter.done:
                    waiter.resume(None)
            except Exception as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    def end_due(self, now_ms: int) -> None:
        """Resume the workflows whose pauses have ended."""
        while self._heap and self._heap[0][0] <= now_ms:
            _, _, waiter = heapq.heappop(self._heap)
            if not waiter.done:
                waiter.resume(None)
