"""One of two brokers is down: the results have the other's answers, and an error for the rest. BEHAVIOUR.md, 3.2."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from shareq import Admin, Cluster, TopicPartition
from shareq.admin.core import AdminCore, Operation, OutOfTime, Pause, Send
from shareq.client.config import ClientConfig
from shareq.model.actor import Answer, Call, Tick
from shareq.model.errors import Errors, KafkaError, KafkaException
from shareq.model.messages.cluster import (
    DeleteGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)
from shareq.model.messages.data import DeleteRecordsResponse, ListOffsetsResponse
from tests.admin.stage import REQUEST, RESPONSE, Stage
from tests.admin.test_admin import admin_on
from tests.client.fake import Fake

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TIMED_OUT = KafkaError._TIMED_OUT
LIMIT_S = 10


@pytest.fixture(params=["disconnected", "silent"])
def away(request: pytest.FixtureRequest) -> Errors | None:
    """The error of a request to the broker that is down; None: no answer."""
    return Errors.NETWORK_EXCEPTION if request.param == "disconnected" else None


def of_two(fake: Fake, node: int, request: MetadataRequest) -> MetadataResponse:
    known = Fake.metadata(fake, node, request)
    brokers = tuple(MetadataResponse.Broker(node_id=at, host="h", port=at) for at in (1, 2))
    return MetadataResponse(brokers=brokers, cluster_id="c", controller_id=1, topics=known.topics)


def test_list_groups(away: Errors | None) -> None:
    group = ListGroupsResponse.Group(group_id="g", protocol_type="share", group_state="Empty", group_type="share")
    here = ListGroupsResponse(groups=(group,))
    fake, admin = admin_on(Metadata=of_two, ListGroups=lambda f, node, r: here if node == 1 else away)
    listed = admin.list_groups(timeout=5)
    assert (list(listed), list(listed.errors), fake.now_ms) == (["g"], [2], 1_005_000)
    assert listed.errors[2] == (TIMED_OUT if away is None else away)
    assert "broker 2" in repr(listed)
    with pytest.raises(KafkaException):
        listed.check()


def test_list_groups_has_the_error_of_a_broker_that_refuses() -> None:
    refusal = ListGroupsResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED)
    _, admin = admin_on(Metadata=of_two, ListGroups=lambda f, node, r: ListGroupsResponse() if node == 1 else refusal)
    listed = admin.list_groups()
    assert (dict(listed), listed.errors) == ({}, {2: KafkaError(Errors.CLUSTER_AUTHORIZATION_FAILED)})


@pytest.mark.parametrize("call", ["list_offsets", "delete_records"])
def test_offsets_of_unreachable_leaders_have_errors(away: Errors | None, call: str) -> None:
    """Partition 0 is led by broker 1, partition 1 by broker 2."""

    def answer(fake: Fake, node: int, request: Any) -> Any:
        if node == 2:
            return away
        kind: Any = ListOffsetsResponse if call == "list_offsets" else DeleteRecordsResponse
        field = {"offset": 7} if call == "list_offsets" else {"low_watermark": 7}
        return kind(topics=(kind.Topic(name="t", partitions=(kind.Partition(partition_index=0, **field),)),))

    fake, admin = admin_on(Metadata=of_two, ListOffsets=answer, DeleteRecords=answer)
    asked = {T0: "latest", T1: "latest"} if call == "list_offsets" else {T0: 7, T1: 7}
    found = getattr(admin, call)(asked, timeout=5)
    assert (found[T0].error, found[T1].error, fake.now_ms) == (None, TIMED_OUT, 1_005_000)
    assert 7 in (getattr(found[T0], "offset", None), getattr(found[T0], "low_watermark", None))


def test_groups_of_unreachable_coordinators_have_errors(away: Errors | None) -> None:
    def find(fake: Fake, node: int, request: Any) -> Any:
        at = {"here": 1, "away": 2}
        found = [FindCoordinatorResponse.Coordinator(key=key, node_id=at[key]) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=tuple(found))

    done = DeleteGroupsResponse(results=(DeleteGroupsResponse.Result(group_id="here"),))
    fake, admin = admin_on(DeleteGroups=lambda f, node, r: done if node == 1 else away)
    fake.answers[FindCoordinatorRequest] = find
    results = admin.delete_share_groups(["away", "here"], timeout=5)
    assert {name: row.error for name, row in results.items()} == {"away": TIMED_OUT, "here": None}


def test_list_groups_raises_if_no_broker_answers() -> None:
    _, admin = admin_on(Metadata=of_two, ListGroups=lambda *_: Errors.NETWORK_EXCEPTION)
    with pytest.raises(KafkaException, match="NETWORK_EXCEPTION") as raised:
        admin.list_groups(timeout=5)
    assert raised.value.error == TIMED_OUT


# ---- the core --------------------------------------------------------------------------------------------------------


def test_an_operation_may_return_a_partial_result_at_its_deadline() -> None:
    core = AdminCore(ClientConfig({"bootstrap.servers": "x"}, ()), Stage().core.backoff._rng)

    def operation() -> Operation[Any]:
        try:
            yield [Send(1, REQUEST), Send(2, REQUEST)]
        except OutOfTime as late:
            return [reply and reply.response for reply in late.replies]

    task = core.start(operation(), 1000, 0)
    first, _ = (effect for effect in core.calls.take_effects() if isinstance(effect, Call))
    core.handle(Answer(first.id, RESPONSE), 1)
    assert not task.done
    core.handle(Tick(), 1000)
    assert task.result() == [RESPONSE, None]


@pytest.mark.parametrize("again", [[Send(1, REQUEST)], Pause(5)], ids=["a request", "a pause"])
def test_an_operation_past_its_deadline_may_send_no_request(again: Any) -> None:
    stage = Stage()

    def operation() -> Operation[None]:
        try:
            yield Pause(5000)
        except OutOfTime:
            yield again

    with pytest.raises(KafkaException, match="timed out") as raised:
        stage.run(operation(), lambda node, request: None, timeout_ms=1000)
    assert raised.value.error == TIMED_OUT


# ---- through the public API ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_over_tcp() -> None:
    """Broker 1 does not listen on its port, and metadata still lists it as alive: the operations last until their time
    limit, which is long enough for the other broker on a busy machine."""
    with Cluster(brokers=2, clock="wall") as cluster, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        cluster.create_topic("t", partitions=2, replication_factor=1)
        topic = cluster.image.topics["t"]
        leaders = [partition.leader for partition in topic.partitions]
        assert sorted(leaders) == [0, 1]
        with cluster.serve() as server:
            first = server.bootstrap_servers.split(",")[0]
            cluster.loop.enter(lambda: cluster._runtime.readdress({1: unused.getsockname()}, {}))
            with Admin({"bootstrap.servers": first}) as admin:
                listed = admin.list_groups(timeout=LIMIT_S)
                assert list(listed.errors) == [1]
                offsets = admin.list_offsets({T0: "latest", T1: "latest"}, timeout=LIMIT_S)
    failed = {leaders[place.partition]: row.error for place, row in offsets.items()}
    assert failed == {0: None, 1: TIMED_OUT}
