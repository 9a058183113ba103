"""The memory that each notebook takes: `python -m tests.notebook_memory PATH...` runs them and prints a table.

Counted are the kernel and everything that it starts (Apache Kafka, Spark's driver and workers), as proportional set
size: a page that several processes share counts once. The server of JupyterLab, about 150 MB, is not in it. A notebook
that takes more than MOST_MB is an error.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil

from shareq.lessons.progress import READER
from tests.stored_notebooks import run

EVERY_S = 0.25
MEGABYTE = 1_000_000
MOST_MB = 1_500
"""A seat of a class has 2 GB: JupyterLab's server and the system need some of it."""


def used_bytes() -> int:
    """The memory of all processes that this one has started."""
    total = 0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            total += process.memory_full_info().pss
    return total


def peak_bytes(path: Path) -> int:
    """Run a notebook; the highest of the samples meanwhile."""
    peak, ended = 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not ended.wait(EVERY_S):
            peak = max(peak, used_bytes())

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        run(nbformat.read(path, as_version=4), path.parent)
    finally:
        ended.set()
        sampler.join()
    return peak


def main(paths: list[str]) -> None:
    os.environ[READER] = "1"
    print("notebook                     MB at most")
    above = []
    for path in map(Path, paths):
        peak = peak_bytes(path) / MEGABYTE
        print(f"{path.stem:<28} {peak:>10,.0f}", flush=True)
        if peak > MOST_MB:
            above.append(path.stem)
    if above:
        sys.exit(f"more than {MOST_MB:,} MB: {', '.join(above)}")


if __name__ == "__main__":
    main(sys.argv[1:])
