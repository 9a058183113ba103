"""The chapters of a record's life: from the append, through waits, deliveries and leaders, to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from shareq.model.errors import Errors
from shareq.model.states import ABANDONED, PREPARED, RETURNING, STAGED, TXN_COMMIT, RecordEvent, RecordState
from shareq.trace.analysis.record_history import (
    APPENDED,
    DELIVERED,
    DURABLE,
    IN_QUEUE,
    KILLED,
    LOADED,
    MEMBER_LEFT,
    NOT_IN_QUEUE,
    PASSED,
    QUEUE_AWAITED,
    REMOVED,
    STOPPED,
    UNLOADED,
    Config,
    RecordChange,
    lost_deliveries,
)
from shareq.trace.journal.event_text import count_text
from shareq.trace.journal.record_words import WORDS
from shareq_widgets.holder import Holder, holder_of
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.record_place import delivery_text
from shareq_widgets.time_scale import duration_text, time_text

NO_LEADER: Final = "no leader"

DETAILS: Final = 8


class Chapter(NamedTuple):
    """A stretch of a record's life in one state. Times are ms since the epoch; `end_ms` None: it goes on.

    `state` None: not in flight, or not known. `holder`, `deadline_ms`, `renewals`, `config`, `last_attempt`: of a
    delivery. `alarms`: the details that need attention, a failed state write and what was lost with a leader.
    """

    key: str
    start_ms: int
    end_ms: int | None
    state: RecordState | None
    title: str
    details: tuple[str, ...] = ()
    holder: Holder | None = None
    delivery_count: int = 0
    deadline_ms: int | None = None
    renewals: tuple[int, ...] = ()
    config: Config | None = None
    last_attempt: bool = False
    alarms: tuple[str, ...] = ()


def chapters(instant: Instant, changes: list[RecordChange]) -> tuple[Chapter, ...]:
    """The chapters that these changes make, in order. Waits without a duration are left out."""
    story = _Story(instant)
    for change in changes:
        story.add(change)
    chapters, last = story.chapters, len(story.chapters) - 1
    kept = [chapter for place, chapter in enumerate(chapters) if place in (0, last) or _counts(chapter)]
    return tuple(chapter._replace(details=_shortened(chapter.details)) for chapter in kept)


def _counts(chapter: Chapter) -> bool:
    return chapter.start_ms != chapter.end_ms or chapter.holder is not None or chapter.title == NO_LEADER


def _shortened(details: tuple[str, ...]) -> tuple[str, ...]:
    """At most DETAILS of the details: the first ones and the last ones."""
    if len(details) <= DETAILS:
        return details
    return (*details[:3], f"{len(details) - DETAILS + 1} more", *details[4 - DETAILS :])


def config_text(config: Config, before: Config | None = None) -> str:
    """The configuration, or what differs from the one before; empty if nothing does."""
    parts = [
        f"lock {duration_text(config.lock_duration_ms)}",
        f"delivery limit {config.delivery_count_limit}",
        f"window {count_text(config.max_record_locks, 'record')}",
    ]
    if before is not None:
        parts = [part for part, one, two in zip(parts, config, before, strict=False) if one != two]
        return f"configuration now: {', '.join(parts)}" if parts else ""
    return ", ".join(parts)


class _Story:
    """Chapters under construction; the last one is open."""

    def __init__(self, instant: Instant) -> None:
        self.chapters: list[Chapter] = []
        self._instant = instant
        self._write_ms: int | None = None
        self._before: RecordChange | None = None
        self._config: Config | None = None
        self._lost = self._explained = 0
        """Deliveries that the delivery count does not have, and those of them that a chapter explains."""
        self._handlers: dict[str, Callable[[RecordChange], None]] = {
            APPENDED: self._appended,
            RecordEvent.ACQUIRE: self._acquired,
            RecordEvent.RENEW: self._renewed,
            PREPARED: self._prepared,
            STAGED: self._staged,
            ABANDONED: self._abandoned,
            UNLOADED: self._unloaded,
            LOADED: self._loaded,
            PASSED: self._passed,
            REMOVED: self._removed,
            DELIVERED: self._delivered,
            DURABLE: self._durable,
            MEMBER_LEFT: self._member_left,
            IN_QUEUE: lambda change: self._queue(change, "the dead-letter queue has it, in"),
            QUEUE_AWAITED: lambda change: self._queue(change, "it waits for the dead-letter queue:"),
            NOT_IN_QUEUE: lambda change: self._queue(change, "it does not get to a dead-letter queue:"),
        }

    def add(self, change: RecordChange) -> None:
        if not self.chapters and change.what in (RecordEvent.RENEW, PREPARED, STAGED, ABANDONED):
            self._begin(change, f"delivery {change.delivery_count}", "acquired before the journal begins")
            self._hold(change, last_attempt=False)
        self._handlers.get(change.what, self._ended)(change)
        if change.what not in (UNLOADED, REMOVED):
            self._before = change

    # ---- building ----------------------------------------------------------------------------------------------------

    def _begin(self, change: RecordChange, title: str, *details: str) -> None:
        if self.chapters:
            self.chapters[-1] = self.chapters[-1]._replace(end_ms=change.time_ms)
        key = f"{change.order} {change.what}"
        shown = tuple(text for text in details if text)
        state, count = change.state, change.delivery_count
        self.chapters.append(Chapter(key, change.time_ms, None, state, title, shown, delivery_count=count))

    def _note(self, text: str, **more: Any) -> None:
        """A further detail of the open chapter."""
        last = self.chapters[-1]
        self.chapters[-1] = last._replace(details=(*last.details, text), **more)

    def _at(self, time_ms: int) -> str:
        return time_text(time_ms - self._instant.origin_ms, 1)

    # ---- changes -----------------------------------------------------------------------------------------------------

    def _appended(self, change: RecordChange) -> None:
        self._begin(change, "written to the log", f"by the leader of the partition, broker {change.broker_id}")

    def _acquired(self, change: RecordChange) -> None:
        if change.state is not RecordState.ACQUIRED:
            self._begin(change, "in the window", "it came with the batch of acquired records, and is available")
            return
        limit = change.config.delivery_count_limit
        last = change.delivery_count >= limit
        title = f"{delivery_text(change.delivery_count, self._lost)} of {limit}" + (
            ", the last attempt" if last else ""
        )
        uncounted = _uncounted(self._lost) if self._lost > self._explained else ""
        self._begin(change, title, config_text(change.config, self._config), uncounted)
        self._explained = self._lost
        self._hold(change, last_attempt=last)
        self._config = change.config

    def _hold(self, change: RecordChange, *, last_attempt: bool) -> None:
        holder = holder_of(self._instant, change.member_id or "")
        self.chapters[-1] = self.chapters[-1]._replace(
            holder=holder, deadline_ms=change.deadline_ms, config=change.config, last_attempt=last_attempt
        )
        self._write_ms = None

    def _renewed(self, change: RecordChange) -> None:
        """Several renewals are one detail."""
        last = self.chapters[-1]
        before, renewals = _renewal_text(last, self._at), (*last.renewals, change.time_ms)
        renewed = last._replace(renewals=renewals, deadline_ms=change.deadline_ms)
        details = tuple(text for text in last.details if text != before)
        self.chapters[-1] = renewed._replace(details=(*details, _renewal_text(renewed, self._at)))

    def _prepared(self, change: RecordChange) -> None:
        self._write_ms = change.time_ms

    def _staged(self, change: RecordChange) -> None:
        """Its acknowledgement waits for the end of a transaction."""
        self._note(f"its {change.why} was staged in a transaction at {self._at(change.time_ms)}")

    def _abandoned(self, change: RecordChange) -> None:
        error = f", {Errors(change.error).name}" if change.error else ""
        what = change.why.replace("_", " ") or "change"
        text = f"its {what} was not stored at {self._at(change.time_ms)}: the state write failed{error}"
        self._note(text, alarms=(*self.chapters[-1].alarms, text))
        self._write_ms = None

    def _ended(self, change: RecordChange) -> None:
        """A RecordEvent ends a delivery, or archives an available record."""
        verb = _verb(change.what)
        if change.what == TXN_COMMIT:
            verb = f"{_verb(change.why)} in a transaction, which was committed"
        if self.chapters and self.chapters[-1].holder is not None:
            after = duration_text(change.time_ms - self.chapters[-1].start_ms)
            took_ms = None if self._write_ms is None else change.time_ms - self._write_ms
            write = f", of which the state write took {duration_text(took_ms)}" if took_ms else ""
            self._note(f"{verb} at {self._at(change.time_ms)}, after {after}{write}")
        if change.state is RecordState.AVAILABLE and change.deadline_ms is not None:
            self._begin(change, "resting", f"no fetch may acquire it before {self._at(change.deadline_ms)}")
        elif change.state is RecordState.AVAILABLE:
            self._begin(change, "available again", "it waits for a fetch")
        elif change.state is RecordState.ACKNOWLEDGED:
            self._begin(change, "acknowledged")
        elif change.state is RecordState.ARCHIVING:
            used_up = change.what in RETURNING
            reason = "its deliveries were used up" if used_up else f"it was {verb}"
            self._begin(change, "on its way to the dead-letter queue", reason)
        else:
            used_up = change.what in RETURNING
            self._begin(change, "archived", "its deliveries were used up" if used_up else f"it was {verb}")
        self._write_ms = None

    def _passed(self, change: RecordChange) -> None:
        nothing = change._replace(state=None)
        if change.state is not None and change.state.terminal:
            self._note(f"the SPSO passed it at {self._at(change.time_ms)}")
        elif change.why != LOADED:
            self._begin(nothing, "passed over", "the SPSO moved above it")
        elif change.state is None:
            self._begin(nothing, "passed over", "the SPSO of the group began above it")
        else:
            self._begin(nothing, "done", f"broker {change.broker_id} loaded an SPSO above it: the last write succeeded")

    def _removed(self, change: RecordChange) -> None:
        if not self.chapters:
            self._begin(change, "removed")
        self._note(f"the log start moved above it at {self._at(change.time_ms)}: the log no longer has it")

    def _queue(self, change: RecordChange, text: str) -> None:
        """News of the way to the dead-letter queue."""
        if not self.chapters:
            self._begin(change, "on its way to the dead-letter queue")
        self._note(f"{text} {change.why}, at {self._at(change.time_ms)}")

    # ---- leaders -----------------------------------------------------------------------------------------------------

    def _unloaded(self, change: RecordChange) -> None:
        why = {STOPPED: "stopped", KILLED: "was killed"}.get(change.why, f"dropped the share-partition, {change.why}")
        if self.chapters and self.chapters[-1].holder is not None:
            self._note(f"the lock was lost with the leader at {self._at(change.time_ms)}")
        self._begin(change._replace(state=None), NO_LEADER, f"broker {change.broker_id} {why}")

    def _loaded(self, change: RecordChange) -> None:
        state = "not in flight" if change.state is None else change.state.name.lower()
        lost = _lost(self._before, change)
        self._lost += lost_deliveries([self._before, change]) if self._before is not None else 0
        self._begin(change, f"loaded by broker {change.broker_id}", f"{state}, delivered {_times(change)}", lost)
        if lost:
            self.chapters[-1] = self.chapters[-1]._replace(alarms=(lost,))

    # ---- an observer -------------------------------------------------------------------------------------------------

    def _delivered(self, change: RecordChange) -> None:
        self._begin(change, f"delivery {change.delivery_count}", "its deadline is not known to an observer")
        self._hold(change, last_attempt=False)

    def _durable(self, change: RecordChange) -> None:
        if change.state is RecordState.AVAILABLE:
            self._begin(change, f"returned, delivered {_times(change)}", "a member may hold it again: not known")
        else:
            name = "done" if change.state is None else change.state.name.lower()
            self._begin(change, name, "as the durable state has it")

    def _member_left(self, change: RecordChange) -> None:
        self._note(f"its holder left the group at {self._at(change.time_ms)}")
        self._begin(change, "not held by a known member")


def _verb(what: str) -> str:
    return WORDS[what].past if what in WORDS else what


def _renewal_text(chapter: Chapter, at: Callable[[int], str]) -> str:
    """The renewals of a delivery, and the deadline that the last one has set."""
    times = chapter.renewals
    if not times:
        return ""
    until = "" if chapter.deadline_ms is None else f", locked until {at(chapter.deadline_ms)}"
    return f"renewed {'' if len(times) == 1 else f'{len(times):,} times, last '}at {at(times[-1])}{until}"


def _uncounted(lost: int) -> str:
    missing = "1 earlier delivery is" if lost == 1 else f"{lost:,} earlier deliveries are"
    return f"{missing} not counted: acquisitions are not durable, and were lost with the leader"


def _times(change: RecordChange) -> str:
    return "once" if change.delivery_count == 1 else f"{change.delivery_count} times"


def _lost(before: RecordChange | None, now: RecordChange) -> str:
    """What the former leader had and the durable state does not have; empty if nothing."""
    if before is None or before.state is None:
        return ""
    lost = []
    if before.state.terminal and before.state is not now.state:
        lost.append(f"that it was {before.state.name.lower()}")
    if before.delivery_count > now.delivery_count:
        missing = before.delivery_count - now.delivery_count
        lost.append("1 delivery of its count" if missing == 1 else f"{missing} deliveries of its count")
    return f"lost, because not durable: {' and '.join(lost)}" if lost else ""
