"""The five share-state requests on one key's state: the checks, the records and the results.

The rules are those of Kafka 4.4. In 4.3 a late write could move the start offset or the delivery complete count back,
and an epoch of -1 passed the fence. Source: Kafka's ShareCoordinatorShard; KIP-932, "Share coordinator".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import Append
from shareq.coordinator.share_state.records import (
    NO_INDEX,
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
)
from shareq.coordinator.share_state.state import KeyState, StateChange, StateShard
from shareq.model.errors import Errors
from shareq.model.events import StateRecordWritten
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.base import Request
from shareq.model.messages.share_state import (
    NO_PRODUCER,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    Producer,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from shareq.model.workflow import Workflow

R = TypeVar("R")

ERROR_MESSAGES = {
    Errors.INVALID_REQUEST: "a partition or an epoch is negative, or the share-partition is not initialized",
    Errors.FENCED_LEADER_EPOCH: "a later leader has already read the state",
    Errors.FENCED_STATE_EPOCH: "the state has already been initialized with a higher state epoch",
    Errors.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition does not exist",
}
"""The error messages of the checks."""


def refusal(
    shard: StateShard,
    key: SharePartitionKey,
    *,
    leader_epoch: int | None = None,
    state_epoch: int | None = None,
    initialized: bool = False,
) -> Errors:
    """The error of the first check that fails, or NONE. Epochs that the request does not contain (None) are not
    checked; `initialized`: the key must have a state."""
    state = shard.states.get(key)
    if key.partition < 0 or (leader_epoch or 0) < 0 or (state_epoch or 0) < 0 or (initialized and state is None):
        return Errors.INVALID_REQUEST
    if state and leader_epoch is not None and state.leader_epoch_fence > leader_epoch:
        return Errors.FENCED_LEADER_EPOCH
    if state and state_epoch is not None and state.state_epoch_fence > state_epoch:
        return Errors.FENCED_STATE_EPOCH
    if shard.image().partition(key.topic_id, key.partition) is None:
        return Errors.UNKNOWN_TOPIC_OR_PARTITION
    return Errors.NONE


class Ruling(NamedTuple, Generic[R]):
    """The result for one partition, and the records to commit before it is returned; with a producer, in its
    transaction."""

    response: R
    records: Sequence[StateRecord] = ()
    producer: Producer = NO_PRODUCER


def append_states(
    runtime: ShardRuntime[StateShard], shard: StateShard, records: Sequence[StateRecord]
) -> Workflow[Errors]:
    """During a turn, append the records, and trace them after the commit. Returns the error of the append."""
    error: Errors = yield Append([shard.encode(record) for record in records])
    if runtime.traced and not error:
        runtime.effects += events_of(records, type(shard))
    return error


def events_of(records: Iterable[StateRecord], shard: type[StateShard] = StateShard) -> list[StateRecordWritten]:
    """The journal's events of a shard's records. The deletion of a delta changes no state and has no event; a staged
    update gets one when its transaction is committed."""
    return [_event_of(record, shard) for record in records if _changes_state(record)]


def _changes_state(record: StateRecord) -> bool:
    if isinstance(record, StateUpdate):
        return record.stage is None
    return isinstance(record, StateSnapshot) or record.delta_index == NO_INDEX


def _event_of(record: StateRecord, shard: type[StateShard]) -> StateRecordWritten:
    key = str(record.key)
    if isinstance(record, StateTombstone):
        return StateRecordWritten(key, "tombstone", -1, -1, ())
    kind, index = shard.whole, NO_INDEX
    if isinstance(record, StateUpdate):
        index = record.delta_index
        kind = shard.change if index == NO_INDEX else "delta"
    return StateRecordWritten(key, kind, record.snapshot_epoch, record.start_offset, record.state_batches, index)


# ---- the requests ----------------------------------------------------------------------------------------------------


def initialize(
    key: SharePartitionKey, requested: InitializeShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[InitializeShareGroupStateResponse.Partition]:
    """Reset the state by a snapshot. A request at the stored state epoch changes nothing: it is a retry whose response
    was lost, and records may have been accepted since (KAFKA pull request 23190)."""
    response = InitializeShareGroupStateResponse.Partition
    error = refusal(shard, key, state_epoch=requested.state_epoch)
    if error:
        return Ruling(failed(response, key.partition, error))
    state = shard.states.get(key)
    if state is not None and state.state_epoch == requested.state_epoch:
        return Ruling(response(partition=key.partition))
    snapshot = StateSnapshot(
        key=key,
        snapshot_epoch=shard.next_epoch(key),
        state_epoch=requested.state_epoch,
        leader_epoch=0,
        start_offset=requested.start_offset,
        create_timestamp=now_ms,
        write_timestamp=now_ms,
        delivery_complete_count=-1 if requested.start_offset == -1 else 0,
    )
    return Ruling(response(partition=key.partition), [snapshot])


def read(
    key: SharePartitionKey, requested: ReadShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[ReadShareGroupStateResponse.Partition]:
    """Return the state to a leader and record the leader's epoch, which fences earlier leaders."""
    error = refusal(shard, key, leader_epoch=requested.leader_epoch, initialized=True)
    if error:
        return Ruling(failed(ReadShareGroupStateResponse.Partition, key.partition, error))
    state = shard.states[key]
    start_offset, batches = shard.read_state(state)
    response = ReadShareGroupStateResponse.Partition(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=start_offset,
        state_batches=batches,
        staged_batches=shard.staged.batches(key) if shard.staged else (),
    )
    return Ruling(response, shard.leader_records(key, requested.leader_epoch, now_ms))


