"""An exception in one operation is reported, and touches no other one: raised in each place, by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq import Cluster
from shareq.broker import broker as broker_module
from shareq.broker.broker import Broker
from shareq.broker.cluster_runtime import CLEAN_INTERVAL_MS
from shareq.coordinator.group.deadlines import DeadlineKey, DeadlineKind
from shareq.coordinator.group_coordinator import _WHEN_DUE
from shareq.coordinator.share_group import leave
from shareq.leader.share_partition import SharePartition
from shareq.log.records import encode_batch, encode_coordinator_records
from shareq.log.results import ReadResult
from shareq.model.actor import ImageChanged
from shareq.model.errors import Errors
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.cluster import FindCoordinatorRequest
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import FetchRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.share_group import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from shareq.model.records import CoordinatorRecord
from shareq.model.workflow import Workflow
from tests.broker.requester import Requester

MEMBERS = [char * 22 for char in "abc"]


class Defect(Exception):
    """The exception that a test raises in an operation."""


@pytest.fixture
def failures() -> list[Exception]:
    return []


@pytest.fixture
def cluster(failures: list[Exception]) -> Iterator[Cluster]:
    """A cluster that reports exceptions and goes on, as a served one."""
    with Cluster(brokers=1, seed=3) as made:
        made.create_topic("orders", 3)
        made.configure_group("g", {"share.auto.offset.reset": "earliest"})
        made.loop.report_to(failures.append)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def produce(cluster: Cluster, requester: Requester, partition: int) -> None:
    part = ProduceRequest.Partition(index=partition, records=encode_batch([(None, b"v", (), cluster.now_ms)]))
    topic = ProduceRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=(part,))
    requester.ask(ProduceRequest(topics=(topic,)), 13)


def heartbeat(member: str, epoch: int = 0) -> ShareGroupHeartbeatRequest:
    return ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=("orders",) if epoch == 0 else None
    )


def join_all(cluster: Cluster, requester: Requester) -> None:
    """All members join; the coordinators are loaded."""
    requester.ask(FindCoordinatorRequest(coordinator_keys=("g",)), 6)
    cluster.advance(100)
    for member in MEMBERS:
        assert not requester.ask(heartbeat(member), 1).error_code
    cluster.advance(2000)


def members(requester: Requester) -> list[str]:
    (group,) = requester.ask(ShareGroupDescribeRequest(group_ids=("g",)), 1).groups
    return sorted(member.member_id for member in group.members)


def expire_with_defect(of: str, *, before_turn: bool) -> Callable[..., Workflow[None]]:
    """The expiry of a member, which raises for one of them."""

    def expire(context: Any, due: DeadlineKey) -> Workflow[None]:
        if due.member_id != of:
            yield from leave.expire(context, due)
            return
        if not before_turn:
            yield context.turn_when_due(due)
        raise Defect

    return expire


@pytest.mark.parametrize("before_turn", [True, False], ids=["before its turn", "in its turn"])
def test_members_due_in_one_tick_expire_although_one_expiry_raises(
    cluster: Cluster,
    requester: Requester,
    failures: list[Exception],
    monkeypatch: pytest.MonkeyPatch,
    before_turn: bool,
) -> None:
    join_all(cluster, requester)
    broken = expire_with_defect(MEMBERS[0], before_turn=before_turn)
    monkeypatch.setitem(_WHEN_DUE, DeadlineKind.SHARE_SESSION, broken)
    cluster.advance(60_000)
    assert members(requester) == MEMBERS[:1]
    assert [type(failure) for failure in failures] == [Defect]
    assert not requester.ask(heartbeat("d" * 22), 1).error_code, "the shard serves others"


def test_a_request_that_raises_in_its_turn_fails_alone(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    join_all(cluster, requester)

    def broken(*_: object) -> None:
        raise Defect

    with monkeypatch.context() as patch:
        patch.setattr("shareq.coordinator.share_group.heartbeat.encode", broken)
        refused = requester.ask(heartbeat("d" * 22), 1)
    assert refused.error_code is Errors.UNKNOWN_SERVER_ERROR
    assert [type(failure) for failure in failures] == [Defect]
    assert not requester.ask(heartbeat("e" * 22), 1).error_code


def test_records_that_cannot_be_encoded_fail_their_append_alone(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    join_all(cluster, requester)

    def broken(records: tuple[CoordinatorRecord, ...], *args: Any, **more: Any) -> bytes:
        if any(b"d" * 22 in record.key for record in records):
            raise Defect
        return encode_coordinator_records(records, *args, **more)

    monkeypatch.setattr(broker_module, "encode_coordinator_records", broken)
    refused = requester.ask(heartbeat("d" * 22), 1)
    assert refused.error_code, "the append has failed"
    assert [type(failure) for failure in failures] == [Defect]
    assert not requester.ask(heartbeat("e" * 22), 1).error_code


def test_locks_of_other_partitions_expire_although_one_expiry_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    join_all(cluster, requester)
    for partition in range(3):
        produce(cluster, requester, partition)
    parts = tuple(ShareFetchRequest.Partition(partition_index=index) for index in range(3))
    topic = ShareFetchRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=parts)

    def fetch(member: str) -> dict[int, int]:
        request = ShareFetchRequest(group_id="g", member_id=member, share_session_epoch=0, topics=(topic,))
        (found,) = requester.ask(request, 2).responses
        return {p.partition_index: len(p.acquired_records) for p in found.partitions}

    held: Counter[int] = Counter()
    for _ in range(10):  # the share-partitions are initialized and loaded
        held.update(fetch(MEMBERS[0]))
        cluster.advance(100)
    assert held == {0: 1, 1: 1, 2: 1}
    real = SharePartition.expire
    raised: list[SharePartition] = []

    def broken(self: SharePartition, *args: Any) -> Any:
        if not raised:
            raised.append(self)
            raise Defect
        return real(self, *args)

    monkeypatch.setattr(SharePartition, "expire", broken)
    cluster.advance(40_000)
    assert [type(failure) for failure in failures] == [Defect]
    assert sorted(fetch(MEMBERS[1]).values()) == [0, 1, 1]


def test_other_logs_are_cleaned_although_one_raises_and_again_later(
    cluster: Cluster, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned: Counter[int] = Counter()
    for partition in range(3):
        log = cluster.log("orders", partition)

        def clean(now_ms: int, partition: int = partition) -> int:
            cleaned[partition] += 1
            if partition == 0:
                raise Defect
            return now_ms

        monkeypatch.setattr(log, "clean", clean)
    cluster.advance(3 * CLEAN_INTERVAL_MS)
    assert cleaned == {0: 3, 1: 3, 2: 3}
    assert [type(failure) for failure in failures] == [Defect] * 3


def test_other_brokers_clean_by_groups_although_one_raises(
    failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    with Cluster(brokers=2, seed=3) as cluster:
        cluster.loop.report_to(failures.append)

        def clean(broker: Broker) -> None:
            asked.append(broker.broker_id)
            if broker.broker_id == 0:
                raise Defect

        monkeypatch.setattr(Broker, "clean_by_groups", clean)
        cluster.clean_logs()
        cluster.advance(1)
    assert asked == [0, 1]
    assert [type(failure) for failure in failures] == [Defect]


def test_other_fetches_end_although_one_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(partition: int) -> int:
        part = FetchRequest.Partition(partition=partition, fetch_offset=0)
        topic = FetchRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=(part,))
        return requester.send(FetchRequest(topics=(topic,), max_wait_ms=500), 18)

    broken, fine = fetch(0), fetch(1)
    data = cluster._brokers[0]._data
    real = data.read

    def read(at: TopicIdPartition, *args: Any, **more: Any) -> ReadResult:
        if at.partition == 0:
            raise Defect
        found: ReadResult = real(at, *args, **more)
        return found

    monkeypatch.setattr(data, "read", read)
    cluster.advance(500)
    assert (requester.answered(broken), requester.answered(fine)) == (False, True)
    assert [type(failure) for failure in failures] == [Defect]


def test_every_actor_gets_the_image_although_one_raises(
    cluster: Cluster, requester: Requester, failures: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = cluster._brokers[0]._hosts
    received: list[str] = []
    for index, host in enumerate(hosts):
        real = host.actor.handle

        def handle(message: Any, now_ms: int, real: Any = real, name: str = host.name, index: int = index) -> Any:
            if isinstance(message, ImageChanged):
                received.append(name)
                if index % 2 == 0:
                    raise Defect
            return real(message, now_ms)

        monkeypatch.setattr(host, "actor", Wrapped(host.actor, handle))
    cluster.create_topic("more", 1)
    assert received == [host.name for host in hosts]
    assert len(failures) == (len(hosts) + 1) // 2


class Wrapped:
    """An actor with another `handle`."""

    def __init__(self, actor: Any, handle: Any) -> None:
        self._actor = actor
        self.handle = handle

    @property
    def wake_at_ms(self) -> int | None:
        found: int | None = self._actor.wake_at_ms
        return found
