"""WORKSHOP.md names lessons, exercises, headings, commands and figures that exist; its slides can be made."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbconvert import SlidesExporter

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