def write(
    key: SharePartitionKey, requested: WriteShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[WriteShareGroupStateResponse.Partition]:
    """Record the start offset and the state batches of a leader. The epochs of the state stay: only an initialization
    changes the state epoch, only a read the leader epoch (KAFKA-19456). With a producer, the batches are staged in its
    transaction."""
    response = WriteShareGroupStateResponse.Partition
    error = refusal(
        shard, key, leader_epoch=requested.leader_epoch, state_epoch=requested.state_epoch, initialized=True
    )
    if error:
        return Ruling(failed(response, key.partition, error))
    if requested.producer_id != NO_PRODUCER.id:
        return _stage(key, requested, shard)
    change = advance(shard.states[key], requested)
    return Ruling(response(partition=key.partition), shard.write_records(key, change, now_ms))


def _stage(
    key: SharePartitionKey, requested: WriteShareGroupStateRequest.Partition, shard: StateShard
) -> Ruling[WriteShareGroupStateResponse.Partition]:
    response = WriteShareGroupStateResponse.Partition
    if not shard.stages:
        return Ruling(failed(response, key.partition, Errors.UNSUPPORTED_VERSION))
    producer = Producer(requested.producer_id, requested.producer_epoch)
    staged = shard.staged_update(key, requested.state_batches, producer)
    return Ruling(response(partition=key.partition), [staged], producer)


def read_summary(
    key: SharePartitionKey, requested: ReadShareGroupStateSummaryRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[ReadShareGroupStateSummaryResponse.Partition]:
    """Return the summary of a share-partition. It fences no leader; a missing state is no error."""
    del requested, now_ms
    response = ReadShareGroupStateSummaryResponse.Partition
    error = refusal(shard, key)
    if error:
        return Ruling(failed(response, key.partition, error))
    state = shard.states.get(key)
    if state is None:
        return Ruling(response(partition=key.partition, start_offset=-1))
    return Ruling(
        response(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=shard.complete_count(state),
        )
    )


def delete(
    key: SharePartitionKey, requested: DeleteShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[DeleteShareGroupStateResponse.Partition]:
    """Delete the key by a tombstone. Deleting a key without state succeeds without a record."""
    del requested, now_ms
    response = DeleteShareGroupStateResponse.Partition
    error = refusal(shard, key)
    if error:
        return Ruling(failed(response, key.partition, error))
    return Ruling(response(partition=key.partition), shard.deletion(key))


# ---- writes ----------------------------------------------------------------------------------------------------------


def advance(state: KeyState, requested: WriteShareGroupStateRequest.Partition) -> StateChange:
    """The change of a write. The start offset never moves back, in whatever order writes arrive.

    The delivery complete count counts from the start offset, so it is taken from the side with the greater start
    offset.
    """
    start_offset, count = state.start_offset, state.delivery_complete_count
    if requested.start_offset > start_offset:
        start_offset, count = requested.start_offset, requested.delivery_complete_count
    elif requested.start_offset == start_offset:
        count = max(count, requested.delivery_complete_count)
    return StateChange(state.leader_epoch, start_offset, count, requested.state_batches)


# ---- the table -------------------------------------------------------------------------------------------------------


class Rpc(NamedTuple):
    """The handling of one request type.

    `inactive_first`: the check for an active coordinator comes before that for an empty group id or topic.
    `skips_empty_topics`: a topic without partitions is left out of the response; otherwise it makes the whole response
    empty.
    """

    response: type[Any]
    compute: Callable[[SharePartitionKey, Any, StateShard, int], Ruling[Any]]
    inactive_first: bool = False
    skips_empty_topics: bool = False


RPCS: dict[type[Request], Rpc] = {
    InitializeShareGroupStateRequest: Rpc(InitializeShareGroupStateResponse, initialize, True, True),
    ReadShareGroupStateRequest: Rpc(ReadShareGroupStateResponse, read),
    WriteShareGroupStateRequest: Rpc(WriteShareGroupStateResponse, write),
    DeleteShareGroupStateRequest: Rpc(DeleteShareGroupStateResponse, delete, True),
    ReadShareGroupStateSummaryRequest: Rpc(ReadShareGroupStateSummaryResponse, read_summary, True),
}


def failed(response: Callable[..., R], partition: int, error: Errors) -> R:
    """The error result of one partition."""
    return response(partition=partition, error_code=error, error_message=ERROR_MESSAGES.get(error))
