"""The messages between clients and brokers that were exchanged since a moment, or are in flight, newest last."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from shareq.model.errors import Errors
from shareq.model.events import BrokerStopped, RequestSent, ResponseSent
from shareq.trace.journal import Entry, Subject
from shareq.trace.journal.event_text import count_text, range_text
from shareq_widgets.instant import Instant

MAX_MESSAGES: Final = 20
LOOK_BACK: Final = 4_000
"""The number of messages among which those in flight are found."""
GIVEN_UP_MS: Final = 30_000
"""A request without a response is given up after this time, Kafka's default of request.timeout.ms; no event says so."""


Fate = Literal["answered", "in flight", "lost"]
"""What has become of a request. lost: its broker stopped, or it was given up."""


class Party(NamedTuple):
    """A sender or receiver. `identity`: the broker id, the member id, or the name of another client."""

    kind: Literal["broker", "member", "client"]
    identity: str
    name: str

    @property
    def key(self) -> str:
        return f"{self.kind} {self.identity}"


class MessageContent(NamedTuple):
    """A request or a response. `in_flight`: a request without a response so far. `error` is "" without one."""

    exchange: int
    kind: Literal["request", "response"]
    source: Party
    target: Party
    api: str
    words: str
    time_ms: int
    error: str = ""
    in_flight: bool = False

    @property
    def key(self) -> str:
        return f"message {self.exchange} {self.kind}"

    @property
    def text(self) -> str:
        waiting = ", no response yet" if self.in_flight else ""
        return f"{self.source.name} → {self.target.name}: {self.words}{waiting}"


class RecentMessages(NamedTuple):
    """`traced`: the journal has messages before the moment."""

    messages: tuple[MessageContent, ...]
    traced: bool


def recent_messages(instant: Instant, since: int) -> RecentMessages:
    """The newest messages with an order in [since, instant.until), and older requests in flight; 20 together."""
    found = _Search(instant, since)
    entries = instant.history.journal.about(Subject())
    end = bisect_left(entries, instant.until, key=_order)
    for entry in reversed(entries[max(end - LOOK_BACK, 0) : end]):
        if not found.add(entry):
            break
    return RecentMessages(tuple(found.message(*one) for one in reversed(found.kept)), found.traced)


class _Search:
    """Takes entries from the newest to the oldest."""

    def __init__(self, instant: Instant, since: int) -> None:
        self._instant = instant
        self._since = since
        self._oldest_ms = instant.now_ms - GIVEN_UP_MS
        self._answered: set[int] = set()
        self._stopped: set[str] = set()
        self._requests: dict[int, RequestSent] = {}
        self.kept: list[tuple[Entry, Fate]] = []
        self.traced = False

    def add(self, entry: Entry) -> bool:
        """False if no older entry can be of interest."""
        event = entry.event
        if isinstance(event, BrokerStopped):
            self._stopped.add(f"broker-{event.broker_id}")
        elif isinstance(event, ResponseSent):
            self.traced = True
            self._answered.add(event.exchange)
            self._keep(entry, "answered")
        elif isinstance(event, RequestSent):
            self.traced = True
            self._requests[event.exchange] = event
            self._keep(entry, self._fate(entry, event))
        return entry.order >= self._since or entry.time_ms > self._oldest_ms

    def _fate(self, entry: Entry, event: RequestSent) -> Fate:
        if event.exchange in self._answered:
            return "answered"
        return "lost" if event.target in self._stopped or entry.time_ms <= self._oldest_ms else "in flight"

    def _keep(self, entry: Entry, fate: Fate) -> None:
        if len(self.kept) < MAX_MESSAGES and (fate == "in flight" or entry.order >= self._since):
            self.kept.append((entry, fate))

    def message(self, entry: Entry, fate: Fate) -> MessageContent:
        event = entry.event
        assert isinstance(event, (RequestSent, ResponseSent))
        request = event if isinstance(event, RequestSent) else self._requests.get(event.exchange)
        client = self._client(request, event)
        fields = json.loads(event.body) if event.body else {}
        if isinstance(event, RequestSent):
            api = event.api.removesuffix("Request")
            words = request_words(api, fields) + (", lost" if fate == "lost" else "")
            way = client, _broker(event.target)
            return MessageContent(
                event.exchange, "request", *way, api, words, entry.time_ms, in_flight=fate == "in flight"
            )
        api, error = event.api.removesuffix("Response"), Errors(event.error).name if event.error else _error(fields)
        words = error or response_words(api, fields)
        return MessageContent(
            event.exchange, "response", _broker(event.source), client, api, words, entry.time_ms, error
        )

    def _client(self, request: RequestSent | None, event: RequestSent | ResponseSent) -> Party:
        """The sender of the request: a broker; a member, by its id in the request or by its client id; a client."""
        name = event.source if isinstance(event, RequestSent) else event.target
        if name.startswith("broker-"):
            return _broker(name)
        client_id = request.client_id if request else ""
        body: Mapping[str, Any] = json.loads(request.body) if request and request.body else {}
        members = self._instant.history.group(self._instant.until).members
        member_id = body.get("member_id", "")
        if self._instant.letter(member_id) == "?":
            of_client = [member for member in members if members[member].client_id == client_id]
            member_id = of_client[0] if len(of_client) == 1 else ""
        if member_id:
            return Party("member", member_id, self._instant.letter(member_id))
        return Party("client", client_id or name, client_id or name)


