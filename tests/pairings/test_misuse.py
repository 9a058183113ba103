"""Configurations and calls that both clients refuse in the same way."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.pairings.stage import CLIENTS, Stage, pairing, raised
from tests.polling import PATIENCE_S, take

NO_BROKER = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}

# ---- configurations --------------------------------------------------------------------------------------------------

OF_PLAIN_CONSUMERS = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": True,
    "isolation.level": "read_committed",
    "partition.assignment.strategy": "range",
    "group.instance.id": "me",
    "group.protocol": "consumer",
    "group.remote.assignor": "uniform",
    "session.timeout.ms": 10000,
    "heartbeat.interval.ms": 1000,
    "group.protocol.type": "consumer",
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1024,
    "fetch.queue.backoff.ms": 1,
    "fetch.error.backoff.ms": 1,
    "enable.partition.eof": True,
    "consume.callback.max.messages": 1,
    "message.copy.max.bytes": 1000,
    "topic.blacklist": "t",
    "socket.max.fails": 1,
    "allow.auto.create.topics": True,
    "on_commit": print,
}


@pytest.mark.parametrize(
    ("conf", "expected"),
    [
        *(
            pytest.param({"group.id": "g", key: value}, "ValueError", id=key)
            for key, value in OF_PLAIN_CONSUMERS.items()
        ),
        pytest.param({}, "ValueError", id="no group"),
        pytest.param({"group.id": "g"}, "nothing", id="a group"),
        pytest.param({"group.id": "g", "auto.commit.interval.ms": 5}, "nothing", id="key without effect"),
        pytest.param({"group.id": "g", "max.poll.records": 0}, "KafkaException -186", id="too few records"),
        pytest.param({"group.id": "g", "max.poll.records": 1}, "nothing", id="one record"),
        pytest.param({"group.id": "g", "max.poll.records": 2**31}, "KafkaException -186", id="too many records"),
        pytest.param({"group.id": "g", "max.poll.records": "ten"}, "KafkaException -186", id="no number"),
        pytest.param({"group.id": "g", "fetch.wait.max.ms": -1}, "KafkaException -186", id="negative time"),
        pytest.param({"group.id": "g", "no.such.key": 1}, "KafkaException -186", id="an unknown key"),
        pytest.param({"group.id": "g", "reconnect.backoff.ms": -1}, "KafkaException -186", id="negative back-off"),
        pytest.param({"group.id": "g", "reconnect.backoff.ms": 1000}, "nothing", id="back-off equal to the maximum"),
        pytest.param(
            {"group.id": "g", "reconnect.backoff.ms": 1001, "reconnect.backoff.max.ms": 1000},
            "ValueError",
            id="back-off above the maximum",
        ),
        pytest.param(
            {"group.id": "g", "reconnect.backoff.max.ms": 3_600_001},
            "KafkaException -186",
            id="maximum back-off above an hour",
        ),
        pytest.param(
            {"group.id": "g", "socket.connection.setup.timeout.ms": 999},
            "KafkaException -186",
            id="setup timeout too short",
        ),
        pytest.param(
            {"group.id": "g", "socket.send.buffer.bytes": 10**8 + 1}, "KafkaException -186", id="send buffer too large"
        ),
        pytest.param({"group.id": "g", "socket.keepalive.enable": "x"}, "KafkaException -186", id="no bool"),
        pytest.param({"group.id": "g", "socket.nagle.disable": "false"}, "nothing", id="bool as text"),
    ],
)
def test_valid_and_invalid_configurations(conf: dict[str, object], expected: str) -> None:
    def made(client: Any) -> None:
        client.ShareConsumer(NO_BROKER | conf).close()

    assert {name: raised(made, client) for name, client in CLIENTS.items()} == dict.fromkeys(CLIENTS, expected)


@pytest.mark.parametrize("args", [(), ("g",), (None,)], ids=["nothing", "a name", "None"])
def test_a_configuration_that_is_no_dict_raises_type_error(args: tuple[object, ...]) -> None:
    found = {name: raised(lambda client=client: client.ShareConsumer(*args)) for name, client in CLIENTS.items()}
    assert found == dict.fromkeys(CLIENTS, "TypeError")


# ---- calls -----------------------------------------------------------------------------------------------------------


@pairing(
    {
        "subscribe to a str": "TypeError",
        "subscribe to a tuple": "TypeError",
        "subscribe to ''": "ValueError",
        "subscribe to a topic twice": "ValueError",
        "poll None": "TypeError",
        "poll '1'": "TypeError",
        "commit_sync '1'": "TypeError",
        "commit_sync without records": "nothing",
        "commit_async without records": "nothing",
        "callback 3": "TypeError",
        "callback None": "nothing",
        "credentials": "nothing",
        "credentials of int": "TypeError",
        "initialize again": "RuntimeError",
    }
)
def test_valid_and_invalid_arguments(stage: Stage) -> Any:
    stage.create()
    consumer = stage.consumer()
    return {
        "subscribe to a str": raised(consumer.subscribe, stage.topic),
        "subscribe to a tuple": raised(consumer.subscribe, (stage.topic,)),
        "subscribe to ''": raised(consumer.subscribe, [""]),
        "subscribe to a topic twice": raised(consumer.subscribe, ["a", "a"]),
        "poll None": raised(consumer.poll, None),
        "poll '1'": raised(consumer.poll, "1"),
        "commit_sync '1'": raised(consumer.commit_sync, "1"),
        "commit_sync without records": raised(consumer.commit_sync),
        "commit_async without records": raised(consumer.commit_async),
        "callback 3": raised(consumer.set_acknowledgement_commit_callback, 3),
        "callback None": raised(consumer.set_acknowledgement_commit_callback, None),
        "credentials": raised(consumer.set_sasl_credentials, "me", "secret"),
        "credentials of int": raised(consumer.set_sasl_credentials, "me", 1),
        "initialize again": raised(consumer.__init__, {"group.id": "g"}),
    }


@pairing({"uses": {"IllegalStateException"}, "with": "IllegalStateException", "close": "nothing"})
def test_calls_on_a_closed_consumer_are_refused(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    consumer = stage.explicit()
    (message,) = take(consumer, 1)
    consumer.close()
    uses = {
        raised(consumer.subscribe, [stage.topic]),
        raised(consumer.unsubscribe),
        raised(consumer.subscription),
        raised(consumer.poll, 0.1),
        raised(consumer.acknowledge, message),
        raised(consumer.commit_sync),
        raised(consumer.commit_async),
        raised(consumer.set_acknowledgement_commit_callback, None),
    }
    return {"uses": uses, "with": raised(consumer.__enter__), "close": raised(consumer.close)}


@pairing({"beside a poll": "ConcurrentModificationException", "the poll": ["a"]})
def test_concurrent_calls_are_refused(stage: Stage) -> Any:
    stage.create()
    consumer = stage.consumer()
    polled: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S

    def poll() -> None:
        """Its call and the other thread's call conflict, so it retries until it has a record."""
        while not polled and time.monotonic() < deadline:
            raised(lambda: polled.extend(consumer.poll(1)))

    thread = threading.Thread(target=poll)
    thread.start()
    beside = "nothing"
    while beside == "nothing" and time.monotonic() < deadline:  # until the other thread polls
        beside = raised(consumer.subscription)
    stage.write("a")
    thread.join()
    return {"beside a poll": beside, "the poll": [message.value().decode() for message in polled]}
