"""Authorization in a cluster: sessions, denials in the journal, access control lists of the administrator.

`pairings/test_authorization` has the table of requests and rights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from shareq import AclBinding, AclBindingFilter, Admin, Cluster, KafkaException, Producer, ShareConsumer
from shareq.log.records import encode_batch
from shareq.model.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from shareq.model.actor import BROKER
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER
from shareq.model.errors import ConfigException, Errors
from shareq.model.events import AclChanged, AuthorizationDenied
from shareq.model.ids import TopicId
from shareq.model.messages.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareAcknowledgeRequest, ShareFetchRequest
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from shareq.model.messages.transactions import (
    AddPartitionsToTxnRequest,
    AllocateProducerIdsRequest,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    WriteTxnMarkersRequest,
)
from tests.broker.probe import Probe

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
READ, DESCRIBE, WRITE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.WRITE
SECURED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:root"}


def allow(restype: ResourceType, name: str, operation: AclOperation, user: str = "alice") -> AclBinding:
    literal = ResourcePatternType.LITERAL
    return AclBinding(restype, name, literal, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One broker, topics "orders" and "secrets" with three records each, and the group "payments" from the start."""
    with Cluster(brokers=1, config=SECURED) as cluster:
        for topic in ("orders", "secrets"):
            cluster.create_topic(topic)
        cluster.configure_group("payments", {"share.auto.offset.reset": "earliest"})
        with Producer({"bootstrap.servers": cluster.bootstrap_servers_as("root")}) as producer:
            for topic in ("orders", "secrets"):
                for number in range(3):
                    producer.produce(topic, str(number).encode())
        for kind in (CoordinatorType.GROUP, CoordinatorType.TRANSACTION):  # creates the coordinators' topics
            User(cluster, "root").ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=("x",)))
        cluster.advance(1000)
        yield cluster


@pytest.fixture
def root(cluster: Cluster) -> Iterator[Admin]:
    """The administrator, a super user."""
    with Admin({"bootstrap.servers": cluster.bootstrap_servers_as("root")}) as admin:
        yield admin


