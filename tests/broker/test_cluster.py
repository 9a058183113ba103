"""The cluster as a whole: arguments, addresses, requests, brokers that stop and start, faults and retention."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any
from weakref import WeakValueDictionary

import pytest

from shareq import Admin, Producer, ShareConsumer, transports
from shareq.broker import Cluster
from shareq.broker.loop import VIRTUAL_ORIGIN_MS
from shareq.log.records import encode_batch
from shareq.model.errors import ConfigException, Errors, IllegalStateException, KafkaException
from shareq.model.events import BrokerStopped, FaultInjected, LeaderElected, LogStartMoved, RecordsAppended
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, TopicId
from shareq.model.messages.cluster import (
    CoordinatorType,
    FindCoordinatorRequest,
    MetadataRequest,
)
from shareq.model.messages.data import DeleteRecordsRequest, ListOffsetsRequest, ProduceRequest
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from shareq.model.messages.topics import (
    AlterOperation,
    ConfigSource,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from shareq.transports import transport_for
from tests.broker.probe import Probe


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(brokers=3, seed=7)
    made.create_topic("orders", 4)
    return made


@pytest.fixture
def probe(cluster: Cluster) -> Probe:
    return Probe(cluster)


def coordinator_of(probe: Probe, group_id: str) -> int:
    """Broker id of the group's coordinator; the first FindCoordinator request creates the topic."""
    for _ in range(2):
        found = probe.ask(FindCoordinatorRequest(coordinator_keys=(group_id,))).coordinators[0]
    assert found.error_code is Errors.NONE
    return int(found.node_id)


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"brokers": 0}, r"brokers=0: must be 1\.\.100", id="no brokers"),
        pytest.param({"brokers": 101}, r"brokers=101: must be 1\.\.100", id="too many brokers"),
        pytest.param({"brokers": "3"}, r"brokers='3': must be 1\.\.100", id="text for a number"),
        pytest.param({"brokers": True}, r"brokers=True", id="bool for a number"),
        pytest.param({"clock": "sundial"}, r"clock='sundial': must be", id="unknown clock"),
        pytest.param({"backend_config": {}}, r"backend_config: only a cluster on a backend", id="no backend"),
        pytest.param({"latency_ms": -1}, r"latency_ms=-1: must be 0\.\.60000", id="negative latency"),
        pytest.param({"config": {"no.such.key": 1}}, r"no\.such\.key=1: unknown", id="unknown key"),
        pytest.param({"config": {"num.partitions": 0}}, r"num\.partitions=0: must be >= 1", id="value out of range"),
        pytest.param({"racks": ["a", "b"]}, r"racks=\['a', 'b'\]: must be 3, one for each broker", id="too few racks"),
        pytest.param({"racks": "abc"}, r"racks='abc': must be 3", id="one text for three racks"),
        pytest.param({"racks": ["a", "", "c"]}, r"each a name or None", id="an empty rack"),
        pytest.param({"racks": [0, 1, 2]}, r"each a name or None", id="numbers for racks"),
        pytest.param(
            {"config": {"share.record.lock.duration.ms": 1000}},
            r"a configuration of a group, not of a broker: use cluster\.configure_group\(group_id, "
            r"\{'share\.record\.lock\.duration\.ms': 1000\}\); group\.share\.record\.lock\.duration\.ms is",
            id="a configuration of groups",
        ),
        pytest.param(
            {"config": {"share.auto.offset.reset": "earliest"}},
            r"use cluster\.configure_group\(group_id, \{'share\.auto\.offset\.reset': 'earliest'\}\)$",
            id="a configuration of groups without a default of brokers",
        ),
        pytest.param({"journal": 0}, r"capacity=0: must be >= 1", id="empty journal"),
    ],
)
def test_invalid_cluster_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigException, match=message):
        Cluster(**arguments)


