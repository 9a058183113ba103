"""Every solution passes; an empty answer, and three typical wrong answers of each exercise, fail with a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from shareq.lessons import exercise
from shareq.lessons.exercise import solution_of
from shareq.lessons.incidents import CAUSES, KEPT, Incident
from shareq.lessons.progress import FOLDER
from shareq.lessons.syllabus import LESSONS, exercises_of

KEYS = [key for lesson in LESSONS for key in exercises_of(lesson)]
WRONG = {
    key: rows for lesson in LESSONS for key, rows in import_module(f"tests.lessons.wrong.lesson_{lesson}").WRONG.items()
}
HEAVY = {"00.2", "00.4", "10.2", "11.1", "16.5"}
"""Exercises whose answers run for seconds."""


def long_if(slow: object) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if slow else []


ROWS = [
    pytest.param(key, answer, says, id=f"{key}-{says}", marks=long_if(number or key in HEAVY))
    for key, rows in WRONG.items()
    for number, (answer, says) in enumerate(rows)
]
"""In the first ring, one wrong answer of each exercise."""


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path))


@pytest.mark.parametrize("key", [pytest.param(key, marks=long_if(key in HEAVY)) for key in KEYS])
def test_the_solution_passes(key: str) -> None:
    verdict = exercise(key).check(solution_of(key))
    assert verdict.passed, verdict
    assert verdict.text.startswith("✓ ")


def closes_the_keeper(case: Incident) -> str:
    case.consumers["keeper"].close()
    return KEPT


def forbids_renewals(case: Incident) -> str:
    case.bench.cluster.configure_group(case.bench.group, {"share.renew.acknowledge.enable": False})
    return KEPT


@pytest.mark.parametrize("remedy", [closes_the_keeper, forbids_renewals])
def test_other_remedies_of_a_hoarder_pass(remedy: Callable[[Incident], str]) -> None:
    """Its program ends with the error that a real one would have."""
    verdict = exercise("14.2").check(remedy)
    assert verdict.passed, verdict


@pytest.mark.parametrize("key", exercises_of("14"))
def test_a_remedy_with_another_cause_fails(key: str) -> None:
    remedy, causes = solution_of(key), set()
    for cause in CAUSES:
        verdict = exercise(key).check(lambda case, cause=cause: (remedy(case), cause)[1])
        if verdict.passed:
            causes.add(cause)
        else:
            assert verdict.text.startswith(f"✗ all records are done, and the cause is not {cause!r}")
    assert len(causes) == 1


@pytest.mark.parametrize("key", KEYS)
def test_an_empty_answer_is_called_and_fails(key: str) -> None:
    calls = []

    def empty(*arguments: object) -> object:
        calls.append(arguments)
        return ...

    verdict = exercise(key).check(empty)
    assert calls
    assert not verdict
    assert verdict.text.startswith("✗ ")


@pytest.mark.parametrize(("key", "answer", "says"), ROWS)
def test_a_wrong_answer_fails_with_a_sentence(key: str, answer: Callable[..., Any], says: str) -> None:
    verdict = exercise(key).check(answer)
    assert not verdict
    assert says in verdict.text


@pytest.mark.parametrize(
    ("key", "result", "says"),
    [
        pytest.param("02.4", {"share.record.lock.duration.ms": 5_000}, "must be 15000..60000", id="lock"),
        pytest.param("02.4", {"share.lock.ms": 15_000}, "unknown group configuration", id="name"),
        pytest.param("08.2", (), "and should return a list of offsets, and the lag", id="empty"),
        pytest.param("08.2", (7, 3), "and should return a list of offsets, and the lag", id="count"),
        pytest.param("08.4", {}, "changes must not be empty", id="no change"),
        pytest.param("08.4", {"retention.ms": "three days"}, "retention.ms", id="text"),
        pytest.param("13.1", {None}, "and should return a set of offsets", id="no offset"),
    ],
)
def test_an_answer_that_brokers_or_the_check_cannot_take_fails_with_a_sentence(
    key: str, result: object, says: str
) -> None:
    """A learner sees no traceback of the check's."""
    verdict = exercise(key).check(lambda *_: result)
    assert not verdict
    assert says in verdict.text


def test_every_exercise_has_three_wrong_answers() -> None:
    assert {key: len(rows) for key, rows in WRONG.items()} == dict.fromkeys(KEYS, 3)


@pytest.mark.parametrize("key", KEYS)
def test_the_hints_lead_to_the_solution(key: str) -> None:
    task = exercise(key)
    assert len(task.hints) >= 2
    assert task.solution().startswith("First the hints")
    shown = [task.hint() for _ in task.hints]
    assert [f"Hint {step} of {len(shown)}" in hint for step, hint in enumerate(shown, 1)] == [True] * len(shown)
    assert [".solution() shows" in hint for hint in map(str, shown)] == [False] * (len(shown) - 1) + [True]
    assert str(task.solution()) == inspect.getsource(solution_of(key)).rstrip()
