"""The content of the messages picture: the newest exchanges before a moment, and their senders and receivers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from shareq.model.events import AuthenticationFailed, AuthorizationDenied
from shareq.trace.analysis.caused_events import caused_events
from shareq.trace.analysis.exchanges import KEPT, Call, Exchange, ExchangeLog, broker_of
from shareq.trace.analysis.latest import Latest
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import event_text
from shareq.trace.views.message_words import MessageWords, message_words
from shareq.trace.views.messages import message_tree
from shareq_widgets import selection
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.messages_filter import SelectedParty, kind_of
from shareq_widgets.pictures.partitions import group_partitions

MOST = 40
"""Number of exchanges that a picture shows at most."""
SPAN_MS = 1_000
SPANS_MS = SPAN_MS, 5_000, 30_000
"""The spans of which a picture shows the first one with enough exchanges."""
ENOUGH = 6
"""The number of exchanges that are enough."""
MOST_REFUSED = 4
"""Number of refusals that a picture shows at most."""
MOST_EARLIER = 12
"""Number of exchanges that a picture shows at most of a longer span than the first one: those of a quiet group."""


class Participant(NamedTuple):
    """A column. `key`: stable; `kind`: member, client, broker or coordinator; `letter` and `colour`: of a member;
    `present`: False for a member that has left, and a broker that is stopped; `about`: its subject, or ""."""

    key: str
    kind: str
    name: str
    letter: str = ""
    colour: str = "soft"
    present: bool = True
    about: str = ""


class ShownExchange(NamedTuple):
    """One exchange. `number`: its key; `source`, `target`: keys of participants; `sent`, `answered`: (order, time ms)
    of the request and its response; `label`, `answer`: in words; `errors`: names of the errors in the response; `lost`:
    the broker stopped before it answered; `last_event`: order of the last event that the request caused, or None."""

    number: int
    api: str
    source: str
    target: str
    sent: tuple[int, int]
    answered: tuple[int, int] | None
    label: str
    answer: str
    errors: tuple[str, ...] = ()
    lost: bool = False
    last_event: int | None = None


class Detail(NamedTuple):
    """The selected exchange: the lines of its messages, and the events that it caused, as sentences."""

    number: int
    title: str
    request: tuple[str, ...]
    response: tuple[str, ...] | None
    events: tuple[str, ...]


class Refusal(NamedTuple):
    """A client that did not get in, or an operation that was denied. `order`: of the event."""

    order: int
    time_ms: int
    text: str


class MessagesContent(NamedTuple):
    """`exchanges` in the order of their requests; `earlier`: number of older ones in the span that are left out;
    `traced`: False if the journal has no messages up to the moment; `refused`: the newest refusals in the span, whether
    messages are traced or not; `silent`: no client has sent a message, as far as the journal has it; `outside`: the
    journal without messages is that of an observer or a tap; `traceable`: its reader can make the cluster record them.
    """

    from_ms: int
    now_ms: int
    origin_ms: int
    traced: bool
    participants: tuple[Participant, ...]
    exchanges: tuple[ShownExchange, ...]
    earlier: int
    detail: Detail | None
    refused: tuple[Refusal, ...] = ()
    silent: bool = False
    outside: bool = False
    traceable: bool = False


def content(
    instant: Instant,
    span_ms: int = SPAN_MS,
    *,
    client: str | None = None,
    apis: Collection[str] | None = None,
    without: Collection[str] = (),
    party: SelectedParty | None = None,
    selected: int | None = None,
    most: int = MOST,
) -> MessagesContent:
    """The exchanges that are open, sent or answered in the last `span_ms` before the moment.

    `client`: only those of this client id, connection or broker; `apis`: only these, such as "ShareFetch"; `without`:
    kinds of requests that are left out, and `party`: only its requests, see `messages_filter`. `selected`: the number
    of the exchange whose messages are shown. `most`: 1 to MOST.
    """
    if not 1 <= most <= MOST:
        raise ValueError(f"most={most}: must be 1..{MOST}")
    if span_ms < 1:
        raise ValueError(f"span_ms={span_ms}: must be 1 or more")
    log = exchange_log(instant)
    from_ms = instant.now_ms - span_ms
    calls = [
        call for call in log.calls(from_ms, instant.until)
        if call.is_of(client, apis) and kind_of(call.api) not in without and (party is None or party.takes_part(call))
    ]  # fmt: skip
    found = [log.exchange(call) for call in calls[-most:]]
    caused = _caused(instant, found, log.topics)
    cast, traced = _Cast(instant, found, everyone=client is None), log.traced(instant.until)
    return MessagesContent(
        from_ms, instant.now_ms, instant.origin_ms, traced,
        cast.participants(), tuple(_shown(instant, one, cast, caused[one.order]) for one in found),
        len(calls) - len(found), _detail(instant, log, log.call(selected, instant.until)), _refused(instant, from_ms),
        not traced and _silent(instant), not traced and group_partitions(instant).observed,
    )  # fmt: skip


def _silent(instant: Instant) -> bool:
    """True if no member has joined and no record was appended up to the moment."""
    topics = instant.history.cluster(instant.until).topics.values()
    return not instant.names.joined(instant.until) and not any(one.log_end for parts in topics for one in parts)


def recent(
    instant: Instant,
    *,
    client: str | None = None,
    apis: Collection[str] | None = None,
    without: Collection[str] = (),
    party: SelectedParty | None = None,
    selected: int | None = None,
    most: int | None = None,
    since_ms: int | None = None,
) -> MessagesContent:
    """The content since a time; None: of the shortest of SPANS_MS that has enough exchanges, else of the longest.

    `most`: None is MOST, or MOST_EARLIER in a longer span than the first one; the other arguments are as in `content`.
    """
    count = MOST if most is None else most
    for span_ms in SPANS_MS if since_ms is None else [max(instant.now_ms - since_ms, 1)]:
        found = content(
            instant, span_ms, client=client, apis=apis, without=without, party=party, selected=selected, most=count
        )
        if len(found.exchanges) >= min(ENOUGH, count):
            break
        count = MOST_EARLIER if most is None else most
    return found


def _caused(instant: Instant, found: Sequence[Exchange], names: Mapping[str, str]) -> dict[int, list[Entry]]:
    """Order of the request -> the entries that it caused so far."""
    if not found:
        return {}
    journal = instant.history.journal
    entries = journal.entries()
    start = max(found[0].order - journal.dropped, 0)
    return caused_events(entries[start : instant.until - journal.dropped], found, names)


def _refused(instant: Instant, from_ms: int) -> tuple[Refusal, ...]:
    """The newest refusals since a time."""
    journal = instant.history.journal
    first = bisect_left(journal.entries(), from_ms, key=lambda entry: entry.time_ms) + journal.dropped
    entries = journal.between(first, instant.until, (AuthenticationFailed, AuthorizationDenied))
    return tuple(
        Refusal(entry.order, entry.time_ms, event_text(entry.broker_id, entry.event, instant.name))
        for entry in entries[-MOST_REFUSED:]
    )


def exchange_log(instant: Instant) -> ExchangeLog:
    """The messages of the journal, up to its end."""
    journal = instant.history.journal
    log = instant.history.kept("messages", lambda: ExchangeLog(journal))
    log.refresh()
    return log


def words_of(instant: Instant, one: Exchange) -> MessageWords:
    """The words of an exchange; those of the latest ones are kept."""
    kept: Latest[MessageWords] = instant.history.kept("message words", lambda: Latest(KEPT))
    return kept.of((one.order, one.answered_order, one.lost), lambda: message_words(one))


def _shown(instant: Instant, one: Exchange, cast: _Cast, caused: Sequence[Entry]) -> ShownExchange:
    words = words_of(instant, one)
    answered = None if one.answered_order is None or one.answered_ms is None else (one.answered_order, one.answered_ms)
    return ShownExchange(
        number_of(one), one.api, cast.source(one), cast.target(one), (one.order, one.time_ms), answered,
        words.request, words.response, words.errors, one.lost,
        caused[-1].order if caused else None,
    )  # fmt: skip


def number_of(one: Exchange) -> int:
    """The number of an exchange; in a journal without numbers a negative one of its own."""
    return one.number if one.number >= 0 else -2 - one.order


def _detail(instant: Instant, log: ExchangeLog, call: Call | None) -> Detail | None:
    if call is None:
        return None
    one = log.exchange(call)
    took = "no response" if one.duration_ms is None else f"{one.duration_ms:,} ms"
    caused = _caused(instant, [one], log.topics)[one.order]
    return Detail(
        one.number,
        f"{one.api}, {one.client} to {one.broker}, {'lost' if one.lost else took}",
        tuple(message_tree(one.request)),
        None if one.response is None else tuple(message_tree(one.response)),
        tuple(event_text(entry.broker_id, entry.event, instant.name) for entry in caused),
    )


class _Cast:
    """The participants of exchanges. A client is a member if its requests name one, or if its id is the name of one."""

    def __init__(self, instant: Instant, found: Iterable[Exchange], *, everyone: bool) -> None:
        self._instant = instant
        self._member_of: dict[str, str] = {}
        found = list(found)
        group, cluster = instant.history.group(instant.until), instant.history.cluster(instant.until)
        self._present = set(group.members)
        self._brokers = cluster.brokers
        for member in group.members.values():
            self._member_of.setdefault(member.client_id, member.member_id)
        for one in found:
            if one.request.get("member_id") and one.request.get("group_id") == group.group_id:
                self._member_of[one.source] = str(one.request["member_id"])
        used = [key for one in found for key in (self.source(one), self.target(one))]
        if everyone and used:
            used += [f"member:{member_id}" for member_id in self._present if instant.letter(member_id) != "?"]
            used += [f"broker:{broker_id}" for broker_id, runs in self._brokers.items() if runs]
        self._keys = sorted(set(used), key=self._place)

    def source(self, one: Exchange) -> str:
        """The key of the participant that sent the request."""
        broker_id = broker_of(one.source)
        if broker_id is not None:
            return f"broker:{broker_id}"
        member_id = one.request.get("member_id") or self._member_of.get(one.source) or self._member_of.get(one.client)
        known = member_id is not None and self._instant.letter(str(member_id)) != "?"
        return f"member:{member_id}" if known else f"client:{one.client}"

    def target(self, one: Exchange) -> str:
        """The key of the participant that handles the request: the share coordinator for the state of share groups."""
        kind = "coordinator" if one.api.endswith(("ShareGroupState", "ShareGroupStateSummary")) else "broker"
        broker_id = broker_of(one.broker)
        return f"client:{one.broker}" if broker_id is None else f"{kind}:{broker_id}"

    def participants(self) -> tuple[Participant, ...]:
        return tuple(map(self._participant, self._keys))

    def _participant(self, key: str) -> Participant:
        kind, _, name = key.partition(":")
        if kind == "member":
            return Participant(
                key, kind, self._instant.name(name), self._instant.letter(name), self._instant.colour(name),
                name in self._present, selection.member(name),
            )  # fmt: skip
        if kind == "client":
            return Participant(key, kind, name)
        shown = f"broker {name}" if kind == "broker" else f"share coordinator {name}"
        runs = self._brokers.get(int(name), True)  # the journal of a tap has no starts of brokers
        return Participant(key, kind, shown, present=runs, about=selection.broker(int(name)))

    def _place(self, key: str) -> tuple[int, int, str]:
        """Members in the order of letters, other clients by name, brokers, share coordinators."""
        kind, _, name = key.partition(":")
        rank = ("member", "client", "broker", "coordinator").index(kind)
        if kind == "member":
            return rank, self._instant.names.member(name).place, name
        return rank, int(name) if kind in ("broker", "coordinator") else 0, name
