"""What a response says of topics that are refused, for requests of all forms."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.model.errors import Errors
from shareq.model.ids import ZERO_TOPIC_ID, TopicId
from shareq.model.messages.data import ProduceRequest, ProduceResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.messages.offsets import OffsetFetchRequest, OffsetFetchResponse
from shareq.model.messages.refused_topics import refused_topics
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from shareq.model.messages.topics import ElectLeadersRequest, ElectLeadersResponse

ID = TopicId("B" * 22)
ERROR = Errors.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("response", "topic", "expected"),
    [
        pytest.param(
            ProduceResponse,
            ProduceRequest.Topic(topic_id=ID, partitions=(ProduceRequest.Partition(index=3, records=b""),)),
            ProduceResponse.Topic(topic_id=ID, partitions=(ProduceResponse.Partition(index=3, error_code=ERROR),)),
            id="by id, structures",
        ),
        pytest.param(
            FetchResponse,
            FetchRequest.Topic(topic="t", partitions=(FetchRequest.Partition(partition=3, fetch_offset=9),)),
            FetchResponse.Topic(topic="t", partitions=(FetchResponse.Partition(partition_index=3, error_code=ERROR),)),
            id="the number has another name",
        ),
        pytest.param(
            OffsetFetchResponse,
            OffsetFetchRequest.Topic(name="t", partition_indexes=(3,)),
            OffsetFetchResponse.Topic(
                name="t", partitions=(OffsetFetchResponse.Partition(partition_index=3, error_code=ERROR),)
            ),
            id="numbers",
        ),
        pytest.param(
            DescribeShareGroupOffsetsResponse,
            DescribeShareGroupOffsetsRequest.Topic(topic_name="t", partitions=(3,)),
            DescribeShareGroupOffsetsResponse.Topic(
                topic_name="t",
                topic_id=ZERO_TOPIC_ID,
                partitions=(DescribeShareGroupOffsetsResponse.Partition(partition_index=3, error_code=ERROR),),
            ),
            id="the request has no id",
        ),
        pytest.param(
            ElectLeadersResponse,
            ElectLeadersRequest.TopicPartitions(topic="t", partitions=(3,)),
            ElectLeadersResponse.Topic(
                topic="t", partition_result=(ElectLeadersResponse.Partition(partition_id=3, error_code=ERROR),)
            ),
            id="the array has another name",
        ),
    ],
)
def test_each_partition_of_a_topic_is_refused(response: Any, topic: Any, expected: Any) -> None:
    assert refused_topics(response, [topic, topic], error_code=ERROR) == (expected, expected)
    assert refused_topics(response, [], error_code=ERROR) == ()
