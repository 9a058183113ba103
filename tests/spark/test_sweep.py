"""Sweeps on Spark: the same rows and checkpoints as in one process."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import shareq.sim
from shareq.model.errors import ConfigException
from shareq.sim import Scenario
from shareq.sim.sweep_grid import SweepRun
from shareq.spark import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sweep_module = import_module("shareq.spark.sweep")  # `shareq.spark.sweep` as an attribute is the function

SMALL = Scenario(records=40, max_poll_records=10, consumers=2, failure_rate=0.1, arrival_rate=100.0)
GRID: dict[str, list[Any]] = {"consumers": [1, 3], "lock_duration_ms": [1000, 5000], "arrival_rate": [None, 50.0]}
EXPERIMENTS: dict[str, list[Any]] = {
    "assignor": ["simple", "cut"], "release_backoff_ms": [0, 300], "key_ordering": ["none", "key"],
    "record_ttl_ms": [None, 1000],
}  # fmt: skip


def rows(found: shareq.sim.Sweep) -> str:
    """All rows to the last digit, NaN equal to NaN."""
    return repr(found.table.to_pylist())


@pytest.fixture(scope="module")
def plain() -> shareq.sim.Sweep:
    return shareq.sim.sweep(GRID, 3, SMALL, progress=False)


def test_rows_are_the_same_with_and_without_spark(spark: SparkSession, plain: shareq.sim.Sweep) -> None:
    found = sweep(GRID, 3, SMALL, spark=spark, progress=False)
    assert rows(found) == rows(plain)
    assert found.table.schema == plain.table.schema
    assert found.computed == 24


def test_experiments_have_the_same_rows_with_and_without_spark(spark: SparkSession) -> None:
    scenario = Scenario(records=60, max_poll_records=10, consumers=2, failure_rate=0.2, service_ms=40.0, keys=3)
    found = sweep(EXPERIMENTS, 2, scenario, spark=spark, progress=False)
    assert rows(found) == rows(shareq.sim.sweep(EXPERIMENTS, 2, scenario, progress=False))
    assert (found.computed, found.failed) == (32, 0)


def test_faults_have_the_same_rows_with_and_without_spark(spark: SparkSession) -> None:
    grid = {"faults": ["", "1 s: messages.cut(0, 1); 2 s: kill_broker(2); 3 s: jump_clock(9_000); 4 s: clear_faults()"]}
    scenario = replace(SMALL, brokers=3, arrival_rate=10.0)
    found = sweep(grid, 3, scenario, spark=spark, progress=False)
    assert rows(found) == rows(shareq.sim.sweep(grid, 3, scenario, progress=False))
    assert (found.computed, found.failed) == (6, 0)


@pytest.mark.parametrize(
    ("seconds", "jobs_at_once"),
    [
        pytest.param(1e-9, 16, id="each run is a job"),
        pytest.param(1e-9, 1, id="jobs of two tasks"),
        pytest.param(1e9, 16, id="jobs as large as possible"),
    ],
)
def test_rows_do_not_depend_on_the_size_of_jobs_and_tasks(
    spark: SparkSession, plain: shareq.sim.Sweep, monkeypatch: pytest.MonkeyPatch, seconds: float, jobs_at_once: int
) -> None:
    monkeypatch.setattr(sweep_module, "SECONDS_PER_TASK", seconds)
    monkeypatch.setattr(sweep_module, "SECONDS_OF_LAST_TASKS", seconds / 10)
    monkeypatch.setattr(sweep_module, "JOBS_AT_ONCE", jobs_at_once)
    assert rows(sweep(GRID, 3, SMALL, spark=spark, progress=False)) == rows(plain)


@pytest.mark.parametrize(
    ("cost", "sizes"),
    [
        pytest.param(0.1, [4, 49, 36, 27, 21, 15, 12, 10, 10, 10, 6], id="cheap runs: the last tasks take a second"),
        pytest.param(1.0, [4, *[5] * 36, 4, 3, 2, *[1] * 7], id="expensive runs: five seconds, at the end one run"),
        pytest.param(60.0, [4, *[1] * 196], id="very expensive runs: one per task"),
    ],
)
def test_the_size_of_tasks_follows_the_cost_of_runs_and_shrinks_at_the_end(cost: float, sizes: list[int]) -> None:
    shares, cut = sweep_module._Shares([SweepRun(SMALL, seed) for seed in range(200)]), []
    while share := shares.next(2, 1):
        cut.append(share)
        shares.learn(cost)
    assert [len(share) for share in cut] == sizes
    assert {setting.seed for share in cut for setting in share} == set(range(200))


def test_a_sweep_is_continued_with_and_without_spark(
    spark: SparkSession, plain: shareq.sim.Sweep, tmp_path: Path
) -> None:
    shareq.sim.sweep(GRID, 1, SMALL, checkpoint=tmp_path, progress=False)
    found = sweep(GRID, 3, SMALL, spark=spark, checkpoint=tmp_path, progress=False)
    assert (found.computed, rows(found)) == (16, rows(plain))
    again = shareq.sim.sweep(GRID, 3, SMALL, checkpoint=tmp_path, progress=False)
    assert (again.computed, rows(again)) == (0, rows(plain))


def test_rows_of_jobs_before_a_failed_one_are_kept(
    spark: SparkSession, plain: shareq.sim.Sweep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The driver is lost half-way: the fifth job is not run."""
    carry_out, jobs = sweep_module._job, count(1)

    def breaking(session: SparkSession, settings: list[SweepRun], tasks: int) -> Any:
        if next(jobs) == 5:  # in one of several threads
            raise ConnectionError("the driver is gone")
        return carry_out(session, settings, tasks)

    monkeypatch.setattr(sweep_module, "SECONDS_PER_TASK", 1e-9)
    monkeypatch.setattr(sweep_module, "SECONDS_OF_LAST_TASKS", 1e-9)
    monkeypatch.setattr(sweep_module, "_job", breaking)
    with pytest.raises(ConnectionError):
        sweep(GRID, 3, SMALL, spark=spark, checkpoint=tmp_path, progress=False)
    kept = sum(pq.read_metadata(path).num_rows for path in tmp_path.glob("rows-*.parquet"))
    assert 2 <= kept < 24  # three at once: the fifth begins when two have ended
    monkeypatch.setattr(sweep_module, "_job", carry_out)
    found = sweep(GRID, 3, SMALL, spark=spark, checkpoint=tmp_path, progress=False)
    assert (found.computed, rows(found)) == (24 - kept, rows(plain))


def test_invalid_values_are_refused_before_spark_starts() -> None:
    with pytest.raises(ConfigException, match=r"consumers=0: must be a whole number in 1..1000"):
        sweep({"consumers": [0]}, 3, SMALL, progress=False)
