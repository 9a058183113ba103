"""A SparkSession with settings for a laptop, on any installed Java."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from typing import TYPE_CHECKING, Any

from shareq.jvm import ClassArchive, find_java
from shareq.spark.interpreter import choose_python
from shareq.spark.register import register
from shareq.spark.versions import check_pyspark, has_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MINIMUM = 17

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

ARCHIVED_S = 600
"""The most that the end of Java is waited for, in which it writes its archive of classes: seconds, unless the machine
stands still."""

LAPTOP = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}

WORKERS = {"spark.python.daemon.module": "shareq.spark.daemon", "spark.python.unix.domain.socket.enabled": "true"}
"""Settings for workers on this machine. Through TCP each task begins 40 ms later: Java writes its command in parts, and
Nagle's algorithm holds the second one back until Python's delayed acknowledgement of the first. Spark 4.0 has no such
setting, and ignores it."""

CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""Settings for the logs of queries on this machine. Spark's default renames files through Hadoop's FileContext, which
starts the program `readlink` 16 times a batch, for 60 ms. This one renames the same way without it; it has this name
since 4.1."""


def session(*, master: str | None = None, app_name: str = "shareq", **config: Any) -> SparkSession:
    """A session with the format "shareq" registered, and laptop settings as defaults of `config`.

    Spark's keys have dots: `session(**{"spark.sql.shuffle.partitions": 8})`; "spark.remote" selects Spark Connect.
    An active session is reused, with `config` applied as far as Spark allows it at run time. Raises SparkDoesNotFit,
    JavaNotFound.
    """
    spark = _session(master, app_name, config, for_streams=True)
    register(spark)
    return spark


def unregistered(*, master: str | None = None, app_name: str = "shareq", **config: Any) -> SparkSession:
    """A session as `session` makes it, without the format "shareq": to register it, Spark starts a Python process. Its
    workers import nothing before they are forked."""
    return _session(master, app_name, config, for_streams=False)


def _session(master: str | None, app_name: str, config: dict[str, Any], *, for_streams: bool) -> SparkSession:
    check_pyspark()
    from pyspark.sql import SparkSession

    strange = sorted(key for key in config if not key.startswith("spark."))
    if strange:
        raise ValueError(f"{', '.join(strange)}: keys of Spark's configuration begin with 'spark.'")
    remote = config.get("spark.remote", os.environ.get("SPARK_REMOTE"))
    if remote and master:
        raise ValueError(f"master={master!r}: must not be set with Spark Connect ({remote!r})")
    local = not remote or remote.startswith("local")
    master = master or config.get("spark.master", "local[*]")
    near = local and (bool(remote) or master.startswith("local"))
    _prepare_environment(java=local)
    choose_python(local=near)
    Thread(target=_import_pandas, daemon=True).start()  # while Java starts
    builder = SparkSession.builder.appName(app_name)
    if SparkSession.getActiveSession() is None and local:
        if not remote:
            builder = builder.master(master)
        config = {**LAPTOP, **(_for_streams() if near and for_streams else {}), **config}
        if options := _java_options(config.get(JAVA_OPTIONS, "")):
            config[JAVA_OPTIONS] = options
    for key, value in config.items():
        builder = builder.config(key, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


def _for_streams() -> dict[str, str]:
    """Settings for queries whose tasks and logs are on this machine."""
    if os.name != "posix":
        return {}
    return WORKERS | (CHECKPOINTS if has_streams() else {})


def class_archive() -> ClassArchive:
    """Java's archive of Spark's classes: with it a session starts in half the time. `archiving` writes it."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    return ClassArchive(find_java(JAVA_MINIMUM), f"spark-{version('pyspark')}", str(jars))


@contextmanager
def archiving() -> Iterator[None]:
    """If the archive of classes is missing, the context's session writes it: afterwards Spark's Java is ended, which
    takes seconds, once. For commands: no other session of the process may be in use.
    """
    from pyspark import SparkContext

    archive = class_archive()
    if SparkContext._gateway is not None or not archive.missing:  # noqa: SLF001    # PySpark has no other name for it
        yield
        return
    with tempfile.TemporaryDirectory(prefix="shareq-") as folder:
        draft = Path(folder, "draft.jsa")
        _drafts.append(draft)
        try:
            yield
        finally:
            _drafts.clear()
            if (context := SparkContext._active_spark_context) is not None:  # noqa: SLF001    # as above
                context.stop()  # PySpark's server of accumulators prints a trace if Java ends before it
            if (gateway := SparkContext._gateway) is not None:  # noqa: SLF001    # as above
                _end_java(gateway)
                if gateway.proc.returncode is not None:
                    archive.keep(draft)


def close(spark: SparkSession) -> None:
    """Stop a session and end its Java, which `spark.stop()` keeps, with most of the memory.

    The next session of the process starts another Java, which takes seconds. Of Spark Connect, only the session ends.
    """
    from pyspark import SparkContext

    spark.stop()
    gateway = SparkContext._gateway  # noqa: SLF001    # as above
    if gateway is not None and hasattr(gateway, "proc"):  # a gateway that another program has started has none
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        _end_java(gateway)


def _end_java(gateway: Any) -> None:
    gateway.shutdown()
    gateway.proc.stdin.close()  # the end of its input ends it
    try:
        gateway.proc.wait(ARCHIVED_S)
    except TimeoutExpired:
        gateway.proc.kill()


def drop_draft() -> None:
    """Remove what `archiving` has written, for a process that ends within it."""
    for draft in _drafts:
        shutil.rmtree(draft.parent, ignore_errors=True)


_drafts: list[Path] = []


def _java_options(own: str) -> str:
    """The options of the driver's Java, before those of the user."""
    archive = class_archive()
    options = archive.use_or_write(_drafts[0]) if _drafts else archive.use()
    return " ".join((*map(shlex.quote, options), own)).strip()


def _import_pandas() -> None:
    """Import what PySpark imports as soon as its Java runs."""
    with suppress(ImportError):
        import pandas as pd  # noqa: F401


def _prepare_environment(*, java: bool) -> None:
    """Set the variables that Spark reads when its JVM and its workers start; the user's values stay."""
    if java:
        os.environ["JAVA_HOME"] = str(find_java(JAVA_MINIMUM).home)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
