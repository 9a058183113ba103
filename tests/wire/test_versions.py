"""The versions of the APIs that are offered: those of Apache Kafka 4.3 and 4.4."""

from __future__ import annotations

import pytest

from shareq import Cluster
from shareq.kafka import LocalKafka
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.data import ProduceRequest
from shareq.wire.apis import APIS
from shareq.wire.server import Server
from tests.wire.raw import Raw

KAFKA = {
    "Produce": (0, 13),  # versions 0 to 2 are refused
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "SaslHandshake": (0, 1),
    "ApiVersions": (0, 5),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "AddPartitionsToTxn": (0, 5),
    "AddOffsetsToTxn": (0, 4),
    "EndTxn": (0, 5),
    "TxnOffsetCommit": (0, 6),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 5),
    "SaslAuthenticate": (0, 2),
    "CreatePartitions": (0, 3),
    "DeleteGroups": (0, 3),
    "ElectLeaders": (0, 2),
    "IncrementalAlterConfigs": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "OffsetDelete": (0, 0),
    "DescribeClientQuotas": (0, 1),
    "AlterClientQuotas": (0, 1),
    "DescribeUserScramCredentials": (0, 0),
    "AlterUserScramCredentials": (0, 0),
    "DescribeQuorum": (0, 2),
    "UpdateFeatures": (0, 2),
    "DescribeCluster": (0, 2),
    "DescribeProducers": (0, 0),
    "DescribeTransactions": (0, 0),
    "ListTransactions": (0, 2),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
    "ShareGroupHeartbeat": (1, 1),
    "ShareGroupDescribe": (1, 1),
    "ShareFetch": (1, 2),
    "ShareAcknowledge": (1, 2),
    "InitializeShareGroupState": (0, 0),
    "ReadShareGroupState": (0, 0),
    "WriteShareGroupState": (0, 1),
    "DeleteShareGroupState": (0, 0),
    "ReadShareGroupStateSummary": (0, 1),
    "DescribeShareGroupOffsets": (0, 1),
    "AlterShareGroupOffsets": (0, 0),
    "DeleteShareGroupOffsets": (0, 0),
}
"""The ranges that Kafka 4.4 answers to ApiVersions."""

NAMES = {api.key: api.name for api in APIS}


def offered(port: int, version: int) -> dict[str, tuple[int, int]]:
    """The ranges of the APIs that shareq has, as the port answers them."""
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1.0")
    with Raw(port) as raw:
        answer = raw.ask(request, version)
    return {NAMES[key.api_key]: (key.min_version, key.max_version) for key in answer.api_keys if key.api_key in NAMES}


@pytest.mark.parametrize("version", range(6))
def test_the_offered_ranges_are_those_of_kafka(version: int) -> None:
    with Cluster() as cluster, Server(cluster) as server:
        assert offered(server.ports[0], version) == KAFKA


def test_the_ranges_are_those_of_the_running_kafka(kafka: LocalKafka) -> None:
    assert offered(int(kafka.bootstrap_servers.rpartition(":")[2]), 4) == KAFKA


@pytest.mark.kafka
@pytest.mark.long
def test_kafka_4_3_has_the_same_first_versions() -> None:
    with LocalKafka(version="4.3.1") as kafka:
        found = offered(int(kafka.bootstrap_servers.rpartition(":")[2]), 4)
    assert {name: low for name, (low, _) in found.items()} == {name: low for name, (low, _) in KAFKA.items()}
    assert all(high <= KAFKA[name][1] for name, (_, high) in found.items())


def test_the_ranges_before_a_backend_are_those_of_kafka(kafka: LocalKafka) -> None:
    with Cluster(backend=kafka.bootstrap_servers) as cluster, cluster.serve() as server:
        assert offered(int(server.bootstrap_servers.rpartition(":")[2]), 4) == KAFKA


@pytest.mark.parametrize(
    ("key", "version"),
    [
        pytest.param(ProduceRequest.API_KEY, 2, id="Produce 2, though it is offered"),
        pytest.param(1, 3, id="Fetch 3"),
        pytest.param(2, 0, id="ListOffsets 0"),
        pytest.param(8, 1, id="OffsetCommit 1"),
        pytest.param(9, 0, id="OffsetFetch 0"),
        pytest.param(19, 1, id="CreateTopics 1"),
    ],
)
@pytest.mark.parametrize("where", ["served", "kafka"])
def test_a_version_that_kafka_has_dropped_closes_the_connection(
    request: pytest.FixtureRequest, where: str, key: int, version: int
) -> None:
    broker = request.getfixturevalue(where)
    with Raw(int(broker.bootstrap_servers.rpartition(":")[2])) as raw:
        header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
        frame = header + bytes(32)
        raw.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        assert raw.closed_by_server()
