"""kill -9 of the driver at points drawn from the run's seed: every record reaches the sink, and none stays locked.

SHAREQ_KILLS is the number of drivers that are killed, one after the other; the full check takes 50.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from shareq.admin import Admin
from tests.kafka.fixtures import Reachable
from tests.spark.stage import Place, Stage, every_place, logged_places, make_stage, places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = int(os.environ.get("SHAREQ_KILLS", "2"))
POINTS = ("acquired", "begun", "read", "written", "committed")
"""Before the offset log, at the beginning and in the middle of a batch, between sink and commit, after the commit."""

PER_BATCH = 10
ROOT = Path(__file__).parents[2]
PATIENCE_S = 300


def session_of(driver: int) -> list[int]:
    """The driver and the processes that it has started: a session in the sense of the operating system."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[3]) == driver:
                found.append(int(stat.parent.name))
    return found


def run_and_kill(arguments: list[str], steps: Path, *, everything: bool) -> None:
    """Run a driver up to its fatal step, then kill its process group or all processes of its session."""
    steps.write_text("")
    command = [sys.executable, "-m", "tests.spark.driver", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as driver:
        deadline = time.monotonic() + PATIENCE_S
        while not steps.read_text().endswith("blocked\n"):
            assert time.monotonic() < deadline, steps.read_text()
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"the driver ended by itself, with {driver.wait(0.1)}")
        if not everything:  # Spark's Python workers notice, and the reader leaves the group
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        for pid in session_of(driver.pid) if everything or arguments[-2] in {"acquired", "committed"} else []:
            with suppress(ProcessLookupError):  # it has just ended, since others of the session are dead
                os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(900 + 300 * KILLS)
def test_a_killed_drivers_records_reach_the_sink(
    spark: SparkSession, served: Reachable, fresh: Callable[[str], str], tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    stage = make_stage(spark, served, fresh, tmp_path, PER_BATCH * (4 + 3 * KILLS))
    with Admin({"bootstrap.servers": stage.options["kafka.bootstrap.servers"]}) as admin:
        limits = {"share.record.lock.duration.ms": "5000", "share.delivery.count.limit": "25"}
        admin.alter_group_configs(stage.options["group.id"], limits)
    options = json.dumps({**stage.options, "maxRecordsPerBatch": str(PER_BATCH)})
    points = rng.sample(POINTS, len(POINTS))
    for number in range(KILLS):
        point, nth, everything = points[number % len(points)], rng.randint(1, 2), rng.random() < 0.5
        print(f"{number}: killed{' with all its processes' if everything else ''} at step {point}, time {nth}")
        run_and_kill([options, str(tmp_path), point, str(nth)], tmp_path / "steps", everything=everything)
    last: dict[int, list[Place]] = {}
    stage.run(lambda df, number: last.update({number: places(df)}), maxRecordsPerBatch="1000")
    arrived = {place for batch in last.values() for place in batch}
    for path in tmp_path.glob("batch-*.json"):
        rows = [(partition, offset) for partition, offset in json.loads(path.read_text())]
        arrived.update(rows)
        assert sorted(rows) == logged_places(stage.checkpoint, int(path.name.split("-")[1]))
    for number, batch in last.items():
        assert sorted(batch) == logged_places(stage.checkpoint, number)
    assert sorted(arrived) == every_place(stage.records)
    assert stage.lag() == 0


def test_records_of_a_killed_query_are_delivered_to_others(stage: Stage, tmp_path: Path) -> None:
    """The other query has its own checkpoint."""
    options = json.dumps({**stage.options, "maxRecordsPerBatch": str(PER_BATCH)})
    (theirs := tmp_path / "theirs").mkdir()
    run_and_kill([options, str(theirs), "read", "1"], theirs / "steps", everything=True)
    arrived: list[Place] = []
    stage.run(lambda df, _: arrived.extend(places(df)))
    assert sorted(arrived) == every_place(stage.records)
    assert stage.lag() == 0
