"""Timeline of a whole share group: the events of its members, its share-partitions, and the brokers that serve them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.model.events import (
    AcknowledgementsSent,
    CoordinatorLoaded,
    HeartbeatReceived,
    RecordsDelivered,
    RequestSent,
    ResponseSent,
    StateLogPruned,
    StateRecordWritten,
    TransactionChanged,
)
from shareq.model.ids import INTERNAL_TOPICS
from shareq.trace.analysis.group_history import history_of
from shareq.trace.analysis.one_thread import used_by_one_thread
from shareq.trace.analysis.shared import shared
from shareq.trace.journal import Entry, Journal
from shareq.trace.journal.event_codec import EVENT_TYPES
from shareq.trace.journal.subject import KEYS, Key
from shareq.trace.views.event_index import EventIndex
from shareq.trace.views.event_view import EventView
from shareq.trace.views.member_names import MemberNames, names_of
from shareq.trace.views.subjects import check_subject

_DETAILS = frozenset(
    (
        HeartbeatReceived,
        RequestSent,
        ResponseSent,
        RecordsDelivered,
        AcknowledgementsSent,
        StateRecordWritten,
        StateLogPruned,
        CoordinatorLoaded,
        TransactionChanged,
    )
)
"""Events that accompany a step, and are not steps of their own: messages, heartbeats, and writes to internal topics."""
_STEPS = frozenset(EVENT_TYPES.values()) - _DETAILS


@used_by_one_thread
class GroupTimeline(EventView):
    """The events that concern a group, without heartbeats, messages and internal topics; see `EventView`.

    ConfigException for a group that the journal does not have while it has others.
    """

    def __init__(self, source: Any, group: str, close: Callable[[], None] | None = None) -> None:
        super().__init__(source, group, close)
        check_subject(self.journal, group)
        self._events = shared(self.journal, (_GroupEvents, group), lambda: _GroupEvents(self.journal, group))
        self._index = self._events.index
        self.history = self._events.history

    @property
    def names(self) -> MemberNames:
        """The names and letters of the members."""
        return self._names

    def _place(self, entry: Entry) -> str:
        """The name of the share-partition, in a group that has several."""
        group, topic, partition = KEYS[type(entry.event)](entry.event)
        one = group is None or partition is None or not self.history.has_several_share_partitions
        return "" if one else f"{topic}-{partition}: "


class _GroupEvents:
    """The events that concern a group, read once for all its timelines."""

    def __init__(self, journal: Journal, group: str) -> None:
        self.history = history_of(journal, group)
        self._journal = journal
        self._concerns = _Concerns(group)
        self._entries: list[Entry] = []
        self._seen = 0
        self.index = EventIndex(names_of(journal, group), journal.origin_ms, self._read)

    def _read(self) -> list[Entry]:
        self.history.refresh()
        if not self._seen:
            self._read_all()
        new = self._journal.since(self._seen)
        if new:
            concerns, keys = self._concerns, KEYS
            self._entries += [
                entry
                for entry in new
                if (kind := type(event := entry[3])) not in _DETAILS and concerns[keys[kind](event)]
            ]
            self._seen = new[-1].order + 1
        return self._entries

    def _read_all(self) -> None:
        """Read the entries of the subjects that concern the group: this costs less than a look at each entry."""
        total = self._journal.total
        subjects = filter(self._concerns.__getitem__, self._journal.subjects())
        self._entries += self._journal.about(0, total, dict.fromkeys(subjects, _STEPS))
        self._seen = total


class _Concerns(dict[Key, bool]):
    """Key of a subject -> True if its events concern the group: they name no other group, and no internal topic."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self._group = group

    def __missing__(self, key: Key) -> bool:
        group, topic, _ = key
        found = self[key] = group in (None, self._group) and topic not in INTERNAL_TOPICS
        return found
