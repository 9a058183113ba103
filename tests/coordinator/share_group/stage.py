"""The test environment of a group coordinator: its log, the persister, partition leaders and the metadata image.

Records and responses are shown as short text, as in the tables of BEHAVIOUR.md.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from shareq.coordinator.group_coordinator import GroupCoordinator
from shareq.coordinator.share_group.records import (
    CurrentMemberAssignment,
    GroupRecord,
    MemberMetadata,
    Metadata,
    NamedTopicPartitions,
    StatePartitionMetadata,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TopicPartitions,
    decode,
)
from shareq.model.actor import (
    IN_PROCESS,
    Answer,
    Appended,
    AppendRecords,
    Call,
    ClientContext,
    Effect,
    Message,
    Persist,
    ReadRecords,
    RecordsRead,
)
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicId, partition_for, topic_id_from_bytes
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.base import Request, Response
from shareq.model.messages.data import ListOffsetsRequest, ListOffsetsResponse
from shareq.model.messages.share_group import (
    MemberAssignment,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from shareq.model.messages.share_state import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from shareq.model.records import CoordinatorRecord
from shareq.persister.combined_response import RESPONSES
from tests.coordinator.stage import CoordinatorStage

R = TypeVar("R", bound=Response)
GROUP = "g"
BROKER = 1
SHARDS = 3
PartitionError = Callable[[TopicId, int], Errors]


class Stage(CoordinatorStage):
    """A group coordinator. `persister`: the error for each share-partition. `persister_error`: the error of a whole
    call. While `persisting` or `appending` is False, the effects wait in `held` for `release`.
    """

    coordinator: GroupCoordinator

    def __init__(self, *, configs: Mapping[str, object] | None = None, traced: bool = True, **topics: int) -> None:
        self.rng = random.Random(1)
        self.appending = True
        self.persisting = True
        self.persister: PartitionError = lambda topic_id, partition: Errors.NONE
        self.persister_error = Errors.NONE
        self.summaries: dict[tuple[str, int], tuple[int, int]] = {}
        self.ends: dict[tuple[str, int], int] = {}
        self.calls: list[Call] = []
        self.persisted: list[Request] = []
        self.next_topic = 64
        self.traced = traced
        self._written: list[CoordinatorRecord] = []
        image = ClusterImage(
            version=1,
            brokers={i: BrokerImage(broker_id=i, host=f"b{i}", port=9092, rack=f"r{i}") for i in (1, 2)},
            broker_config=BrokerConfig(configs),
        )
        super().__init__(image, SHARDS, 1_000_000)
        self.logs = {partition: [] for partition in range(SHARDS)}
        self.create_topic(GROUP_METADATA_TOPIC, SHARDS)
        for name, count in topics.items():
            self.create_topic(name, count)
        self.elect()

    def new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(BROKER, random.Random(2), traced=self.traced)

    # ---- effects -----------------------------------------------------------------------------------------------------

    def perform(self, effect: Effect) -> Iterable[Message]:
        match effect:
            case AppendRecords() if not self.appending:
                self.held.append(effect)
            case ReadRecords(read_id, at, offset):
                stored = self.logs[at.partition]
                chunk = [(i, *stored[i]) for i in range(offset, min(offset + 4, len(stored)))]
                end = offset + len(chunk)
                yield RecordsRead(read_id, Errors.NONE, chunk, end, end == len(stored))
            case Persist() if not self.persisting:
                self.held.append(effect)
            case Persist():
                yield self._persist(effect)
            case Call():
                self.calls.append(effect)
                yield self._list_offsets(effect)
            case _:
                yield from super().perform(effect)

    def append(self, effect: AppendRecords, error: Errors) -> Appended:
        if not error:
            self._written.extend(effect.records)
        return super().append(effect, error)

    def _persist(self, effect: Persist) -> Answer:
        request = effect.request
        self.persisted.append(request)
        if self.persister_error:
            return Answer(effect.id, None, self.persister_error)
        if isinstance(request, ReadShareGroupStateSummaryRequest):
            return Answer(effect.id, self._summarize(request))
        assert isinstance(request, InitializeShareGroupStateRequest | DeleteShareGroupStateRequest)
        answer = RESPONSES[type(request)]
        topics = []
        for topic in request.topics:
            errors = {p.partition: self.persister(topic.topic_id, p.partition) for p in topic.partitions}
            partitions = tuple(answer.Partition(partition=p, error_code=error) for p, error in errors.items())
            topics.append(answer.Topic(topic_id=topic.topic_id, partitions=partitions))
        return Answer(effect.id, answer(results=tuple(topics)))

    def _summarize(self, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
        """`summaries`: (start offset, delivery complete count) by (topic, partition); leader epoch 7."""
        answer = ReadShareGroupStateSummaryResponse
        topics = []
        for topic in request.topics:
            name = self.image.topics_by_id[topic.topic_id].name if topic.topic_id in self.image.topics_by_id else ""
            partitions = []
            for p in topic.partitions:
                start, count = self.summaries.get((name, p.partition), (-1, -1))
                error = self.persister(topic.topic_id, p.partition)
                partitions.append(
                    answer.Partition(
                        partition=p.partition,
                        error_code=error,
                        leader_epoch=7,
                        start_offset=start,
                        delivery_complete_count=count,
                    )
                )
            topics.append(answer.Topic(topic_id=topic.topic_id, partitions=tuple(partitions)))
        return answer(results=tuple(topics))

    def _list_offsets(self, call: Call) -> Answer:
        request = call.request
        assert isinstance(request, ListOffsetsRequest)
        answer = ListOffsetsResponse
        topics = []
        for topic in request.topics:
            partitions = []
            for p in topic.partitions:
                end = self.ends.get((topic.name, p.partition_index))
                error = Errors.NONE if end is not None else Errors.NOT_LEADER_OR_FOLLOWER
                partitions.append(
                    answer.Partition(partition_index=p.partition_index, offset=end or 0, error_code=error)
                )
            topics.append(answer.Topic(name=topic.name, partitions=tuple(partitions)))
        return Answer(call.id, answer(topics=tuple(topics)))

    def release(self) -> None:
        """Perform the held effects in order, and all later ones at once."""
        self.appending = self.persisting = True
        while self.held:
            effect = self.held.pop(0)
            for answer in self.perform(effect):
                self.handle(answer)

    def release_next(self) -> None:
        """Perform the first held effect; effects that follow from it may be held again."""
        effect = self.held.pop(0)
        appending, persisting = self.appending, self.persisting
        self.appending = self.persisting = True
        answers = list(self.perform(effect))
        self.appending, self.persisting = appending, persisting
        for answer in answers:
            self.handle(answer)

    def hold(self) -> None:
        self.appending = self.persisting = False

    # ---- environment -------------------------------------------------------------------------------------------------

    def change_image(self, **changes: Any) -> None:
        self.change(replace(self.image, version=self.image.version + 1, _effective={}, **changes))

    def create_topic(self, name: str, count: int, leader: int = BROKER) -> TopicId:
        topic_id = topic_id_from_bytes(self.next_topic.to_bytes(16, "big"))
        self.next_topic += 4
        partitions = (PartitionImage(leader=leader, leader_epoch=0, replicas=(1, 2), isr=(1, 2)),) * count
        self._put_topic(TopicImage(name=name, topic_id=topic_id, partitions=partitions))
        return topic_id

    def grow_topic(self, name: str, count: int) -> None:
        topic = self.image.topics[name]
        self._put_topic(replace(topic, partitions=(topic.partitions[0],) * count))

    def _put_topic(self, topic: TopicImage) -> None:
        self.change_image(
            topics={**self.image.topics, topic.name: topic},
            topics_by_id={**self.image.topics_by_id, topic.topic_id: topic},
        )

    def delete_topic(self, name: str) -> None:
        gone = self.image.topics[name]
        self.change_image(
            topics={n: t for n, t in self.image.topics.items() if n != name},
            topics_by_id={i: t for i, t in self.image.topics_by_id.items() if i != gone.topic_id},
        )

    def configure(self, **values: object) -> None:
        """Broker configurations, with `_` for `.`."""
        changes = {key.replace("_", "."): value for key, value in values.items()}
        self.change_image(broker_config=self.image.broker_config.with_overrides(changes))

    def configure_group(self, **values: object) -> None:
        overrides = {key.replace("_", "."): str(value) for key, value in values.items()}
        self.change_image(group_configs={**self.image.group_configs, GROUP: overrides})

    def fail_over(self) -> None:
        """Start a new coordinator on the log. Held effects are lost."""
        self.resign()
        self.start()

    # ---- requests ----------------------------------------------------------------------------------------------------

    def answer(self, request_id: int, kind: type[R]) -> R:
        answer = self.answers[request_id]
        assert isinstance(answer, kind)
        return answer

    def ask(self, request: Request, kind: type[R], client: ClientContext = IN_PROCESS) -> R:
        return self.answer(self.send(request, client), kind)

    def heartbeat(
        self,
        member: str,
        epoch: int,
        topics: Iterable[str] | None = None,
        *,
        rack: str | None = None,
        client: ClientContext = IN_PROCESS,
        group: str = GROUP,
    ) -> str:
        """Send a heartbeat; returns the response as short text (see `short`)."""
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rack_id=rack,
            subscribed_topic_names=None if topics is None else tuple(topics),
        )
        self.heartbeat_answer = self.ask(request, ShareGroupHeartbeatResponse, client)
        return self.short(self.heartbeat_answer)

    def beat(self, member: str, epoch: int, topics: Iterable[str] | None = None) -> str:
        """Wait for the assignment interval, then send a heartbeat."""
        self.wait(1000)
        return self.heartbeat(member, epoch, topics)

    def describe(self, group: str = GROUP) -> ShareGroupDescribeResponse.DescribedGroup:
        request = ShareGroupDescribeRequest(group_ids=(group,))
        return self.ask(request, ShareGroupDescribeResponse).groups[0]

    # ---- short text --------------------------------------------------------------------------------------------------

    def short(self, response: ShareGroupHeartbeatResponse) -> str:
        """Epoch and assignment such as `3 {t1:0,1}`, `3 null`, or the name of the error."""
        if response.error_code:
            return response.error_code.name
        if response.assignment is None:
            return f"{response.member_epoch} null"
        return f"{response.member_epoch} {self._assignment(response.assignment.topic_partitions)}"

    def name(self, topic_id: TopicId) -> str:
        topic = self.image.topics_by_id.get(topic_id)
        return topic.name if topic else "?"

    def _assignment(
        self, topics: Iterable[TopicPartitions | MemberAssignment.TopicPartitions | NamedTopicPartitions]
    ) -> str:
        return "{" + " ".join(sorted(f"{self.name(t.topic_id)}:{_list(t.partitions)}" for t in topics)) + "}"

    def written(self) -> list[str]:
        """The records written since the last call, such as `R11(2)` or `R13T(A)`: type, content, T for a tombstone."""
        records, self._written = self._written, []
        return [self.show(decode(*record)) for record in records]

    def show(self, record: GroupRecord) -> str:
        kind = f"R{int(record.type)}"
        match record.value:
            case None:
                return f"{kind}T({record.name})" if record.name else f"{kind}T"
            case MemberMetadata(subscribed_topic_names=names):
                return f"{kind}({record.name} [{_list(names)}])"
            case Metadata(epoch=epoch) | TargetAssignmentMetadata(assignment_epoch=epoch):
                return f"{kind}({epoch})"
            case TargetAssignmentMember(topics):
                return f"{kind}({record.name} {self._assignment(topics)})"
            case CurrentMemberAssignment(epoch, previous, _, topics):
                return f"{kind}({record.name} {epoch}<{previous} {self._assignment(topics)})"
            case StatePartitionMetadata(initializing, initialized, deleting):
                lists = (initializing, "initializing"), (initialized, "initialized")
                parts = [f"{word} {self._assignment(topics)}" for topics, word in lists if topics]
                if deleting:
                    parts.append("deleting " + _list(self.name(topic.topic_id) for topic in deleting))
                return f"{kind}({', '.join(parts)})"

    def initialized(self) -> list[str]:
        """The Initialize requests since the last call: `t1:0@-1 t1:1@-1 epoch 2`."""
        sent = [r for r in self.persisted if isinstance(r, InitializeShareGroupStateRequest)]
        self.persisted.clear()
        return [
            " ".join(
                [f"{self.name(t.topic_id)}:{p.partition}@{p.start_offset}" for t in r.topics for p in t.partitions]
                + [f"epoch {r.topics[0].partitions[0].state_epoch}"]
            )
            for r in sent
        ]

    def shard_of(self, group: str = GROUP) -> int:
        return partition_for(group, SHARDS)


def _list(items: Iterable[object]) -> str:
    return ",".join(map(str, items))
