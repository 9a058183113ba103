"""Values that `produce` and the configuration refuse, or accept as confluent-kafka does. BEHAVIOUR.md, 1 and 2."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.producer import Producer
from shareq.producer.partitioner import fnv1a
from tests.client.fake import Fake
from tests.producer.stage import FakeLeader, Reports, setup


class Seven:
    def __index__(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("record", "error", "text"),
    [
        pytest.param({"timestamp": -5}, KafkaException, r"timestamp=-5: must be 0\.\.9223372036854775807", id="past"),
        pytest.param({"timestamp": 2**63}, KafkaException, "timestamp=9223372036854775808", id="no int64"),
        pytest.param({"timestamp": "now"}, TypeError, "timestamp must be an int, not str", id="text for a timestamp"),
        pytest.param({"timestamp": 1.5}, TypeError, "timestamp must be an int, not float", id="a fractional timestamp"),
        pytest.param({"partition": 0.0}, TypeError, "partition must be an int, not float", id="partition 0.0"),
        pytest.param({"partition": "0"}, TypeError, "partition must be an int, not str", id="partition as text"),
        pytest.param({"partition": -2}, KafkaException, r"partition=-2: must be -1\.\.2147483647", id="partition -2"),
        pytest.param({"partition": 2**31}, KafkaException, "partition=2147483648", id="no int32"),
        pytest.param({"topic": "a\udc80"}, ValueError, "topic='a.*UTF-8", id="a surrogate in a topic"),
        pytest.param({"topic": ""}, ValueError, "topic must not be empty", id="empty topic"),
        pytest.param({"topic": "x" * 40_000}, ValueError, "at most 32767 bytes", id="topic too long for a request"),
        pytest.param({"topic": ["t"]}, TypeError, "topic must be a str, not list", id="a list of topics"),
        pytest.param({"topic": b"t"}, TypeError, "topic must be a str, not bytes", id="a topic in bytes"),
        pytest.param({"value": "\udc80"}, ValueError, "value='.*UTF-8", id="a surrogate in a value"),
        pytest.param({"key": "\udc80"}, ValueError, "key='.*UTF-8", id="a surrogate in a key"),
        pytest.param({"headers": 0}, TypeError, "headers must be a dict or a list", id="headers that are a number"),
        pytest.param({"headers": ["ab"]}, TypeError, r"\(name, value\) pairs, not 'ab'", id="a header that is text"),
        pytest.param({"headers": [("a",)]}, TypeError, "pairs", id="a header without value"),
        pytest.param({"headers": {5: b""}}, TypeError, "name of a header must be a str", id="a number as a name"),
        pytest.param({"headers": {b"\xff": b""}}, ValueError, "header name .* UTF-8", id="a name that is not UTF-8"),
        pytest.param({"headers": {"\udc80": b""}}, ValueError, "header name='", id="a surrogate in a name"),
        pytest.param({"headers": {"a": 5}}, TypeError, "header 'a' must be bytes", id="a number in a header"),
        pytest.param(
            {"on_delivery": 5}, TypeError, "on_delivery must be callable", id="a callback that is not callable"
        ),
        pytest.param({"callback": 5}, TypeError, "on_delivery must be callable", id="an alias that is not callable"),
    ],
)
def test_an_invalid_value_is_refused_without_effect_on_other_records(
    record: dict[str, Any], error: type[Exception], text: str
) -> None:
    _, leader, producer = setup()
    reports = Reports()
    producer.produce("t", b"before", on_delivery=reports)
    with pytest.raises(error, match=text):
        producer.produce(**{"topic": "t", "value": b"bad", **record})
    producer.produce("t", b"after", on_delivery=reports)
    assert (producer.flush(), len(producer)) == (0, 0)
    assert (leader.values(), [code for code, _, _ in reports]) == ([b"before", b"after"], [None, None])


@pytest.mark.parametrize(
    ("record", "read"),
    [
        pytest.param({"headers": [(b"n\xc3\xa4me", b"v")]}, (None, b"v", [("näme", b"v")], 1_000_000), id="byte name"),
        pytest.param({"headers": (["a", "1"],)}, (None, b"v", [("a", b"1")], 1_000_000), id="a pair that is a list"),
        pytest.param({"headers": []}, (None, b"v", [], 1_000_000), id="no headers"),
        pytest.param({"timestamp": Seven()}, (None, b"v", [], 7), id="an index is an integer"),
        pytest.param({"timestamp": None}, (None, b"v", [], 1_000_000), id="no timestamp"),
        pytest.param({"timestamp": 2**63 - 1}, (None, b"v", [], 2**63 - 1), id="the last timestamp"),
    ],
)
def test_accepted_values(record: dict[str, Any], read: tuple[Any, ...]) -> None:
    _, leader, producer = setup()
    producer.produce("t", b"v", **record)
    assert producer.flush() == 0
    assert list(leader.logs.values()) == [[read]]


def test_an_invalid_record_of_produce_batch_has_its_error_and_the_others_are_queued() -> None:
    _, leader, producer = setup()
    rows: list[dict[str, Any]] = [{"value": "a"}, {"value": 5}, {"value": "b", "timestamp": -5}, {"value": "c"}]
    assert producer.produce_batch("t", rows) == 2
    assert [type(row.get("_error")) for row in rows] == [type(None), TypeError, KafkaException, type(None)]
    with pytest.raises(TypeError, match="list of dicts"):
        producer.produce_batch("t", [{"value": "d"}, 5])  # type: ignore[list-item]
    producer.flush()
    assert leader.values() == [b"a", b"c"]


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_headers_count_for_message_max_bytes() -> None:
    _, leader, producer = setup(message_max_bytes=1000)
    with pytest.raises(KafkaException, match=r"message\.max\.bytes is 1000") as raised:
        producer.produce("t", b"x" * 500, headers={"h" * 100: b"y" * 400})
    assert raised.value.error == Errors.MESSAGE_TOO_LARGE
    producer.produce("t", b"x" * 500, headers={"h" * 50: b"y" * 400})
    producer.flush()
    assert len(leader.values()) == 1


def test_the_queue_is_bounded_in_bytes() -> None:
    """Records count until their callbacks have run."""
    fake, leader, producer = setup(queue_buffering_max_kbytes=1024, message_max_bytes=2_000_000)
    reports = Reports()
    for _ in range(10):
        producer.produce("t", b"x" * 100_000, on_delivery=reports)
    for size in (100_000, 1_500_000):
        with pytest.raises(BufferError, match=r"Queue full \(1000160 waiting bytes"):
            producer.produce("t", b"x" * size)
    fake.run(timeout_ms=10)
    with pytest.raises(BufferError):
        producer.produce("t", b"x" * 100_000)
    assert producer.poll(0) == 10
    for _ in range(50):
        producer.produce("t", b"x" * 100_000)
        producer.flush()
    assert len(leader.values()) == 60


# ---- configuration ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        pytest.param({"client.id": "a\udc80"}, r"client\.id='a.*UTF-8", id="a surrogate"),
        pytest.param({"client.id": ["a"]}, r"client\.id=\['a'\]: must be any text", id="a list"),
        pytest.param({"linger.ms": "x"}, r"linger\.ms='x': must be a number, 0\.\.900000", id="no number"),
        pytest.param({"linger.ms": float("nan")}, r"linger\.ms=nan", id="nan"),
        pytest.param({"batch.size": 5.5}, r"batch\.size=5\.5", id="a fraction of a byte"),
        pytest.param({"batch.size": None}, r"batch\.size=None", id="None"),
        pytest.param({"enable.idempotence": 2}, "true or false", id="neither true nor false"),
        pytest.param({"on_delivery": 5}, "on_delivery=5: must be callable", id="a callback that is not callable"),
        pytest.param({5: 5}, 'No such configuration property: "5"', id="a key that is a number"),
        pytest.param(
            {"message.timeout.ms": 500, "linger.ms": 1000}, r"message\.timeout\.ms=500: must be greater", id="linger"
        ),
    ],
)
def test_an_invalid_configuration_is_refused(conf: dict[Any, Any], text: str) -> None:
    with pytest.raises(KafkaException, match=text) as raised:
        Producer({"bootstrap.servers": Fake(t=[1]).address, **conf})
    assert raised.value.error == KafkaError._INVALID_ARG


@pytest.mark.parametrize(
    "conf",
    [
        {"linger.ms": 0.5},
        {"linger.ms": "0.5"},
        {"batch.size": 1000.0},
        {"enable.idempotence": 0},
        {"client.id": None},
        {"client.id": 5},
        {"message.timeout.ms": 0},
        {"message.timeout.ms": 3},
        {"topic.metadata.refresh.interval.ms": -1},
        {"partitioner": "fnv1a"},
    ],
    ids=str,
)
def test_a_configuration_of_confluent_kafka_is_accepted(conf: dict[str, Any]) -> None:
    fake = Fake(t=[1])
    leader = FakeLeader(fake)
    producer = Producer({"bootstrap.servers": fake.address, **conf})
    producer.produce("t", b"a")
    assert producer.flush() == 0
    assert leader.values() == [b"a"]


def test_a_client_id_of_none_is_the_default() -> None:
    producer = Producer({"bootstrap.servers": Fake(t=[1]).address, "client.id": None})
    assert producer._core.client_id == "shareq"


def test_half_a_millisecond_of_linger_is_rounded_up() -> None:
    fake, leader, producer = setup(linger_ms=0.5)
    producer.produce("t", b"a")
    assert leader.values() == []
    fake.run(timeout_ms=1)
    assert leader.values() == [b"a"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [(b"kafka", 0xD33C4E1), (b"giberish123456789", 0x77A58295), (b"1234", 0x23BDD03), (b"", 0x7EE3623B)],
    ids=repr,
)
def test_fnv1a_is_that_of_librdkafka(key: bytes, expected: int) -> None:
    """Test values of librdkafka."""
    assert fnv1a(key) == expected
