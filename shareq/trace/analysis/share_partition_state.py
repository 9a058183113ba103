"""State of one share-partition, computed by the fold of the journal."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, fields, replace

from shareq.model.configs import GroupConfig
from shareq.model.events import KeyRange, LogKept, StateWritePrepared
from shareq.trace.analysis.observed_knowledge import Knowledge
from shareq.trace.analysis.runs import Runs, StatusRun

PAST_OFFSETS = 64
"""Number of offsets below the SPSO whose final states are kept for drawing."""

_DEFAULT = GroupConfig()


@dataclass(slots=True, eq=False, repr=False)
class SharePartitionState:
    """One share-partition after an entry of the journal; offsets half-open, but for `speo`.

    The window is [spso, window_end).

    `leader`: the broker that leads the partition, -1 if there is none. `loaded`: a leader has the share-partition in
    memory. If not, `runs` are those of the last leader, without locks and writes; they may or may not be durable.

    `partial`: the first entries are missing, because a bounded journal has dropped them. Until the next load such a
    fold checks nothing and has only the runs that have changed since. `log_start_known`: no move of it is missing.

    `observed`: the journal is an observer's, see `observed_knowledge`. If `uncertain`, `window_end` is an upper bound,
    and `disturbed` the reason why the observer has no new data, empty if it has.

    `writes`: state writes in progress by write id, as (time_ms of the event, event). `past`: final runs below the SPSO.
    `loaded_by`: the broker whose events count, -1 if not loaded. `knowledge`: None unless observed.
    """

    group_id: str
    topic: str
    partition: int
    _: KW_ONLY
    partial: bool = False
    loaded: bool = False
    loaded_by: int = -1
    leader: int = -1
    leader_epoch: int = -1
    state_epoch: int = -1
    spso: int = 0
    window_end: int = 0
    log_start: int = 0
    log_start_known: bool = True
    log_end: int = -1
    delivery_count_limit: int = _DEFAULT.delivery_count_limit
    max_record_locks: int = _DEFAULT.partition_max_record_locks
    lock_duration_ms: int = _DEFAULT.record_lock_duration_ms
    now_ms: int = 0
    runs: Runs = field(default_factory=Runs)
    past: list[StatusRun] = field(default_factory=list)
    writes: dict[int, tuple[int, StateWritePrepared]] = field(default_factory=dict)
    last_write_id: int = -1
    disturbed: str = ""
    knowledge: Knowledge | None = None
    keys: tuple[KeyRange, ...] = ()
    """The keys of the records in the window, ascending, where records are delivered in order by key."""
    key_max_in_flight: int = 1
    log_kept: tuple[int, LogKept] | None = None
    """Since when cleaning by groups keeps the log, and for which group (an experiment)."""
    paused: bool = False
    """The group is paused: no record is acquired (an experiment)."""

    @property
    def observed(self) -> bool:
        """True if the journal is an observer's."""
        return self.knowledge is not None

    @property
    def uncertain(self) -> bool:
        """True if an observer does not see the deliveries of all members: `window_end` is an upper bound, and a record
        without a known holder may be held."""
        return self.knowledge is not None and not self.knowledge.complete

    @property
    def speo(self) -> int | None:
        """The KIP's share-partition end offset: the last offset in flight; None if the window is empty or
        uncertain."""
        return None if self.uncertain or self.spso == self.window_end else self.window_end - 1

    @property
    def in_flight(self) -> int:
        """Offsets in the window, including terminal ones and gaps: the number that the record locks limit."""
        return self.window_end - self.spso

    @property
    def delivery_complete_count(self) -> int:
        """Offsets in the window that are terminal, or will be when their write succeeds (KIP-1226)."""
        return self.runs.complete

    @property
    def lag(self) -> int | None:
        """Records whose delivery is not complete; None while the log end is unknown."""
        return None if self.log_end < 0 else max(self.log_end - self.spso - self.delivery_complete_count, 0)

    def copy(self) -> SharePartitionState:
        """An independent copy; the cost follows the number of runs."""
        return replace(self, runs=self.runs.copy(), past=self.past[:], writes=dict(self.writes))

    def miss_entries(self) -> None:
        """Go on after a gap in the journal."""
        self.partial, self.log_start_known = True, False

    def reset(self) -> None:
        """Forget the records, after the topic was created again or deleted. Time and configuration stay."""
        fresh = SharePartitionState(
            self.group_id,
            self.topic,
            self.partition,
            now_ms=self.now_ms,
            disturbed=self.disturbed,
            delivery_count_limit=self.delivery_count_limit,
            max_record_locks=self.max_record_locks,
            lock_duration_ms=self.lock_duration_ms,
            paused=self.paused,
            knowledge=None if self.knowledge is None else Knowledge(complete=self.knowledge.complete),
        )
        for name in (known.name for known in fields(self)):
            setattr(self, name, getattr(fresh, name))

    def add_past(self, dropped: list[StatusRun]) -> None:
        """Keep runs that are now below the SPSO, at most PAST_OFFSETS offsets."""
        if not dropped and not self.past:
            return
        floor = self.spso - PAST_OFFSETS
        past = [*self.past, *dropped] if dropped else self.past
        near = [(f, e, status) for f, e, status in past if floor < e and f < self.spso]
        self.past = [(max(f, floor), min(e, self.spso), status) for f, e, status in near]

    def __repr__(self) -> str:
        where = f"{self.group_id} on {self.topic}-{self.partition}"
        return f"<SharePartitionState {where}: [{self.spso}, {self.window_end}) in {len(self.runs)} runs>"
