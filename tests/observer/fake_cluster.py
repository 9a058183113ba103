"""A fake cluster of prepared responses to an observer: one group, its topics, and the log of its durable state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shareq.coordinator.share_state.records import StateRecord, encode_state_record
from shareq.log.batches import parse_batch, restamp
from shareq.log.records import encode_coordinator_records
from shareq.model.actor import Call
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey, TopicId, partition_for, topic_id_from_bytes
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.data import EARLIEST_TIMESTAMP, ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.fetch import FetchRequest, FetchResponse
from shareq.model.messages.share_group import (
    DescribedAssignment,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from shareq.model.messages.topics import DescribeConfigsRequest, DescribeConfigsResponse
from shareq.model.records import RecordBatch
from shareq.observer.cluster_poll import CONFIGS
from tests.client.fake import AnswerOf, Fake

GROUP, STATE_PARTITIONS = "g", 3
COORDINATOR, STATE_LEADER = 9, 5

Described = ShareGroupDescribeResponse.DescribedGroup


def member(name: str, *partitions: int, epoch: int = 1, topic: str = "t") -> ShareGroupDescribeResponse.Member:
    """A member that is subscribed to the topic and holds some of its partitions."""
    held = DescribedAssignment.TopicPartitions(topic_id=_id(topic), topic_name=topic, partitions=partitions)
    assignment = DescribedAssignment(topic_partitions=(held,) if partitions else ())
    return ShareGroupDescribeResponse.Member(
        member_id=f"id-{name}",
        rack_id=None,
        member_epoch=epoch,
        client_id=name,
        client_host="/127.0.0.1",
        subscribed_topic_names=(topic,),
        assignment=assignment,
    )


def _id(topic: str, version: bytes = b"") -> TopicId:
    """A topic's id; a topic created again has another `version`."""
    return topic_id_from_bytes((version + topic.encode()).ljust(16, b"x")[:16])


def _bound(answer: Callable[[int, Any], Any]) -> AnswerOf:
    return lambda _, node, request: answer(node, request)


