"""Responses about offsets: ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
)
from shareq.model.messages.describe import DescribeProducersRequest, DescribeProducersResponse
from shareq.model.messages.fetch import FetchRequest, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from tests.broker.requester import Requester

START = 1_767_225_600_000
"""Timestamp of the first record of the log, in milliseconds."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, seed=5) as made:
        made.create_topic("orders", replication_factor=2)
        made.create_topic("empty", 2, replication_factor=1)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def leader(cluster: Cluster, topic: str = "orders") -> int:
    return cluster.image.topics[topic].partitions[0].leader


def produce(requester: Requester, *timestamps: int, **options: Any) -> None:
    """Produce one batch of records with these timestamps."""
    cluster = requester.cluster
    data = encode_batch([(b"k", b"v", (), timestamp) for timestamp in timestamps], **options)
    part = ProduceRequest.Partition(index=0, records=data)
    topic = ProduceRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=(part,))
    answer = requester.ask(ProduceRequest(topics=(topic,)), 13, leader(cluster))
    assert not answer.responses[0].partitions[0].error_code


@pytest.fixture
def written(requester: Requester) -> Requester:
    """A log of [START, +20], [+10, +30], [+30, +5], six records in three batches."""
    produce(requester, START, START + 20)
    produce(requester, START + 10, START + 30)
    produce(requester, START + 30, START + 5)
    return requester


# ---- ListOffsets -----------------------------------------------------------------------------------------------------


def list_offset(
    requester: Requester,
    timestamp: int,
    version: int = 11,
    *,
    topic: str = "orders",
    index: int = 0,
    isolation: int = 0,
    epoch: int = -1,
) -> ListOffsetsResponse.Partition:
    part = ListOffsetsRequest.Partition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
    topics = (ListOffsetsRequest.Topic(name=topic, partitions=(part,)),)
    known = topic in requester.cluster.image.topics
    node = leader(requester.cluster, topic) if known else 0
    response = requester.ask(ListOffsetsRequest(isolation_level=isolation, topics=topics), version, node)
    found = response.topics[0].partitions[0]
    assert isinstance(found, ListOffsetsResponse.Partition)
    return found


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        pytest.param(-1, (6, -1, 0), id="2.8 latest: the high watermark, without a time"),
        pytest.param(-2, (1, -1, 0), id="2.8 earliest: the log start, without a time"),
        pytest.param(-3, (3, START + 30, 0), id="2.8 the first record with the largest timestamp"),
        pytest.param(-4, (1, -1, 0), id="2.8 earliest local: the log start"),
        pytest.param(-5, (-1, -1, -1), id="2.8 latest tiered: unknown"),
        pytest.param(-6, (-1, -1, -1), id="2.8 earliest pending upload: unknown"),
        pytest.param(0, (1, START + 20, 0), id="2.8 the first record at all, above the log start"),
        pytest.param(START + 20, (1, START + 20, 0), id="2.8 exactly the time of a record"),
        pytest.param(START + 21, (3, START + 30, 0), id="2.8 the first record after it, within its batch"),
        pytest.param(START + 31, (-1, -1, -1), id="2.8 later than every record"),
    ],
)
def test_offsets_of_timestamps(written: Requester, timestamp: int, expected: tuple[int, int, int]) -> None:
    written.cluster.log("orders", 0).delete_records(1)
    found = list_offset(written, timestamp)
    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (Errors.NONE, *expected)


@pytest.mark.parametrize("timestamp", [pytest.param(t, id=f"2.8 {t}") for t in (-3, 0)])
def test_an_empty_log_has_no_offset_for_a_timestamp(requester: Requester, timestamp: int) -> None:
    found = list_offset(requester, timestamp, topic="empty")
    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (Errors.NONE, -1, -1, -1)


def test_deleted_records_have_no_offset_for_the_largest_timestamp(written: Requester) -> None:
    """Kafka still returns the largest timestamp of a batch that is below the log start."""
    written.cluster.log("orders", 0).delete_records(-1)
    found = list_offset(written, -3)
    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (Errors.NONE, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [pytest.param(t, since, id=f"2.8 {t} from version {since}") for t, since in ((-3, 7), (-4, 8), (-5, 9), (-6, 11))],
)
def test_special_timestamps_need_their_version(written: Requester, timestamp: int, since: int) -> None:
    assert list_offset(written, timestamp, since).error_code is Errors.NONE
    refused = list_offset(written, timestamp, since - 1)
    assert (refused.error_code, refused.offset) == (Errors.UNSUPPORTED_VERSION, -1)


