"""A learner's copies of the lessons: `python -m shareq.lessons.handout notebooks notebooks/mine`.

The stored notebooks have the outputs that readers see and nbval compares. Copies have none (nbconvert's
ClearOutputPreprocessor, which JupyterLab's own export uses), so that no answer can be seen before the prediction. A
copy that exists already has the learner's work in it, and is kept.
"""

from __future__ import annotations

import sys
from importlib import import_module
from os.path import relpath
from pathlib import Path
from typing import Any

from shareq.extras import require


def hand_out(lessons: Path, folder: Path) -> list[Path]:
    """Copy the notebooks of a folder without their outputs; returns the copies that were made.

    ModuleNotFoundError if nbconvert is missing, with the command that installs it.
    """
    require("lab", "nbconvert", "nbformat")
    nbformat: Any = import_module("nbformat")  # without types
    preprocessors: Any = import_module("nbconvert.preprocessors")
    folder.mkdir(parents=True, exist_ok=True)
    clear, made = preprocessors.ClearOutputPreprocessor(), []
    above = Path(relpath(lessons.parent, folder)).as_posix()
    for lesson in sorted(lessons.glob("*.ipynb")):
        copy = folder / lesson.name
        if not copy.exists():
            cleared, _ = clear.preprocess(nbformat.read(lesson, as_version=4), {})
            for cell in cleared.cells:  # links to the files above the lessons, such as the glossary
                if cell.cell_type == "markdown":
                    cell.source = cell.source.replace("](../", f"]({above}/")
            nbformat.write(cleared, copy)
            made.append(copy)
    return made


def main(arguments: list[str]) -> None:
    """Hand out, and print what was made."""
    lessons, folder = map(Path, arguments)
    made = hand_out(lessons, folder)
    sys.stdout.write(f"{folder}: {len(made)} new lessons; lessons that were there are kept\n")


if __name__ == "__main__":
    main(sys.argv[1:])
