"""The Python of Spark's workers: the installed PySpark instead of an archive, and a daemon that imports, with one
thread, before it forks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark
import pytest

from shareq.spark.interpreter import choose_python, worker_python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

INSTALLED = Path(pyspark.__file__).parent
ARCHIVES = INSTALLED / "python" / "lib"
JAR = next((INSTALLED / "jars").glob("spark-core_*.jar"))
PY4J = next(ARCHIVES.glob("py4j-*-src.zip"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a 'cache'"
    monkeypatch.setenv("SHAREQ_CACHE", str(folder))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    return folder


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ([ARCHIVES / "pyspark.zip", PY4J, JAR, "/mine", "/mine/spark-core_2.jar"], ["/mine", "/mine/spark-core_2.jar"]),
        ([ARCHIVES / "pyspark.zip", PY4J, JAR], [""]),
        ([ARCHIVES / "pyspark.zip", PY4J], [""]),
        (["/mine", "/other/pyspark.zip", JAR], ["/mine", "/other/pyspark.zip", str(JAR)]),
        ([], [""]),
    ],
)
def test_a_worker_has_the_path_without_the_archives(cache: Path, given: list[Any], left: list[str]) -> None:
    code = "import os, sys, pyspark; print(os.environ['PYTHONPATH']); print(pyspark.__file__); print(*sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, given))}
    command = [worker_python(), "-c", code, "an argument", "$HOME"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines() == [":".join(left), str(INSTALLED / "__init__.py"), "an argument $HOME"]
    assert [Path(worker_python())] == list(cache.iterdir())


def test_without_an_installed_pyspark_workers_run_this_python(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(pyspark, "__file__", "/opt/spark/python/pyspark/__init__.py")
        assert worker_python() == sys.executable
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SPARK_HOME", "/opt/spark")
        assert worker_python() == sys.executable
    assert not cache.exists()


def test_where_no_script_can_be_written_workers_run_this_python(cache: Path) -> None:
    cache.write_text("not a folder")
    assert worker_python() == sys.executable


@pytest.mark.parametrize("local", [True, False])
def test_only_workers_of_this_machine_run_the_script(
    cache: Path, monkeypatch: pytest.MonkeyPatch, *, local: bool
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    choose_python(local=not local)  # of a session with another master
    choose_python(local=local)
    assert os.environ["PYSPARK_PYTHON"] == (str(*cache.iterdir()) if local else sys.executable)


def test_the_python_that_the_user_has_chosen_stays(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/mine")
    choose_python(local=True)
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/mine"


NEEDED = ["pyspark.worker", "shareq.spark.stream", "aiokafka", "crc32c", "numpy", "pandas", "pyarrow"]

PRELOADED = """
import gc, json, sys
import psutil
from shareq.spark.daemon import preload

sys.argv[1:] = [{module!r}]
sys.modules.update(dict.fromkeys({missing!r}))
preload()
found = [name for name in {needed!r} if name in sys.modules]
print(json.dumps([found, psutil.Process().num_threads(), gc.get_freeze_count() > 0]))
"""


@pytest.mark.parametrize(
    ("module", "threads", "found"),
    [
        ("pyspark.worker", "1", NEEDED),
        ("pyspark.worker", "2", ["pyspark.worker"]),
        ("pyspark.sql.worker.create_data_source", "1", []),
    ],
)
def test_the_daemon_imports_what_tasks_need_and_has_one_thread(module: str, threads: str, found: list[str]) -> None:
    """A process with threads must not fork."""
    environment = {**os.environ, "OMP_NUM_THREADS": threads}
    command = [sys.executable, "-c", PRELOADED.format(module=module, needed=NEEDED, missing=[])]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout) == [found, 1, bool(found)]


def test_the_daemon_starts_with_a_pyspark_without_streams() -> None:
    code = PRELOADED.format(module="pyspark.worker", needed=NEEDED, missing=["pyspark.sql.streaming.datasource"])
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert json.loads(done.stdout) == [[name for name in NEEDED if name != "shareq.spark.stream"], 1, True]


def of_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The command of the process that has forked this one, whether it listens at a file, and where PySpark is imported
    from."""
    import psutil

    for _ in batches:
        command = " ".join(psutil.Process(os.getppid()).cmdline())
        at_file = os.environ["PYTHON_UNIX_DOMAIN_ENABLED"].lower()
        yield pa.RecordBatch.from_pydict({"daemon": [command], "at_file": [at_file], "pyspark": [pyspark.__file__]})


CANCELLED = """
import sys, time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from shareq.spark import close, session

begun = Path(sys.argv[1])

def endless(batches):
    import pyarrow as pa
    for batch in batches:
        while True:
            begun.touch()
            yield pa.RecordBatch.from_pydict({"id": pa.nulls(10_000, pa.int64())})

def run():
    with suppress(Exception):
        spark.range(1).mapInArrow(endless, "id bigint").write.format("noop").mode("append").save()

spark = session(master="local[1]")
spark.sparkContext.setLogLevel("OFF")
job = Thread(target=run)
job.start()
while not begun.exists():
    time.sleep(0.01)
spark.sparkContext.cancelAllJobs()
job.join()
print(spark.range(3).mapInArrow(lambda batches: batches, "id bigint").count())
close(spark)
"""


@pytest.mark.spark
def test_a_worker_whose_task_is_cancelled_ends_without_a_trace(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CANCELLED, str(tmp_path / "begun")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert ended.stdout == "3\n"
    assert "Traceback" not in ended.stderr


@pytest.mark.spark
def test_the_workers_of_a_session_are_forked_from_the_daemon(spark: SparkSession) -> None:
    (row,) = spark.range(1).mapInArrow(of_worker, "daemon string, at_file string, pyspark string").collect()
    assert row["daemon"].endswith("-m shareq.spark.daemon pyspark.worker")
    assert row["at_file"] == "true"
    assert row["pyspark"] == str(INSTALLED / "__init__.py")
