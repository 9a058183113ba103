"""The session for a laptop, and versions of PySpark that are refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from shareq.jvm import find_java
from shareq.spark import SparkDoesNotFit, session
from shareq.spark.session import CHECKPOINTS, class_archive
from shareq.spark.versions import check_pyspark, has_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0.dev1", "4.3.0", "5.0.0"])
def test_supported_versions_of_pyspark_are_accepted(version: str) -> None:
    check_pyspark(version)


@pytest.mark.parametrize("version", ["2.4.8", "3.5.3"])
def test_an_old_pyspark_is_refused_with_a_reason(version: str) -> None:
    with pytest.raises(SparkDoesNotFit, match=f"PySpark {version} does not support sources in Python.*pip install"):
        check_pyspark(version)


@pytest.mark.parametrize("version", ["4.0.5", "4.1.4"])
def test_streams_are_refused_where_spark_does_not_report_finished_batches(version: str) -> None:
    reason = f"PySpark {version} does not support acknowledging streams.*4.2 does.*batch reads"
    with pytest.raises(SparkDoesNotFit, match=reason):
        check_pyspark(version, streaming=True)


@pytest.mark.parametrize("version", ["4.2.0", "4.10.1", "5.0.0"])
def test_versions_of_pyspark_with_streams_are_accepted(version: str) -> None:
    check_pyspark(version, streaming=True)


def test_a_master_with_spark_connect_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be set with Spark Connect"):
        session(master="local[2]", **{"spark.remote": "sc://127.0.0.1"})


def test_an_unknown_spark_key_is_refused() -> None:
    with pytest.raises(ValueError, match="shuffle_partitions: keys of Spark"):
        session(shuffle_partitions=2)


def test_settings_of_the_user_replace_those_for_a_laptop(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.conf.get("spark.ui.enabled") == "false"
    again = session(**{"spark.sql.shuffle.partitions": "3"})
    try:
        assert again is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")


LOGGED = """
import json, sys
from shareq.spark import close, session

spark = session(master="local[1]", **json.loads(sys.argv[2]))
writer = spark.readStream.text(sys.argv[1]).writeStream.format("noop").option("checkpointLocation", "checkpoint")
writer.trigger(availableNow=True).start().awaitTermination()
close(spark)
"""

MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing"


@pytest.mark.spark
@pytest.mark.skipif(sys.platform == "win32", reason="there is no readlink")
@pytest.mark.skipif(not has_streams(), reason="the setting is for PySparks with streams")
@pytest.mark.parametrize(
    ("config", "starts_programs"),
    [({}, False), ({next(iter(CHECKPOINTS)): f"{MANAGERS}.FileContextBasedCheckpointFileManager"}, True)],
    ids=["by default", "as the user wants it"],
)
def test_the_logs_of_a_query_are_written_without_other_programs(
    tmp_path: Path, config: dict[str, str], *, starts_programs: bool
) -> None:
    """But for `chmod`: with Spark's own setting, `readlink` takes two thirds of the time of both logs."""
    (folder := tmp_path / "rows").mkdir()
    (folder / "one.txt").write_text("a row")
    (program := tmp_path / "bin" / "readlink").parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/started\nexec {shutil.which("readlink")} "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", LOGGED, str(folder), json.dumps(config)]
    subprocess.run(command, check=True, env=environment, cwd=tmp_path)
    assert [path.name for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*")] == ["0"]
    assert (tmp_path / "started").exists() == starts_programs


CLOSED = """
from shareq.spark import close, session

first = session(master="local[1]")
java = first.sparkContext._gateway.proc
close(first)
print("ended:", java.returncode is not None)
second = session(master="local[1]")
print("rows:", second.range(3).count(), "another Java:", second.sparkContext._gateway.proc.pid != java.pid)
close(second)
"""


@pytest.mark.spark
def test_a_session_is_closed_with_its_java_and_another_can_begin() -> None:
    ended = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True, timeout=600, check=False)
    assert ended.stdout.split("\n")[:2] == ["ended: True", "rows: 3 another Java: True"], ended.stderr


def test_the_archive_of_classes_is_that_of_this_java_and_pyspark() -> None:
    archive = class_archive()
    assert archive.program == f"spark-{version('pyspark')}"
    assert archive.java == find_java()
    assert Path(archive.classpath, "..", "bin", "spark-submit").exists()


FIRST = """
from shareq.spark.session import archiving, session

with archiving():
    print(session(master="local[1]").range(3).mapInArrow(lambda batches: batches, "id bigint").count())
"""


@pytest.mark.spark
def test_the_first_session_ends_without_the_traces_of_pyspark(tmp_path: Path) -> None:
    """PySpark's server of accumulators prints one if Java ends before it."""
    environment = {**os.environ, "SHAREQ_CACHE": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout == "3\n"
    assert "Traceback" not in ended.stderr
    assert [path.suffix for path in tmp_path.glob("spark-*")] == [".jsa"]


REFUSED = """
from contextlib import suppress
from shareq.spark.session import archiving, session

with suppress(Exception), archiving():
    session(master="local[1]", **{"spark.memory.fraction": "2"})
"""


@pytest.mark.spark
def test_an_archive_is_written_once_and_then_used(tmp_path: Path) -> None:
    """Java names the source of each class that it loads; an archive that does not fit is ignored. Spark refuses the
    session after its first classes: to load and archive all of them takes half a minute of a processor."""
    (cache := tmp_path / "cache").mkdir()
    environment = {**os.environ, "SHAREQ_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", REFUSED], check=True, env=environment, cwd=tmp_path)
    (archive,) = cache.glob("spark-*.jsa*")
    written = archive.stat()
    environment["JAVA_TOOL_OPTIONS"] = f"-Xlog:class+load:file={tmp_path}/%p.log"
    subprocess.run([sys.executable, "-c", REFUSED], check=True, env=environment, cwd=tmp_path)
    loaded = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert "org.apache.spark.SparkContext source: shared objects file (top)" in loaded
    assert archive.stat().st_mtime_ns == written.st_mtime_ns
