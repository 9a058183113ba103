"""A producer on a fake cluster, whose leader and coordinator keep what they receive."""

from __future__ import annotations

from typing import Any

from shareq.log.batches import parse_batch
from shareq.log.records import decode
from shareq.model.errors import Errors
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from shareq.producer import Producer
from tests.client.fake import Fake


class FakeLeader:
    """Logs as lists of (key, value, headers, timestamp) by topic id and partition; first responses have `errors`."""

    def __init__(self, fake: Fake, *errors: Errors) -> None:
        self.fake = fake
        self.errors = list(errors)
        self.logs: dict[tuple[str, int], list[Any]] = {}
        self.batches: list[tuple[int, Any]] = []
        fake.answers[ProduceRequest] = self.produce

    def produce(self, fake: Fake, node: int, request: ProduceRequest) -> Any:
        error = self.errors.pop(0) if self.errors else Errors.NONE
        if error is Errors.NETWORK_EXCEPTION:
            return error
        return ProduceResponse(
            responses=tuple(
                ProduceResponse.Topic(
                    topic_id=topic.topic_id,
                    partitions=tuple(self._append(topic.topic_id, node, part, error) for part in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def _append(
        self, topic_id: str, node: int, part: ProduceRequest.Partition, error: Errors
    ) -> ProduceResponse.Partition:
        if error:
            return ProduceResponse.Partition(index=part.index, error_code=error, error_message="why")
        log = self.logs.setdefault((topic_id, part.index), [])
        base_offset = len(log)
        batch = parse_batch(part.records)
        self.batches.append((node, batch))
        log += [(record.key, record.value, record.headers, record.timestamp) for record in decode(batch)]
        return ProduceResponse.Partition(index=part.index, base_offset=base_offset)

    def values(self, partition: int = 0, topic: str = "t") -> list[bytes | None]:
        return [value for _, value, _, _ in self.logs.get((self.fake.ids[topic], partition), [])]


class Coordinator:
    """Gives producer id 7, and a new epoch with each transaction; its first responses have `errors`."""

    def __init__(self, fake: Fake, *errors: Errors) -> None:
        self.errors = list(errors)
        self.epoch = 0
        self.ended: list[bool] = []
        fake.answers[InitProducerIdRequest] = self.init
        fake.answers[EndTxnRequest] = self.end

    def init(self, fake: Fake, node: int, request: InitProducerIdRequest) -> Any:
        if self.errors:
            return InitProducerIdResponse(error_code=self.errors.pop(0))
        return InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch)

    def end(self, fake: Fake, node: int, request: EndTxnRequest) -> Any:
        if self.errors:
            return EndTxnResponse(error_code=self.errors.pop(0))
        assert (request.producer_id, request.producer_epoch) == (7, self.epoch)
        self.ended.append(request.committed)
        self.epoch += 1
        return EndTxnResponse(producer_id=7, producer_epoch=self.epoch)


class Reports(list[Any]):
    """A delivery callback that keeps (error code, partition, offset) of each record."""

    def __call__(self, error: Any, message: Any) -> None:
        self.append((error and error.code(), message.partition(), message.offset()))


def setup(*errors: Errors, leaders: list[int] | None = None, **conf: Any) -> tuple[Fake, FakeLeader, Producer]:
    fake = Fake(t=leaders or [1])
    leader = FakeLeader(fake, *errors)
    keys = {key.replace("_", "."): value for key, value in conf.items()}
    return fake, leader, Producer({"bootstrap.servers": fake.address, **keys})


def with_coordinator(**conf: Any) -> tuple[Fake, FakeLeader, Coordinator, Producer]:
    fake, leader, producer = setup(leaders=[1, 1], **conf)
    return fake, leader, Coordinator(fake), producer


def transactional(**conf: Any) -> tuple[Fake, FakeLeader, Coordinator, Producer]:
    fake, leader, coordinator, producer = with_coordinator(transactional_id="x", **conf)
    producer.init_transactions()
    producer.begin_transaction()
    return fake, leader, coordinator, producer


def places(leader: FakeLeader) -> list[tuple[int, int, int, bool]]:
    """(producer id, epoch, base sequence, transactional) of each batch."""
    return [(b.producer_id, b.producer_epoch, b.base_sequence, b.is_transactional) for _, b in leader.batches]
