"""Every event as one plain sentence.

The part after the first ", " is the consequence or the reason; views may emphasize the part before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shareq.model.errors import Errors
from shareq.model.events import (
    AcknowledgementRefused,
    AcknowledgementsSent,
    AclChanged,
    AuthenticationFailed,
    AuthorizationDenied,
    BrokerStarted,
    BrokerStopped,
    ConfigChanged,
    CoordinatorLoaded,
    DeadLettersGivenUp,
    DeadLettersRefused,
    DeadLettersSent,
    DeadLettersWaiting,
    DeadLettersWritten,
    DeliveriesUnseen,
    DurableStateRead,
    Event,
    ExpiredRecordsSkipped,
    FaultInjected,
    GroupDeleted,
    GroupEpochBumped,
    HeartbeatReceived,
    HoldEnded,
    KeysLearned,
    LeaderElected,
    LogKept,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    MembersBypass,
    ObservationDisturbed,
    PartitionsAdded,
    RecordsAppended,
    RecordsChanged,
    RecordsDelivered,
    RecordsHeld,
    RequestSent,
    ResponseSent,
    SharePartitionDropped,
    SharePartitionLoaded,
    SharePartitionsInitialized,
    ShareSessionClosed,
    ShareSessionOpened,
    StateLogPruned,
    StateRecordWritten,
    StateWritePrepared,
    StateWriteSettled,
    TargetAssignmentComputed,
    TopicCreated,
    TopicDeleted,
    TransactionChanged,
    WindowMoved,
)
from shareq.model.states import (
    ABANDONED,
    PREPARED,
    RESTED,
    RETURNING,
    SETTLED,
    STAGED,
    TXN_COMMIT,
    AcknowledgeType,
    RecordEvent,
    RecordState,
)
from shareq.trace.journal.record_words import WORDS

Name = Callable[[str], str]
"""Member id -> name."""


def range_text(first: int, end: int) -> str:
    """A half-open range as text: first and last offset."""
    return str(first) if end - first == 1 else f"{first}–{end - 1}"


def count_text(count: int, thing: str) -> str:
    """A count with its noun: "1 record", "2,000 records"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def member_name(member_id: str) -> str:
    """The name of a member without a client id: its member id, shortened."""
    return member_id if len(member_id) <= 12 else f"{member_id[:8]}…"


def event_text(broker_id: int, event: Event, name: Name = member_name) -> str:
    """The event as a sentence, with its reason or consequence."""
    return _TEXTS[type(event)](broker_id, event, name)


# ---- records ---------------------------------------------------------------------------------------------------------

_OTHER_CAUSES: dict[str, str] = {
    SETTLED: "{offsets} became {state}",
    RESTED: "{offsets} has rested",
    TXN_COMMIT: "the transaction that {offsets} is staged in was committed",
    ABANDONED: "{offsets} stays acquired by {member}",
}
"""The sentences of the causes that are no RecordEvent."""


def _sentence(cause: str | None, words: Mapping[str, str]) -> str:
    return (_OTHER_CAUSES.get(cause or "") or WORDS[RecordEvent(str(cause))].sentence).format(**words)


def _changed(broker_id: int, event: RecordsChanged, name: Name) -> str:
    del broker_id
    offsets, state = range_text(event.first, event.end), RecordState(event.state)
    member = name(event.member_id) if event.member_id else "no member"  # `name` gives a letter to each id that it gets
    words = {"offsets": offsets, "member": member, "state": state.name.lower()}
    if event.cause == RecordEvent.ACQUIRE:
        if state is RecordState.AVAILABLE:
            return f"{offsets} came into the window, available, with the batch of acquired records"
        attempt = f", attempt {event.delivery_count}" if event.delivery_count > 1 else ""
        return _sentence(event.cause, words) + attempt
    if event.cause == PREPARED:
        return _sentence(event.why, words) + _under_way(event)
    if event.cause == STAGED:
        if event.member_id is None:
            return f"{offsets} is staged in a transaction, as the durable state has it ({event.why})"
        return _sentence(event.why, words) + " in a transaction, staged"
    return _sentence(event.cause, words) + _consequence(event, state)


