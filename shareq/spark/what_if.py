"""`shareq what-if`: the table of `shareq.sim.what_if`, computed on Spark."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shareq.model.errors import ConfigException
from shareq.sim.sweep_grid import PARAMETERS
from shareq.sim.what_if import FIGURES, GRID, KEYS, SEEDS, WORK, WORKLOADS, Grid, Table, Workload, figure
from shareq.spark.command import spark_of_command, verbose_option
from shareq.spark.sweep import sweep

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import SparkSession


def compute(
    workloads: Sequence[Workload] = WORKLOADS,
    grid: Grid = GRID,
    seeds: int = SEEDS,
    *,
    spark: SparkSession | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Table:
    """The table of these workloads at all settings of a grid; `spark` and the others as in `shareq.spark.sweep`."""
    figures = {}
    for workload in workloads:
        if progress:
            click.echo(f"{workload.name}: {workload.about}", err=True)
        began_s = time.monotonic()
        found = sweep(grid, seeds, workload.scenario, spark=spark, checkpoint=checkpoint, progress=progress)
        if progress:
            took = f"{time.monotonic() - began_s:.1f} s"
            click.echo(f"{workload.name}: {len(found):,} runs, {found.computed:,} computed now, {took}", err=True)
        rows: list[dict[str, Any]] = found.table.to_pylist()
        points = [rows[first : first + seeds] for first in range(0, len(rows), seeds)]
        figures[workload.name] = {name: [figure(name, runs) for runs in points] for name in FIGURES}
    return Table(workloads, grid, seeds, figures)


# ---- the command -----------------------------------------------------------------------------------------------------


def _pairs(words: Iterable[str]) -> dict[str, str]:
    """Words such as consumers=4; ConfigException for another word."""
    pairs = [word.partition("=") for word in words]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise ConfigException(f"{key + equals + value!r}: must be NAME=VALUE")
    return {key: value for key, _, value in pairs}


def workload_of(text: str) -> Workload:
    """A workload from "NAME: FIELD=VALUE ...", the fields that differ from `WORK`. A value with spaces has quotes,
    as in a shell: "NAME: faults='10 s: kill_broker(0)'".

    ConfigException names an unknown field, one of the grid, or a quote without its end.
    """
    name, colon, rest = text.partition(":")
    if not colon or not name.strip():
        raise ConfigException(f"workload={text!r}: must be NAME: FIELD=VALUE ...")
    allowed = [field for field in PARAMETERS if field not in KEYS]
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise ConfigException(f"workload={text!r}: {error}") from None
    values: dict[str, Any] = {}
    for field, value in _pairs(words).items():
        if field not in allowed:
            raise ConfigException(f"workload={text!r}: {field} must be one of {', '.join(allowed)}")
        values[field] = _value(value)
    return Workload(name.strip(), f"Work with {' '.join(rest.split()) or 'no failures'}.", replace(WORK, **values))


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def grid_of(words: Iterable[str]) -> Grid:
    """The grid with other values, from words such as lock_duration_ms=1000,30000."""
    grid = dict(GRID)
    for name, text in _pairs(words).items():
        values = [_value(one) for one in text.split(",")]
        if name not in grid or not all(isinstance(value, int) for value in values):
            raise ConfigException(f"grid {name}={text}: must be whole numbers for one of {', '.join(grid)}")
        grid[name] = tuple(sorted({int(value) for value in values}))
    return grid


def _workloads(texts: Sequence[str]) -> Sequence[Workload]:
    """The built-in workloads, or these instead; ConfigException if two have one name."""
    found = [workload_of(text) for text in texts]
    names = [workload.name for workload in found]
    if len(set(names)) < len(names):
        raise ConfigException(f"workloads {', '.join(names)}: each must have a name of its own")
    return found or WORKLOADS


@click.command("what-if")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--master", metavar="URL", help="The master of Spark.  [default: local[*]]")
@click.option("--seeds", type=click.IntRange(1), default=SEEDS, show_default=True, help="Runs of each setting.")
@click.option(
    "--workload", "own", multiple=True, metavar="'NAME: FIELD=VALUE ...'",
    help="A workload of your own instead of the built-in ones, with fields of a scenario; repeatable.",
)  # fmt: skip
@click.option(
    "--grid", "varied", multiple=True, metavar="NAME=VALUE,...", help="Other values of a configuration; repeatable."
)
@click.option("--progress/--no-progress", default=True, help="Show bars in a terminal, and lines.", show_default=True)
@verbose_option
def what_if(
    *,
    out: Path,
    master: str | None,
    seeds: int,
    own: tuple[str, ...],
    varied: tuple[str, ...],
    progress: bool,
    verbose: bool,
) -> None:
    """Compute what lock durations and limits cost: the table OUT for what_if(table=OUT) in a notebook.

    A killed command continues where it was: finished runs are kept in the folder OUT.runs until the end.
    """
    kept = out.with_name(out.name + ".runs")
    if not out.parent.is_dir():
        raise click.ClickException(f"{out}: there is no folder {out.parent}")
    try:
        workloads, grid = _workloads(own), grid_of(varied)
    except ConfigException as problem:
        raise click.ClickException(str(problem)) from problem

    def interrupted() -> str:
        return f"shareq what-if has stopped; the next run continues with the finished runs, which {kept} has."

    with spark_of_command(master, verbose=verbose, brief=True, progress=progress, interrupted=interrupted) as spark:
        table = compute(workloads, grid, seeds, spark=spark, checkpoint=kept, progress=progress)
        out.write_text(table.to_json())
    shutil.rmtree(kept)
    click.echo(f"{out}: {table}")
