"""A client without logic: it sends the requests of a test and keeps the responses."""

from __future__ import annotations

from typing import Any

from shareq.broker import Cluster
from shareq.log.records import encode_batch
from shareq.model.actor import ANY_NODE, Answer, Call, Effect, Message
from shareq.model.errors import Errors
from shareq.model.messages.base import Request
from shareq.model.messages.data import ProduceRequest, ProduceResponse


class Probe:
    """An actor that keeps every message it receives."""

    wake_at_ms = None

    def __init__(self, cluster: Cluster, client_id: str = "probe") -> None:
        self.cluster = cluster
        self.answers: dict[int, Answer] = {}
        self._ids = 0
        self.connection = cluster.connect(self, client_id)

    def handle(self, message: Message, now_ms: int) -> list[Effect]:
        assert isinstance(message, Answer)
        assert message.id not in self.answers, "answered twice"
        self.answers[message.id] = message
        return []

    def send(self, request: Request, node: int = ANY_NODE, timeout_ms: int = 30000) -> int:
        """Send without waiting; returns the id of the call, which is the key of its answer in `answers`."""
        self._ids += 1
        call_id = self._ids
        self.connection.run(lambda _: [Call(call_id, node, request, timeout_ms)])
        return call_id

    def ask(self, request: Request, node: int = ANY_NODE) -> Any:
        """Send, wait for the response and return it."""
        call_id = self.send(request, node)
        assert self.connection.wait(lambda: call_id in self.answers, 60_000)
        answer = self.answers[call_id]
        assert answer.error is Errors.NONE, answer.error.name
        return answer.response

    def produce(
        self, topic: str, *values: str, partition: int = 0, keyed: bool = False, **batch: Any
    ) -> ProduceResponse.Partition:
        """Produce one batch of values to the partition's leader; `keyed`: each value is its own key."""
        image = self.cluster.image.topics[topic]
        encoded = [value.encode() for value in values]
        records: list[Any] = [(value if keyed else None, value, [], self.cluster.now_ms) for value in encoded]
        part = ProduceRequest.Partition(index=partition, records=encode_batch(records, **batch))
        request = ProduceRequest(topics=(ProduceRequest.Topic(topic_id=image.topic_id, partitions=(part,)),))
        result = self.ask(request, image.partitions[partition].leader).responses[0].partitions[0]
        assert isinstance(result, ProduceResponse.Partition)
        return result
