"""Tables of a trace by Spark and by DuckDB, each in its own process: `pipeline_engines.py ENGINE CORES ...`.

DuckDB runs the same SQL, translated, on the same Parquet files into the same folders. It keeps events in its own
database instead of Parquet, and does not check lines. Prints a JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from shareq.spark.pipeline.events import fields
from shareq.spark.pipeline.schema import FRAMES, TABLES

COMPARED = ("journals", "leaderships", "deliveries", "locks", "windows", "attempts", "members", "writes")
"""Compared tables; only Spark computes figures and the report."""


def spark(cores: str, trace: str, out: str) -> dict[str, float]:
    from shareq.spark import session
    from shareq.spark.pipeline.pipeline import derive, land
    from shareq.spark.pipeline.sources import events_of
    from shareq.spark.pipeline.store import Store

    made = session(master=f"local[{cores}]")
    made.range(1000).selectExpr("sum(id)").collect()  # warm-up of the session, as in a notebook
    java = made.sparkContext._gateway.proc.pid  # type: ignore[union-attr]  # set as long as it runs
    clock = Clock(java, "self")
    store = Store(out)
    counts = land(events_of(made, trace), store, "events")
    derive(made, store, "events", counts, clock.start_step, report=True)
    clock.start_step("end")
    return clock.figures("bad lines", "latency", "end")


def duckdb(cores: str, trace: str, out: str) -> dict[str, float]:
    import duckdb
    import sqlglot

    database = duckdb.connect(f"{out}.duckdb")
    database.execute(f"SET threads = {cores}; SET preserve_insertion_order = false")
    clock = Clock("self")
    database.execute(_events(f"{trace}/*.parquet", Path(trace).name))
    clock.start_step("landed")
    made: set[str] = set()

    def make(name: str, text: str) -> None:
        for frame, its in FRAMES.items():
            if f"{{{frame}}}" in text and frame not in made:
                make(frame, its)
        (sql,) = sqlglot.transpile(text.format(**{n: n for n in ("events", *TABLES, *FRAMES)}), "spark", "duckdb")
        database.execute(f"CREATE TABLE {name} AS {sql}")
        made.add(name)

    for name in COMPARED:
        table = TABLES[name]
        make(name, table.sql)
        dated = f"*, CAST(make_timestamp_ms({table.time}) AS DATE) AS date" if table.time else "*"
        parted = ", PARTITION_BY (group_id, date), OVERWRITE" if table.time else ""
        target = f"{out}/{name}" if table.time else f"{out}/{name}.parquet"
        Path(out).mkdir(exist_ok=True)
        database.execute(f"COPY (SELECT {dated} FROM {name}) TO '{target}' (FORMAT parquet, COMPRESSION zstd{parted})")
    clock.start_step("tables")
    return clock.figures("landed", "tables")


def _events(files: str, journal: str) -> str:
    """Load events; fields without a typed column are read from the JSON column if a table needs them."""
    flat = set(duckdb_columns(files))
    used = " ".join([*(TABLES[name].sql for name in COMPARED), *FRAMES.values()])
    types = {"bigint": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
    types |= {"array<string>": "VARCHAR[]", "array<bigint>": "BIGINT[]", "array<array<bigint>>": "BIGINT[][]"}
    partly = "('BrokerStopped', 'TopicCreated', 'ConfigChanged', 'SharePartitionLoaded', 'StateWritePrepared', "
    partly += "'RecordsDelivered', 'MemberJoined', 'MemberLeft', 'MemberReconciled', 'HeartbeatReceived')"
    rest = {name: kind for name, kind in fields().items() if name not in flat and name in used}
    shape = json.dumps({name: types[kind] for name, kind in rest.items()})
    return f"""
        CREATE TABLE events AS SELECT * EXCLUDE (payload, parsed), {", ".join(f'parsed."{n}" AS "{n}"' for n in rest)}
        FROM (SELECT '{journal}' AS journal, *,
                     CASE WHEN type IN {partly} THEN from_json(payload, '{shape}') END AS parsed
              FROM read_parquet('{files}'))"""


def duckdb_columns(files: str) -> list[str]:
    import duckdb

    return duckdb.read_parquet(files).columns


class Clock:
    """Wall time, processor time (which other load changes less) and memory of processes, from /proc."""

    def __init__(self, *processes: object) -> None:
        self._processes = processes
        self._began = self._now()
        self._steps: dict[str, tuple[float, float]] = {}

    def start_step(self, step: str) -> None:
        """Record the start of a step."""
        (wall, cpu), (began, cpu_began) = self._now(), self._began
        self._steps[step] = wall - began, cpu - cpu_began

    def figures(self, *steps: str) -> dict[str, float]:
        """Seconds until each of these steps started: loading, tables, and the rest."""
        found = {"peak_mib": sum(map(_peak_mib, self._processes))}
        for name, step in zip(("landed", "tables", "whole"), steps, strict=False):
            found[f"{name}_s"], found[f"{name}_cpu_s"] = self._steps[step]
        return found

    def _now(self) -> tuple[float, float]:
        ticks = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in self._processes]
        return time.perf_counter(), sum(int(of[11]) + int(of[12]) for of in ticks) / os.sysconf("SC_CLK_TCK")


def _peak_mib(process: object) -> float:
    """Largest resident memory of a process, in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


if __name__ == "__main__":
    engine = {"spark": spark, "duckdb": duckdb}[sys.argv[1]]
    print(json.dumps(engine(*sys.argv[2:])))
