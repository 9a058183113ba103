"""The notebooks as files: each has been run from top to bottom, has its outputs, and holds no error.

They are stored by `python -m tests.stored_notebooks`, for readers without a kernel.
"""

from base64 import b64decode
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

from shareq.lessons.syllabus import LESSONS, MINUTES, exercises_of
from shareq.model.waits import Wait
from tests.stored_notebooks import LATER, WIDGET, slide_type

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path: Path) -> list[Any]:
    return [
        cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code" and cell.source.strip()
    ]


MOST_BYTES = 650_000
"""The most bytes of a notebook: GitHub shows none of more than a megabyte or two, and each version stays in Git."""
LONGEST_LINE = 110
"""The most characters of a line of code: more are cut where JupyterLab has 1,150 pixels."""
PICTURE_CALLS = ("strip(", "control_room(")
"""What begins the last line of a cell that shows a view."""
START_FIRST = {"11": "Spark, and what its sums are compared with", "13": "Apache Kafka, and two places beside it"}
"""The lessons that start something before a view has anything to show."""
OF_NOTHING = (f"empty ({Wait.NOT_LOADED.sentence})", "no members", "Control room of")
"""The words of a strip without records, a group without members, and of any control room."""
SVG = "image/svg+xml"


def notebook_of(lesson: str) -> Path:
    [path] = FOLDER.glob(f"{lesson}_*.ipynb")
    return path


def data_of(cell: Any) -> list[Any]:
    return [output.data for output in cell.outputs if "data" in output]


def test_notebook_00_is_the_tour() -> None:
    assert "00_tour.ipynb" in [path.name for path in NOTEBOOKS]


def test_notebook_names_are_numbered_without_gaps() -> None:
    numbers = [int(path.name.split("_")[0]) for path in NOTEBOOKS]
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
class TestNotebook:
    def test_is_valid(self, path: Path) -> None:
        problems = nbformat.validator.iter_validate(nbformat.read(path, as_version=nbformat.NO_CONVERT))
        assert list(problems) == []

    def test_execution_counts_are_consecutive(self, path: Path) -> None:
        executions = [cell.execution_count for cell in code_cells(path)]
        assert executions == list(range(1, len(executions) + 1))

    def test_has_outputs_and_no_error(self, path: Path) -> None:
        outputs = [output for cell in code_cells(path) for output in cell.outputs]
        assert outputs
        assert [output for output in outputs if output.output_type == "error"] == []

    def test_kernel_is_python3(self, path: Path) -> None:
        assert nbformat.read(path, as_version=4).metadata.kernelspec.name == "python3"

    def test_has_no_state_of_widgets(self, path: Path) -> None:
        """With a widget's state or its id, exported pages and JupyterLab would look for the widget, and find none."""
        notebook = nbformat.read(path, as_version=4)
        assert "widgets" not in notebook.metadata
        assert [data for cell in code_cells(path) for data in data_of(cell) if WIDGET in data] == []

    def test_its_lines_fit_a_narrow_page(self, path: Path) -> None:
        lines = [line for cell in code_cells(path) for line in cell.source.splitlines()]
        assert [line for line in lines if len(line) > LONGEST_LINE] == []

    def test_each_view_has_a_picture_for_all_readers(self, path: Path) -> None:
        for cell in code_cells(path):
            if cell.source.splitlines()[-1].startswith(PICTURE_CALLS):
                (data,) = data_of(cell)
                assert {"image/png", SVG, "text/plain"} <= data.keys()
                assert Image.open(BytesIO(b64decode(data["image/png"]))).width >= 700

    def test_a_picture_of_the_end_has_moments(self, path: Path) -> None:
        pictures = [
            data for cell in code_cells(path) if LATER in cell.metadata.get("tags", ()) for data in data_of(cell)
        ]
        assert all("moments of the recording" in data[SVG] for data in pictures)

    def test_its_cells_have_their_places_in_the_slides(self, path: Path) -> None:
        cells = nbformat.read(path, as_version=4).cells
        placed = [cell.metadata.get("slideshow", {"slide_type": "-"})["slide_type"] for cell in cells]
        assert placed == [slide_type(cell) for cell in cells]

    def test_is_small(self, path: Path) -> None:
        assert path.stat().st_size <= MOST_BYTES


