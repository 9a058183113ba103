"""Sweeps in one process: rows, checkpoints, plots."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shareq.sim.sweep_grid as grid_module
from shareq.model.errors import ConfigException
from shareq.sim import Scenario, Sweep, run, sweep
from shareq.sim.sweep import RUNS_KEPT_AT_ONCE
from shareq.sim.sweep_grid import COLUMNS

SMALL = Scenario(records=40, max_poll_records=10, consumers=2, failure_rate=0.1)
GRID: dict[str, list[Any]] = {"consumers": [1, 3], "lock_duration_ms": [1000, 5000]}


def rows(found: Sweep) -> str:
    """All rows with all digits; NaN equals NaN."""
    return repr(found.table.to_pylist())


def small(**more: Any) -> Sweep:
    return sweep(GRID, 3, SMALL, progress=False, **more)


@pytest.mark.parametrize(
    ("grid", "seeds", "message"),
    [
        pytest.param({"locks": [1]}, 1, r"grid\['locks'\]: must be one of records, partitions", id="unknown parameter"),
        pytest.param({"consumers": 3}, 1, r"grid\['consumers'\]=3: must be a list of values", id="a bare value"),
        pytest.param({"service": "constant"}, 1, r"grid\['service'\]='constant': must be a list", id="a bare text"),
        pytest.param({"consumers": []}, 1, r"grid\['consumers'\]=\[\]: must have at least one", id="no values"),
        pytest.param(
            {"consumers": [1, 0]}, 1, "consumers=0: must be a whole number in 1..1000", id="a value out of range"
        ),
        pytest.param({}, 0, "seeds=0: must be a number of seeds", id="no seeds"),
        pytest.param({}, True, "seeds=True: must be a number of seeds", id="a bool"),
        pytest.param({}, "12", "seeds='12': must be a number of seeds", id="seeds as text"),
        pytest.param({}, [], r"seeds=\[\]: must be a number of seeds", id="an empty list of seeds"),
        pytest.param({}, [1, -1], "seed=-1: must be a whole number >= 0", id="a negative seed"),
    ],
)
def test_invalid_arguments_are_refused_before_any_run(grid: Any, seeds: Any, message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        sweep(grid, seeds, SMALL, progress=False)


def test_one_row_for_each_combination_and_seed_in_the_order_of_the_grid() -> None:
    found = small()
    runs = [(c, lock, seed) for c in (1, 3) for lock in (1000, 5000) for seed in range(3)]
    table = found.table
    assert list(zip(*(table[n].to_pylist() for n in ("consumers", "lock_duration_ms", "seed")), strict=True)) == runs
    assert table.column_names == list(COLUMNS)
    assert (len(found), found.computed, found.failed) == (12, 12, 0)
    assert repr(found) == "<Sweep 12 runs over consumers x lock_duration_ms, 12 computed now, 0 failed>"
    assert "12 computed now" in found._repr_html_()


def test_a_row_equals_the_row_of_its_run() -> None:
    row = sweep({"consumers": [3]}, [7], SMALL, progress=False).table.to_pylist()[0]
    scenario = Scenario(records=40, max_poll_records=10, consumers=3, failure_rate=0.1)
    assert repr(row) == repr({**run(scenario, 7).row(), "error": None})


def test_duplicate_combinations_and_seeds_are_run_once() -> None:
    assert len(sweep({"service_ms": [10, 10.0]}, [4, 4], SMALL, progress=False)) == 1


def test_a_failed_run_leaves_the_other_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(scenario: Scenario, seed: int) -> Any:
        if seed == 1:
            raise AssertionError("seed 1: 3 records are lost")
        return run(scenario, seed)

    monkeypatch.setattr(grid_module, "run", failing)
    found = small(checkpoint=tmp_path)
    assert found.failed == 4
    frame = found.to_frame()
    assert set(frame[frame.seed == 1].error) == {"AssertionError: seed 1: 3 records are lost"}
    assert frame[frame.seed == 1].accepted.isna().all()
    assert frame[frame.seed != 1].accepted.notna().all()
    assert "error" in found._repr_html_()
    assert small(checkpoint=tmp_path).computed == 0
    assert found.plot().text.count(": ") > 2


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_finished_rows_are_not_computed_again(tmp_path: Path) -> None:
    whole = small()
    part = sweep({"consumers": [3], "lock_duration_ms": [1000, 5000]}, 2, SMALL, checkpoint=tmp_path, progress=False)
    assert part.computed == 4
    rest = small(checkpoint=tmp_path)
    assert (rest.computed, rows(rest)) == (8, rows(whole))
    again = small(checkpoint=tmp_path)
    assert (again.computed, rows(again)) == (0, rows(whole))


def test_another_base_scenario_is_computed(tmp_path: Path) -> None:
    small(checkpoint=tmp_path)
    assert sweep(GRID, 3, Scenario(records=61), checkpoint=tmp_path, progress=False).computed == 12


def test_error_names_a_checkpoint_file_with_other_content(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "rows-1.parquet")
    with pytest.raises(ConfigException, match=r"rows-1.parquet lacks the columns of a sweep"):
        small(checkpoint=tmp_path)
    (tmp_path / "rows-1.parquet").write_bytes(b"cut off")
    with pytest.raises(ConfigException, match=r"rows-1.parquet lacks the columns"):
        small(checkpoint=tmp_path)


KILLED = """
import os, pathlib, signal, sys
from shareq.sim import Scenario, sweep
rename = pathlib.Path.rename
def dying(path, target):
    if len(list(path.parent.glob("rows-*.parquet"))) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)
