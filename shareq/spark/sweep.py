"""Sweeps on Spark: the runs of `shareq.sim.sweep`, distributed to the executors; the same rows and checkpoints.

A single Spark job would return all its rows at the end. Therefore many small jobs run, one more at a time than the
cores need: rows arrive as they are finished, and no core is idle. The number of runs per task follows from the cost of
earlier runs, so that a task's fixed cost is negligible; towards the end tasks get smaller, so that all cores finish
together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import PathLike
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # so that a worker that only reads records does not load the simulator
    from pyspark.sql import SparkSession

    from shareq.sim.scenario import Scenario
    from shareq.sim.sweep import Sweep
    from shareq.sim.sweep_grid import SweepRun

SECONDS_PER_TASK = 5.0
"""A job costs the driver 0.1 s, and a kill loses the jobs in progress: hence so much work of each core per task."""

SECONDS_OF_LAST_TASKS = 1.0
RUNS_OF_FIRST_TASKS = 4
JOBS_AT_ONCE = 16
"""With more cores, a job has several tasks, so that the driver keeps up."""

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
    """As `shareq.sim.sweep`, on `spark`: local, a cluster or Spark Connect; None: the active or a new session.

    `checkpoint` is a folder of this process; executors do not need it. A kill loses at most the jobs in progress.
    """
    from shareq.sim.sweep import gather

    def compute(settings: list[SweepRun]) -> Iterator[Any]:
        from shareq.spark.register import ship
        from shareq.spark.session import session

        chosen = spark or session()
        ship(chosen)
        return _rows(chosen, settings)

    return gather(grid, seeds, scenario, checkpoint=checkpoint, progress=progress, compute=compute)


class _Shares:
    """Divides the remaining runs into jobs. Neighbours in a grid have similar costs, so the runs are shuffled."""

    def __init__(self, settings: list[SweepRun]) -> None:
        self._left = Random(0).sample(settings, len(settings))
        self._runs = self._fewest = RUNS_OF_FIRST_TASKS

    def next(self, slots: int, tasks: int) -> list[SweepRun]:
        """The runs of the next job; empty at the end. Guided self-scheduling: a task takes half of a core's share."""
        per_task = max(1, min(self._runs, max(self._fewest, len(self._left) // (2 * slots))))
        share, self._left = self._left[: per_task * tasks], self._left[per_task * tasks :]
        return share

    def learn(self, seconds_per_run: float) -> None:
        self._runs = int(SECONDS_PER_TASK / seconds_per_run)
        self._fewest = int(SECONDS_OF_LAST_TASKS / seconds_per_run)


def _rows(spark: SparkSession, settings: list[SweepRun]) -> Iterator[Any]:
    """The rows of each job as it finishes. If a job fails, the rows of finished ones are kept."""
    shares, slots_now = _Shares(settings), _slots(spark)

    def carry_out(share: list[SweepRun], slots: int, tasks: int) -> Any:
        began = time.monotonic()
        rows = _job(spark, share, tasks)
        worked = (time.monotonic() - began) * slots / (slots + tasks)  # without the time of waiting for a core
        shares.learn(worked * tasks / len(share))
        return rows

    with ThreadPoolExecutor(JOBS_AT_ONCE + 1) as pool:
        running: set[Future[Any]] = set()
        try:
            while True:
                slots = slots_now()
                tasks = -(-slots // JOBS_AT_ONCE)
                while len(running) * tasks <= slots and (share := shares.next(slots, tasks)):
                    running.add(pool.submit(carry_out, share, slots, tasks))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=lambda one: one.exception() is not None):
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


def _slots(spark: SparkSession) -> Callable[[], int]:
    """The number of tasks that run in parallel. It may grow while a cluster starts its executors."""
    from pyspark.sql.functions import spark_partition_id

    from shareq.spark.register import is_remote

    if not is_remote(spark):
        return lambda: int(spark.sparkContext.defaultParallelism)
    parts = spark.range(1 << 12).select(spark_partition_id().alias("part")).distinct().count()
    return lambda: parts


def _job(spark: SparkSession, settings: list[SweepRun], tasks: int) -> Any:
    from shareq.sim.sweep_grid import COLUMNS
    from shareq.sim.sweep_rows import schema, table_of
    from shareq.spark.worker import spare_modules

    row = ", ".join(f"`{name}` {_SPARK_TYPES[kind]}" for name, kind in COLUMNS.items())

    def carry_out(batches: Iterator[Any]) -> Iterator[Any]:
        spare_modules()
        for batch in batches:
            yield from table_of(settings[place].row() for place in batch.column(0).to_pylist()).to_batches()

    return spark.range(0, len(settings), 1, tasks).mapInArrow(carry_out, row).toArrow().cast(schema())
