"""Workflows: generators that wait for several messages, and their runner."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from shareq.model.workflow import LATER, Pauses, Promise, Waiter, Workflow, Workflows


class Now(NamedTuple):
    """A step that is done at once."""

    result: object


class Later(NamedTuple):
    """A step that is done when the test says so."""

    name: str


class Stage:
    def __init__(self) -> None:
        self.waiting: dict[str, Waiter] = {}
        self.results: list[object] = []
        self.workflows = Workflows({Now: lambda step, waiter: step.result, Later: self._wait})

    def _wait(self, step: Later, waiter: Waiter) -> Any:
        self.waiting[step.name] = waiter
        return LATER

    def start(self, steps: Workflow[Any]) -> Any:
        return self.workflows.start(steps, self.results.append)


def one(*steps: Any) -> Workflow[list[Any]]:
    results = []
    for step in steps:
        results.append((yield step))  # noqa: PERF401
    return results


def test_a_step_gives_its_result_at_once_or_later() -> None:
    stage = Stage()
    stage.start(one(Now(1), Later("a"), Now(3)))
    assert stage.results == []
    stage.waiting["a"].resume(2)
    assert stage.results == [[1, 2, 3]]


def test_steps_that_are_done_at_once_need_no_stack() -> None:
    stage = Stage()
    stage.start(one(*map(Now, range(10_000))))
    assert stage.results == [list(range(10_000))]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_several_steps_give_their_results_in_their_own_order(order: str) -> None:
    stage = Stage()
    stage.start(one([Later("a"), Now("n"), Later("b")]))
    for name in order:
        assert stage.results == []
        stage.waiting[name].resume(name)
    assert stage.results == [[["a", "n", "b"]]]


def test_no_steps_at_once_give_no_results() -> None:
    stage = Stage()
    stage.start(one([]))
    assert stage.results == [[[]]]


def test_workflows_run_beside_each_other_as_steps() -> None:
    stage = Stage()
    stage.start(one([one(Later("a"), Later("b")), one(Later("c"))]))
    for name in "cab":
        stage.waiting[name].resume(name)
    assert stage.results == [[[["a", "b"], ["c"]]]]


def test_a_closed_workflow_has_the_given_result_and_drops_what_comes_later() -> None:
    stage = Stage()
    task = stage.start(one(Later("a"), Later("b")))
    task.end("closed")
    stage.waiting["a"].resume(1)
    assert (stage.results, list(stage.waiting), task.done) == (["closed"], ["a"], True)


def test_a_workflow_that_was_answered_goes_on_and_its_result_is_dropped() -> None:
    stage = Stage()
    task = stage.start(one(Later("a"), Later("b")))
    task.answer("early")
    stage.waiting["a"].resume(1)
    stage.waiting["b"].resume(2)
    assert (stage.results, list(stage.waiting), task.done) == (["early"], ["a", "b"], True)


def test_an_exception_that_is_thrown_in_may_be_turned_into_a_result() -> None:
    def patient() -> Workflow[str]:
        try:
            yield Later("a")
        except TimeoutError:
            return "in time"
        return "done"

    stage = Stage()
    stage.start(patient()).throw(TimeoutError())
    assert stage.results == ["in time"]


def test_a_workflow_that_asks_for_more_when_its_time_is_up_is_closed() -> None:
    closed = []

    def greedy() -> Workflow[None]:
        try:
            yield Later("a")
        except TimeoutError:
            try:
                yield Later("more")
            finally:
                closed.append(True)

    stage = Stage()
    task = stage.start(greedy())
    with pytest.raises(TimeoutError):
        task.throw(TimeoutError())
    assert (stage.results, list(stage.waiting), closed) == ([], ["a"], [True])


def test_what_a_workflow_raises_reaches_the_actor() -> None:
    def wrong() -> Workflow[None]:
        yield Later("a")
        raise LookupError("mine")

    stage = Stage()
    stage.start(wrong())
    with pytest.raises(LookupError, match="mine"):
        stage.waiting["a"].resume(None)


@pytest.mark.parametrize("early", [True, False])
def test_a_promise_is_kept_before_or_after_a_workflow_waits_for_it(early: bool) -> None:
    stage, promise = Stage(), Promise[int]()
    if early:
        promise.keep(1)
    stage.start(one(promise))
    promise.keep(1 if not early else 2)
    assert stage.results == [[1]]


def test_pauses_end_in_the_order_of_their_times() -> None:
    stage, pauses = Stage(), Pauses()
    for name, until_ms in (("late", 30), ("early", 10), ("same", 10), ("closed", 5)):
        task = stage.start(one(Later(name), Now(name)))
        pauses.begin(until_ms, stage.waiting[name])
    task.end("ended")
    assert pauses.wake_at_ms == 10
    pauses.end_due(10)
    assert stage.results == ["ended", [None, "early"], [None, "same"]]
    assert pauses.wake_at_ms == 30
    pauses.end_all()
    assert stage.results[-1] == [None, "late"]
    assert pauses.wake_at_ms is None
