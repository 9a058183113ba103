"""Rows of a result: as a table with Kafka's columns, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import click

MISSING = "-"
NAME_WIDTH = 15
"""Kafka's tools give a column of names at least this width."""

Row = Mapping[str, object]
"""A value for each key, in the order of the columns. None is unknown."""


def print_table(rows: Iterable[Row], heads: Mapping[str, str], widths: Mapping[str, int]) -> None:
    """Print a blank line, the heads and the rows. `heads`: the columns, their title by key; `widths`: the least width
    by key. The last column has no padding."""
    lines = [[*heads.values()], *([_text(row[key]) for key in heads] for row in rows)]
    columns = list(zip(*lines, strict=True))
    sizes = [max(widths.get(key, 0), *map(len, column)) for key, column in zip(heads, columns, strict=True)]
    click.echo()
    for line in lines:
        padded = [cell.ljust(size) for cell, size in zip(line[:-1], sizes, strict=False)]
        click.echo(" ".join([*padded, line[-1]]))


def print_json(rows: Sequence[Row]) -> None:
    """Print an array with an object for each row."""
    click.echo(json.dumps([dict(row) for row in rows], indent=2))


def _text(value: object) -> str:
    return MISSING if value is None else str(value)
