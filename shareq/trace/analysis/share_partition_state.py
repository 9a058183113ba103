"""State of one share-partition, as the fold of the journal computes it."""

from __future__ import annotations

from shareq.model.configs import GroupConfig
from shareq.model.events import StateWritePrepared
from shareq.trace.analysis.observed_knowledge import Knowledge
from shareq.trace.analysis.runs import Runs, StatusRun

PAST_OFFSETS = 64
"""How many offsets below the SPSO keep their final states, for drawing."""

_DEFAULT = GroupConfig()


class SharePartitionState:
    """One share-partition after some entry of the journal; offsets half-open.

    `leader` is the broker that leads the partition, -1 if none does. `loaded`: a leader has the share-partition in
    memory. Without one, `runs` are those of the last leader, without locks and writes; whether they are durable is not
    known.

    `partial`: the first entries are missing (a bounded journal dropped them). Until the next load such a fold checks
    nothing and has only the runs that have changed since.

    `observed`: the journal is of an observer, see `observed_knowledge`. Then `speo` is the upper bound of the window,
    and `disturbed` is the reason why the observer reads nothing new, empty if it does.

    `writes`: state writes under way by write id, as (time_ms of the event, event). `past`: final runs below the SPSO.
    `loaded_by`: the broker whose events count, -1 if not loaded. `knowledge` is None unless observed.
    """

    def __init__(self, group_id: str, topic: str, partition: int, *, partial: bool = False) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partition = partition
        self.partial = partial
        self.loaded = False
        self.loaded_by = -1
        self.leader = -1
        self.leader_epoch = -1
        self.state_epoch = -1
        self.spso = self.speo = 0
        self.log_start, self.log_end = 0, -1
        self.delivery_count_limit = _DEFAULT.delivery_count_limit
        self.max_record_locks = _DEFAULT.partition_max_record_locks
        self.lock_duration_ms = _DEFAULT.record_lock_duration_ms
        self.now_ms = 0
        self.runs = Runs()
        self.past: list[StatusRun] = []
        self.writes: dict[int, tuple[int, StateWritePrepared]] = {}
        self.last_write_id = -1
        self.disturbed = ""
        self.knowledge: Knowledge | None = None

    @property
    def observed(self) -> bool:
        """True if the journal is of an observer."""
        return self.knowledge is not None

    @property
    def in_flight(self) -> int:
        """Offsets in the window, terminal ones and gaps included: the number that the record locks limit."""
        return self.speo - self.spso

    @property
    def delivery_complete_count(self) -> int:
        """Offsets in the window that are terminal, or will be when their write succeeds (KIP-1226)."""
        return self.runs.complete

    @property
    def lag(self) -> int | None:
        """Records whose delivery is not complete; None while the log end is unknown."""
        return None if self.log_end < 0 else max(self.log_end - self.spso - self.delivery_complete_count, 0)

    def copy(self) -> SharePartitionState:
        """An independent state; cost follows the number of runs."""
        other = SharePartitionState.__new__(SharePartitionState)
        other.__dict__.update(self.__dict__)
        other.runs, other.past, other.writes = self.runs.copy(), self.past[:], dict(self.writes)
        return other

    def reset(self) -> None:
        """Forget the records: the topic was created again or deleted. Time and configuration stay."""
        fresh = SharePartitionState(self.group_id, self.topic, self.partition)
        fresh.now_ms, fresh.disturbed = self.now_ms, self.disturbed
        fresh.delivery_count_limit, fresh.max_record_locks = self.delivery_count_limit, self.max_record_locks
        fresh.lock_duration_ms = self.lock_duration_ms
        fresh.knowledge = None if self.knowledge is None else Knowledge()
        self.__dict__.update(fresh.__dict__)

    def add_past(self, dropped: list[StatusRun]) -> None:
        """Keep runs that are below the SPSO now, as far as PAST_OFFSETS reaches."""
        floor = self.spso - PAST_OFFSETS
        past = [*self.past, *dropped] if dropped else self.past
        near = [(f, e, status) for f, e, status in past if floor < e and f < self.spso]
        self.past = [(max(f, floor), min(e, self.spso), status) for f, e, status in near]

    def __repr__(self) -> str:
        where = f"{self.group_id} on {self.topic}-{self.partition}"
        return f"<SharePartitionState {where}: [{self.spso}, {self.speo}) in {len(self.runs)} runs>"
