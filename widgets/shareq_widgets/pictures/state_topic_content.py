"""The content of the picture of the state topic: a leader's memory, what is durable, and the writes in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from shareq.model.ids import SHARE_STATE_TOPIC, partition_for
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.trace.analysis.durable_state import DurableState
from shareq.trace.analysis.reloads import Reload, aligned, last_reload, why_not_loaded
from shareq.trace.analysis.runs import RecordStatus, Runs, StatusRun
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.state_writes import StateWrite, latest_writes
from shareq_widgets.instant import Instant

WRITES: Final = 6
"""The last writes in the list."""

DifferenceKind = Literal["lock", "writing", "written", "unwritten"]
"""A lock, which is never durable; a state write under way; one that is durable, but not answered yet; a change that no
write has made durable."""


class Run(NamedTuple):
    """Records of the same state. `member_id`, `write_id`, `to_state` only in memory."""

    first: int
    end: int
    state: str
    delivery_count: int
    member_id: str | None = None
    write_id: int | None = None
    to_state: str | None = None


class Difference(NamedTuple):
    """[first, end) differs between memory and the state topic; `attempts`: deliveries that are not written."""

    kind: DifferenceKind
    first: int
    end: int
    attempts: int


class StateTopicContent(NamedTuple):
    """Everything that the picture says; offsets half-open.

    `memory` and `durable` are None if there is no such state: `memory_words` say whose memory it is, or why there
    is none, `durable_words` why there are no durable records. `compacted`: the state topic has checkpoints and deltas
    instead of snapshots and updates. `updates`: records since the last snapshot or checkpoint.
    `home`: the partition of the state topic, and the broker that leads it (-1: none); None if it is not known.
    `in_own_log`: there is no state topic, the records are control records in the log of this partition.
    `under_way`: ids of the writes that are sent and not answered. `reload_start`: the start of the durable state that
    was read for `reload`, -1 if it is not known. `letters`: member id -> letter and colour.
    """

    topic: str
    partition: int
    origin_ms: int
    now_ms: int
    leader: int
    memory: tuple[Run, ...] | None
    memory_words: str
    spso: int
    window_end: int
    durable: tuple[Run, ...] | None
    durable_words: str
    start_offset: int
    compacted: bool
    snapshot_epoch: int
    updates: int
    home: tuple[int, int] | None
    in_own_log: bool
    differences: tuple[Difference, ...]
    under_way: tuple[int, ...]
    writes: tuple[StateWrite, ...]
    reload: Reload | None
    reload_start: int
    letters: dict[str, tuple[str, str]]

    @property
    def bounds(self) -> tuple[int, int]:
        """The offsets from the lower start to the upper end of both sides. Inside a step of the leader, runs may reach
        beyond its window."""
        sides = [(self.spso, self.window_end)] if self.memory is not None else []
        if self.durable is not None and self.start_offset >= 0:
            sides.append((self.start_offset, self.start_offset))
        sides += [(run.first, run.end) for runs in (self.memory, self.durable) for run in runs or ()]
        return min((side[0] for side in sides), default=0), max((side[1] for side in sides), default=0)


def content(instant: Instant, topic: str, partition: int) -> StateTopicContent:
    """Memory, durable state, writes and the last failover of one share-partition."""
    history, until = instant.history, instant.until
    timeline = history.timeline(topic, partition)
    reload = last_reload(timeline, until)
    writes = latest_writes(timeline, history.durable_timeline(topic, partition), until, WRITES)
    durable = history.durable(topic, partition, until)
    state = history.share_partition(topic, partition, until)
    stored = _stored(durable)
    in_memory = state.loaded and not state.observed
    members = {status.member_id for _, _, status in state.runs} if in_memory else set()
    if reload is not None and reload.lost is not None:
        members |= {lock.member_id for lock in reload.lost.locks}
    return StateTopicContent(
        topic=topic,
        partition=partition,
        origin_ms=instant.origin_ms,
        now_ms=instant.now_ms,
        leader=state.loaded_by if in_memory else state.leader,
        memory=tuple(_run(run) for run in state.runs) if in_memory else None,
        memory_words=_memory_words(state, why_not_loaded(timeline, until)),
        spso=state.spso,
        window_end=state.window_end,
        durable=tuple(_run(run) for run in stored) if durable.exists else None,
        durable_words=_durable_words(durable, cut_off=bool(history.journal.dropped) and not state.observed),
        start_offset=durable.start_offset,
        compacted=durable.compacted,
        snapshot_epoch=durable.snapshot_epoch,
        updates=durable.updates,
        home=(home := _home(instant, durable, partition)),
        in_own_log=durable.compacted and home is None and not history.journal.dropped,
        differences=tuple(_differences(state.runs, stored)) if in_memory and durable.exists else (),
        under_way=tuple(sorted(state.writes)),
        writes=tuple(writes),
        reload=reload,
        reload_start=-1 if reload is None else history.durable(topic, partition, reload.order).start_offset,
        letters={member: (instant.letter(member), instant.colour(member)) for member in sorted(filter(None, members))},
    )


def _run(run: StatusRun) -> Run:
    first, end, (state, count, member_id, _, write_id, to_state, *_) = run
    target = None if to_state is None else to_state.name.lower()
    return Run(first, end, state.name.lower(), count, member_id, write_id, target)


def _stored(durable: DurableState) -> Runs:
    runs = Runs()
    for batch in durable.batches:
        runs.append(batch.first_offset, batch.last_offset + 1, _status(batch))
    return runs


def _status(batch: StateBatch) -> RecordStatus:
    return RecordStatus(RecordState(batch.delivery_state), batch.delivery_count)


def _memory_words(state: SharePartitionState, reason: str) -> str:
    if state.observed:
        return "seen from outside, memory is not known"
    if state.loaded:
        return f"memory of broker {state.loaded_by}, leader epoch {state.leader_epoch}"
    return "no leader has it in memory" + (f": {reason}" if reason else "")


def _durable_words(durable: DurableState, *, cut_off: bool) -> str:
    """Why there are no durable records. `cut_off`: the journal has dropped its first entries."""
    if durable.exists:
        return "" if durable.start_offset >= 0 else "the start is not decided: the first load looks it up"
    if durable.deleted:
        return "deleted: the last record is a tombstone"
    if durable.partial or (cut_off and durable.topic_id is None):
        return "not known: the journal begins later"
    return "nothing is durable yet"


def _home(instant: Instant, durable: DurableState, partition: int) -> tuple[int, int] | None:
    """The partition of the state topic that holds the key, and its leader."""
    partitions = instant.history.cluster(instant.until).topics.get(SHARE_STATE_TOPIC)
    if not partitions or durable.topic_id is None:
        return None
    place = partition_for(f"{instant.history.group_id}:{durable.topic_id}:{partition}", len(partitions))
    return place, partitions[place].leader


def _differences(memory: Runs, durable: Runs) -> Iterator[Difference]:
    """The ranges in memory whose durable state is another one; neighbours of the same kind are joined."""
    last: Difference | None = None
    for first, end, held, stored in aligned(memory, durable):
        kind = _difference(held, stored)
        if kind is None:
            continue
        written = 0 if stored is None else stored.delivery_count
        new = Difference(kind, first, end, max(held.delivery_count - written, 0))
        if last is not None and last.end == first and last._replace(first=first, end=end) == new:
            last = last._replace(end=end)
            continue
        if last is not None:
            yield last
        last = new
    if last is not None:
        yield last


def _difference(held: RecordStatus, stored: RecordStatus | None) -> DifferenceKind | None:
    """A durable state of the same delivery is ahead of the lock: its write has not been answered."""
    if held.state is RecordState.ACQUIRED:
        if stored is not None and (stored.state.terminal or stored.delivery_count >= held.delivery_count):
            return "written"
        return "lock" if held.to_state is None else "writing"
    if stored is None:
        return None if held.state is RecordState.AVAILABLE and not held.delivery_count else "unwritten"
    return None if (held.state, held.delivery_count) == (_loaded(stored.state), stored.delivery_count) else "unwritten"


def _loaded(state: RecordState) -> RecordState:
    return RecordState.ARCHIVED if state is RecordState.ARCHIVING else state