def test_unknown_broker_ids_and_wrong_broker_states_are_refused(cluster: Cluster) -> None:
    with pytest.raises(ConfigException, match=r"broker_id=7: must be one of \[0, 1, 2\]"):
        cluster.kill_broker(7)
    with pytest.raises(IllegalStateException, match="broker 1 is running already"):
        cluster.start_broker(1)
    cluster.kill_broker(1)
    with pytest.raises(IllegalStateException, match="broker 1 is not running"):
        cluster.stop_broker(1)


def test_negative_advance_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ConfigException, match=r"ms=-1: must be >= 0"):
        cluster.advance(-1)
    with pytest.raises(ConfigException, match="ms='5 s': must be a number of milliseconds"):
        cluster.advance("5 s")  # type: ignore[arg-type]
    assert cluster.now_ms == VIRTUAL_ORIGIN_MS


def test_creating_an_existing_topic_is_refused(cluster: Cluster) -> None:
    with pytest.raises(KafkaException, match="'orders' already exists") as caught:
        cluster.create_topic("orders")
    assert caught.value.error.code() == Errors.TOPIC_ALREADY_EXISTS


def test_invalid_group_configurations_are_refused(cluster: Cluster) -> None:
    with pytest.raises(KafkaException, match=r"share\.record\.lock\.duration\.ms='5': must be >= 1000"):
        cluster.configure_group("g", {"share.record.lock.duration.ms": 5})


def test_a_closed_cluster_refuses_every_call(cluster: Cluster, probe: Probe) -> None:
    address = cluster.bootstrap_servers
    cluster.close()
    cluster.close()
    for call in (lambda: cluster.advance(1), lambda: cluster.kill_broker(0), lambda: cluster.create_topic("t")):
        with pytest.raises(IllegalStateException, match="is closed"):
            call()
    with pytest.raises(KafkaException, match="is closed"):
        probe.send(MetadataRequest())
    with pytest.raises(KafkaException, match=f"no cluster is running at {address}"):
        transport_for(address)


def test_a_cluster_on_a_virtual_clock_is_not_served(cluster: Cluster) -> None:
    with pytest.raises(IllegalStateException, match=r"clock='virtual': .* use Cluster\(clock='wall'\), or a factor"):
        cluster.serve()


def test_a_wall_clock_cannot_be_stepped() -> None:
    with Cluster(brokers=1, clock="wall") as cluster, pytest.raises(IllegalStateException, match="runs by itself"):
        cluster.step()


class ClientHolder:
    """An object of an application that holds a client but is not one."""

    def __init__(self, client: ShareConsumer) -> None:
        self.inner = client.connection


def test_only_open_clients_of_the_cluster_can_crash(cluster: Cluster) -> None:
    conf = {"bootstrap.servers": cluster.bootstrap_servers}
    with Cluster(brokers=1) as other, ShareConsumer({**conf, "group.id": "g"}) as client, Producer(conf) as closed:
        closed.close()
        other_client = Producer({"bootstrap.servers": other.bootstrap_servers})
        for wrong in ("no client", ClientHolder(client), closed, other_client):
            with pytest.raises(IllegalStateException, match="is not an open client of inproc://"):
                cluster.crash(wrong)  # type: ignore[arg-type]    # an application can pass any object
        cluster.crash(client)
        with pytest.raises(IllegalStateException, match="is not an open client of"):
            cluster.crash(client)


@pytest.mark.parametrize("kind", [ShareConsumer, Producer, Admin])
def test_every_kind_of_client_can_crash(cluster: Cluster, kind: type[ShareConsumer | Producer | Admin]) -> None:
    conf = {"bootstrap.servers": cluster.bootstrap_servers} | ({"group.id": "g"} if kind is ShareConsumer else {})
    client = kind(conf)
    cluster.crash(client)
    assert [entry.event for entry in cluster.journal.select(FaultInjected)]
    with pytest.raises(KafkaException, match="has lost its connection"):
        client.connection.run(lambda now_ms: ())


def test_a_closed_client_is_freed(cluster: Cluster) -> None:
    freed = []
    for _ in range(3):
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("orders", b"a")
        producer.flush()
        freed.append(weakref.ref(producer.connection))
        producer.close()
        del producer
    cluster.advance(60_000)
    gc.collect()
    assert [ref() for ref in freed] == [None] * 3


