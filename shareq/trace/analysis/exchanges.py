"""Protocol exchanges of a journal: each request with its response.

A cluster or a tap with `trace_messages=True` records them; without it they cost nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Self

from shareq.model.actor import NEWEST_VERSION
from shareq.model.events import BrokerStopped, RequestSent, ResponseSent, TopicCreated
from shareq.trace.analysis.latest import Latest
from shareq.trace.analysis.replay import Replay
from shareq.trace.journal import Entry, Journal

Fields = Mapping[str, Any]

GIVEN_UP_MS = 30_000
"""A request without a response is given up after this time, Kafka's default of request.timeout.ms; it has no event."""


KEPT = 256
"""The number of decoded exchanges that a log keeps: those of the pictures of a moment."""


class Exchange(NamedTuple):
    """A request and its response, which is None until it is sent.

    `client` is the client id, or the name of the connection; `version` is None if both ends are in one process. Fields
    with default values are left out; topic ids are replaced by names. `number` is -1 in journals without numbers;
    `lost`: the broker stopped before it sent the response. `source` is the name of the sending host or connection.
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
    number: int = -1
    source: str = ""
    answered_order: int | None = None
    lost: bool = False

    @property
    def duration_ms(self) -> int | None:
        """Time from request to response, ms; None without a response."""
        return None if self.answered_ms is None else self.answered_ms - self.time_ms


class Call(NamedTuple):
    """An exchange that is not decoded: the entries of its request and of its response, and `lost` as in `Exchange`."""

    request: Entry
    response: Entry | None = None
    lost: bool = False

    @property
    def key(self) -> Hashable:
        """What the content follows from: the places of both messages, and `lost`."""
        return self.request.order, None if self.response is None else self.response.order, self.lost

    @property
    def sent(self) -> RequestSent:
        assert isinstance(self.request.event, RequestSent)
        return self.request.event

    @property
    def api(self) -> str:
        return self.sent.api.removesuffix("Request")

    def is_of(self, client: str | None, apis: Collection[str] | None) -> bool:
        """True if the request is from this client id, connection or broker, and one of these; None matches all."""
        named = client is None or client in (self.sent.client_id, self.sent.source)
        return named and (apis is None or self.api in apis)


class ExchangeLog:
    """The messages of a journal that may still grow; the cost of a span follows the messages in it. Not thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._replay = Replay(_OpenCalls(), lambda state, _, entry: state.apply(entry))
        self._requests: list[Entry] = []
        self._seen = 0
        self.topics: Mapping[str, str] = {}
        """Topic id -> name."""
        self._decoded: Latest[Exchange] = Latest(KEPT)

    def refresh(self) -> None:
        """Read the journal to its end."""
        total = self._journal.total
        if total > self._seen:
            topics = topic_names(self._journal)
            if topics != self.topics:
                self.topics = topics
                self._decoded.clear()
            found = self._journal.between(self._seen, total, _OF_EXCHANGES)
            self._replay.entries += found
            self._requests += [entry for entry in found if type(entry.event) is RequestSent]
            self._seen = total

    def traced(self, until: int) -> bool:
        """True if a request is recorded below order `until`."""
        return bool(self._requests) and self._requests[0].order < until

    def calls(self, since_ms: int | None, until: int) -> list[Call]:
        """The exchanges that are open, sent or answered from `since_ms` on, as recorded below order `until`; in the
        order of their requests."""
        entries, end = self._replay.entries, self._replay.count(until)
        start = 0 if since_ms is None else bisect_left(entries, since_ms, hi=end, key=_time)
        opened = self._replay.state(start).open.values() if start else ()
        before = [call for call in opened if call.request.time_ms >= (since_ms or 0) - GIVEN_UP_MS]
        calls = _Calls(before)
        for entry in entries[start:end]:
            calls.apply(entry)
        lost_before = {call.request.order for call in before if call.lost}
        return [call for call in calls.found if not (call.lost and call.request.order in lost_before)]

    def exchange(self, call: Call) -> Exchange:
        """The decoded exchange of a call; the latest ones are kept."""
        return self._decoded.of(call.key, lambda: decoded(call, self.topics))

    def call(self, number: int | None, until: int) -> Call | None:
        """The exchange with this number as recorded below order `until`; None if there is none. Numbers ascend."""
        requests = self._requests
        place = bisect_left(requests, -1 if number is None else number, key=_number)
        if place == len(requests) or _number(requests[place]) != number or requests[place].order >= until:
            return None
        request, entries = requests[place], self._replay.entries
        calls = _Calls(())
        for entry in entries[self._replay.count(request.order) : self._replay.count(until)]:
            calls.apply(entry)
            if number not in calls.open:
                break
        return calls.found[0]


