"""Small HTML for rich reprs: tables in the colours of the notebook's own theme, every value escaped.

JupyterLab, VS Code and the classic notebook define `--jp-*` colours; elsewhere the page's own colours are inherited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shareq.model.printable import escape

_LINE = "1px solid var(--jp-border-color2, rgba(128, 128, 128, .35))"
_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 4px 0"
_CAPTION = "caption-side: top; text-align: left; padding: 2px 0 6px; color: inherit"
_CELL = "padding: 3px 10px; background: none; color: inherit; vertical-align: top"


class Html(str):
    """Text that is HTML already and is not escaped again."""

    __slots__ = ()


def html(value: object) -> Html:
    """A value as HTML: escaped, whole numbers with their thousands separated, None as a dash."""
    if isinstance(value, Html):
        return value
    if value is None:
        return Html("–")
    if isinstance(value, bool):
        return Html("yes" if value else "no")
    if isinstance(value, int):
        return Html(f"{value:,d}")
    return Html(escape(f"{value:,.4g}" if isinstance(value, float) else str(value)))


def strong(value: object) -> Html:
    """A value in bold type."""
    return Html(f"<b>{html(value)}</b>")


class Table(NamedTuple):
    """Columns and rows as plain values. `limit`: the most rows to show; the others are counted."""

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    caption: object = None
    limit: int = 60


class Tables:
    """Base of data that a notebook shows as tables: a subclass returns columns and rows, without HTML."""

    __slots__ = ()

    def tables(self) -> Iterable[Table]:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return "".join(table(*shown[:2], caption=shown.caption, limit=shown.limit) for shown in self.tables())


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, caption: object = None, limit: int = 60) -> Html:
    """A table of one row for each of `rows`. Numbers are aligned right; rows beyond `limit` are only counted."""
    heads = "".join(f'<th style="{_CELL}; text-align: left; border-bottom: {_LINE}">{html(c)}</th>' for c in columns)
    listed = list(rows)
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed[:limit]]
    if len(listed) > limit:
        lines.append(f'<tr><td colspan="{len(columns)}" style="{_CELL}">and {len(listed) - limit:,} more</td></tr>')
    title = "" if caption is None else f'<caption style="{_CAPTION}">{html(caption)}</caption>'
    return Html(
        f'<table style="{_TABLE}">{title}<thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )


def _cell(value: object) -> str:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f'<td style="{_CELL}; text-align: {"right" if number else "left"}">{html(value)}</td>'