def _under_way(event: RecordsChanged) -> str:
    ends = event.to_state in (RecordState.ARCHIVED, RecordState.ARCHIVING)
    used_up = ends and event.why in RETURNING
    return (", deliveries used up" if used_up else "") + ", state write under way"


def _consequence(event: RecordsChanged, state: RecordState) -> str:
    if event.cause == SETTLED:
        rests = state is RecordState.AVAILABLE and event.deadline_ms is not None
        return ", the state write succeeded" + (f": it rests until {event.deadline_ms:,} ms" if rests else "")
    if event.cause == RESTED:
        return ", it can be acquired again"
    if event.cause == ABANDONED:
        return ", the state write failed"
    if event.cause in (RecordEvent.LOCK_TIMEOUT, RecordEvent.TXN_ABORT):
        return ", available again" if state is RecordState.AVAILABLE else f", {state.name.lower()}: deliveries used up"
    return "" if event.cause == RecordEvent.RENEW else f", {state.name.lower()}"


def write_text(event: StateWritePrepared) -> str:
    """The records and states of a state write, or its SPSO if it has nothing else."""
    parts = [
        f"{range_text(b.first_offset, b.last_offset + 1)} {RecordState(b.delivery_state).name.lower()}"
        for b in event.state_batches
    ]
    return list_text(parts, 3) if parts else f"SPSO {event.start_offset}"


def list_text(parts: Iterable[str], limit: int) -> str:
    """The first `limit` parts, and the number of further ones."""
    shown = list(parts)
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


# ---- other events ----------------------------------------------------------------------------------------------------


def _loaded(broker_id: int, event: SharePartitionLoaded, name: Name) -> str:
    del name
    return (
        f"broker {broker_id} loaded the share-partition, SPSO {event.spso}, {event.window_end - event.spso} in flight"
    )


def _moved(broker_id: int, event: WindowMoved, name: Name) -> str:
    del broker_id, name
    if event.spso == event.window_end:
        return f"the window is empty at {event.spso}"
    return f"the window is now {range_text(event.spso, event.window_end)}"


def _durable(broker_id: int, event: DurableStateRead, name: Name) -> str:
    del broker_id, name
    if event.spso < 0:
        return "nothing durable is known of the share-partition, its start is not decided"
    counts: dict[str, int] = {}
    for run in event.runs:
        state = RecordState(run.state)
        word = "returned" if state is RecordState.AVAILABLE else state.name.lower()
        counts[word] = counts.get(word, 0) + run.end - run.first
    parts = [f"{count:,} {word}" for word, count in counts.items()]
    return f"durable now: SPSO {event.spso}" + (f", {list_text(parts, 4)} above it" if parts else "")


def _in_hand(broker_id: int, event: RecordsHeld, name: Name) -> str:
    del broker_id
    attempt = f", delivery {event.delivery_count}" if event.delivery_count > 1 else ""
    return f"{name(event.member_id)} has {range_text(event.first, event.end)} in hand{attempt}"


def _let_go(broker_id: int, event: HoldEnded, name: Name) -> str:
    del broker_id
    words = {"offsets": range_text(event.first, event.end), "member": name(event.member_id)}
    text = _sentence(event.cause, words)
    gave_up = event.cause in RETURNING and event.state != RecordState.AVAILABLE
    used_up = f", {RecordState(event.state).name.lower()}: deliveries used up" if gave_up else ""
    return text + used_up + (", inferred" if event.inferred else "")


def _unseen(broker_id: int, event: DeliveriesUnseen, name: Name) -> str:
    del broker_id, name
    return f"{range_text(event.first, event.end)} was delivered before, attempt {_counts(event)} passed unseen"


def _counts(event: DeliveriesUnseen) -> str:
    return range_text(event.first_count, event.last_count + 1)


def _bypassed(broker_id: int, event: MembersBypass, name: Name) -> str:
    del broker_id
    if not event.member_ids:
        return "all members are connected through the observer, every delivery is seen"
    names = list_text((name(member_id) for member_id in event.member_ids), 3)
    return f"not all can be seen, {names} {'is' if len(event.member_ids) == 1 else 'are'} connected past the observer"