class _OpenCalls:
    """The requests without a response, by exchange number; without those of killed brokers, and the given up ones. A
    broker that stops in order is recorded as stopped before it has sent its last responses."""

    def __init__(self) -> None:
        self.open: dict[int, Call] = {}

    def copy(self) -> Self:
        other = type(self)()
        other.open = dict(self.open)
        return other

    def apply(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, RequestSent):
            given_up_ms = entry.time_ms - GIVEN_UP_MS
            while self.open and (oldest := next(iter(self.open.items())))[1].request.time_ms < given_up_ms:
                del self.open[oldest[0]]
            self.open[event.exchange] = Call(entry)
        elif isinstance(event, ResponseSent):
            self.open.pop(event.exchange, None)
        elif isinstance(event, BrokerStopped):
            for number, call in list(self.open.items()):
                if _is_to(call.request, event.broker_id):
                    self.open[number] = call._replace(lost=True)
                    if event.killed:
                        del self.open[number]


class _Calls:
    """The calls of a span. `open`: the place of each one that may still be answered, by exchange number."""

    def __init__(self, opened: Iterable[Call]) -> None:
        self.found = list(opened)
        self.open = {call.sent.exchange: place for place, call in enumerate(self.found)}

    def apply(self, entry: Entry) -> None:
        event = entry.event
        if isinstance(event, RequestSent):
            if event.exchange >= 0:
                self.open[event.exchange] = len(self.found)
            self.found.append(Call(entry))
        elif isinstance(event, ResponseSent):
            place = self.open.pop(event.exchange, None)
            if place is not None:
                self.found[place] = self.found[place]._replace(response=entry, lost=False)
        elif isinstance(event, BrokerStopped):
            lost = [n for n, place in self.open.items() if _is_to(self.found[place].request, event.broker_id)]
            for number in lost:
                place = self.open[number]
                self.found[place] = self.found[place]._replace(lost=True)
                if event.killed:
                    del self.open[number]


_OF_EXCHANGES = (RequestSent, ResponseSent, BrokerStopped)


def _time(entry: Entry) -> int:
    return entry.time_ms


def _number(entry: Entry) -> int:
    assert isinstance(entry.event, RequestSent)
    return entry.event.exchange


def _is_to(sent: Entry, broker_id: int) -> bool:
    return isinstance(sent.event, RequestSent) and broker_of(sent.event.target) == broker_id


def broker_of(name: str) -> int | None:
    """The id of the broker with this name, "broker-2", or of the one that a part "broker-2/persister" belongs to; None
    for the name of a client."""
    kind, _, number = name.partition("/")[0].partition("-")
    return int(number) if kind == "broker" and number.isdecimal() else None


def exchanges(
    journal: Journal,
    *,
    client: str | None = None,
    apis: Collection[str] | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> list[Exchange]:
    """The exchanges of a journal in the order of their requests; the arguments are those of `messages`."""
    log = ExchangeLog(journal)
    log.refresh()
    calls = [call for call in log.calls(since_ms, journal.total) if call.is_of(client, apis)]
    names = topic_names(journal)
    return [decoded(call, names) for call in calls if _is_between(call.request.time_ms, since_ms, until_ms)]


def _is_between(time_ms: int, since_ms: int | None, until_ms: int | None) -> bool:
    return (since_ms is None or time_ms >= since_ms) and (until_ms is None or time_ms < until_ms)


def topic_names(journal: Journal) -> Mapping[str, str]:
    """Topic id -> name of all topics that were created."""
    created = (entry.event for entry in journal.select(TopicCreated))
    return {event.topic_id: event.topic for event in created if isinstance(event, TopicCreated)}


def decoded(call: Call, topics: Mapping[str, str]) -> Exchange:
    """The exchange with the fields of its messages; `topics` as of `topic_names`."""
    sent, response = call.sent, call.response
    sent_back = response.event if response else None
    assert sent_back is None or isinstance(sent_back, ResponseSent)
    return Exchange(
        order=call.request.order,
        time_ms=call.request.time_ms,
        client=sent.client_id or sent.source,
        broker=sent.target,
        api=call.api,
        version=sent.version if 0 <= sent.version < NEWEST_VERSION else None,
        request=_with_topic_names(sent.body, topics),
        answered_ms=response.time_ms if response else None,
        error=sent_back.error if sent_back else 0,
        response=_with_topic_names(sent_back.body, topics) if sent_back else None,
        number=sent.exchange,
        source=sent.source,
        answered_order=response.order if response else None,
        lost=call.lost,
    )


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