# ---- addresses -------------------------------------------------------------------------------------------------------


def test_equal_seeds_give_equal_clusters_with_different_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "_local", WeakValueDictionary())  # the names of other tests' clusters
    one, two = Cluster(seed=3), Cluster(seed=3)
    assert one.image.cluster_id == two.image.cluster_id
    assert two.bootstrap_servers == one.bootstrap_servers + "-2"
    one.close()
    assert Cluster(seed=3).bootstrap_servers == one.bootstrap_servers


def test_an_unreferenced_cluster_is_freed() -> None:
    address = Cluster(seed=4).bootstrap_servers
    gc.collect()
    with pytest.raises(KafkaException, match="no cluster is running"):
        transport_for(address)


# ---- requests --------------------------------------------------------------------------------------------------------


def test_metadata_of_topics_by_name_by_id_and_of_all(cluster: Cluster, probe: Probe) -> None:
    topic_id = cluster.image.topics["orders"].topic_id
    by_name = probe.ask(MetadataRequest(topics=(MetadataRequest.Topic(name="orders"),)))
    by_id = probe.ask(MetadataRequest(topics=(MetadataRequest.Topic(topic_id=topic_id),)))
    assert by_name.topics == by_id.topics == probe.ask(MetadataRequest()).topics
    assert [b.node_id for b in by_name.brokers] == [0, 1, 2]
    assert [p.leader_id for p in by_name.topics[0].partitions] == [0, 1, 2, 0]
    for other_client, error in (
        (MetadataRequest.Topic(name="none"), Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (MetadataRequest.Topic(topic_id=TopicId("x" * 22)), Errors.UNKNOWN_TOPIC_ID),
    ):
        assert [t.error_code for t in probe.ask(MetadataRequest(topics=(other_client,))).topics] == [error]


def test_brokers_keep_their_racks_after_a_restart() -> None:
    cluster = Cluster(brokers=3, racks=["east", None, "west"])
    cluster.kill_broker(2)
    cluster.start_broker(2)
    shown = Probe(cluster).ask(MetadataRequest()).brokers
    assert [(broker.node_id, broker.rack) for broker in shown] == [(0, "east"), (1, None), (2, "west")]


@pytest.mark.without("control-records", "it needs no share coordinator, and creates no topic")
def test_finding_a_coordinator_creates_its_topic(cluster: Cluster, probe: Probe) -> None:
    first = probe.ask(FindCoordinatorRequest(coordinator_keys=("g",))).coordinators[0]
    assert first.error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert GROUP_METADATA_TOPIC in cluster.image.topics
    assert coordinator_of(probe, "g") in (0, 1, 2)
    key = f"g:{cluster.image.topics['orders'].topic_id}:0"
    request = FindCoordinatorRequest(key_type=CoordinatorType.SHARE, coordinator_keys=(key, "nonsense"))
    probe.ask(request)
    assert SHARE_STATE_TOPIC in cluster.image.topics
    assert [c.error_code for c in probe.ask(request).coordinators] == [Errors.NONE, Errors.INVALID_REQUEST]
    transactions = FindCoordinatorRequest(key_type=CoordinatorType.TRANSACTION, coordinator_keys=("t",))
    probe.ask(transactions)
    assert TRANSACTION_STATE_TOPIC in cluster.image.topics
    assert probe.ask(transactions).coordinators[0].error_code is Errors.NONE
    unknown_type = FindCoordinatorRequest(key_type=3, coordinator_keys=("t",))
    assert probe.ask(unknown_type).coordinators[0].error_code is Errors.INVALID_REQUEST


def test_producing_goes_to_the_leader_only(cluster: Cluster, probe: Probe) -> None:
    assert probe.produce("orders", "a", "b").base_offset == 0
    assert probe.produce("orders", "c").base_offset == 2
    assert cluster.journal[-1].event == RecordsAppended("orders", 0, 2, 3)
    image = cluster.image.topics["orders"]
    part = ProduceRequest.Partition(index=0, records=encode_batch([(None, b"d", (), cluster.now_ms)]))
    topics = (ProduceRequest.Topic(topic_id=image.topic_id, partitions=(part,)),)
    wrong = probe.ask(ProduceRequest(topics=topics), node=1).responses[0].partitions[0]
    assert wrong.error_code is Errors.NOT_LEADER_OR_FOLLOWER
    acks = probe.ask(ProduceRequest(topics=topics, acks=2), node=0).responses[0].partitions[0]
    assert acks.error_code is Errors.INVALID_REQUIRED_ACKS
    nowhere = (ProduceRequest.Topic(topic_id=TopicId("x" * 22), partitions=(part,)),)
    unknown = probe.ask(ProduceRequest(topics=nowhere), node=0).responses[0].partitions[0]
    assert unknown.error_code is Errors.UNKNOWN_TOPIC_ID
    assert cluster.log("orders", 0).log_end_offset == 3


def test_produce_to_an_internal_topic_is_refused(cluster: Cluster, probe: Probe) -> None:
    coordinator_of(probe, "g")
    assert probe.produce(GROUP_METADATA_TOPIC, "x").error_code is Errors.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("timestamp", "epoch", "expected"),
    [
        pytest.param(-1, -1, (Errors.NONE, 3), id="latest"),
        pytest.param(-2, -1, (Errors.NONE, 1), id="earliest"),
        pytest.param(VIRTUAL_ORIGIN_MS + 1, -1, (Errors.NONE, 2), id="by time"),
        pytest.param(VIRTUAL_ORIGIN_MS + 9999, -1, (Errors.NONE, -1), id="later than every record"),
        pytest.param(-1, 0, (Errors.NONE, 3), id="current epoch"),
        pytest.param(-1, 1, (Errors.UNKNOWN_LEADER_EPOCH, -1), id="epoch above the current one"),
    ],
)
def test_list_offsets(cluster: Cluster, probe: Probe, timestamp: int, epoch: int, expected: tuple[Errors, int]) -> None:
    probe.produce("orders", "a", "b")
    cluster.advance(10)
    probe.produce("orders", "c")
    delete = DeleteRecordsRequest.Partition(partition_index=0, offset=1)
    deleted = probe.ask(DeleteRecordsRequest(topics=(DeleteRecordsRequest.Topic(name="orders", partitions=(delete,)),)))
    assert deleted.topics[0].partitions[0].low_watermark == 1
    assert cluster.journal[-1].event == LogStartMoved("orders", 0, 1)
    part = ListOffsetsRequest.Partition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = ListOffsetsRequest(topics=(ListOffsetsRequest.Topic(name="orders", partitions=(part,)),))
    found = probe.ask(request).topics[0].partitions[0]
    assert (found.error_code, found.offset) == expected


