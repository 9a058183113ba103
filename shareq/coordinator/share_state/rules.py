"""The five share-state requests on one key's state: the checks, the records and the results.

Where Kafka 4.3 lets a late write take the start offset or the delivery complete count back, or an epoch of -1 pass the
fence, the rules are those of 4.4. Source: Kafka's ShareCoordinatorShard; KIP-932, "Share coordinator".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.share_state.merge import combine
from shareq.coordinator.share_state.records import (
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    encode_state_record,
)
from shareq.coordinator.share_state.state import KeyState, StateShard
from shareq.coordinator.turn import Append
from shareq.model.errors import Errors
from shareq.model.events import StateRecordWritten
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.base import Request
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    StateBatch,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from shareq.model.workflow import Workflow

R = TypeVar("R")

WHY = {
    Errors.INVALID_REQUEST: "a partition or an epoch is negative, or the share-partition is not initialized",
    Errors.FENCED_LEADER_EPOCH: "a later leader has already read the state",
    Errors.FENCED_STATE_EPOCH: "the state has already been initialized with a higher state epoch",
    Errors.UNKNOWN_TOPIC_OR_PARTITION: "the cluster knows no such topic or partition",
}
"""The texts that go with the errors which the checks give."""


def refusal(
    shard: StateShard,
    key: SharePartitionKey,
    *,
    leader_epoch: int | None = None,
    state_epoch: int | None = None,
    initialized: bool = False,
) -> Errors:
    """The first check that fails, or NONE. Epochs that the request does not carry (None) are not checked; `initialized`
    demands that there is a state."""
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
    """The result for one partition, and the records that are committed before it counts."""

    response: R
    records: Sequence[StateRecord] = ()


def append_states(runtime: ShardRuntime[StateShard], records: Sequence[StateRecord]) -> Workflow[Errors]:
    """During a turn: append the records, and put them into the journal once they are committed."""
    error: Errors = yield Append([encode_state_record(record) for record in records])
    if runtime.traced and not error:
        runtime.effects += [event_of(record) for record in records]
    return error


def event_of(record: StateRecord) -> StateRecordWritten:
    """The journal's event of a record."""
    if isinstance(record, StateTombstone):
        return StateRecordWritten(str(record.key), "tombstone", -1, -1, ())
    kind = "update" if isinstance(record, StateUpdate) else "snapshot"
    return StateRecordWritten(str(record.key), kind, record.snapshot_epoch, record.start_offset, record.state_batches)


# ---- the requests ----------------------------------------------------------------------------------------------------