@pytest.mark.parametrize(
    ("requested", "error"),
    [
        pytest.param({"timestamp": -7}, Errors.UNSUPPORTED_VERSION, id="2.8 below -6"),
        pytest.param({"topic": "none"}, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="unknown topic"),
        pytest.param({"index": 1}, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="unknown partition"),
        pytest.param({"epoch": 1}, Errors.UNKNOWN_LEADER_EPOCH, id="2.8 a later leader epoch"),
        pytest.param({"isolation": 7}, Errors.UNKNOWN_SERVER_ERROR, id="unknown isolation level"),
    ],
)
def test_invalid_list_offsets_requests_have_an_error(
    written: Requester, requested: dict[str, Any], error: Errors
) -> None:
    found = list_offset(written, **{"timestamp": -1, **requested})
    assert (found.error_code, found.offset, found.timestamp, found.leader_epoch) == (error, -1, -1, -1)


def test_a_duplicate_partition_is_an_invalid_request(written: Requester) -> None:
    parts = tuple(ListOffsetsRequest.Partition(partition_index=0, timestamp=t) for t in (-1, -2))
    request = ListOffsetsRequest(topics=(ListOffsetsRequest.Topic(name="orders", partitions=parts),))
    found = written.ask(request, 11, leader(written.cluster)).topics[0].partitions
    assert [part.error_code for part in found] == [Errors.INVALID_REQUEST] * 2


def test_latest_under_read_committed_is_the_last_stable_offset(written: Requester) -> None:
    """The transaction is appended to the log directly: the test is about reading it."""
    open_transaction = encode_batch(
        [(b"k", b"v", (), START + 99)], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    log = written.cluster.log("orders", 0)
    log.append(open_transaction, now_ms=START, leader_epoch=0)
    assert [list_offset(written, -1, isolation=i).offset for i in (0, 1)] == [7, 6]
    assert [list_offset(written, -3, isolation=i).offset for i in (0, 1)] == [6, -1]
    assert [list_offset(written, START + 40, isolation=i).offset for i in (0, 1)] == [6, -1]


# ---- OffsetForLeaderEpoch --------------------------------------------------------------------------------------------


@pytest.fixture
def elected(written: Requester) -> Requester:
    """Epochs 0 and 2 each wrote three batches, epoch 1 none."""
    cluster = written.cluster
    first = leader(cluster)
    cluster.kill_broker(first)
    cluster.start_broker(first)
    cluster.loop.enter(cluster._runtime.controller.elect_preferred_leaders)
    for _ in range(3):
        produce(written, START)
    return written


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(2, (2, 9), id="2.8 the current epoch: the log's end"),
        pytest.param(0, (0, 6), id="2.8 an older epoch: the start of the next"),
        pytest.param(1, (0, 6), id="2.8 an epoch without records: the largest epoch below it"),
        pytest.param(3, (-1, -1), id="2.8 a higher epoch"),
        pytest.param(-1, (-1, -1), id="2.8 no epoch"),
    ],
)
def test_the_end_offset_of_a_leader_epoch(elected: Requester, epoch: int, expected: tuple[int, int]) -> None:
    found = epoch_end(elected, leader_epoch=epoch)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (Errors.NONE, *expected)


def epoch_end(requester: Requester, *, node: int | None = None, **part: int) -> OffsetForLeaderEpochResponse.Partition:
    requested = OffsetForLeaderEpochRequest.Partition(**{"partition": 0, "leader_epoch": 0, **part})
    request = OffsetForLeaderEpochRequest(
        topics=(OffsetForLeaderEpochRequest.Topic(topic="orders", partitions=(requested,)),)
    )
    found = requester.ask(request, 4, leader(requester.cluster) if node is None else node).topics[0].partitions[0]
    assert isinstance(found, OffsetForLeaderEpochResponse.Partition)
    return found


