"""Browsing on a cluster, and the rights of the requests of experiments: shareq/leader/experiments/BEHAVIOUR.md, 3 and
7.22."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.model.acls import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER
from shareq.model.errors import Errors
from shareq.model.messages.base import Request
from shareq.model.messages.share_browse import BrowseShareGroupRequest, BrowseShareGroupResponse
from shareq.model.messages.share_fetch import ShareAcknowledgeRequest
from shareq.model.messages.share_transactions import EndShareTransactionRequest, TxnShareAcknowledgeRequest
from tests.broker.probe import Probe
from tests.leader.experiments.browsing import shown

ENABLED: dict[str, object] = {"shareq.experiments.enable": True}
SECURED: dict[str, object] = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:root"}


class User(Probe):
    """A client without logic of a user."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster, name)
        self.connection = cluster.connect(self, name, f"User:{name}")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A topic "t" with three records, and a member of the group "g" that has accepted the first and held the others."""
    with Cluster(brokers=1, seed=7, config=ENABLED | SECURED) as made:
        made.create_topic("t")
        made.configure_group("g", {"share.auto.offset.reset": "earliest"})
        conf = {"bootstrap.servers": made.bootstrap_servers_as("root")}
        with Producer(conf) as producer:
            for number in range(3):
                producer.produce("t", f"{number}")
        with ShareConsumer(conf | {"group.id": "g", "share.acknowledgement.mode": "explicit"}) as member:
            member.subscribe(["t"])
            first, *_ = member.poll(60)
            member.acknowledge(first)
            member.commit_sync()
            yield made


def browse_request(cluster: Cluster, group_id: str = "g") -> BrowseShareGroupRequest:
    return BrowseShareGroupRequest(group_id=group_id, topic_id=cluster.image.topics["t"].topic_id, partition=0)


def browse(cluster: Cluster, user: str, group_id: str = "g") -> BrowseShareGroupResponse:
    response = User(cluster, user).ask(browse_request(cluster, group_id))
    assert isinstance(response, BrowseShareGroupResponse)
    return response


def test_3_11_it_needs_describe_on_the_group_and_read_on_the_topic(cluster: Cluster) -> None:
    def allow(restype: ResourceType, name: str, operation: AclOperation) -> None:
        binding = AclBinding(
            restype, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW
        )
        root.create_acls([binding]).check()

    with Admin({"bootstrap.servers": cluster.bootstrap_servers_as("root")}) as root:
        assert browse(cluster, "alice") == BrowseShareGroupResponse(error_code=Errors.GROUP_AUTHORIZATION_FAILED)
        allow(ResourceType.GROUP, "g", AclOperation.DESCRIBE)
        assert browse(cluster, "alice") == BrowseShareGroupResponse(error_code=Errors.TOPIC_AUTHORIZATION_FAILED)
        allow(ResourceType.TOPIC, "t", AclOperation.DESCRIBE)
        assert browse(cluster, "alice") == BrowseShareGroupResponse(error_code=Errors.TOPIC_AUTHORIZATION_FAILED)
        allow(ResourceType.TOPIC, "t", AclOperation.READ)
        page = browse(cluster, "alice")
    assert (page.error_code, page.spso, page.next_offset) == (Errors.NONE, 1, 3)
    assert shown(page).startswith("1-2 ACQ(1)@")


def test_7_22_a_transactional_acknowledgement_needs_the_transaction_the_group_and_the_topics(cluster: Cluster) -> None:
    """Without a member of that id, the request with all rights gets to the check of the member."""

    def allow(restype: ResourceType, name: str, operation: AclOperation) -> None:
        binding = AclBinding(
            restype, name, ResourcePatternType.LITERAL, "User:alice", "*", operation, AclPermissionType.ALLOW
        )
        with Admin({"bootstrap.servers": cluster.bootstrap_servers_as("root")}) as root:
            root.create_acls([binding]).check()

    def error(request: Request) -> Errors:
        found = User(cluster, "alice").ask(request).error_code
        assert isinstance(found, Errors)
        return found

    topic_id = cluster.image.topics["t"].topic_id
    part = ShareAcknowledgeRequest.Partition(partition_index=0)
    request = TxnShareAcknowledgeRequest(
        transactional_id="x",
        producer_id=7,
        producer_epoch=0,
        group_id="g",
        member_id="q",
        member_epoch=1,
        topics=(ShareAcknowledgeRequest.Topic(topic_id=topic_id, partitions=(part,)),),
    )
    assert error(request) is Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    allow(ResourceType.TRANSACTIONAL_ID, "x", AclOperation.WRITE)
    assert error(request) is Errors.GROUP_AUTHORIZATION_FAILED
    allow(ResourceType.GROUP, "g", AclOperation.READ)
    assert error(request) is Errors.TOPIC_AUTHORIZATION_FAILED
    allow(ResourceType.TOPIC, "t", AclOperation.READ)
    assert error(request) is Errors.UNKNOWN_MEMBER_ID
    end = EndShareTransactionRequest(
        group_id="g", topic_id=topic_id, partition=0, leader_epoch=0, producer_id=7, producer_epoch=0, committed=True
    )
    assert error(end) is Errors.CLUSTER_AUTHORIZATION_FAILED


def test_3_7_no_group_is_created(cluster: Cluster) -> None:
    assert browse(cluster, "root", "h").error_code is Errors.GROUP_ID_NOT_FOUND
    with Admin({"bootstrap.servers": cluster.bootstrap_servers_as("root")}) as root:
        assert set(root.list_groups()) == {"g"}


def test_0_1_without_experiments_the_request_is_unknown() -> None:
    with Cluster(brokers=1, seed=7) as plain:
        plain.create_topic("t")
        user = User(plain, "root")
        call_id = user.send(browse_request(plain))
        assert user.connection.wait(lambda: bool(user.answers), 60_000)
        assert user.answers[call_id].error is Errors.UNSUPPORTED_VERSION
