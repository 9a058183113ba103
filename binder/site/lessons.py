"""The lessons as the site has them: without outputs, for its kernel, and with what the browser must load for a cell.

A cell loads the packages that it imports. shareq imports matplotlib late, in functions that few cells call: these cells
get a line that imports it at the beginning. A bar of tqdm gets no monitor, which is a thread.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from shareq.lessons.syllabus import LESSONS

NOTEBOOKS: Final = Path(__file__).parents[2] / "notebooks"
SERVED: Final = ("00", "01", "02", "03", "04", "05", "06")
"""The lessons that need no TCP, no threads and no Spark; the labs do not, either."""
KERNEL: Final = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
PLOT: Final = re.compile(
    r"^(?!from|import).*\b(?:raster|lag_plot|state_diagram|delays_plot|shifts_plot)\(", re.MULTILINE
)
_BAR: Final = "from tqdm.auto import tqdm\n"
_LINK: Final = re.compile(r"\[([^]]+)\]\((\d\d)_\w+\.ipynb\)")


def served_lessons() -> list[str]:
    """The numbers of the lessons and labs that run in the browser."""
    return [number for number, title in LESSONS.items() if number in SERVED or title.startswith("Lab")]


def for_browser(number: str) -> tuple[str, Any]:
    """The name and the notebook of a lesson, for the site. Its cells keep their stored outputs."""
    nbformat: Any = import_module("nbformat")  # without types
    [path] = NOTEBOOKS.glob(f"{number}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata.kernelspec = KERNEL
    served = served_lessons()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _LINK.sub(lambda link: link[0] if link[2] in served else link[1], cell.source)
        elif PLOT.search(cell.source):
            cell.source = f"import matplotlib  # the browser loads it for this line\n{cell.source}"
        elif cell.source.startswith(_BAR):
            cell.source = cell.source.replace(_BAR, f"{_BAR}\ntqdm.monitor_interval = 0  # no thread\n")
    return path.name, notebook


def write_lessons(folder: Path) -> None:
    """Write the lessons to a folder, without outputs: what is in them is learned by running."""
    nbformat: Any = import_module("nbformat")
    clear = import_module("nbconvert.preprocessors").ClearOutputPreprocessor()
    folder.mkdir(parents=True, exist_ok=True)
    for number in served_lessons():
        name, notebook = for_browser(number)
        cleared, _ = clear.preprocess(notebook, {})
        nbformat.write(cleared, folder / name)