def _broker(name: str) -> Party:
    """The broker of a name such as "broker-1" or "broker-1/persister"."""
    number = name.partition("/")[0].removeprefix("broker-")
    return Party("broker", number, f"broker {number}")


def _order(entry: Entry) -> int:
    return entry.order


# ---- words -----------------------------------------------------------------------------------------------------------

_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?: (\S+)")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_VERBS: Final = {
    "ShareFetch": "fetch",
    "ShareAcknowledge": "acknowledge",
    "WriteShareGroupState": "write state",
    "ReadShareGroupState": "read state",
    "InitializeShareGroupState": "initialize state",
}


def request_words(api: str, fields: Mapping[str, Any]) -> str:
    """A request in a few words."""
    if api.endswith("GroupHeartbeat"):
        return {0: "join", -1: "leave"}.get(fields.get("member_epoch", 1), "heartbeat")
    verb = _VERBS.get(api, _CAPITAL.sub(" ", api).lower())
    acknowledged = _ranges(fields, "acknowledgement_batches")
    if not acknowledged:
        return verb
    first, last, kind = acknowledged[0]
    more = f" and {count_text(len(acknowledged) - 1, 'range')} more" if len(acknowledged) > 1 else ""
    words = f"{kind.lower()} {range_text(first, last + 1)}{more}"
    return words if api == "ShareAcknowledge" else f"{verb}, {words}"


def response_words(api: str, fields: Mapping[str, Any]) -> str:
    """A response without an error in a few words."""
    if api != "ShareFetch":
        return "ok"
    acquired = _ranges(fields, "acquired_records")
    if not acquired:
        return "no records"
    count = sum(last - first + 1 for first, last, _ in acquired)
    first, last, _ = acquired[0]
    return f"got {range_text(first, last + 1) if len(acquired) == 1 else count_text(count, 'record')}"


def _ranges(value: Any, name: str) -> list[tuple[int, int, str]]:
    """First offset, last offset and the word of each range in the lists with this name."""
    if isinstance(value, list):
        return [found for inner in value for found in _ranges(inner, name)]
    if not isinstance(value, dict):
        return []
    matches = [_RANGE.match(str(item)) for item in value.get(name, ())]
    own = [(int(found[1]), int(found[2] or found[1]), found[3]) for found in matches if found]
    return own + [found for key, inner in value.items() if key != name for found in _ranges(inner, name)]


def _error(value: Any) -> str:
    """The first error of a topic, a partition or a coordinator; "" without one."""
    if isinstance(value, list):
        return next((error for error in map(_error, value) if error), "")
    if not isinstance(value, dict):
        return ""
    return str(value.get("error_code", "")) or _error(list(value.values()))
