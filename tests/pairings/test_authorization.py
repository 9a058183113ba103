"""API x right x (allowed, denied), from one table, on shareq and on Apache Kafka with its StandardAuthorizer.

All clients are User:ANONYMOUS; each has an address of its own, by which access control lists tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest

from shareq import Cluster
from shareq.broker.authorization import RULES
from shareq.kafka.local import laptop_config
from shareq.model.acls import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from shareq.model.authorizer_configs import STANDARD_AUTHORIZER
from shareq.model.configs import BROKER_CONFIGS
from shareq.model.errors import Errors
from shareq.model.experiments import ENABLE
from shareq.model.ids import TopicId
from shareq.model.messages.acls import CreateAclsRequest
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import FindCoordinatorRequest, MetadataRequest
from shareq.model.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from shareq.model.messages.share_browse import BrowseShareGroupRequest
from shareq.model.messages.share_fetch import ShareFetchResponse
from shareq.model.messages.share_group import ShareGroupHeartbeatRequest
from shareq.model.messages.share_transactions import EndShareTransactionRequest, TxnShareAcknowledgeRequest
from shareq.model.messages.topics import CreateTopicsRequest
from shareq.model.messages.transactions import AllocateProducerIdsRequest, InitProducerIdRequest, WriteTxnMarkersRequest
from tests.kafka.fixtures import kafka_or_skip
from tests.pairings.authorization import CASES, Case
from tests.pairings.authorization_requests import Names, resource
from tests.polling import eventually
from tests.wire.raw import Raw

SECURED = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    # Until there are access control lists; then those of the administrator's address cover every resource.
    "allow.everyone.if.no.acl.found": "true",
}

REFUSALS = {
    Errors.TOPIC_AUTHORIZATION_FAILED.name,
    Errors.GROUP_AUTHORIZATION_FAILED.name,
    Errors.CLUSTER_AUTHORIZATION_FAILED.name,
    Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.name,
}


SAME_WITHOUT = {"DeleteTopics, visible", "DeleteTopics, by id", "ShareGroupHeartbeat, no member"}
"""Cases in which a right makes no difference beside another one."""


SHOWS_IDS = {"AlterShareGroupOffsets"}
"""Cases in which Kafka shows the ids of refused topics, and thereby that they exist; see DIFFERENCES.md."""


class Client(NamedTuple):
    """One row of the table: a case, sent by a client without the right number `lacks` (-1: without any, None: with
    all). `number` gives it an address and names of its own."""

    case: Case
    lacks: int | None
    number: int

    @property
    def title(self) -> str:
        if self.lacks is None:
            return f"{self.case.name}: all rights"
        if self.lacks < 0:
            return f"{self.case.name}: no right"
        operation, what = self.case.rights[self.lacks]
        return f"{self.case.name}: without {operation.name} on {what}"

    @property
    def address(self) -> str:
        return f"127.1.{self.number // 250}.{self.number % 250 + 1}"

    def names(self, ids: dict[str, TopicId]) -> Names:
        n = self.number
        return Names(f"topic-{n}", f"other-{n}", f"missing-{n}", f"group-{n}", f"transaction-{n}", ids.__getitem__)

    @property
    def acls(self) -> Iterator[CreateAclsRequest.Creation]:
        for place, (operation, what) in enumerate(self.case.rights):
            if self.lacks is None or (self.lacks >= 0 and place != self.lacks):
                restype, name = resource(what, self.names({}))
                yield creation(restype, name, operation, self.address)


def creation(restype: ResourceType, name: str, operation: AclOperation, host: str) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=restype,
        resource_name=name,
        resource_pattern_type=ResourcePatternType.LITERAL,
        principal="User:ANONYMOUS",
        host=host,
        operation=operation,
        permission_type=AclPermissionType.ALLOW,
    )


def clients() -> Iterator[Client]:
    numbers = count()
    for case in CASES:
        yield Client(case, None, next(numbers))
        if len(case.rights) > 1:
            for place in range(len(case.rights)):
                yield Client(case, place, next(numbers))
        yield Client(case, -1, next(numbers))


CLIENTS = tuple(clients())


# ---- the brokers -----------------------------------------------------------------------------------------------------


class Secured:
    """A broker with an authorizer, and what it answers to each client."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.ids: dict[str, TopicId] = {}
        self._answers: dict[Client, Any] = {}
        with Raw(port) as admin:
            self._wait_for_coordinators(admin)
            self._create_topics(admin)
            self._create_acls(admin)

    def _wait_for_coordinators(self, admin: Raw) -> None:
        for kind, key in ((0, "group"), (1, "transaction")):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
            eventually(partial(self._coordinator_error, admin, request), Errors.NONE)
        heartbeat = ShareGroupHeartbeatRequest(
            group_id="first", member_id="first", member_epoch=0, subscribed_topic_names=("first",)
        )
        eventually(lambda: admin.ask(heartbeat).error_code, Errors.NONE)
        producer = InitProducerIdRequest(transactional_id="first")
        eventually(lambda: admin.ask(producer).error_code, Errors.NONE)

    @staticmethod
    def _coordinator_error(admin: Raw, request: FindCoordinatorRequest) -> Errors:
        error: Errors = admin.ask(request).coordinators[0].error_code
        return error

    def _create_topics(self, admin: Raw) -> None:
        names = [name for client in CLIENTS for name in client.names({})[:2]]
        wanted = tuple(CreateTopicsRequest.Topic(name=n, num_partitions=1, replication_factor=1) for n in names)
        created = admin.ask(CreateTopicsRequest(topics=wanted)).topics
        assert {topic.error_code for topic in created} == {Errors.NONE}
        self.ids = {topic.name: topic.topic_id for topic in created}
        last = MetadataRequest(topics=(MetadataRequest.Topic(name=names[-1]),))

        def leader() -> int:
            (topic,) = admin.ask(last).topics
            return topic.partitions[0].leader_id if topic.partitions else -1

        eventually(leader, 0)

    def _create_acls(self, admin: Raw) -> None:
        """All at once: brokers of Kafka apply them with a delay, the last one last."""
        everything = [
            creation(restype, name, AclOperation.ALL, "127.0.0.1")
            for restype, name in (
                (ResourceType.TOPIC, "*"),
                (ResourceType.GROUP, "*"),
                (ResourceType.TRANSACTIONAL_ID, "*"),
                (ResourceType.CLUSTER, CLUSTER_NAME),
            )
        ]
        last = creation(ResourceType.TOPIC, "ready", AclOperation.DESCRIBE, "127.2.0.1")
        wanted = (*everything, *(acl for client in CLIENTS for acl in client.acls), last)
        outcomes = admin.ask(CreateAclsRequest(creations=wanted)).results
        assert {result.error_code for result in outcomes} == {Errors.NONE}
        two = tuple(MetadataRequest.Topic(name=name) for name in ("ready", "not ready"))
        with Raw(self._port, source="127.2.0.1") as raw:

            def errors() -> set[Errors]:
                return {topic.error_code for topic in raw.ask(MetadataRequest(topics=two)).topics}

            eventually(errors, {Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.TOPIC_AUTHORIZATION_FAILED})

    def answer(self, client: Client) -> Any:
        """The response to a client's request, without what differs between brokers."""
        if client not in self._answers:
            names = client.names(self.ids)
            with Raw(self._port) as admin:
                for prepare in client.case.prepare:
                    assert refusals(skeleton(admin.ask(prepare(names)), names)) == 0
            request = client.case.request(names)
            found: list[Any] = []
            eventually(lambda: self._is_loaded(client, request, found), True)
            self._answers[client] = skeleton(found[-1], names)
        return self._answers[client]

    def _is_loaded(self, client: Client, request: Any, found: list[Any]) -> bool:
        """Ask once. False for a fetch of a share-partition that Apache Kafka could not load in time: on a busy machine
        it answers UNKNOWN_SERVER_ERROR, and the next fetch loads it again."""
        with Raw(self._port, source=client.address) as raw:
            found.append(raw.ask(request, client.case.version))
        topics = found[-1].responses if isinstance(found[-1], ShareFetchResponse) else ()
        return not any(part.error_code is Errors.UNKNOWN_SERVER_ERROR for topic in topics for part in topic.partitions)


