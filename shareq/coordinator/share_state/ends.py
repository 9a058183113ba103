"""What follows the end of a transaction that has staged acknowledgements (an experiment): the leader of the
share-partition is notified, and the log gets a snapshot if one is due. Rules: `leader/experiments/BEHAVIOUR.md`,
"Transactional acknowledgements"."""

from __future__ import annotations

from shareq.coordinator.runtime.runtime import ShardRuntime
from shareq.coordinator.runtime.turn import BackgroundTurn
from shareq.coordinator.share_state.rules import append_states
from shareq.coordinator.share_state.staged import EndedTransaction
from shareq.coordinator.share_state.state import StateChange, StateShard
from shareq.model.events import StateRecordWritten
from shareq.model.image import NO_LEADER
from shareq.model.messages.share_transactions import EndShareTransactionRequest, EndShareTransactionResponse
from shareq.model.state_batches import combine
from shareq.model.workflow import Pause, Send, Workflow

RETRY_BACKOFF_MS = 100


def end_at_leader(ended: EndedTransaction, shard: StateShard) -> Workflow[None]:
    """Send EndShareTransaction until a leader has answered it without error, or the topic is deleted.

    A leader that reads the state from now on finds the result there. So the leader to notify is the last one that has
    read it before; its epoch fences the earlier ones.
    """
    key, producer = ended.key, ended.producer
    state = shard.states.get(key)
    request = EndShareTransactionRequest(
        group_id=key.group_id,
        topic_id=key.topic_id,
        partition=key.partition,
        leader_epoch=-1 if state is None else state.leader_epoch_fence,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=ended.committed,
    )
    while (partition := shard.image().partition(key.topic_id, key.partition)) is not None:
        if partition.leader != NO_LEADER:
            reply = yield Send(partition.leader, request)
            if isinstance(reply.response, EndShareTransactionResponse) and not reply.response.error_code:
                return
        yield Pause(RETRY_BACKOFF_MS)


def snapshot_if_due(runtime: ShardRuntime[StateShard], partition: int, ended: EndedTransaction) -> Workflow[None]:
    """Write a snapshot if the maximum of updates has followed the last one: of writes, only those outside of
    transactions become snapshots. A failed append is repeated after the next transaction."""
    shard = yield BackgroundTurn(partition)
    state = shard.states.get(ended.key)
    if ended.committed and state is not None and state.update_count >= shard.updates_per_snapshot:
        change = StateChange(state.leader_epoch, state.start_offset, state.delivery_complete_count, ())
        yield from append_states(runtime, shard, [shard.snapshot(ended.key, change, runtime.day_ms)])


def committed_update(ended: EndedTransaction, shard: StateShard) -> list[StateRecordWritten]:
    """The journal's event of a committed transaction: an update of the state, as of a write outside of transactions."""
    state = shard.states.get(ended.key)
    if not ended.committed or state is None or state.state_epoch != ended.state_epoch:
        return []
    batches = combine((), ended.batches, state.start_offset)
    return [StateRecordWritten(str(ended.key), shard.change, state.snapshot_epoch, state.start_offset, batches)]
