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
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.journal import Entry
from shareq.trace.journal.index import subject_of
from shareq.trace.views.event_view import EventView
from shareq.trace.views.member_names import MemberNames
from shareq.trace.views.subjects import check_subject

_DETAILS = (
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
"""Events that accompany a step, and are not steps of their own: messages, heartbeats, and writes to internal topics."""


class GroupTimeline(EventView):
    """The events that concern a group, without heartbeats, messages and internal topics; see `EventView`.

    ConfigException for a group that the journal does not have while it has others.
    """

    def __init__(self, source: Any, group: str, close: Callable[[], None] | None = None) -> None:
        super().__init__(source, group, close)
        check_subject(self.journal, group)
        self.history = GroupHistory(self.journal, group)

    @property
    def names(self) -> MemberNames:
        """The names and letters of the members."""
        return self._names

    def _refresh(self) -> list[Entry]:
        new = [entry for entry in self.history.refresh() if self._concerns(entry)]
        self._entries += new
        return new

    def _concerns(self, entry: Entry) -> bool:
        if isinstance(entry.event, _DETAILS):
            return False
        subject = subject_of(entry.event)
        return subject.group in (None, self.group) and subject.topic not in INTERNAL_TOPICS
