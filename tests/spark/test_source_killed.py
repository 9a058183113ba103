"""kill -9 of the driver at points drawn from the run's seed: every record reaches the sink, and none is stuck.

SHAREQ_KILLS says how many drivers are killed, one after the other; 50 make the full proof.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.kafka.fixtures import Reachable
from tests.spark.test_source import every_place, places, scene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = int(os.environ.get("SHAREQ_KILLS", "1"))
PER_BATCH = 10
ROOT = Path(__file__).parents[2]


def run_and_kill(arguments: list[str], words: int) -> list[str]:
    """Run a driver until it has said so many words, then kill it; what it has said."""
    command = [sys.executable, "-m", "tests.spark.driver", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as driver:
        assert driver.stdout is not None
        said = list(islice(driver.stdout, words))
        os.killpg(driver.pid, signal.SIGKILL)
    return said


@pytest.mark.timeout(240 + 60 * KILLS)
def test_a_killed_drivers_records_reach_the_sink(
    spark: SparkSession, served: Reachable, fresh: Callable[[str], str], tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)
    at = scene(spark, served, fresh, tmp_path, PER_BATCH * (4 + 3 * KILLS))
    options = {**at.options, "maxRecordsPerBatch": str(PER_BATCH)}
    for _ in range(KILLS):
        words = rng.randint(1, 8)  # started, and three a batch
        assert len(run_and_kill([json.dumps(options), at.checkpoint, str(tmp_path)], words)) == words
    arrived = {tuple(row) for path in tmp_path.glob("batch-*.json") for row in json.loads(path.read_text())}
    at.run(lambda df, _: arrived.update(places(df)), maxRecordsPerBatch="1000")
    assert sorted(arrived) == every_place(at.records)
    assert at.lag() == 0
