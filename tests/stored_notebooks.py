"""Run notebooks and store their outputs, for readers without a kernel: `python -m tests.stored_notebooks PATH...`.

Unlike `jupyter nbconvert --execute` it stores no state of widgets and no reference to it: no later kernel has that
state, and with it an exported page asks a network for the widgets' code and shows no picture. A cell with the tag
`LATER` stores the pictures that its widgets have when all cells have run; its own moment had nothing to show.
The kernel runs for readers: outcomes are shown without predictions, and no learner's progress changes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

from shareq.lessons.progress import READER

LATER: Final = "picture-of-the-end"
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
TIMEOUT_S: Final = 900
JSON: Final = "application/json"
_ASK: Final = f"""
from IPython.display import display
from shareq_widgets import stored
display({{{JSON!r}: stored.later()}}, raw=True)
"""
"""No printed text: nbclient, which joins the streams, takes the square of the time for a long line."""


def run(notebook: Any, folder: Path) -> None:
    """Run all cells in `folder`, and store their outputs in the notebook."""
    notebook.metadata.pop("widgets", None)
    asks = any(map(_later, notebook.cells))
    if asks:
        notebook.cells.append(nbformat.v4.new_code_cell(_ASK))
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        resources=resources,
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
    )
    client.execute()
    pictures = notebook.cells.pop().outputs[0].data[JSON] if asks else {}
    for cell in notebook.cells:
        later = pictures if _later(cell) else {}
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            view = data.pop(WIDGET, {"model_id": None})
            if view["model_id"] in later:
                data.update(later[view["model_id"]])


def slide_type(cell: Any) -> str:
    """The place of a cell in the slides of `jupyter nbconvert --to slides`: a heading begins a slide, other text one
    below it, and an outcome comes when the speaker asks for it, after the class has predicted it."""
    if cell.cell_type == "markdown":
        return "slide" if cell.source.startswith("#") else "subslide"
    return "fragment" if ".outcome(" in cell.source else "-"


def arrange_slides(notebook: Any) -> None:
    """Note each cell's place in the slides, where it is not the usual one."""
    for cell in notebook.cells:
        cell.metadata.pop("slideshow", None)
        if (kind := slide_type(cell)) != "-":
            cell.metadata["slideshow"] = {"slide_type": kind}


def _later(cell: Any) -> bool:
    return LATER in cell.metadata.get("tags", ())


def main(paths: list[str]) -> None:
    os.environ[READER] = "1"
    for path in map(Path, paths):
        notebook = nbformat.read(path, as_version=4)
        run(notebook, path.parent)
        arrange_slides(notebook)
        nbformat.write(notebook, path)
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
