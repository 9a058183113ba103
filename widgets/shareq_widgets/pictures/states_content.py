"""The record's state machine: counts at the nodes, records as tokens on the edges, refused acknowledgements as bounces.

The edges are those of the transition table. Tokens show the transitions since an earlier moment; a record with a state
write under way waits half way, because the write's destination counts only when the write has settled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Literal, NamedTuple

from shareq.model.errors import Errors
from shareq.model.events import AcknowledgementRefused
from shareq.model.states import TERMINAL, TRANSITIONS, RecordEvent, RecordState
from shareq.trace.analysis.record_moves import SOURCES, Move
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.state_arrows import arrows
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import count_text
from shareq.trace.views.palette import STATES, UNKNOWNS
from shareq_widgets.instant import Instant

LATELY_MS: Final = 1_000
"""The time in which records count as done lately; without `since` tokens show its transitions."""

MOVING_ENTRIES: Final = 1_000
"""Transitions further back than this number of the journal's entries are left out: a jump across a long recording
shows its end."""

TOKENS: Final = 6
"""The newest tokens of an edge; further records are only counted."""

BOUNCES: Final = 2

MEANINGS: Final[dict[str, str]] = {
    "INVALID_RECORD_STATE": "only its holder may, and only once",
    "INVALID_REQUEST": "never fetched, or an unknown type",
}
"""The errors of refused acknowledgements in one phrase."""

Kind = Literal["moved", "writing", "failed"]

_Way = tuple[RecordState, RecordState, bool]
"""Source and target of an arrow, and whether it is taken only at the delivery limit."""


class Token(NamedTuple):
    """The records [first, end) on an edge: they have travelled along it, wait half way for a state write, or are back
    at its start because the write failed."""

    kind: Kind
    topic: str
    partition: int
    first: int
    end: int
    event: str
    delivery_count: int
    member_id: str | None

    @property
    def key(self) -> str:
        """The same before and after the write has settled: the token then goes on from half way."""
        failed = "failed " if self.kind == "failed" else ""
        return f"{failed}token {self.topic}-{self.partition} {self.first} {self.delivery_count} {self.event}"


class Edge(NamedTuple):
    """An arrow of the state machine with what is on it: numbers of records, and the newest of them as tokens."""

    source: str
    target: str
    events: tuple[str, ...]
    at_limit: bool
    moved: int
    writing: int
    failed: int
    tokens: tuple[Token, ...]


class Bounce(NamedTuple):
    """A refused acknowledgement. `meaning` is empty for an error that has no phrase."""

    order: int
    topic: str
    partition: int
    member_id: str
    error: str
    meaning: str


class StatesContent(NamedTuple):
    """Everything that the picture says.

    `counts`: state -> records in the windows, without `uncertain`: state ("returned", "unknown") -> observed records
    that are available or held by a member that reports no deliveries. `done`: records that became terminal in the last
    second; None if that is not known. `not_loaded`: share-partitions that no leader has in memory. `bounces`: the
    newest ones of `refused`. `letters`: member id -> letter and colour of the members of tokens and bounces.
    """

    group_id: str
    scope: str
    share_partitions: int
    not_loaded: int
    observed: bool
    disturbed: str
    counts: dict[str, int]
    uncertain: dict[str, int]
    done: int | None
    edges: tuple[Edge, ...]
    refused: int
    bounces: tuple[Bounce, ...]
    letters: dict[str, tuple[str, str]]

    @property
    def window(self) -> int:
        """The records in the windows."""
        return sum(self.counts.values()) + sum(self.uncertain.values())


def content(
    instant: Instant, since: int | None = None, *, topic: str | None = None, partition: int | None = None
) -> StatesContent:
    """The record states of the whole group, of one topic, or of one share-partition.

    `since`: the moment that was displayed before; tokens and bounces are what happened after it. None: one second ago.
    """
    history, until = instant.history, instant.until
    lately = min(history.journal.until(instant.now_ms - LATELY_MS), until)
    begin = max(lately if since is None else since, until - MOVING_ENTRIES)
    found = [
        place
        for place in history.share_partitions(until)
        if topic in (None, place[0]) and partition in (None, place[1])
    ]
    counts, uncertain = Counter[str](), Counter[str]()
    moves: list[Move] = []
    refused: list[Entry] = []
    writing: list[tuple[_Way, Token]] = []
    observed, not_loaded, disturbed = False, 0, ""
    for place in found:
        happened = history.moves(*place).between(min(begin, max(lately, until - MOVING_ENTRIES)), until)
        moves += happened.moves
        refused += [entry for entry in happened.refused if entry.order >= begin]
        state = history.share_partition(*place, until)
        observed, disturbed = observed or state.uncertain, disturbed or state.disturbed
        if state.loaded or state.observed:
            _count(state, counts, uncertain)
            writing += _writing(state)
        else:
            not_loaded += 1
    moves.sort()
    refused.sort()
    edges = tuple(_edges([move for move in moves if move.order >= begin], writing))
    bounces = tuple(map(_bounce, refused[-BOUNCES:]))
    shown = {token.member_id for edge in edges for token in edge.tokens} | {bounce.member_id for bounce in bounces}
    return StatesContent(
        history.group_id,
        _scope(found, topic, partition),
        len(found),
        not_loaded,
        observed,
        disturbed,
        {state: counts[state] for state in STATES if counts[state] or state != "archiving" or _touched(state, edges)},
        {state: uncertain[state] for state in UNKNOWNS if uncertain[state]},
        None if observed else _done(moves, instant.now_ms),
        edges,
        len(refused),
        bounces,
        {member: (instant.letter(member), instant.colour(member)) for member in sorted(filter(None, shown))},
    )


def _scope(found: list[tuple[str, int]], topic: str | None, partition: int | None) -> str:
    """What is counted, in words."""
    if topic is not None and partition is not None:
        return f"{topic}-{partition}"
    return (
        f"{topic}, {count_text(len(found), 'share-partition')}" if topic else count_text(len(found), "share-partition")
    )


def _touched(state: str, edges: Iterable[Edge]) -> bool:
    """True if records have just moved to the state or from it."""
    return any(state in (edge.source, edge.target) and (edge.moved or edge.writing or edge.failed) for edge in edges)


def _count(state: SharePartitionState, counts: Counter[str], uncertain: Counter[str]) -> None:
    for first, end, status in state.runs:
        (counts if status.known else uncertain)[status.name] += end - first


def _done(moves: Iterable[Move], now_ms: int) -> int:
    recent = [move for move in moves if move.time_ms > now_ms - LATELY_MS and move.target in TERMINAL]
    return sum(move.end - move.first for move in recent if not move.failed)


def _writing(state: SharePartitionState) -> Iterable[tuple[_Way, Token]]:
    """The records whose state write is under way."""
    where = (state.topic, state.partition)
    for first, end, status in state.runs:
        if status.to_state is not None and status.why is not None and not status.staged:
            source = SOURCES[status.why]
            way = (source, status.to_state, TRANSITIONS[source, RecordEvent(status.why)] is not status.to_state)
            yield way, Token("writing", *where, first, end, status.why, status.delivery_count, status.member_id)


# ---- edges -----------------------------------------------------------------------------------------------------------


def _edges(moves: Iterable[Move], writing: Iterable[tuple[_Way, Token]]) -> Iterator[Edge]:
    """All arrows of the transition table with their newest tokens, in order of the moves."""
    moved: defaultdict[_Way, list[Move]] = defaultdict(list)
    for move in moves:
        moved[move.source, move.target, move.at_limit].append(move)
    written: defaultdict[_Way, list[Token]] = defaultdict(list)
    for way, token in writing:
        written[way].append(token)
    for arrow in arrows():
        way = arrow.source, arrow.target, arrow.at_limit
        yield Edge(
            arrow.source.name.lower(),
            arrow.target.name.lower(),
            tuple(arrow.events),
            arrow.at_limit,
            sum(move.end - move.first for move in moved[way] if not move.failed),
            sum(token.end - token.first for token in written[way]),
            sum(move.end - move.first for move in moved[way] if move.failed),
            _newest(chain(reversed(written[way]), map(_token, reversed(moved[way])))),
        )


def _token(move: Move) -> Token:
    _, _, topic, partition, first, end, _, _, event, count, member_id, failed = move
    return Token("failed" if failed else "moved", topic, partition, first, end, event, count, member_id)


def _newest(latest_first: Iterable[Token]) -> tuple[Token, ...]:
    """The newest tokens, the last one last. Neighbouring ranges that travelled one after the other are one token; a
    repeated one stands at its last place."""
    found: dict[str, Token] = {}
    for token in _joined(latest_first):
        found.setdefault(token.key, token)
        if len(found) == TOKENS:
            break
    return tuple(reversed(found.values()))


def _joined(latest_first: Iterable[Token]) -> Iterator[Token]:
    joined: Token | None = None
    for token in latest_first:
        if joined is None:
            joined = token
        elif token.end == joined.first and token._replace(end=joined.end) == joined._replace(first=token.first):
            joined = joined._replace(first=token.first)
        else:
            yield joined
            joined = token
    if joined is not None:
        yield joined


def _bounce(entry: Entry) -> Bounce:
    event = entry.event
    assert isinstance(event, AcknowledgementRefused)
    error = Errors(event.error).name
    return Bounce(entry.order, event.topic, event.partition, event.member_id, error, MEANINGS.get(error, ""))