pathlib.Path.rename = dying
sweep({}, 60, Scenario(records=5, max_poll_records=5), checkpoint=sys.argv[1], progress=False)
"""


def test_a_killed_sweep_continues_from_its_checkpoint(tmp_path: Path) -> None:
    """Killed between writing its third file and renaming it: the rows of the other two files are kept."""
    root = Path(__file__).parents[2]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=root, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 3
    scenario = Scenario(records=5, max_poll_records=5)
    found = sweep({}, 60, scenario, checkpoint=tmp_path, progress=False)
    assert found.computed == 60 - 2 * RUNS_KEPT_AT_ONCE
    assert rows(found) == rows(sweep({}, 60, scenario, progress=False))


# ---- plots -----------------------------------------------------------------------------------------------------------


def test_a_plot_has_a_line_and_a_text_for_each_colour() -> None:
    plot = small().plot(y="latency_p99_ms")
    (axis,) = plot.axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("consumers", "latency_p99_ms")
    lines = axis.get_lines()
    assert [line.get_label() for line in lines] == ["lock_duration_ms 1000", "lock_duration_ms 5000"]
    assert len({(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines}) == 2
    assert plot.text.startswith("latency_p99_ms by consumers, medians\nlock_duration_ms 1000: 1: ")
    assert (plot._repr_png_() or b"").startswith(b"\x89PNG")


def test_the_other_varied_parameters_are_panels() -> None:
    """Each with its own runs: no median mixes the values of a parameter that the plot does not show."""
    grid = {**GRID, "max_poll_records": [5, 10], "service": ["constant", "exponential"]}
    found = sweep(grid, 1, SMALL, progress=False)
    plot = found.plot(y="latency_p99_ms")
    names = [f"max_poll_records {most}, service {service}" for most in (5, 10) for service in grid["service"]]
    assert [axis.get_title() for axis in plot.axes] == names
    frame = found.to_frame().set_index(["max_poll_records", "service", "lock_duration_ms", "consumers"]).latency_p99_ms
    panels = [(most, service) for most in (5, 10) for service in grid["service"]]
    for axis, (most, service) in zip(plot.axes, panels, strict=True):
        for line, lock_ms in zip(axis.get_lines(), GRID["lock_duration_ms"], strict=True):
            assert np.asarray(line.get_ydata()).tolist() == [
                frame[most, service, lock_ms, consumers] for consumers in (1, 3)
            ]
    (legend,) = plot.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["lock_duration_ms 1000", "lock_duration_ms 5000"]
    assert len(plot.text.splitlines()) == 1 + 8
    assert plot.text.splitlines()[1].startswith(f"{names[0]}, lock_duration_ms 1000: 1: ")
    with pytest.raises(ConfigException, match="ax: one panel cannot show max_poll_records, service, too"):
        found.plot(ax=plot.axes[0])


@pytest.mark.parametrize(
    ("grid", "x", "ticks"),
    [
        pytest.param(
            {"service": ["constant", "exponential"]}, "service", ["constant", "exponential"], id="text values"
        ),
        pytest.param({"arrival_rate": [None, 50.0]}, "arrival_rate", ["50.0", "None"], id="None: all records at once"),
    ],
)
def test_values_that_are_no_numbers_label_the_axis(grid: Any, x: str, ticks: list[str]) -> None:
    (axis,) = sweep(grid, 1, SMALL, progress=False).plot().axes
    assert axis.get_xlabel() == x
    assert [label.get_text() for label in axis.get_xticklabels()] == ticks


@pytest.mark.parametrize("role", ["x", "y", "color"])
def test_error_names_a_missing_column(role: str) -> None:
    found = sweep({}, 1, SMALL, progress=False)
    arguments: dict[str, Any] = {role: "speed"}
    with pytest.raises(ConfigException, match=rf"{role}='speed': must be one of"):
        found.plot(**arguments)