class User(Probe):
    """A client without logic of a user."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster, name)
        self.connection = cluster.connect(self, name, f"User:{name}")


def denials(cluster: Cluster) -> list[tuple[str, str, str]]:
    """The denials in the journal: API, operation and resource."""
    found = [entry.event for entry in cluster.journal if isinstance(entry.event, AuthorizationDenied)]
    return [(event.api, event.operation, f"{event.resource_type} {event.name}") for event in found]


# ---- a denied consumer -----------------------------------------------------------------------------------------------


def test_a_consumer_gets_records_when_it_may_read_group_and_topic(cluster: Cluster, root: Admin) -> None:
    conf = {"bootstrap.servers": cluster.bootstrap_servers_as("alice"), "group.id": "payments"}
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(KafkaException) as group:
            consumer.poll(timeout=10)
    root.create_acls([allow(GROUP, "payments", READ)]).check()
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(KafkaException) as topic:
            consumer.poll(timeout=10)
    root.create_acls([allow(TOPIC, "orders", READ)]).check()
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        assert [message.value() for message in consumer.poll(timeout=30)] == [b"0", b"1", b"2"]
    assert group.value.args[0].code() == Errors.GROUP_AUTHORIZATION_FAILED
    assert topic.value.args[0].code() == Errors.TOPIC_AUTHORIZATION_FAILED
    assert {api for api, _, _ in denials(cluster)} == {"FindCoordinator", "Metadata", "ShareGroupHeartbeat"}


def test_a_consumer_with_a_deny_gets_nothing(cluster: Cluster, root: Admin) -> None:
    deny = allow(TOPIC, "ord", READ)._replace(
        resource_pattern_type=ResourcePatternType.PREFIXED, permission_type=AclPermissionType.DENY
    )
    root.create_acls([allow(GROUP, "payments", READ), allow(TOPIC, "*", AclOperation.ALL), deny]).check()
    conf = {"bootstrap.servers": cluster.bootstrap_servers_as("alice"), "group.id": "payments"}
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            consumer.poll(timeout=30)


def test_brokers_are_trusted(cluster: Cluster, root: Admin) -> None:
    """The state of the share group was initialized, read and written by the broker, which has no access control
    list."""
    root.create_acls([allow(GROUP, "payments", READ), allow(TOPIC, "orders", READ)]).check()
    conf = {"bootstrap.servers": cluster.bootstrap_servers_as("alice"), "group.id": "payments"}
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        assert len(consumer.poll(timeout=30)) == 3
        consumer.commit_sync()
    assert root.lag("payments").total == 0
    assert denials(cluster) == []
    assert not BROKER.startswith("User:"), "clients have principals of type User"


# ---- sessions --------------------------------------------------------------------------------------------------------


def share_fetch(cluster: Cluster, epoch: int, *topics: str, acks: dict[str, int] | None = None) -> ShareFetchRequest:
    def partition(topic: str) -> ShareFetchRequest.Partition:
        first = (acks or {}).get(topic)
        if first is None:
            return ShareFetchRequest.Partition(partition_index=0)
        batch = AcknowledgementBatch(first_offset=first, last_offset=first, acknowledge_types=(1,))
        return ShareFetchRequest.Partition(partition_index=0, acknowledgement_batches=(batch,))

    return ShareFetchRequest(
        group_id="payments",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=1000,
        topics=tuple(
            ShareFetchRequest.Topic(topic_id=cluster.image.topics[topic].topic_id, partitions=(partition(topic),))
            for topic in topics
        ),
    )


def by_topic(cluster: Cluster, response: Any) -> dict[str, Any]:
    """The first partition of each topic in a response."""
    return {cluster.image.topics_by_id[topic.topic_id].name: topic.partitions[0] for topic in response.responses}


def join(cluster: Cluster, *topics: str) -> None:
    """Let the administrator's member "m" join, so that the share-partitions are initialized."""
    root = User(cluster, "root")
    epoch = 0
    for _ in range(4):
        joined = root.ask(
            ShareGroupHeartbeatRequest(
                group_id="payments", member_id="m", member_epoch=epoch, subscribed_topic_names=topics
            )
        )
        epoch = joined.member_epoch
        cluster.advance(1000)


def test_a_session_follows_the_access_control_lists(cluster: Cluster, root: Admin) -> None:
    """Each fetch reads the topics of its session that may be read now. The client names them once."""
    join(cluster, "orders", "secrets")
    alice = User(cluster, "alice")
    root.create_acls([allow(GROUP, "payments", READ), allow(TOPIC, "orders", READ)]).check()

    first = by_topic(cluster, alice.ask(share_fetch(cluster, 0, "orders", "secrets")))
    assert first["secrets"].error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    assert first["orders"].error_code == Errors.NONE

    root.create_acls([allow(TOPIC, "secrets", READ)]).check()
    second = alice.ask(share_fetch(cluster, 1))
    found = by_topic(cluster, second)["secrets"]
    assert (found.error_code, len(found.acquired_records)) == (Errors.NONE, 1)

    root.delete_acls([AclBindingFilter(name="orders")]).check()
    third = by_topic(cluster, alice.ask(share_fetch(cluster, 2)))
    assert third["orders"].error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    shared = [denial for denial in denials(cluster) if denial[0] == "ShareFetch"]
    assert shared == [("ShareFetch", "READ", "TOPIC secrets"), ("ShareFetch", "READ", "TOPIC orders")]


def test_another_user_of_a_session_gets_what_it_may_read(cluster: Cluster, root: Admin) -> None:
    join(cluster, "orders")
    root.create_acls([allow(GROUP, "payments", READ), allow(TOPIC, "orders", READ)]).check()
    root.create_acls([allow(GROUP, "payments", READ, "bob")]).check()
    opened = by_topic(cluster, User(cluster, "alice").ask(share_fetch(cluster, 0, "orders")))
    taken_over = by_topic(cluster, User(cluster, "bob").ask(share_fetch(cluster, 1)))
    assert opened["orders"].error_code == Errors.NONE
    assert taken_over["orders"].error_code == Errors.TOPIC_AUTHORIZATION_FAILED


