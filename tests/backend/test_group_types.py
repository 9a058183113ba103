"""One id, one type of group: what the other side's answer means. BEHAVIOUR.md of the backend, 5.5."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.broker.backend.group_types import refusal_at_backend, refusal_here
from shareq.model.actor import Answer
from shareq.model.errors import Errors
from shareq.model.messages.base import Request
from shareq.model.messages.classic_group import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupRequest,
)
from shareq.model.messages.consumer_group import ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest
from shareq.model.messages.share_group import ShareGroupDescribeResponse, ShareGroupHeartbeatRequest

NONE, UNKNOWN, MOVED, LOADING = (
    Errors.NONE, Errors.GROUP_ID_NOT_FOUND, Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS
)  # fmt: skip
UNAVAILABLE = Errors.COORDINATOR_NOT_AVAILABLE
CLASSIC = JoinGroupRequest(
    group_id="g", session_timeout_ms=6000, rebalance_timeout_ms=6000, member_id="", protocol_type="consumer",
    protocols=(),
)  # fmt: skip
CONSUMER = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
SHARE = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
SILENT = Answer(0, None, Errors.NETWORK_EXCEPTION)
OLD = Answer(0, None, Errors.UNSUPPORTED_VERSION)


def classic(error: Errors, state: str = "Stable") -> Answer:
    group = DescribeGroupsResponse.DescribedGroup(
        error_code=error, group_id="g", group_state=state, protocol_type="", members=()
    )
    return Answer(0, DescribeGroupsResponse(groups=(group,)))


def consumer(error: Errors) -> Answer:
    group = ConsumerGroupDescribeResponse.DescribedGroup(error_code=error, group_id="g")
    return Answer(0, ConsumerGroupDescribeResponse(groups=(group,)))


def share(error: Errors) -> Answer:
    group = ShareGroupDescribeResponse.DescribedGroup(error_code=error, group_id="g")
    return Answer(0, ShareGroupDescribeResponse(groups=(group,)))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(share(UNKNOWN), NONE, id="no share group"),
        pytest.param(share(NONE), Errors.INCONSISTENT_GROUP_PROTOCOL, id="a share group"),
        pytest.param(share(MOVED), MOVED, id="the shard has moved"),
        pytest.param(share(LOADING), LOADING, id="the shard is loading"),
        pytest.param(SILENT, UNAVAILABLE, id="the process does not answer"),
    ],
)
@pytest.mark.parametrize("request_of", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
def test_a_member_of_another_type_asks_the_leader_of_the_shard(
    request_of: Request, answer: Answer, error: Errors
) -> None:
    """One that does not know yet makes the client ask again."""
    asked: list[Any] = []
    found: list[Any] = []

    def ask(group_id: str, request: Request, done: Any) -> None:
        asked.append(group_id)
        done(answer)

    refusal_at_backend(request_of, ask, found.append)
    expected = error
    if request_of is CONSUMER and error is Errors.INCONSISTENT_GROUP_PROTOCOL:
        expected = Errors.GROUP_ID_NOT_FOUND
    assert asked == ["g"]
    assert [NONE if one is None else one.error_code for one in found] == [expected]


@pytest.mark.parametrize(
    ("of_classic", "of_consumer", "error"),
    [
        pytest.param(classic(NONE, ""), consumer(UNKNOWN), NONE, id="no group"),
        pytest.param(classic(UNKNOWN), consumer(UNKNOWN), NONE, id="no group, as newer brokers say"),
        pytest.param(classic(NONE, "Empty"), consumer(UNKNOWN), NONE, id="an empty classic group"),
        pytest.param(classic(NONE, "Stable"), consumer(UNKNOWN), UNKNOWN, id="a classic group"),
        pytest.param(classic(NONE, "Dead"), consumer(NONE), UNKNOWN, id="a group of the consumer protocol"),
        pytest.param(classic(NONE, "Dead"), OLD, NONE, id="a broker without the consumer protocol"),
        pytest.param(classic(MOVED, ""), consumer(UNKNOWN), MOVED, id="the coordinator has moved"),
        pytest.param(classic(NONE, "Dead"), consumer(LOADING), LOADING, id="the coordinator is loading"),
        pytest.param(SILENT, SILENT, UNAVAILABLE, id="the backend does not answer"),
    ],
)
def test_a_member_of_a_share_group_asks_the_backend(of_classic: Answer, of_consumer: Answer, error: Errors) -> None:
    found: list[Any] = []

    def ask(request: Request, done: Any) -> None:
        done(of_classic if isinstance(request, DescribeGroupsRequest) else of_consumer)

    refusal_here(SHARE, ask, found.append)
    assert [NONE if one is None else one.error_code for one in found] == [error]
