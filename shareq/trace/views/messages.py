"""Protocol messages of a journal as a table in a notebook, and as lines of text elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, overload

from shareq.html import Html, Table, Tables, html
from shareq.trace.analysis.exchanges import Exchange, Fields, exchanges
from shareq.trace.journal import journal_of

SUMMARY_LENGTH = 90
"""Number of characters of a folded message."""

_PRE = "margin: 4px 0; white-space: pre-wrap; font-size: 90%"


class Exchanges(Sequence[Exchange], Tables):
    """Exchanges in the order of their requests; a table in a notebook, lines elsewhere."""

    def __init__(self, exchanges: list[Exchange], origin_ms: int) -> None:
        self._exchanges = exchanges
        self._origin_ms = origin_ms

    def __len__(self) -> int:
        return len(self._exchanges)

    @overload
    def __getitem__(self, key: int) -> Exchange: ...
    @overload
    def __getitem__(self, key: slice) -> Exchanges: ...
    def __getitem__(self, key: int | slice) -> Exchange | Exchanges:
        found = self._exchanges[key]
        return found if isinstance(found, Exchange) else Exchanges(found, self._origin_ms)

    def __repr__(self) -> str:
        return "\n".join(self._lines()) or "<no messages>"

    def _lines(self) -> Iterator[str]:
        """Two lines for each exchange: the request, the response."""
        for one in self:
            yield f"{self._time(one)}  {one.client} -> {one.broker}  {_api(one)}  {_short(one.request)}".rstrip()
            took = "no answer" if one.duration_ms is None else f"{one.duration_ms} ms"
            yield f"{'':>12}  <- {took}  {'' if one.response is None else _short(one.response)}".rstrip()

    def tables(self) -> Iterator[Table]:
        """One row for each exchange; long messages are folded."""
        rows = [
            (
                _unbroken(self._time(one).strip()),
                _unbroken(one.client),
                _unbroken(_api(one)),
                _unbroken(one.broker),
                _folded(one.request),
                Html("no response") if one.response is None else _folded(one.response),
                None if one.duration_ms is None else _unbroken(f"{one.duration_ms:,} ms"),
            )
            for one in self
        ]
        columns = ("time", "client", "request", "broker", "fields", "response", "after")
        yield Table(columns, rows, caption=f"{len(self):,} exchanges", limit=200)

    def _time(self, one: Exchange) -> str:
        return f"{(one.time_ms - self._origin_ms) / 1000:>10,.3f} s"


def messages(
    source: Any,
    *,
    client: str | None = None,
    api: str | Collection[str] | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> Exchanges:
    """The protocol exchanges of a journal. `source`: a `Journal`, or an object with one as `.journal`.

    `client`: only those of this client id, connection or broker. `api`: only this one, such as "ShareFetch", or these.
    `since_ms`, `until_ms`: only requests in this span of the cluster's time, end exclusive.
    """
    journal = journal_of(source)
    apis = {api} if isinstance(api, str) else api
    found = exchanges(journal, client=client, apis=apis, since_ms=since_ms, until_ms=until_ms)
    return Exchanges(found, journal.origin_ms)


# ---- formatting ------------------------------------------------------------------------------------------------------


def _api(one: Exchange) -> str:
    return one.api if one.version is None else f"{one.api} v{one.version}"


def _line(value: object) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_within(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_within, value))
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _within(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{_line(value)}}}"
    return f"[{_line(value)}]" if isinstance(value, list) else _line(value)


def _short(fields: Fields) -> str:
    line = _line(fields)
    return line if len(line) <= SUMMARY_LENGTH else f"{line[: SUMMARY_LENGTH - 1]}…"


def message_tree(value: Fields) -> Iterator[str]:
    """The lines of a message or a struct of it; nested structs, and the items of a list of structs, are indented."""
    for name, inner in value.items():
        items = inner if isinstance(inner, list) and any(isinstance(item, Mapping) for item in inner) else None
        if items is not None:
            yield str(name)
            for item in items:
                lines = message_tree(item) if isinstance(item, Mapping) else iter([_within(item)])
                yield from (f"{'    ' if number else '  - '}{line}" for number, line in enumerate(lines))
        elif isinstance(inner, Mapping):
            yield str(name)
            yield from (f"  {line}" for line in message_tree(inner))
        else:
            yield f"{name} {_within(inner)}"


def _unbroken(text: str) -> Html:
    return Html(f'<span style="white-space: nowrap">{html(text)}</span>')


def _folded(fields: Fields) -> Html:
    """The beginning of a message, and the rest folded if there is more."""
    if not fields:
        return Html("–")
    line = _line(fields)
    if len(line) <= SUMMARY_LENGTH and "{" not in line:
        return html(line)
    tree = "\n".join(message_tree(fields))
    return Html(f'<details><summary>{html(_short(fields))}</summary><pre style="{_PRE}">{html(tree)}</pre></details>')