@pytest.fixture(scope="module")
def shareq_answers() -> Iterator[Callable[[Client], Any]]:
    config = {key: value for key, value in laptop_config(1).items() if key in BROKER_CONFIGS} | SECURED
    with Cluster(brokers=1, clock="wall", config=config) as cluster, cluster.serve() as server:
        yield Secured(int(server.bootstrap_servers.rpartition(":")[2])).answer


@pytest.fixture(scope="module")
def kafka_answers() -> Iterator[Callable[[Client], Any]]:
    with kafka_or_skip(1, SECURED) as kafka:
        yield Secured(int(kafka.bootstrap_servers.rpartition(":")[2])).answer


# ---- what is compared ------------------------------------------------------------------------------------------------

_KEYS = {
    *("name", "topic", "topic_name", "topic_id", "group_id", "transactional_id", "key", "resource_name"),
    *("partition_index", "partition_id", "partition", "index", "resource_type", "resource_type"),
}


def skeleton(message: Any, names: Names) -> Any:
    """The errors of a response and what they are about, authorized operations, and the number of configurations of a
    topic if it has any: rows as sorted lists, without those of resources that are not of this test; ids as names."""
    if isinstance(message, tuple):
        rows = [skeleton(row, names) for row in message if is_dataclass(row)]
        return sorted((row for row in rows if _is_about(row, names)), key=repr)
    found: dict[str, Any] = {}
    for field in fields(message):
        value = getattr(message, field.name)
        if field.name == "topic_id":
            known = {names.id_of(name): name for name in (names.topic, names.other)}
            found[field.name] = known.get(value, "no topic")
        elif field.name.endswith("error_code"):
            found[field.name] = value.name
        elif field.name in _KEYS or field.name.endswith("authorized_operations"):
            found[field.name] = value
        elif field.name == "configs":
            found[field.name] = bool(value)
        elif isinstance(value, tuple) and field.name not in _UNRELATED:
            found[field.name] = skeleton(value, names)
    return found


