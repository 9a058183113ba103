"""Sweeps on Spark: the runs of `shareq.sim.sweep`, fanned out to the executors; the same rows, the same checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from os import PathLike
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a worker that reads records should not have to load a simulator first
    from pyspark.sql import SparkSession

    from shareq.sim.grid import Setting
    from shareq.sim.scenario import Scenario
    from shareq.sim.sweep import Sweep

RUNS_PER_TASK = 4
TASKS_PER_WAVE = 16
WAVES_AT_ONCE = 2
"""While the last tasks of one wave are still at work, those of the next fill the cores that are free."""

_SPARK_TYPES = {"int": "bigint", "float": "double", "str": "string", "bool": "boolean"}


def sweep(
    grid: Mapping[str, Iterable[Any]],
    seeds: int | Iterable[int] = 1,
    scenario: Scenario | None = None,
    *,
    spark: SparkSession | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: bool = True,
) -> Sweep:
    """As `shareq.sim.sweep`, on `spark`: local, a cluster or Spark Connect; None: the active one, else one of ours.

    `checkpoint` is a folder where this process runs: executors need none. A kill costs the runs of two waves at most.
    """
    from shareq.sim.sweep import gather

    def compute(settings: list[Setting]) -> Iterator[Any]:
        from shareq.spark.register import ship
        from shareq.spark.session import session

        chosen = spark or session()
        ship(chosen)
        return _waves(chosen, settings)

    return gather(grid, seeds, scenario, checkpoint=checkpoint, progress=progress, compute=compute)


def _waves(spark: SparkSession, settings: list[Setting]) -> Iterator[Any]:
    """The rows of one wave after the other. Neighbours in a grid cost alike, so the runs are shuffled first."""
    shuffled = Random(0).sample(settings, len(settings))
    size = RUNS_PER_TASK * TASKS_PER_WAVE
    waves = iter([shuffled[first : first + size] for first in range(0, len(shuffled), size)])

    def begin(count: int) -> set[Future[Any]]:
        return {pool.submit(_wave, spark, wave) for wave in islice(waves, count)}

    with ThreadPoolExecutor(WAVES_AT_ONCE) as pool:
        running = begin(WAVES_AT_ONCE)
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= begin(len(done))
                yield from (future.result() for future in done)
        finally:
            for future in running:
                future.cancel()


def _wave(spark: SparkSession, settings: list[Setting]) -> Any:
    from shareq.sim.grid import COLUMNS
    from shareq.sim.rows import schema, table_of

    tasks = -(-len(settings) // RUNS_PER_TASK)
    row = ", ".join(f"`{name}` {_SPARK_TYPES[kind]}" for name, kind in COLUMNS.items())

    def carry_out(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from table_of(settings[place].row() for place in batch.column(0).to_pylist()).to_batches()

    return spark.range(0, len(settings), 1, tasks).mapInArrow(carry_out, row).toArrow().cast(schema())
