"""Fold of the journal: `apply_entry` advances the state of a share-partition by one entry.

The fold is strict: a sequence of events that no leader can produce raises `JournalCorrupt`, which names the entry. A
journal that folds without an error is consistent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from shareq.model.configs import BrokerConfig, GroupConfig
from shareq.model.events import (
    BrokerStopped,
    ConfigChanged,
    KeysLearned,
    LeaderElected,
    LogKept,
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
from shareq.model.experiments import DELIVERY
from shareq.model.states import RecordState
from shareq.trace.analysis.observed_fold import OBSERVER_HANDLERS, lay_out
from shareq.trace.analysis.runs import RecordStatus, Runs
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.transition_rules import status_after, why_illegal
from shareq.trace.journal.entry_log import Entry


class JournalCorrupt(Exception):
    """No leader can produce these events. `entry` is the first one that contradicts earlier entries."""

    def __init__(self, entry: Entry, why: str) -> None:
        super().__init__(f"entry {entry.order} ({type(entry.event).__name__}): {why}")
        self.entry = entry


def apply_entry(state: SharePartitionState, entry: Entry) -> None:
    """Apply the next entry about this share-partition; JournalCorrupt if it cannot follow the earlier entries."""
    state.now_ms = entry.time_ms
    handler = _HANDLERS.get(type(entry.event))
    if handler is not None:
        handler(state, entry, entry.event)


# ---- events of the share-partition's leader --------------------------------------------------------------------------


def _loaded(state: SharePartitionState, entry: Entry, event: SharePartitionLoaded) -> None:
    """Replace the state by the durable state. A record that was complete below the new SPSO keeps its final state."""
    position, runs = event.spso, Runs()
    for first, end, code, delivery_count in event.runs:
        if not position <= first < end <= event.window_end:
            raise JournalCorrupt(entry, f"run [{first}, {end}) is out of order or outside the window")
        runs.assign(first, end, RecordStatus(RecordState(code), delivery_count))
        position = end
    state.loaded, state.partial = True, False
    state.leader = state.loaded_by = entry.broker_id
    state.spso, state.window_end = event.spso, event.window_end
    state.add_past(state.runs.drop_below(event.spso))
    state.leader_epoch, state.state_epoch = event.leader_epoch, event.state_epoch
    state.delivery_count_limit, state.max_record_locks = event.delivery_count_limit, event.max_record_locks
    state.lock_duration_ms = event.lock_duration_ms
    state.log_end = max(state.log_end, event.window_end)
    state.runs, state.writes, state.last_write_id, state.keys = runs, {}, -1, ()


def _dropped(state: SharePartitionState, entry: Entry, event: SharePartitionDropped) -> None:
    del event
    if entry.broker_id == state.loaded_by:
        _unload(state)


def _unload(state: SharePartitionState) -> None:
    """Drop locks and writes, which only the leader had in memory."""
    state.loaded, state.loaded_by, state.writes = False, -1, {}
    runs, state.runs = state.runs, Runs()
    for first, end, status in runs:
        state.runs.assign(first, end, RecordStatus(status.state, status.delivery_count, status.member_id))


def _records_changed(state: SharePartitionState, entry: Entry, event: RecordsChanged) -> None:
    if not is_from_leader(state, entry):
        return
    if not event.first < event.end:
        raise JournalCorrupt(entry, f"[{event.first}, {event.end}) is empty")
    if event.write_id is not None:
        _check_write(state, entry, event.write_id)
    status = status_after(event)
    if not state.partial:
        old = state.runs.overlap(event.first, event.end)
        why = f"below the SPSO {state.spso}" if event.first < state.spso else why_illegal(event, status, old)
        if why:
            raise JournalCorrupt(entry, why)
    state.runs.assign(event.first, event.end, status)


def _window_moved(state: SharePartitionState, entry: Entry, event: WindowMoved) -> None:
    if not is_from_leader(state, entry):
        return
    spso, window_end = event.spso, event.window_end
    if not state.partial and not (
        state.spso <= spso <= window_end and state.window_end <= window_end and state.runs.end <= window_end
    ):
        raise JournalCorrupt(entry, f"[{state.spso}, {state.window_end}) cannot become [{spso}, {window_end})")
    dropped = state.runs.drop_below(spso)
    for first, end, status in dropped:
        on_log = state.log_start_known and end > state.log_start
        if on_log and not status.state.terminal and not state.partial:
            raise JournalCorrupt(entry, f"[{first}, {end}) is passed while {status.state.name}")
    moved, state.spso, state.window_end = spso != state.spso, spso, window_end
    state.log_end = max(state.log_end, window_end)
    if moved or dropped:
        state.add_past(dropped)


def _keys_learned(state: SharePartitionState, entry: Entry, event: KeysLearned) -> None:
    if is_from_leader(state, entry):
        known = [one for one in state.keys if one.end > state.spso]
        state.keys = tuple(sorted([*known, *event.keys]))
        state.key_max_in_flight = event.max_in_flight


def _write_prepared(state: SharePartitionState, entry: Entry, event: StateWritePrepared) -> None:
    if not is_from_leader(state, entry):
        return
    _check_write(state, entry, event.write_id)
    state.last_write_id = event.write_id
    state.writes[event.write_id] = (entry.time_ms, event)


def _check_write(state: SharePartitionState, entry: Entry, write_id: int) -> None:
    """Writes have ascending numbers. If a load may be lost, whose leader numbers writes anew, forget the older ones."""
    if write_id > state.last_write_id:
        return
    if not state.partial:
        raise JournalCorrupt(entry, f"write {write_id} was prepared before")
    state.writes, state.last_write_id = {}, -1


def _write_settled(state: SharePartitionState, entry: Entry, event: StateWriteSettled) -> None:
    """A leader that has dropped the share-partition may still receive the results of its last writes."""
    if state.loaded_by != entry.broker_id:
        return
    if state.writes.pop(event.write_id, None) is None and not state.partial:
        raise JournalCorrupt(entry, f"write {event.write_id} is not in progress")


def is_from_leader(state: SharePartitionState, entry: Entry) -> bool:
    """True if the broker of the entry has the share-partition loaded. A superseded leader without the new metadata
    records changes of its own memory, which do not count.
    """
    if state.loaded:
        return entry.broker_id == state.loaded_by
    if not state.partial:
        raise JournalCorrupt(entry, "no leader has the share-partition loaded")
    state.loaded, state.loaded_by = True, entry.broker_id
    return True


# ---- events of the log, the group and the cluster --------------------------------------------------------------------


def _appended(state: SharePartitionState, entry: Entry, event: RecordsAppended) -> None:
    del entry
    state.log_end = event.end
    lay_out(state)


def _log_kept(state: SharePartitionState, entry: Entry, event: LogKept) -> None:
    state.log_kept = entry.time_ms, event


def _log_start_moved(state: SharePartitionState, entry: Entry, event: LogStartMoved) -> None:
    del entry
    state.log_start, state.log_start_known = event.log_start_offset, True
    state.log_end = max(state.log_end, state.log_start)


def _elected(state: SharePartitionState, entry: Entry, event: LeaderElected) -> None:
    """Reset to the durable state: the locks of the former leader are void."""
    del entry
    state.leader = event.leader
    if state.knowledge is not None:
        state.knowledge = state.knowledge.with_new_leader()
        lay_out(state)


def _broker_stopped(state: SharePartitionState, entry: Entry, event: BrokerStopped) -> None:
    """Unload: a killed broker records no SharePartitionDropped."""
    del entry
    if event.broker_id == state.loaded_by:
        _unload(state)
    if event.broker_id == state.leader:
        state.leader = -1


def _topic_changed(state: SharePartitionState, entry: Entry, event: TopicCreated | TopicDeleted) -> None:
    del entry
    state.reset()
    if isinstance(event, TopicCreated) and state.partition < event.partition_count:
        state.log_end = 0


def _configured(state: SharePartitionState, entry: Entry, event: ConfigChanged) -> None:
    del entry
    if event.key == DELIVERY:
        state.paused = event.value is not None and event.value.lower() == "false"
    if apply_config(state, event):
        lay_out(state)


class Configured(Protocol):
    """The configuration of a share-partition."""

    delivery_count_limit: int
    max_record_locks: int
    lock_duration_ms: int


def apply_config(target: Configured, event: ConfigChanged) -> bool:
    """Apply a group configuration at once; False if it is not one of `Configured`.

    A deleted value becomes Kafka's default, until the next load event has the cluster's own default.
    """
    names = _CONFIGS.get(event.key)
    if names is None:
        return False
    overrides = {} if event.value is None else {event.key: event.value}
    setattr(target, names[0], getattr(GroupConfig.effective(overrides, BrokerConfig()), names[1]))
    return True


_CONFIGS = {
    "share.delivery.count.limit": ("delivery_count_limit", "delivery_count_limit"),
    "share.partition.max.record.locks": ("max_record_locks", "partition_max_record_locks"),
    "share.record.lock.duration.ms": ("lock_duration_ms", "record_lock_duration_ms"),
}
"""Configuration key -> attribute of Configured, attribute of GroupConfig."""

_HANDLERS: dict[type, Callable[[SharePartitionState, Entry, Any], None]] = {
    SharePartitionLoaded: _loaded,
    SharePartitionDropped: _dropped,
    RecordsChanged: _records_changed,
    WindowMoved: _window_moved,
    KeysLearned: _keys_learned,
    StateWritePrepared: _write_prepared,
    StateWriteSettled: _write_settled,
    RecordsAppended: _appended,
    LogKept: _log_kept,
    LogStartMoved: _log_start_moved,
    LeaderElected: _elected,
    BrokerStopped: _broker_stopped,
    TopicCreated: _topic_changed,
    TopicDeleted: _topic_changed,
    ConfigChanged: _configured,
    **OBSERVER_HANDLERS,
}
