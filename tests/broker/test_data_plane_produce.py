"""Produce at the broker: order of checks, topics by name and by id, acknowledgements, idempotence.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.log.batches import parse_batch, restamp
from shareq.log.records import decode, encode_batch
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, ZERO_TOPIC_ID, TopicId
from shareq.model.messages.cluster import FindCoordinatorRequest
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.fetch import UNKNOWN_LEADER
from tests.broker.requester import Requester
from tests.log.support import broken, patched

HOUR = 3_600_000
NOWHERE = TopicId("x" * 22)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, seed=5) as made:
        made.create_topic("orders", 2)
        made.create_topic("compacted", configs={"cleanup.policy": "compact"})
        made.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def batch(cluster: Cluster, *values: bytes, key: bytes | None = None, ahead_ms: int = 0, **options: Any) -> bytes:
    return encode_batch([(key, value, (), cluster.now_ms + ahead_ms) for value in values or (b"v",)], **options)


def request(cluster: Cluster, topic: str, *records: bytes, **options: Any) -> ProduceRequest:
    """ProduceRequest with one batch for each partition from 0 on; the topic is named by id."""
    parts = tuple(ProduceRequest.Partition(index=index, records=data) for index, data in enumerate(records))
    image = cluster.image.topics.get(topic)
    topics = (ProduceRequest.Topic(topic_id=image.topic_id if image else NOWHERE, partitions=parts),)
    return ProduceRequest(**{"topics": topics, **options})


def only(response: ProduceResponse) -> ProduceResponse.Partition:
    return response.responses[0].partitions[0]


def produced(
    requester: Requester, topic: str, data: bytes, version: int = 13, **options: Any
) -> ProduceResponse.Partition:
    found = only(requester.ask(request(requester.cluster, topic, data, **options), version))
    assert isinstance(found, ProduceResponse.Partition)
    return found


# ---- the order of checks ---------------------------------------------------------------------------------------------

IDEMPOTENT: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}


def flawed(cluster: Cluster, *flaws: str) -> bytes:
    """A batch with these flaws, each named after a check of the table in BEHAVIOUR.md, 2.4."""
    data = batch(
        cluster,
        b"x" * 2_000_000 if "size" in flaws else b"v",
        ahead_ms=HOUR + 1 if "timestamp" in flaws else 0,
        **IDEMPOTENT | {"base_sequence": 5} if "sequence" in flaws else {},
    )
    if "control" in flaws:
        data = patched(data, 22, b"\x20")
    if "crc" in flaws:
        data = broken(data, 17)
    if "base offset" in flaws:
        data = restamp(data, 1, 0)
    if "magic" in flaws:
        data = data[:16] + b"\3" + data[17:]
    return b"" if "frame" in flaws else data


ORDER = [
    ("topic", Errors.UNKNOWN_TOPIC_ID),
    ("partition", Errors.UNKNOWN_TOPIC_OR_PARTITION),
    ("frame", Errors.INVALID_RECORD),
    ("magic", Errors.CORRUPT_MESSAGE),
    ("acks", Errors.INVALID_REQUIRED_ACKS),
    ("internal", Errors.INVALID_TOPIC_EXCEPTION),
    ("base offset", Errors.INVALID_RECORD),
    ("size", Errors.MESSAGE_TOO_LARGE),
    ("crc", Errors.CORRUPT_MESSAGE),
    ("control", Errors.INVALID_RECORD),
    ("timestamp", Errors.INVALID_TIMESTAMP),
    ("sequence", Errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
]


@pytest.mark.parametrize("later", [pytest.param(name, id=f"2.4 then {name}") for name, _ in ORDER])
@pytest.mark.parametrize(("first", "error"), [pytest.param(*row, id=f"2.4 {row[0]}") for row in ORDER])
def test_the_first_failed_check_is_the_error(
    cluster: Cluster, requester: Requester, first: str, later: str, error: Errors
) -> None:
    names = [name for name, _ in ORDER]
    if names.index(later) < names.index(first):
        first, error = later, dict(ORDER)[later]
    flaws = {first, later}
    produced(requester, "orders", batch(cluster, **IDEMPOTENT))
    requester.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6)
    topic = "nowhere" if "topic" in flaws else GROUP_METADATA_TOPIC if "internal" in flaws else "orders"
    index = 99 if "partition" in flaws else 0
    if "internal" in flaws and "sequence" in (first, later):
        flaws.discard("sequence")  # the producer is unknown there
    part = ProduceRequest.Partition(index=index, records=flawed(cluster, *flaws))
    image = cluster.image.topics.get(topic)
    topics = (ProduceRequest.Topic(topic_id=image.topic_id if image else NOWHERE, partitions=(part,)),)
    found = only(requester.ask(ProduceRequest(topics=topics, acks=2 if "acks" in flaws else -1), 13))
    assert found.error_code is error
    assert (found.base_offset, found.log_append_time_ms) == (-1, -1)
    assert cluster.log("orders", 0).log_end_offset == 1


def test_transactional_batches_without_a_transactional_id_write_nothing(cluster: Cluster, requester: Requester) -> None:
    transactional = batch(cluster, transactional=True, **IDEMPOTENT)
    response = requester.ask(request(cluster, "orders", batch(cluster), transactional), 13)
    errors = [part.error_code for part in response.responses[0].partitions]
    assert errors == [Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
    assert cluster.log("orders", 0).log_end_offset == 0


def test_partitions_of_a_produce_request_fail_independently(cluster: Cluster, requester: Requester) -> None:
    good, bad = batch(cluster), broken(batch(cluster), 17)
    response = requester.ask(request(cluster, "orders", good, bad, good), 13)
    assert [(part.index, part.error_code, part.base_offset) for part in response.responses[0].partitions] == [
        (0, Errors.NONE, 0),
        (1, Errors.CORRUPT_MESSAGE, -1),
        (2, Errors.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_a_batch_from_this_process_is_not_validated(cluster: Cluster, requester: Requester) -> None:
    damaged = broken(batch(cluster), 17)
    assert produced(requester, "orders", damaged).error_code is Errors.CORRUPT_MESSAGE
    assert produced(requester, "orders", damaged, version=32767).error_code is Errors.NONE


# ---- topics, leaders and replicas ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic_id", "name", "error"),
    [
        pytest.param(ZERO_TOPIC_ID, "orders", Errors.NONE, id="2.4 by name"),
        pytest.param(ZERO_TOPIC_ID, "none", Errors.UNKNOWN_TOPIC_OR_PARTITION, id="2.4 unknown name"),
        pytest.param(NOWHERE, "", Errors.UNKNOWN_TOPIC_ID, id="2.4 unknown id"),
        pytest.param(ZERO_TOPIC_ID, "", Errors.UNKNOWN_TOPIC_ID, id="2.4 neither name nor id"),
    ],
)
def test_produce_finds_topics_by_name_or_id(
    cluster: Cluster, requester: Requester, topic_id: TopicId, name: str, error: Errors
) -> None:
    part = ProduceRequest.Partition(index=0, records=batch(cluster))
    produce_request = ProduceRequest(topics=(ProduceRequest.Topic(topic_id=topic_id, name=name, partitions=(part,)),))
    topic = requester.ask(produce_request, 10 if name else 13).responses[0]
    assert (topic.topic_id, topic.name, topic.partitions[0].error_code) == (topic_id, name, error)


def test_a_superseded_leader_appends_nothing() -> None:
    """The batch arrives after the election, before the broker has the new image."""
    with Cluster(brokers=2, seed=1) as cluster:
        cluster.create_topic("orders", replication_factor=2)
        preferred = cluster.image.topics["orders"].partitions[0].leader
        cluster.kill_broker(preferred)
        cluster.start_broker(preferred)
        cluster.advance(10)
        requester, produce_request = Requester(cluster), request(cluster, "orders", batch(cluster))
        assert cluster.image.topics["orders"].partitions[0].leader == 1 - preferred

        def send_and_elect() -> None:
            requester.post(produce_request, 13, 1 - preferred)
            cluster._runtime.controller.elect_preferred_leaders()

        cluster.loop.enter(send_and_elect)
        assert cluster.wait(lambda: requester.answered(1), 10)
        assert only(requester.response(1)).error_code is Errors.NOT_LEADER_OR_FOLLOWER
        assert cluster.log("orders", 0).log_end_offset == 0
        assert only(requester.ask(produce_request, 13, preferred)).error_code is Errors.NONE


def test_not_leader_response_has_the_current_leader() -> None:
    with Cluster(brokers=2, seed=1) as cluster:
        cluster.create_topic("orders")
        leader = cluster.image.topics["orders"].partitions[0].leader
        response = Requester(cluster).ask(request(cluster, "orders", batch(cluster)), 13, 1 - leader)
        found = only(response)
        assert found.error_code is Errors.NOT_LEADER_OR_FOLLOWER
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (leader, 0)
        assert [node.node_id for node in response.node_endpoints] == [leader]


@pytest.mark.parametrize(
    ("min_isr", "factor", "dead", "acks", "error"),
    [
        pytest.param(3, 1, 0, -1, Errors.NONE, id="2.4 min.insync.replicas above the number of replicas"),
        pytest.param(2, 2, 0, -1, Errors.NONE, id="all replicas are in sync"),
        pytest.param(2, 2, 1, -1, Errors.NOT_ENOUGH_REPLICAS, id="a replica is missing"),
        pytest.param(2, 2, 1, 1, Errors.NONE, id="a replica is missing, acks 1"),
        pytest.param(1, 2, 1, -1, Errors.NONE, id="min.insync.replicas 1"),
    ],
)
def test_acks_all_requires_min_insync_replicas(min_isr: int, factor: int, dead: int, acks: int, error: Errors) -> None:
    with Cluster(brokers=2, seed=1) as cluster:
        cluster.create_topic("orders", replication_factor=factor, configs={"min.insync.replicas": min_isr})
        leader = cluster.image.topics["orders"].partitions[0].leader
        if dead:
            cluster.kill_broker(1 - leader)
        produce_request = request(cluster, "orders", batch(cluster), acks=acks)
        assert only(Requester(cluster).ask(produce_request, 13, leader)).error_code is error


def test_an_injected_fault_fails_an_append(cluster: Cluster, requester: Requester) -> None:
    cluster.fail_appends("orders", Errors.KAFKA_STORAGE_ERROR)
    assert produced(requester, "orders", batch(cluster)).error_code is Errors.KAFKA_STORAGE_ERROR
    assert produced(requester, "orders", batch(cluster)).base_offset == 0


# ---- the stored batch ------------------------------------------------------------------------------------------------


def stored(cluster: Cluster, topic: str = "orders") -> Any:
    found = cluster.log(topic, 0)
    return parse_batch(found._batches[-1].data)


def test_an_appended_batch_has_its_offset_and_leader_epoch(cluster: Cluster, requester: Requester) -> None:
    data = batch(cluster)
    for epoch in (0, 0x7FFFFFFF):  # librdkafka sends 0, Java -1
        produced(requester, "orders", restamp(data, 0, epoch))
    found = stored(cluster)
    assert (found.base_offset, found.leader_epoch) == (1, 0)
    assert found.data[16:] == data[16:], "only base offset and leader epoch have changed, not the CRC"


def test_the_broker_corrects_the_largest_timestamp(cluster: Cluster, requester: Requester) -> None:
    data = patched(batch(cluster), 35, (cluster.now_ms + 99).to_bytes(8, "big"))
    assert produced(requester, "orders", data).error_code is Errors.NONE
    assert stored(cluster).max_timestamp == cluster.now_ms
    assert decode(stored(cluster), check_crc=True)


@pytest.mark.parametrize(
    ("topic", "bit", "log_append_time"),
    [
        pytest.param("orders", 0, False, id="2.4 the producer's time"),
        pytest.param("orders", 8, False, id="2.4 a client's bit 3 is cleared"),
        pytest.param("stamped", 0, True, id="2.4 the broker's time"),
        pytest.param("stamped", 8, True, id="2.4 the broker's time, bit 3 set by the client"),
    ],
)
def test_message_timestamp_type_decides_the_timestamps(
    cluster: Cluster, requester: Requester, topic: str, bit: int, log_append_time: bool
) -> None:
    sent_ms = cluster.now_ms
    data = patched(batch(cluster), 22, bytes([bit]))
    cluster.advance(50)
    answer = produced(requester, topic, data)
    found = stored(cluster, topic)
    assert answer.log_append_time_ms == (cluster.now_ms if log_append_time else -1)
    assert found.max_timestamp == (cluster.now_ms if log_append_time else sent_ms)
    assert (found.base_timestamp, bool(found.attributes & 8)) == (sent_ms, log_append_time)


def test_compression_type_of_the_topic_recompresses_the_batch(cluster: Cluster, requester: Requester) -> None:
    cluster.create_topic("small", configs={"compression.type": "zstd"})
    produced(requester, "small", batch(cluster, b"x" * 1000))
    assert (stored(cluster, "small").attributes & 7, decode(stored(cluster, "small"))[0].value) == (4, b"x" * 1000)


def test_invalid_records_are_named_by_index(cluster: Cluster, requester: Requester) -> None:
    keyless = produced(requester, "compacted", batch(cluster, b"a", b"b"))
    assert (keyless.error_code, keyless.error_message) == (
        Errors.INVALID_RECORD,
        "one or more records have been rejected",
    )
    assert [(e.batch_index, e.batch_index_error_message) for e in keyless.record_errors] == [
        (0, "a compacted topic requires a key for every record"),
        (1, "a compacted topic requires a key for every record"),
    ]
    late = produced(requester, "orders", batch(cluster, ahead_ms=HOUR + 1))
    assert (late.error_code, [e.batch_index for e in late.record_errors]) == (Errors.INVALID_TIMESTAMP, [0])
    assert (late.log_start_offset, late.current_leader) == (0, UNKNOWN_LEADER)


def test_a_truncated_batch_behind_a_complete_one_is_dropped(cluster: Cluster, requester: Requester) -> None:
    whole = batch(cluster)
    assert produced(requester, "orders", whole + whole[:-1]).error_code is Errors.NONE
    assert cluster.log("orders", 0).log_end_offset == 1


# ---- idempotence -----------------------------------------------------------------------------------------------------

LAST = (1 << 31) - 1


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param([(0, 0, 2), (0, 0, 2)], (Errors.NONE, 0, 2), id="2.5 a duplicate has the first base offset"),
        pytest.param([(0, 0, 2), (0, 2, 1)], (Errors.NONE, 2, 3), id="2.5 last + 1"),
        pytest.param([(0, 0, 2), (0, 3, 1)], (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 2), id="2.5 a gap"),
        pytest.param([(0, 0, 2), (0, 1, 2)], (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 2), id="2.5 an overlap"),
        pytest.param([(0, 0, 2), (0, 0, 1)], (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 2), id="2.5 part of a batch"),
        pytest.param(
            [(0, i, 1) for i in range(6)] + [(0, 1, 1)], (Errors.NONE, 1, 6), id="2.5 the fifth last batch again"
        ),
        pytest.param(
            [(0, i, 1) for i in range(6)] + [(0, 0, 1)],
            (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 6),
            id="2.5 the sixth last batch again",
        ),
        pytest.param([(0, LAST, 1), (0, 0, 1)], (Errors.NONE, 1, 2), id="2.5 0 after 2147483647"),
        pytest.param([(0, LAST - 1, 4), (0, 2, 1)], (Errors.NONE, 4, 5), id="2.5 a batch across the last sequence"),
        pytest.param([(0, 0, 1), (1, 0, 1)], (Errors.NONE, 1, 2), id="2.5 a newer epoch begins at 0"),
        pytest.param(
            [(0, 0, 1), (1, 1, 1)], (Errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 1), id="2.5 not a newer epoch at 1"
        ),
        pytest.param([(1, 0, 1), (0, 1, 1)], (Errors.INVALID_PRODUCER_EPOCH, -1, 1), id="2.5 an older epoch"),
        pytest.param([(0, 9, 1)], (Errors.NONE, 0, 1), id="2.5 an unknown producer may start anywhere"),
    ],
)
def test_duplicate_and_out_of_order_batches_of_a_producer(
    cluster: Cluster, requester: Requester, steps: list[tuple[int, int, int]], expected: tuple[Errors, int, int]
) -> None:
    """A step is (epoch, first sequence, record count); `expected`: the last step's error, base offset and log end."""
    for epoch, sequence, count in steps:
        data = batch(cluster, *[b"v"] * count, producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        answer = produced(requester, "orders", data)
    assert (answer.error_code, answer.base_offset, cluster.log("orders", 0).log_end_offset) == expected


def test_a_duplicate_batch_wakes_no_fetch(cluster: Cluster, requester: Requester) -> None:
    for _ in range(2):
        produced(requester, "orders", batch(cluster, **IDEMPOTENT))
    assert [type(entry.event).__name__ for entry in cluster.journal].count("RecordsAppended") == 1
