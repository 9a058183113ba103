"""In Pyodide: runs the cells of notebooks, and prints what each has printed and displayed, as JSON."""

from __future__ import annotations

import ast
import json
import linecache
import traceback
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import IPython.lib.pretty
import ipywidgets  # noqa: F401 loaded by the lock, because this cell imports it

import shareq  # noqa: F401
import shareq_widgets  # noqa: F401

CELL = "<cell>"
"""The file name of a cell, under which its lines are found."""


def run(source: str, names: dict[str, Any]) -> dict[str, Any]:
    """The result of one cell: what it printed, the text of its last expression, and the last line of its error."""
    printed, shown, error = StringIO(), None, None
    tree = ast.parse(source)
    last = tree.body[-1] if tree.body else None
    linecache.cache[CELL] = len(source), None, source.splitlines(keepends=True), CELL
    try:
        with redirect_stdout(printed):
            if isinstance(last, ast.Expr):
                tree.body.pop()
            exec(compile(tree, CELL, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), CELL, "eval"), names)
                shown = None if value is None else IPython.lib.pretty.pretty(value)
    except Exception:
        error = traceback.format_exc().splitlines()[-1]
    return {"printed": printed.getvalue(), "shown": shown, "error": error}


for path in sorted(Path("/input").glob("*.ipynb")):
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    results = [run("".join(cell["source"]), names) for cell in cells]
    print(json.dumps({"notebook": path.name, "cells": results}))
