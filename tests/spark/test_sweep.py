"""Sweeps on Spark: the same rows and checkpoints as in one process."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shareq.sim
from shareq.model.errors import ConfigException
from shareq.sim import Scenario
from shareq.sim.grid import Setting
from shareq.spark import sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

sweep_module = import_module("shareq.spark.sweep")  # its name in the room is the function's

SMALL = Scenario(records=40, max_poll_records=10, consumers=2, failure_rate=0.1, arrival_rate=100.0)
GRID: dict[str, list[Any]] = {"consumers": [1, 3], "lock_duration_ms": [1000, 5000], "arrival_rate": [None, 50.0]}


def rows(found: shareq.sim.Sweep) -> str:
    """All rows to the last digit, NaN equal to NaN."""
    return repr(found.table.to_pylist())


@pytest.fixture(scope="module")
def plain() -> shareq.sim.Sweep:
    return shareq.sim.sweep(GRID, 3, SMALL, progress=False)


def test_the_same_rows_with_spark_and_without(spark: SparkSession, plain: shareq.sim.Sweep) -> None:
    found = sweep(GRID, 3, SMALL, spark=spark, progress=False)
    assert rows(found) == rows(plain)
    assert found.table.schema == plain.table.schema
    assert found.computed == 24


@pytest.mark.parametrize("size", [pytest.param(s, id=f"{s} tasks a wave") for s in (1, 2)])
def test_waves_do_not_show_in_the_rows(
    spark: SparkSession, plain: shareq.sim.Sweep, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(sweep_module, "TASKS_PER_WAVE", size)
    assert rows(sweep(GRID, 3, SMALL, spark=spark, progress=False)) == rows(plain)


def test_each_goes_on_where_the_other_stopped(spark: SparkSession, plain: shareq.sim.Sweep, tmp_path: Path) -> None:
    shareq.sim.sweep(GRID, 1, SMALL, checkpoint=tmp_path, progress=False)
    found = sweep(GRID, 3, SMALL, spark=spark, checkpoint=tmp_path, progress=False)
    assert (found.computed, rows(found)) == (16, rows(plain))
    again = shareq.sim.sweep(GRID, 3, SMALL, checkpoint=tmp_path, progress=False)
    assert (again.computed, rows(again)) == (0, rows(plain))


def test_the_waves_that_came_before_a_broken_one_are_kept(
    spark: SparkSession, plain: shareq.sim.Sweep, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A driver that is lost half-way: the fourth wave is never carried out."""
    carry_out, begun = sweep_module._wave, []

    def breaking(session: SparkSession, settings: list[Setting]) -> Any:
        begun.append(settings)
        if len(begun) == 4:
            raise ConnectionError("the driver is gone")
        return carry_out(session, settings)

    monkeypatch.setattr(sweep_module, "TASKS_PER_WAVE", 1)
    monkeypatch.setattr(sweep_module, "_wave", breaking)
    with pytest.raises(ConnectionError):
        sweep(GRID, 3, SMALL, spark=spark, checkpoint=tmp_path, progress=False)
    kept = len(list(tmp_path.glob("rows-*.parquet")))
    assert kept >= 1
    monkeypatch.setattr(sweep_module, "_wave", carry_out)
    found = sweep(GRID, 3, SMALL, spark=spark, checkpoint=tmp_path, progress=False)
    assert (found.computed, rows(found)) == (24 - kept * sweep_module.RUNS_PER_TASK, rows(plain))


def test_absurd_values_are_named_before_spark_has_anything_to_do() -> None:
    with pytest.raises(ConfigException, match=r"consumers=0: must be a whole number in 1..1000"):
        sweep({"consumers": [0]}, 3, SMALL, progress=False)
