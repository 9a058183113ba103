"""An exception in one operation of an actor touches no other one: of groups, transactions, state, letters, metadata."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from shareq import Cluster
from shareq.broker.controller import Controller
from shareq.broker.dead_letters import source_reader
from shareq.broker.dead_letters import writer as writer_module
from shareq.broker.dead_letters.writer import DeadLetterWriter
from shareq.coordinator import group_coordinator
from shareq.coordinator.consumer_group import leave as consumer_leave
from shareq.coordinator.consumer_group import refusal
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.share_state.rules import RPCS
from shareq.coordinator.transactions import housekeeping
from shareq.coordinator.transactions.decisions import abort
from shareq.leader.share_partition import SharePartition
from shareq.model.actor import (
    Answer,
    Call,
    DeadLetter,
    Failed,
    ImageChanged,
    Respond,
    SendDeadLetters,
    ShardElected,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC, SharePartitionKey
from shareq.model.messages.classic_group import DescribeGroupsRequest
from shareq.model.messages.cluster import FindCoordinatorRequest
from shareq.model.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.share_state import ReadShareGroupStateRequest
from shareq.model.messages.topics import CreateTopicsRequest
from shareq.model.messages.transactions import InitProducerIdRequest
from shareq.model.workflow import Pauses, Workflow
from shareq.persister import state_topic
from tests.broker.requester import Requester
from tests.broker.test_classic_groups import ClusterMembers
from tests.broker.test_isolation import MEMBERS, Defect, Wrapped, cluster, failures, join_all, produce, requester
from tests.broker.transactor import Transactor
from tests.persister.stage import Stage as PersisterStage
from tests.persister.stage import answer_to, codes, write
from tests.persister.stage import cluster as state_image

__all__ = ["cluster", "failures", "requester"]

LONG_EXPRESSION = "orders|" + "x" * 40_000


def kinds(found: list[Exception]) -> list[type]:
    return [type(failure) for failure in found]


# ---- groups ----------------------------------------------------------------------------------------------------------


def consumer_heartbeat(member: str, **given: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=0, rebalance_timeout_ms=60_000, topic_partitions=(), **given
    )


def consumers(requester: Requester) -> list[str]:
    (group,) = requester.ask(ConsumerGroupDescribeRequest(group_ids=("g",)), 1).groups
    return sorted(member.member_id for member in group.members)


def join_consumers(cluster: Cluster, requester: Requester, **first: Any) -> None:
    """All join in one millisecond. `first`: the subscription of the first one."""
    requester.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6)
    cluster.advance(100)
    topics = {"subscribed_topic_names": ("orders",)}
    for member in MEMBERS:
        subscription = first if first and member == MEMBERS[0] else topics
        assert not requester.ask(consumer_heartbeat(member, **subscription), 1).error_code
    assert consumers(requester) == MEMBERS


def test_members_due_with_that_of_a_long_expression_expire_although_its_evaluation_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A string in the key of a record has at most 32,767 bytes: the tombstone of this expression cannot be encoded."""
    monkeypatch.setattr(refusal, "LONGEST_EXPRESSION_BYTES", 1 << 20)
    join_consumers(cluster, requester, subscribed_topic_regex=LONG_EXPRESSION)
    failures.clear()  # of the heartbeat that resolves the expression
    cluster.advance(60_000)
    assert consumers(requester) == MEMBERS[:1]
    assert kinds(failures) == [struct.error]


def test_a_long_expression_is_refused(cluster: Cluster, requester: Requester) -> None:
    join_consumers(cluster, requester, subscribed_topic_regex="x" * 32_767)
    refused = requester.ask(consumer_heartbeat("d" * 22, subscribed_topic_regex="x" * 32_768), 1)
    assert refused.error_code is Errors.INVALID_REGULAR_EXPRESSION
    assert refused.error_message == "SubscribedTopicRegex is longer than 32767 bytes."
    cluster.advance(60_000)
    assert consumers(requester) == []


