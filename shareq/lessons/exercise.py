"""Exercises: a learner's answer is a function, a judge runs it and reads its effects; hints come in steps.

The judges of a lesson are in `shareq.lessons.exercises`, the solutions in `shareq.lessons.solutions`.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from shareq.lessons.checks import NotYet, Passed
from shareq.lessons.progress import load, store
from shareq.lessons.syllabus import LESSONS, exercises_of
from shareq.model.errors import Errors, KafkaException
from shareq.model.states import AcknowledgeType

Answer = Callable[..., Any]
Judge = Callable[[Answer], Passed]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: `text` begins with ✓ or ✗."""

    passed: bool
    text: str

    def __repr__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return self.passed


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise. `key`: "03.2" is the second one of lesson 03. `judge` runs an answer and returns Passed, or raises
    NotYet with the first thing that is missing."""

    key: str
    title: str
    hints: tuple[str, ...]
    judge: Judge

    def check(self, answer: Answer) -> Verdict:
        """Run the answer and judge what it did. A pass is stored in the learner's progress."""
        try:
            passed = self.judge(answer)
        except NotYet as not_yet:
            return Verdict(False, f"{not_yet}\n  Stuck? exercise({self.key!r}).hint()")
        record = load()
        record.passed.setdefault(self.key, datetime.now(UTC).date().isoformat())
        store(record)
        return Verdict(True, str(passed))

    def hint(self) -> Passed:
        """The next hint; each call goes one step further."""
        record = load()
        step = min(record.hints.get(self.key, 0), len(self.hints) - 1)
        record.hints[self.key] = step + 1
        store(record)
        after = f"\nexercise({self.key!r}).solution() shows a solution." if step + 1 == len(self.hints) else ""
        return Passed(f"Hint {step + 1} of {len(self.hints)}: {self.hints[step]}{after}")

    def solution(self) -> Passed:
        """A solution's code, after the last hint or a pass of one's own."""
        record = load()
        if self.key not in record.passed and record.hints.get(self.key, 0) < len(self.hints):
            return Passed(f"First the hints: exercise({self.key!r}).hint(), {len(self.hints)} of them.")
        return Passed(inspect.getsource(solution_of(self.key)).rstrip())

    def __repr__(self) -> str:
        return f"Exercise {self.key}: {self.title}"


def exercise(key: str) -> Exercise:
    """The exercise of a key such as "03.2"; KeyError with the known keys for another one."""
    lesson = key.split(".", maxsplit=1)[0]
    if lesson not in LESSONS or key not in exercises_of(lesson):
        known = ", ".join(key for lesson in LESSONS for key in exercises_of(lesson))
        raise KeyError(f"exercise {key!r}: the course has {known}")
    found: Exercise = _lesson("exercises", lesson).EXERCISES[key]
    return found


def solution_of(key: str) -> Answer:
    """The solution of an exercise."""
    answer: Answer = _lesson("solutions", key.split(".", maxsplit=1)[0]).SOLUTIONS[key]
    return answer


def _lesson(kind: str, lesson: str) -> Any:
    return import_module(f"shareq.lessons.{kind}.lesson_{lesson}")


class Exercises(dict[str, Exercise]):
    """The exercises of one lesson by key; judges are added by a decorator, in order."""

    def __init__(self, lesson: str) -> None:
        super().__init__()
        self._lesson = lesson

    def judged_by(self, title: str, *hints: str) -> Callable[[Judge], Judge]:
        """Add the next exercise of the lesson, with the decorated function as its judge."""

        def add(judge: Judge) -> Judge:
            key = f"{self._lesson}.{len(self) + 1}"
            self[key] = Exercise(key, title, hints, judge)
            return judge

        return add


def ask(answer: Answer, *arguments: Any, wants: type | tuple[type, ...] | None = None) -> Any:
    """Call a learner's answer and return its result; `wants` is the type of the result.

    NotYet for something that is no function of these arguments, an exception, and a result of another type.
    """
    if not callable(answer):
        raise NotYet(f"✗ pass the function itself, such as my_answer, not its result {answer!r}")
    try:
        inspect.signature(answer).bind(*arguments)
    except TypeError as error:
        raise NotYet(f"✗ my_answer takes {len(arguments)} arguments here: {error}") from error
    try:
        result = answer(*arguments)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[1:2]  # the first one is this module's
        where = f", at: {line[0].line}" if line and line[0].line else ""
        raise NotYet(f"✗ my_answer ended with {type(error).__name__}: {_in_words(error)}{where}") from error
    if wants is not None and (not isinstance(result, wants) or (isinstance(result, bool) and wants is not bool)):
        raise NotYet(f"✗ my_answer returns {result!r}, and should return {_named(wants)}")
    return result


@contextmanager
def accepted_by_brokers() -> Iterator[None]:
    """Around calls with configurations that an answer has chosen: NotYet with the brokers' reason to refuse them."""
    try:
        yield
    except (ValueError, TypeError, KafkaException) as refused:  # a ConfigException is a ValueError
        reason = refused.error.str() if isinstance(refused, KafkaException) else refused
        raise NotYet(f"✗ the brokers refuse this: {reason}") from refused


def _in_words(error: Exception) -> str:
    if not isinstance(error, KafkaException):
        return str(error)
    if error.error.code() == Errors.INVALID_RECORD_STATE:
        return "INVALID_RECORD_STATE, the member held the record no more: had its lock ended?"
    return f"{error.error.name()}, {error.error.str()}"


def _named(wants: type | tuple[type, ...]) -> str:
    names = {
        int: "a whole number",
        float: "a number",
        str: "a text",
        dict: "a dict",
        set: "a set",
        list: "a list",
        tuple: "a tuple",
        bool: "True or False",
        AcknowledgeType: "an acknowledge type, such as AcknowledgeType.ACCEPT",
    }
    kinds = wants if isinstance(wants, tuple) else (wants,)
    return " or ".join(names.get(kind, kind.__name__) for kind in kinds)