@pytest.mark.parametrize("lesson", LESSONS)
class TestLesson:
    def test_each_exercise_has_a_cell_whose_check_fails_as_handed_out(self, lesson: str) -> None:
        """The stored output is that of an empty answer; nbval runs it again."""
        cells = {
            cell.source.splitlines()[-1]: cell
            for cell in code_cells(notebook_of(lesson))
            if ".check(my_answer)" in cell.source
        }
        assert list(cells) == [f'exercise("{key}").check(my_answer)' for key in exercises_of(lesson)]
        texts = [data_of(cell)[0]["text/plain"] for cell in cells.values()]
        assert [text for text in texts if not text.startswith("✗")] == []

    def test_has_some_exercises_and_no_solution(self, lesson: str) -> None:
        assert 2 <= len(exercises_of(lesson)) <= (10 if LESSONS[lesson].startswith("Lab") else 5)
        assert [cell for cell in code_cells(notebook_of(lesson)) if "def solution" in cell.source] == []

    def test_is_titled_as_in_the_syllabus(self, lesson: str) -> None:
        title = nbformat.read(notebook_of(lesson), as_version=4).cells[0].source.splitlines()[0]
        assert title.startswith(f"# {LESSONS[lesson]}")

    def test_ends_with_what_to_take_along_and_the_next_lesson(self, lesson: str) -> None:
        """The last one leads back to the README."""
        last = nbformat.read(notebook_of(lesson), as_version=4).cells[-1]
        assert last.cell_type == "markdown"
        assert "## What to take along" in last.source
        following = [later for later in LESSONS if later > lesson][:1]
        links = [f"Next: [{later} " for later in following] or ["[README](../README.md)"]
        targets = [f"]({notebook_of(later).name})" for later in following]
        end = last.source.splitlines()[-1]
        assert [words for words in links + targets if words not in end] == []

    def test_takes_its_time(self, lesson: str) -> None:
        """An estimate: 150 words or 12 lines of code a minute, 1.5 minutes a prediction, 5 an exercise; to the next
        ten minutes."""
        if not LESSONS[lesson].startswith("Lab: "):
            cells = nbformat.read(notebook_of(lesson), as_version=4).cells
            words = sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown")
            code = [cell.source for cell in cells if cell.cell_type == "code"]
            lines = sum(len(source.splitlines()) for source in code)
            predictions = sum("predict(" in source for source in code)
            estimate = words / 150 + lines / 12 + 1.5 * predictions + 5 * len(exercises_of(lesson))
            assert MINUTES[0] <= round(estimate, -1) <= MINUTES[1]

    def test_a_view_stands_at_the_top(self, lesson: str) -> None:
        if lesson not in START_FIRST:
            top = code_cells(notebook_of(lesson))[:3]
            assert [data for cell in top for data in data_of(cell) if SVG in data]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
def test_a_view_of_nothing_stores_the_picture_of_the_end(path: Path) -> None:
    """Where nothing has happened yet when a cell at the top runs."""
    tops = [(cell, data["text/plain"]) for cell in code_cells(path)[:3] for data in data_of(cell) if SVG in data]
    empty = [(cell, text) for cell, text in tops if any(words in text for words in OF_NOTHING)]
    assert [text for cell, text in empty if LATER not in cell.metadata.get("tags", ())] == []


def test_views_of_nothing_are_recognised() -> None:
    texts = [data["text/plain"] for path in NOTEBOOKS for cell in code_cells(path)[:3] for data in data_of(cell)]
    assert [words for words in OF_NOTHING if not any(words in text for text in texts)] == []
