"""Progress: records that can be delivered are delivered, whatever changes in the log, the leaders and other members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from shareq import Producer, ShareConsumer
from shareq.client.message import Message
from shareq.model.events import HeartbeatReceived, ShareSessionClosed, ShareSessionOpened
from shareq.model.states import AcknowledgeType
from tests.broker.stage import Stage

pytestmark = pytest.mark.every_persister

EARLIEST = {"share.auto.offset.reset": "earliest"}
LOCKS_100 = {**EARLIEST, "share.partition.max.record.locks": 100}
ACCEPT, RENEW = int(AcknowledgeType.ACCEPT), int(AcknowledgeType.RENEW)


def offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


Make = Callable[..., Stage]


@pytest.fixture
def make_stage() -> Iterator[Make]:
    """Stages with the topic "t"."""
    with ExitStack() as stack:

        def make(*, partitions: int = 1, brokers: int = 1, topic: dict[str, Any] | None = None, **given: Any) -> Stage:
            topics = {"t": {"partitions": partitions, "configs": topic}}
            made = Stage(topics=topics, brokers=brokers, seed=1, **given)
            stack.enter_context(made.cluster)
            return made

        yield make


def produce(stage: Stage, *batches: int, partition: int = 0) -> None:
    """Produce record batches with the given numbers of records."""
    producer = Producer({**stage.conf, "linger.ms": 1000, "batch.size": 1_000_000})
    for records in batches:
        for _ in range(records):
            producer.produce("t", b"v", partition=partition)
        assert producer.flush(60) == 0
    producer.close()


def coordinator(stage: Stage) -> int:
    """Id of the broker that received the last heartbeat."""
    beats = [entry for entry in stage.cluster.journal if isinstance(entry.event, HeartbeatReceived)]
    return beats[-1].broker_id


def work(stage: Stage, consumer: ShareConsumer, polls: int, *, keep: int | None = None, busy_ms: int = 0) -> list[int]:
    """Poll `polls` times, accept every record but renew offset `keep`; the delivered offsets."""
    found = []
    for _ in range(polls):
        for message in consumer.poll(1):
            found.append(offset_of(message))
            consumer.acknowledge(message, RENEW if found[-1] == keep else ACCEPT)
        consumer.commit_sync(10)
        stage.cluster.advance(busy_ms)
    return found


@pytest.mark.parametrize("restart", [False, True], ids=["", "after a restart"])
def test_progress_after_records_before_a_full_finished_window_are_deleted(make_stage: Make, restart: bool) -> None:
    stage = make_stage(group=LOCKS_100)
    produce(stage, 1, 149)
    consumer = stage.consumer(**{"share.acknowledgement.mode": "explicit"})
    assert work(stage, consumer, 10, keep=0)[:150] == list(range(150))
    stage.admin.delete_records({("t", 0): 1})
    stage.cluster.crash(consumer)
    stage.cluster.advance(60_000)
    produce(stage, 20)
    if restart:
        stage.cluster.stop_broker(0)
        stage.cluster.start_broker(0)
    fresh = stage.consumer()
    assert sum(len(fresh.poll(5)) for _ in range(30)) == 20


@pytest.mark.parametrize(("locks", "batch"), [(100, 50), (100, 150), (2000, 500)])
def test_progress_with_an_open_record_at_the_head_of_a_full_window_when_the_leader_dies(
    make_stage: Make, locks: int, batch: int
) -> None:
    stage = make_stage(group={**LOCKS_100, "share.partition.max.record.locks": locks}, brokers=3)
    produce(stage, 1, *[batch] * (locks // batch + 1))
    consumer = stage.consumer(**{"share.acknowledgement.mode": "explicit"})
    work(stage, consumer, 70, keep=0)
    stage.cluster.kill_broker(stage.cluster.image.topics["t"].partitions[0].leader)
    assert 0 in work(stage, consumer, 40)
    produce(stage, 20)
    end = stage.cluster.log("t", 0).high_watermark
    assert work(stage, consumer, 60)[-20:] == list(range(end - 20, end))


def test_progress_after_the_head_of_a_full_window_is_compacted_before_a_leader_change(make_stage: Make) -> None:
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0, "segment.ms": 60_000}
    stage = make_stage(group=LOCKS_100, brokers=3, topic=compacted)
    producer = Producer({**stage.conf, "linger.ms": 0})
    for key in ("open", *(f"key {n}" for n in range(99))):
        producer.produce("t", b"v", key=key, partition=0)
        assert producer.flush(60) == 0
    consumer = stage.consumer(**{"share.acknowledgement.mode": "explicit"})
    assert set(work(stage, consumer, 20, keep=0)) == set(range(100))
    work(stage, consumer, 14, keep=0, busy_ms=5000)
    new: list[int] = []
    for key in ("open", "last"):
        producer.produce("t", b"new", key=key, partition=0)
        assert producer.flush(60) == 0
        new.append(stage.cluster.log("t", 0).high_watermark - 1)
        work(stage, consumer, 80, keep=0, busy_ms=5000)
    stage.cluster.crash(consumer)
    stage.cluster.kill_broker(stage.cluster.image.topics["t"].partitions[0].leader)
    fresh = stage.consumer()
    assert [offset_of(message) for _ in range(60) for message in fresh.poll(5)] == new


@pytest.mark.without("control-records", "its own records take offsets, so that fewer records reach the offset")
def test_polls_wait_for_offsets_altered_beyond_the_log_end(make_stage: Make) -> None:
    """Polls wait as for a log without new records until the log reaches the offset."""
    stage = make_stage(group=EARLIEST)
    produce(stage, 5)
    stage.admin.alter_share_group_offsets("g", {("t", 0): 5000})
    consumer = stage.consumer()
    polled = [len(consumer.poll(1)) for _ in range(10)]
    assert polled == [0] * 10
    assert consumer.metrics()["fetch-total"] <= 25, "a fetch waits for fetch.wait.max.ms, 500"
    produce(stage, 4994)
    assert len(consumer.poll(1)) == 0
    produce(stage, 3)
    assert [message.offset() for message in consumer.poll(5)] == [5000, 5001]


def in_the_large_ring(*values: object) -> list[Any]:
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


# The rule is the leader's: `tests/leader/test_share_leader_sessions.py` has every number of partitions.
@pytest.mark.parametrize("partitions", [3, 5, *in_the_large_ring(1, 2, 4, 6, 8, 12)])
@pytest.mark.parametrize(
    "commits", ["none", "every third", *in_the_large_ring("all", "all but the first", "asynchronous")]
)
@pytest.mark.parametrize("members", [1, 2])
def test_every_partition_with_a_backlog_has_its_share(
    make_stage: Make, partitions: int, commits: str, members: int
) -> None:
    stage = make_stage(group=EARLIEST, partitions=partitions)
    rounds = 12 * members
    for partition in range(partitions):
        produce(stage, *[10] * (rounds * 2), partition=partition)
    consumers = [stage.consumer(**{"max.poll.records": 10}) for _ in range(members)]
    for consumer in consumers:
        consumer.poll(0.1)
    stage.cluster.advance(10_000)
    got: Counter[int] = Counter(dict.fromkeys(range(partitions), 0))
    even: Counter[int] = Counter()  # the polls of each partition if every member divided its polls evenly
    for consumer in consumers:
        assigned = [place.partition for place in consumer.assignment()]
        even.update({partition: 10 * rounds * partitions // members // len(assigned) for partition in assigned})
    for turn in range(rounds * partitions // members):
        for consumer in consumers:
            got.update([message.partition() or 0 for message in consumer.poll(1)])
            if commits == "asynchronous":
                consumer.commit_async()
            elif commits == "all" or (commits == "all but the first" and turn) or commits[-5:] == "third" * (turn % 3):
                consumer.commit_sync(5)
    assert all(got[partition] >= 0.8 * even[partition] for partition in range(partitions)), (got, even)


def test_sessions_of_crashed_clients_end_when_their_connections_are_idle(make_stage: Make) -> None:
    stage = make_stage(group=EARLIEST, config={"group.share.max.share.sessions": 3, "group.share.max.size": 3})
    for opened in range(3):
        consumer = stage.consumer()
        while sum(isinstance(entry.event, ShareSessionOpened) for entry in stage.cluster.journal) == opened:
            consumer.poll(1)
        stage.cluster.crash(consumer)
    stage.cluster.advance(60_000)
    produce(stage, 5)
    late = stage.consumer()
    assert sum(len(late.poll(1)) for _ in range(60)) == 0, "the existing sessions use up the limit"
    assert sum(len(late.poll(1)) for _ in range(700)) == 5


def test_a_connection_that_is_used_is_not_idle(make_stage: Make) -> None:
    """Records stay with a member that renews them for longer than connections.max.idle.ms."""
    stage = make_stage(group=EARLIEST, config={"connections.max.idle.ms": 20_000})
    produce(stage, 1)
    consumer = stage.consumer(**{"share.acknowledgement.mode": "explicit"})
    messages = consumer.poll(5)
    for _ in range(30):
        for message in messages:
            assert message.delivery_count() == 1
            consumer.acknowledge(message, RENEW)
        messages = consumer.poll(5)
    assert len(messages) == 1


def test_a_connection_with_an_open_request_is_not_idle(make_stage: Make) -> None:
    """A share fetch waits for longer than connections.max.idle.ms; its share session stays open. Two of the three
    leaders receive no heartbeats.
    """
    stage = make_stage(group=EARLIEST, brokers=3, partitions=3, config={"connections.max.idle.ms": 10_000})
    consumer = stage.consumer(**{"fetch.wait.max.ms": 25_000})
    assert len(consumer.poll(90)) == 0
    assert not stage.cluster.journal.select(ShareSessionClosed)
    produce(stage, 1)
    assert len(consumer.poll(5)) == 1


def test_two_members_with_fetch_min_bytes_receive_the_available_records(make_stage: Make) -> None:
    """Both fetch from all four partitions: one partition has fewer than fetch.min.bytes, all together have more."""
    stage = make_stage(group=EARLIEST, partitions=4, config={"group.share.assignors": "all_to_all"})
    conf = {"fetch.min.bytes": 2000, "fetch.wait.max.ms": 30_000}
    consumers = [stage.consumer(**conf) for _ in range(2)]
    for consumer, patience_s in zip(consumers, (35, 1), strict=True):  # the epochs of the two share sessions differ
        assert len(consumer.poll(patience_s)) == 0
    producer = Producer(stage.conf)
    for partition, size in ((1, 830), (0, 830), (2, 30), (3, 30), (1, 830), (3, 30)):
        producer.produce("t", b"x" * size, partition=partition)
        producer.flush(10)
    assert sorted(len(consumer.poll(0.5)) for consumer in consumers)[1] >= 5


def test_partitions_of_a_member_that_leaves_while_the_coordinator_moves_are_reassigned(make_stage: Make) -> None:
    """LeaveGroup goes to the former coordinator; the partitions move without waiting for the session timeout."""
    stage = make_stage(group=EARLIEST, partitions=2, brokers=3)
    stays, goes = stage.consumer(), stage.consumer()
    while not (len(stays.assignment()) == len(goes.assignment()) == 1):
        stays.poll(1)
        goes.poll(1)
    before = coordinator(stage)
    stage.cluster.stop_broker(before)
    stage.cluster.start_broker(before)
    goes.poll(10)
    assert coordinator(stage) != before
    stage.cluster.elect_preferred_leaders()
    goes.close()
    assert [member.member_id for member in stage.admin.describe_share_groups(["g"])["g"].members] == [stays.member_id()]
