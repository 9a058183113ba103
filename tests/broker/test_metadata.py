"""Responses about the cluster: Metadata, DescribeCluster, DescribeTopicPartitions, FindCoordinator, and requests of
admins.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.broker.metadata import CLUSTER_OPERATIONS, TOPIC_OPERATIONS
from shareq.log.records import encode_batch
from shareq.model.errors import Errors
from shareq.model.ids import (
    GROUP_METADATA_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    ZERO_TOPIC_ID,
    TopicId,
    topic_id_to_bytes,
)
from shareq.model.messages.cluster import (
    NOT_ASKED,
    CoordinatorType,
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.describe import (
    Cursor,
    DescribeClusterRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
)
from shareq.model.messages.topics import ResourceType
from tests.broker.requester import Requester

NOWHERE = TopicId("x" * 21 + "w")
Name = MetadataRequest.Topic


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=5) as made:
        made.create_topic("orders", 3, replication_factor=2)
        made.create_topic("a.b", 1, replication_factor=1)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def metadata(requester: Requester, *topics: MetadataRequest.Topic, **more: Any) -> MetadataResponse:
    answer = requester.ask(MetadataRequest(topics=topics, **more), 13)
    assert isinstance(answer, MetadataResponse)
    return answer


# ---- Metadata --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [10, 11])
def test_metadata_by_id_is_refused_before_version_12(cluster: Cluster, requester: Requester, version: int) -> None:
    existing = cluster.image.topics["orders"].topic_id
    for wrong in (Name(topic_id=existing), Name(topic_id=NOWHERE), Name(name=None)):
        answer = requester.ask(MetadataRequest(topics=(Name(name="a.b"), wrong)), version)
        found = [(topic.name, topic.error_code) for topic in answer.topics]
        assert found == [("a.b", Errors.INVALID_REQUEST), ("", Errors.INVALID_REQUEST)]


def test_null_topics_return_all_and_empty_topics_none(cluster: Cluster, requester: Requester) -> None:
    assert [t.name for t in requester.ask(MetadataRequest(topics=None), 13).topics] == ["orders", "a.b"]
    nothing = metadata(requester)
    assert (nothing.topics, [b.node_id for b in nothing.brokers]) == ((), [0, 1, 2])


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param([Name(name="orders")], [("orders", Errors.NONE)], id="2.3 by name"),
        pytest.param([Name(name="none")], [("none", Errors.UNKNOWN_TOPIC_OR_PARTITION)], id="2.3 unknown name"),
        pytest.param([Name(topic_id=NOWHERE)], [(None, Errors.UNKNOWN_TOPIC_ID)], id="2.3 unknown id"),
        pytest.param(
            [Name(topic_id=NOWHERE), Name(name="orders")],
            [(None, Errors.UNKNOWN_TOPIC_ID)],
            id="2.3 one id makes the whole request by id",
        ),
        pytest.param(
            [Name(name=""), Name(name=".."), Name(name="a b"), Name(name="x" * 250)],
            [(name, Errors.INVALID_TOPIC_EXCEPTION) for name in ("", "..", "a b", "x" * 250)],
            id="2.3 illegal names",
        ),
        pytest.param([Name(name="orders"), Name(name="orders")], [("orders", Errors.NONE)], id="one name twice"),
        pytest.param([Name(topic_id=NOWHERE)] * 2, [(None, Errors.UNKNOWN_TOPIC_ID)], id="one id twice"),
    ],
)
def test_metadata_finds_topics_by_name_and_by_id(
    cluster: Cluster,
    requester: Requester,
    requested: list[MetadataRequest.Topic],
    expected: list[tuple[str | None, Errors]],
) -> None:
    found = metadata(requester, *requested).topics
    assert [(topic.name, topic.error_code) for topic in found] == expected
    for topic in found:
        if topic.error_code:
            assert (topic.topic_id, topic.partitions) == (NOWHERE if topic.name is None else ZERO_TOPIC_ID, ())


def test_metadata_describes_leaders_replicas_and_isr(cluster: Cluster, requester: Requester) -> None:
    cluster.kill_broker(0)
    cluster.kill_broker(1)
    found = metadata(requester, Name(topic_id=cluster.image.topics["orders"].topic_id))
    partition = MetadataResponse.Partition
    assert found.topics[0].partitions == (
        partition(
            partition_index=0,
            leader_id=-1,
            leader_epoch=2,
            replica_nodes=(0, 1),
            offline_replicas=(0, 1),
            error_code=Errors.LEADER_NOT_AVAILABLE,
        ),
        partition(
            partition_index=1, leader_id=2, leader_epoch=1, replica_nodes=(1, 2), isr_nodes=(2,), offline_replicas=(1,)
        ),
        partition(
            partition_index=2, leader_id=2, leader_epoch=0, replica_nodes=(2, 0), isr_nodes=(2,), offline_replicas=(0,)
        ),
    )
    assert [b.node_id for b in found.brokers] == [2]


def test_the_controller_id_is_a_live_broker(cluster: Cluster, requester: Requester) -> None:
    assert metadata(requester).controller_id == 0
    cluster.kill_broker(0)
    assert metadata(requester).controller_id == 1


def test_a_cluster_id_is_a_uuid(cluster: Cluster, requester: Requester) -> None:
    found = metadata(requester).cluster_id
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", found)
    assert len(topic_id_to_bytes(found)) == 16


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param({}, (NOT_ASKED, NOT_ASKED), id="2.3 not requested"),
        pytest.param({"include_topic_authorized_operations": True}, (3576, NOT_ASKED), id="2.3 of topics"),
        pytest.param({"include_cluster_authorized_operations": True}, (NOT_ASKED, 8096), id="2.3 of the cluster"),
    ],
)
def test_authorized_operations_are_returned_on_request(
    requester: Requester, requested: dict[str, bool], expected: tuple[int, int]
) -> None:
    found = metadata(requester, Name(name="orders"), **requested)
    assert (found.topics[0].topic_authorized_operations, found.cluster_authorized_operations) == expected


@pytest.mark.parametrize(
    ("name", "allowed", "created"),
    [
        pytest.param("new", (True, True), {"new"}, id="2.3 broker and request allow it"),
        pytest.param("new", (True, False), set(), id="2.3 the request does not allow it"),
        pytest.param("new", (False, True), set(), id="2.3 the broker does not allow it"),
        pytest.param("a b", (True, True), set(), id="an illegal name"),
        pytest.param("a_b", (True, True), set(), id="a name that collides"),
        pytest.param(GROUP_METADATA_TOPIC, (True, True), {GROUP_METADATA_TOPIC}, id="an internal topic"),
    ],
)
def test_metadata_creates_missing_topics_where_allowed(
    cluster: Cluster, requester: Requester, name: str, allowed: tuple[bool, bool], created: set[str]
) -> None:
    """`allowed` is (auto.create.topics.enable, allow_auto_topic_creation)."""
    enabled, before = str(allowed[0]), set(cluster.image.topics)
    controller = cluster._runtime.controller
    cluster._control(lambda done: done(controller.alter_broker_configs({"auto.create.topics.enable": enabled})))
    first = metadata(requester, Name(name=name), allow_auto_topic_creation=allowed[1])
    assert first.topics[0].error_code is not Errors.NONE, "the first response still has an error"
    assert set(cluster.image.topics) - before == created
    if created:
        assert metadata(requester, Name(name=name)).topics[0].error_code is Errors.NONE
        assert len(cluster.image.topics[name].partitions) == (50 if name == GROUP_METADATA_TOPIC else 1)


def test_an_unknown_topic_id_creates_no_topic(cluster: Cluster, requester: Requester) -> None:
    before = cluster.image
    metadata(requester, Name(topic_id=NOWHERE), allow_auto_topic_creation=True)
    assert cluster.image is before


@pytest.mark.parametrize(("count", "created"), [(10, 10), (11, 0)], ids=["2.3 as many as may be", "2.3 one more"])
def test_metadata_creates_as_many_partitions_as_create_topics(
    cluster: Cluster, requester: Requester, count: int, created: int
) -> None:
    """Of a thousand partitions each."""
    controller, before = cluster._runtime.controller, cluster.image
    cluster._control(lambda done: done(controller.alter_broker_configs({"num.partitions": "1000"})))
    metadata(requester, *(Name(name=f"new{index}") for index in range(count)), allow_auto_topic_creation=True)
    assert len(cluster.image.topics) - len(before.topics) == created
    assert cluster.image.version - before.version == 1 + bool(created), "one image for all"


# ---- DescribeCluster -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fenced", "expected"),
    [
        pytest.param(False, [(1, False), (2, False)], id="live brokers"),
        pytest.param(True, [(0, True), (1, False), (2, False)], id="all"),
    ],
)
def test_describe_cluster_lists_brokers_and_fenced_ones_on_request(
    cluster: Cluster, requester: Requester, fenced: bool, expected: list[tuple[int, bool]]
) -> None:
    cluster.kill_broker(0)
    request = DescribeClusterRequest(include_fenced_brokers=fenced, include_cluster_authorized_operations=True)
    found = requester.ask(request, 2)
    assert (found.cluster_id, found.controller_id) == (cluster.image.cluster_id, 1)
    assert [(b.broker_id, b.is_fenced) for b in found.brokers] == expected
    assert found.cluster_authorized_operations == CLUSTER_OPERATIONS
    assert requester.ask(DescribeClusterRequest(), 2).cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        pytest.param(2, Errors.MISMATCHED_ENDPOINT_TYPE, id="controllers"),
        pytest.param(3, Errors.UNSUPPORTED_ENDPOINT_TYPE, id="unknown endpoint type"),
    ],
)
def test_describe_cluster_refuses_controllers(requester: Requester, endpoint_type: int, error: Errors) -> None:
    found = requester.ask(DescribeClusterRequest(endpoint_type=endpoint_type), 2)
    assert (found.error_code, found.brokers) == (error, ())


# ---- DescribeTopicPartitions -----------------------------------------------------------------------------------------


def pages(requester: Requester, limit: int, *names: str) -> list[list[tuple[str, list[int]]]]:
    """All pages of a description, each a list of (topic, partitions)."""
    found, cursor = [], None
    while True:
        topics = tuple(DescribeTopicPartitionsRequest.Topic(name=name) for name in names)
        request = DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit, cursor=cursor)
        page = requester.ask(request, 0)
        assert isinstance(page, DescribeTopicPartitionsResponse)
        found.append([(t.name or "", [p.partition_index for p in t.partitions]) for t in page.topics])
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(2000, [[("a.b", [0]), ("orders", [0, 1, 2])]], id="2.3 all on one page"),
        pytest.param(1, [[("a.b", [0])], [("orders", [0])], [("orders", [1])], [("orders", [2])]], id="2.3 one by one"),
        pytest.param(2, [[("a.b", [0]), ("orders", [0])], [("orders", [1, 2])]], id="2.3 a topic across pages"),
        pytest.param(
            0, [[("a.b", [0])], [("orders", [0])], [("orders", [1])], [("orders", [2])]], id="limit 0 counts as 1"
        ),
    ],
)
def test_partitions_are_returned_in_pages(requester: Requester, limit: int, expected: list[Any]) -> None:
    assert pages(requester, limit) == expected


def test_described_topics_are_sorted_by_name(requester: Requester) -> None:
    assert pages(requester, 2000, "orders", "none", "a.b") == [[("a.b", [0]), ("none", []), ("orders", [0, 1, 2])]]


def test_a_described_partition_has_all_fields(cluster: Cluster, requester: Requester) -> None:
    cluster.kill_broker(0)
    topics = tuple(DescribeTopicPartitionsRequest.Topic(name=name) for name in ("orders", "none", "a b"))
    illegal, unknown, existing = requester.ask(DescribeTopicPartitionsRequest(topics=topics), 0).topics
    assert (illegal.error_code, unknown.error_code) == (
        Errors.INVALID_TOPIC_EXCEPTION,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    )
    assert existing.topic_id == cluster.image.topics["orders"].topic_id
    assert existing.topic_authorized_operations == TOPIC_OPERATIONS
    assert existing.partitions[0] == DescribeTopicPartitionsResponse.Partition(
        partition_index=0, leader_id=1, leader_epoch=1, replica_nodes=(0, 1), isr_nodes=(1,), offline_replicas=(0,)
    )
    assert (existing.partitions[0].eligible_leader_replicas, existing.partitions[0].last_known_elr) == ((), ())


@pytest.mark.parametrize(
    ("cursor", "expected"),
    [
        pytest.param(Cursor(topic_name="orders", partition_index=2), [("orders", [2])], id="from a partition on"),
        pytest.param(Cursor(topic_name="b", partition_index=7), [("orders", [0, 1, 2])], id="a deleted topic"),
        pytest.param(Cursor(topic_name="orders", partition_index=9), [("orders", [])], id="a deleted partition"),
        pytest.param(
            Cursor(topic_name="orders", partition_index=-1), [("orders", [0, 1, 2])], id="a negative partition"
        ),
        pytest.param(Cursor(topic_name="z", partition_index=0), [], id="after the last topic"),
    ],
)
def test_a_cursor_sets_the_start_of_a_page(requester: Requester, cursor: Cursor, expected: list[Any]) -> None:
    found = requester.ask(DescribeTopicPartitionsRequest(cursor=cursor), 0)
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in found.topics] == expected


# ---- FindCoordinator -------------------------------------------------------------------------------------------------


@pytest.mark.without("control-records", "it needs no share coordinator")
@pytest.mark.parametrize(
    ("kind", "topic", "keys"),
    [
        pytest.param(CoordinatorType.GROUP, GROUP_METADATA_TOPIC, ("g", "h"), id="2.3 0 group"),
        pytest.param(CoordinatorType.TRANSACTION, TRANSACTION_STATE_TOPIC, ("t", "u"), id="2.3 1 transaction"),
        pytest.param(CoordinatorType.SHARE, SHARE_STATE_TOPIC, (f"g:{NOWHERE}:0", f"g:{NOWHERE}:1"), id="2.3 2 share"),
    ],
)
def test_find_coordinator_names_the_leader_of_its_partition(
    cluster: Cluster, requester: Requester, kind: int, topic: str, keys: tuple[str, str]
) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
    first = requester.ask(request, 6).coordinators
    assert [(c.error_code, c.node_id, c.port) for c in first] == [(Errors.COORDINATOR_NOT_AVAILABLE, -1, -1)] * 2
    second = requester.ask(request, 6).coordinators
    assert [c.key for c in second] == list(keys)
    for found in second:
        leader = cluster.image.coordinator(topic, found.key)
        assert leader is not None
        assert (found.error_code, found.node_id, found.host, found.port) == (
            Errors.NONE,
            leader.broker_id,
            leader.host,
            leader.port,
        )


def test_coordinator_without_a_live_broker_is_not_available(requester: Requester, cluster: Cluster) -> None:
    controller = cluster._runtime.controller
    cluster._control(lambda done: done(controller.create_topic(GROUP_METADATA_TOPIC, assigned=[(0,)])[0]))
    cluster.kill_broker(0)
    (found,) = requester.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6).coordinators
    assert found.error_code is Errors.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("kind", "version", "key"),
    [
        pytest.param(3, 6, "g", id="2.3 unknown type"),
        pytest.param(-1, 6, "g", id="2.3 negative type"),
        pytest.param(2, 5, f"g:{NOWHERE}:0", id="2.3 share before version 6"),
        pytest.param(2, 6, "nonsense", id="2.3 malformed share key"),
    ],
)
def test_invalid_coordinator_keys_are_refused(
    cluster: Cluster, requester: Requester, kind: int, version: int, key: str
) -> None:
    (found,) = requester.ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,)), version).coordinators
    assert (found.key, found.error_code, found.node_id) == (key, Errors.INVALID_REQUEST, -1)


# ---- requests of admins ----------------------------------------------------------------------------------------------


def test_no_reassignment_is_listed(requester: Requester) -> None:
    found = requester.ask(ListPartitionReassignmentsRequest(), 0)
    assert (found.error_code, found.topics) == (Errors.NONE, ())


@pytest.mark.parametrize(
    ("topics", "expected"),
    [
        pytest.param(None, {"orders": {0: 1, 2: 0}}, id="all replicas of the broker"),
        pytest.param({"orders": (0, 1, 7), "none": (0,)}, {"orders": {0: 1}}, id="requested replicas of the broker"),
    ],
)
def test_describe_log_dirs_sizes_replicas(
    cluster: Cluster,
    requester: Requester,
    topics: dict[str, tuple[int, ...]] | None,
    expected: dict[str, dict[int, int]],
) -> None:
    data = encode_batch([(None, b"v", (), cluster.now_ms)])
    part = ProduceRequest.Partition(index=0, records=data)
    topic_id = cluster.image.topics["orders"].topic_id
    requester.ask(ProduceRequest(topics=(ProduceRequest.Topic(topic_id=topic_id, partitions=(part,)),)), 13, 0)
    requested = None
    if topics is not None:
        requested = tuple(DescribeLogDirsRequest.Topic(topic=name, partitions=p) for name, p in topics.items())
    (found,) = requester.ask(DescribeLogDirsRequest(topics=requested), 5, 0).results
    sizes = {t.name: {p.partition_index: p.partition_size / len(data) for p in t.partitions} for t in found.topics}
    assert sizes == expected


def test_the_quorum_has_the_controller_as_its_only_voter(cluster: Cluster, requester: Requester) -> None:
    def requested(topic: str) -> Any:
        part = DescribeQuorumRequest.Partition(partition_index=0)
        request = DescribeQuorumRequest(topics=(DescribeQuorumRequest.Topic(topic_name=topic, partitions=(part,)),))
        return requester.ask(request, 2)

    answer = requested("__cluster_metadata")
    found = answer.topics[0].partitions[0]
    assert (found.leader_id, [v.replica_id for v in found.current_voters]) == (0, [0])
    assert [v.replica_id for v in found.observers] == [1, 2]
    assert found.high_watermark == found.current_voters[0].log_end_offset == cluster.image.version
    assert [node.node_id for node in answer.nodes] == [0]
    assert requested("orders").topics[0].partitions[0].error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        pytest.param((ResourceType.GROUP,), {(32, "g")}, id="groups with configurations"),
        pytest.param((ResourceType.TOPIC,), {(2, "orders"), (2, "a.b")}, id="topics"),
        pytest.param((ResourceType.CLIENT_METRICS,), set(), id="client metrics"),
        pytest.param(
            (), {(2, "orders"), (2, "a.b"), (32, "g"), *((t, str(b)) for t in (4, 8) for b in range(3))}, id="all"
        ),
    ],
)
def test_list_config_resources_lists_resources_by_type(
    cluster: Cluster, requester: Requester, types: tuple[int, ...], expected: set[tuple[int, str]]
) -> None:
    cluster.configure_group("g", {"share.delivery.count.limit": 4})
    cluster.configure_group("forgotten", {"share.delivery.count.limit": 4})
    cluster.configure_group("forgotten", {"share.delivery.count.limit": None})
    found = requester.ask(ListConfigResourcesRequest(resource_types=types), 1)
    assert {(r.resource_type, r.resource_name) for r in found.config_resources} == expected
    refused = requester.ask(ListConfigResourcesRequest(resource_types=(*types, 99)), 1)
    assert (refused.error_code, refused.config_resources) == (Errors.UNSUPPORTED_VERSION, ())
