"""The producer on a fake cluster: partitions, batches, delivery reports, errors. BEHAVIOUR.md, 1 to 12."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.share_fetch import LeaderIdAndEpoch
from shareq.producer import Producer
from shareq.producer.partitioner import PARTITIONERS, Partitioner, murmur2
from tests.client.fake import Fake
from tests.producer.stage import FakeLeader, Reports, setup

# ---- batches and requests --------------------------------------------------------------------------------------------


def test_records_are_sent_unchanged() -> None:
    _, leader, producer = setup()
    producer.produce("t", "välue", "k", headers={"a": "1", "b": None}, timestamp=77)
    producer.produce("t", None, headers=[("a", b"2")])
    producer.produce("t", memoryview(b"v"))  # type: ignore[arg-type]
    assert producer.flush() == 0
    (log,) = leader.logs.values()
    assert log == [
        (b"k", "välue".encode(), [("a", b"1"), ("b", None)], 77),
        (None, None, [("a", b"2")], 1_000_000),
        (None, b"v", [], 1_000_000),
    ]


def test_records_within_linger_ms_share_a_batch() -> None:
    fake, leader, producer = setup(linger_ms=50)
    for value in "abc":
        producer.produce("t", value)
    fake.run(timeout_ms=49)
    assert fake.requests(ProduceRequest) == []
    fake.run(timeout_ms=1)
    assert leader.values() == [b"a", b"b", b"c"]
    assert len(fake.requests(ProduceRequest)) == 1


def test_without_linger_each_record_is_sent_immediately() -> None:
    _, leader, producer = setup(linger_ms=0)
    producer.produce("t", "a")
    producer.produce("t", "b")
    assert leader.values() == [b"a", b"b"]


@pytest.mark.parametrize(
    ("conf", "sizes"),
    [
        pytest.param({"batch_num_messages": 4}, [4, 4, 2], id="a number of records"),
        pytest.param({"batch_size": 3 * (16 + 10)}, [3, 3, 3, 1], id="a number of bytes"),
        pytest.param({"batch_size": 1}, [1] * 10, id="a record that is larger than a batch"),
    ],
)
def test_batches_are_bounded_by_number_and_bytes(conf: dict[str, Any], sizes: list[int]) -> None:
    _, leader, producer = setup(**conf)
    for _ in range(10):
        producer.produce("t", b"x" * 10)
    producer.flush()
    assert [batch.record_count for _, batch in leader.batches] == sizes


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed(compression: str) -> None:
    _, leader, producer = setup(compression_type=compression)
    producer.produce("t", b"x" * 1000)
    producer.flush()
    assert leader.values() == [b"x" * 1000]
    assert (leader.batches[0][1].size < 200) == (compression != "none")


def test_each_node_receives_one_request() -> None:
    fake, leader, producer = setup(leaders=[1, 2, 1])
    for partition in range(3):
        producer.produce("t", str(partition), partition=partition)
    producer.flush()
    sent = [(s.node, len(s.request.topics[0].partitions)) for s in fake.sent if isinstance(s.request, ProduceRequest)]
    assert sent == [(1, 2), (2, 1)]
    assert [leader.values(partition) for partition in range(3)] == [[b"0"], [b"1"], [b"2"]]


def test_a_partition_has_one_batch_in_flight_and_keeps_its_order() -> None:
    _, leader, producer = setup(Errors.NOT_ENOUGH_REPLICAS, batch_num_messages=2)
    for value in "abcdef":
        producer.produce("t", value)
    assert producer.flush() == 0
    assert leader.values() == [b"a", b"b", b"c", b"d", b"e", b"f"]


# ---- partitioners ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(b"21", -973932308, id="21"),
        pytest.param(b"foobar", -790332482, id="foobar"),
        pytest.param(b"a-little-bit-long-string", -985981536, id="a little bit long"),
        pytest.param(b"a-little-bit-longer-string", -1486304829, id="a little bit longer"),
        pytest.param(b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971, id="long"),
        pytest.param(b"abc", 479470107, id="abc"),
    ],
)
def test_murmur2_is_that_of_java(key: bytes, expected: int) -> None:
    """Kafka's own test values; the partitioner takes them without their sign."""
    assert murmur2(key) == expected & 0x7FFFFFFF


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_places_every_key_within_the_topic(name: str) -> None:
    partitioner = Partitioner(name, 7, random.Random(1))
    for key in (None, b"", b"k", b"key" * 10):
        assert 0 <= partitioner.place(key) < 7


