"""Operations on topics and their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shareq.admin.broker_routing import BrokerRouting, PartitionKey, failure
from shareq.admin.core import Operation
from shareq.admin.results import (
    CreatedTopic,
    DeletedRecords,
    Done,
    OffsetInfo,
    PartitionDescription,
    Reassignment,
    Results,
    TopicDescription,
)
from shareq.client.topic_partition import TopicPartition
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.ids import illegal_topic_name
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from shareq.model.messages.describe import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListPartitionReassignmentsRequest,
)
from shareq.model.messages.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create; -1 means the broker's default. `replica_assignment`: the brokers of each partition's replicas,
    the preferred leader first; both counts must then be -1."""

    topic: str
    num_partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str | None] = field(default_factory=dict)
    replica_assignment: Sequence[Sequence[int]] = ()


def create_topics(
    routing: BrokerRouting, topics: Sequence[NewTopic], *, validate_only: bool
) -> Operation[Results[str, CreatedTopic]]:
    """Create topics, and wait until all brokers have them in their metadata, so that every client finds them."""
    request = CreateTopicsRequest(
        topics=tuple(
            CreateTopicsRequest.Topic(
                name=new.topic,
                num_partitions=new.num_partitions,
                replication_factor=new.replication_factor,
                assignments=tuple(
                    CreateTopicsRequest.Assignment(partition_index=index, broker_ids=tuple(brokers))
                    for index, brokers in enumerate(new.replica_assignment)
                ),
                configs=tuple(new.config.items()),
            )
            for new in topics
        ),
        validate_only=validate_only,
    )
    response = yield from routing.controller(request, lambda response: [t.error_code for t in response.topics])
    created = [topic.name for topic in response.topics if not topic.error_code]
    if created and not validate_only:
        yield from routing.wait_until_known(created)
    return Results(
        {
            topic.name: CreatedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                error=failure(topic.error_code, topic.error_message),
            )
            for topic in response.topics
        }
    )


def delete_topics(routing: BrokerRouting, names: Sequence[str]) -> Operation[Results[str, Done]]:
    response = yield from routing.controller(
        DeleteTopicsRequest(topics=tuple(DeleteTopicsRequest.Topic(name=name) for name in names)),
        lambda response: [t.error_code for t in response.responses],
    )
    return _done((topic.name, topic.error_code, topic.error_message) for topic in response.responses)


def create_partitions(
    routing: BrokerRouting,
    counts: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]],
    *,
    validate_only: bool,
) -> Operation[Results[str, Done]]:
    """`assignments`: the replicas of each new partition, for topics whose brokers are not to choose them."""
    topics = tuple(
        CreatePartitionsRequest.Topic(name=name, count=count, assignments=_assigned(assignments.get(name)))
        for name, count in counts.items()
    )
    response = yield from routing.controller(
        CreatePartitionsRequest(topics=topics, validate_only=validate_only),
        lambda response: [t.error_code for t in response.results],
    )
    return _done((topic.name, topic.error_code, topic.error_message) for topic in response.results)


def _assigned(
    replicas: Sequence[Sequence[int]] | None,
) -> tuple[CreatePartitionsRequest.Assignment, ...] | None:
    if replicas is None:
        return None
    return tuple(CreatePartitionsRequest.Assignment(broker_ids=tuple(brokers)) for brokers in replicas)


def _done(items: Any) -> Results[str, Done]:
    return Results({name: Done(name=name, error=failure(error, message)) for name, error, message in items})


def describe_topics(routing: BrokerRouting, names: Sequence[str] | None) -> Operation[Results[str, TopicDescription]]:
    """The named topics; None means all."""
    response = yield from routing.metadata(names)
    return Results({t.name: _description(t, _why_not_described(t)) for t in response.topics if t.name is not None})


def _description(
    topic: MetadataResponse.Topic | DescribeTopicPartitionsResponse.Topic, message: str | None = None
) -> TopicDescription:
    return TopicDescription(
        name=topic.name or "",
        topic_id=topic.topic_id,
        internal=topic.is_internal,
        partitions=tuple(map(_partition, topic.partitions)),
        error=failure(topic.error_code, message),
    )


def _partition(
    partition: MetadataResponse.Partition | DescribeTopicPartitionsResponse.Partition,
) -> PartitionDescription:
    described = PartitionDescription(
        partition=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=partition.replica_nodes,
        isr=partition.isr_nodes,
    )
    if isinstance(partition, MetadataResponse.Partition):
        return described
    return replace(described, elr=partition.eligible_leader_replicas, last_known_elr=partition.last_known_elr)