@pytest.mark.parametrize(
    ("part", "error"),
    [
        pytest.param({"current_leader_epoch": 0}, Errors.FENCED_LEADER_EPOCH, id="an older leader epoch"),
        pytest.param({"current_leader_epoch": 3}, Errors.UNKNOWN_LEADER_EPOCH, id="a later leader epoch"),
        pytest.param({"partition": 5}, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="unknown partition"),
    ],
)
def test_invalid_leader_epoch_requests_have_an_error(elected: Requester, part: dict[str, int], error: Errors) -> None:
    found = epoch_end(elected, **part)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (error, -1, -1)


def test_only_the_leader_answers_offset_for_leader_epoch(elected: Requester) -> None:
    other = 1 - leader(elected.cluster)
    assert epoch_end(elected, node=other).error_code is Errors.NOT_LEADER_OR_FOLLOWER


# ---- DeleteRecords ---------------------------------------------------------------------------------------------------


def delete_up_to(
    requester: Requester, offset: int, topic: str = "orders", node: int | None = None
) -> DeleteRecordsResponse.Partition:
    part = DeleteRecordsRequest.Partition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=(DeleteRecordsRequest.Topic(name=topic, partitions=(part,)),))
    found = requester.ask(request, 2, leader(requester.cluster) if node is None else node).topics[0].partitions[0]
    assert isinstance(found, DeleteRecordsResponse.Partition)
    return found


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        pytest.param(-1, (Errors.NONE, 6), id="2.8 -1: up to the high watermark"),
        pytest.param(6, (Errors.NONE, 6), id="2.8 the high watermark itself"),
        pytest.param(3, (Errors.NONE, 3), id="2.8 the new log start"),
        pytest.param(0, (Errors.NONE, 1), id="2.8 below the log start: no change"),
        pytest.param(7, (Errors.OFFSET_OUT_OF_RANGE, -1), id="2.8 above the high watermark"),
        pytest.param(-2, (Errors.OFFSET_OUT_OF_RANGE, -1), id="2.8 below -1"),
    ],
)
def test_delete_records_moves_the_log_start(written: Requester, offset: int, expected: tuple[Errors, int]) -> None:
    delete_up_to(written, 1)
    found = delete_up_to(written, offset)
    assert (found.error_code, found.low_watermark) == expected
    assert written.cluster.log("orders", 0).log_start_offset == max(1, expected[1])


def test_a_batch_across_the_log_start_is_returned_whole(written: Requester) -> None:
    assert delete_up_to(written, 3).low_watermark == 3
    topic_id = written.cluster.image.topics["orders"].topic_id
    part = FetchRequest.Partition(partition=0, fetch_offset=3)
    topics = (FetchRequest.Topic(topic_id=topic_id, partitions=(part,)),)
    answer = written.ask(FetchRequest(max_wait_ms=0, topics=topics), 18, leader(written.cluster))
    assert [b.base_offset for b in answer.responses[0].partitions[0].records] == [2, 4]


def test_invalid_delete_records_requests_have_an_error(written: Requester) -> None:
    cluster = written.cluster
    assert delete_up_to(written, 1, "none").error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert delete_up_to(written, 1, node=1 - leader(cluster)).error_code is Errors.NOT_LEADER_OR_FOLLOWER
    cluster.create_topic("latest", configs={"cleanup.policy": "compact"})
    assert delete_up_to(written, 0, "latest", leader(cluster, "latest")).error_code is Errors.POLICY_VIOLATION


# ---- DescribeProducers -----------------------------------------------------------------------------------------------


def test_active_producers_of_a_partition_are_described(requester: Requester) -> None:
    log = requester.cluster.log("orders", 0)
    produce(requester, START, START, producer_id=5, producer_epoch=1, base_sequence=0)
    open_transaction = encode_batch(
        [(b"k", b"v", (), START)], producer_id=7, producer_epoch=3, base_sequence=9, transactional=True
    )
    log.append(open_transaction, now_ms=START + 40, leader_epoch=0)
    request = DescribeProducersRequest(
        topics=(DescribeProducersRequest.Topic(name="orders", partition_indexes=(0, 8)),)
    )
    found, unknown = requester.ask(request, 0, leader(requester.cluster)).topics[0].partitions
    assert unknown.error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION
    producer = DescribeProducersResponse.Producer
    assert found.active_producers == (
        producer(producer_id=5, producer_epoch=1, last_sequence=1, last_timestamp=START),
        producer(
            producer_id=7, producer_epoch=3, last_sequence=9, last_timestamp=START + 40, current_txn_start_offset=2
        ),
    )
