"""Timeline of one share-partition: its entries in the journal, and its state after any number of them.

The cost of a state follows the distance to the nearest checkpoint, not the length of the journal. Far from all
checkpoints the fold begins a few entries before the wanted moment, at an `Outline`: it is strict from that moment on.
"""

from __future__ import annotations

from typing import Any

from shareq.model.events import (
    AcknowledgementRefused,
    BrokerStopped,
    ConfigChanged,
    DeadLettersGivenUp,
    DeadLettersWaiting,
    DeadLettersWritten,
    DurableStateRead,
    ExpiredRecordsSkipped,
    FaultInjected,
    HoldEnded,
    KeysLearned,
    LeaderElected,
    LogKept,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    MembersBypass,
    ObservationDisturbed,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionLoaded,
    SharePartitionsInitialized,
    ShareSessionClosed,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    TopicDeleted,
    WindowMoved,
)
from shareq.trace.analysis.fold import apply_entry
from shareq.trace.analysis.latest import Latest
from shareq.trace.analysis.outline import Outline
from shareq.trace.analysis.replay import Replay
from shareq.trace.analysis.runs import Runs, StatusRun
from shareq.trace.analysis.share_partition_state import PAST_OFFSETS, SharePartitionState
from shareq.trace.analysis.touched import Blocks
from shareq.trace.journal import Entry, Journal, Subject

_LEADER = frozenset(
    (
        SharePartitionLoaded,
        SharePartitionDropped,
        RecordsChanged,
        WindowMoved,
        KeysLearned,
        ExpiredRecordsSkipped,
        StateWritePrepared,
        StateWriteSettled,
        AcknowledgementRefused,
        DeadLettersWritten,
        DeadLettersWaiting,
        DeadLettersGivenUp,
        DurableStateRead,
        RecordsHeld,
        HoldEnded,
    )
)
_LOG = frozenset((RecordsAppended, LogKept, LogStartMoved, LeaderElected))
_TOPIC = frozenset((TopicCreated, TopicDeleted))
_GROUP = frozenset((MemberJoined, MemberLeft, ShareSessionClosed, ConfigChanged, MembersBypass))
_CLUSTER = frozenset((BrokerStopped, FaultInjected, ObservationDisturbed))

STATES_KEPT = 4
"""The number of states that are kept, the latest ones asked for."""

_IN_WINDOW = frozenset((RecordsChanged, WindowMoved, StateWritePrepared, StateWriteSettled, RecordsAppended))
"""The most frequent events: none of them begins a new window."""


def _records(state: SharePartitionState, entries: list[Entry], spso: int) -> tuple[Runs, list[StatusRun]]:
    """The records in the window, and below it, after these entries, of which the last move of the window is to `spso`.
    The changes of records that are passed by then, nearly all, are not applied to the state."""
    floor = spso - PAST_OFFSETS
    for entry in entries:
        event: Any = entry[3]
        if type(event) is WindowMoved or (type(event) is RecordsChanged and event[5] > floor):
            apply_entry(state, entry)
    return state.runs, state.past


class PartitionTimeline:
    """The entries about one share-partition, and its states. `refresh` extends it to the end of the journal.

    Entries stay in the timeline when a bounded journal drops them; if they were dropped before they were read, the fold
    continues as `partial`. Not thread-safe.
    """

    def __init__(self, journal: Journal, group: str, topic: str, partition: int) -> None:
        self.journal = journal
        self.group, self.topic, self.partition = group, topic, partition
        self._subjects = {
            Subject(group, topic, partition): _LEADER,
            Subject(None, topic, partition): _LOG,
            Subject(None, topic): _TOPIC,
            Subject(group, topic): frozenset((SharePartitionsInitialized,)),
            Subject(group): _GROUP,
            Subject(): _CLUSTER,
        }
        self._seen = 0
        self._gaps: set[int] = set()
        start = SharePartitionState(group, topic, partition)
        self._replay = Replay(start, self._apply, self._begin)
        self._outline = Replay(Outline(start.copy()), self._apply_to_outline, advance=self._advance_outline)
        self.entries = self._outline.entries = self._replay.entries
        self.blocks = Blocks(self.entries)
        self.loads: list[Entry] = []
        """The entries with which leaders have loaded the share-partition."""
        self.count, self.at_time = self._replay.count, self._replay.at_time
        self._states: Latest[SharePartitionState] = Latest(STATES_KEPT)

    def refresh(self) -> list[Entry]:
        """Add the entries since the last call, and return them."""
        total, dropped = self.journal.total, self.journal.dropped
        if total == self._seen:
            return []
        new = self.journal.about(self._seen, total, self._subjects)
        where = Subject(self.group, self.topic, self.partition)
        self.loads += self.journal.about(self._seen, total, {where: (SharePartitionLoaded,)})
        if dropped > self._seen:
            self._gaps.add(len(self.entries))
        self._seen = total
        self.entries += new
        return new

    def state(self, count: int) -> SharePartitionState:
        """The state after `count` entries, which must not be changed. The latest ones are kept: the linked views ask
        for the same moment, each between other moments."""
        return self._states.of(count, lambda: self._replay.state(count).copy())

    def outline(self, count: int) -> Outline:
        """Everything in the state after `count` entries but the records. The next call changes the object."""
        return self._outline.state(count)

    def origin(self, count: int) -> tuple[int, SharePartitionState]:
        """A number of entries, and the outline after them, which must not be changed: all changes of the records that
        are in the window after `count` entries, or just below it, come later."""
        found = self._origin(count, self._outline.state(count).state)
        return (0, self._outline.state(0).state.copy()) if found is None else (found[0], found[1].state)

    def _origin(self, count: int, end: SharePartitionState) -> tuple[int, Outline] | None:
        spso = end.spso
        return self._outline.latest(count, lambda outline: outline.holds_for(spso))

    def _begin(self, count: int, after: int) -> SharePartitionState | None:
        """The state after `count` entries, from the last outline that all its records follow."""
        end = self._outline.state(count).state.copy()
        if end.observed:
            return end
        found = self._origin(count, end)
        if found is None or found[0] <= after:
            return None
        state, new = found[1].begin(), self.entries[found[0] : count]
        simple = not self._has_gap(found[0], count) and _IN_WINDOW.issuperset([type(entry[3]) for entry in new])
        if simple and state.loaded_by == end.loaded_by >= 0:
            end.runs, end.past = _records(state, new, end.spso)
            state = end
        else:
            for position, entry in enumerate(new, found[0]):
                self._apply(state, position, entry)
            state.partial = end.partial
        state.now_ms = self.entries[count - 1].time_ms
        return state

    def _has_gap(self, first: int, stop: int) -> bool:
        """True if entries are missing before one of those from `first` to `stop`."""
        return any(first <= gap < stop for gap in self._gaps)

    def _advance_outline(self, outline: Outline, before: int, entries: list[Entry]) -> None:
        if self._has_gap(before, before + len(entries)):
            for position, entry in enumerate(entries, before):
                self._apply_to_outline(outline, position, entry)
        else:
            outline.read(entries)

    def _apply_to_outline(self, outline: Outline, position: int, entry: Entry) -> None:
        if position in self._gaps:
            outline.state.miss_entries()
        outline.apply(entry)

    def _apply(self, state: SharePartitionState, position: int, entry: Entry) -> None:
        if position in self._gaps:
            state.miss_entries()
        apply_entry(state, entry)
