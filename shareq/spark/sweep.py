"""Sweeps on Spark: the runs of `shareq.sim.sweep`, fanned out to the executors; the same rows, the same checkpoints.

One Spark job for all runs would show its rows when the last one is through, so there are many little ones, one more at
once than the cores need: rows come as they are finished, and nobody waits for anybody. How many runs a task has follows
from what the last ones cost, so that a task's own price does not count; towards the end tasks get smaller, so that all
cores are through together.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import PathLike
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a worker that reads records should not have to load a simulator first
    from pyspark.sql import SparkSession

    from shareq.sim.scenario import Scenario
    from shareq.sim.sweep import Sweep
    from shareq.sim.sweep_grid import SweepRun

SECONDS_PER_TASK = 5.0
"""A job costs the driver 0.1 s; a kill costs what is under way: so much of each core's work."""

SECONDS_OF_LAST_TASKS = 1.0
RUNS_OF_FIRST_TASKS = 4
JOBS_AT_ONCE = 16
"""Where there are more cores a job has several tasks, so that the driver keeps up."""

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

    `checkpoint` is a folder where this process runs: executors need none. A kill costs the jobs under way at most.
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
    """Cuts the runs that are left into jobs. Neighbours in a grid cost alike, so the runs are shuffled first."""

    def __init__(self, settings: list[SweepRun]) -> None:
        self._left = Random(0).sample(settings, len(settings))
        self._runs = self._fewest = RUNS_OF_FIRST_TASKS

    def next(self, slots: int, tasks: int) -> list[SweepRun]:
        """The runs of the next job; none at the end. Guided self-scheduling: a task takes half of a core's part."""
        per_task = max(1, min(self._runs, max(self._fewest, len(self._left) // (2 * slots))))
        share, self._left = self._left[: per_task * tasks], self._left[per_task * tasks :]
        return share

    def learn(self, seconds_per_run: float) -> None:
        self._runs = int(SECONDS_PER_TASK / seconds_per_run)
        self._fewest = int(SECONDS_OF_LAST_TASKS / seconds_per_run)


def _rows(spark: SparkSession, settings: list[SweepRun]) -> Iterator[Any]:
    """The rows of each job as they come. What came before a job that failed is kept."""
    shares, slots_now = _Shares(settings), _slots(spark)

    def carry_out(share: list[SweepRun], slots: int, tasks: int) -> Any:
        began = time.monotonic()
        rows = _job(spark, share, tasks)
        worked = (time.monotonic() - began) * slots / (slots + tasks)  # the rest of the time it waited for a core
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
    """The number of tasks that run in parallel; executors of a cluster may still be starting."""
    from pyspark.sql.functions import spark_partition_id

    from shareq.spark.register import is_remote

    if not is_remote(spark):
        return lambda: int(spark.sparkContext.defaultParallelism)
    parts = spark.range(1 << 12).select(spark_partition_id().alias("part")).distinct().count()
    return lambda: parts


def _job(spark: SparkSession, settings: list[SweepRun], tasks: int) -> Any:
    from shareq.sim.sweep_grid import COLUMNS
    from shareq.sim.sweep_rows import schema, table_of

    row = ", ".join(f"`{name}` {_SPARK_TYPES[kind]}" for name, kind in COLUMNS.items())

    def carry_out(batches: Iterator[Any]) -> Iterator[Any]:
        if not gc.get_freeze_count():  # a worker collects its garbage after each task: not all that it has loaded, too
            gc.freeze()
        for batch in batches:
            yield from table_of(settings[place].row() for place in batch.column(0).to_pylist()).to_batches()

    return spark.range(0, len(settings), 1, tasks).mapInArrow(carry_out, row).toArrow().cast(schema())
