"""The tables that one pass in Python makes of a few events are those of an independent computation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from shareq.spark.pipeline.one_pass.tables import tables_of
from shareq.spark.pipeline.schema import TABLES
from shareq.spark.pipeline.small import read_here
from shareq.trace import Journal
from tests.spark.pipeline_journals import in_transactions, in_trouble, late_story, of_a_leader, of_experiments, story
from tests.spark.pipeline_oracle import BY_RECORD, counted, expected_of, names_of, oracle
from tests.trace.histories import ORIGIN_MS

SEEDS = range(20, 23)


def events_of(journals: Mapping[str, Journal], folder: Path) -> pa.Table:
    for name, journal in journals.items():
        journal.to_jsonl(folder / name)
    found = read_here(folder)
    assert found is not None
    return found


def rows_of(table: pa.Table, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a table, one per record in the tables of `BY_RECORD`."""
    rows = table.to_pylist()
    if name in BY_RECORD:
        rows = [row | {"o": offset} for row in rows for offset in range(row["first"], row["end"])]
    return counted([[row[column] for column in names_of(name)] for row in rows])


def test_each_table_of_random_journals_equals_an_independent_computation(tmp_path: Path) -> None:
    journals = {"story.jsonl": story(), "late.jsonl": late_story()}
    journals |= {f"faults-{seed}.jsonl": in_trouble(seed, 120) for seed in SEEDS}
    journals |= {f"leader-{seed}.jsonl": of_a_leader(seed, 300) for seed in SEEDS}
    journals |= {f"transactions-{seed}.jsonl": in_transactions(seed) for seed in SEEDS}
    journals |= {f"experiments-{seed}.jsonl": of_experiments(seed) for seed in SEEDS}
    tables, expected = tables_of(events_of(journals, tmp_path)), oracle(journals)
    for name in TABLES:
        assert rows_of(tables[name], name) == expected_of(expected, name), name


def test_the_order_of_the_events_in_their_table_does_not_matter(tmp_path: Path) -> None:
    events = events_of({"faults.jsonl": in_trouble(30, 120), "story.jsonl": story()}, tmp_path)
    tables, turned = tables_of(events), tables_of(events.take(pa.array(range(len(events)))[::-1]))
    assert {name for name in TABLES if rows_of(tables[name], name) != rows_of(turned[name], name)} == set()


def test_an_empty_table_has_the_documented_columns(tmp_path: Path) -> None:
    journal = Journal(ORIGIN_MS)
    journal.record(ORIGIN_MS, 0, story()[0].event)
    tables = tables_of(events_of({"j.jsonl": journal}, tmp_path))
    for name, spec in TABLES.items():
        assert tables[name].column_names == [column.name for column in spec.dated()], name
    assert [name for name in TABLES if len(tables[name])] == ["journals"]
