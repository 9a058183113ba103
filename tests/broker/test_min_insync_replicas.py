"""Coordinators whose log has too few replicas in sync: writes are committed only after a replica has returned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.coordinator.group_coordinator import GroupCoordinator
from shareq.coordinator.share_group.partitions import SharePartitions
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.errors import Errors
from shareq.model.ids import (
    SHARE_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    SharePartitionKey,
    partition_for,
)
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.model.messages.share_state import (
    InitializeShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
)
from tests.broker.requester import Requester
from tests.broker.test_transaction_verification import marker
from tests.broker.transactor import Transactor

pytestmark = pytest.mark.every_persister

WRITE_TIMEOUT_MS = 5000
GROUP = "g"


CONFIG = {
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""Each internal topic requires two replicas in sync."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2, seed=1, config=CONFIG) as made:
        made.create_topic("orders", configs={"min.insync.replicas": 1}, replication_factor=2)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def find(requester: Requester, kind: CoordinatorType, key: str) -> int:
    """Node of the coordinator, after its topic is created and loaded."""
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    while requester.ask(request, 6).coordinators[0].error_code:
        requester.cluster.advance(10)
    requester.cluster.advance(100)
    node = requester.ask(request, 6).coordinators[0].node_id
    assert isinstance(node, int)
    return node


def kill_the_other_broker(cluster: Cluster, node: int) -> int:
    """Kill the broker that is not `node`; returns its id."""
    cluster.kill_broker(1 - node)
    cluster.advance(10)
    return 1 - node


def set_min_insync_replicas(cluster: Cluster, topic: str, count: int) -> None:
    controller = cluster._runtime.controller
    cluster.loop.enter(lambda: controller.alter_topic_configs(topic, {"min.insync.replicas": str(count)}))


def response_and_delay(requester: Requester, request: Request, version: int, node: int) -> tuple[Any, int]:
    """The response to a request, and the milliseconds until it arrived."""
    sent_ms = requester.cluster.now_ms
    return requester.ask(request, version, node), requester.cluster.now_ms - sent_ms


# ---- the share coordinator -------------------------------------------------------------------------------------------


def initialize(cluster: Cluster) -> InitializeShareGroupStateRequest:
    kind = InitializeShareGroupStateRequest
    part = kind.Partition(partition=0, state_epoch=1, start_offset=7)
    topic = kind.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=(part,))
    return kind(group_id=GROUP, topics=(topic,))


def start_offset(requester: Requester, node: int) -> int:
    kind = ReadShareGroupStateSummaryRequest
    part = kind.Partition(partition=0, leader_epoch=-1)
    topic = kind.Topic(topic_id=requester.cluster.image.topics["orders"].topic_id, partitions=(part,))
    response = requester.ask(kind(group_id=GROUP, topics=(topic,)), 1, node)
    offset = response.results[0].partitions[0].start_offset
    assert isinstance(offset, int)
    return offset


@pytest.mark.without("control-records", "there is no state topic, whose replicas matter here")
def test_a_state_write_times_out_and_is_committed_when_the_replica_returns(
    cluster: Cluster, requester: Requester
) -> None:
    key = str(SharePartitionKey(GROUP, cluster.image.topics["orders"].topic_id, 0))
    node = find(requester, CoordinatorType.SHARE, key)
    lost = kill_the_other_broker(cluster, node)
    response, took_ms = response_and_delay(requester, initialize(cluster), 0, node)
    assert response.results[0].partitions[0].error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert took_ms == WRITE_TIMEOUT_MS
    assert cluster.log(SHARE_STATE_TOPIC, 0).log_end_offset == 0
    cluster.start_broker(lost)
    cluster.advance(10)
    assert cluster.log(SHARE_STATE_TOPIC, 0).log_end_offset == 1
    assert start_offset(requester, node) == 7


@pytest.mark.without("control-records", "there is no state topic, whose replicas matter here")
def test_a_state_write_continues_when_min_insync_replicas_is_lowered(cluster: Cluster, requester: Requester) -> None:
    key = str(SharePartitionKey(GROUP, cluster.image.topics["orders"].topic_id, 0))
    node = find(requester, CoordinatorType.SHARE, key)
    kill_the_other_broker(cluster, node)
    call_id = requester.send(initialize(cluster), 0, node)
    cluster.advance(1000)
    assert not requester.answered(call_id)
    set_min_insync_replicas(cluster, SHARE_STATE_TOPIC, 1)
    cluster.advance(10)
    assert requester.response(call_id).results[0].partitions[0].error_code is Errors.NONE


@pytest.mark.without("control-records", "there is no state topic, whose replicas matter here")
def test_a_stalled_write_fails_with_its_coordinator(cluster: Cluster, requester: Requester) -> None:
    key = str(SharePartitionKey(GROUP, cluster.image.topics["orders"].topic_id, 0))
    node = find(requester, CoordinatorType.SHARE, key)
    lost = kill_the_other_broker(cluster, node)
    requester.send(initialize(cluster), 0, node)
    cluster.advance(10)
    cluster.kill_broker(node)
    cluster.start_broker(lost)
    cluster.start_broker(node)
    cluster.advance(1000)
    assert cluster.log(SHARE_STATE_TOPIC, 0).log_end_offset == 0


# ---- the transaction coordinator -------------------------------------------------------------------------------------


def test_a_transaction_coordinator_refuses_without_waiting(cluster: Cluster) -> None:
    producer = Transactor(cluster)
    assert producer.begin() is Errors.NONE
    lost = kill_the_other_broker(cluster, producer.find("t", CoordinatorType.TRANSACTION))
    at = partition_for("t", len(cluster.image.topics[TRANSACTION_STATE_TOPIC].partitions))
    end = cluster.log(TRANSACTION_STATE_TOPIC, at).log_end_offset
    began_ms = cluster.now_ms
    assert producer.produce("v").error_code is Errors.NOT_ENOUGH_REPLICAS
    assert cluster.now_ms - began_ms < WRITE_TIMEOUT_MS
    assert cluster.log(TRANSACTION_STATE_TOPIC, at).log_end_offset == end
    cluster.start_broker(lost)
    assert producer.write("v") is Errors.NONE


def test_a_marker_waits_for_the_replicas_of_its_partition(cluster: Cluster, requester: Requester) -> None:
    find(requester, CoordinatorType.TRANSACTION, "t")
    set_min_insync_replicas(cluster, TRANSACTION_STATE_TOPIC, 1)
    set_min_insync_replicas(cluster, "orders", 2)
    producer = Transactor(cluster)
    assert producer.begin() is Errors.NONE
    assert producer.write("v") is Errors.NONE
    leader = cluster.image.topics["orders"].partitions[0].leader
    lost = kill_the_other_broker(cluster, leader)
    answer = requester.ask(marker(producer), 1, leader).markers[0].topics[0].partitions[0]
    assert answer.error_code is Errors.NOT_ENOUGH_REPLICAS
    assert producer.end() is Errors.NONE
    log = cluster.log("orders", 0)
    cluster.advance(60_000)
    assert log.last_stable_offset == 0
    cluster.start_broker(lost)
    cluster.advance(1000)
    assert log.last_stable_offset == log.log_end_offset == 2


# ---- the group coordinator -------------------------------------------------------------------------------------------


def heartbeat(member_id: str, *topics: str, epoch: int = 0) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, subscribed_topic_names=topics
    )


def share_partitions(cluster: Cluster, node: int) -> SharePartitions:
    """Share-partitions of the group, as the coordinator has them."""
    coordinator = cluster._brokers[node]._groups.actor
    assert isinstance(coordinator, GroupCoordinator)
    shard = coordinator._runtime.shard(0)
    group = shard.find(ShareGroup, GROUP) if shard else None
    assert group is not None
    return group.share_partitions or SharePartitions()


def test_a_topic_deleted_while_its_initialization_is_appended_is_removed(
    cluster: Cluster, requester: Requester
) -> None:
    node = find(requester, CoordinatorType.GROUP, GROUP)
    cluster.create_topic("bills", replication_factor=2)
    deleted_id, orders = cluster.image.topics["bills"].topic_id, cluster.image.topics["orders"].topic_id
    lost = kill_the_other_broker(cluster, node)
    requester.send(heartbeat("A", "bills", "orders"), 1, node)
    cluster.advance(10)
    Admin({"bootstrap.servers": cluster.bootstrap_servers}).delete_topics(["bills"])
    cluster.start_broker(lost)
    cluster.advance(100)
    assert deleted_id not in share_partitions(cluster, node).topics()
    cluster.advance(40_000)
    assert share_partitions(cluster, node) == SharePartitions(), "the persister has dropped the initialization"
    requester.ask(heartbeat("A", "orders", epoch=2), 1, node)
    cluster.advance(1000)
    assert share_partitions(cluster, node) == SharePartitions(initialized={orders: frozenset({0})})


@pytest.mark.without("control-records", "there is no state topic, whose replicas matter here")
@pytest.mark.parametrize("fails", [False, True], ids=["initialized", "not initialized"])
def test_an_initialization_completes_after_a_stalled_append(fails: bool) -> None:
    """The group record that ends an initialization waits for an append for longer than client timeouts, and is still
    written. Without it a later initialization would take the topic as initialized and start at 0.
    """
    config = {**CONFIG, "share.coordinator.state.topic.min.isr": 1}
    with Cluster(brokers=2, seed=1, config=config, latency_ms=20) as cluster:
        cluster.create_topic("orders", replication_factor=2)
        requester, topic_id = Requester(cluster), cluster.image.topics["orders"].topic_id
        node = find(requester, CoordinatorType.GROUP, GROUP)
        cluster.create_topic("another", replication_factor=2)  # leaders are assigned round-robin
        assert find(requester, CoordinatorType.SHARE, str(SharePartitionKey(GROUP, topic_id, 0))) == node
        if fails:
            cluster.fail_appends(SHARE_STATE_TOPIC, Errors.MESSAGE_TOO_LARGE)
        requester.send(heartbeat("A", "orders"), 1, node)
        cluster.advance(20)
        assert share_partitions(cluster, node).initializing == {topic_id: frozenset({0})}
        cluster.kill_broker(1 - node)
        requester.send(heartbeat("B", "orders"), 1, node)
        cluster.advance(20_000)
        cluster.start_broker(1 - node)
        cluster.advance(1000)
        done = {} if fails else {topic_id: frozenset({0})}
        assert share_partitions(cluster, node) == SharePartitions(initialized=done)
        requester.ask(heartbeat("A", "orders", epoch=2), 1, node)
        cluster.advance(1000)
        assert start_offset(requester, node) == -1