@pytest.mark.parametrize(
    ("name", "key", "fixed"),
    [
        ("random", b"k", False),
        ("consistent", None, True),
        ("consistent", b"k", True),
        ("consistent_random", None, False),
        ("consistent_random", b"", False),
        ("consistent_random", b"k", True),
        ("murmur2", None, True),
        ("murmur2_random", None, False),
        ("murmur2_random", b"", True),
        ("murmur2_random", b"k", True),
    ],
    ids=repr,
)
def test_partitioners_fix_the_partition_by_key_or_by_batch(name: str, key: bytes | None, fixed: bool) -> None:
    """A key without a fixed partition keeps one until its batch is closed."""
    partitioner = Partitioner(name, 50, random.Random(1))
    places = []
    for _ in range(20):
        places.append(partitioner.place(key))
        assert partitioner.place(key) == places[-1]
        partitioner.closed(places[-1])
    assert (len(set(places)) == 1) == fixed


def test_keys_keep_their_partition() -> None:
    _, leader, producer = setup(leaders=[1, 1, 1])
    for number in range(60):
        producer.produce("t", str(number), str(number % 6))
        if number % 7 == 0:
            producer.flush()
    producer.flush()
    keys = [{key for key, _, _, _ in log} for log in leader.logs.values()]
    assert sum(map(len, keys)) == 6


# ---- delivery reports ------------------------------------------------------------------------------------------------


def test_reports_have_partition_and_offset_and_run_in_poll_or_flush_only() -> None:
    fake, _, producer = setup()
    reports = Reports()
    for value in "abc":
        producer.produce("t", value, on_delivery=reports)
    fake.run(timeout_ms=10)
    assert (reports, len(producer)) == ([], 3)
    assert producer.poll(0) == 3
    assert (reports, len(producer)) == ([(None, 0, 0), (None, 0, 1), (None, 0, 2)], 0)


def test_poll_waits_for_the_first_report() -> None:
    fake, _, producer = setup(linger_ms=200)
    producer.produce("t", "a", on_delivery=Reports())
    assert producer.poll(0.1) == 0
    assert producer.poll(5) == 1
    assert fake.now_ms == 1_000_200
    assert producer.poll(5) == 0
    assert fake.now_ms == 1_000_200


def test_the_common_callback_reports_records_without_their_own() -> None:
    fake = Fake(t=[1])
    FakeLeader(fake)
    common, own, alias = Reports(), Reports(), Reports()
    producer = Producer({"bootstrap.servers": fake.address}, on_delivery=common)
    producer.produce("t", "a")
    producer.produce("t", "b", on_delivery=own)
    producer.produce("t", "c", callback=alias)
    producer.flush()
    assert (len(common), len(own), len(alias)) == (1, 1, 1)


def test_a_report_has_the_record() -> None:
    _, _, producer = setup()
    seen: list[Any] = []
    producer.produce("t", "v", "k", on_delivery=lambda _, m: seen.append(m), headers={"h": "1"})
    producer.flush()
    (message,) = seen
    assert (message.topic(), message.key(), message.value()) == ("t", b"k", b"v")
    assert (message.headers(), message.timestamp(), message.latency()) == ([("h", b"1")], (1, 1_000_000), 0.0)


