"""Slots, and which process leads which partition. BEHAVIOUR.md of the backend, sections 6.1 to 6.4."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from shareq.broker.backend.forwarding import View, to_backend, to_client
from shareq.broker.backend.identity import Identity
from shareq.broker.backend.nodes import Front
from shareq.broker.backend.processes import (
    NO_SLOT,
    NODES,
    Fleet,
    Process,
    backend_id,
    decode_fleet,
    decode_process,
    formed,
    node_id,
    owner,
)
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicId, partition_for
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.topics import DescribeConfigsRequest, DescribeConfigsResponse, ResourceType

HOME = {0: ("127.0.0.1", 9192)}
TOPIC = TopicId("B" * 22)


def served(name: str, slot: int = NO_SLOT, held: tuple[int, ...] | None = None) -> Process:
    return Process(name, slot, HOME, held)


# ---- slots -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "slots"),
    [
        pytest.param([served("a")], {"a": 0}, id="the first one"),
        pytest.param([served("b"), served("a")], {"a": 0, "b": 1}, id="two at once"),
        pytest.param([served("a", 2), served("b")], {"a": 2, "b": 0}, id="one keeps its slot, the next is lowest"),
        pytest.param([served("a", 0), served("c", 1), served("b")], {"a": 0, "c": 1, "b": 2}, id="none is free"),
        pytest.param([served("a", 1), served("b", 1)], {"a": 1, "b": 0}, id="two in one slot"),
    ],
)
def test_processes_keep_their_slots(members: list[Process], slots: dict[str, int]) -> None:
    fleet = formed(7, members)
    assert {process.id: process.slot for process in fleet.processes} == slots
    assert fleet.term == 7


def test_a_term_is_no_less_than_all_members_allow() -> None:
    """BEHAVIOUR.md, 6.7."""
    members = [served("a")._replace(least_term=9), served("b"), served("c")._replace(least_term=4)]
    assert formed(7, members).term == 9
    assert formed(12, members).term == 12


def test_a_fleet_and_its_processes_are_read_as_written() -> None:
    process = Process("a", 3, HOME, (0, 3), Identity("m", 1, "2"), "member-1", 8, {"OUTSIDE": HOME}, {"a": "1"})
    assert decode_process(process.encode()) == process
    fleet = Fleet(7, (Process("b", 0), process))
    assert decode_fleet(fleet.encode()) == fleet


# ---- leaders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [(0,), (0, 1), (0, 1, 2), (1, 4, 5, 9)])
def test_of_adjacent_partitions_each_worker_leads_one(workers: tuple[int, ...]) -> None:
    for name in ("orders", "payments"):
        for block in range(5):
            first = block * len(workers)
            assert Counter(owner(name, first + n, workers) for n in range(len(workers))) == Counter(workers)


def test_topics_of_one_partition_are_shared_too() -> None:
    counts = Counter(owner(f"topic-{n}", 0, (0, 1, 2)) for n in range(300))
    assert min(counts.values()) > 70


def test_a_topic_of_one_partition_moves_only_with_its_leader() -> None:
    for n in range(100):
        before = owner(f"topic-{n}", 0, (0, 1, 2))
        if before != 2:
            assert owner(f"topic-{n}", 0, (0, 1)) == before


@pytest.mark.parametrize(
    ("processes", "workers"),
    [
        pytest.param([served("a", 0), served("b", 1)], (0, 1), id="served"),
        pytest.param([Process("a", 0), served("b", 1)], (1,), id="one is not served"),
        pytest.param([Process("a", 0), Process("b", 1)], (0,), id="none is served"),
    ],
)
def test_workers_are_served(processes: list[Process], workers: tuple[int, ...]) -> None:
    assert Fleet(1, tuple(processes)).workers == workers


def test_a_partition_waits_until_its_former_leader_has_the_fleet() -> None:
    at = next(("orders", n) for n in range(9) if owner("orders", n, (0, 1)) == 1 != owner("orders", n, (0,)))
    first = Fleet(1, (served("a", 0, (0,)), served("b", 1)))
    assert (first.settled, first.leader(*at), first.owner(*at)) == (False, None, 1)
    second = Fleet(2, (served("a", 0, (0, 1)), served("b", 1, (0, 1))))
    assert (second.settled, second.leader(*at)) == (True, 1)


def test_a_partition_of_a_process_that_has_gone_waits_for_none() -> None:
    at = next(("orders", n) for n in range(9) if owner("orders", n, (0, 1)) == 1)
    assert Fleet(3, (served("a", 0, (0, 1)),)).leader(*at) == 0


# ---- nodes -----------------------------------------------------------------------------------------------------------


def view() -> View:
    """Two processes on a backend with the brokers 1 and 2."""
    nodes = [node_id(slot, broker) for slot in (0, 1) for broker in (1, 2)]
    brokers = {n: BrokerImage(broker_id=n, host=f"host-{n // NODES}", port=9000 + n % NODES) for n in nodes}
    parts = tuple(PartitionImage(leader=1, leader_epoch=0, replicas=(1,), isr=(1,)) for _ in range(4))
    topics = {GROUP_METADATA_TOPIC: TopicImage(name=GROUP_METADATA_TOPIC, topic_id=TOPIC, partitions=parts)}
    fleet = Fleet(1, (served("a", 0, (0, 1)), served("b", 1, (0, 1))))
    return View(ClusterImage(brokers=brokers, topics=topics), fleet, 1)


def test_metadata_show_the_nodes_of_all_processes() -> None:
    partitions = tuple(
        MetadataResponse.Partition(partition_index=n, leader_id=2, leader_epoch=5, replica_nodes=(2, 1), isr_nodes=(2,))
        for n in range(2)
    )
    response = MetadataResponse(
        brokers=tuple(MetadataResponse.Broker(node_id=n, host="kafka", port=9092) for n in (1, 2)),
        cluster_id="c",
        controller_id=2,
        topics=(MetadataResponse.Topic(name="orders", topic_id=TOPIC, partitions=partitions),),
    )
    shown = to_client(MetadataRequest(), response, view())
    assert isinstance(shown, MetadataResponse)
    assert [(one.node_id, one.host) for one in shown.brokers] == [
        (1, "host-0"),
        (2, "host-0"),
        (NODES + 1, "host-1"),
        (NODES + 2, "host-1"),
    ]
    assert shown.controller_id == NODES + 2
    for n, partition in enumerate(shown.topics[0].partitions):
        base = owner("orders", n, (0, 1)) * NODES
        assert (partition.leader_id, partition.leader_epoch) == (base + 2, 5)
        assert (partition.replica_nodes, partition.isr_nodes) == ((base + 2, base + 1), (base + 2,))
    assert {partition.leader_id for partition in shown.topics[0].partitions} == {2, NODES + 2}


def test_the_coordinator_of_a_group_is_in_the_process_with_its_shard() -> None:
    keys = tuple(f"group-{n}" for n in range(20))
    found = tuple(FindCoordinatorResponse.Coordinator(key=key, node_id=1, host="kafka", port=1) for key in keys)
    for kind in (CoordinatorType.GROUP, CoordinatorType.TRANSACTION):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
        shown = to_client(request, FindCoordinatorResponse(coordinators=found), view())
        assert isinstance(shown, FindCoordinatorResponse)
        slots = [one.node_id // NODES for one in shown.coordinators]
        shards = [owner(GROUP_METADATA_TOPIC, partition_for(key, 4), (0, 1)) for key in keys]
        assert slots == (shards if kind == CoordinatorType.GROUP else [1] * 20)
        assert {one.host for one in shown.coordinators} == {f"host-{slot}" for slot in slots}


def test_the_configurations_of_a_node_are_those_of_its_broker() -> None:
    node = node_id(3, 2)
    assert backend_id(node) == 2
    resource = DescribeConfigsRequest.Resource(resource_type=ResourceType.BROKER, resource_name=str(node))
    request = DescribeConfigsRequest(resources=(resource,))
    sent = to_backend(request, ClusterImage())
    assert isinstance(sent, DescribeConfigsRequest)
    assert sent.resources[0].resource_name == "2"
    result = DescribeConfigsResponse.Result(resource_type=ResourceType.BROKER, resource_name="2")
    shown = to_client(request, DescribeConfigsResponse(results=(result,)), view())
    assert isinstance(shown, DescribeConfigsResponse)
    assert shown.results[0].resource_name == str(node)


@pytest.mark.parametrize("slot", [0, 2])
def test_clients_know_a_broker_by_the_node_of_its_process(slot: int) -> None:
    mirror: Any = SimpleNamespace(slot=slot)
    network: Any = None
    front = Front(mirror, network, knows_secured_peers=True, gauges=dict)
    assert front.node_of(5) == node_id(slot, 5)