_UNRELATED = {
    *("brokers", "node_endpoints", "nodes", "results_by_transaction", "config_resources"),
    *("replica_nodes", "isr_nodes", "records", "total_bytes"),
}


def _is_about(row: dict[str, Any], names: Names) -> bool:
    """False for a topic, group or transaction that the client has not made and not named. Also for a partition without
    error of a ShareFetch: Kafka does not name it until the share-partition is loaded."""
    if (row.get("error_code"), row.get("acknowledge_error_code")) == ("NONE", "NONE") or row.get("partitions") == []:
        return "acknowledge_error_code" not in row and row.keys() != {"topic_id", "partitions"}
    own = {*names[:5], f"{names.missing}-too", "group-of-others", "of-others"}
    named = [row[key] for key in ("name", "topic_name", "group_id", "transactional_id") if row.get(key)]
    return not named or any(name in own for name in named)


def without_ids(found: Any) -> Any:
    """A skeleton without the ids of topics."""
    if isinstance(found, list):
        return [without_ids(row) for row in found]
    if isinstance(found, dict):
        return {key: without_ids(value) for key, value in found.items() if key != "topic_id"}
    return found


def refusals(found: Any) -> int:
    """The number of refusals in a skeleton."""
    if isinstance(found, list):
        return sum(map(refusals, found))
    if isinstance(found, dict):
        return sum(map(refusals, found.values()))
    return found in REFUSALS


def shape(found: Any) -> str:
    """A skeleton as text, without the numbers that differ between clients."""
    return re.sub(r"-\d+", "", repr(found))


# ---- the tests -------------------------------------------------------------------------------------------------------


def test_every_request_has_a_rule_and_a_row() -> None:
    """Every request that a client can send; `ApiVersions` needs no right and does not reach a broker, and those of a
    login need none. Kafka does not have those of experiments: they are tested in `tests/broker`."""
    with Cluster(brokers=1, config={ENABLE: True}) as cluster:
        routed = set(cluster._brokers[0].routes)
    assert set(RULES) == routed
    names = Names("t", "o", "m", "g", "x", lambda name: TopicId(name[0] * 21 + "A"))
    tested: set[type[Request]] = {type(case.request(names)) for case in CASES}
    others = {name for request in routed - tested for name in [request.__name__]}
    assert others == {
        *(AllocateProducerIdsRequest.__name__, WriteTxnMarkersRequest.__name__),
        *(SaslHandshakeRequest.__name__, SaslAuthenticateRequest.__name__),
        *(BrowseShareGroupRequest.__name__, TxnShareAcknowledgeRequest.__name__, EndShareTransactionRequest.__name__),
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rights_make_a_difference(case: Case, shareq_answers: Callable[[Client], Any]) -> None:
    """Without any right something is refused, or hidden, and each of several rights is needed."""
    of_case = {client.lacks: shareq_answers(client) for client in CLIENTS if client.case == case}
    if not case.hides:
        assert refusals(of_case[-1])
    for lacks, answer in of_case.items():
        assert lacks is None or case.name in SAME_WITHOUT or shape(answer) != shape(of_case[None])


@pytest.mark.kafka
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.title)
def test_an_answer_is_that_of_kafka(
    client: Client, shareq_answers: Callable[[Client], Any], kafka_answers: Callable[[Client], Any]
) -> None:
    ours, apache = shareq_answers(client), kafka_answers(client)
    if client.case.name in SHOWS_IDS:
        ours, apache = without_ids(ours), without_ids(apache)
    assert ours == apache