def initialize(
    key: SharePartitionKey, wanted: InitializeShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[InitializeShareGroupStateResponse.Partition]:
    """Start anew with a snapshot. At an equal state epoch this has been done before: an attempt whose answer was lost
    arrives again, perhaps after records have been accepted, and changes nothing (KAFKA pull request 23190)."""
    response = InitializeShareGroupStateResponse.Partition
    error = refusal(shard, key, state_epoch=wanted.state_epoch)
    if error:
        return Ruling(failed(response, key.partition, error))
    state = shard.states.get(key)
    if state is not None and state.state_epoch == wanted.state_epoch:
        return Ruling(response(partition=key.partition))
    snapshot = StateSnapshot(
        key=key,
        snapshot_epoch=state.snapshot_epoch + 1 if state else 0,
        state_epoch=wanted.state_epoch,
        leader_epoch=0,
        start_offset=wanted.start_offset,
        create_timestamp=now_ms,
        write_timestamp=now_ms,
        delivery_complete_count=-1 if wanted.start_offset == -1 else 0,
    )
    return Ruling(response(partition=key.partition), [snapshot])


def read(
    key: SharePartitionKey, wanted: ReadShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[ReadShareGroupStateResponse.Partition]:
    """Return the state to a leader and record the leader's epoch, which fences earlier leaders."""
    error = refusal(shard, key, leader_epoch=wanted.leader_epoch, initialized=True)
    if error:
        return Ruling(failed(ReadShareGroupStateResponse.Partition, key.partition, error))
    state = shard.states[key]
    response = ReadShareGroupStateResponse.Partition(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=state.state_batches,
    )
    if state.leader_epoch_fence == wanted.leader_epoch:
        return Ruling(response)
    change = Change(wanted.leader_epoch, state.start_offset, state.delivery_complete_count, ())
    return Ruling(response, [next_record(shard, key, change, now_ms)])


def write(
    key: SharePartitionKey, wanted: WriteShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[WriteShareGroupStateResponse.Partition]:
    """Record what a leader has settled. The epochs of the state stay: only an initialization changes the state epoch,
    only a read the leader epoch (KAFKA-19456)."""
    response = WriteShareGroupStateResponse.Partition
    error = refusal(shard, key, leader_epoch=wanted.leader_epoch, state_epoch=wanted.state_epoch, initialized=True)
    if error:
        return Ruling(failed(response, key.partition, error))
    change = advance(shard.states[key], wanted)
    return Ruling(response(partition=key.partition), [next_record(shard, key, change, now_ms)])


def read_summary(
    key: SharePartitionKey, wanted: ReadShareGroupStateSummaryRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[ReadShareGroupStateSummaryResponse.Partition]:
    """Return the summary of a share-partition. It fences no leader; a missing state is no error."""
    del wanted, now_ms
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
            delivery_complete_count=state.delivery_complete_count,
        )
    )


def delete(
    key: SharePartitionKey, wanted: DeleteShareGroupStateRequest.Partition, shard: StateShard, now_ms: int
) -> Ruling[DeleteShareGroupStateResponse.Partition]:
    """End the key with a tombstone. To delete what is not there succeeds."""
    del wanted, now_ms
    response = DeleteShareGroupStateResponse.Partition
    error = refusal(shard, key)
    if error:
        return Ruling(failed(response, key.partition, error))
    tombstones = [StateTombstone(key)] if key in shard.states else []
    return Ruling(response(partition=key.partition), tombstones)


# ---- what a write makes of a state -----------------------------------------------------------------------------------


class Change(NamedTuple):
    """The content of the record of a write."""

    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


def advance(state: KeyState, wanted: WriteShareGroupStateRequest.Partition) -> Change:
    """What a write changes: the position never goes back, whichever order writes arrive in.

    The delivery complete count is counted from the start offset, so it is taken from the side with the later start
    offset.
    """
    start_offset, count = state.start_offset, state.delivery_complete_count
    if wanted.start_offset > start_offset:
        start_offset, count = wanted.start_offset, wanted.delivery_complete_count
    elif wanted.start_offset == start_offset:
        count = max(count, wanted.delivery_complete_count)
    return Change(state.leader_epoch, start_offset, count, wanted.state_batches)


def next_record(shard: StateShard, key: SharePartitionKey, change: Change, now_ms: int) -> StateRecord:
    """An update, or a snapshot when as many updates as allowed have followed the last one."""
    state = shard.states[key]
    leader_epoch, start_offset, count, batches = change
    if state.update_count < shard.updates_per_snapshot:
        added = combine((), batches, start_offset)
        return StateUpdate(key, state.snapshot_epoch, leader_epoch, start_offset, added, count)
    return StateSnapshot(
        key=key,
        snapshot_epoch=state.snapshot_epoch + 1,
        state_epoch=state.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        create_timestamp=now_ms,
        write_timestamp=now_ms,
        state_batches=combine(state.state_batches, batches, start_offset),
        delivery_complete_count=count,
    )


# ---- the table -------------------------------------------------------------------------------------------------------


class Rpc(NamedTuple):
    """How one kind of request is answered.

    `inactive_first`: a coordinator that has not started answers with that error before it checks the request.
    `skips_empty_topics`: a topic without partitions is left out of the answer, where it else empties the whole answer.
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
    """The answer for one partition where something is wrong."""
    return response(partition=partition, error_code=error, error_message=WHY.get(error))
