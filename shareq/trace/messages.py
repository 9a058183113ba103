"""The protocol messages of a journal, in order: who asked which broker for what, and what was answered.

They are there where the cluster was made with `trace_messages=True`; whoever does not ask for them pays nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

from shareq.model.actor import NEWEST_VERSION
from shareq.model.events import RequestSent, ResponseSent, TopicCreated
from shareq.model.html import Html, html, table
from shareq.trace.journal import Entry, Journal
from shareq.trace.story import journal_of

SUMMARY_LENGTH = 90
"""How much of a message is shown while it is folded."""

_PRE = "margin: 4px 0; white-space: pre-wrap; font-size: 90%"

Fields = Mapping[str, Any]


class Exchange(NamedTuple):
    """A request, and its answer where there is one. `client` is the client id, or whose connection it was; `version`
    is None where both ends are in one process. Fields that have their default are left out, topics are named."""

    order: int
    time_ms: int
    client: str
    broker: str
    api: str
    version: int | None
    request: Fields
    answered_ms: int | None
    error: int
    response: Fields | None

    @property
    def duration_ms(self) -> int | None:
        """How long the answer took; None as long as there is none."""
        return None if self.answered_ms is None else self.answered_ms - self.time_ms


class Messages(Sequence[Exchange]):
    """Exchanges in the order in which they were begun; a table in a notebook, lines elsewhere."""

    def __init__(self, exchanges: list[Exchange], origin_ms: int) -> None:
        self._exchanges = exchanges
        self._origin_ms = origin_ms

    def __len__(self) -> int:
        return len(self._exchanges)

    @overload
    def __getitem__(self, key: int) -> Exchange: ...
    @overload
    def __getitem__(self, key: slice) -> Messages: ...
    def __getitem__(self, key: int | slice) -> Exchange | Messages:
        found = self._exchanges[key]
        return found if isinstance(found, Exchange) else Messages(found, self._origin_ms)

    def __repr__(self) -> str:
        return "\n".join(self._lines()) or "<no messages>"

    def _lines(self) -> Iterator[str]:
        """Two lines for each exchange: what was asked, what was answered."""
        for one in self:
            yield f"{self._time(one)}  {one.client} -> {one.broker}  {_api(one)}  {_short(one.request)}".rstrip()
            took = "no answer" if one.duration_ms is None else f"{one.duration_ms} ms"
            yield f"{'':>12}  <- {took}  {'' if one.response is None else _short(one.response)}".rstrip()

    def _repr_html_(self) -> str:
        rows = [
            (
                _unbroken(self._time(one).strip()),
                _unbroken(one.client),
                _unbroken(_api(one)),
                _unbroken(one.broker),
                _folded(one.request),
                Html("no answer") if one.response is None else _folded(one.response),
                None if one.duration_ms is None else _unbroken(f"{one.duration_ms:,} ms"),
            )
            for one in self
        ]
        columns = ("time", "who", "request", "to", "says", "answer", "after")
        return table(columns, rows, caption=f"{len(self):,} exchanges", limit=200)

    def _time(self, one: Exchange) -> str:
        return f"{(one.time_ms - self._origin_ms) / 1000:>10,.3f} s"


def messages(
    source: Any,
    *,
    client: str | None = None,
    api: str | Collection[str] | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> Messages:
    """The exchanges that a journal tells of. `source`: a `Journal`, or whatever has one as `.journal`, such as a
    cluster.

    `client`: of this client id, or of the connection or broker of this name. `api`: such as "ShareFetch", or several.
    `since_ms`, `until_ms`: requests sent in this span of the cluster's time, its end excluded.
    """
    journal = journal_of(source)
    apis = {api} if isinstance(api, str) else api
    answers = _answers(journal)
    topics = {
        e.event.topic_id: e.event.topic for e in journal.select(TopicCreated) if isinstance(e.event, TopicCreated)
    }
    found = []
    for entry in journal.select(RequestSent):
        sent = entry.event
        assert isinstance(sent, RequestSent)
        if client is not None and client not in (sent.client_id, sent.source):
            continue
        if apis is not None and _bare(sent.api) not in apis:
            continue
        if (since_ms is not None and entry.time_ms < since_ms) or (until_ms is not None and entry.time_ms >= until_ms):
            continue
        found.append(_exchange(entry, sent, answers.get(sent.exchange), topics))
    return Messages(found, journal.origin_ms)


def _answers(journal: Journal) -> dict[int, Entry]:
    """By the exchange that they end."""
    entries = journal.select(ResponseSent)
    return {e.event.exchange: e for e in entries if isinstance(e.event, ResponseSent) and e.event.exchange >= 0}


def _exchange(entry: Entry, sent: RequestSent, answer: Entry | None, topics: Mapping[str, str]) -> Exchange:
    answered = answer.event if answer else None
    assert answered is None or isinstance(answered, ResponseSent)
    return Exchange(
        order=entry.order,
        time_ms=entry.time_ms,
        client=sent.client_id or sent.source,
        broker=sent.target,
        api=_bare(sent.api),
        version=sent.version if 0 <= sent.version < NEWEST_VERSION else None,
        request=_named(sent.body, topics),
        answered_ms=answer.time_ms if answer else None,
        error=answered.error if answered else 0,
        response=_named(answered.body, topics) if answered else None,
    )


def _bare(api: str) -> str:
    return api.removesuffix("Request").removesuffix("Response")


def _named(body: str, topics: Mapping[str, str]) -> Fields:
    """The fields with topics by name instead of by id."""

    def name(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: name(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [name(inner) for inner in value]
        return topics.get(value, value) if isinstance(value, str) else value

    fields: Fields = name(json.loads(body)) if body else {}
    return fields


# ---- showing ---------------------------------------------------------------------------------------------------------


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


def _tree(value: Fields) -> Iterator[str]:
    """A struct on as many lines as it takes: what is within it, and each item of a list of structs, is indented."""
    for name, inner in value.items():
        items = inner if isinstance(inner, list) and any(isinstance(item, Mapping) for item in inner) else None
        if items is not None:
            yield str(name)
            for item in items:
                lines = _tree(item) if isinstance(item, Mapping) else iter([_within(item)])
                yield from (f"{'    ' if number else '  - '}{line}" for number, line in enumerate(lines))
        elif isinstance(inner, Mapping):
            yield str(name)
            yield from (f"  {line}" for line in _tree(inner))
        else:
            yield f"{name} {_within(inner)}"


def _unbroken(text: str) -> Html:
    return Html(f'<span style="white-space: nowrap">{html(text)}</span>')


def _folded(fields: Fields) -> Html:
    """The beginning of a message, to be unfolded where there is more to it."""
    if not fields:
        return Html("–")
    line = _line(fields)
    if len(line) <= SUMMARY_LENGTH and "{" not in line:
        return html(line)
    tree = "\n".join(_tree(fields))
    return Html(f'<details><summary>{html(_short(fields))}</summary><pre style="{_PRE}">{html(tree)}</pre></details>')
