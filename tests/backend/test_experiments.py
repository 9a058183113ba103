"""Order by key, and a rest after a release, on a backend: what a leader keeps back there, and what the next process
knows of it. BEHAVIOUR.md of leader/experiments, sections 1 and 2."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka

from shareq import Cluster
from shareq.kafka import LocalKafka
from shareq.model.experiments import BACKOFF_MAX_MS, BACKOFF_MS, ENABLE, KEY_ORDERING
from shareq.model.states import AcknowledgeType
from tests.backend.stage import CONFIG, GROUP, Stage, finish, seen
from tests.polling import PATIENCE_S, take

HOUR_MS = 3_600_000


def test_a_key_waits_for_its_record_that_rests_and_for_nothing_after_a_restart(
    kafka: LocalKafka, fresh: Callable[[str], str]
) -> None:
    """A rest is not durable (1.7), the order is (2.7)."""
    stage = Stage(kafka, fresh)
    with stage.stack:
        first = started(stage)
        first.create_topic(stage.topic, 1)
        first.configure_group(stage.group, {**GROUP, KEY_ORDERING: "key", BACKOFF_MS: HOUR_MS, BACKOFF_MAX_MS: HOUR_MS})
        produce(stage, ("ann", "order"), ("bea", "order"), ("bea", "pay"), ("ann", "pay"))
        consumer = stage.consumer(first)
        anns, beas = take(consumer, 2)
        assert seen([anns, beas]) == [(b"order", 1), (b"order", 1)]
        finish(consumer, [beas], AcknowledgeType.RELEASE)
        finish(consumer, [anns])
        (next_,) = take(consumer, 1)
        assert (next_.key(), next_.value()) == (b"ann", b"pay")
        finish(consumer, [next_])
        consumer.close()
        first.close()

        consumer = stage.consumer(started(stage))
        for value, count in ((b"order", 2), (b"pay", 1)):
            (message,) = take(consumer, 1)
            assert (message.key(), message.value(), message.delivery_count()) == (b"bea", value, count)
            finish(consumer, [message])


def started(stage: Stage) -> Cluster:
    made = Cluster(backend=stage.kafka.bootstrap_servers, config={**CONFIG, ENABLE: True})
    return stage.stack.enter_context(made)


def produce(stage: Stage, *records: tuple[str, str]) -> None:
    """Produce one batch of keys and values with a client of the backend."""
    producer = confluent_kafka.Producer({"bootstrap.servers": stage.kafka.bootstrap_servers, "linger.ms": 10_000})
    producer.list_topics(stage.topic, PATIENCE_S)
    for key, value in records:
        producer.produce(stage.topic, value, key=key, partition=0)
    assert producer.flush(PATIENCE_S) == 0