class FakeCluster(Fake):
    """Tests change its fields between polls; `wrong` holds the error of each request type that fails."""

    def __init__(self, **topics: list[int]) -> None:
        super().__init__(**(topics or {"t": [1]}), **{SHARE_STATE_TOPIC: [STATE_LEADER] * STATE_PARTITIONS})
        self.ids = {name: _id(name) for name in self.topics}
        self.members: tuple[ShareGroupDescribeResponse.Member, ...] = ()
        self.group_epoch: int | None = 1
        self.configs = dict(zip(CONFIGS, ("30000", "5", "2000", "5000", "45000", ""), strict=True))
        self.starts: dict[tuple[str, int], int] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.state: dict[int, list[RecordBatch]] = {index: [] for index in range(STATE_PARTITIONS)}
        self.batches_per_fetch = 100
        self.wrong: dict[type[Request], Errors] = {}
        self.silent = False
        answers: dict[type[Request], Callable[[int, Any], Any]] = {
            MetadataRequest: self.metadata,
            ShareGroupDescribeRequest: self.describe,
            DescribeShareGroupOffsetsRequest: self.describe_offsets,
            DescribeConfigsRequest: self.describe_configs,
            ListOffsetsRequest: self.list_offsets,
            FetchRequest: self.fetch,
        }
        self.answers |= {kind: _bound(answer) for kind, answer in answers.items()}

    def _call(self, call: Call) -> None:
        if self.silent:
            self.reply(call.id, Errors.NETWORK_EXCEPTION)
        else:
            super()._call(call)

    # ---- its content -------------------------------------------------------------------------------------------------

    def key(self, partition: int = 0, topic: str = "t", group: str = GROUP) -> SharePartitionKey:
        return SharePartitionKey(group, self.ids[topic], partition)

    def state_partition(self, key: SharePartitionKey) -> int:
        """The partition of the state topic that holds the key."""
        return partition_for(str(key), STATE_PARTITIONS)

    def create_again(self, topic: str) -> None:
        """Replace a topic by another one of the same name."""
        self.ids[topic] = _id(topic, b"new")

    def write(self, *records: StateRecord) -> None:
        """Append records, a batch each, to the partitions of their keys."""
        for record in records:
            self.append(
                self.state_partition(record.key), encode_coordinator_records([encode_state_record(record)], 1000)
            )

    def append(self, partition: int, data: bytes) -> None:
        log = self.state[partition]
        log.append(parse_batch(restamp(data, log[-1].last_offset + 1 if log else self._start(partition), 0)))

    def prune(self, partition: int, offset: int) -> None:
        """Drop the batches below an offset."""
        self.starts[SHARE_STATE_TOPIC, partition] = offset
        self.state[partition] = [batch for batch in self.state[partition] if batch.base_offset >= offset]

    def _start(self, partition: int) -> int:
        return self.starts.get((SHARE_STATE_TOPIC, partition), 0)

    # ---- its responses -----------------------------------------------------------------------------------------------

    def metadata(self, node: int, request: MetadataRequest) -> Any:
        return self.wrong.get(MetadataRequest) or super().metadata(node, request)

    def describe(self, node: int, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
        assert (node, request.group_ids) == (COORDINATOR, (GROUP,))
        error = self.wrong.get(ShareGroupDescribeRequest, Errors.NONE)
        if self.group_epoch is None:
            error = Errors.GROUP_ID_NOT_FOUND
        group = Described(error_code=error, group_id=GROUP, group_epoch=self.group_epoch or 0, members=self.members)
        return ShareGroupDescribeResponse(groups=(group,))

    def describe_offsets(
        self, node: int, request: DescribeShareGroupOffsetsRequest
    ) -> DescribeShareGroupOffsetsResponse:
        """The offsets of all topics."""
        topics = tuple(
            DescribeShareGroupOffsetsResponse.Topic(topic_name=name, topic_id=self.ids[name], partitions=())
            for name in self.topics
            if name != SHARE_STATE_TOPIC
        )
        return DescribeShareGroupOffsetsResponse(
            groups=(DescribeShareGroupOffsetsResponse.Group(group_id=GROUP, topics=topics),)
        )

    def describe_configs(self, node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        configs = tuple(DescribeConfigsResponse.Config(name=name, value=value) for name, value in self.configs.items())
        error = self.wrong.get(DescribeConfigsRequest, Errors.NONE)
        result = DescribeConfigsResponse.Result(
            resource_type=32, resource_name=GROUP, configs=configs, error_code=error
        )
        return DescribeConfigsResponse(results=(result,))

    def list_offsets(self, node: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        def offset(name: str, requested: ListOffsetsRequest.Partition) -> int:
            assert self.topics[name][requested.partition_index] == node, "not the leader"
            offsets = self.starts if requested.timestamp == EARLIEST_TIMESTAMP else self.ends
            return offsets.get((name, requested.partition_index), 0)

        return ListOffsetsResponse(
            topics=tuple(
                ListOffsetsResponse.Topic(
                    name=topic.name,
                    partitions=tuple(
                        ListOffsetsResponse.Partition(partition_index=p.partition_index, offset=offset(topic.name, p))
                        for p in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def fetch(self, node: int, request: FetchRequest) -> FetchResponse:
        assert node == STATE_LEADER, "not the leader"
        (topic,) = request.topics
        assert topic.topic_id == self.ids[SHARE_STATE_TOPIC]
        answers = tuple(self._fetched(requested) for requested in topic.partitions)
        return FetchResponse(responses=(FetchResponse.Topic(topic_id=topic.topic_id, partitions=answers),))

    def _fetched(self, requested: FetchRequest.Partition) -> FetchResponse.Partition:
        log, error = self.state[requested.partition], self.wrong.get(FetchRequest, Errors.NONE)
        end = log[-1].last_offset + 1 if log else self._start(requested.partition)
        if not self._start(requested.partition) <= requested.fetch_offset <= end:
            error = Errors.OFFSET_OUT_OF_RANGE
        if error:
            return FetchResponse.Partition(partition_index=requested.partition, error_code=error)
        found = [batch for batch in log if batch.last_offset >= requested.fetch_offset]
        records = tuple(found[: self.batches_per_fetch])
        return FetchResponse.Partition(partition_index=requested.partition, high_watermark=end, records=records)


def fetched_partitions(requests: Iterable[FetchRequest]) -> set[int]:
    return {partition.partition for request in requests for topic in request.topics for partition in topic.partitions}
