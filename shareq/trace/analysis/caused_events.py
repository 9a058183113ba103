"""The events that a request caused: those that its broker recorded while it handled the request.

The journal does not name the cause of an event. An event of the broker, recorded after the request and before its
response, belongs to the request by the first of these rules that applies:

1. It is the result of a state write: it belongs to the request that the write belongs to.
2. It names the member of the request, and its kind fits: membership to group requests, records to share requests.
3. It names a partition of the request, and its kind fits: an append to a produce request, a state record to a request
   of the share coordinator, the loading of a share-partition to a share fetch.
4. It names no member, and directly follows an event of the request: the next event of the broker, at the same instant,
   about the same group. Examples are the settled records after their write, and the move of the window after them.

Expired locks, and records below a new log start, are caused by no request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shareq.model.events import (
    AcknowledgementRefused,
    Event,
    GroupEpochBumped,
    HeartbeatReceived,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    RecordsAppended,
    RecordsChanged,
    SharePartitionLoaded,
    ShareSessionClosed,
    ShareSessionOpened,
    StateRecordWritten,
    StateWritePrepared,
    StateWriteSettled,
    TargetAssignmentComputed,
    WindowMoved,
)
from shareq.model.ids import Place
from shareq.model.states import ABANDONED, RecordEvent
from shareq.trace.analysis.exchanges import Exchange, broker_of
from shareq.trace.journal import Entry

_OF_MEMBERSHIP = (MemberJoined, MemberLeft, MemberReconciled, HeartbeatReceived)
_OF_RECORDS = (RecordsChanged, AcknowledgementRefused, ShareSessionOpened, ShareSessionClosed)
_CONSEQUENCES = (RecordsChanged, WindowMoved, StateWritePrepared, GroupEpochBumped, TargetAssignmentComputed)
_WITHOUT_CAUSE = (RecordEvent.LOCK_TIMEOUT, RecordEvent.LOG_START)

_SHARE_REQUESTS = ("ShareFetch", "ShareAcknowledge")
_APIS_OF: Mapping[type, tuple[str, ...]] = {
    RecordsAppended: ("Produce",),
    SharePartitionLoaded: _SHARE_REQUESTS,
    StateRecordWritten: (
        "InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState",
    ),
}  # fmt: skip


def caused_events(
    entries: Iterable[Entry], exchanges: Sequence[Exchange], topics: Mapping[str, str]
) -> dict[int, list[Entry]]:
    """Order of the request -> the entries that it caused, of those given. `entries`: in order, without gaps; `topics`:
    id -> name."""
    causes = _Causes(exchanges, topics)
    found: dict[int, list[Entry]] = {exchange.order: [] for exchange in exchanges}
    for entry in entries:
        owner = causes.owner(entry)
        if owner is not None:
            found[owner.order].append(entry)
    return found


def partitions_of_message(fields: Mapping[str, Any]) -> Iterator[Place]:
    """The partitions that a request names, whatever its API calls them."""
    for topic in fields.get("topics", ()):
        if isinstance(topic, Mapping):
            name = topic.get("name") or topic.get("topic_id") or topic.get("topic")
            for partition in topic.get("partitions", ()):
                number = _number(partition) if isinstance(partition, Mapping) else partition
                if isinstance(number, int):
                    yield str(name), number


def _number(partition: Mapping[str, Any]) -> int:
    """The number of a partition; a field with the default value is left out."""
    return int(next((partition[key] for key in ("partition_index", "index", "partition") if key in partition), 0))


class _Causes:
    """Finds the owner of each entry; to be called for all entries in order."""

    def __init__(self, exchanges: Sequence[Exchange], topics: Mapping[str, str]) -> None:
        self._waiting = sorted(exchanges, key=lambda exchange: exchange.order, reverse=True)
        self._topics = topics
        self._open: dict[int, list[Exchange]] = {}
        self._writes: dict[tuple[Any, ...], Exchange | None] = {}
        self._last: dict[int, tuple[int, Exchange | None]] = {}

    def owner(self, entry: Entry) -> Exchange | None:
        """The exchange whose request caused this entry; None if there is none."""
        while self._waiting and self._waiting[-1].order < entry.order:
            begun = self._waiting.pop()
            broker_id = broker_of(begun.broker)
            if broker_id is not None:
                self._open.setdefault(broker_id, []).append(begun)
        opened = self._open.get(entry.broker_id)
        if not opened:
            return None
        opened[:] = [one for one in opened if one.answered_order is None or one.answered_order > entry.order]
        found = self._owner(entry, opened)
        self._last[entry.broker_id] = (entry.time_ms, found)
        return found

    def _owner(self, entry: Entry, opened: list[Exchange]) -> Exchange | None:
        event = entry.event
        if isinstance(event, StateWriteSettled):
            return self._if_open(self._writes.pop((entry.broker_id, *event[:4]), None), opened)
        if isinstance(event, RecordsChanged) and event.cause in _WITHOUT_CAUSE:
            return None
        found = _by_member(event, opened) or self._by_partition(event, opened) or self._following(entry, opened)
        if isinstance(event, StateWritePrepared):
            self._writes[(entry.broker_id, *event[:4])] = found
        return found

    def _by_partition(self, event: Event, opened: list[Exchange]) -> Exchange | None:
        """Rule 3."""
        apis = _APIS_OF.get(type(event))
        if apis is None:
            return None
        named = self._partition_of(event)
        for one in opened:
            if one.api in apis and named in partitions_of_message(one.request):
                return one
        return None

    def _partition_of(self, event: Any) -> Place:
        if isinstance(event, StateRecordWritten):
            _, topic_id, partition = event.key.rsplit(":", 2)
            return self._topics.get(topic_id, topic_id), int(partition)
        return event.topic, event.partition

    def _following(self, entry: Entry, opened: list[Exchange]) -> Exchange | None:
        """Rule 4."""
        event: Any = entry.event
        time_ms, last = self._last.get(entry.broker_id, (-1, None))
        if not isinstance(event, _CONSEQUENCES) or time_ms != entry.time_ms or last is None:
            return None
        if getattr(event, "member_id", None) is not None and not _is_abandoned(event):
            return None
        return self._if_open(last, opened) if last.request.get("group_id") == event.group_id else None

    @staticmethod
    def _if_open(found: Exchange | None, opened: list[Exchange]) -> Exchange | None:
        return found if found in opened else None


def _is_abandoned(event: object) -> bool:
    """True if the records stay acquired after a failed write: the event names their holder, but the write caused it."""
    return isinstance(event, RecordsChanged) and event.cause == ABANDONED


def _by_member(event: Any, opened: list[Exchange]) -> Exchange | None:
    """Rule 2: of several requests of the member, the last one."""
    if not isinstance(event, (*_OF_MEMBERSHIP, *_OF_RECORDS)) or event.member_id is None or _is_abandoned(event):
        return None
    of_records = isinstance(event, _OF_RECORDS)
    for one in reversed(opened):
        fits = (one.api in _SHARE_REQUESTS) == of_records
        if fits and one.request.get("group_id") == event.group_id and _member_of(one) == event.member_id:
            return one
    return None


def _member_of(exchange: Exchange) -> str | None:
    """The member that sent the request. In Kafka's protocol before KIP-848, only the response has the id of a member
    that joins."""
    found = exchange.request.get("member_id") or (exchange.response or {}).get("member_id")
    return None if found is None else str(found)