def test_configurations_are_altered_and_described_by_request(cluster: Cluster, probe: Probe) -> None:
    def alter(kind: ResourceType, name: str, key: str, operation: AlterOperation, value: str | None) -> Errors:
        config = IncrementalAlterConfigsRequest.Config(name=key, config_operation=operation, value=value)
        resource = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=(config,))
        error = probe.ask(IncrementalAlterConfigsRequest(resources=(resource,))).responses[0].error_code
        assert isinstance(error, Errors)
        return error

    def describe(kind: ResourceType, name: str, key: str) -> tuple[str | None, int]:
        resource = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=(key,))
        config = probe.ask(DescribeConfigsRequest(resources=(resource,))).results[0].configs[0]
        return config.value, config.config_source

    key, broker_key = "share.record.lock.duration.ms", "group.share.record.lock.duration.ms"
    assert describe(ResourceType.GROUP, "g", key) == ("30000", ConfigSource.DEFAULT)
    assert alter(ResourceType.BROKER, "", broker_key, AlterOperation.SET, "20000") is Errors.NONE
    assert describe(ResourceType.GROUP, "g", key) == ("20000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert alter(ResourceType.GROUP, "g", key, AlterOperation.SET, "45000") is Errors.NONE
    assert describe(ResourceType.GROUP, "g", key) == ("45000", ConfigSource.GROUP)
    assert alter(ResourceType.GROUP, "g", key, AlterOperation.DELETE, None) is Errors.NONE
    assert describe(ResourceType.GROUP, "g", key) == ("20000", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert alter(ResourceType.GROUP, "g", key, AlterOperation.APPEND, "1") is Errors.INVALID_CONFIG
    assert alter(ResourceType.GROUP, "g", key, AlterOperation.SET, None) is Errors.INVALID_REQUEST
    assert alter(ResourceType.TOPIC, "orders", "retention.ms", AlterOperation.SET, "1000") is Errors.NONE
    assert describe(ResourceType.TOPIC, "orders", "retention.ms") == ("1000", ConfigSource.TOPIC)
    assert alter(ResourceType.TOPIC, "none", "retention.ms", AlterOperation.SET, "1") is (
        Errors.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_topics_are_created_and_deleted_by_request(cluster: Cluster, probe: Probe) -> None:
    topics = (CreateTopicsRequest.Topic(name="new", num_partitions=2), CreateTopicsRequest.Topic(name="orders"))
    made, refused = probe.ask(CreateTopicsRequest(topics=topics)).topics
    assert (made.error_code, made.num_partitions, made.replication_factor) == (Errors.NONE, 2, 3)
    assert refused.error_code is Errors.TOPIC_ALREADY_EXISTS
    gone = DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(topic_id=made.topic_id),))
    errors = [probe.ask(gone).responses[0].error_code for _ in range(2)]
    assert errors == [Errors.NONE, Errors.UNKNOWN_TOPIC_ID]


@pytest.mark.without("compacted-topic", "the text names a persister that is not the default")
@pytest.mark.without("control-records", "the text names a persister that is not the default")
def test_repr_and_html_of_a_cluster(cluster: Cluster, probe: Probe) -> None:
    coordinator_of(probe, "g")
    probe.produce("orders", "a", "b")
    cluster.kill_broker(1)
    assert repr(cluster) == f"Cluster({cluster.bootstrap_servers}, virtual clock, brokers [0, 2] of 3 alive, 1 topic)"
    html = cluster._repr_html_()
    assert "<b>down</b>" in html
    assert "1 internal topics" in html
    assert "in this process" in html  # nothing listens at the addresses of a cluster that is not served
    assert ":9092" not in html
    row = re.sub(r"<[^>]+>", "|", html.split("orders")[1])
    assert [cell for cell in row.split("|") if cell][:3] == ["4", "0, 2, 2, 0", "2"]


# ---- brokers that stop and start -------------------------------------------------------------------------------------


def heartbeat(probe: Probe, node: int, epoch: int) -> Any:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id="m", member_epoch=epoch, subscribed_topic_names=("orders",)
    )
    return probe.ask(request, node)


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_group_survives_its_coordinator(cluster: Cluster, probe: Probe, how: str) -> None:
    first = coordinator_of(probe, "g")
    assert heartbeat(probe, first, 0).member_epoch == 2
    (cluster.kill_broker if how == "kill" else cluster.stop_broker)(first)
    assert BrokerStopped(first, how == "kill") in [e.event for e in cluster.journal]
    second = coordinator_of(probe, "g")
    assert second != first
    group = probe.ask(ShareGroupDescribeRequest(group_ids=("g",)), second).groups[0]
    assert [m.member_id for m in group.members] == ["m"]
    assert heartbeat(probe, second, 2).error_code is Errors.NONE
    cluster.start_broker(first)
    assert coordinator_of(probe, "g") == second
    cluster.elect_preferred_leaders()
    assert coordinator_of(probe, "g") == first
    assert heartbeat(probe, second, 2).error_code is Errors.NOT_COORDINATOR
    assert heartbeat(probe, first, 2).error_code is Errors.NONE


