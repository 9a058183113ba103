"""Rows of a result: as a table with Kafka's columns, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

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
    import json  # here, because tables need none

    click.echo(json.dumps([dict(row) for row in rows], indent=2))


def java_number(value: float) -> str:
    """A double as Java prints it: from 10,000,000 on and below 0.001 with an exponent, as in 1.048576E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7 or not isfinite(value):
        return repr(float(value))
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"


def _text(value: object) -> str:
    return MISSING if value is None else str(value)
