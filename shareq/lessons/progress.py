"""A learner's progress: a small file in the user's data folder, the table of `progress()`, and a certificate line."""

from __future__ import annotations

import hmac
import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from shareq.html import Table, Tables
from shareq.lessons.checks import NotYet
from shareq.lessons.syllabus import LESSONS, exercises_of

FILE: Final = "course.json"
READER: Final = "SHAREQ_READER"
"""Set in the environment of a kernel that runs a lesson for readers: outcomes are shown without a prediction, and no
progress is stored."""
FOLDER: Final = "SHAREQ_COURSE"
"""Overrides the folder of the progress."""
_CODE_LENGTH: Final = 16
_LINE: Final = re.compile(
    r"(?P<claim>.+ has passed (?P<passed>\d+) of (?P<of>\d+) exercises of shareq's course .*) \[(?P<code>\w+)\]"
)


def for_readers() -> bool:
    """Is this kernel's run for readers?"""
    return bool(os.environ.get(READER))


@dataclass(slots=True)
class Record:
    """What a learner has done, by key: the day on which an exercise was passed (ISO), the number of hints that were
    shown, and predictions with their results."""

    passed: dict[str, str] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    predictions: dict[str, bool] = field(default_factory=dict)


_for_this_run: Final = Record()


def path() -> Path:
    """The file of the progress; its folder may be missing."""
    if folder := os.environ.get(FOLDER):
        return Path(folder).expanduser() / FILE
    from platformdirs import user_data_path

    return user_data_path("shareq", appauthor=False) / FILE


def load() -> Record:
    """The stored record. A damaged file is moved aside, with a warning, and the record begins anew."""
    if for_readers():
        return _for_this_run
    file = path()
    try:
        stored: dict[str, dict[str, Any]] = json.loads(file.read_text())
        return Record(*({**stored[name]} for name in Record.__slots__))
    except OSError:  # missing, or not readable: the next `store` warns
        return Record()
    except (ValueError, KeyError, TypeError):
        aside = file.with_suffix(".damaged")
        file.replace(aside)
        warnings.warn(f"{file} cannot be read: moved to {aside}; the progress begins anew", stacklevel=2)
        return Record()


def store(record: Record) -> None:
    """Replace the file as a whole, so that a reader never sees half of it. An unwritable folder is a warning."""
    if for_readers():
        return
    file = path()
    text = json.dumps({name: getattr(record, name) for name in Record.__slots__}, indent=1, sort_keys=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, suffix=".tmp", delete=False) as draft:
            draft.write(text)
        Path(draft.name).replace(file)
    except OSError as error:
        warnings.warn(f"the progress is not stored: {error}", stacklevel=2)


class LessonRow(NamedTuple):
    """A lesson: exercises that were passed, of how many; predictions that were right, of those that were made."""

    lesson: str
    title: str
    passed: int
    exercises: int
    right: int
    predicted: int


class Progress(Tables):
    """The table of all lessons, as it stands in the file."""

    def __init__(self, record: Record) -> None:
        self.rows = tuple(_row(lesson, title, record) for lesson, title in LESSONS.items())

    @property
    def passed(self) -> int:
        """The number of passed exercises of the course."""
        return sum(row.passed for row in self.rows)

    @property
    def exercises(self) -> int:
        """The number of exercises of the course."""
        return sum(row.exercises for row in self.rows)

    def tables(self) -> Iterator[Table]:
        """One table: a row for each lesson."""
        rows = [
            [row.lesson, row.title, f"{row.passed} of {row.exercises}", f"{row.right} of {row.predicted}"]
            for row in self.rows
        ]
        yield Table(["lesson", "title", "exercises passed", "predictions right"], rows)

    def __repr__(self) -> str:
        width = max(len(row.title) for row in self.rows)
        most = max(len(str(row.exercises)) for row in self.rows)
        lines = [f"{'lesson':<{width + 4}}  {'exercises':<{most + 9}}  predictions"]
        for row in self.rows:
            done = "✓" if row.passed == row.exercises else " "
            lines.append(
                f"{row.lesson}  {row.title:<{width}}  {row.passed:>3} of {row.exercises:<{most}} {done}  "
                f"{row.right:>2} right of {row.predicted}"
            )
        return "\n".join([*lines, f"{self.passed} of {self.exercises} exercises passed"])


def progress() -> Progress:
    """The learner's progress, from the file in the user's data folder."""
    return Progress(load())


def certificate(name: str, word: str) -> str:
    """A line for the teacher: a learner's name and progress, and a code that `verify` computes again.

    `word` is the word of the class, which the teacher gives out. The code shows that the line is as the course has
    made it for this word. It is no proof against a code that was computed by hand.
    NotYet before the first passed exercise; ValueError for an empty name or word.
    """
    if not name.strip() or not word.strip():
        raise ValueError(f"name={name!r}, word={word!r}: both are needed")
    record = load()
    now = Progress(record)
    if not now.passed:
        raise NotYet("✗ no exercise is passed yet")
    keys = [key for lesson in LESSONS for key in exercises_of(lesson) if key in record.passed]
    claim = (
        f"{' '.join(name.split())} has passed {now.passed} of {now.exercises} exercises of shareq's course "
        f"({', '.join(keys)}) by {date.fromisoformat(max(record.passed.values())):%Y-%m-%d}"
    )
    return f"{claim} [{_code(claim, word)}]"


def verify(line: str, word: str) -> bool:
    """Has `certificate` made this line for the word of the class?"""
    found = _LINE.fullmatch(line.strip())
    return found is not None and hmac.compare_digest(found["code"].encode(), _code(found["claim"], word).encode())


def _code(claim: str, word: str) -> str:
    return hmac.new(word.strip().encode(), claim.encode(), "sha256").hexdigest()[:_CODE_LENGTH]


def _row(lesson: str, title: str, record: Record) -> LessonRow:
    keys = exercises_of(lesson)
    predictions = [right for key, right in record.predictions.items() if key.split(".")[0] == lesson]
    return LessonRow(
        lesson, title, sum(key in record.passed for key in keys), len(keys), sum(predictions), len(predictions)
    )
