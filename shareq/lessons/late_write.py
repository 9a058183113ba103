"""A leader that does not know that it is one no more: a state write with the epochs of another time."""

from __future__ import annotations

from typing import Any

from shareq.lessons.bench import Bench
from shareq.lessons.state_log import STATE_TOPIC, state_partition
from shareq.model.actor import Answer, Call, Effect, Message
from shareq.model.errors import Errors
from shareq.model.events import SharePartitionLoaded
from shareq.model.messages.share_state import StateBatch, WriteShareGroupStateRequest
from shareq.model.states import RecordState

PATIENCE_MS = 30_000


class _Sender:
    """An actor without logic: it keeps the answer to its only request, and the time of it."""

    wake_at_ms = None

    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.answered_ms: int | None = None

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        if isinstance(message, Answer):
            self.answer, self.answered_ms = message, now_ms
        return []


def late_write(bench: Bench, offset: int, *, leader_epoch: int, state_epoch: int | None = None) -> str:
    """Send a state write to the share coordinator, as a leader of `leader_epoch` would: the record at `offset` is
    archived. `state_epoch` None: that of the last load. Returns "ok" or the name of the coordinator's error.

    TimeoutError if no answer comes.
    """
    loads: list[Any] = [entry.event for entry in bench.cluster.journal.select(SharePartitionLoaded)]
    image = bench.cluster.image
    batch = StateBatch(
        first_offset=offset, last_offset=offset, delivery_state=int(RecordState.ARCHIVED), delivery_count=1
    )
    part = WriteShareGroupStateRequest.Partition(
        partition=0,
        state_epoch=loads[-1].state_epoch if state_epoch is None else state_epoch,
        leader_epoch=leader_epoch,
        start_offset=loads[-1].spso,
        state_batches=(batch,),
    )
    topic = WriteShareGroupStateRequest.Topic(topic_id=image.topics[bench.topic].topic_id, partitions=(part,))
    request = WriteShareGroupStateRequest(group_id=bench.group, topics=(topic,))
    sender = _Sender()
    connection = bench.cluster.connect(sender, "former leader")
    node = image.topics[STATE_TOPIC].partitions[state_partition(bench)].leader
    connection.run(lambda _: [Call(1, node, request, PATIENCE_MS)])
    connection.wait(lambda: sender.answer is not None, PATIENCE_MS)
    if sender.answer is None or sender.answer.error:
        raise TimeoutError("the share coordinator has not answered")
    response: Any = sender.answer.response
    error: Errors = response.results[0].partitions[0].error_code
    return error.name if error else "ok"
