"""Checks of requests before they reach a share-partition, and the construction of responses. BEHAVIOUR.md, 70 to 77."""

from typing import Any

import pytest

from shareq.leader.share_requests import (
    AcknowledgeResult,
    FetchedPartition,
    acknowledge_response,
    acknowledge_result,
    acknowledgement_error,
    acknowledgements,
    error_response,
    fetch_response,
    request_error,
)
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.states import AcknowledgeType

NO_LIMITS = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}


def fetch(**changes: Any) -> ShareFetchRequest:
    return ShareFetchRequest(**{"group_id": "g", "member_id": "m", "share_session_epoch": 1, **changes})


def acknowledge(**changes: Any) -> ShareAcknowledgeRequest:
    return ShareAcknowledgeRequest(**{"group_id": "g", "member_id": "m", "share_session_epoch": 1, **changes})


@pytest.mark.parametrize(
    ("request_", "share_version", "error"),
    [
        pytest.param(fetch(), 1, Errors.NONE, id="fetch"),
        pytest.param(acknowledge(), 1, Errors.NONE, id="acknowledge"),
        pytest.param(fetch(), 0, Errors.UNSUPPORTED_VERSION, id="fetch: share groups disabled"),
        pytest.param(acknowledge(), 0, Errors.UNSUPPORTED_VERSION, id="acknowledge: share groups disabled"),
        pytest.param(fetch(group_id=None), 0, Errors.UNSUPPORTED_VERSION, id="disabled before the group id"),
        pytest.param(fetch(group_id=None), 1, Errors.INVALID_REQUEST, id="fetch: no group"),
        pytest.param(acknowledge(group_id=None), 1, Errors.INVALID_REQUEST, id="acknowledge: no group"),
        pytest.param(fetch(member_id=None), 1, Errors.INVALID_REQUEST, id="fetch: no member"),
        pytest.param(fetch(member_id=""), 1, Errors.INVALID_REQUEST, id="fetch: empty member"),
        pytest.param(acknowledge(member_id=""), 1, Errors.INVALID_REQUEST, id="acknowledge: empty member"),
        pytest.param(fetch(member_id="m" * 36), 1, Errors.NONE, id="member id of 36 characters"),
        pytest.param(fetch(member_id="m" * 37), 1, Errors.INVALID_REQUEST, id="member id of 37 characters"),
        pytest.param(fetch(is_renew_ack=True, **NO_LIMITS), 1, Errors.NONE, id="renew"),
        pytest.param(fetch(is_renew_ack=True, **NO_LIMITS, batch_size=9), 1, Errors.NONE, id="renew: any batch size"),
        *(
            pytest.param(
                fetch(is_renew_ack=True, **{**NO_LIMITS, field: 1}), 1, Errors.INVALID_REQUEST, id=f"renew: {field}"
            )
            for field in NO_LIMITS
        ),
        pytest.param(acknowledge(is_renew_ack=True), 1, Errors.NONE, id="acknowledge: renew"),
    ],
)
def test_errors_of_whole_requests(
    request_: ShareFetchRequest | ShareAcknowledgeRequest, share_version: int, error: Errors
) -> None:
    assert request_error(request_, share_version) is error


A, B, R, RENEW = (1,), (2,), (3,), (4,)


