"""Source, sweep and pipeline on a standalone cluster that loses an executor, and on Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import shareq.sim
from shareq.admin import Admin
from shareq.jvm import find_java
from shareq.spark.pipeline import TABLES
from shareq.spark.session import LAPTOP, class_archive
from tests.kafka.fixtures import Reachable
from tests.spark.pipeline_journals import story
from tests.spark.pipeline_oracle import expected_of, oracle, written
from tests.spark.remote_driver import FEW
from tests.spark.stage import every_place, prepare

ROOT = Path(__file__).parents[2]
PATIENCE_S = 600
PLACES = {"checkpoint": "checkpoint", "trace": "journals", "out": "tables"}


def environment() -> dict[str, str]:
    """With Java's options of the test run, and the archive of Spark's classes for all processes of a cluster, too."""
    options = [os.environ.get("SPARK_DAEMON_JAVA_OPTS", ""), *class_archive().use()]
    return {
        **os.environ,
        "SPARK_DAEMON_JAVA_OPTS": " ".join(options),
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class Daemon:
    """A process of a standalone cluster, with a separate working folder, so that relative paths are not shared."""

    def __init__(self, folder: Path, main_class: str, *arguments: str) -> None:
        import pyspark

        folder.mkdir()
        self.log = folder / "log"
        home = Path(pyspark.__file__).resolve().parent  # the path to which the archive of classes belongs
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main_class}"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *arguments],
                cwd=folder,
                env={**environment(), "SPARK_LOCAL_DIRS": str(folder), "SPARK_WORKER_DIR": str(folder / "work")},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_for_word(self, prefix: str) -> str:
        """The first word with a prefix in its log, once it is there."""
        deadline = time.monotonic() + PATIENCE_S
        while not (words := [word for word in self.log.read_text().split() if word.startswith(prefix)]):
            assert time.monotonic() < deadline, self.log.read_text()
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"it ended with {self.process.wait(0.1)}: {self.log.read_text()}")
        return words[0]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a standalone cluster: one worker, with two executors of one core each."""
    with ExitStack() as running:
        head = Daemon(tmp_path / "master", "master.Master")
        running.callback(head.stop)
        url = head.wait_for_word("spark://")
        worker = Daemon(tmp_path / "worker", "worker.Worker", "--cores", "2", "--memory", "2g", url)
        running.callback(worker.stop)
        yield url


def drive(config: dict[str, str], options: dict[str, str], folder: Path, *, kills: bool) -> dict[str, Any]:
    """Run `remote_driver`; return what it found."""
    (result := folder / "result").mkdir()
    (folder / "journals").mkdir()
    story().to_jsonl(folder / "journals" / "story.jsonl")
    places = {name: str(folder / place) for name, place in PLACES.items()}
    arguments = json.dumps({"config": config, "options": options, "kills": kills, **places})
    command = [sys.executable, "-m", "tests.spark.remote_driver", arguments, str(result / "result.json")]
    subprocess.run(command, check=True, env={**environment(), "PYTHONPATH": str(ROOT)}, cwd=folder, timeout=PATIENCE_S)
    found: dict[str, Any] = json.loads((result / "result.json").read_text())
    return found


def check(found: dict[str, Any], options: dict[str, str], records: int, tables: Path) -> None:
    arrived = [tuple(place) for batch in found["batches"] for place in batch]
    assert sorted(arrived) == sorted([*every_place(records), (0, 1)])  # one was released and delivered again
    assert found["read"] == records
    with Admin({"bootstrap.servers": options["kafka.bootstrap.servers"]}) as admin:
        assert [row.lag for row in admin.list_share_group_offsets(options["group.id"]).values()] == [0, 0]
    grid = {"consumers": [1, 2]}
    expected = oracle({"story.jsonl": story()})
    assert {name for name in TABLES if written(tables, name) != expected_of(expected, name)} == set()
    assert found["sweep"] == repr(shareq.sim.sweep(grid, 2, FEW, progress=False).table.to_pylist())


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_a_standalone_cluster_survives_the_loss_of_an_executor(
    master: str, served: Reachable, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """Workers get the package from the driver, share only the named folders with it, and run killed tasks again."""
    options = prepare(served, fresh, 40)
    config = {"spark.master": master, "spark.executor.memory": "512m", "spark.executor.cores": "1"}
    found = drive(config, {**options, "minPartitions": "2"}, tmp_path, kills=True)
    check(found, options, 40, tmp_path / "tables")
    assert all("shareq.zip" in file for file in found["files"]), found["files"]


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_everything_works_with_spark_connect(served: Reachable, fresh: Callable[[str], str], tmp_path: Path) -> None:
    """A server on this machine has the settings for a laptop."""
    options = prepare(served, fresh, 40)
    found = drive({"spark.remote": "local[2]"}, {**options, "minPartitions": "2"}, tmp_path, kills=False)
    check(found, options, 40, tmp_path / "tables")
    assert found["shuffles"] == LAPTOP["spark.sql.shuffle.partitions"]