@pytest.mark.parametrize("before_turn", [True, False], ids=["before its turn", "in its turn"])
def test_members_of_a_consumer_group_expire_although_one_expiry_raises(
    cluster: Cluster,
    requester: Requester,
    failures: list[Exception],
    monkeypatch: pytest.MonkeyPatch,
    before_turn: bool,
) -> None:
    join_consumers(cluster, requester)

    def expire(context: Any, due: DeadlineKey) -> Workflow[None]:
        if due.member_id != MEMBERS[0]:
            yield from consumer_leave.expire(context, due)
            return
        if not before_turn:
            yield context.turn_when_due(due)
        raise Defect

    monkeypatch.setitem(group_coordinator._WHEN_DUE, DeadlineKind.CONSUMER_SESSION, expire)
    cluster.advance(60_000)
    assert consumers(requester) == MEMBERS[:1]
    assert kinds(failures) == [Defect]


def test_members_of_a_classic_group_expire_although_one_expiry_raises(
    cluster: Cluster, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    members = ClusterMembers(cluster)
    for name in "AB":
        members.join_as_new(name)
    cluster.advance(6000)
    for name, given in (("A", {"A": "0", "B": "1"}), ("B", {})):
        members.response_to(name)
        members.sync(name, given)
    assert members.state() == "Stable"
    first = members.ids["A"]
    real = group_coordinator._WHEN_DUE[DeadlineKind.CLASSIC_SESSION]

    def expire(context: Any, due: DeadlineKey) -> Workflow[None]:
        if due.member_id == first:
            raise Defect
        yield from real(context, due)

    monkeypatch.setitem(group_coordinator._WHEN_DUE, DeadlineKind.CLASSIC_SESSION, expire)
    cluster.advance(15_000)
    assert kinds(failures) == [Defect]
    (described,) = members.requester.ask(DescribeGroupsRequest(groups=("g",)), 5).groups
    assert [member.member_id for member in described.members] == [first]


# ---- transactions ----------------------------------------------------------------------------------------------------


def test_transactions_time_out_although_the_abort_of_one_raises(
    cluster: Cluster, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [Transactor(cluster, name, timeout_ms=10_000) for name in ("t-1", "t-2")]
    for number, transactor in enumerate(made):
        assert not transactor.begin()
        assert not transactor.write("x", partition=number)

    def broken(context: Any, endings: Any, known: Any, shard: Any) -> Any:
        if known.transactional_id == "t-1":
            raise Defect
        return abort(context, endings, known, shard)

    monkeypatch.setattr(housekeeping, "abort", broken)
    cluster.advance(30_000)
    assert set(kinds(failures)) == {Defect}
    ends = [cluster.log("orders", number).last_stable_offset for number in range(2)]
    assert ends == [0, 2], "the second transaction has its marker"
    assert not Transactor(cluster, "t-3").begin()


def test_a_transactional_request_that_raises_fails_alone(
    cluster: Cluster, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not Transactor(cluster, "t-1").begin()
    with monkeypatch.context() as patch:
        patch.setattr("shareq.coordinator.transactions.context.TransactionContext.partition_of", _raise)
        other = Requester(cluster)
        call = other.send(InitProducerIdRequest(transactional_id="t-2", transaction_timeout_ms=1000), 5, 0)
        cluster.advance(1000)
    assert kinds(failures) == [Defect]
    assert other.answers[call].error is Errors.UNKNOWN_SERVER_ERROR
    assert not Transactor(cluster, "t-3").begin()


def _raise(*_: Any, **__: Any) -> Any:
    raise Defect


# ---- the state of share-partitions -----------------------------------------------------------------------------------


def share_fetch(cluster: Cluster, member: str, *partitions: int, **given: Any) -> ShareFetchRequest:
    parts = tuple(ShareFetchRequest.Partition(partition_index=index) for index in partitions)
    topic = ShareFetchRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=parts)
    return ShareFetchRequest(group_id="g", member_id=member, share_session_epoch=0, topics=(topic,), **given)


def acquired(response: Any) -> dict[int, int]:
    return {p.partition_index: len(p.acquired_records) for topic in response.responses for p in topic.partitions}


def test_other_share_partitions_are_served_although_one_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share coordinator answers the one with an error, and its shards serve the next request."""
    join_all(cluster, requester)
    parts = tuple(ReadShareGroupStateRequest.Partition(partition=index, leader_epoch=0) for index in range(3))
    topic = ReadShareGroupStateRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=parts)
    request = ReadShareGroupStateRequest(group_id="g", topics=(topic,))
    sound = codes(requester.ask(request, 0))
    real = RPCS[ReadShareGroupStateRequest]

    def broken(key: SharePartitionKey, *args: Any) -> Any:
        if key.partition == 1:
            raise Defect
        return real.compute(key, *args)

    with monkeypatch.context() as patch:
        patch.setitem(RPCS, ReadShareGroupStateRequest, real._replace(compute=broken))
        answered = codes(requester.ask(request, 0))
    assert answered == [sound[0], (1, Errors.UNKNOWN_SERVER_ERROR), sound[2]]
    assert kinds(failures) == [Defect]
    assert codes(requester.ask(request, 0)) == sound


def test_entries_of_other_groups_are_sent_although_one_request_cannot_be_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = PersisterStage(state_image(1))
    first = stage.ask(write(1, group="a"))
    under_way = stage.only()
    waiting = [stage.ask(write(1, group=group)) for group in ("broken", "sound")]
    real = state_topic._joined

    def joined(parts: Any) -> Any:
        if parts[0].key.group_id == "broken":
            raise Defect
        return real(parts)

    with monkeypatch.context() as patch:
        patch.setattr(state_topic, "_joined", joined)
        done = answers_of(stage, under_way)
    assert [type(each.error) for each in done if isinstance(each, Failed)] == [Defect]
    assert {each.id for each in done if isinstance(each, Respond)} == {first, waiting[0]}
    (call,) = [each for each in done if isinstance(each, Call)]
    stage.reply(call)
    assert codes(stage.answers[waiting[1]]) == [(1, Errors.NONE)]
    later = stage.ask(write(1, group="broken"))
    stage.reply(stage.only())
    assert codes(stage.answers[later]) == [(1, Errors.NONE)], "the channel is free"


def answers_of(stage: PersisterStage, call: Call) -> list[Any]:
    """The effects of the answer to a call, of which some are failures."""
    done = stage.persister.handle(Answer(call.id, answer_to(call.request)), stage.now_ms)
    return list(done)


# ---- fetches ---------------------------------------------------------------------------------------------------------


def test_other_members_fetch_although_the_fetch_of_one_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fetch locks are free, and it is answered with an error."""
    join_all(cluster, requester)
    for member in MEMBERS:
        requester.ask(share_fetch(cluster, member, 0, 1, 2), 2)
    cluster.advance(500)
    waiting = {
        member: requester.send(
            share_fetch(cluster, member, 0, max_wait_ms=5000, min_bytes=1, max_records=1, batch_size=1), 2
        )
        for member in MEMBERS
    }
    real = SharePartition.acquire

    def broken(self: SharePartition, *args: Any, member_id: str, **more: Any) -> Any:
        if member_id == MEMBERS[0]:
            raise Defect
        return real(self, *args, member_id=member_id, **more)

    monkeypatch.setattr(SharePartition, "acquire", broken)
    for _ in MEMBERS[1:]:
        produce(cluster, requester, 0)
        cluster.advance(100)
    assert kinds(failures) == [Defect]
    assert [acquired(requester.response(waiting[member])) for member in MEMBERS[1:]] == [{0: 1}, {0: 1}]
    (topic,) = requester.response(waiting[MEMBERS[0]]).responses
    assert [part.error_code for part in topic.partitions] == [Errors.UNKNOWN_SERVER_ERROR]


# ---- metadata --------------------------------------------------------------------------------------------------------


def test_topics_are_created_although_the_controller_raises_for_one_request(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Controller.create_topic

    def broken(self: Controller, name: str, *args: Any, **more: Any) -> Any:
        if name == "broken":
            raise Defect
        return real(self, name, *args, **more)

    monkeypatch.setattr(Controller, "create_topic", broken)

    def create(*names: str) -> int:
        topics = tuple(CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1) for name in names)
        return requester.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)

    create("before", "broken")
    sound = create("sound")
    cluster.advance(100)
    assert kinds(failures) == [Defect]
    assert not requester.response(sound).topics[0].error_code
    assert {"before", "sound"} <= cluster.image.topics.keys(), "what was created before is in the image"


@pytest.mark.parametrize("broken", ["group-coordinator", "share-coordinator", "transaction-coordinator"])
def test_other_shards_are_elected_although_one_coordinator_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    elected: set[str] = set()
    for host in cluster._brokers[0]._hosts:
        name = host.name.rpartition("/")[2]

        def handle(message: Any, now_ms: int, real: Any = host.actor.handle, name: str = name) -> Any:
            if isinstance(message, ShardElected):
                if name == broken:
                    raise Defect
                elected.add(name)
            return real(message, now_ms)

        monkeypatch.setattr(host, "actor", Wrapped(host.actor, handle))
    cluster.loop.enter(lambda: create_internal_topics(cluster))
    assert set(kinds(failures)) == {Defect}
    assert elected == {"group-coordinator", "share-coordinator", "transaction-coordinator"} - {broken}


def create_internal_topics(cluster: Cluster) -> None:
    controller = cluster._runtime.controller
    with controller.together():
        for topic in (GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTION_STATE_TOPIC):
            controller.create_internal_topic(topic)


# ---- dead letters ----------------------------------------------------------------------------------------------------


def test_other_lanes_write_their_letters_although_one_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(brokers=1, seed=3) as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("dlq.orders", configs={"errors.deadletterqueue.group.enable": "true"})
        cluster.configure_group("g", {"errors.deadletterqueue.topic.name": "dlq.orders"})
        topic_id = cluster.image.topics["orders"].topic_id
        writer = DeadLetterWriter(random.Random(1), traced=False)
        writer.handle(ImageChanged(cluster.image), 0)

        def read_source(lane: Any) -> Any:
            if lane.key.partition == 0:
                raise Defect
            return source_reader.read_source(lane)

        with monkeypatch.context() as patch:
            patch.setattr(writer_module, "read_source", read_source)
            effects = []
            for index in range(2):
                letters = (DeadLetter(0, 1, 1, rejected=True),)
                sent = SendDeadLetters(index, SharePartitionKey("g", topic_id, index), "orders", 0, letters)
                effects.append(writer.handle(sent, 0))
            again = writer.handle(ImageChanged(cluster.image), 0)
        assert [type(effect) for effect in effects[0]] == [Failed]
        assert not any(isinstance(effect, Failed) for effect in effects[1])
        assert effects[1], "the second lane is at work"
        assert [type(effect) for effect in again] == [Failed], "the first one tries again, and waits"
        due_ms = writer.wake_at_ms
        assert due_ms is not None
        assert writer.handle(Tick(), due_ms), "without the defect it goes on"


def test_a_pause_ends_although_another_raises() -> None:
    class Waiting:
        done = False

        def __init__(self, *, broken: bool) -> None:
            self.broken, self.resumed = broken, False

        def resume(self, _: object) -> None:
            if self.broken:
                raise Defect
            self.resumed = True

    pauses = Pauses()
    waiting = [Waiting(broken=True), Waiting(broken=False)]
    for waiter in waiting:
        pauses.begin(10, waiter)  # type: ignore[arg-type]    # not a task
    with pytest.raises(Defect):
        pauses.end_all()
    assert waiting[1].resumed
