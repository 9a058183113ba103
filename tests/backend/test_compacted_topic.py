"""The compacted topic as the persister on an Apache Kafka. BEHAVIOUR.md of the backend, 1.6; of the persister, 1, 13.

SHAREQ_KILLS is the number of kills.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest

from shareq import Cluster, ConfigException
from shareq.broker.backend.topics import IN_BACKEND
from shareq.coordinator.share_state import StateRecord, StateSnapshot, StateUpdate, decode_state_record
from shareq.kafka import LocalKafka
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType
from tests.backend.stage import CONFIG, Stage, finish, seen
from tests.backend.test_killed import kill_and_work
from tests.polling import PATIENCE_S, take

NAME = IN_BACKEND[SHARE_STATE_TOPIC]


@pytest.fixture
def stage(compacting_kafka: LocalKafka, fresh: Callable[[str], str]) -> Iterator[Stage]:
    made = Stage(compacting_kafka, fresh, persister="compacted-topic")
    with made.stack:
        yield made


def test_the_next_process_reads_the_states_from_the_compacted_topic(stage: Stage) -> None:
    first = stage.prepared()
    stage.produce("a", "b", "c", "d")
    consumer = stage.consumer(first)
    _, b, c, _ = take(consumer, 4)
    finish(consumer, [b])
    finish(consumer, [c], AcknowledgeType.RELEASE)
    consumer.close()
    first.close()
    again = take(stage.consumer(stage.cluster()), 3)
    assert seen(again) == [(b"a", 2), (b"c", 2), (b"d", 2)]
    found = {type(record) for record in state_records(stage.kafka)}
    assert found >= {StateSnapshot, StateUpdate}
    assert all(r.delta_index >= 0 for r in state_records(stage.kafka) if isinstance(r, StateUpdate))


def state_records(kafka: LocalKafka) -> list[StateRecord | None]:
    """The records of the state topic, read by another client."""
    conf = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True}
    reader = confluent_kafka.Consumer({**conf, "auto.offset.reset": "earliest"})
    partitions = reader.list_topics(NAME).topics[NAME].partitions
    reader.assign([confluent_kafka.TopicPartition(NAME, index, 0) for index in partitions])
    records, open_ = [], set(partitions)
    while open_:
        message = reader.poll(PATIENCE_S)
        assert message is not None
        if message.error():
            open_.discard(message.partition())
        else:
            records.append(decode_state_record(message.key() or b"", message.value()))
    reader.close()
    return records


@pytest.mark.parametrize("other", ["state-topic", None])
def test_a_start_with_another_persister_is_refused(stage: Stage, other: str | None) -> None:
    stage.cluster().close()
    text = f"persister='state-topic': the topic {NAME} has cleanup.policy=compact: another persister"
    with pytest.raises(ConfigException, match=re.escape(text)):
        Cluster(backend=stage.kafka.bootstrap_servers, config=CONFIG, persister=other)
    stage.cluster()


def test_without_a_persister_any_state_topic_will_do(stage: Stage) -> None:
    stage.cluster().close()
    with Cluster(backend=stage.kafka.bootstrap_servers, config=CONFIG, persister="none") as cluster:
        assert cluster.brokers_alive


def test_accepted_records_stay_accepted_when_the_process_is_killed(
    compacting_kafka: LocalKafka, fresh: Callable[[str], str], seed: int
) -> None:
    kill_and_work(compacting_kafka, fresh, seed, "--persister", "compacted-topic")
