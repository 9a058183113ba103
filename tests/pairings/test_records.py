"""What records look like, and records that are not there or cannot be read. The four pairings see the same."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from shareq import TopicPartition
from tests.pairings.damage import damage
from tests.pairings.scene import Scene, pairing, said, seen, until, values
from tests.polling import PATIENCE_S, eventually, take

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


@pairing(
    [
        (0, 0, b"key", b"value", [("trace", b"1"), ("trace", None), ("", b"")], (1, 1234567890123), 1, 0, None, 5),
        (0, 1, None, None, None, (1, 1234567890124), 1, 0, None, 0),
        (0, 2, b"", b"", None, (1, 1), 1, 0, None, 0),
    ]
)
def test_a_record_has_all_that_was_written(scene: Scene) -> Any:
    scene.create()
    producer = scene.producer()
    headers = [("trace", b"1"), ("trace", None), ("", b"")]
    producer.produce(scene.topic, b"value", b"key", 0, timestamp=1234567890123, headers=headers)
    producer.produce(scene.topic, None, None, 0, timestamp=1234567890124)
    producer.produce(scene.topic, b"", b"", 0, timestamp=1)
    assert producer.flush(PATIENCE_S) == 0
    messages = take(scene.consumer(), 3)
    assert {message.topic() for message in messages} == {scene.topic}
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
def test_every_compression(scene: Scene) -> Any:
    scene.create()
    for name in COMPRESSIONS:
        producer = Producer({"bootstrap.servers": scene.address, "compression.type": name, "linger.ms": 60_000})
        for number in range(10):
            producer.produce(scene.topic, f"{name} {number}".ljust(200), partition=0)
        assert producer.flush(PATIENCE_S) == 0
    return [value.strip() for value in values(take(scene.consumer(), 50))]


@pairing({"records": 500, "polls": [100, 100, 100, 100, 100]})
def test_a_poll_returns_so_many_records(scene: Scene) -> Any:
    scene.create()
    for _ in range(10):
        scene.write_batch(*["x"] * 50)
    consumer = scene.consumer(max_poll_records=100)
    polls: list[int] = []
    while sum(polls) < 500:
        polls.append(len(take(consumer, 1)))
    return {"records": sum(polls), "polls": polls}


@pairing([25, 25])
def test_a_poll_finishes_the_record_batch(scene: Scene) -> Any:
    scene.create()
    scene.write_batch(*["x"] * 25)
    scene.write_batch(*["x"] * 25)
    consumer = scene.consumer(max_poll_records=4)
    return [len(take(consumer, 1)) for _ in range(2)]


# ---- transactions ----------------------------------------------------------------------------------------------------


def _worked_example_6(scene: Scene) -> None:
    """0 1 [commit 2] 3 4 [abort 5] 6 [commit 7]."""
    producer = scene.producer(transactional_id=scene.fresh("id"))
    producer.init_transactions(PATIENCE_S)
    for written, end in (
        ("01", producer.commit_transaction),
        ("34", producer.abort_transaction),
        ("6", producer.commit_transaction),
    ):
        producer.begin_transaction()
        for value in written:
            producer.produce(scene.topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        end(PATIENCE_S)
    place = TopicPartition(scene.topic, 0)  # a transaction may end before its marker is written
    eventually(lambda: scene.admin.list_offsets({place: "latest"}).check()[place].offset, 8)


@pairing({"seen": list("01346"), "lag": 0})
def test_who_reads_uncommitted_sees_aborted_records_too(scene: Scene) -> Any:
    scene.create()
    _worked_example_6(scene)
    consumer = scene.consumer()
    found = values(take(consumer, 5))
    consumer.commit_sync()
    return {"seen": found, "lag": scene.admin.lag(scene.group).total}


@pairing(list("016"))
def test_who_reads_committed_does_not(scene: Scene) -> Any:
    scene.create(share_isolation_level="read_committed")
    _worked_example_6(scene)
    consumer = scene.consumer()
    found = take(consumer, 3)
    return values([*found, *consumer.poll(0.3)])


@pairing({"told": {0, 1, 2, 3, 4, 5, 6, 7}, "errors": set()})
def test_the_callback_tells_of_gaps_too(scene: Scene) -> Any:
    """W6: control records are gaps, and acknowledged as such by the client."""
    scene.create()
    _worked_example_6(scene)
    consumer = scene.consumer()
    told = scene.listen(consumer)
    take(consumer, 5)
    consumer.commit_sync()
    until(lambda: sum(len(offsets) for places, _ in told for offsets in places.values()) == 8, consumer)
    return {
        "told": {offset for places, _ in told for offset in places[0]},
        "errors": {error for _, error in told if error is not None},
    }


@pairing({"while open": [], "then": ["in", "behind"]})
def test_an_open_transaction_holds_readers_of_the_committed_back(scene: Scene) -> Any:
    scene.create(share_isolation_level="read_committed")
    producer = scene.producer(transactional_id=scene.fresh("id"))
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(scene.topic, "in", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    scene.write("behind")
    consumer = scene.consumer()
    while_open = values(consumer.poll(1))
    producer.commit_transaction(PATIENCE_S)
    return {"while open": while_open, "then": values(take(consumer, 2))}


# ---- what is gone, what is broken ------------------------------------------------------------------------------------


@pairing(["c", "d"])
def test_records_that_were_deleted_do_not_come(scene: Scene) -> Any:
    scene.create()
    scene.write("a", "b", "c")
    scene.admin.delete_records({TopicPartition(scene.topic, 0): 2}).check()
    consumer = scene.consumer()
    found = take(consumer, 1)
    scene.write("d")
    return values([*found, *take(consumer, 1)])


@pairing({"held": ["a", "b", "c"], "commit": {0: None}, "then": ["d"], "lag": 0})
def test_records_that_are_deleted_while_they_are_in_hand(scene: Scene) -> Any:
    scene.create()
    scene.write_batch("a", "b", "c")
    consumer = scene.explicit()
    held = take(consumer, 3)
    scene.admin.delete_records({TopicPartition(scene.topic, 0): 2}).check()
    scene.write("d")
    consumer.acknowledge(held[0])
    consumer.acknowledge(held[1], 2)
    consumer.acknowledge(held[2])
    commit = scene.results(consumer.commit_sync())
    then = take(consumer, 1)
    consumer.acknowledge(then[0])
    consumer.commit_sync()
    return {"held": values(held), "commit": commit, "then": values(then), "lag": scene.admin.lag(scene.group).total}


def _good_and_bad(messages: list[Any]) -> list[Any]:
    """The value of each good record, the error of each bad one."""
    return [message.value() if message.error() is None else said(message.error()) for message in messages]


@pairing({"first": [b"a", "-199", b"c"], "left": []})
def test_a_batch_whose_checksum_is_wrong_is_rejected(scene: Scene) -> Any:
    scene.create()
    scene.write("a", "sound", "c")
    damage(scene.broker, scene.topic, b"sound", b"wrong")
    consumer = scene.consumer(check_crcs=True)
    messages = take(consumer, 3)
    first = _good_and_bad(messages)
    consumer.commit_sync()
    return {"first": first, "left": seen(consumer.poll(0.5))}


@pairing({"first": [b"a", "-198", b"c"], "again": ("-198", 2)})
def test_a_batch_that_cannot_be_decompressed_is_released(scene: Scene) -> Any:
    scene.create()
    scene.write("a")
    producer = scene.producer(compression_type="gzip")
    producer.produce(scene.topic, "b" * 1000, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    damage(scene.broker, scene.topic, b"\x1f\x8b\x08", b"\x00\x00\x00")
    scene.write("c")
    consumer = scene.consumer()
    messages = take(consumer, 3)
    first = _good_and_bad(messages)
    consumer.commit_sync()
    (again,) = take(consumer, 1)
    return {"first": first, "again": (said(again.error()), again.delivery_count())}


@pairing(
    [
        (b"key 0", 0, None),
        (b"key 1", b"one", "-159"),
        (b"key 2", 2, None),
        (b"bad", b"3", "-160"),
        (b"key 4", None, None),
    ]
)
def test_a_record_that_cannot_be_deserialized_keeps_its_bytes(scene: Scene) -> Any:
    scene.create()
    producer = scene.producer(linger_ms=1000)
    for key, value in (("key 0", "0"), ("key 1", "one"), ("key 2", "2"), ("bad", "3"), ("key 4", None)):
        producer.produce(scene.topic, value, key, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    consumer = scene.consumer(kind="DeserializingShareConsumer", key_deserializer=_good_key, value_deserializer=_number)
    return [
        (message.key(), message.value(), message.error() and said(message.error())) for message in take(consumer, 5)
    ]


def _good_key(data: bytes, context: Any) -> bytes:
    if data == b"bad":
        raise ValueError(data)
    return data


def _number(data: bytes | None, context: Any) -> int | None:
    return None if data is None else int(data)
