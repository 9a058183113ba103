"""Several tables of a trace in one Spark job.

A job of Spark costs tens of milliseconds, whatever it computes, and a run computes some twenty tables, most of them
small. Those are collected together: each is one row of a union, with all its rows as a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shareq.spark.pipeline.schema import FRAMES, TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_SQL = {**FRAMES, **{name: table.sql for name, table in TABLES.items()}}


class Trace:
    """The tables of a trace that are known so far: `frames`, by name.

    `columns`: those of the events; `events`: returns the events with some of them. Plans of many columns cost the
    driver time, so each query gets those that it uses.
    """

    def __init__(self, spark: SparkSession, columns: Sequence[str], events: Callable[[list[str]], DataFrame]) -> None:
        self._spark = spark
        self._columns = columns
        self._events = events
        self.frames: dict[str, DataFrame] = {}

    def table(self, name: str) -> DataFrame:
        """A table, not yet computed, with the documented columns. Unknown tables that it reads are computed with it."""
        return self._query(f"SELECT {', '.join(_columns(name))} FROM ({self._sql(name)})")

    def collected(self, names: Iterable[str]) -> Mapping[str, pa.Table]:
        """These tables, computed by one job."""
        import pyarrow as pa

        names = tuple(names)
        rows = " UNION ALL ".join(f"SELECT {', '.join(_lists(name, names))} FROM ({self._sql(name)})" for name in names)
        found = self._query(rows).toArrow()
        return {name: pa.Table.from_struct_array(found.column(name).combine_chunks().flatten()) for name in names}

    def _query(self, sql: str) -> DataFrame:
        """The result of an SQL text."""
        used: dict[str, Any] = {name: frame for name, frame in self.frames.items() if f"{{{name}}}" in sql}
        if "{events}" in sql:
            words = set(re.findall(r"\w+", sql))
            used["events"] = self._events([name for name in self._columns if name in words])
        return self._spark.sql(sql, **used)

    def _sql(self, name: str) -> str:
        """The SQL of a table; in it {names} of known tables only."""
        sql = _SQL[name]
        for other in _SQL:
            if f"{{{other}}}" in sql and other not in self.frames:
                sql = sql.replace(f"{{{other}}}", f"({self._sql(other)})")
        return sql


def _columns(name: str) -> list[str]:
    """The columns of a table as expressions, with the documented types."""
    if name in FRAMES:
        return ["*"]
    table = TABLES[name]
    found = [f"CAST(`{column}` AS {kind}) AS `{column}`" for column, kind, _ in table.columns]
    if table.time:
        found.append(f"date_from_unix_date(CAST(floor(`{table.time}` / 86400000) AS int)) AS `date`")
    return found


def _lists(name: str, names: Iterable[str]) -> list[str]:
    """A list for each table; only that of `name` has its rows."""
    rows = f"collect_list(struct({', '.join(_columns(name))}))"
    return [f"{rows if each == name else 'NULL'} AS `{each}`" for each in names]
