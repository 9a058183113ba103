"""The parts of a run over a small journal, as `shareq pipeline run` does it: `small_journal.py JOURNAL OUT RUNS`.

Prints a JSON list: first the start of Spark, then each run in the same session. Each is a list of [part, seconds,
seconds of processor time of Python and Java]. Processor time is the more stable figure on a machine with other work.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def ticks(process: object) -> float:
    """Processor time of a process so far, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Parts:
    """The parts of a run, by the name of each at its start."""

    def __init__(self, java: object = None) -> None:
        self._java = java
        self._begun = [("", *self._now())]

    def begin(self, name: str) -> None:
        self._begun.append((name, *self._now()))

    def figures(self) -> list[tuple[str, float, float]]:
        self.begin("")
        pairs = zip(self._begun[1:], self._begun[2:], strict=False)
        return [(name, then - at, cpu_then - cpu) for (name, at, cpu), (_, then, cpu_then) in pairs]

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), ticks("self") + (ticks(self._java) if self._java else 0)


def main(journal: str, out: str, runs: int) -> None:
    boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    age = boot - int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    begun = time.perf_counter() - age
    from shareq.spark.command import spark_of_command
    from shareq.spark.pipeline.pipeline import _run_small
    from shareq.spark.pipeline.small import read_here
    from shareq.spark.pipeline.store import Store

    imported, python = time.perf_counter(), ticks("self")
    with spark_of_command("local[*]", verbose=False, brief=True, progress=False, interrupted=str) as spark:
        java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # set as long as it runs
        started = ticks("self") - python + ticks(java)
        figures = [[("imports", imported - begun, python), ("session", time.perf_counter() - imported, started)]]
        for _ in range(runs):
            parts = Parts(java)
            parts.begin("events")
            _run_small(spark, journal, Store(out), parts.begin, read_here(journal), report=True)
            figures.append(parts.figures())
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
