"""Cost of the share leader: a fetch with an acknowledgement, for one member and for a thousand.

Run with `make bench`. Requests are built beforehand; the broker around the actor is a few lines that answer effects
immediately with prepared record batches.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from shareq.leader import ShareLeader
from shareq.model.actor import (
    Answer,
    FindOffset,
    ImageChanged,
    Incoming,
    LogRead,
    Message,
    OffsetFound,
    Persist,
    ReadLog,
    Respond,
)
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.image import ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareFetchRequest
from shareq.model.messages.share_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    WriteShareGroupStateResponse,
)
from shareq.model.records import RecordBatch

pytestmark = pytest.mark.bench

BATCH = 500
TOPIC_ID = TopicId("T" * 22)
HIGH_WATERMARK = 1 << 50
NOW_MS = 1_000_000


class Broker:
    """Answers every effect immediately; each log has records without end."""

    def __init__(self, partitions: int, record_size: int) -> None:
        self.leader = ShareLeader(0, traced=False)
        self.data = bytes(BATCH * record_size)
        part = PartitionImage(leader=0, leader_epoch=0, replicas=(0,), isr=(0,))
        topic = TopicImage(name="t", topic_id=TOPIC_ID, partitions=(part,) * partitions)
        image = ClusterImage(
            topics={"t": topic},
            topics_by_id={TOPIC_ID: topic},
            group_configs={"g": {"share.auto.offset.reset": "earliest"}},
        )
        self.deliver(ImageChanged(image))
        self.written = [
            WriteShareGroupStateResponse(
                results=(
                    WriteShareGroupStateResponse.Topic(
                        topic_id=TOPIC_ID, partitions=(WriteShareGroupStateResponse.Partition(partition=p),)
                    ),
                )
            )
            for p in range(partitions)
        ]

    def deliver(self, message: Message) -> Any:
        """Deliver a message and all answers to its effects; returns the last response."""
        inbox = [message]
        response: Any = None
        for received in inbox:  # the list grows during the loop
            for effect in self.leader.handle(received, NOW_MS):
                if isinstance(effect, ReadLog):
                    inbox.append(self._read(effect))
                elif isinstance(effect, Persist):
                    inbox.append(Answer(effect.id, self._persisted(effect.request)))
                elif isinstance(effect, Respond):
                    response = effect.response
                elif isinstance(effect, FindOffset):
                    inbox.append(OffsetFound(effect.id, Errors.NONE, 0))
        return response

    def _read(self, effect: ReadLog) -> LogRead:
        base = effect.offset - effect.offset % BATCH
        batch = RecordBatch(base, base + BATCH - 1, 0, 0, 0, -1, -1, -1, BATCH, 0, self.data)
        return LogRead(effect.id, Errors.NONE, (batch,), HIGH_WATERMARK, 0, HIGH_WATERMARK)

    def _persisted(self, request: Any) -> Any:
        partition = request.topics[0].partitions[0].partition
        if type(request) is not ReadShareGroupStateRequest:
            return self.written[partition]
        part = ReadShareGroupStateResponse.Partition(partition=partition, start_offset=-1)
        return ReadShareGroupStateResponse(
            results=(ReadShareGroupStateResponse.Topic(topic_id=TOPIC_ID, partitions=(part,)),)
        )


def request(member: int, epoch: int, partitions: range | list[int], offset: int | None = None) -> Incoming:
    """A fetch that lists partitions, or accepts the batch at `offset` in each of them."""
    acks = (
        ()
        if offset is None
        else (AcknowledgementBatch(first_offset=offset, last_offset=offset + BATCH - 1, acknowledge_types=(1,)),)
    )
    parts = tuple(ShareFetchRequest.Partition(partition_index=p, acknowledgement_batches=acks) for p in partitions)
    topics = (ShareFetchRequest.Topic(topic_id=TOPIC_ID, partitions=parts),)
    body = ShareFetchRequest(group_id="g", member_id=f"m{member}", share_session_epoch=epoch, topics=topics)
    return Incoming(epoch, body)


def measure(benchmark: BenchmarkFixture, step: Callable[[Any], object], steps: list[Any]) -> None:
    """Time one call of `step` for each of the prepared steps."""
    remaining = iter(steps)
    benchmark.pedantic(lambda: step(next(remaining)), rounds=len(steps) - 1, iterations=1, warmup_rounds=1)


@pytest.mark.parametrize("record_size", [10, 100, 1000])
def test_fetch_and_accept_of_500_records(benchmark: BenchmarkFixture, record_size: int) -> None:
    broker = Broker(1, record_size)
    broker.deliver(request(0, 0, range(1)))
    steps = [request(0, epoch, [0], (epoch - 1) * BATCH) for epoch in range(1, 4000)]

    def step(incoming: Incoming) -> None:
        response = broker.deliver(incoming)
        assert response.responses[0].partitions[0].acquired_records

    measure(benchmark, step, steps)


@pytest.mark.parametrize("partitions", [1, 10, 100, 1000])
def test_one_member_with_many_partitions(benchmark: BenchmarkFixture, partitions: int) -> None:
    broker = Broker(partitions, 100)
    fetched = broker.deliver(request(0, 0, range(partitions))).responses[0].partitions
    held = {p.partition_index: p.acquired_records[0] for p in fetched if p.acquired_records}
    epochs = iter(range(1, 1 << 30))

    def step(_: object) -> None:
        partition, run = held.popitem()
        response = broker.deliver(request(0, next(epochs), [partition], run.first_offset))
        for part in response.responses[0].partitions:
            if part.acquired_records:
                held[part.partition_index] = part.acquired_records[0]
        assert held

    measure(benchmark, step, list(range(3000)))


@pytest.mark.parametrize("members", [1, 10, 100, 1000])
def test_many_members_with_one_partition(benchmark: BenchmarkFixture, members: int) -> None:
    """Most members wait: the window holds four batches, and an acknowledgement puts its member at the end."""
    broker = Broker(1, 100)
    holding: list[tuple[int, int]] = []
    for member in range(min(members, 4)):
        response = broker.deliver(request(member, 0, range(1)))
        holding.append((member, response.responses[0].partitions[0].acquired_records[0].first_offset))
    for member in range(len(holding), members):
        broker.deliver(request(member, 0, range(1)))
    epochs = [1] * members

    def step(_: object) -> None:
        member, offset = holding.pop(0)
        response = broker.deliver(request(member, epochs[member], [0], offset))
        epochs[member] += 1
        part = response.responses[0].partitions[0]
        next_member = member if members <= 4 else (holding[-1][0] + 1) % members
        holding.append((next_member, part.acquired_records[0].first_offset))

    measure(benchmark, step, list(range(3000)))


@pytest.mark.parametrize("pairs", [1, 10, 100, 1000])
def test_as_many_members_as_partitions_one_each(benchmark: BenchmarkFixture, pairs: int) -> None:
    broker = Broker(pairs, 100)
    for member in range(pairs):
        broker.deliver(request(member, 0, [member]))
    turns = cycle(range(pairs))
    epochs = [0] * pairs
    steps = []
    for _ in range(3000):
        member = next(turns)
        epochs[member] += 1
        steps.append(request(member, epochs[member], [member], (epochs[member] - 1) * BATCH))
    measure(benchmark, broker.deliver, steps)
