"""`shareq what-if`: the table that it writes, its arguments, and its continuation after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from click.testing import CliRunner

import shareq.sim
from shareq.cli import main
from shareq.model.errors import ConfigException
from shareq.sim.what_if import FIGURES, GRID, WORK, Setting, figure, stored_table
from shareq.spark import sweep, what_if

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = "small: records=60 consumers=2 max_poll_records=10 batch_records=10 crash_rate=0.2"
TINY = ("--grid", "lock_duration_ms=5000,30000", "--grid", "record_locks=2000", "--grid", "delivery_count_limit=5")


def command(*words: str) -> Any:
    return CliRunner().invoke(main, ["what-if", *words, "--no-progress"])


def test_the_command_writes_the_figures_of_the_simulation(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "mine.json"
    done = command(str(out), *TINY, "--seeds", "2", "--workload", SMALL)
    assert (done.exit_code, done.output) == (0, f"{out}: <Table of small: 2 settings, 2 seeds each>\n")
    table = stored_table(out)
    scenario = table.workloads["small"].scenario
    assert (scenario.records, scenario.crash_rate, scenario.arrival_rate) == (60, 0.2, WORK.arrival_rate)
    for lock_ms in (5000, 30_000):
        grid = {"lock_duration_ms": [lock_ms], "record_locks": [2000], "delivery_count_limit": [5]}
        rows = shareq.sim.sweep(grid, 2, scenario, progress=False).table.to_pylist()
        for name in FIGURES:
            assert table.figure("small", Setting(lock_ms), name) == figure(name, rows)
    assert list(tmp_path.iterdir()) == [out]


def test_a_killed_command_continues_after_its_finished_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second workload fails at first; the runs of the first one are not computed again."""
    out, computed = tmp_path / "two.json", list[int]()

    def failing(grid: Any, seeds: int, scenario: Any, **more: Any) -> Any:
        if computed:
            raise OSError("no space left")
        found = sweep(grid, seeds, scenario, **more)
        computed.append(found.computed)
        return found

    words = (
        str(out),
        *TINY,
        "--seeds",
        "1",
        "--workload",
        SMALL,
        "--workload",
        SMALL.replace("small", "failing") + " failure_rate=0.1",
    )
    monkeypatch.setattr(what_if, "sweep", failing)
    killed = command(*words)
    assert (killed.exit_code, killed.output, computed) == (1, "Error: no space left\n", [2])
    assert not out.exists()

    def counting(*arguments: Any, **more: Any) -> Any:
        found = sweep(*arguments, **more)
        computed.append(found.computed)
        return found

    monkeypatch.setattr(what_if, "sweep", counting)
    assert command(*words).exit_code == 0
    assert computed == [2, 0, 2]
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("--workload", "fast"), "workload='fast': must be NAME: FIELD=VALUE ...", id="no name"),
        pytest.param(("--workload", ": records=9"), "workload=': records=9': must be NAME:", id="an empty name"),
        pytest.param(("--workload", "a:", "--workload", "a:"), "workloads a, a: each must have", id="one name twice"),
        pytest.param(("--workload", "a: speed=3"), "speed must be one of records, partitions", id="unknown field"),
        pytest.param(("--workload", "a: record_locks=500"), "record_locks must be one of", id="a field of the grid"),
        pytest.param(("--workload", "a: records"), "'records': must be NAME=VALUE", id="no value"),
        pytest.param(("--workload", "a: records=0"), "records=0: must be a whole number in 1..", id="out of range"),
        pytest.param(("--grid", "consumers=2"), "grid consumers=2: must be whole numbers for one of", id="no limit"),
        pytest.param(("--grid", "record_locks=a,b"), "grid record_locks=a,b: must be whole numbers", id="no numbers"),
        pytest.param(("--grid", "record_locks=5"), "record_locks=5: must be a whole number in 100..", id="too few"),
    ],
)
def test_bad_arguments_are_named_before_any_run(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shareq.spark.command.unregistered", lambda **_: MagicMock())
    done = command(str(tmp_path / "out.json"), *words)
    assert done.exit_code == 1
    assert message in done.output


def test_a_workload_has_whole_numbers_fractions_and_words() -> None:
    found = what_if.workload_of("orders:  consumers=4 arrival_rate=12.5  service=lognormal ")
    assert (found.name, found.about) == ("orders", "Work with consumers=4 arrival_rate=12.5 service=lognormal.")
    assert (found.scenario.consumers, found.scenario.arrival_rate, found.scenario.service) == (4, 12.5, "lognormal")
    assert what_if.workload_of("plain:").scenario == WORK


def test_a_value_of_a_workload_with_spaces_has_quotes() -> None:
    found = what_if.workload_of("torn: brokers=3 faults='10 s: messages.cut(0, 1); 40 s: messages.heal()'")
    assert found.scenario.faults == "10 s: messages.cut(0, 1); 40 s: messages.heal()"
    with pytest.raises(ConfigException, match="No closing quotation"):
        what_if.workload_of("torn: faults='10 s: messages.heal()")


def test_other_values_of_one_configuration_leave_the_others() -> None:
    assert what_if.grid_of(["record_locks=4000,200,200"]) == {**GRID, "record_locks": (200, 4000)}
    with pytest.raises(ConfigException, match="'record_locks': must be NAME=VALUE"):
        what_if.grid_of(["record_locks"])
