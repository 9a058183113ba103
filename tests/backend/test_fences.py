"""The epochs of a leader's requests to its persister. BEHAVIOUR.md of the backend, section 6.7."""

from __future__ import annotations

from typing import Any

import pytest

from shareq.broker.backend.fences import stamped
from shareq.model.ids import TopicId
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    ReadShareGroupStateRequest,
    WriteShareGroupStateRequest,
)

TOPIC = TopicId("B" * 22)


def read(leader_epoch: int) -> ReadShareGroupStateRequest:
    part = ReadShareGroupStateRequest.Partition(partition=1, leader_epoch=leader_epoch)
    topic = ReadShareGroupStateRequest.Topic(topic_id=TOPIC, partitions=(part,))
    return ReadShareGroupStateRequest(group_id="g", topics=(topic,))


def write(leader_epoch: int) -> WriteShareGroupStateRequest:
    part = WriteShareGroupStateRequest.Partition(
        partition=1, state_epoch=3, leader_epoch=leader_epoch, start_offset=9, delivery_complete_count=0
    )
    topic = WriteShareGroupStateRequest.Topic(topic_id=TOPIC, partitions=(part,))
    return WriteShareGroupStateRequest(group_id="g", topics=(topic,))


@pytest.mark.parametrize("make", [read, write])
def test_leader_epochs_grow_with_the_term(make: Any) -> None:
    assert stamped(make(4), 0) == make(4)
    assert stamped(make(4), 100) == make(104)


def test_other_requests_stay() -> None:
    part = DeleteShareGroupStateRequest.Partition(partition=1)
    topic = DeleteShareGroupStateRequest.Topic(topic_id=TOPIC, partitions=(part,))
    request = DeleteShareGroupStateRequest(group_id="g", topics=(topic,))
    assert stamped(request, 7) is request
