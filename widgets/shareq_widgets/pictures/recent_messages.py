"""The messages between clients and brokers that were exchanged since a moment, or are in flight, newest last."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from shareq.trace.analysis.exchanges import GIVEN_UP_MS, Call, Exchange, broker_of
from shareq.trace.journal import Entry
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.messages_content import exchange_log, number_of, words_of

MAX_MESSAGES: Final = 20

MessageKind = Literal["request", "response"]


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
    kind: MessageKind
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
    """The newest messages with an order in [since, instant.until), and older requests in flight; 20 together.

    Messages that are older than GIVEN_UP_MS are left out.
    """
    log = exchange_log(instant)
    oldest_ms = instant.now_ms - GIVEN_UP_MS
    found: list[tuple[int, MessageKind, Call]] = []
    for call in log.calls(max(_time_of(instant, since), oldest_ms), instant.until):
        if _is_new(call.request, since, oldest_ms) or _in_flight(call, oldest_ms):
            found.append((call.request.order, "request", call))
        if call.response is not None and _is_new(call.response, since, oldest_ms):
            found.append((call.response.order, "response", call))
    found.sort(key=lambda one: one[0])
    messages = [
        _message(instant, kind, log.exchange(call), in_flight=_in_flight(call, oldest_ms))
        for _, kind, call in found[-MAX_MESSAGES:]
    ]
    return RecentMessages(tuple(messages), log.traced(instant.until))


def _time_of(instant: Instant, since: int) -> int:
    """The time of the entry with this order; after the last entry, the displayed time."""
    entries, place = instant.history.journal.entries(), since - instant.history.journal.dropped
    return entries[max(place, 0)].time_ms if place < len(entries) else instant.now_ms


def _is_new(entry: Entry, since: int, oldest_ms: int) -> bool:
    return entry.order >= since and entry.time_ms >= oldest_ms


def _in_flight(call: Call, oldest_ms: int) -> bool:
    return call.response is None and not call.lost and call.request.time_ms > oldest_ms


def _message(instant: Instant, kind: MessageKind, one: Exchange, *, in_flight: bool) -> MessageContent:
    client, broker = _client(instant, one), _broker(one.broker)
    message = words_of(instant, one)
    if kind == "request":
        lost = one.response is None and not in_flight
        words = message.request + (", lost" if lost else "")
        return MessageContent(number_of(one), kind, client, broker, one.api, words, one.time_ms, in_flight=in_flight)
    error = next(iter(message.errors), "")
    time_ms = one.time_ms if one.answered_ms is None else one.answered_ms
    return MessageContent(number_of(one), kind, broker, client, one.api, message.response, time_ms, error)


def _client(instant: Instant, one: Exchange) -> Party:
    """The sender of the request: a broker; a member, by its id in the request or by its client id; a client."""
    if broker_of(one.source) is not None:
        return _broker(one.source)
    group = instant.history.group(instant.until)
    member_id = one.request.get("member_id") if one.request.get("group_id") == group.group_id else None
    if not member_id:
        of_client = [member.member_id for member in group.members.values() if member.client_id == one.client]
        member_id = of_client[0] if len(of_client) == 1 else None
    if member_id:
        return Party("member", str(member_id), instant.letter(str(member_id)))
    return Party("client", one.client, one.client)


def _broker(name: str) -> Party:
    number = broker_of(name)
    return Party("client", name, name) if number is None else Party("broker", str(number), f"broker {number}")
