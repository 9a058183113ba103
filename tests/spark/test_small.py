"""A small valid trace is read by this process, and its events are those that Spark reads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints
from unittest.mock import MagicMock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from shareq.cli import main
from shareq.model.events import HeartbeatReceived, WindowMoved
from shareq.spark import command
from shareq.spark.pipeline import command as pipeline_command
from shareq.spark.pipeline.events import STATE_COLUMNS, columns
from shareq.spark.pipeline.small import read_here
from shareq.spark.pipeline.sources import events_of
from shareq.trace import Journal
from shareq.trace.journal.event_codec import EVENT_TYPES
from shareq.trace.journal.parquet_columns import STATES
from tests.spark.pipeline_journals import as_version_1, late_story, story
from tests.trace.histories import ORIGIN_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = ("orders", "", "naïve – ☂", 'a "quoted" \\ word\nin two lines')


def of_all_types() -> Journal:
    """Three events of each type, with any values."""
    journal, rng = Journal(ORIGIN_MS), Random(5)
    for event_type in [*EVENT_TYPES.values()] * 3:
        journal.record(ORIGIN_MS + rng.randrange(10**6), rng.randrange(-1, 5), some(event_type, rng))
    return journal


def some(annotation: Any, rng: Random) -> Any:
    """A value of the annotated type."""
    if hasattr(annotation, "_fields"):
        hints = get_type_hints(annotation)
        values = {name: some(hint, rng) for name, hint in hints.items()}
        states = {name: rng.choice([*STATES]) for name in STATE_COLUMNS if values.get(name) is not None}
        return annotation(**values | states)
    arguments = get_args(annotation)
    if get_origin(annotation) is UnionType:
        return None if rng.random() < 0.3 else some(next(each for each in arguments if each is not NoneType), rng)
    if get_origin(annotation) is tuple:
        several = arguments if arguments[-1] is not Ellipsis else [arguments[0]] * rng.randrange(3)
        return tuple(some(each, rng) for each in several)
    plain: dict[Any, Callable[[], Any]] = {
        bool: lambda: rng.random() < 0.5,
        int: lambda: rng.choice([*range(7), -1, 2**31 - 1]),
        str: lambda: rng.choice(TEXTS),
    }
    return plain[annotation]()


def rows(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.select(list(columns())).to_pylist()))


def test_the_events_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    for form in ("jsonl", "parquet"):
        for name, journal in (("any", of_all_types()), ("old", story()), ("late", late_story())):
            getattr(journal, f"to_{form}")(tmp_path / f"{name} 100%.{form}")
        as_version_1(tmp_path / f"old 100%.{form}")
    (tmp_path / "notes.txt").write_text("no journal")
    (tmp_path / "_hidden.jsonl").write_text("no journal")
    for trace, journals in ((tmp_path, 6), (of_all_types(), 1)):
        read, expected = read_here(trace), events_of(spark, trace).select(*columns()).toArrow()
        assert read is not None
        assert next(iter(rows(read) - rows(expected)), None) is None
        assert read.num_rows == expected.num_rows
        assert read.schema.types == expected.schema.types
        assert len(set(read["journal"].to_pylist())) == journals


def test_a_file_is_a_journal_of_its_own_or_a_part_of_one(tmp_path: Path) -> None:
    (tmp_path / "two parts.jsonl").mkdir()
    for place in (tmp_path / "alone", tmp_path / "two parts.jsonl" / "part-0"):
        story().to_jsonl(place)
        table = read_here(place)
        assert table is not None
        expected = {"part-0": "two parts.jsonl"}.get(place.name, place.name)
        assert set(table["journal"].to_pylist()) == {expected}


LINE = '{"order":0,"time_ms":1,"broker":0,"type":"WindowMoved","group_id":"g","topic":"t","partition":0,"spso":1'


def test_a_line_of_the_tests_below_is_read_if_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").write_text(f'\r\n  \n{{"shareq_journal":2}}\n{LINE},"window_end":2}}\n')
    table = read_here(str(tmp_path / "j.jsonl"))
    assert table is not None
    assert table.select(["spso", "window_end"]).to_pylist() == [{"spso": 1, "window_end": 2}]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f"{LINE}}}", id="a missing field"),
        pytest.param(f'{LINE},"window_end":2,"more":3}}', id="an unknown field"),
        pytest.param(f'{LINE},"window_end":"2"}}', id="a field of another type"),
        pytest.param(f'{LINE},"window_end":{2**63}}}', id="too large a number"),
        pytest.param(f'{LINE},"window_end":2}} and more', id="a line that goes on"),
        pytest.param(LINE.replace('"order":0', '"order":true') + ',"window_end":2}', id="a head of another type"),
        pytest.param(LINE.replace('"order":0,', "") + ',"window_end":2}', id="no order"),
        pytest.param(LINE.replace("WindowMoved", "Nonsense") + ',"window_end":2}', id="an unknown type"),
        pytest.param('{"shareq_journal":3,"origin_ms":0}', id="a version of the future"),
        pytest.param("[1]", id="no object"),
        pytest.param(
            '{"order":0,"time_ms":1,"broker":0,"type":"HoldEnded","group_id":"g","topic":"t","partition":0,"member_id":"m",'
            '"first":0,"end":1,"delivery_count":1,"state":9,"cause":"settled"}',
            id="a state without a name",
        ),
        pytest.param("\t", id="a line of white space that Spark takes for an event"),
        pytest.param(f'{LINE.replace("t", chr(0xD800), 1)},"window_end":2}}', id="no UTF-8"),
    ],
)
def test_spark_alone_decides_what_is_wrong_with_a_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").write_text(f'{{"shareq_journal":2}}\n{line}\n', encoding="utf-8", errors="surrogatepass")
    assert read_here(tmp_path / "j.jsonl") is None


def test_what_spark_reads_in_a_way_of_its_own_is_left_to_it(tmp_path: Path) -> None:
    story().to_jsonl(tmp_path / "j.jsonl")
    for name in ("parts.jsonl/part-0", "nested/folder/j.jsonl", "several/j.jsonl.gz", "several/j.jsonl", "_hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((tmp_path / "j.jsonl").read_bytes())
    (tmp_path / "empty").mkdir()
    story().to_parquet(tmp_path / "j.parquet")
    pq.write_table(pq.read_table(tmp_path / "j.parquet").drop_columns(["payload"]), tmp_path / "typed.parquet")
    for name in ("parts.jsonl", "nested", "several", "_hidden", "empty", "*.jsonl", "typed.parquet", "missing"):
        assert read_here(str(tmp_path / name)) is None, name
    assert read_here(f"file://{tmp_path}/j.jsonl") is None
    assert read_here(7) is None


def test_the_command_reads_a_small_trace_while_java_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(ORIGIN_MS)
    for event in (HeartbeatReceived("g", "anna", 1, 0), WindowMoved("g", "t", 0, 1, 2)):
        journal.record(ORIGIN_MS, 0, event)
    journal.to_jsonl(tmp_path / "j.jsonl")
    found: list[list[int]] = []

    def run(*arguments: Any, **_: Any) -> Any:
        read = arguments[-1]
        found.append(read()["order"].to_pylist())
        raise OSError("not run")

    monkeypatch.setattr(command, "unregistered", lambda **_: MagicMock())
    monkeypatch.setattr(pipeline_command, "run_with", run)
    words = ["pipeline", "run", str(tmp_path / "j.jsonl"), "--out", str(tmp_path / "out"), "--no-progress"]
    done = CliRunner().invoke(main, words)
    assert (done.output, found) == ("Error: not run\n", [[0, 1]])
    assert json.loads((tmp_path / "j.jsonl").read_text().splitlines()[0])["origin_ms"] == ORIGIN_MS
