"""The acquisition locks of a group: held since when, renewed, until when; and those that have just ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Final, Literal, NamedTuple

from shareq.model.states import RETURNING, RecordState
from shareq.trace.analysis.locks import LEADER_LOST, TOPIC_GONE, EndedLock, Lock
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.journal.event_text import count_text, range_text
from shareq.trace.journal.record_words import WORDS
from shareq_widgets.holder import Holder, holder_of
from shareq_widgets.instant import Instant
from shareq_widgets.look import LOCK_ALARM
from shareq_widgets.svg import seconds_left
from shareq_widgets.time_scale import duration_text, time_text

By = Literal["holder", "record"]

ROWS: Final = 12
RECENT_MS: Final = 5_000
ENDED_ROWS: Final = 3
"""The rows that ended locks may take from held ones."""

ENDINGS: Final[dict[str, str]] = {event: words.lock or words.past for event, words in WORDS.items()} | {
    LEADER_LOST: "leader lost",
    TOPIC_GONE: "topic deleted",
}


class LockRow(NamedTuple):
    """Contiguous records [first, end) of one holder, acquired and locked together. Times are ms since the epoch; None:
    not known.

    `renewals`: the times of the latest of `renewed` renewals. `writing`: the acknowledgement whose state write is under
    way. `ended_ms`, `ended`, `state`: when and how the lock ended, and the state of the records since then.
    """

    key: str
    holder: Holder
    topic: str
    partition: int
    first: int
    end: int
    delivery_count: int
    delivery_count_limit: int
    acquired_ms: int | None
    deadline_ms: int | None
    duration_ms: int
    renewed: int = 0
    renewals: tuple[int, ...] = ()
    writing: str = ""
    ended_ms: int | None = None
    ended: str = ""
    state: RecordState = RecordState.ACQUIRED

    def left_ms(self, now_ms: int) -> int | None:
        """The time left, not below 0; None if the deadline is not known."""
        return None if self.deadline_ms is None else max(self.deadline_ms - now_ms, 0)

    def urgent(self, now_ms: int) -> bool:
        """True for a held lock with less than one LOCK_ALARM-th of its duration left."""
        left = self.left_ms(now_ms)
        return left is not None and self.ended_ms is None and left * LOCK_ALARM < self.duration_ms

    @property
    def last_attempt(self) -> bool:
        return self.delivery_count >= self.delivery_count_limit


class LocksContent(NamedTuple):
    """`rows`: the held locks, most urgent first; `ended`: those that ended after now - recent, latest first.

    `locks`, `records`: all that are held. `more`: the held rows without a place, `more_deadline_ms` the first of their
    deadlines. `several`: True if there is more than one share-partition to tell apart.
    """

    group_id: str
    by: By
    now_ms: int
    origin_ms: int
    rows: tuple[LockRow, ...]
    ended: tuple[LockRow, ...]
    locks: int
    records: int
    more: int
    more_deadline_ms: int | None
    several: bool
    observed: bool


class _Found(NamedTuple):
    """The locks of one share-partition."""

    state: SharePartitionState
    held: list[Lock]
    ended: list[EndedLock]


def content(
    instant: Instant,
    by: By = "holder",
    *,
    topic: str | None = None,
    partition: int | None = None,
    recent_ms: int = RECENT_MS,
    rows: int = ROWS,
) -> LocksContent:
    """The locks of all share-partitions of the group, or of one topic or partition. ValueError for a bad argument.

    `by`: a row for each range of records that a member holds, or for each record. At most `rows` rows.
    """
    _check(by, recent_ms, rows)
    wanted = [
        place
        for place in instant.history.share_partitions(instant.until)
        if topic in (None, place[0]) and partition in (None, place[1])
    ]
    found = [_found(instant, *place, recent_ms) for place in wanted]
    every = [(lock, one.state) for one in found for lock in one.held]
    held = nsmallest(rows + 1, every, key=_urgency)
    ended = sorted(((lock, one.state) for one in found for lock in one.ended), key=lambda pair: -pair[0].ended_ms)
    records = sum(lock.end - lock.first for lock, _ in every)
    total = records if by == "record" else len(every)
    places = max(rows - min(ENDED_ROWS, len(ended)), 1)
    shown = [_row(instant, lock, state) for lock, state in islice(_parts(held, by), places)]
    hidden = next(islice(_parts(held, by), places, None), None)
    past: dict[str, LockRow] = {}
    for end, state in ended[: rows - len(shown)]:
        row = _row(instant, end.lock, state, end)
        past.setdefault(row.key, row)
    return LocksContent(
        instant.history.group_id,
        by,
        instant.now_ms,
        instant.origin_ms,
        tuple(shown),
        tuple(past.values()),
        len(every),
        records,
        total - len(shown),
        hidden[0].deadline_ms if hidden else None,
        len(wanted) > 1,
        any(one.state.uncertain for one in found),
    )


def _check(by: str, recent_ms: int, rows: int) -> None:
    if by not in ("holder", "record"):
        raise ValueError(f"by={by!r}: must be 'holder' or 'record'")
    if recent_ms < 0:
        raise ValueError(f"recent_ms={recent_ms!r}: must be at least 0")
    if rows < 1:
        raise ValueError(f"rows={rows!r}: must be at least 1")


def _found(instant: Instant, topic: str, partition: int, recent_ms: int) -> _Found:
    history = instant.history
    since_ms = instant.now_ms - recent_ms
    fold = history.locks(topic, partition, instant.until, since_ms)
    state = history.share_partition(topic, partition, instant.until)
    held = list(_observed(state, fold.held)) if state.observed else fold.held
    return _Found(state, held, fold.ended(since_ms))


def _observed(state: SharePartitionState, reported: list[Lock]) -> Iterator[Lock]:
    """The deliveries that members have reported and that no later durable state contradicts."""
    for lock in reported:
        for first, end, status in state.runs.overlap(lock.first, lock.end):
            if (status.member_id, status.delivery_count) == (lock.member_id, lock.delivery_count):
                yield lock._replace(first=first, end=end)


Held = tuple[Lock, SharePartitionState]


def _urgency(held: Held) -> tuple[bool, int, str, int, int]:
    lock, state = held
    return lock.deadline_ms is None, lock.deadline_ms or 0, state.topic, state.partition, lock.first


def _parts(held: Iterable[Held], by: By) -> Iterator[Held]:
    """The locks, or each of their records as a lock of its own."""
    for lock, state in held:
        if by == "holder":
            yield lock, state
        else:
            for offset in range(lock.first, lock.end):
                yield lock._replace(first=offset, end=offset + 1), state


def _row(instant: Instant, lock: Lock, state: SharePartitionState, ended: EndedLock | None = None) -> LockRow:
    where = f"{state.topic}-{state.partition}"
    row = LockRow(
        f"{where} {lock.first}.{lock.delivery_count}@{lock.acquired_ms}",
        holder_of(instant, lock.member_id),
        state.topic,
        state.partition,
        lock.first,
        lock.end,
        lock.delivery_count,
        state.delivery_count_limit,
        lock.acquired_ms,
        lock.deadline_ms,
        lock.duration_ms or state.lock_duration_ms,
        lock.renewed,
        lock.renewals,
        lock.write,
    )
    if ended is None:
        return row
    used_up = ended.how in RETURNING and ended.state is RecordState.ARCHIVED
    how = ENDINGS[ended.how] + (", archived" if used_up else "") + (", inferred" if ended.inferred else "")
    return row._replace(ended_ms=ended.ended_ms, ended=how, state=ended.state)


# ---- words -----------------------------------------------------------------------------------------------------------


def words(content: LocksContent) -> str:
    """The picture in words, one line for each row."""
    head = f"{count_text(content.locks, 'lock')} on {count_text(content.records, 'record')}" if content.locks else ""
    head = head or nothing_held(content).capitalize()
    lines = [f"{head} at {time_text(content.now_ms - content.origin_ms, 1)}"]
    lines += [row_words(row, content) for row in (*content.rows, *content.ended)]
    if content.more:
        lines.append(more_words(content) + _countdown_words(content.more_deadline_ms, content.now_ms))
    return "\n".join(lines)


def nothing_held(content: LocksContent) -> str:
    """The words of a picture without locks: an observer knows the holders of its own process only."""
    return "no holder is known" if content.observed else "no record is held"


def _countdown_words(deadline_ms: int | None, now_ms: int) -> str:
    return "" if deadline_ms is None else f" {seconds_left(deadline_ms - now_ms)}"


def more_words(content: LocksContent) -> str:
    """The rows without a place; the seconds until the next one ends follow, if its deadline is known."""
    thing = "lock" if content.by == "holder" else "locked record"
    when = "" if content.more_deadline_ms is None else ", the next ends in"
    return f"and {content.more:,} more {thing}{'' if content.more == 1 else 's'}{when}"


def row_words(row: LockRow, content: LocksContent) -> str:
    """A row as a sentence."""

    def at(ms: int | None) -> str:
        return "a time before the journal begins" if ms is None else time_text(ms - content.origin_ms, 1)

    absence = {"crashed": ", whose program has ended,", "frozen": ", which is frozen,"}.get(row.holder.fault, "")
    absence = absence if row.holder.alive else ", no longer in the group,"
    holder = f"{row.holder.letter} {row.holder.name}{absence} {'holds' if row.ended_ms is None else 'held'}"
    parts = [f"{holder} {row.topic}-{row.partition} {range_text(row.first, row.end)} since {at(row.acquired_ms)}"]
    if row.renewed:
        times = {1: "once", 2: "twice"}.get(row.renewed, f"{row.renewed:,} times")
        parts.append(f"renewed {times}, last at {at(row.renewals[-1])}")
    last = ", the last one" if row.last_attempt else ""
    parts.append(f"delivery {row.delivery_count} of {row.delivery_count_limit}{last}")
    if row.writing:
        parts.append(f"writing {row.writing.replace('_', ' ')}")
    left = row.left_ms(content.now_ms)
    if row.ended_ms is not None:
        parts.append(f"{row.ended} {duration_text(content.now_ms - row.ended_ms)} ago")
    else:
        parts.append("its deadline is not known" if left is None else f"{seconds_left(left)} left")
    return ", ".join(parts)
