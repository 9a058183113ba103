"""A share-partition as a fold of the journal: its state after any entry.

The fold is strict: a sequence of events that no leader could have produced raises `JournalCorrupt`, naming the entry.
So a journal that folds without complaint is also a proof that its events tell one consistent story.
"""

from __future__ import annotations

from shareq.model.configs import BrokerConfig, GroupConfig
from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    LeaderElected,
    LogStartMoved,
    RecordsAppended,
    RecordsChanged,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.states import RecordState
from shareq.trace.changes import cell_of, why_illegal
from shareq.trace.journal import Entry
from shareq.trace.observed import OBSERVER_TELLS, Knowledge, lay_out
from shareq.trace.runs import Cell, Run, Runs

PAST_OFFSETS = 64
"""How far below the SPSO the final states are remembered, for drawing."""


_DEFAULT = GroupConfig()


class JournalCorrupt(Exception):
    """The journal tells an impossible story. `entry` is where it became so."""

    def __init__(self, entry: Entry, why: str) -> None:
        super().__init__(f"entry {entry.order} ({type(entry.event).__name__}): {why}")
        self.entry = entry


class SharePartitionState:
    """One share-partition after some entry; offsets half-open.

    `leader` is the broker that leads the partition, -1 if none does; `loaded` says whether a leader has the
    share-partition in memory. Without one, `runs` stay as the last leader had them, with no locks and no writes: what
    it had not made durable is not known to anybody now.

    `partial`: the beginning of the story is missing (a bounded journal forgot it). Until the next load such a fold
    takes what it is told and knows only the runs that have changed since.

    `observed`: told from outside, by what is durable (see `observed`). Then `speo` is as far as the window can reach,
    and `disturbed` says why nothing new is seen, if that is so.
    """

    def __init__(self, group_id: str, topic: str, partition: int, *, partial: bool = False) -> None:
        self.group_id = group_id
        self.topic = topic
        self.partition = partition
        self.partial = partial
        self.loaded = False
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
        self.past: list[Run] = []
        self.writes: dict[int, tuple[int, StateWritePrepared]] = {}
        """Under way: when each was prepared, and what it says."""
        self.disturbed = ""
        self._last_write_id = -1
        self._loaded_by = -1
        self.knowledge: Knowledge | None = None
        """What is known from outside; None where a leader tells."""

    @property
    def observed(self) -> bool:
        return self.knowledge is not None

    @property
    def in_flight(self) -> int:
        """Offsets the window spans, terminal ones and holes included: what the record locks limit."""
        return self.speo - self.spso

    @property
    def delivery_complete_count(self) -> int:
        """Offsets in the window that are terminal, or will be when their write has come through (KIP-1226)."""
        return self.runs.complete

    @property
    def lag(self) -> int | None:
        """Records that are not done with; None while the log end is unknown."""
        return None if self.log_end < 0 else max(self.log_end - self.spso - self.delivery_complete_count, 0)

    def copy(self) -> SharePartitionState:
        """An independent state, cheap in the number of runs."""
        other = SharePartitionState.__new__(SharePartitionState)
        other.__dict__.update(self.__dict__)
        other.runs, other.past, other.writes = self.runs.copy(), self.past[:], dict(self.writes)
        return other

    def apply(self, entry: Entry) -> None:
        """Take in the next entry that concerns this share-partition; JournalCorrupt where it cannot be."""
        self.now_ms = entry.time_ms
        name = _HANDLERS.get(type(entry.event))
        if name is not None:
            getattr(self, name)(entry, entry.event)
        elif type(entry.event) in OBSERVER_TELLS:
            OBSERVER_TELLS[type(entry.event)](self, entry.event)

    # ---- what its leader tells ---------------------------------------------------------------------------------------

    def _loads(self, entry: Entry, event: SharePartitionLoaded) -> None:
        """Durable state is all there is now. A record that was complete below the new SPSO stays as it was told."""
        position, runs = event.spso, Runs()
        for first, end, state, delivery_count in event.runs:
            if not position <= first < end <= event.speo:
                raise JournalCorrupt(entry, f"run [{first}, {end}) is out of order or outside the window")
            runs.assign(first, end, Cell(RecordState(state), delivery_count))
            position = end
        self.loaded, self.partial = True, False
        self.leader = self._loaded_by = entry.broker_id
        self.spso, self.speo = event.spso, event.speo
        self.bury(self.runs.drop_below(event.spso))
        self.leader_epoch, self.state_epoch = event.leader_epoch, event.state_epoch
        self.delivery_count_limit, self.max_record_locks = event.delivery_count_limit, event.max_record_locks
        self.lock_duration_ms = event.lock_duration_ms
        self.log_end = max(self.log_end, event.speo)
        self.runs, self.writes, self._last_write_id = runs, {}, -1

    def _drops(self, entry: Entry, event: SharePartitionDropped) -> None:
        del event
        if entry.broker_id == self._loaded_by:
            self._unload()

    def _unload(self) -> None:
        """Locks and writes go with the leader's memory."""
        self.loaded, self._loaded_by, self.writes = False, -1, {}
        runs, self.runs = self.runs, Runs()
        for first, end, cell in runs:
            self.runs.assign(first, end, Cell(cell.state, cell.delivery_count, cell.member_id))

    def _changes(self, entry: Entry, event: RecordsChanged) -> None:
        if not self._tells(entry):
            return
        if not event.first < event.end:
            raise JournalCorrupt(entry, f"[{event.first}, {event.end}) is empty")
        if event.write_id is not None and event.write_id <= self._last_write_id:
            raise JournalCorrupt(entry, f"write {event.write_id} was prepared before")
        cell = cell_of(event)
        if not self.partial:
            old = self.runs.overlap(event.first, event.end)
            why = f"below the SPSO {self.spso}" if event.first < self.spso else why_illegal(event, cell, old)
            if why:
                raise JournalCorrupt(entry, why)
        self.runs.assign(event.first, event.end, cell)

    def _moves(self, entry: Entry, event: WindowMoved) -> None:
        if not self._tells(entry):
            return
        spso, speo = event.spso, event.speo
        if not self.partial and not (self.spso <= spso <= speo and self.speo <= speo and self.runs.end <= speo):
            raise JournalCorrupt(entry, f"[{self.spso}, {self.speo}) cannot become [{spso}, {speo})")
        gone = self.runs.drop_below(spso)
        for first, end, cell in gone:
            if not cell.state.terminal and end > self.log_start and not self.partial:
                raise JournalCorrupt(entry, f"[{first}, {end}) is passed while {cell.state.name}")
        self.spso, self.speo = spso, speo
        self.log_end = max(self.log_end, speo)
        self.bury(gone)

    def bury(self, gone: list[Run]) -> None:
        """Remember what is below the SPSO now, as far as anybody wants to see it."""
        floor = self.spso - PAST_OFFSETS
        past = [*self.past, *gone] if gone else self.past
        near = [(f, e, cell) for f, e, cell in past if floor < e and f < self.spso]
        self.past = [(max(f, floor), min(e, self.spso), cell) for f, e, cell in near]

    def _prepares(self, entry: Entry, event: StateWritePrepared) -> None:
        if not self._tells(entry):
            return
        if event.write_id <= self._last_write_id:
            raise JournalCorrupt(entry, f"write {event.write_id} was prepared before")
        self._last_write_id = event.write_id
        self.writes[event.write_id] = (entry.time_ms, event)

    def _settles(self, entry: Entry, event: StateWriteSettled) -> None:
        """A leader that has dropped the share-partition may still hear of its last writes."""
        if self._loaded_by != entry.broker_id:
            return
        if self.writes.pop(event.write_id, None) is None and not self.partial:
            raise JournalCorrupt(entry, f"write {event.write_id} is not under way")

    def _tells(self, entry: Entry) -> bool:
        """Whether the one speaks who has the share-partition loaded. A leader that was superseded and does not know
        it yet speaks of its own memory, which is nobody's truth.
        """
        if self.loaded:
            return entry.broker_id == self._loaded_by
        if not self.partial:
            raise JournalCorrupt(entry, "no leader has the share-partition loaded")
        self.loaded, self._loaded_by = True, entry.broker_id
        return True

    # ---- what happens around it --------------------------------------------------------------------------------------

    def _appended(self, entry: Entry, event: RecordsAppended) -> None:
        del entry
        self.log_end = event.end
        lay_out(self)

    def _log_started(self, entry: Entry, event: LogStartMoved) -> None:
        del entry
        self.log_start = event.log_start_offset
        self.log_end = max(self.log_end, self.log_start)

    def _elected(self, entry: Entry, event: LeaderElected) -> None:
        """A new leader knows no locks: it begins with what is durable."""
        del entry
        self.leader = event.leader
        if self.knowledge is not None:
            self.knowledge = Knowledge(self.knowledge.durable)
            lay_out(self)

    def _stopped(self, entry: Entry, event: BrokerStopped) -> None:
        """A broker that was killed says nothing more."""
        del entry
        if event.broker_id == self._loaded_by:
            self._unload()
        if event.broker_id == self.leader:
            self.leader = -1

    def _topic_changed(self, entry: Entry, event: TopicCreated | TopicDeleted) -> None:
        """A topic that is created anew has nothing to do with the one before."""
        fresh = SharePartitionState(self.group_id, self.topic, self.partition)
        fresh.now_ms, fresh.disturbed = entry.time_ms, self.disturbed
        fresh.delivery_count_limit, fresh.max_record_locks = self.delivery_count_limit, self.max_record_locks
        fresh.lock_duration_ms = self.lock_duration_ms
        fresh.knowledge = None if self.knowledge is None else Knowledge()
        if isinstance(event, TopicCreated) and self.partition < event.partition_count:
            fresh.log_end = 0
        self.__dict__.update(fresh.__dict__)

    def _configured(self, entry: Entry, event: ConfigChanged) -> None:
        """Group configurations hold at once. A value that is taken back becomes Kafka's default until the next load
        tells the cluster's own.
        """
        del entry
        name = _CONFIGS.get(event.key)
        if name is not None:
            overrides = {} if event.value is None else {event.key: event.value}
            config = GroupConfig.effective(overrides, BrokerConfig())
            setattr(self, name.removeprefix("partition_").removeprefix("record_"), getattr(config, name))
            lay_out(self)

    # ---- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        from shareq.trace.strip_text import strip_text

        return strip_text(self)

    def _repr_html_(self) -> str:
        from shareq.trace.reprs import share_partition_html

        return share_partition_html(self)


_CONFIGS = {
    "share.delivery.count.limit": "delivery_count_limit",
    "share.partition.max.record.locks": "partition_max_record_locks",
    "share.record.lock.duration.ms": "record_lock_duration_ms",
}

_HANDLERS = {
    SharePartitionLoaded: "_loads",
    SharePartitionDropped: "_drops",
    RecordsChanged: "_changes",
    WindowMoved: "_moves",
    StateWritePrepared: "_prepares",
    StateWriteSettled: "_settles",
    RecordsAppended: "_appended",
    LogStartMoved: "_log_started",
    LeaderElected: "_elected",
    BrokerStopped: "_stopped",
    TopicCreated: "_topic_changed",
    TopicDeleted: "_topic_changed",
    ConfigChanged: "_configured",
}