def test_acknowledgements_need_the_right_to_read(cluster: Cluster, root: Admin) -> None:
    join(cluster, "orders", "secrets")
    alice = User(cluster, "alice")
    root.create_acls([allow(GROUP, "payments", READ), *(allow(TOPIC, t, READ) for t in ("orders", "secrets"))]).check()
    acquired = by_topic(cluster, alice.ask(share_fetch(cluster, 0, "orders", "secrets")))
    epoch = 1
    while not acquired["secrets"].acquired_records or not acquired["orders"].acquired_records:
        assert epoch < 5
        more = by_topic(cluster, alice.ask(share_fetch(cluster, epoch)))
        acquired |= {topic: part for topic, part in more.items() if part.acquired_records}
        epoch += 1
    root.delete_acls([AclBindingFilter(name="secrets")]).check()

    with_fetch = alice.ask(share_fetch(cluster, epoch, "orders", "secrets", acks={"orders": 0, "secrets": 0}))
    errors = {topic: part.acknowledge_error_code for topic, part in by_topic(cluster, with_fetch).items()}
    assert errors == {"orders": Errors.NONE, "secrets": Errors.TOPIC_AUTHORIZATION_FAILED}

    batch = AcknowledgementBatch(first_offset=1, last_offset=1, acknowledge_types=(1,))
    part = (ShareAcknowledgeRequest.Partition(partition_index=0, acknowledgement_batches=(batch,)),)
    ids = {topic: cluster.image.topics[topic].topic_id for topic in ("orders", "secrets")}
    request = ShareAcknowledgeRequest(
        group_id="payments",
        member_id="m",
        share_session_epoch=epoch + 1,
        topics=tuple(ShareAcknowledgeRequest.Topic(topic_id=each, partitions=part) for each in ids.values()),
    )
    alone = {topic: part.error_code for topic, part in by_topic(cluster, alice.ask(request)).items()}
    assert alone == errors


def test_a_fetch_session_follows_the_access_control_lists(cluster: Cluster, root: Admin) -> None:
    alice = User(cluster, "alice")
    root.create_acls([allow(TOPIC, "orders", READ)]).check()
    ids = {topic: cluster.image.topics[topic].topic_id for topic in ("orders", "secrets")}
    part = (FetchRequest.Partition(partition=0, fetch_offset=0),)
    topics = tuple(FetchRequest.Topic(topic_id=each, partitions=part) for each in ids.values())
    opened = alice.ask(FetchRequest(topics=topics, session_epoch=0))
    assert {t: p.error_code for t, p in by_topic(cluster, opened).items()} == {
        "orders": Errors.NONE,
        "secrets": Errors.TOPIC_AUTHORIZATION_FAILED,
    }
    root.create_acls([allow(TOPIC, "secrets", READ)]).check()
    root.delete_acls([AclBindingFilter(name="orders")]).check()
    again = by_topic(cluster, alice.ask(FetchRequest(session_id=opened.session_id, session_epoch=1)))
    assert (again["secrets"].error_code, len(again["secrets"].records)) == (Errors.NONE, 1)
    assert (again["orders"].error_code, again["orders"].records) == (Errors.TOPIC_AUTHORIZATION_FAILED, ())