def _why_not_described(topic: MetadataResponse.Topic) -> str | None:
    """The error in words with the name of the topic, which the response has without a message."""
    if topic.error_code != Errors.UNKNOWN_TOPIC_OR_PARTITION:
        return illegal_topic_name(topic.name or "") if topic.error_code == Errors.INVALID_TOPIC_EXCEPTION else None
    return f"topic {topic.name!r} does not exist"


def describe_partitions(
    routing: BrokerRouting, names: Sequence[str], page_size: int
) -> Operation[Results[str, TopicDescription]]:
    """The named topics with the replicas that may become leaders, in pages of so many partitions."""
    found: dict[str, TopicDescription] = {}
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=tuple(DescribeTopicPartitionsRequest.Topic(name=name) for name in sorted(names)),
            response_partition_limit=page_size,
            cursor=cursor,
        )
        response = yield from routing.any_broker(request)
        for topic in response.topics:
            page = _description(topic)
            before = found.get(page.name)
            found[page.name] = page if before is None else replace(page, partitions=before.partitions + page.partitions)
        cursor = response.next_cursor
        if cursor is None:
            return Results({name: found[name] for name in names})


def list_reassignments(
    routing: BrokerRouting, partitions: Mapping[str, Sequence[int]] | None
) -> Operation[Results[TopicPartition, Reassignment]]:
    """The partitions whose replicas move, of those by topic; None means all."""
    wanted = None
    if partitions is not None:
        wanted = tuple(
            ListPartitionReassignmentsRequest.Topic(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in partitions.items()
        )
    response = yield from routing.controller(
        ListPartitionReassignmentsRequest(topics=wanted), lambda response: [response.error_code]
    )
    if response.error_code:
        raise KafkaException(KafkaError(response.error_code, response.error_message))
    return Results(
        {
            TopicPartition(topic.name, partition.partition_index): Reassignment(
                topic=topic.name,
                partition=partition.partition_index,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
            )
            for topic in response.topics
            for partition in topic.partitions
        }
    )


# ---- offsets of the log ----------------------------------------------------------------------------------------------


def list_offsets(
    routing: BrokerRouting, timestamps: Mapping[PartitionKey, int], isolation_level: int
) -> Operation[Results[TopicPartition, OffsetInfo]]:
    """The offset of each timestamp (or LATEST_TIMESTAMP, ...)."""

    def request(topics: dict[str, list[int]]) -> Request:
        return ListOffsetsRequest(
            isolation_level=isolation_level,
            topics=tuple(
                ListOffsetsRequest.Topic(
                    name=topic,
                    partitions=tuple(
                        ListOffsetsRequest.Partition(partition_index=index, timestamp=timestamps[topic, index])
                        for index in indexes
                    ),
                )
                for topic, indexes in topics.items()
            ),
        )

    def results_of(response: ListOffsetsResponse) -> list[tuple[PartitionKey, Errors, ListOffsetsResponse.Partition]]:
        return [((t.name, p.partition_index), p.error_code, p) for t in response.topics for p in t.partitions]

    done = yield from routing.by_leader(timestamps, request, results_of)
    return Results(
        {
            TopicPartition(topic, index): OffsetInfo(
                topic=topic,
                partition=index,
                offset=found.offset if found and found.offset >= 0 else None,
                timestamp=found.timestamp if found and found.timestamp >= 0 else None,
                leader_epoch=found.leader_epoch if found and found.leader_epoch >= 0 else None,
                error=error,
            )
            for (topic, index), (error, found) in sorted(done.items())
        }
    )


def delete_records(
    routing: BrokerRouting, offsets: Mapping[PartitionKey, int]
) -> Operation[Results[TopicPartition, DeletedRecords]]:
    def request(topics: dict[str, list[int]]) -> Request:
        return DeleteRecordsRequest(
            topics=tuple(
                DeleteRecordsRequest.Topic(
                    name=topic,
                    partitions=tuple(
                        DeleteRecordsRequest.Partition(partition_index=index, offset=offsets[topic, index])
                        for index in indexes
                    ),
                )
                for topic, indexes in topics.items()
            )
        )

    def results_of(
        response: DeleteRecordsResponse,
    ) -> list[tuple[PartitionKey, Errors, DeleteRecordsResponse.Partition]]:
        return [((t.name, p.partition_index), p.error_code, p) for t in response.topics for p in t.partitions]

    done = yield from routing.by_leader(offsets, request, results_of)
    return Results(
        {
            TopicPartition(topic, index): DeletedRecords(
                topic=topic, partition=index, low_watermark=found.low_watermark if found else None, error=error
            )
            for (topic, index), (error, found) in sorted(done.items())
        }
    )
