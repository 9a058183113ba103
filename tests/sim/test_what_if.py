"""The table of what settings cost: the stored one is computed again in part, its trade-offs, its file."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from shareq.model.errors import ConfigException
from shareq.sim import sweep
from shareq.sim.what_if import (
    FIGURES,
    GRID,
    SEEDS,
    STORED,
    WORKLOADS,
    Figure,
    Setting,
    Table,
    figure,
    settings,
    stored_table,
)
from tests.budgets import cases

POINTS = cases(1, 3)
"""Settings that a test computes again, of all workloads."""

MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def table() -> Table:
    return stored_table()


# ---- the stored table ------------------------------------------------------------------------------------------------


def test_the_stored_table_has_the_workloads_and_the_grid_of_the_code(table: Table) -> None:
    """If not: shareq what-if shareq/sim/what_if.json."""
    assert tuple(table.workloads.values()) == WORKLOADS
    assert (table.grid, table.seeds) == (GRID, SEEDS)
    assert STORED.stat().st_size < MOST_BYTES


def test_points_computed_again_equal_the_stored_ones(table: Table, seed: int) -> None:
    """If not: shareq what-if shareq/sim/what_if.json."""
    draw = Random(seed)
    for workload in draw.sample(WORKLOADS, POINTS):
        setting = draw.choice(list(settings(GRID)))
        grid = {name: [value] for name, value in setting._asdict().items()}
        rows = sweep(grid, SEEDS, workload.scenario, progress=False).table.to_pylist()
        found = {name: figure(name, rows) for name in FIGURES}
        assert found == {name: table.figure(workload.name, setting, name) for name in FIGURES}, (workload.name, setting)


def median(table: Table, workload: str, name: str, **setting: int) -> float:
    found = table.figure(workload, Setting(**setting), name)
    assert found is not None
    return found.median


@pytest.mark.parametrize("workload", ["mixed", "slow records"])
def test_a_lock_shorter_than_the_work_costs_redeliveries_and_throughput(table: Table, workload: str) -> None:
    short, long = {"lock_duration_ms": 5000}, {"lock_duration_ms": 20_000}
    assert median(table, workload, "redeliveries", **short) > 5 * median(table, workload, "redeliveries", **long)
    assert median(table, workload, "throughput", **short) < 0.8 * median(table, workload, "throughput", **long)


def test_a_long_lock_delays_the_records_of_crashed_consumers(table: Table) -> None:
    p99 = [median(table, "crashes", "p99_ms", lock_duration_ms=ms) for ms in (15_000, 30_000, 60_000, 120_000)]
    assert p99 == sorted(p99)
    assert p99[-1] > 5 * p99[0]


def test_few_record_locks_limit_the_throughput(table: Table) -> None:
    rates = [median(table, "crashes", "throughput", record_locks=locks) for locks in (100, 500, 2000)]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1] / 2


def test_a_low_delivery_count_limit_archives_records(table: Table) -> None:
    archived = [median(table, "failures", "archived", delivery_count_limit=limit) for limit in (2, 5, 10)]
    assert archived == sorted(archived, reverse=True)
    assert archived[0] > 0.005
    assert archived[-1] == 0


# ---- figures ---------------------------------------------------------------------------------------------------------


def row(**values: Any) -> dict[str, Any]:
    return {"records": 200, "error": None, "redeliveries": 3, "archived": 0, "throughput_loaded": 12.345678, **values}


def test_a_figure_is_the_median_with_the_lowest_and_the_highest_value() -> None:
    rows = [row(latency_p99_ms=one, redeliveries=int(one)) for one in (9.0, 1.0, 3.0)]
    assert figure("p99_ms", rows) == Figure(3.0, 1.0, 9.0)
    assert figure("redeliveries", rows) == Figure(0.015, 0.005, 0.045)
    assert figure("throughput", rows) == Figure(12.35, 12.35, 12.35)


def test_a_figure_that_one_run_lacks_is_missing() -> None:
    assert figure("p99_ms", [row(latency_p99_ms=1.0), row(latency_p99_ms=float("nan"))]) is None


def test_a_failed_run_raises_its_error() -> None:
    with pytest.raises(AssertionError, match="3 records are lost"):
        figure("p99_ms", [row(latency_p99_ms=1.0), row(error="AssertionError: 3 records are lost")])


# ---- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "found"),
    [
        pytest.param(Setting(), Setting(), id="of the grid"),
        pytest.param(Setting(24_000, 1900, 4), Setting(20_000, 2000, 5), id="by ratio: 24 s is nearer to 20 s"),
        pytest.param(Setting(25_000, 300, 7), Setting(30_000, 500, 5), id="by ratio: 7 is nearer to 5 than to 10"),
        pytest.param(Setting(4999), None, id="lock duration below the grid"),
        pytest.param(Setting(120_001), None, id="lock duration above the grid"),
        pytest.param(Setting(record_locks=4001), None, id="record locks above the grid"),
        pytest.param(Setting(delivery_count_limit=11), None, id="limit above the grid"),
    ],
)
def test_the_nearest_computed_setting(table: Table, setting: Setting, found: Setting | None) -> None:
    assert table.nearest(setting) == found


# ---- the file --------------------------------------------------------------------------------------------------------


def test_a_table_in_a_file_is_the_same_table(table: Table) -> None:
    again = Table.from_json(table.to_json())
    assert again == table
    assert again.figure("mixed", Setting(), "p99_ms") == table.figure("mixed", Setting(), "p99_ms")
    assert repr(again) == "<Table of mixed, slow records, crashes, failures: 84 settings, 3 seeds each>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("{", "x.json: must be a file of shareq what-if", id="not JSON"),
        pytest.param("{}", r"x.json: must be a file of shareq what-if \(KeyError\('schema'\)\)", id="another JSON"),
        pytest.param("[]", "x.json: must be a file of shareq what-if", id="a list"),
        pytest.param('{"schema": 2}', "x.json: schema=2: must be 1", id="another version"),
    ],
)
def test_another_file_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        Table.from_json(text, "x.json")


def test_a_file_with_an_unknown_parameter_is_refused(table: Table) -> None:
    found = json.loads(table.to_json())
    found["workloads"][0]["scenario"]["speed"] = 3
    with pytest.raises(ConfigException, match="speed"):
        Table.from_json(json.dumps(found))
