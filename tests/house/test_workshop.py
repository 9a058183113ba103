"""WORKSHOP.md names lessons, exercises, headings, commands and figures that exist; its slides can be made."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbconvert import SlidesExporter

from binder.site.lessons import served_lessons
from shareq.commands import LATE
from shareq.lessons.incidents import CAUSES
from shareq.lessons.progress import READER
from shareq.lessons.syllabus import LESSONS, MINUTES, exercises_of
from tests import notebook_memory

ROOT = Path(__file__).parents[2]
PLAN = (ROOT / "WORKSHOP.md").read_text()
ROWS = [line for line in PLAN.splitlines() if re.match(r"\| \d:\d\d ", line)]

OF_LESSON = re.compile(r"[Ll]esson (\d\d)|\((\d\d)\)")


@cache
def text_of(lesson: str) -> str:
    """The sources and the printed outputs of a lesson."""
    [path] = (ROOT / "notebooks").glob(f"{lesson}_*.ipynb")
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]
    return "\n".join([*(cell.source for cell in cells), *shown])


def test_it_counts_the_lessons_and_their_minutes() -> None:
    labs = [title for title in LESSONS.values() if title.startswith("Lab: ")]
    low, high = MINUTES
    assert f"has {len(LESSONS) - len(labs)} lessons of {low} to {high} minutes" in PLAN
    assert len(labs) == 3
    assert f"are a course of {low} to {high} minutes each" in (ROOT / "README.md").read_text()


def numbers(words: str) -> set[str]:
    """The lessons of "00 to 06, 12 and the labs"."""
    ranges = re.findall(r"(\d\d)(?: to (\d\d))?", words)
    labs = {number for number, title in LESSONS.items() if title.startswith("Lab: ") and "labs" in words}
    return labs | {number for number in LESSONS for low, high in ranges if low <= number <= (high or low)}


def named(pattern: str, text: str = PLAN) -> set[str]:
    """The lessons that the one group of a pattern names."""
    [words] = re.findall(pattern, text)
    return numbers(words)


def test_each_lesson_is_where_it_says() -> None:
    lessons, labs = named(r"\d+ lessons of [^(]*\(([^)]*)\)"), named(r"three labs \(([^)]*)\)")
    assert labs == numbers("labs")
    assert (lessons | labs, lessons & labs) == (set(LESSONS), set())
    with_java = {number for number in LESSONS if "\ninstall_jvm()\n" in text_of(number)}
    assert named(r"the lessons ([^.]*) need none") == set(LESSONS) - with_java
    assert named(r"Lessons (\d\d and \d\d) fetch") | named(r"and lesson (\d\d) starts Spark") == with_java
    assert named(r"lessons ([^()]*) install them in a cell") == with_java
    assert named(r"no kernels \(lessons ([^,]*),") == set(served_lessons())


def test_the_readme_names_the_same_lessons() -> None:
    readme = (ROOT / "README.md").read_text()
    assert named(r"Lessons ([^.]*) run in the visitor's browser", readme) == set(served_lessons())
    assert named(r"lessons ([^.]*), which need them, install", readme) == named(r"lessons ([^()]*) install them in a")


def test_the_memory_of_each_lesson_is_stated_once() -> None:
    _, _, table = PLAN.partition("| Notebook | MB at most |")
    rows = [numbers(words) for words in re.findall(r"^\| (\d\d.*?) \| [\d ,to]+ \|$", table, re.MULTILINE)]
    assert sorted(number for row in rows for number in row) == sorted(LESSONS)


@pytest.mark.parametrize(("title", "hours"), [("Half a day: four hours", 4), ("A full day: seven hours", 7)])
def test_the_minutes_of_a_plan_add_up(title: str, hours: int) -> None:
    """Its rows follow each other, and end with the hours of its title; the advice for those who are late names rows."""
    plan = PLAN.partition(f"## {title}\n")[2].partition("\n## ")[0]
    starts = [60 * int(hour) + int(minute) for hour, minute in re.findall(r"^\| (\d):(\d\d) ", plan, re.MULTILINE)]
    assert starts == sorted(set(starts))
    assert (starts[0], starts[-1]) == (0, 60 * hours)
    named_times = re.findall(r"(?:late at|At|to) (\d):(\d\d)\b", plan)
    assert named_times
    assert {60 * int(hour) + int(minute) for hour, minute in named_times} <= set(starts)


def test_its_exercises_and_predictions_exist() -> None:
    exercises = set(re.findall(r"\b\d\d\.\d\b", PLAN))
    predictions = set(re.findall(r"\b\d\d\.[a-z]\b", PLAN))
    assert len(exercises) >= 8
    assert len(predictions) >= 4
    assert exercises <= {key for lesson in LESSONS for key in exercises_of(lesson)}
    assert [key for key in predictions if f'"{key}"' not in text_of(key[:2])] == []


@pytest.mark.parametrize("row", [pytest.param(row, id=row[2:6]) for row in ROWS if OF_LESSON.search(row)])
def test_the_headings_and_exercises_of_a_row_are_in_its_lesson(row: str) -> None:
    found = OF_LESSON.search(row)
    assert found
    lesson = found[1] or found[2]
    headings = re.findall(r"(?<!\*)\*([A-Z][^*]*)\*(?!\*)", row)
    assert [heading for heading in headings if f"# {heading}\n" not in text_of(lesson)] == []
    places = re.findall(r"[Ee]xercises? (\d)\b(?: and (\d)\b)?", row)
    assert {f"{lesson}.{place}" for pair in places for place in pair if place} <= set(exercises_of(lesson))


def test_its_figures_are_those_of_the_tour() -> None:
    figures = set(re.findall(r"\b\d{3},\d{3}\b", PLAN))
    assert figures
    assert [figure for figure in figures if figure not in text_of("00")] == []


def test_its_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", PLAN)) <= targets
    assert set(re.findall(r"bin/shareq ([a-z-]+)", PLAN)) <= set(LATE)


def test_the_class_has_as_many_causes_to_choose_from_as_it_states() -> None:
    assert len(CAUSES) == 7
    assert "of the seven causes" in PLAN


def test_a_lesson_becomes_slides_as_it_states() -> None:
    assert "nbconvert --to slides --SlidesExporter.reveal_scroll=True notebooks/02_window.ipynb" in PLAN
    [path] = (ROOT / "notebooks").glob("02_*.ipynb")
    page, _ = SlidesExporter(reveal_scroll=True).from_filename(str(path))
    headings = sum(cell.source.startswith("#") for cell in nbformat.read(path, as_version=4).cells)
    assert page.count("<section><section") == headings
    assert page.count('class="fragment"') == text_of("02").count(".outcome(")


def test_no_notebook_takes_more_memory_than_a_measurement_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make memory` measures: it fails above the limit."""
    _, _, table = PLAN.partition("| Notebook | MB at most |")
    figures = [int(figure.replace(",", "")) for figure in re.findall(r"([\d,]+) \|$", table, re.MULTILINE)]
    assert len(figures) == 5
    assert max(figures) < notebook_memory.MOST_MB
    assert f"which fails above {notebook_memory.MOST_MB:,}" in PLAN

    monkeypatch.setenv(READER, "1")
    monkeypatch.setattr(
        notebook_memory, "peak_bytes", lambda path: {"usual": 1_400_000_000, "large": 1_600_000_000}[str(path)]
    )
    notebook_memory.main(["usual"])
    with pytest.raises(SystemExit, match="more than 1,500 MB: large"):
        notebook_memory.main(["usual", "large"])