def test_requests_in_flight_to_a_killed_broker_fail_with_network_exception(cluster: Cluster, probe: Probe) -> None:
    slow = Cluster(brokers=3, seed=1, latency_ms=50)
    patient = Probe(slow)
    call_id = patient.send(MetadataRequest(), node=1)
    slow.kill_broker(1)
    slow.advance(200)
    assert patient.answers[call_id].error is Errors.NETWORK_EXCEPTION
    call_id = patient.send(MetadataRequest(), node=1)
    slow.advance(200)
    assert patient.answers[call_id].error is Errors.NETWORK_EXCEPTION


def test_latency_delays_messages() -> None:
    slow = Cluster(brokers=1, latency_ms=50)
    patient = Probe(slow)
    started = slow.now_ms
    patient.ask(MetadataRequest())
    assert slow.now_ms - started == 100


def test_traced_messages_are_events() -> None:
    traced = Cluster(brokers=1, trace_messages=True)
    Probe(traced, "me").ask(MetadataRequest())
    events = [(type(e.event).__name__, *e.event[:3]) for e in traced.journal][-2:]
    assert events == [
        ("RequestSent", "me", "broker-0", "MetadataRequest"),
        ("ResponseSent", "broker-0", "me", "MetadataResponse"),
    ]


def test_records_survive_the_loss_of_brokers(cluster: Cluster, probe: Probe) -> None:
    probe.produce("orders", "a")
    for broker in (0, 1, 2):
        cluster.kill_broker(broker)
    assert cluster.image.topics["orders"].partitions[0].leader == -1
    cluster.start_broker(2)
    assert probe.produce("orders", "b").base_offset == 1
    assert LeaderElected("orders", 0, 2, 4) in [e.event for e in cluster.journal]