def test_an_expression_is_resolved_with_the_rights_of_the_member(cluster: Cluster, root: Admin) -> None:
    """The member whose heartbeat resolves the expressions decides for the group; a refresh follows changed lists."""
    interval_ms = 30_000
    root.incremental_alter_configs("broker", "", {"group.consumer.regex.refresh.interval.ms": interval_ms})
    root.create_acls([allow(GROUP, "readers", READ), allow(TOPIC, "orders", DESCRIBE)]).check()
    alice = User(cluster, "alice")
    names = {topic.topic_id: name for name, topic in cluster.image.topics.items()}
    wanted = ConsumerGroupHeartbeatRequest(
        group_id="readers",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="orders|secrets",
        topic_partitions=(),
    )
    assigned: list[set[str]] = []
    epoch = 0
    for step in range(6):
        if step == 3:
            root.create_acls([allow(TOPIC, "secrets", READ)]).check()
            cluster.advance(interval_ms)
        answer = alice.ask(replace(wanted, member_epoch=epoch))
        assert not answer.error_code
        epoch = answer.member_epoch
        if answer.assignment is not None:
            assigned.append({names[part.topic_id] for part in answer.assignment.topic_partitions})
        cluster.advance(1000)
    assert assigned[-1] == {"orders", "secrets"}
    assert {"orders"} in assigned
    assert not [each for each in denials(cluster) if "secrets" in each[2]], "it is only hidden"


# ---- responses without what may not be seen --------------------------------------------------------------------------


def test_a_group_is_not_described_with_a_topic_that_may_not_be_seen(cluster: Cluster, root: Admin) -> None:
    join(cluster, "orders", "secrets")
    alice = User(cluster, "alice")
    root.create_acls([allow(GROUP, "payments", DESCRIBE), allow(TOPIC, "orders", DESCRIBE)]).check()
    asked = ShareGroupDescribeRequest(group_ids=("payments",), include_authorized_operations=True)
    (hidden,) = alice.ask(asked).groups
    root.create_acls([allow(TOPIC, "secrets", DESCRIBE)]).check()
    (shown,) = alice.ask(asked).groups
    assert (hidden.error_code, hidden.members) == (Errors.TOPIC_AUTHORIZATION_FAILED, ())
    assert (shown.error_code, len(shown.members)) == (Errors.NONE, 1)
    assert shown.authorized_operations == 1 << DESCRIBE


def test_a_consumer_group_is_not_described_with_a_topic_that_may_not_be_seen(cluster: Cluster, root: Admin) -> None:
    member = ConsumerGroupHeartbeatRequest(
        group_id="payments",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("secrets",),
        topic_partitions=(),
    )
    assert User(cluster, "root").ask(member).error_code == Errors.NONE
    alice = User(cluster, "alice")
    root.create_acls([allow(GROUP, "payments", DESCRIBE)]).check()
    (hidden,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=("payments",))).groups
    root.create_acls([allow(TOPIC, "secrets", DESCRIBE)]).check()
    (shown,) = alice.ask(ConsumerGroupDescribeRequest(group_ids=("payments",))).groups
    assert (hidden.error_code, hidden.members) == (Errors.TOPIC_AUTHORIZATION_FAILED, ())
    assert (shown.error_code, len(shown.members)) == (Errors.NONE, 1)


def test_a_transaction_is_described_with_the_topics_that_may_be_seen(cluster: Cluster, root: Admin) -> None:
    own = User(cluster, "root")
    begun = own.ask(InitProducerIdRequest(transactional_id="t"))
    assert begun.error_code == Errors.NONE
    topics = tuple(AddPartitionsToTxnRequest.Topic(name=name, partitions=(0,)) for name in ("orders", "secrets"))
    own.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=topics,
        )
    )
    root.create_acls([allow(TRANSACTION, "t", DESCRIBE), allow(TOPIC, "orders", WRITE)]).check()
    (state,) = User(cluster, "alice").ask(DescribeTransactionsRequest(transactional_ids=("t",))).transaction_states
    assert [topic.topic for topic in state.topics] == ["orders"]


def test_what_is_refused_is_not_carried_out(cluster: Cluster, root: Admin) -> None:
    root.create_acls([allow(TOPIC, "orders", WRITE)]).check()
    part = (ProduceRequest.Partition(index=0, records=encode_batch([(None, b"x", [], 0)])),)
    ids = [cluster.image.topics[topic].topic_id for topic in ("secrets", "orders")]
    request = ProduceRequest(topics=tuple(ProduceRequest.Topic(topic_id=each, partitions=part) for each in ids))
    answer = by_topic(cluster, User(cluster, "alice").ask(request))
    assert answer["orders"].error_code == Errors.NONE
    assert answer["secrets"].error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    assert [cluster.log(topic, 0).log_end_offset for topic in ("orders", "secrets")] == [4, 3]
    assert denials(cluster) == [("Produce", "WRITE", "TOPIC secrets")]


