"""The sources of a trace: files and folders of journals, a topic, a journal in memory, or a DataFrame.

A file is one journal; a folder named `*.jsonl` or `*.parquet` is one journal in parts, as Spark and other tools write
it. In a topic each record is a line, and its key the name of the journal.
"""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline.events import of_lines, of_table, parquet_schema
from shareq.spark.register import register
from shareq.trace.journal import journal_of
from shareq.trace.journal.jsonl import entry_line, header_line

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from shareq.producer import Producer

SCHEME = "kafka://"
READER = "shareq-pipeline"
"""The default share group for following a topic."""

ONCE = "shareq-pipeline-once"
"""The group id of batch reads, which read the whole topic without joining a group."""


def publish(source: Any, producer: Producer, topic: str, *, journal: str = "journal", since: int = 0) -> int:
    """Send a journal's entries from order `since` on to a topic, as lines of JSON. Returns the order for the next call.

    `source`: a `Journal`, or an object with one as `.journal`. Raises the error of the first failed delivery.
    """
    found = journal_of(source)
    failed: list[Exception] = []

    def delivered(error: Any, message: object) -> None:
        del message
        if error is not None:
            failed.append(RuntimeError(f"{topic}: an entry was not delivered: {error.str()}"))

    for text in [header_line(found)] if since == 0 else []:
        producer.produce(topic, text, journal, on_delivery=delivered)
    for entry in found.since(since):
        since = entry.order + 1
        while True:
            try:
                producer.produce(topic, entry_line(entry), journal, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(1)
    producer.flush()
    if failed:
        raise failed[0]
    return since


LINE_BYTES = 100
"""An event's line of JSON is hardly shorter."""


def exists(trace: str) -> bool:
    """False if a trace is a path of this machine at which nothing is. What other systems have, Spark finds."""
    return "://" in trace or "*" in trace or Path(trace).exists()


def size_of(trace: Any) -> int | None:
    """About how many events a trace has, as far as that is known without reading it; None if it is not."""
    try:
        if not isinstance(trace, (str, PathLike)):
            return None if hasattr(trace, "columns") else len(journal_of(trace).entries())
        path = Path(trace)
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        return sum(map(_size_of_file, files)) if files else None
    except (OSError, TypeError, ValueError):  # the source itself names what is wrong with it
        return None


def _size_of_file(file: Path) -> int:
    if file.suffix != ".parquet":
        return file.stat().st_size // LINE_BYTES
    from pyarrow import ArrowException, parquet

    try:
        found: int = parquet.read_metadata(file).num_rows
    except ArrowException as problem:
        raise ValueError(file) from problem
    return found


def events_of(spark: SparkSession, trace: Any, *, streaming: bool = False, group: str = READER) -> DataFrame:
    """The events of a trace, valid and invalid ones; see `events`."""
    if isinstance(trace, (str, PathLike)):
        address = fspath(trace)
        if address.startswith(SCHEME):
            return of_lines(_of_topic(spark, address, group if streaming else ONCE, streaming=streaming))
        return _of_files(spark, address, streaming=streaming)
    if hasattr(trace, "columns"):
        return of_lines(_named(trace))
    if streaming:
        raise ValueError(
            f"{trace!r} cannot be followed: must be a folder, kafka://HOST:PORT/TOPIC, or a streaming DataFrame"
        )
    return of_lines(_of_journal(spark, trace))


def _of_files(spark: SparkSession, path: str, *, streaming: bool) -> DataFrame:
    """Journals in either format, by suffix; a folder may have both. A file with another suffix has lines."""
    if "://" not in path and not set("*?[{") & set(path):
        _check(Path(path), streaming=streaming)
    reader: Any = spark.readStream if streaming else spark.read
    if path.endswith(".parquet"):
        return of_table(reader.schema(parquet_schema()).parquet(path).select(_file(), "*"))
    if ".json" in PurePath(path).name or Path(path).is_file():
        return of_lines(reader.text(path).select(_file(), "value"))
    texts = reader.option("pathGlobFilter", "*.json*").text(path).select(_file(), "value")
    tables = reader.option("pathGlobFilter", "*.parquet").schema(parquet_schema()).parquet(path)
    return of_lines(texts).unionByName(of_table(tables.select(_file(), "*")))


def _check(path: Path, *, streaming: bool) -> None:
    """Raise the errors that Spark would ignore."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if streaming and path.is_file():
        raise ValueError(
            f"{path} cannot be followed: Spark reads a file once, even if it grows; write finished journals to a "
            "folder, or `pipeline.publish` the journal to a topic"
        )
    if not streaming and path.is_dir() and not any(map(_is_journal, path.iterdir())):
        raise FileNotFoundError(f"there is no journal (*.jsonl, *.parquet) in {path}")


def _is_journal(path: Path) -> bool:
    """True by the file's name; parts of a journal may have any name."""
    named = ".json" in path.name or path.suffix == ".parquet"
    return named or (path.parent.suffix in (".jsonl", ".json", ".parquet") and path.name[0] not in "._")


def _file() -> Column:
    """The name of the journal to which a row's file belongs. Without a regular expression, as each row computes it."""
    from pyspark.sql import functions as f

    last, parent = "substring_index(path, '/', -1)", "substring_index(substring_index(path, '/', -2), '/', 1)"
    in_parts = " OR ".join(f"endswith({parent}, '{suffix}')" for suffix in (".jsonl", ".parquet"))
    name = f"IF({in_parts}, {parent}, {last})"
    decoded = f"IF(contains({name}, '%'), url_decode(replace({name}, '+', '%2B')), {name})"
    return f.expr(decoded.replace("path", "_metadata.file_path")).alias("journal")


def _of_topic(spark: SparkSession, address: str, group: str, *, streaming: bool) -> DataFrame:
    servers, _, topic = address.removeprefix(SCHEME).partition("/")
    if not servers or not topic:
        raise ValueError(f"{address!r}: must be {SCHEME}HOST:PORT/TOPIC")
    register(spark)
    reader: Any = spark.readStream if streaming else spark.read
    if streaming:  # the default of a share group is to start at the end
        from shareq.admin import Admin

        with Admin({"bootstrap.servers": servers}) as admin:
            admin.alter_group_configs(group, {"share.auto.offset.reset": "earliest"})
    options = {"kafka.bootstrap.servers": servers, "subscribe": topic, "group.id": group}
    return _named(reader.format("shareq").options(**options).load())


def _named(rows: DataFrame) -> DataFrame:
    """Rows with `value`, and with `journal` or `key`, as in Spark's Kafka source."""
    from pyspark.sql import functions as f

    names = [f.col(name).cast("string") for name in ("journal", "key", "topic") if name in rows.columns]
    return rows.select(
        f.coalesce(*names, f.lit("journal")).alias("journal"), f.col("value").cast("string").alias("value")
    )


def _of_journal(spark: SparkSession, source: Any) -> DataFrame:
    import pyarrow as pa

    lines = [entry_line(entry) for entry in journal_of(source).entries()]
    table = pa.table(
        {"journal": ["journal"] * len(lines), "value": lines},
        pa.schema([("journal", pa.string()), ("value", pa.string())]),
    )
    return spark.createDataFrame(table)