# ---- faults, retention ---------------------------------------------------------------------------------


def test_injected_faults_fail_the_given_number_of_appends(cluster: Cluster, probe: Probe) -> None:
    cluster.fail_appends("orders", Errors.KAFKA_STORAGE_ERROR, times=2)
    errors = [probe.produce("orders", "x").error_code for _ in range(3)]
    assert errors == [Errors.KAFKA_STORAGE_ERROR, Errors.KAFKA_STORAGE_ERROR, Errors.NONE]
    assert any(isinstance(e.event, FaultInjected) for e in cluster.journal)
    with pytest.raises(ConfigException, match=r"times=0: must be >= 1"):
        cluster.fail_appends("orders", times=0)


def test_retention_moves_the_log_start(cluster: Cluster, probe: Probe) -> None:
    cluster.create_topic("brief", configs={"retention.ms": 1000, "segment.ms": 100})
    probe.produce("brief", "old")
    cluster.advance(60_000)
    probe.produce("brief", "new")
    cluster.advance(300_000)
    probe.produce("brief", "newest")
    cluster.advance(300_000)
    assert cluster.log("brief", 0).log_start_offset >= 2
    assert any(isinstance(e.event, LogStartMoved) and e.event.topic == "brief" for e in cluster.journal)


@pytest.mark.parametrize("error", [Errors.KAFKA_STORAGE_ERROR, Errors.NOT_ENOUGH_REPLICAS, Errors.MESSAGE_TOO_LARGE])
def test_a_session_expires_even_if_the_first_append_of_it_fails(cluster: Cluster, probe: Probe, error: Errors) -> None:
    node = coordinator_of(probe, "g")
    heartbeat(probe, node, 0)
    cluster.advance(2000)
    cluster.fail_appends(GROUP_METADATA_TOPIC, error)
    cluster.advance(46_000)
    group = probe.ask(ShareGroupDescribeRequest(group_ids=("g",)), node).groups[0]
    assert (group.group_state, group.members) == ("Empty", ())


def test_true_and_false_are_configured_as_kafka_writes_them(cluster: Cluster) -> None:
    cluster.configure_group("g", {"share.renew.acknowledge.enable": False})
    cluster.create_topic("compared", configs={"unclean.leader.election.enable": True})
    assert cluster.image.group_configs["g"]["share.renew.acknowledge.enable"] == "false"
    assert cluster.image.topics["compared"].configs["unclean.leader.election.enable"] == "true"
