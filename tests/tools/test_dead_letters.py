"""`shareq dlq` and `Admin.redrive_dead_letters`, on a cluster of shareq and on Apache Kafka."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer
from confluent_kafka import KafkaError as LibrdkafkaError
from confluent_kafka import TopicPartition as Place

from shareq import Admin, Cluster, NewTopic, Producer, TopicPartition, cli
from shareq.admin.dead_letters import LetterFilter, dead_letter
from shareq.admin.redrive import run
from shareq.admin.redrive.contents import GONE
from shareq.admin.redrive.ledger import LEDGER_TOPIC
from shareq.model.errors import Errors, KafkaException
from tests.kafka.fixtures import Reachable
from tests.pairings.dead_letters import COPY, ENABLED, REJECT, DeadLetterStage
from tests.polling import PATIENCE_S, eventually


@pytest.fixture(params=["served", "backed", "kafka"], ids=["shareq", "shareq-on-kafka", "apache-kafka"])
def stage(request: pytest.FixtureRequest, fresh: Callable[[str], str]) -> Iterator[DeadLetterStage]:
    broker: Reachable = request.getfixturevalue(request.param)
    made = DeadLetterStage(broker.bootstrap_servers, fresh, unavailable=None)
    with made.stack:
        yield made


@pytest.fixture
def ours(served: Reachable, fresh: Callable[[str], str]) -> Iterator[DeadLetterStage]:
    """For what does not depend on the broker."""
    made = DeadLetterStage(served.bootstrap_servers, fresh, unavailable=None)
    with made.stack:
        yield made


def rejected(stage: DeadLetterStage, *values: str, copy: bool = True) -> None:
    """A queue with a letter for each value."""
    stage.create(group=COPY if copy else None)
    stage.write(*values)
    stage.take(len(values))
    stage.acknowledge(REJECT, *range(len(values)))
    stage.until_lag(0)


def conf(stage: DeadLetterStage) -> dict[str, str]:
    return {"bootstrap.servers": stage.address}


def committed(stage: DeadLetterStage, topic: str) -> list[Any]:
    """All messages of partition 0 of the topic that readers of committed records see."""
    config = {"group.id": "looks", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    consumer = Consumer({**conf(stage), **config, "enable.partition.eof": True})
    consumer.assign([Place(topic, 0, 0)])
    found: list[Any] = []
    try:
        while (message := consumer.poll(PATIENCE_S)) is not None:
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == LibrdkafkaError._PARTITION_EOF:
                return found
        raise AssertionError("the end of the topic is not reached")
    finally:
        consumer.close()


MARKER = b"\0\0\0\1", bytes(6)
"""Key and value of the marker that commits a transaction."""


def values(stage: DeadLetterStage, topic: str = "") -> list[str]:
    return [message.value().decode() for message in committed(stage, topic or stage.source)]


def dlq(stage: DeadLetterStage, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli.main, ["dlq", *args, "--bootstrap-server", stage.address])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


# ---- list and show ---------------------------------------------------------------------------------------------------


def test_queues_are_listed_with_their_counts(stage: DeadLetterStage) -> None:
    rejected(stage, "a", "b", "c")
    stage.admin.redrive_dead_letters(stage.group, LetterFilter(offsets=range(1)))

    def row() -> Any:
        return {row["group"]: row for row in json.loads(dlq(stage, "list", "--verbose", "--json"))}[stage.group]

    eventually(lambda: row()["redriven"], 1)  # Kafka ends a transaction after it has answered
    assert row() == {
        "group": stage.group, "queue": stage.queue, "copies": "yes", "partitions": 1, "records": 3, "letters": 3,
        "redriven": 1, "error": None,
    }  # fmt: skip
    lines = [line.split() for line in dlq(stage, "list").splitlines() if line]
    assert lines[0] == ["GROUP", "QUEUE", "COPIES", "PARTITIONS", "RECORDS"]
    assert [stage.group, stage.queue, "yes", "1", "3"] in lines


def test_that_there_is_no_queue_is_a_sentence() -> None:
    with Cluster(brokers=1, clock="wall") as cluster, cluster.serve() as server:
        done = CliRunner().invoke(cli.main, ["dlq", "list", "--bootstrap-server", server.bootstrap_servers])
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "No share group has a dead-letter queue.\n")


@pytest.mark.parametrize("stage", ["served", "kafka"], indirect=True)
def test_a_queue_that_does_not_exist_is_listed_with_its_error(stage: DeadLetterStage) -> None:
    """Of a group that has only a configuration, which a backend does not list."""
    stage.create(queue=None)
    row = stage.admin.list_dead_letter_queues()[stage.group]
    assert row.error is not None
    assert row.error.code() == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert [stage.group, stage.queue, "no", "-", "-"] in [line.split() for line in dlq(stage, "list").splitlines()]


def test_letters_are_shown_with_the_places_of_their_records(stage: DeadLetterStage) -> None:
    rejected(stage, "a", "b", "c")
    (shown,) = json.loads(dlq(stage, "show", stage.group, "--offset", "1", "--json"))
    assert shown.pop("time").startswith("20")
    assert shown == {
        "queue": stage.queue, "queue_partition": 0, "queue_offset": 1, "topic": stage.source, "partition": 0,
        "offset": 1, "delivery_count": 1, "message": "Offset rejected by client.", "key": None, "value": "b",
    }  # fmt: skip
    heads, *lines = dlq(stage, "show", stage.group, "--max-records", "2").splitlines()
    assert heads.split() == ["QUEUE-OFFSET", "TIME", "TOPIC", "PARTITION", "OFFSET", "DELIVERY-COUNT", "MESSAGE", "KEY",
                             "VALUE"]  # fmt: skip
    assert [(line.split()[0], line.split()[-1]) for line in lines] == [("0:0", "a"), ("0:1", "b")]


LETTER = dead_letter(
    "dlq.orders",
    1,
    SimpleNamespace(
        offset=7,
        timestamp=1,
        timestamp_type=0,
        key=None,
        value=None,
        headers=[
            (f"__dlq.errors.{name}", value)
            for name, value in (
                ("topic", b"orders"),
                ("partition", b"2"),
                ("offset", b"40"),
                ("group", b"payments"),
                ("delivery.count", b"5"),
                ("message", b"Offset rejected by client."),
            )
        ],
    ),
)


@pytest.mark.parametrize(
    ("args", "accepted"),
    [
        ([], True),
        (["--topic", "orders", "--topic", "bills"], True),
        (["--topic", "bills"], False),
        (["--partition", "2"], True),
        (["--partition", "1"], False),
        (["--offset", "40"], True),
        (["--offset", "30-39"], False),
        (["--offset", "41-"], False),
        (["--offset", "-40"], True),
        (["--delivery-count", "5-"], True),
        (["--delivery-count", "6-"], False),
        (["--message", "rejected"], True),
        (["--message", "threshold"], False),
        (["--queue-partition", "2"], False),
        (["--queue-offset", "7-7"], True),
        (["--queue-offset", "8"], False),
    ],
)
def test_filters(ours: DeadLetterStage, monkeypatch: pytest.MonkeyPatch, args: list[str], accepted: bool) -> None:
    assert LETTER is not None

    def read(self: Admin, group: str, letters: LetterFilter, **_: object) -> list[Any]:
        return [LETTER] if letters.accepts(LETTER) else []

    monkeypatch.setattr(Admin, "read_dead_letters", read)
    assert bool(json.loads(dlq(ours, "show", "payments", "--json", *args))) == accepted


@pytest.mark.parametrize("text", ["-", "a", "3-x", "1-2-3", ""])
def test_a_range_of_another_form_is_refused(ours: DeadLetterStage, text: str) -> None:
    assert "must be a number, or a range such as 5-9" in dlq(ours, "show", "payments", "--offset", text, code=2)


def test_a_record_without_the_headers_of_a_letter_is_none() -> None:
    headers = [("__dlq.errors.topic", b"orders"), ("__dlq.errors.offset", b"x")]
    record = SimpleNamespace(offset=0, timestamp=0, timestamp_type=0, key=None, value=b"mine", headers=headers)
    assert dead_letter("dlq.orders", 0, record) is None


def test_a_group_without_a_queue_is_an_error(ours: DeadLetterStage) -> None:
    assert f"group '{ours.group}' has no dead-letter queue" in dlq(ours, "show", ours.group, code=1)
    assert "has no dead-letter queue" in dlq(ours, "redrive", ours.group, code=1)


# ---- redrive ---------------------------------------------------------------------------------------------------------


def test_letters_are_redriven_once(stage: DeadLetterStage) -> None:
    rejected(stage, "a", "b", "c")
    planned = dlq(stage, "redrive", stage.group, "--dry-run")
    assert planned.split()[-4:] == [stage.source, "0", stage.source, "3"]
    assert values(stage) == ["a", "b", "c"]
    assert dlq(stage, "redrive", stage.group, "--execute") == planned
    assert values(stage) == ["a", "b", "c", "a", "b", "c"]
    assert dlq(stage, "redrive", stage.group, "--execute") == dlq(stage, "redrive", stage.group) == ""
    assert len(values(stage)) == 6


def test_a_filter_leaves_letters_for_later_runs(stage: DeadLetterStage) -> None:
    rejected(stage, *"abcdef")
    first, second = LetterFilter(offsets=range(1, 5, 2)), LetterFilter(offsets=range(2, 6))
    assert sum(stage.admin.redrive_dead_letters(stage.group, first).counts.values()) == 2
    assert sum(stage.admin.redrive_dead_letters(stage.group, second).counts.values()) == 3
    assert sum(stage.admin.redrive_dead_letters(stage.group).counts.values()) == 1
    assert values(stage)[6:] == [*"bd", *"cef"[:1], "e", "f", "a"]


def test_records_without_a_copy_come_from_their_topic(stage: DeadLetterStage) -> None:
    """With their headers, of which letters have none. What is gone there is named."""
    stage.create()
    with Producer(conf(stage)) as producer:
        for value in ("a", "b", "c"):
            producer.produce(stage.source, value, f"key {value}", 0, headers={"kind": f"of {value}"})
    stage.take(3)
    stage.acknowledge(REJECT, 0, 1, 2)
    stage.until_lag(0)
    stage.admin.delete_records({(stage.source, 0): 1}).check()
    failure = dlq(stage, "redrive", stage.group, "--execute", code=1)
    assert "letters that were not redriven: 1" in failure
    assert f"{GONE} (the first: offset 0 of {stage.queue} [0], for offset 0 of {stage.source} [0])" in failure
    again = committed(stage, stage.source)[2:]
    assert [(m.key(), m.value(), m.headers()) for m in again] == [
        (b"key b", b"b", [("kind", b"of b")]),
        (b"key c", b"c", [("kind", b"of c")]),
    ]
    assert GONE in dlq(stage, "redrive", stage.group, "--execute", code=1)
    assert len(committed(stage, stage.source)) == 4


KILLED = """
import os, signal, sys
from shareq import Admin, Producer
from shareq.admin.redrive import run

