"""Changes bytes of a stored record without the broker's knowledge, as a faulty disk would."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shareq import Cluster
from shareq.wire.server import Server
from tests.kafka.fixtures import Backed

if TYPE_CHECKING:
    from shareq.kafka import LocalKafka


def damage(broker: Any, topic: str, old: bytes, new: bytes) -> None:
    """Replace `old`, which occurs once in partition 0 of the topic, with `new` of the same length."""
    assert len(old) == len(new)
    if isinstance(broker, Server):
        _damage_log(broker, topic, old, new)
    else:
        _damage_file(broker.kafka if isinstance(broker, Backed) else broker, topic, old, new)


def _damage_log(server: Server, topic: str, old: bytes, new: bytes) -> None:
    assert isinstance(server.cluster, Cluster)
    batches = server.cluster.log(topic, 0)._batches
    ((index, batch),) = [(i, batch) for i, batch in enumerate(batches) if old in batch.data]
    batches[index] = batch._replace(data=bytes(batch.data).replace(old, new))


def _damage_file(kafka: LocalKafka, topic: str, old: bytes, new: bytes) -> None:
    """Kafka sends the bytes of the file."""
    (path,) = kafka._brokers[0].data.glob(f"{topic}-0/*.log")
    with path.open("r+b") as file:
        content = file.read()
        assert content.count(old) == 1
        file.seek(content.index(old))
        file.write(new)
