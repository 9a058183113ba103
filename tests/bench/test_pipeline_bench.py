"""Cost of a trace's tables in Spark and in DuckDB, for the same journal and SQL: wall time and memory.

    make bench ARGS='-k pipeline'                               # 20 million events: half an hour and 6 GB of disk
    SHAREQ_TRACE_EVENTS=1000000 make bench ARGS='-k pipeline'

The journal is that of a run with failures, crashes and poison records, copied with other names and later times.
`extra_info` has seconds of wall time and of processor time until the events are loaded, until the tables are written,
and (Spark only) until the report is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shareq.sim import Scenario
from shareq.sim.run import Simulation

EVENTS = int(os.environ.get("SHAREQ_TRACE_EVENTS", "20000000"))
GROUPS = 50
SCENARIO = Scenario(
    records=20_000,
    partitions=4,
    consumers=4,
    max_poll_records=100,
    failure_rate=0.05,
    poison_rate=0.001,
    crash_rate=0.01,
)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of about EVENTS events in several files."""
    import duckdb

    folder = tmp_path_factory.mktemp("trace")
    with Simulation(SCENARIO, seed=1) as simulation:
        simulation.go()
        journal = simulation.cluster.journal
        journal.to_parquet(folder / "one.parquet")
    span_ms = journal[-1].time_ms - journal[0].time_ms + 1
    whole = folder / "trace.parquet"
    duckdb.execute(f"""
        COPY (
            SELECT * EXCLUDE (copy) REPLACE (
                "order" + copy * {journal.total} AS "order", time_ms + copy * {span_ms} AS time_ms,
                deadline_ms + copy * {span_ms} AS deadline_ms, group_id || '-' || copy % {GROUPS} AS group_id,
                topic || '-' || copy AS topic, member_id || '-' || copy AS member_id
            ) FROM '{folder}/one.parquet', range({-(-EVENTS // journal.total)}) copies(copy)
        ) TO '{whole}' (FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES '64MB', ROW_GROUP_SIZE 200000)
    """)
    return whole


def measured(engine: str, cores: int, trace: Path, out: Path) -> dict[str, float]:
    program = Path(__file__).with_name("pipeline_engines.py")
    command = [sys.executable, str(program), engine, str(cores), str(trace), str(out)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("cores", [1, 2])
def test_tables_of_a_trace(benchmark: Any, trace: Path, tmp_path: Path, cores: int) -> None:
    ours = benchmark.pedantic(measured, ("spark", cores, trace, tmp_path / "spark"), rounds=1)
    theirs = measured("duckdb", cores, trace, tmp_path / "duckdb")
    benchmark.extra_info |= {
        "events": EVENTS,
        "tables, Spark / DuckDB": round(ours["tables_s"] / theirs["tables_s"], 2),
    }
    for name, figures in (("Spark", ours), ("DuckDB", theirs)):
        benchmark.extra_info |= {f"{name} {figure}": round(value, 1) for figure, value in figures.items()}
