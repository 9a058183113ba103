"""What Apache Kafka has had since 4.4: versions of requests, and epochs and start offsets of share groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from shareq import Admin, Errors, KafkaException, NewTopic
from shareq.kafka import LocalKafka
from shareq.model.ids import TopicId
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.cluster import (
    CoordinatorType,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    FindCoordinatorRequest,
)
from shareq.model.messages.offsets import OffsetCommitRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from shareq.model.messages.share_state import ReadShareGroupStateSummaryRequest
from shareq.model.messages.transactions import TxnOffsetCommitRequest
from shareq.wire.server import Server
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, configure, eventually
from tests.wire.named_nodes import assert_nodes_are_checked
from tests.wire.raw import Raw

UNKNOWN_ID = TopicId("A" * 21 + "g")
SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1")


@pytest.fixture
def raw(broker: Reachable) -> Iterator[Raw]:
    with Raw(int(broker.bootstrap_servers.rpartition(":")[2])) as connection:
        yield connection


@pytest.fixture
def admin(broker: Reachable) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": broker.bootstrap_servers}) as made:
        yield made


def find_coordinator(raw: Raw, key: str, kind: CoordinatorType) -> None:
    """Wait for the coordinator: the first request creates its topic."""
    request = FindCoordinatorRequest(coordinator_keys=(key,), key_type=kind)
    eventually(lambda: raw.ask(request).coordinators[0].error_code, Errors.NONE)


# ---- versions --------------------------------------------------------------------------------------------------------

NOT_OFFERED = {
    "delegation tokens": {38, 39, 40, 41},
    "files, replicas, the quorum of controllers": {34, 45, 64, 80, 81, 94},
    "between brokers": {27},
    "streams groups": {88, 89, 93},
}
"""Keys of Apache Kafka's APIs that shareq's brokers do not offer to clients."""


def offers(broker: Reachable) -> dict[int, tuple[int, int]]:
    """The versions of each API."""
    with Raw(int(broker.bootstrap_servers.rpartition(":")[2])) as connection:
        answer = connection.ask(SOFTWARE)
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


def test_the_versions_of_each_api_are_those_of_kafka(served: Server, kafka: LocalKafka) -> None:
    ours, theirs = offers(served), offers(kafka)
    assert theirs.keys() - ours.keys() == set().union(*NOT_OFFERED.values())
    assert ours == {key: theirs[key] for key in ours}


def test_example_32_a_client_that_expects_another_broker(raw: Raw, admin: Admin) -> None:
    cluster = admin.describe_cluster()
    node = cluster.nodes[0].id
    found = []
    for cluster_id, node_id in (
        (cluster.cluster_id, node), (None, -1), (cluster.cluster_id, -1), (None, node),
        (cluster.cluster_id, node + 1), ("another", node),
    ):  # fmt: skip
        answer = raw.ask(replace(SOFTWARE, cluster_id=cluster_id, node_id=node_id), 5)
        found.append((answer.error_code, bool(answer.api_keys)))
    refused, elsewhere = (Errors.INVALID_REQUEST, False), (Errors.REBOOTSTRAP_REQUIRED, False)
    assert found == [(Errors.NONE, True), (Errors.NONE, True), refused, refused, elsewhere, elsewhere]
    assert raw.ask(SOFTWARE, 5).error_code is Errors.NONE, "the connection stays open"


def test_a_client_of_ours_that_reaches_another_node_bootstraps_again(broker: Reachable) -> None:
    assert_nodes_are_checked(broker.bootstrap_servers)


def test_results_of_delete_groups_have_messages_since_version_3(raw: Raw, fresh: Callable[[str], str]) -> None:
    """A group that does not exist has none."""
    group = fresh("group")
    find_coordinator(raw, group, CoordinatorType.GROUP)
    expected = DeleteGroupsResponse.Result(group_id=group, error_code=Errors.GROUP_ID_NOT_FOUND)
    eventually(lambda: raw.ask(DeleteGroupsRequest(groups_names=(group,)), 3).results, (expected,))


def test_offsets_of_transactions_are_committed_by_topic_id(raw: Raw, admin: Admin, fresh: Callable[[str], str]) -> None:
    """The producer has no transaction; the error of an unknown id comes first."""
    topic = fresh("topic")
    admin.create_topics([NewTopic(topic, 1)]).check()
    topic_id = TopicId(admin.describe_topics([topic])[topic].topic_id)
    part = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
    request = TxnOffsetCommitRequest(
        transactional_id=fresh("transaction"),
        group_id=fresh("group"),
        producer_id=12345,
        producer_epoch=0,
        topics=tuple(OffsetCommitRequest.Topic(topic_id=one, partitions=(part,)) for one in (topic_id, UNKNOWN_ID)),
    )

    def errors() -> list[Errors]:
        answer = raw.ask(request, 6)
        found = {one.topic_id: one.partitions[0].error_code for one in answer.topics}
        return [found[topic_id], found[UNKNOWN_ID]]

    find_coordinator(raw, request.group_id, CoordinatorType.GROUP)
    find_coordinator(raw, request.transactional_id, CoordinatorType.TRANSACTION)
    eventually(errors, [Errors.INVALID_PRODUCER_ID_MAPPING, Errors.UNKNOWN_TOPIC_ID])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("errors.deadletterqueue.auto.create.topics.enable", "yes"),
        ("group.share.session.timeout.ms", "soon"),
        ("group.share.session.timeout.ms", "1"),
    ],
)
def test_a_bad_value_of_a_broker_is_an_invalid_request(admin: Admin, key: str, value: str) -> None:
    with pytest.raises(KafkaException) as raised:
        admin.incremental_alter_configs("broker", "", {key: value})
    assert raised.value.error == Errors.INVALID_REQUEST


# ---- epochs and start offsets of share groups ------------------------------------------------------------------------


class Member:
    """A member of a share group without a client: its heartbeats are those of the test."""

    def __init__(self, raw: Raw, admin: Admin, fresh: Callable[[str], str]) -> None:
        self.raw, self.admin = raw, admin
        self.topic, self.group = fresh("topic"), fresh("group")
        self.member_id, self.epoch = "member", 0
        admin.create_topics([NewTopic(self.topic, 1)]).check()
        self.topic_id = TopicId(admin.describe_topics([self.topic])[self.topic].topic_id)
        configure(admin, self.group, {"share.auto.offset.reset": "latest", "share.assignment.interval.ms": 0})
        find_coordinator(raw, self.group, CoordinatorType.GROUP)

    def heartbeat(self, epoch: int | None = None) -> tuple[int, tuple[int, ...] | None]:
        """The epoch of the member and its partitions, None: unchanged."""
        sent = self.epoch if epoch is None else epoch
        request = ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=sent,
            subscribed_topic_names=(self.topic,) if sent == 0 else None,
        )
        answer = self.raw.ask(request)
        assert not answer.error_code, answer
        self.epoch = answer.member_epoch
        if answer.assignment is None:
            return self.epoch, None
        return self.epoch, tuple(p for topic in answer.assignment.topic_partitions for p in topic.partitions)

    def changes(self, until: tuple[int, ...]) -> list[tuple[int, tuple[int, ...] | None]]:
        """Heartbeats until the member has these partitions; the answers of another epoch, or with partitions."""
        found: list[tuple[int, tuple[int, ...] | None]] = []
        deadline = time.monotonic() + PATIENCE_S
        before = self.epoch
        while not found or found[-1][1] != until:
            assert time.monotonic() < deadline, found
            answer = self.heartbeat()
            if answer[0] != before or answer[1] is not None:
                found.append(answer)
            before = answer[0]
        return found

    def state(self, *partitions: int) -> list[tuple[int, int, int]]:
        """State epoch, start offset and delivery complete count of share-partitions."""
        request = ReadShareGroupStateSummaryRequest
        parts = tuple(request.Partition(partition=partition) for partition in partitions)
        topic = request.Topic(topic_id=self.topic_id, partitions=parts)
        (found,) = self.raw.ask(request(group_id=self.group, topics=(topic,))).results
        return [(one.state_epoch, one.start_offset, one.delivery_complete_count) for one in found.partitions]

    def epochs(self) -> tuple[str, int, int]:
        (group,) = self.raw.ask(ShareGroupDescribeRequest(group_ids=(self.group,))).groups
        return group.group_state, group.group_epoch, group.assignment_epoch


@pytest.fixture
def member(raw: Raw, admin: Admin, fresh: Callable[[str], str]) -> Member:
    return Member(raw, admin, fresh)


def joined(member: Member) -> Member:
    """The member has the one partition, at epoch 3."""
    member.heartbeat()
    member.changes((0,))
    assert member.epoch == 3
    return member


def test_example_29_new_partitions_of_a_known_topic_start_at_0(member: Member) -> None:
    """Records that are produced before the group reads a new partition are delivered, also with the reset "latest"."""
    joined(member)
    member.admin.create_partitions({member.topic: 3})
    assert member.changes((0, 1, 2)) == [(4, None), (5, (0, 1, 2))]
    assert member.state(0, 1, 2) == [(2, -1, -1), (4, 0, 0), (4, 0, 0)]


def test_example_30_the_only_member_leaves_and_joins_again(member: Member) -> None:
    """It has its assignment at once."""
    joined(member)
    member.heartbeat(-1)
    assert member.heartbeat(0) == (5, (0,))
    assert member.epochs() == ("Stable", 5, 5)


def test_example_31_offsets_of_a_new_group_are_altered_twice(member: Member, request: pytest.FixtureRequest) -> None:
    """Apache Kafka raises the group epoch, which is the state epoch, only after 4.4: DIFFERENCES.md."""
    found = []
    for offset in (2, 3):
        part = AlterShareGroupOffsetsRequest.Partition(partition_index=0, start_offset=offset)
        topic = AlterShareGroupOffsetsRequest.Topic(topic_name=member.topic, partitions=(part,))
        altered = AlterShareGroupOffsetsRequest(group_id=member.group, topics=(topic,))
        eventually(partial(lambda asked: member.raw.ask(asked).error_code, altered), Errors.NONE)
        found.append((*member.epochs(), *member.state(0)))
    raised = (1, 1) if isinstance(request.getfixturevalue("broker"), LocalKafka) else (2, 3)
    assert found == [("Empty", raised[0], 1, (raised[0], 2, 0)), ("Empty", raised[1], 1, (raised[1], 3, 0))]


# ---- client quotas ---------------------------------------------------------------------------------------------------


def test_client_quotas_are_altered_and_described(admin: Admin, fresh: Callable[[str], str]) -> None:
    user = fresh("user")
    names = {"user": user, "client-id": None}
    wanted = {"producer_byte_rate": 1000.0, "request_percentage": 12.5}
    admin.alter_client_quotas(names, wanted)
    eventually(lambda: [dict(one.quotas) for one in admin.describe_client_quotas(names)], [wanted])
    assert admin.describe_client_quotas({"user": user}, strict=True) == []
    with pytest.raises(KafkaException, match="Unhandled client quota entity type: topic"):
        admin.alter_client_quotas({"topic": user}, wanted)
    admin.alter_client_quotas(names, dict.fromkeys(wanted))
    eventually(lambda: admin.describe_client_quotas(names), [])