@pytest.mark.parametrize(
    ("batches", "renew", "error"),
    [
        pytest.param([], False, Errors.NONE, id="none"),
        pytest.param([(0, 9, A)], False, Errors.NONE, id="one type for all"),
        pytest.param([(0, 2, (1, 2, 3))], False, Errors.NONE, id="one type per offset"),
        pytest.param([(5, 5, (0,))], False, Errors.NONE, id="a gap"),
        pytest.param([(0, 4, A), (5, 9, B)], False, Errors.NONE, id="ascending"),
        pytest.param([(0, 5, A), (5, 9, B)], False, Errors.NONE, id="shared boundary"),
        pytest.param([(0, 5, A), (4, 9, B)], False, Errors.INVALID_REQUEST, id="overlapping"),
        pytest.param([(5, 9, A), (0, 4, B)], False, Errors.INVALID_REQUEST, id="descending"),
        pytest.param([(9, 5, A)], False, Errors.INVALID_REQUEST, id="first after last"),
        pytest.param([(0, 9, ())], False, Errors.INVALID_REQUEST, id="no types"),
        pytest.param([(0, 2, (1, 1))], False, Errors.INVALID_REQUEST, id="too few types"),
        pytest.param([(0, 2, (1, 1, 1, 1))], False, Errors.INVALID_REQUEST, id="too many types"),
        pytest.param([(0, 0, (-1,))], False, Errors.INVALID_REQUEST, id="type below 0"),
        pytest.param([(0, 1, (1, -1))], False, Errors.INVALID_REQUEST, id="one type of several below 0"),
        pytest.param([(0, 0, RENEW)], False, Errors.INVALID_REQUEST, id="renew without is_renew_ack"),
        pytest.param([(0, 1, (1, 4))], False, Errors.INVALID_REQUEST, id="renew among others"),
        pytest.param([(0, 0, RENEW)], True, Errors.NONE, id="renew with is_renew_ack"),
        pytest.param([(0, 0, (max(AcknowledgeType) + 1,))], True, Errors.INVALID_REQUEST, id="an unknown type"),
        pytest.param([(0, 4, A), (5, 9, ())], False, Errors.INVALID_REQUEST, id="an invalid batch after a valid one"),
    ],
)
def test_wire_check_of_acknowledgement_batches(
    batches: list[tuple[int, int, tuple[int, ...]]], renew: bool, error: Errors
) -> None:
    on_wire = [AcknowledgementBatch(first_offset=f, last_offset=e, acknowledge_types=t) for f, e, t in batches]
    assert acknowledgement_error(on_wire, is_renew_ack=renew) is error


T0, T1 = TopicId("0" * 22), TopicId("1" * 22)
BATCH = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=A)


def topic(topic_id: TopicId, *parts: tuple[int, tuple[AcknowledgementBatch, ...]]) -> ShareFetchRequest.Topic:
    return ShareFetchRequest.Topic(
        topic_id=topic_id,
        partitions=tuple(ShareFetchRequest.Partition(partition_index=i, acknowledgement_batches=b) for i, b in parts),
    )


def test_a_fetch_without_acknowledgements_has_no_results() -> None:
    assert acknowledgements(fetch(topics=(topic(T0, (0, ()), (1, ())),))) == {}


def test_a_fetch_with_acknowledgements_has_a_result_for_every_listed_partition() -> None:
    found = acknowledgements(fetch(topics=(topic(T0, (0, ()), (1, (BATCH,))), topic(T1, (0, ())))))
    at = TopicIdPartition
    assert found == {at(T0, 0): (), at(T0, 1): (BATCH,), at(T1, 0): ()}


def test_a_share_acknowledge_has_a_result_for_every_listed_partition() -> None:
    parts = (ShareAcknowledgeRequest.Partition(partition_index=3),)
    request = acknowledge(topics=(ShareAcknowledgeRequest.Topic(topic_id=T0, partitions=parts),))
    assert acknowledgements(request) == {TopicIdPartition(T0, 3): ()}


def test_the_last_entry_of_a_partition_listed_twice_counts() -> None:
    found = acknowledgements(fetch(topics=(topic(T0, (0, (BATCH,)), (0, (BATCH, BATCH))),)))
    assert found == {TopicIdPartition(T0, 0): (BATCH, BATCH)}


def image() -> ClusterImage:
    """Broker 1 leads partition 0, partition 1 has no leader, and a stopped broker leads partition 2."""
    parts = tuple(
        PartitionImage(leader=leader, leader_epoch=epoch, replicas=(0, 1), isr=(1,))
        for leader, epoch in ((1, 7), (-1, 8), (2, 9))
    )
    found = TopicImage(name="t", topic_id=T0, partitions=parts)
    return ClusterImage(
        brokers={
            1: BrokerImage(broker_id=1, host="b1", port=9093, rack="r"),
            2: BrokerImage(broker_id=2, host="b2", port=9094, alive=False),
        },
        topics={"t": found},
        topics_by_id={T0: found},
    )


