"""Rows of sweeps as Arrow tables, and the folder of Parquet files for finished rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from shareq.model.errors import ConfigException
from shareq.sim.sweep_grid import COLUMNS, PARAMETERS, SweepRow


def schema() -> Any:
    """The Arrow schema of a row."""
    import pyarrow as pa

    kinds = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}
    return pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


def table_of(rows: Iterable[SweepRow]) -> Any:
    """An Arrow table of rows."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows), schema())


def keys_of(table: Any) -> list[tuple[Any, ...]]:
    """`SweepRun.key` of each row."""
    return list(zip(*(table[name].to_pylist() for name in (*PARAMETERS, "seed")), strict=True))


class SweepCheckpoint:
    """A folder with the finished rows of a sweep, in files that are written under another name and then renamed.

    A killed sweep leaves whole files, so that the next sweep continues after them. The folder may also have rows of
    other sweeps: a row is found by its parameters and seed. ConfigException if a file has other contents.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self) -> Any:
        """All rows in the folder."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        tables = [pq.read_table(path) for path in self._files()]
        return pa.concat_tables([schema().empty_table(), *tables])

    def _files(self) -> list[Path]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = sorted(self.folder.glob("rows-*.parquet"))
        for path in files:
            try:
                fits = pq.read_schema(path).equals(schema())
            except pa.ArrowInvalid:
                fits = False
            if not fits:
                raise ConfigException(f"checkpoint={str(self.folder)!r}: {path.name} lacks the columns of a sweep")
        return files

    def add(self, table: Any) -> None:
        """Write some rows; they are durable when this returns."""
        import pyarrow.parquet as pq

        handle, name = tempfile.mkstemp(prefix="rows-", suffix=".unfinished", dir=self.folder)
        with os.fdopen(handle, "wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).rename(Path(name).with_suffix(".parquet"))
