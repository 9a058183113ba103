"""Protocol exchanges of a journal: each request with its response.

A cluster with `trace_messages=True` records them; without it they cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from shareq.model.actor import NEWEST_VERSION
from shareq.model.events import RequestSent, ResponseSent, TopicCreated
from shareq.trace.journal import Entry, Journal

Fields = Mapping[str, Any]


class Exchange(NamedTuple):
    """A request and its response, which is None until it is sent.

    `client` is the client id, or the name of the connection; `version` is None if both ends are in one process. Fields
    with default values are left out; topic ids are replaced by names.
    """

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
        """Time from request to response, ms; None without a response."""
        return None if self.answered_ms is None else self.answered_ms - self.time_ms


def exchanges(
    journal: Journal,
    *,
    client: str | None = None,
    apis: Collection[str] | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> list[Exchange]:
    """The exchanges of a journal in the order of their requests; the arguments are those of `messages`."""
    responses = _responses(journal)
    topics = {
        e.event.topic_id: e.event.topic for e in journal.select(TopicCreated) if isinstance(e.event, TopicCreated)
    }
    found = []
    for entry in journal.select(RequestSent):
        sent = entry.event
        assert isinstance(sent, RequestSent)
        if client is not None and client not in (sent.client_id, sent.source):
            continue
        if apis is not None and _api_of(sent.api) not in apis:
            continue
        if (since_ms is not None and entry.time_ms < since_ms) or (until_ms is not None and entry.time_ms >= until_ms):
            continue
        found.append(_exchange(entry, sent, responses.get(sent.exchange), topics))
    return found


def _responses(journal: Journal) -> dict[int, Entry]:
    """The entries of responses by exchange number."""
    entries = journal.select(ResponseSent)
    return {e.event.exchange: e for e in entries if isinstance(e.event, ResponseSent) and e.event.exchange >= 0}


def _exchange(entry: Entry, sent: RequestSent, response: Entry | None, topics: Mapping[str, str]) -> Exchange:
    sent_back = response.event if response else None
    assert sent_back is None or isinstance(sent_back, ResponseSent)
    return Exchange(
        order=entry.order,
        time_ms=entry.time_ms,
        client=sent.client_id or sent.source,
        broker=sent.target,
        api=_api_of(sent.api),
        version=sent.version if 0 <= sent.version < NEWEST_VERSION else None,
        request=_with_topic_names(sent.body, topics),
        answered_ms=response.time_ms if response else None,
        error=sent_back.error if sent_back else 0,
        response=_with_topic_names(sent_back.body, topics) if sent_back else None,
    )


def _api_of(api: str) -> str:
    return api.removesuffix("Request").removesuffix("Response")


def _with_topic_names(body: str, topics: Mapping[str, str]) -> Fields:
    """The fields of a message, with topic ids replaced by names."""

    def name(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: name(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [name(inner) for inner in value]
        return topics.get(value, value) if isinstance(value, str) else value

    fields: Fields = name(json.loads(body)) if body else {}
    return fields