@pytest.mark.parametrize(
    ("partition", "error", "hint", "endpoints"),
    [
        pytest.param(0, Errors.NONE, (0, 0), (), id="no error, no hint"),
        pytest.param(0, Errors.UNKNOWN_TOPIC_OR_PARTITION, (0, 0), (), id="another error, no hint"),
        pytest.param(0, Errors.NOT_LEADER_OR_FOLLOWER, (1, 7), (1,), id="not the leader"),
        pytest.param(0, Errors.FENCED_LEADER_EPOCH, (1, 7), (1,), id="fenced"),
        pytest.param(1, Errors.NOT_LEADER_OR_FOLLOWER, (-1, 8), (), id="no leader"),
        pytest.param(2, Errors.NOT_LEADER_OR_FOLLOWER, (2, 9), (), id="stopped leader"),
        pytest.param(5, Errors.NOT_LEADER_OR_FOLLOWER, (-1, -1), (), id="unknown partition"),
    ],
)
def test_leadership_errors_have_the_current_leader_and_its_address(
    partition: int, error: Errors, hint: tuple[int, int], endpoints: tuple[int, ...]
) -> None:
    at = TopicIdPartition(T0, partition)
    fetched = fetch_response(image(), 30000, {at: FetchedPartition(error)}, {})
    acked = acknowledge_response(image(), 30000, {at: AcknowledgeResult(error)})
    for response in (fetched, acked):
        assert response.responses[0].partitions[0].current_leader == LeaderIdAndEpoch(
            leader_id=hint[0], leader_epoch=hint[1]
        )
        assert tuple(e.node_id for e in response.node_endpoints) == endpoints
    if endpoints:
        assert acked.node_endpoints == (NodeEndpoint(node_id=1, host="b1", port=9093, rack="r"),)


def test_an_acknowledgement_error_of_a_fetch_has_no_current_leader() -> None:
    at = TopicIdPartition(T0, 0)
    response = fetch_response(
        image(), 30000, {at: FetchedPartition()}, {at: acknowledge_result(Errors.NOT_LEADER_OR_FOLLOWER)}
    )
    part = response.responses[0].partitions[0]
    assert (part.error_code, part.acknowledge_error_code) == (Errors.NONE, Errors.NOT_LEADER_OR_FOLLOWER)
    assert part.current_leader == LeaderIdAndEpoch()
    assert part.error_message is None
    assert part.acknowledge_error_message
    assert response.node_endpoints == ()


def test_a_fetch_response_joins_acknowledgements_and_records_by_topic() -> None:
    run = AcquiredRecords(first_offset=0, last_offset=4, delivery_count=1)
    fetched = {
        TopicIdPartition(T1, 2): FetchedPartition(Errors.NONE, (), (run,)),
        TopicIdPartition(T0, 0): FetchedPartition(),
        TopicIdPartition(T1, 0): FetchedPartition(),
    }
    acks = {
        TopicIdPartition(T0, 0): AcknowledgeResult(Errors.INVALID_REQUEST),
        TopicIdPartition(T0, 1): AcknowledgeResult(),
    }
    response = fetch_response(image(), 1234, fetched, acks)
    assert response.acquisition_lock_timeout_ms == 1234
    assert [(t.topic_id, [p.partition_index for p in t.partitions]) for t in response.responses] == [
        (T1, [2, 0]),
        (T0, [0, 1]),
    ]
    assert response.responses[0].partitions[0].acquired_records == (run,)
    assert response.responses[1].partitions[0].acknowledge_error_code is Errors.INVALID_REQUEST


def test_a_refused_request_has_only_the_top_level_error() -> None:
    assert error_response(fetch(), Errors.INVALID_REQUEST) == ShareFetchResponse(error_code=Errors.INVALID_REQUEST)
    expected = ShareAcknowledgeResponse(error_code=Errors.SHARE_SESSION_NOT_FOUND)
    assert error_response(acknowledge(), Errors.SHARE_SESSION_NOT_FOUND) == expected