def test_an_exception_of_a_callback_is_raised_and_the_others_run_later() -> None:
    _, _, producer = setup()

    def fail(*_: Any) -> None:
        raise LookupError("mine")

    reports = Reports()
    producer.produce("t", "a", on_delivery=fail)
    producer.produce("t", "b", on_delivery=reports)
    with pytest.raises(LookupError, match="mine"):
        producer.flush()
    assert producer.flush() == 0
    assert reports == [(None, 0, 1)]


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "attempts", "code"),
    [
        pytest.param(Errors.NOT_LEADER_OR_FOLLOWER, 2, None, id="not leader: retried"),
        pytest.param(Errors.NOT_ENOUGH_REPLICAS, 2, None, id="not enough replicas: retried"),
        pytest.param(Errors.NETWORK_EXCEPTION, 2, None, id="disconnected: retried"),
        pytest.param(Errors.KAFKA_STORAGE_ERROR, 2, None, id="storage: retried"),
        pytest.param(Errors.MESSAGE_TOO_LARGE, 1, Errors.MESSAGE_TOO_LARGE, id="too large: final"),
        pytest.param(Errors.INVALID_RECORD, 1, Errors.INVALID_RECORD, id="invalid record: final"),
        pytest.param(Errors.INVALID_TIMESTAMP, 1, Errors.INVALID_TIMESTAMP, id="timestamp: final"),
        pytest.param(
            Errors.TOPIC_AUTHORIZATION_FAILED, 1, Errors.TOPIC_AUTHORIZATION_FAILED, id="authorization: final"
        ),
    ],
)
def test_errors_of_produce_responses(error: Errors, attempts: int, code: Errors | None) -> None:
    fake, _, producer = setup(error)
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    assert producer.flush() == 0
    assert reports == [(code, 0, -1001 if code else 0)]
    assert len(fake.requests(ProduceRequest)) == attempts


def test_a_moved_leader_is_looked_up() -> None:
    fake, leader, producer = setup(Errors.NONE, Errors.NOT_LEADER_OR_FOLLOWER)
    producer.produce("t", "a")
    producer.flush()
    fake.topics["t"] = [2]
    producer.produce("t", "b")
    producer.flush()
    assert [node for node, _ in leader.batches] == [1, 2]


def test_records_without_a_reachable_leader_time_out() -> None:
    fake, _, producer = setup(*[Errors.NOT_ENOUGH_REPLICAS] * 1000, message_timeout_ms=5000)
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    assert producer.flush(1) == 1
    assert producer.flush() == 0
    assert reports == [(KafkaError._MSG_TIMED_OUT, 0, -1001)]
    assert 5000 <= fake.now_ms - 1_000_000 < 6300
    assert 5 < len(fake.requests(ProduceRequest)) < 15


def test_records_wait_for_a_topic_to_be_created() -> None:
    fake = Fake()
    leader = FakeLeader(fake)
    producer = Producer({"bootstrap.servers": fake.address})
    for value in "abc":
        producer.produce("t", value)
    assert producer.flush(1) == 3
    fake.topics["t"], fake.ids["t"] = [1], Fake(t=[1]).ids["t"]
    producer.produce("t", "d")
    assert producer.flush() == 0
    assert leader.values() == [b"a", b"b", b"c", b"d"]


def test_a_topic_that_is_never_created_is_unknown() -> None:
    fake = Fake()
    FakeLeader(fake)
    producer = Producer({"bootstrap.servers": fake.address})
    reports = Reports()
    producer.produce("typo", "a", on_delivery=reports)
    assert producer.flush() == 0
    assert reports == [(KafkaError._UNKNOWN_TOPIC, -1, -1001)]
    assert fake.now_ms == 1_030_000
    assert len(fake.requests(MetadataRequest)) < 40


def test_an_invalid_topic_name_fails_without_waiting() -> None:
    fake = Fake()
    FakeLeader(fake)
    metadata = fake.answers[MetadataRequest]

    def answer(fake: Fake, node: int, request: MetadataRequest) -> Any:
        response = metadata(fake, node, request)
        invalid = type(response.topics[0])(
            name="a b", topic_id=response.topics[0].topic_id, error_code=Errors.INVALID_TOPIC_EXCEPTION
        )
        return type(response)(brokers=(), cluster_id="c", controller_id=0, topics=(invalid,))

    fake.answers[MetadataRequest] = answer
    producer = Producer({"bootstrap.servers": fake.address})
    reports = Reports()
    producer.produce("a b", "a", on_delivery=reports)
    producer.flush()
    assert reports == [(Errors.INVALID_TOPIC_EXCEPTION, -1, -1001)]