commit, commits = Producer.commit_transaction, []

def killed(self, timeout=-1):
    commits.append(self)
    if len(commits) < 2 or sys.argv[3] == "after":
        commit(self, timeout)
    if len(commits) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

Producer.commit_transaction = killed
run.LETTERS = 2
Admin({"bootstrap.servers": sys.argv[1]}).redrive_dead_letters(sys.argv[2])
"""


@pytest.mark.parametrize(("moment", "left"), [("before", 3), ("after", 1)])
def test_a_redrive_that_is_killed_at_a_commit_is_continued(stage: DeadLetterStage, moment: str, left: int) -> None:
    """The second of three transactions: its records are written before the kill, and then committed or aborted."""
    rejected(stage, *"abcde")
    program = [sys.executable, "-c", KILLED, stage.address, stage.group, moment]
    assert subprocess.run(program, check=False, timeout=PATIENCE_S).returncode == -9
    assert sum(stage.admin.redrive_dead_letters(stage.group).counts.values()) == left
    assert values(stage) == [*"abcde", *"abcde"]


def test_a_redrive_fences_another_one_of_the_same_group(ours: DeadLetterStage, monkeypatch: pytest.MonkeyPatch) -> None:
    rejected(ours, *"abcd")
    monkeypatch.setattr(run, "LETTERS", 2)
    committing = Producer.commit_transaction
    calls: list[object] = []

    def meanwhile(self: Producer, timeout: float = -1) -> None:
        calls.append(self)
        if len(calls) == 1:
            ours.admin.redrive_dead_letters(ours.group)
        committing(self, timeout)

    monkeypatch.setattr(Producer, "commit_transaction", meanwhile)
    with pytest.raises(KafkaException):
        ours.admin.redrive_dead_letters(ours.group)
    assert values(ours) == [*"abcd", *"abcd"]


def test_a_redrive_passes_open_transactions_of_other_groups(ours: DeadLetterStage) -> None:
    """The ledger has one partition: an open transaction there does not hide what stands behind it."""
    rejected(ours, *"ab")
    ours.admin.redrive_dead_letters(ours.group, LetterFilter(offsets=range(1)))
    other = Producer({**conf(ours), "transactional.id": f"other-{ours.group}"})
    other.init_transactions()
    other.begin_transaction()
    other.produce(LEDGER_TOPIC, "[]", "other", 0)
    other.flush()
    assert sum(ours.admin.redrive_dead_letters(ours.group).counts.values()) == 1
    assert ours.admin.redrive_dead_letters(ours.group, validate_only=True).counts == {}
    other.abort_transaction()
    other.close()


def test_letters_of_markers_are_settled_without_a_record(stage: DeadLetterStage) -> None:
    """Kafka makes letters of the markers in a batch that is delivered too often."""
    stage.create(group=COPY)
    with Producer({**conf(stage), "transactional.id": stage.source}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(stage.source, "a", partition=0)
        producer.commit_transaction()
    at = TopicPartition(stage.source, 0)  # Kafka writes the marker after it has answered
    eventually(lambda: stage.admin.list_offsets({at: "latest"})[at].offset, 2)
    places = {"topic": stage.source, "partition": "0", "offset": "1", "group": stage.group}
    headers = {f"__dlq.errors.{name}": text for name, text in {**places, "delivery.count": "2", "message": ""}.items()}
    with Producer(conf(stage)) as producer:
        producer.produce(stage.queue, MARKER[1], MARKER[0], 0, headers=headers)
    first, second = stage.admin.redrive_dead_letters(stage.group), stage.admin.redrive_dead_letters(stage.group)
    assert (first.counts, first.markers, first.skipped) == ({}, 1, [])
    assert second.markers == 0
    assert values(stage) == ["a"]


def test_groups_that_share_a_queue_have_their_own_letters(ours: DeadLetterStage, fresh: Callable[[str], str]) -> None:
    rejected(ours, *"ab")
    other = DeadLetterStage(ours.address, fresh, unavailable=None)
    other.queue = ours.queue
    with other.stack:
        other.create(queue=None, group=COPY)
        other.write(*"cd")
        other.take(2)
        other.acknowledge(REJECT, 0, 1)
        other.until_lag(0)
    assert ours.admin.redrive_dead_letters(other.group).counts == {(other.source, 0, other.source): 2}
    assert ours.admin.redrive_dead_letters(ours.group).counts == {(ours.source, 0, ours.source): 2}
    assert values(ours, other.source) == [*"cd", *"cd"]
    assert values(ours) == [*"ab", *"ab"]


def test_letters_are_redriven_to_another_topic(ours: DeadLetterStage) -> None:
    """Modulo its partitions; what it does not take stays for another one."""
    rejected(ours, "a", "b" * 2000, "c")
    target = f"target-{ours.source}"
    ours.admin.create_topics([NewTopic(target, 1, config={"max.message.bytes": "1000"})]).check()
    failure = dlq(ours, "redrive", ours.group, "--to", target, "--execute", code=1)
    assert f"the record is larger than max.message.bytes of topic {target}, 1000" in failure
    assert values(ours, target) == ["a", "c"]
    assert dlq(ours, "redrive", ours.group, "--execute").split()[-1] == "1"
    assert values(ours)[3:] == ["b" * 2000]


def test_a_compacted_topic_takes_no_records_without_keys(ours: DeadLetterStage) -> None:
    rejected(ours, "a")
    target = f"target-{ours.source}"
    ours.admin.create_topics([NewTopic(target, 1, config={"cleanup.policy": "compact"})]).check()
    assert "the record has no key" in dlq(ours, "redrive", ours.group, "--to", target, "--execute", code=1)


def test_what_cannot_be_a_target_is_refused(ours: DeadLetterStage) -> None:
    rejected(ours, "a")
    assert "is the dead-letter queue itself" in dlq(ours, "redrive", ours.group, "--to", ours.queue, code=1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in dlq(ours, "redrive", ours.group, "--to", "missing", code=1)
    assert "only one is possible" in dlq(ours, "redrive", ours.group, "--dry-run", "--execute", code=2)
    ours.admin.delete_topics([ours.source]).check()
    assert f"topic {ours.source} does not exist" in dlq(ours, "redrive", ours.group, code=1)


def test_letters_of_a_queue_that_the_group_does_not_name_any_more(ours: DeadLetterStage) -> None:
    rejected(ours, "a")
    ours.configure({"errors.deadletterqueue.topic.name": ""})
    assert "has no dead-letter queue" in dlq(ours, "redrive", ours.group, code=1)
    assert dlq(ours, "redrive", ours.group, "--queue", ours.queue, "--json").count(ours.source) == 3


def test_a_queue_that_is_created_again_begins_anew(ours: DeadLetterStage) -> None:
    rejected(ours, "a")
    ours.admin.redrive_dead_letters(ours.group)
    ours.admin.delete_topics([ours.queue]).check()
    ours.admin.create_topics([NewTopic(ours.queue, config=ENABLED)]).check()
    ours.take(1)
    ours.acknowledge(REJECT, 1)
    ours.until_lag(0)
    assert ours.admin.redrive_dead_letters(ours.group, validate_only=True).counts == {(ours.source, 0, ours.source): 1}
