"""Derivation of the metrics from the journal: one function per family, which yields (metric, value) pairs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from shareq.model.events import (
    AcknowledgementsSent,
    BrokerStopped,
    CoordinatorLoaded,
    DeadLettersRefused,
    DeadLettersSent,
    DeadLettersWritten,
    GroupDeleted,
    GroupEpochBumped,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    RecordsChanged,
    RecordsDelivered,
    RequestSent,
    ResponseSent,
    SharePartitionDropped,
    SharePartitionLoaded,
    ShareSessionClosed,
    ShareSessionOpened,
    StateLogPruned,
    StateWritePrepared,
    StateWriteSettled,
    TopicDeleted,
    WindowMoved,
)
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.states import ACKNOWLEDGE_EVENT, SETTLED, TXN_COMMIT, VERDICTS, GroupState, RecordEvent
from shareq.trace.analysis.groups import GroupFold, fold_group, groups_of
from shareq.trace.analysis.tally import is_timeout
from shareq.trace.journal import Entry, Journal, Subject
from shareq.trace.journal.subject import subject_of

_ACKNOWLEDGE_TYPES = {ACKNOWLEDGE_EVENT[kind]: kind.name.capitalize() for kind in VERDICTS}
"""The tag `ackType` by the event of its type."""
_SHARE_FETCH = ShareFetchRequest(group_id="", member_id="", share_session_epoch=0)


class Metric(NamedTuple):
    """The key of a value: name, (tag, value) pairs, and the attribute of a meter."""

    name: str
    tags: tuple[tuple[str, str], ...] = ()
    attribute: str = "Value"

    def __str__(self) -> str:
        tags = ",".join(f"{tag}={value}" for tag, value in self.tags)
        return self.name + (f"{{{tags}}}" if tags else "") + ("" if self.attribute == "Value" else f".{self.attribute}")


Pairs = Iterator[tuple[Metric, float]]
_PROTOCOL = "share"
_SHARE = ("protocol", _PROTOCOL)


class JournalReader:
    """The entries below order `until`, and rates over their time."""

    def __init__(self, journal: Journal, until: int) -> None:
        self.journal = journal
        self.until = until
        kept = journal.entries()
        last = kept[min(until - kept[0].order, len(kept)) - 1].time_ms if kept and until > kept[0].order else 0
        self.elapsed_s = max(last - journal.origin_ms, 0) / 1000

    def of(self, *types: type) -> list[Entry]:
        return [entry for entry in self.journal.select(*types) if entry.order < self.until]

    def rate(self, count: float) -> float:
        """`count` per second since the origin; 0 if no time has passed."""
        return count / self.elapsed_s if self.elapsed_s else 0.0

    def meter(self, name: str, count: int, *tags: tuple[str, str]) -> Pairs:
        yield Metric(name, tags, "Count"), count
        yield Metric(name, tags, "MeanRate"), self.rate(count)

    def sensor(self, name: str, count: int, *tags: tuple[str, str], total: str = "count") -> Pairs:
        yield Metric(f"{name}-{total}", tags), count
        yield Metric(f"{name}-rate", tags), self.rate(count)


# ---- group coordinator -----------------------------------------------------------------------------------------------


def _groups(reader: JournalReader) -> Pairs:
    """Groups of members with another protocol are no share groups."""
    folds = [fold_group(GroupFold(group), reader.journal, reader.until) for group in groups_of(reader.journal)]
    views = {view.group_id: view for view in folds if view.protocol == _PROTOCOL}
    states = Counter(view.state for view in views.values() if view.group_epoch or view.members)
    yield Metric("group-count", (_SHARE,)), states.total()
    for state in (GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD):
        yield Metric("share-group-count", (("state", state.value),)), states[state]
    bumps = [e for e in reader.of(GroupEpochBumped) if subject_of(e.event).group in views and not _is_leave(e)]
    yield from reader.sensor("share-group-rebalance", len(bumps))


def _is_leave(entry: Entry) -> bool:
    """True for a bump by a leaving or expired member: only a bump by a heartbeat counts as a rebalance."""
    event = entry.event
    return isinstance(event, GroupEpochBumped) and event.reason in ("member left", "member session expired")


# ---- share-partition leaders -----------------------------------------------------------------------------------------


def _acknowledgements(reader: JournalReader) -> Pairs:
    """Records with a durable acknowledgement. A gap is an acknowledged offset, but not a record."""
    counts: Counter[str] = Counter()
    for entry in reader.of(RecordsChanged):
        event = entry.event
        if isinstance(event, RecordsChanged):
            durable = event.cause in (SETTLED, TXN_COMMIT)
            acknowledged = event.why if durable else event.cause
            if acknowledged == RecordEvent.RENEW or durable:
                counts[str(acknowledged)] += event.end - event.first
    for event_name, ack_type in _ACKNOWLEDGE_TYPES.items():
        yield from reader.meter("RecordAcknowledgementsPerSec", counts[event_name], ("ackType", ack_type))


def _dead_letters(reader: JournalReader) -> Pairs:
    """Records written to dead-letter queues, produce requests to them, and those that failed for good, by group. A
    group has a meter from its first use on, also after it is deleted."""
    counts: Counter[tuple[str, str]] = Counter()
    for entry in reader.of(DeadLettersWritten, DeadLettersSent, DeadLettersRefused):
        event = entry.event
        if isinstance(event, DeadLettersWritten):
            counts["DeadLetterQueueRecordCount", event.group_id] += event.record_count
        elif isinstance(event, DeadLettersSent):
            counts["DeadLetterQueueTotalProduceRequestsPerSec", event.group_id] += 1
        elif isinstance(event, DeadLettersRefused) and event.final:
            counts["DeadLetterQueueFailedProduceRequestsPerSec", event.group_id] += 1
    for (name, group_id), count in counts.items():
        yield from reader.meter(name, count, ("group", group_id))


def _share_partitions(reader: JournalReader) -> Pairs:
    """Offsets in flight of loaded share-partitions, and expired locks in records. As in Kafka 4.4, the metrics of a
    share-partition end when its leader drops it; the meters of a group stay."""
    timeouts: Counter[Subject] = Counter()
    windows: dict[Subject, tuple[int, int]] = {}
    for entry in reader.of(RecordsChanged, SharePartitionLoaded, SharePartitionDropped, WindowMoved, BrokerStopped):
        event = entry.event
        about = subject_of(event)
        if isinstance(event, RecordsChanged):
            if is_timeout(event):
                timeouts[about] += event.end - event.first
        elif isinstance(event, (SharePartitionLoaded, WindowMoved)):
            windows[about] = (entry.broker_id, event.window_end - event.spso)
        else:
            ended = list(windows) if isinstance(event, BrokerStopped) else [about]
            broker_id = event.broker_id if isinstance(event, BrokerStopped) else entry.broker_id
            for key in ended:
                if key in windows and windows[key][0] == broker_id:
                    del windows[key], timeouts[key]
    for about, (_, size) in windows.items():
        tags = (("group", str(about.group)), ("topic", str(about.topic)), ("partition", str(about.partition)))
        yield Metric("InFlightMessageCount", tags), size
        yield from reader.meter("AcquisitionLockTimeoutPerSec", timeouts[about], *tags)


def _sessions(reader: JournalReader) -> Pairs:
    """Open share sessions; those of a stopped broker are closed. Kafka counts a lost connection as an eviction."""
    sessions: set[tuple[int, str, str]] = set()
    evictions = 0
    for entry in reader.of(ShareSessionOpened, ShareSessionClosed, BrokerStopped):
        event = entry.event
        if isinstance(event, BrokerStopped):
            sessions = {key for key in sessions if key[0] != event.broker_id}
        elif isinstance(event, ShareSessionOpened):
            sessions.add((entry.broker_id, event.group_id, event.member_id))
        elif isinstance(event, ShareSessionClosed):
            sessions.discard((entry.broker_id, event.group_id, event.member_id))
            evictions += event.reason == "connection lost"
    yield Metric("ShareSessionsCount"), len(sessions)
    yield from reader.meter("ShareSessionEvictionsPerSec", evictions)


def _requests(reader: JournalReader) -> Pairs:
    """Requests, and share fetches that waited for max_wait_ms. Only a cluster with `trace_messages=True` records
    them."""
    counts: Counter[str] = Counter()
    fetches: dict[int, tuple[int, RequestSent]] = {}
    expired = 0
    for entry in reader.of(RequestSent, ResponseSent):
        event = entry.event
        if isinstance(event, RequestSent):
            counts[f"Total{event.api}"] += 1
            if event.api == "ShareFetchRequest":
                fetches[event.exchange] = (entry.time_ms, event)
        elif isinstance(event, ResponseSent):
            counts[f"Failed{event.api.removesuffix('Response')}Request"] += bool(event.error)
            sent_ms, request = fetches.pop(event.exchange, (0, None))
            expired += request is not None and _expired(request, event, entry.time_ms - sent_ms)
    if counts:
        for name in ("ShareFetch", "ShareAcknowledge"):
            shown = name if name == "ShareFetch" else "ShareAcknowledgement"
            for outcome in ("Total", "Failed"):
                yield from reader.meter(f"{outcome}{shown}RequestsPerSec", counts[f"{outcome}{name}Request"])
        yield from reader.meter("ExpiresPerSec", expired)


def _expired(request: RequestSent, response: ResponseSent, duration_ms: int) -> bool:
    """True for a share fetch that was answered because max_wait_ms had passed: it lasted that long, and has no records
    unless min_bytes is above 1."""
    body = json.loads(request.body or "{}")
    max_wait_ms = body.get("max_wait_ms", _SHARE_FETCH.max_wait_ms)
    if not 0 < max_wait_ms <= duration_ms or response.error:
        return False
    answered = json.loads(response.body or "{}").get("responses", ())
    empty = not any(part.get("acquired_records") for topic in answered for part in topic.get("partitions", ()))
    return empty or body.get("min_bytes", _SHARE_FETCH.min_bytes) > 1


# ---- share coordinator -----------------------------------------------------------------------------------------------


def _state_writes(reader: JournalReader) -> Pairs:
    """Partition-level writes, reads that write because they raise the leader epoch, and the leader's time from sending
    a write to its result."""
    began: dict[tuple[Any, ...], int] = {}
    latencies_ms: list[int] = []
    for entry in reader.of(StateWritePrepared, StateWriteSettled):
        event = entry.event
        if isinstance(event, StateWritePrepared):
            began[(entry.broker_id, *event[:4])] = entry.time_ms
        elif isinstance(event, StateWriteSettled):
            since_ms = began.pop((entry.broker_id, *event[:4]), entry.time_ms)
            latencies_ms.append(entry.time_ms - since_ms)
    writes = len(latencies_ms) + len(began) + _reads_that_write(reader)
    yield from reader.sensor("write", writes, total="total")
    if latencies_ms:
        yield Metric("write-latency-avg"), sum(latencies_ms) / len(latencies_ms)
        yield Metric("write-latency-max"), max(latencies_ms)


def _reads_that_write(reader: JournalReader) -> int:
    """Reads by a leader of a higher epoch than any before; initialization sets the epoch to 0."""
    epochs: dict[Subject, int] = {}
    count = 0
    for entry in reader.of(SharePartitionLoaded, GroupDeleted, TopicDeleted):
        event = entry.event
        about = subject_of(event)
        if isinstance(event, SharePartitionLoaded):
            count += event.leader_epoch > epochs.get(about, 0)
            epochs[about] = max(event.leader_epoch, epochs.get(about, 0))
        else:
            epochs = {
                key: epoch for key, epoch in epochs.items() if about not in ((key[0], None, None), (None, key[1], None))
            }
    return count


def _state_topic(reader: JournalReader) -> Pairs:
    """Pruned offsets, and the number of loaded shards."""
    served: dict[int, int] = {}
    pruned: dict[int, int] = {}
    for entry in reader.of(CoordinatorLoaded, LeaderElected, StateLogPruned):
        event = entry.event
        if isinstance(event, StateLogPruned):
            pruned[event.partition] = event.offset
        elif isinstance(event, CoordinatorLoaded) and event.topic == SHARE_STATE_TOPIC:
            served[event.partition] = entry.broker_id
        elif isinstance(event, LeaderElected) and event.topic == SHARE_STATE_TOPIC:
            served.pop(event.partition, None)  # until the new leader has loaded the shard
            pruned.pop(event.partition, None)
    yield Metric("num-partitions", (("state", "active"),)), len(served)
    for partition, offset in sorted(pruned.items()):
        yield Metric("last-pruned-offset", (("topic", SHARE_STATE_TOPIC), ("partition", str(partition)))), offset


# ---- consumers -------------------------------------------------------------------------------------------------------


def _consumers(reader: JournalReader) -> Pairs:
    """Counts by client id, summed over all members of a client."""
    clients: dict[str, str] = {}
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry in reader.of(MemberJoined, RecordsDelivered, AcknowledgementsSent, HeartbeatReceived):
        event = entry.event
        if isinstance(event, (MemberJoined, RecordsDelivered)):
            clients[event.member_id] = event.client_id
        if not isinstance(event, (RecordsDelivered, AcknowledgementsSent, HeartbeatReceived)):
            continue
        name = clients.get(event.member_id, event.member_id)
        if isinstance(event, RecordsDelivered):
            counts["records-consumed"][name] += event.record_count
        elif isinstance(event, AcknowledgementsSent):
            counts["acknowledgements-send"][name] += sum(event.counts)
            counts["acknowledgements-error"][name] += sum(event.counts) if event.error else 0
        else:
            counts["heartbeat"][name] += 1
    for sensor, by_client in counts.items():
        for client, count in by_client.items():
            yield from reader.sensor(sensor, count, ("client-id", client), total="total")


DERIVATIONS: Iterable[Callable[[JournalReader], Pairs]] = (
    _groups,
    _acknowledgements,
    _dead_letters,
    _share_partitions,
    _sessions,
    _requests,
    _state_writes,
    _state_topic,
    _consumers,
)
