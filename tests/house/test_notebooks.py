"""The notebooks as files: each has been run from top to bottom, has its outputs, and holds no error."""

from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path: Path) -> list[Any]:
    return [
        cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code" and cell.source.strip()
    ]


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