# ---- access control lists --------------------------------------------------------------------------------------------


def test_access_control_lists_are_created_described_and_deleted(cluster: Cluster, root: Admin) -> None:
    one, two = allow(TOPIC, "orders", READ), allow(GROUP, "payments", READ, "bob")
    assert not any(result.error for result in root.create_acls([one, two]).values())
    root.create_acls([one]).check()  # it exists
    assert root.describe_acls(AclBindingFilter()) == [one, two]
    assert root.describe_acls(AclBindingFilter(principal="User:bob")) == [two]
    wanted = AclBindingFilter(restype=TOPIC)
    assert root.delete_acls([wanted])[wanted].acls == (one,)
    assert root.describe_acls(AclBindingFilter()) == [two]
    changes = [entry.event for entry in cluster.journal if isinstance(entry.event, AclChanged)]
    assert [(event.binding, event.added) for event in changes] == [(one, True), (two, True), (one, False)]


def test_types_may_be_given_by_name(root: Admin) -> None:
    named: Any = AclBinding("topic", "orders", "literal", "User:alice", "*", "read", "allow")  # type: ignore[arg-type]
    root.create_acls([named]).check()
    assert root.describe_acls(AclBindingFilter("Topic")) == [allow(TOPIC, "orders", READ)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"restype": "tpoic"}, id="unknown type"),
        pytest.param({"operation": 3}, id="a number"),
        pytest.param({"name": ""}, id="empty name"),
        pytest.param({"principal": ""}, id="empty principal"),
    ],
)
def test_an_invalid_argument_is_refused_at_once(root: Admin, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must"):
        root.create_acls([allow(TOPIC, "orders", READ)._replace(**changes)])


def test_a_binding_is_given_once(root: Admin) -> None:
    with pytest.raises(ValueError, match="must be given once"):
        root.create_acls([allow(TOPIC, "orders", READ)] * 2)
    with pytest.raises(TypeError, match="must be an AclBinding"):
        root.create_acls([("topic", "orders")])  # type: ignore[list-item]


INVALID: list[tuple[str, dict[str, Any]]] = [
    ("another cluster", {"resource_type": CLUSTER, "resource_name": "mine"}),
    ("no name", {"resource_name": ""}),
    ("unknown type", {"resource_type": 77}),
    ("any type", {"resource_type": ResourceType.ANY}),
    ("pattern of filters", {"resource_pattern_type": ResourcePatternType.MATCH}),
    ("unknown operation", {"operation": 77}),
    ("any operation", {"operation": AclOperation.ANY}),
    ("any permission", {"permission_type": AclPermissionType.ANY}),
    ("a principal without type", {"principal": "alice"}),
]


@pytest.mark.parametrize("changes", [row[1] for row in INVALID], ids=[row[0] for row in INVALID])
def test_an_invalid_binding_is_refused_and_a_valid_one_beside_it_is_created(
    cluster: Cluster, root: Admin, changes: dict[str, Any]
) -> None:
    good: dict[str, Any] = {
        "resource_type": TOPIC,
        "resource_name": "orders",
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": AclPermissionType.ALLOW,
    }
    creations = (CreateAclsRequest.Creation(**{**good, **changes}), CreateAclsRequest.Creation(**good))
    results = User(cluster, "root").ask(CreateAclsRequest(creations=creations)).results
    assert [result.error_code for result in results] == [Errors.INVALID_REQUEST, Errors.NONE]
    assert results[0].error_message
    assert root.describe_acls(AclBindingFilter()) == [allow(TOPIC, "orders", READ)]


def test_the_only_cluster_resource_has_a_name(root: Admin) -> None:
    root.create_acls([allow(CLUSTER, CLUSTER_NAME, AclOperation.ALTER)]).check()


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
def test_a_filter_with_an_unknown_type_is_refused(cluster: Cluster, field: str) -> None:
    known: dict[str, Any] = {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
        field: 77,
    }
    root = User(cluster, "root")
    assert root.ask(DescribeAclsRequest(**known)).error_code == Errors.INVALID_REQUEST
    deleted = root.ask(DeleteAclsRequest(filters=(DeleteAclsRequest.Filter(**known),)))
    assert [result.error_code for result in deleted.filter_results] == [Errors.INVALID_REQUEST]


def test_without_an_authorizer_everything_is_allowed_and_there_are_no_lists() -> None:
    with Cluster(brokers=1) as cluster, Admin({"bootstrap.servers": cluster.bootstrap_servers_as("alice")}) as admin:
        admin.create_topics(["orders"]).check()
        with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
            admin.describe_acls(AclBindingFilter())
        created = admin.create_acls([allow(TOPIC, "orders", READ)])
        deleted = admin.delete_acls([AclBindingFilter()])
        errors = [result.error.code() for result in (*created.values(), *deleted.values()) if result.error]
        assert errors == [Errors.SECURITY_DISABLED] * 2


def test_an_unknown_topic_id_fails_alone(cluster: Cluster, root: Admin) -> None:
    root.create_acls([allow(GROUP, "payments", READ), allow(TOPIC, "orders", READ)]).check()
    known = share_fetch(cluster, 0, "orders")
    unknown = ShareFetchRequest.Topic(topic_id=TopicId("x" * 21 + "A"), partitions=known.topics[0].partitions)
    response = User(cluster, "alice").ask(replace(known, topics=(*known.topics, unknown), max_wait_ms=0))
    errors = {topic.topic_id: topic.partitions[0].error_code for topic in response.responses}
    assert response.error_code == Errors.NONE
    assert errors[unknown.topic_id] == Errors.UNKNOWN_TOPIC_ID


def test_a_backend_has_its_own_authorizer() -> None:
    with pytest.raises(ConfigException, match="a cluster on a backend does not authorize requests"):
        Cluster(backend="127.0.0.1:1", config=SECURED)


def test_a_client_without_a_user_is_anonymous(cluster: Cluster, root: Admin) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as nobody:
        assert nobody.list_topics() == {}
        root.create_acls([allow(TOPIC, "orders", DESCRIBE, "ANONYMOUS")]).check()
        assert list(nobody.list_topics()) == ["orders"]


# ---- requests between brokers, which no port takes -------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param(lambda: AllocateProducerIdsRequest(broker_id=0), id="AllocateProducerIds"),
        pytest.param(
            lambda: WriteTxnMarkersRequest(
                markers=(
                    WriteTxnMarkersRequest.Marker(
                        producer_id=9,
                        producer_epoch=0,
                        transaction_result=False,
                        topics=(WriteTxnMarkersRequest.Topic(name="orders", partition_indexes=(0,)),),
                        coordinator_epoch=0,
                    ),
                )
            ),
            id="WriteTxnMarkers",
        ),
    ],
)
def test_a_request_between_brokers_needs_cluster_action(cluster: Cluster, root: Admin, request_of: Any) -> None:
    """They are no rows of the table in `tests/pairings`, whose clients come over TCP."""
    alice = User(cluster, "alice")
    assert errors_in(alice.ask(request_of())) == {Errors.CLUSTER_AUTHORIZATION_FAILED}
    root.create_acls([allow(CLUSTER, CLUSTER_NAME, AclOperation.CLUSTER_ACTION)]).check()
    assert errors_in(alice.ask(request_of())) == {Errors.NONE}


def errors_in(response: Any) -> set[Errors]:
    """The error codes of a response and of what it has."""
    if isinstance(response, tuple):
        return {error for row in response for error in errors_in(row)}
    if not is_dataclass(response):
        return set()
    values = {field.name: getattr(response, field.name) for field in fields(response)}
    own = {value for name, value in values.items() if name == "error_code"}
    return own.union(*(errors_in(value) for value in values.values() if isinstance(value, tuple)))
