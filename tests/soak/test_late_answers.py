"""Clients on a backend whose answers are later than the time-out of their requests; it failed once in `make test`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, cast

import confluent_kafka
import pytest

from shareq.broker.backend.client import BackendClient
from shareq.broker.backend.topics import IN_BACKEND
from shareq.kafka import LocalKafka
from shareq.model.ids import SHARE_STATE_TOPIC
from tests.backend.late_answers import late_answers
from tests.backend.test_faults import REQUEST_MS, Fresh, Work
from tests.polling import PATIENCE_S, take

STATES = IN_BACKEND[SHARE_STATE_TOPIC]
TOO_LATE_S = 1.5 * REQUEST_MS / 1000


def stored_states(kafka: LocalKafka, group: str) -> list[tuple[Any, ...]]:
    """The records of the group's states, with their timestamps, in the topic of the backend."""
    conf = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "enable.partition.eof": True}
    consumer = confluent_kafka.Consumer(conf)
    partitions = consumer.list_topics(STATES, timeout=PATIENCE_S).topics[STATES].partitions
    consumer.assign([confluent_kafka.TopicPartition(STATES, number, 0) for number in partitions])
    found: list[tuple[Any, ...]] = []
    ends = 0
    while ends < len(partitions):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error, key = message.error(), message.key()
        if error is not None:
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
            ends += 1
        elif key is not None and group.encode() in key:
            found.append((key, message.value(), message.timestamp()))
    consumer.close()
    return found


def test_clients_continue_when_answers_of_the_backend_were_too_late(
    kafka: LocalKafka, fresh: Fresh, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backend carries requests out, and answers after their time-out: an append is sent again although it was
    written, and is stored once; so the acceptance of which the client does not know the result counts once."""
    monkeypatch.setitem(cast(dict[str, Any], BackendClient.call.__kwdefaults__), "timeout_ms", REQUEST_MS)
    with ExitStack() as stack:
        slow = stack.enter_context(late_answers(kafka, monkeypatch))
        work = Work(kafka, fresh, stack, slow.address)
        work.send(20)
        first, _ = work.consumers  # the other library's commits have no time-out of their own
        held = take(first, 1)
        with slow.late_by(TOO_LATE_S):
            work.send(20)
            work.ledger.accept(first, held)
            assert work.ledger.unknown == {(0, message.offset()) for message in held}
            work.ledger.work(first)
        work.turn_until(lambda: work.lag() == 0)
        work.send(20)
        work.finish()
        work.turn_until(lambda: work.lag() == 0)
        assert {work.ledger.deliveries[0, message.offset()] for message in held} == {1}
        stored = stored_states(kafka, work.group)
        assert len(stored) == len(set(stored)) > 0