def test_a_missing_partition_fails_its_records() -> None:
    fake, _, producer = setup()
    reports = Reports()
    producer.produce("t", "a", partition=0)
    producer.flush()
    producer.produce("t", "b", partition=1, on_delivery=reports)
    assert producer.flush() == 0
    assert reports == [(KafkaError._UNKNOWN_PARTITION, 1, -1001)]
    fake.topics["t"] = [1, 1]
    producer.produce("t", "c", partition=1, on_delivery=reports)
    producer.flush()
    assert reports[1:] == [(None, 1, 0)]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param(("t", 5), TypeError, id="value is a number"),
        pytest.param(("t", b"", 5), TypeError, id="key is a number"),
        pytest.param((5, b""), TypeError, id="topic is a number"),
        pytest.param(("t", b"", b"", -2), KafkaException, id="a partition below -1"),
        pytest.param(("t", b"x" * 1_000_001), KafkaException, id="a record that is too large"),
    ],
)
def test_invalid_arguments_are_refused(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    _, _, producer = setup()
    with pytest.raises(error):
        producer.produce(*arguments)
    assert len(producer) == 0


def test_a_full_queue_raises_buffer_error() -> None:
    fake, leader, producer = setup(queue_buffering_max_messages=3)
    reports = Reports()
    for value in "abc":
        producer.produce("t", value, on_delivery=reports)
    with pytest.raises(BufferError, match="Queue full"):
        producer.produce("t", "d")
    fake.run(timeout_ms=10)
    with pytest.raises(BufferError):
        producer.produce("t", "d")
    producer.poll(0)
    producer.produce("t", "d")
    producer.flush()
    assert leader.values() == [b"a", b"b", b"c", b"d"]


def test_flush_returns_the_number_of_remaining_records_at_its_timeout() -> None:
    fake, _, producer = setup()
    fake.answers[ProduceRequest] = lambda *_: None
    producer.produce("t", "a")
    producer.produce("t", "b")
    assert producer.flush(2) == 2
    assert fake.now_ms == 1_002_000


@pytest.mark.parametrize(
    ("in_queue", "in_flight", "codes"),
    [
        pytest.param(True, False, [KafkaError._PURGE_QUEUE, None], id="the queue"),
        pytest.param(False, True, [KafkaError._PURGE_INFLIGHT, None], id="records in flight"),
        pytest.param(True, True, [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT], id="both"),
    ],
)
def test_purge_drops_queued_or_in_flight_records(in_queue: bool, in_flight: bool, codes: list[int | None]) -> None:
    fake, leader, producer = setup()
    fake.answers[ProduceRequest] = lambda *_: None
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    fake.run(timeout_ms=10)
    producer.produce("t", "b", on_delivery=reports)
    under_way = fake.pending(ProduceRequest)
    producer.purge(in_queue=in_queue, in_flight=in_flight)
    fake.answers[ProduceRequest] = leader.produce
    fake.reply(under_way.call_id, leader.produce(fake, 1, under_way.request))
    assert producer.flush() == 0
    assert [code for code, _, _ in reports] == codes


def test_purge_drops_records_without_a_partition() -> None:
    fake = Fake()
    FakeLeader(fake)
    producer = Producer({"bootstrap.servers": fake.address})
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    fake.run(timeout_ms=10)
    producer.produce("t", "b", on_delivery=reports)
    producer.produce("t", "c")
    assert len(producer) == 3
    producer.purge()
    assert producer.flush() == 0
    assert sorted(reports) == [(KafkaError._PURGE_QUEUE, -1, -1001)] * 2


def test_a_full_inbox_is_processed_by_produce() -> None:
    _, leader, producer = setup(batch_num_messages=100, linger_ms=10_000)
    reports = Reports()
    for number in range(1050):
        producer.produce("t", str(number), on_delivery=reports if number == 5 else None)
    assert len(leader.values()) == 1000
    assert producer.flush() == 0
    assert leader.values() == [str(number).encode() for number in range(1050)]
    assert reports == [(None, 0, 5)]


def test_records_wait_for_a_leader() -> None:
    fake, leader, producer = setup(leaders=[-1])
    producer.produce("t", "a")
    assert producer.flush(2) == 1
    fake.topics["t"] = [2]
    assert producer.flush() == 0
    assert [node for node, _ in leader.batches] == [2]


def test_acks_0_waits_for_no_response() -> None:
    fake, _, producer = setup(acks=0)
    fake.answers[ProduceRequest] = lambda *_: None
    reports = Reports()
    producer.produce("t", "a", on_delivery=reports)
    assert producer.flush() == 0
    assert reports == [(None, 0, -1001)]


def test_produce_batch_queues_all_records() -> None:
    _, leader, producer = setup(leaders=[1, 1], queue_buffering_max_messages=3)
    own, common = Reports(), Reports()
    rows: list[dict[str, Any]] = [
        {"value": "a", "key": "k", "timestamp": 5},
        {"value": "b", "partition": 1, "callback": own},
        {},
        {"value": "too many"},
    ]
    assert producer.produce_batch("t", rows, partition=0, on_delivery=common) == 3
    assert isinstance(rows[3]["_error"], BufferError)
    producer.flush()
    assert leader.logs[leader.fake.ids["t"], 0] == [(b"k", b"a", [], 5), (None, None, [], 1_000_000)]
    assert (len(own), len(common)) == (1, 2)
    with pytest.raises(TypeError, match="list of dicts"):
        producer.produce_batch("t", {})  # type: ignore[arg-type]


# ---- construction and close ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        pytest.param({"acks": 2}, r"acks=2: must be -1\.\.1", id="acks"),
        pytest.param({"linger_ms": -1}, r"linger\.ms=-1", id="linger"),
        pytest.param({"compression_type": "rar"}, "none, gzip", id="compression"),
        pytest.param({"partitioner": "fair"}, "consistent_random", id="partitioner"),
        pytest.param({"bogus": 1}, "bogus", id="unknown"),
        pytest.param({"enable_idempotence": True, "acks": 1}, "must be all", id="idempotence needs all"),
        pytest.param({"transactional_id": "x", "acks": 0}, "must be all", id="transactions need all"),
    ],
)
def test_invalid_configurations_are_refused(conf: dict[str, Any], text: str) -> None:
    with pytest.raises(KafkaException, match=text):
        setup(**conf)


