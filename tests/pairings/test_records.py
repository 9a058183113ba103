"""Contents of records, and records that are missing or cannot be read. All four pairings observe the same."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from shareq import TopicPartition
from tests.pairings.damage import damage
from tests.pairings.stage import Stage, error_name, pairing, seen, until, values
from tests.polling import PATIENCE_S, eventually, take

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


@pairing(
    [
        (0, 0, b"key", b"value", [("trace", b"1"), ("trace", None), ("", b"")], (1, 1234567890123), 1, 0, None, 5),
        (0, 1, None, None, None, (1, 1234567890124), 1, 0, None, 0),
        (0, 2, b"", b"", None, (1, 1), 1, 0, None, 0),
    ]
)
def test_a_record_has_all_produced_fields(stage: Stage) -> Any:
    stage.create()
    producer = stage.producer()
    headers = [("trace", b"1"), ("trace", None), ("", b"")]
    producer.produce(stage.topic, b"value", b"key", 0, timestamp=1234567890123, headers=headers)
    producer.produce(stage.topic, None, None, 0, timestamp=1234567890124)
    producer.produce(stage.topic, b"", b"", 0, timestamp=1)
    assert producer.flush(PATIENCE_S) == 0
    messages = take(stage.consumer(), 3)
    assert {message.topic() for message in messages} == {stage.topic}
    return [
        (
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            message.headers(),
            message.timestamp(),
            message.delivery_count(),
            message.leader_epoch(),
            message.latency(),
            len(message),
        )
        for message in messages
    ]


@pairing([f"{name} {number}" for name in COMPRESSIONS for number in range(10)])
def test_records_of_every_compression_type(stage: Stage) -> Any:
    stage.create()
    for name in COMPRESSIONS:
        producer = Producer({"bootstrap.servers": stage.address, "compression.type": name, "linger.ms": 60_000})
        for number in range(10):
            producer.produce(stage.topic, f"{name} {number}".ljust(200), partition=0)
        assert producer.flush(PATIENCE_S) == 0
    return [value.strip() for value in values(take(stage.consumer(), 50))]


@pairing({"records": 500, "polls": [100, 100, 100, 100, 100]})
def test_a_poll_returns_max_poll_records(stage: Stage) -> Any:
    stage.create()
    for _ in range(10):
        stage.write_batch(*["x"] * 50)
    consumer = stage.consumer(max_poll_records=100)
    polls: list[int] = []
    while sum(polls) < 500:
        polls.append(len(take(consumer, 1)))
    return {"records": sum(polls), "polls": polls}


@pairing([25, 25])
def test_a_poll_returns_whole_record_batches(stage: Stage) -> Any:
    stage.create()
    stage.write_batch(*["x"] * 25)
    stage.write_batch(*["x"] * 25)
    consumer = stage.consumer(max_poll_records=4)
    return [len(take(consumer, 1)) for _ in range(2)]


# ---- transactions ----------------------------------------------------------------------------------------------------


def _produce_worked_example_6(stage: Stage) -> None:
    """0 1 [commit 2] 3 4 [abort 5] 6 [commit 7]."""
    producer = stage.producer(transactional_id=stage.fresh("id"))
    producer.init_transactions(PATIENCE_S)
    for written, end in (
        ("01", producer.commit_transaction),
        ("34", producer.abort_transaction),
        ("6", producer.commit_transaction),
    ):
        producer.begin_transaction()
        for value in written:
            producer.produce(stage.topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)
    place = TopicPartition(stage.topic, 0)  # commit_transaction can return before the marker is written
    eventually(lambda: stage.admin.list_offsets({place: "latest"}).check()[place].offset, 8)


@pairing({"seen": list("01346"), "lag": 0})
def test_read_uncommitted_delivers_aborted_records(stage: Stage) -> Any:
    stage.create()
    _produce_worked_example_6(stage)
    consumer = stage.consumer()
    found = values(take(consumer, 5))
    consumer.commit_sync()
    return {"seen": found, "lag": stage.admin.lag(stage.group).total}


@pairing(list("016"))
def test_read_committed_delivers_no_aborted_records(stage: Stage) -> Any:
    stage.create(share_isolation_level="read_committed")
    _produce_worked_example_6(stage)
    consumer = stage.consumer()
    found = take(consumer, 3)
    return values([*found, *consumer.poll(0.3)])


@pairing({"offsets": {0, 1, 2, 3, 4, 5, 6, 7}, "errors": set()})
def test_the_callback_receives_gaps(stage: Stage) -> Any:
    """W6: control records are gaps, and the client acknowledges them as such."""
    stage.create()
    _produce_worked_example_6(stage)
    consumer = stage.consumer()
    calls = stage.record_callbacks(consumer)
    take(consumer, 5)
    consumer.commit_sync()
    until(lambda: sum(len(offsets) for places, _ in calls for offsets in places.values()) == 8, consumer)
    return {
        "offsets": {offset for places, _ in calls for offset in places[0]},
        "errors": {error for _, error in calls if error is not None},
    }


@pairing({"while open": [], "then": ["in", "behind"]})
def test_an_open_transaction_delays_later_records(stage: Stage) -> Any:
    stage.create(share_isolation_level="read_committed")
    producer = stage.producer(transactional_id=stage.fresh("id"))
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(stage.topic, "in", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    stage.write("behind")
    consumer = stage.consumer()
    while_open = values(consumer.poll(1))
    producer.commit_transaction(PATIENCE_S)
    return {"while open": while_open, "then": values(take(consumer, 2))}


# ---- deleted and damaged records -------------------------------------------------------------------------------------


@pairing(["c", "d"])
def test_deleted_records_are_not_delivered(stage: Stage) -> Any:
    stage.create()
    stage.write("a", "b", "c")
    stage.admin.delete_records({TopicPartition(stage.topic, 0): 2}).check()
    consumer = stage.consumer()
    found = take(consumer, 1)
    stage.write("d")
    return values([*found, *take(consumer, 1)])


@pairing({"held": ["a", "b", "c"], "commit": {0: None}, "then": ["d"], "lag": 0})
def test_records_deleted_while_they_are_acquired_can_be_accepted(stage: Stage) -> Any:
    stage.create()
    stage.write_batch("a", "b", "c")
    consumer = stage.explicit()
    held = take(consumer, 3)
    stage.admin.delete_records({TopicPartition(stage.topic, 0): 2}).check()
    stage.write("d")
    consumer.acknowledge(held[0])
    consumer.acknowledge(held[1], 2)
    consumer.acknowledge(held[2])
    commit = stage.results(consumer.commit_sync())
    then = take(consumer, 1)
    consumer.acknowledge(then[0])
    consumer.commit_sync()
    return {"held": values(held), "commit": commit, "then": values(then), "lag": stage.admin.lag(stage.group).total}


def _values_and_errors(messages: list[Any]) -> list[Any]:
    """Value of each record without error, error name of each other."""
    return [message.value() if message.error() is None else error_name(message.error()) for message in messages]


@pairing({"first": [b"a", "-199", b"c"], "left": []})
def test_a_batch_with_a_wrong_checksum_is_rejected(stage: Stage) -> Any:
    stage.create()
    stage.write("a", "sound", "c")
    damage(stage.broker, stage.topic, b"sound", b"wrong")
    consumer = stage.consumer(check_crcs=True)
    messages = take(consumer, 3)
    first = _values_and_errors(messages)
    consumer.commit_sync()
    return {"first": first, "left": seen(consumer.poll(0.5))}


@pairing({"first": [b"a", "-198", b"c"], "again": ("-198", 2)})
def test_a_batch_that_cannot_be_decompressed_is_released(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    producer = stage.producer(compression_type="gzip")
    producer.produce(stage.topic, "b" * 1000, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    damage(stage.broker, stage.topic, b"\x1f\x8b\x08", b"\x00\x00\x00")
    stage.write("c")
    consumer = stage.consumer()
    messages = take(consumer, 3)
    first = _values_and_errors(messages)
    consumer.commit_sync()
    (again,) = take(consumer, 1)
    return {"first": first, "again": (error_name(again.error()), again.delivery_count())}


@pairing(
    [
        (b"key 0", 0, None),
        (b"key 1", b"one", "-159"),
        (b"key 2", 2, None),
        (b"bad", b"3", "-160"),
        (b"key 4", None, None),
    ]
)
def test_a_record_that_cannot_be_deserialized_keeps_its_bytes(stage: Stage) -> Any:
    stage.create()
    producer = stage.producer(linger_ms=1000)
    for key, value in (("key 0", "0"), ("key 1", "one"), ("key 2", "2"), ("bad", "3"), ("key 4", None)):
        producer.produce(stage.topic, value, key, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    consumer = stage.consumer(
        kind="DeserializingShareConsumer", key_deserializer=_deserialize_key, value_deserializer=_deserialize_number
    )
    return [
        (message.key(), message.value(), message.error() and error_name(message.error()))
        for message in take(consumer, 5)
    ]


def _deserialize_key(data: bytes, context: Any) -> bytes:
    if data == b"bad":
        raise ValueError(data)
    return data


def _deserialize_number(data: bytes | None, context: Any) -> int | None:
    return None if data is None else int(data)
