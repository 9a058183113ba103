"""Broker configurations that Apache Kafka does not have: it leaves them unused, and a local Kafka says so."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from shareq.jvm import find_java
from shareq.kafka.broker_process import KafkaCommand
from shareq.kafka.jars import kafka_jars
from shareq.kafka.known_keys import unused_keys
from shareq.kafka.local import LocalKafka, LocalKafkaError
from shareq.model.configs import BROKER_CONFIGS

LISTED = "\n".join(f'<a id="{key}"></a><a id="brokerconfigs_{key}" ' for key in ("num.partitions", "zookeeper"))


def kafka_that_lists(output: str) -> Any:
    """A command whose Kafka prints this documentation of its configurations."""
    command = [sys.executable, "-c", f"print({output!r})"]
    archive, jars = SimpleNamespace(use=lambda: ()), SimpleNamespace(version="4.4.0")
    return SimpleNamespace(tool=lambda *_: command, archive=archive, jars=jars)


def kafka_that_is_not_asked() -> Any:
    return SimpleNamespace()


def test_a_misspelled_key_has_a_sentence_with_the_key_that_was_meant() -> None:
    found = list(unused_keys(kafka_that_lists(LISTED), {"num.partitons": 3, "zookeeper": 1}))
    why = "Apache Kafka 4.4.0 has no such configuration, only a plugin could read it"
    assert found == [f'num.partitons=3: {why}; did you mean "num.partitions"?']


def test_the_value_of_a_misspelled_secret_is_not_shown() -> None:
    (found,) = unused_keys(kafka_that_lists(LISTED), {"ssl.key.pasword": "not-for-logs"})
    assert found.startswith("ssl.key.pasword=hidden: ")


def test_keys_that_shareq_knows_too_take_no_time_of_kafka() -> None:
    known = {"num.partitions": 3, "super.users": "User:a", "listener.name.plaintext.ssl.keystore.type": "PEM"}
    assert list(unused_keys(kafka_that_is_not_asked(), known)) == []


def test_a_start_without_configurations_takes_no_time_of_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    start_with(monkeypatch, kafka_that_is_not_asked(), {})


def test_no_key_is_unused_if_kafka_lists_none() -> None:
    assert list(unused_keys(kafka_that_lists(""), {"num.partitons": 3})) == []


def start_with(monkeypatch: pytest.MonkeyPatch, program: Any, config: dict[str, object]) -> None:
    """Start a local Kafka up to its first process."""

    def refuse(*_: object) -> None:
        raise LocalKafkaError("far enough")

    monkeypatch.setattr("shareq.kafka.local.find_java", lambda: None)
    monkeypatch.setattr("shareq.kafka.local.kafka_jars", lambda *_, **__: None)
    monkeypatch.setattr("shareq.kafka.local.KafkaCommand", lambda *_: program)
    monkeypatch.setattr(LocalKafka, "_attempt", refuse)
    with pytest.raises(LocalKafkaError, match="far enough"):
        LocalKafka(config=config).start()


def test_a_start_warns_of_an_unused_key(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        start_with(monkeypatch, kafka_that_lists(LISTED), {"num.partitons": 3})
    assert "num.partitons=3: Apache Kafka 4.4.0 has no such configuration" in caplog.text


@pytest.mark.usefixtures("kafka")  # skips without Java
def test_apache_kafka_lists_its_keys() -> None:
    program = KafkaCommand(find_java(), kafka_jars())
    rare = {"log.cleaner.dedupe.buffer.size": 1, "num.network.threads": 3}
    assert rare.keys() - BROKER_CONFIGS.keys(), "Kafka's list is asked for"
    found = [sentence.partition("=")[0] for sentence in unused_keys(program, {**rare, "num.partitons": 3})]
    assert found == ["num.partitons"]
