"""Run All of a learner's copy: it ends without an exception, every check fails, and no outcome is given away."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import nbformat
import pytest

from shareq.lessons import Outcome, Prediction, Verdict
from shareq.lessons.progress import FILE, FOLDER, READER
from shareq.lessons.syllabus import LESSONS, exercises_of
from tests.stored_notebooks import TIMEOUT_S, run

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
REAL = {"07": pytest.mark.kafka, "11": pytest.mark.spark, "13": pytest.mark.kafka}
"""The lessons that start a real part."""
IN_PROCESS = [
    pytest.param(lesson, marks=[pytest.mark.long] if lesson in {"00", "10", "12", "17", "18"} else [])
    for lesson in LESSONS
    if lesson not in REAL
]
"""The other lessons. Those with a hundred thousand records take longest; the first ring has lesson 12 as its readers
see it."""
WITHHELD = "? Commit a prediction"


def values_of(path: Path) -> list[Any]:
    """Run a notebook in this process; the values of its cells' last expressions."""
    names: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            body = ast.parse(cell.source).body
            last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), path.name, "exec"), names)
            if isinstance(last, ast.Expr):
                values.append(eval(compile(ast.Expression(last.value), path.name, "eval"), names))
    return values


@pytest.mark.parametrize("lesson", LESSONS)
def test_each_prediction_has_its_outcome_later(lesson: str) -> None:
    """Also in lessons that are not run here. Two questions may stand together; their keys are the first letters."""
    [path] = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    asked = {name: at for at, source in enumerate(sources) for name in re.findall(r"(\w+) = predict\(", source)}
    shown = {name: at for at, source in enumerate(sources) for name in re.findall(r"(\w+)\.outcome\(", source)}
    assert asked.keys() == shown.keys()
    assert [name for name in asked if shown[name] <= asked[name]] == []
    keys = sorted(re.findall(rf'predict\(\s*"{lesson}\.(\w)"', "\n".join(sources)))
    assert keys == list(ascii_lowercase[: len(asked)])


@pytest.mark.parametrize("lesson", LESSONS)
def test_an_outcome_is_what_happened(lesson: str) -> None:
    """It is computed: a constant would be shown whatever the run has done."""
    [path] = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    sources = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    calls = [node for source in sources for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    outcomes = [call.args[0] for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "outcome"]
    assert outcomes
    assert [ast.unparse(happened) for happened in outcomes if isinstance(happened, ast.Constant)] == []


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a learner's progress. Nothing is stored there yet."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.delenv(READER, raising=False)
    return tmp_path


@pytest.mark.parametrize("lesson", IN_PROCESS)
def test_run_all_of_a_copy(lesson: str, learner: Path) -> None:
    [path] = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    values = values_of(path)
    verdicts = [value for value in values if isinstance(value, Verdict)]
    assert len(verdicts) == len(exercises_of(lesson))
    assert [verdict for verdict in verdicts if verdict] == []
    outcomes = [value for value in values if isinstance(value, Outcome)]
    assert {repr(outcome).split(" in ")[0] for outcome in outcomes} == {WITHHELD}
    asked = [value.key for value in values if isinstance(value, Prediction)]
    assert asked == [outcome.prediction.key for outcome in outcomes]
    assert Counter(asked) == {f"{lesson}.{letter}": 1 for letter in ascii_lowercase[: len(asked)]}
    assert len(asked) >= 1
    assert not (learner / FILE).exists()


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("lesson", [pytest.param(lesson, marks=mark) for lesson, mark in REAL.items()])
def test_run_all_of_a_copy_with_a_real_part(lesson: str, learner: Path) -> None:
    """In a kernel, whose end is the end of all that it has started."""
    [path] = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    run(notebook, path.parent)
    checks, outcomes = (shown_by(notebook, call) for call in (".check(my_answer)", ".outcome("))
    assert [text[:2] for text in checks] == ["✗ "] * len(exercises_of(lesson))
    assert {text.split(" in ")[0] for text in outcomes} == {WITHHELD}
    assert not (learner / FILE).exists()


def shown_by(notebook: Any, call: str) -> list[str]:
    """What the cells with this call show at their end."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and call in cell.source]
    return [cell.outputs[-1].data["text/plain"] for cell in cells]