def _settled(broker_id: int, event: StateWriteSettled, name: Name) -> str:
    del broker_id, name
    return f"state write {event.write_id} {f'failed, {_error(event.error)}' if event.error else 'is durable'}"


def _error(code: int) -> str:
    return Errors(code).name


def _elected(broker_id: int, event: LeaderElected, name: Name) -> str:
    del broker_id, name
    where = f"{event.topic}-{event.partition}"
    if event.leader < 0:
        return f"no broker leads {where}, no replica is alive"
    return f"broker {event.leader} leads {where}, leader epoch {event.leader_epoch}"


def _acknowledged(broker_id: int, event: AcknowledgementsSent, name: Name) -> str:
    del broker_id
    counts = [f"{n} {AcknowledgeType(kind).name.lower()}" for kind, n in enumerate(event.counts) if n]
    error = f", refused with {_error(event.error)}" if event.error else ""
    return f"{name(event.member_id)} acknowledged {event.topic}-{event.partition}: {' + '.join(counts) or '0'}{error}"


def _configured(broker_id: int, event: ConfigChanged, name: Name) -> str:
    del broker_id, name
    value = "went back to its default" if event.value is None else f"is now {event.value}"
    return f"{event.key} of {event.resource} {value}"


def _assignment(assignment: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    held = [f"{topic}-{partition}" for topic, partitions in assignment for partition in partitions]
    return list_text(held, 6) or "nothing"


def _heartbeat(broker_id: int, event: HeartbeatReceived, name: Name) -> str:
    del broker_id
    error = f", answered {_error(event.error)}" if event.error else ""
    return f"{name(event.member_id)} sent a heartbeat at member epoch {event.member_epoch}{error}"


_TEXTS: dict[type, Callable[[int, Any, Name], str]] = {
    RecordsChanged: _changed,
    SharePartitionLoaded: _loaded,
    SharePartitionDropped: lambda b, e, _: f"broker {b} dropped the share-partition, {e.reason}",
    WindowMoved: _moved,
    KeysLearned: lambda _, e, __: (
        f"the keys of {range_text(e.keys[0].first, e.keys[-1].end)} are known, "
        f"at most {e.max_in_flight} of a key in flight"
    ),
    ExpiredRecordsSkipped: lambda _, e, __: (
        f"the time to live of {range_text(e.first, e.end)} was over, the window begins above"
    ),
    StateWritePrepared: lambda _, e, __: f"state write {e.write_id} is under way, {write_text(e)}",
    StateWriteSettled: _settled,
    DeadLettersSent: lambda _, e, __: (
        f"a request takes {count_text(e.record_count, 'record')} from {e.first} on to the dead-letter queue, "
        f"{e.queue}-{e.queue_partition}"
    ),
    DeadLettersRefused: lambda _, e, __: (
        f"a request that takes {e.first} to the dead-letter queue has failed, {_error(e.error)}"
    ),
    DeadLettersWritten: lambda _, e, __: (
        f"{range_text(e.first, e.end)} is in the dead-letter queue, "
        f"{e.queue}-{e.queue_partition} from {e.queue_offset} on"
    ),
    DeadLettersWaiting: lambda _, e, __: f"{e.first} waits for the dead-letter queue, {e.reason}",
    DeadLettersGivenUp: lambda _, e, __: (
        f"{range_text(e.first, e.end)} does not get to a dead-letter queue, {e.reason}"
    ),
    AcknowledgementRefused: lambda _, e, n: f"an acknowledgement of {n(e.member_id)} was refused, {_error(e.error)}",
    ShareSessionOpened: lambda b, e, n: f"{n(e.member_id)} opened a share session with broker {b}",
    ShareSessionClosed: lambda b, e, n: f"the share session of {n(e.member_id)} with broker {b} ended, {e.reason}",
    RecordsAppended: lambda _, e, __: (
        f"{count_text(e.end - e.first, 'record')} appended to {e.topic}-{e.partition}, {range_text(e.first, e.end)}"
    ),
    LogKept: lambda _, e, __: f"the log of {e.topic}-{e.partition} is kept from {e.offset} on, {e.reason}",
    LogStartMoved: lambda _, e, __: f"the log of {e.topic}-{e.partition} now starts at {e.log_start_offset}",
    LeaderElected: _elected,
    BrokerStarted: lambda _, e, __: f"broker {e.broker_id} started",
    BrokerStopped: lambda _, e, __: f"broker {e.broker_id} {'was killed' if e.killed else 'stopped'}",
    TopicCreated: lambda _, e, __: f"topic {e.topic} was created, {count_text(e.partition_count, 'partition')}",
    TopicDeleted: lambda _, e, __: f"topic {e.topic} was deleted",
    PartitionsAdded: lambda _, e, __: f"topic {e.topic} grew, {count_text(e.partition_count, 'partition')} now",
    ConfigChanged: _configured,
    AclChanged: lambda _, e, __: f"an access control list was {'added' if e.added else 'removed'}, {e.binding}",
    AuthorizationDenied: lambda _, e, __: (
        f"{e.principal} from {e.host} was denied {e.operation} on {e.resource_type} {e.name}, asked for by {e.api}"
    ),
    FaultInjected: lambda _, e, __: e.text,
    AuthenticationFailed: lambda _, e, __: (
        f"broker {e.broker_id} refused {repr(e.user) + ' at ' if e.user else ''}{e.peer}, {e.reason}"
    ),
    MemberJoined: lambda _, e, n: f"{n(e.member_id)} joined, subscribed to {', '.join(e.subscribed_topic_names)}",
    MemberLeft: lambda _, e, n: f"{n(e.member_id)} left the group" + (f", {e.reason}" if e.reason != "left" else ""),
    MemberReconciled: lambda _, e, n: (
        f"{n(e.member_id)} is at member epoch {e.member_epoch}, holding {_assignment(e.assignment)}"
    ),
    GroupEpochBumped: lambda _, e, __: f"group epoch {e.group_epoch}, {e.reason}",
    TargetAssignmentComputed: lambda _, e, n: (
        f"assignment {e.assignment_epoch} was computed, "
        + "; ".join(f"{n(member)}: {_assignment(parts)}" for member, parts in e.assignment)
    ),
    HeartbeatReceived: _heartbeat,
    SharePartitionsInitialized: lambda _, e, __: (
        f"share-partitions of {e.topic} were initialized, " + list_text(map(str, e.partitions), 12)
    ),
    GroupDeleted: lambda _, e, __: f"group {e.group_id} was deleted",
    CoordinatorLoaded: lambda b, e, __: (
        f"broker {b} loaded {e.topic}-{e.partition}, {count_text(e.record_count, 'record')}"
    ),
    StateRecordWritten: lambda _, e, __: f"{e.kind} of {e.key} was written",
    TransactionChanged: lambda _, e, __: (
        f"transaction {e.transactional_id} is {e.phase} with {count_text(e.partition_count, 'partition')}, "
        f"producer {e.producer_id} at epoch {e.producer_epoch}"
    ),
    StateLogPruned: lambda _, e, __: f"state partition {e.partition} was pruned below {e.offset}",
    RecordsDelivered: lambda _, e, n: (
        f"{n(e.member_id)} was given {count_text(e.record_count, 'record')} of "
        f"{e.topic}-{e.partition}, {range_text(e.first, e.end)}"
    ),
    AcknowledgementsSent: _acknowledged,
    DurableStateRead: _durable,
    RecordsHeld: _in_hand,
    HoldEnded: _let_go,
    DeliveriesUnseen: _unseen,
    MembersBypass: _bypassed,
    ObservationDisturbed: lambda _, e, __: (
        f"not all can be seen, {e.reason}" if e.reason else "all can be seen again, the observer goes on"
    ),
    RequestSent: lambda _, e, __: f"{e.source} sent {e.api} to {e.target}",
    ResponseSent: lambda _, e, __: (
        f"{e.source} answered {e.target} with {e.api}" + (f", {_error(e.error)}" if e.error else "")
    ),
}
