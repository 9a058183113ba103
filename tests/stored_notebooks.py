"""Run notebooks and store their outputs, for readers without a kernel: `python -m tests.stored_notebooks PATH...`.

Unlike `jupyter nbconvert --execute` it stores no state of widgets and no reference to it: no later kernel has that
state, and with it an exported page asks a network for the widgets' code and shows no picture. A cell with the tag
`LATER` stores the pictures that its widgets have when all cells have run; its own moment had nothing to show.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

LATER: Final = "picture-of-the-end"
WIDGET: Final = "application/vnd.jupyter.widget-view+json"
TIMEOUT_S: Final = 900
_ASK: Final = "import json; from shareq_widgets import stored; print(json.dumps(stored.later()))"


def run(notebook: Any, folder: Path) -> None:
    """Run all cells in `folder`, and store their outputs in the notebook."""
    notebook.metadata.pop("widgets", None)
    asks = any(map(_later, notebook.cells))
    if asks:
        notebook.cells.append(nbformat.v4.new_code_cell(_ASK))
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=TIMEOUT_S, resources=resources, store_widget_state=False, record_timing=False
    )
    client.execute()
    pictures = json.loads(notebook.cells.pop().outputs[0].text) if asks else {}
    for cell in notebook.cells:
        later = pictures if _later(cell) else {}
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            view = data.pop(WIDGET, {"model_id": None})
            if view["model_id"] in later:
                data.update(later[view["model_id"]])


def _later(cell: Any) -> bool:
    return LATER in cell.metadata.get("tags", ())


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        notebook = nbformat.read(path, as_version=4)
        run(notebook, path.parent)
        nbformat.write(notebook, path)
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
