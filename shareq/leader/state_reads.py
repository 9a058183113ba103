"""How the durable state of a share-partition is read: the request to the persister, and what its answer means."""

from __future__ import annotations

from shareq.model.actor import Answer
from shareq.model.configs import GroupConfig, parse_by_duration
from shareq.model.ids import SharePartitionKey
from shareq.model.messages.data import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from shareq.model.messages.share_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse

UNKNOWN_START_OFFSET = -1


def read_request(key: SharePartitionKey, leader_epoch: int) -> ReadShareGroupStateRequest:
    """The request of a leader for the state of one share-partition."""
    part = ReadShareGroupStateRequest.Partition(partition=key.partition, leader_epoch=leader_epoch)
    topic = ReadShareGroupStateRequest.Topic(topic_id=key.topic_id, partitions=(part,))
    return ReadShareGroupStateRequest(group_id=key.group_id, topics=(topic,))


def state_in(answer: Answer, key: SharePartitionKey) -> ReadShareGroupStateResponse.Partition | None:
    """The state in the persister's answer, or its error; None if the answer is not about just this share-partition."""
    response = answer.response
    if not isinstance(response, ReadShareGroupStateResponse):
        return None
    found = [(topic.topic_id, part) for topic in response.results for part in topic.partitions]
    if [(topic_id, part.partition) for topic_id, part in found] != [(key.topic_id, key.partition)]:
        return None
    return found[0][1]


def reset_timestamp(config: GroupConfig, now_ms: int) -> int:
    """`share.auto.offset.reset` as a timestamp for ListOffsets; latest is the high watermark, for read_committed
    too."""
    duration_ms = parse_by_duration(config.auto_offset_reset)
    if duration_ms is not None:
        return max(0, now_ms - duration_ms)
    return EARLIEST_TIMESTAMP if config.auto_offset_reset == "earliest" else LATEST_TIMESTAMP
