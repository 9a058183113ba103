"""Worked examples of dead-letter queues that need a broker of their own: with a cleaner that works at once, and with an
authorizer; on shareq, and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from shareq import Cluster
from shareq.kafka import LocalKafka
from shareq.model.acls import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER
from tests.kafka.fixtures import kafka_or_skip, shareq_config
from tests.pairings.dead_letter_examples import deliver_too_often, reject_one
from tests.pairings.dead_letters import COPY, TOO_OFTEN, DeadLetterStage, Letter
from tests.polling import PATIENCE_S, eventually

LOCK_MS = 5_000
SECURED = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
AT_ONCE = {"log.cleaner.backoff.ms": 100, "log.initial.task.delay.ms": 100}
"""The cleaner of Kafka works several times a second. One key is internal."""


@pytest.fixture(scope="module")
def prepared_kafka() -> Iterator[LocalKafka]:
    with kafka_or_skip(1, {**SECURED, **AT_ONCE}) as running:
        yield running


@pytest.fixture
def in_kafka(prepared_kafka: LocalKafka, fresh: Callable[[str], str]) -> Iterator[DeadLetterStage]:
    made = DeadLetterStage(prepared_kafka.bootstrap_servers, fresh, unavailable=None, lock_ms=LOCK_MS)
    with made.stack:
        yield made


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    config: dict[str, Any] = {**shareq_config(), **SECURED}
    with Cluster(brokers=1, clock="wall", config=config) as made:
        yield made


@pytest.fixture
def here(cluster: Cluster, fresh: Callable[[str], str]) -> Iterator[DeadLetterStage]:
    with cluster.serve() as server:
        made = DeadLetterStage(server.bootstrap_servers, fresh, unavailable="archive", lock_ms=LOCK_MS)
        with made.stack:
            yield made


def offsets(stage: DeadLetterStage) -> list[int]:
    """The offsets of the records that the log of the source has."""
    conf = {"bootstrap.servers": stage.address, "group.id": "reader", "enable.partition.eof": True}
    found: list[int] = []
    with Consumer(conf) as reader:
        reader.assign([TopicPartition(stage.source, 0, 0)])
        while (message := reader.poll(PATIENCE_S)) is not None and not message.error():
            found.append(message.offset() or 0)
    return found


def letters_of_compacted_records(stage: DeadLetterStage, clean: Callable[[], object]) -> list[Letter]:
    """The offsets 0 and 2 are gone when the records are delivered too often."""

    def write() -> None:
        stage.admin.incremental_alter_configs(
            "topic",
            stage.source,
            {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.ms": "1"},
        )
        stage.write(*"0123456", keys="abcacde")
        stage.write("7", keys="z")  # the segment of the newest batch is not compacted

        def left() -> list[int]:
            clean()
            return offsets(stage)

        eventually(left, [1, 3, 4, 5, 6, 7])

    deliver_too_often(stage, 6, stage.lock_ms, write, **COPY)
    return sorted(stage.letters(), key=lambda letter: letter.offset)


RECORDS = [Letter(n, 2, b"abcacdez"[n : n + 1], str(n).encode(), TOO_OFTEN) for n in (1, 3, 4, 5, 6, 7)]
HOLES = [Letter(n, 2, message=TOO_OFTEN) for n in (0, 2)]


def test_example_9_here(here: DeadLetterStage, cluster: Cluster) -> None:
    assert letters_of_compacted_records(here, cluster.clean_logs) == RECORDS


@pytest.mark.kafka
def test_example_9_in_kafka(in_kafka: DeadLetterStage) -> None:
    """Offsets without records get letters, too."""
    wanted = sorted([*RECORDS, *HOLES], key=lambda letter: letter.offset)
    assert letters_of_compacted_records(in_kafka, lambda: None) == wanted


def letters_of_a_denied_queue(stage: DeadLetterStage) -> list[Letter]:
    """The principal of clients and of Kafka's broker, which is one, may do all but write to the queue."""
    stage.create()
    literal, everyone = ResourcePatternType.LITERAL, "User:*"

    def binding(operation: AclOperation, permission: AclPermissionType) -> AclBinding:
        return AclBinding(ResourceType.TOPIC, stage.queue, literal, everyone, "*", operation, permission)

    bindings = [
        binding(AclOperation.ALL, AclPermissionType.ALLOW),
        binding(AclOperation.WRITE, AclPermissionType.DENY),
    ]
    stage.admin.create_acls(bindings).check()
    reject_one(stage)
    return stage.letters()


def test_example_28_here(here: DeadLetterStage) -> None:
    """Brokers have all rights."""
    assert letters_of_a_denied_queue(here) == [Letter(0, 1)]


@pytest.mark.kafka
def test_example_28_in_kafka(in_kafka: DeadLetterStage) -> None:
    assert letters_of_a_denied_queue(in_kafka) == []