@pytest.mark.parametrize(
    "conf",
    [
        {"acks": "all", "compression_codec": "lz4", "queue_buffering_max_ms": 1, "delivery_timeout_ms": 5},
        {"retries": 3, "queue.buffering.max.kbytes": 1, "socket.timeout.ms": 3},
    ],
    ids=["other names", "without effect"],
)
def test_accepted_keys(conf: dict[str, Any]) -> None:
    _, leader, producer = setup(**conf)
    producer.produce("t", "a")
    producer.flush()
    assert leader.values() == [b"a"]


def test_close_flushes_and_can_be_repeated() -> None:
    fake, leader, producer = setup()
    with producer:
        producer.produce("t", "a")
    producer.close()
    assert (leader.values(), fake.closed) == ([b"a"], True)
    for call in (lambda: producer.produce("t", "b"), producer.flush, lambda: producer.poll(0), producer.__enter__):
        with pytest.raises(IllegalStateException, match="closed"):
            call()


def test_a_current_leader_in_the_response_is_used_without_a_lookup() -> None:
    fake, leader, producer = setup()
    producer.produce("t", "a", partition=0)
    producer.flush()

    def moved(fake: Fake, node: int, request: ProduceRequest) -> Any:
        if node != 1:
            return leader.produce(fake, node, request)
        part = ProduceResponse.Partition(
            index=0,
            error_code=Errors.NOT_LEADER_OR_FOLLOWER,
            current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=1),
        )
        topic = ProduceResponse.Topic(topic_id=fake.ids["t"], partitions=(part,))
        return ProduceResponse(responses=(topic,))

    fake.answers[ProduceRequest] = moved
    began_ms = fake.now_ms
    producer.produce("t", "b", partition=0)
    producer.flush()
    assert [node for node, _ in leader.batches] == [1, 2]
    assert fake.now_ms == began_ms
    assert len(fake.requests(MetadataRequest)) == 1


def test_a_response_with_topic_names_is_accepted() -> None:
    """Before version 13 topics have names instead of ids."""
    fake, _, producer = setup()
    reports = Reports()
    part = ProduceResponse.Partition(index=0, base_offset=41)
    fake.answers[ProduceRequest] = lambda f, n, r: ProduceResponse(
        responses=(ProduceResponse.Topic(name=r.topics[0].name, partitions=(part,)),)
    )
    producer.produce("t", "a", partition=0, on_delivery=reports)
    producer.flush()
    assert reports == [(None, 0, 41)]
