"""Fetch: errors, limits, waiting; and sessions, whose responses have changed partitions only.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from shareq.broker import Cluster
from shareq.broker.fetch_sessions import EVICTION_MS, FetchSessions, next_epoch
from shareq.log.records import decode, encode_batch
from shareq.log.results import ReadResult
from shareq.model.errors import Errors
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.image import SPARE_SESSION_PARTITIONS, ClusterImage
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.fetch import UNKNOWN_LEADER, FetchRequest, FetchResponse
from shareq.model.messages.topics import DeleteTopicsRequest
from tests.broker.requester import Requester
from tests.broker.transactor import Transactor

NEWEST = 18
NOWHERE = TopicId("x" * 22)
BATCH = 170
"""Size of a batch that `produce` writes, in bytes."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1, seed=3) as made:
        made.create_topic("orders", 3)
        yield made


@pytest.fixture
def requester(cluster: Cluster) -> Requester:
    return Requester(cluster)


def topic_id(cluster: Cluster, name: str = "orders") -> TopicId:
    return cluster.image.topics[name].topic_id


def produce(cluster: Cluster, partition: int = 0, **options: Any) -> None:
    """Produce one batch of one record, BATCH bytes in all."""
    data = encode_batch([(None, b"x" * 100, (), cluster.now_ms)], **options)
    assert len(data) == BATCH
    part = ProduceRequest.Partition(index=partition, records=data)
    topic = ProduceRequest.Topic(topic_id=topic_id(cluster), partitions=(part,))
    request = ProduceRequest(transactional_id="t" if options else None, topics=(topic,))
    response = Requester(cluster).ask(request, 13)
    assert not response.responses[0].partitions[0].error_code


def fetch(cluster: Cluster, *parts: tuple[int, int], ids: TopicId | None = None, **limits: Any) -> FetchRequest:
    """A fetch of (partition, offset) pairs, by default with max_wait_ms 0."""
    partitions = tuple(FetchRequest.Partition(partition=index, fetch_offset=offset) for index, offset in parts)
    topics = (FetchRequest.Topic(topic_id=ids or topic_id(cluster), partitions=partitions),) if parts else ()
    return FetchRequest(**{"max_wait_ms": 0, "topics": topics, **limits})


def one(response: FetchResponse) -> FetchResponse.Partition:
    ((partition,),) = (topic.partitions for topic in response.responses)
    return partition


def offsets(response: FetchResponse) -> dict[int, list[int]]:
    """Base offsets of the batches of each partition in the response."""
    return {
        part.partition_index: [batch.base_offset for batch in part.records]
        for topic in response.responses
        for part in topic.partitions
    }


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"ids": NOWHERE}, Errors.UNKNOWN_TOPIC_ID, id="2.7 unknown id"),
        pytest.param({"partition": 3}, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="2.7 unknown partition"),
        pytest.param({"partition": -1}, Errors.UNKNOWN_TOPIC_OR_PARTITION, id="2.7 negative partition"),
        pytest.param({"fetch_offset": 1}, Errors.OFFSET_OUT_OF_RANGE, id="2.7 below the log start"),
        pytest.param({"fetch_offset": 4}, Errors.OFFSET_OUT_OF_RANGE, id="2.7 above the log end"),
        pytest.param({"fetch_offset": -1}, Errors.OFFSET_OUT_OF_RANGE, id="2.7 negative offset"),
        pytest.param({"current_leader_epoch": 1}, Errors.UNKNOWN_LEADER_EPOCH, id="2.7 a later leader epoch"),
    ],
)
def test_a_fetch_with_an_error_does_not_wait(
    cluster: Cluster, requester: Requester, fields: dict[str, Any], error: Errors
) -> None:
    for _ in range(3):
        produce(cluster)
    cluster.log("orders", 0).delete_records(2)
    ids = fields.pop("ids", topic_id(cluster))
    part = FetchRequest.Partition(**{"partition": 0, "fetch_offset": 2, **fields})
    request = FetchRequest(max_wait_ms=500, topics=(FetchRequest.Topic(topic_id=ids, partitions=(part,)),))
    before = cluster.now_ms
    found = one(requester.ask(request, NEWEST))
    assert (found.error_code, cluster.now_ms) == (error, before)
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (-1, -1, -1)
    assert (found.records, found.current_leader) == ((), UNKNOWN_LEADER)


def test_an_error_in_one_partition_leaves_the_others_readable(cluster: Cluster, requester: Requester) -> None:
    produce(cluster, 1)
    response = requester.ask(fetch(cluster, (0, 7), (1, 0), max_wait_ms=500, min_bytes=10_000), NEWEST)
    errors = [part.error_code for part in response.responses[0].partitions]
    assert errors == [Errors.OFFSET_OUT_OF_RANGE, Errors.NONE]
    assert offsets(response) == {0: [], 1: [0]}


def test_an_unknown_isolation_level_is_an_unknown_server_error(cluster: Cluster, requester: Requester) -> None:
    response = requester.ask(fetch(cluster, (0, 0), isolation_level=2), NEWEST)
    assert response == FetchResponse(error_code=Errors.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize(
    ("replication_factor", "epoch", "error"),
    [
        pytest.param(2, 0, Errors.FENCED_LEADER_EPOCH, id="a replica with the former epoch"),
        pytest.param(2, -1, Errors.NOT_LEADER_OR_FOLLOWER, id="a replica without an epoch"),
        pytest.param(2, 1, Errors.NOT_LEADER_OR_FOLLOWER, id="a replica with the current epoch"),
        pytest.param(2, 2, Errors.UNKNOWN_LEADER_EPOCH, id="a replica with a later epoch"),
        pytest.param(1, 0, Errors.NOT_LEADER_OR_FOLLOWER, id="a broker that is no replica"),
    ],
)
def test_not_leader_response_has_the_current_leader(replication_factor: int, epoch: int, error: Errors) -> None:
    with Cluster(brokers=3, seed=1) as cluster:
        cluster.create_topic("orders", replication_factor=replication_factor)
        first = cluster.image.topics["orders"].partitions[0].replicas[0]
        node = first if replication_factor == 2 else (first + 1) % 3
        if replication_factor == 2:
            cluster.kill_broker(first)
            cluster.start_broker(first)
        part = FetchRequest.Partition(partition=0, fetch_offset=0, current_leader_epoch=epoch)
        topic = FetchRequest.Topic(topic_id=topic_id(cluster), partitions=(part,))
        response = Requester(cluster).ask(FetchRequest(topics=(topic,)), NEWEST, node)
        found, state = one(response), cluster.image.topics["orders"].partitions[0]
        hinted = error is not Errors.UNKNOWN_LEADER_EPOCH
        assert found.error_code is error
        assert (found.current_leader != UNKNOWN_LEADER) is hinted
        if hinted:
            assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (
                state.leader,
                state.leader_epoch,
            )
        assert [node.node_id for node in response.node_endpoints] == ([state.leader] if hinted else [])


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        pytest.param({}, {0: [0, 1, 2], 1: [0, 1]}, id="no limit reached"),
        pytest.param({"max_bytes": 1}, {0: [0], 1: []}, id="2.7 the first partition returns one batch above max_bytes"),
        pytest.param({"max_bytes": 2 * BATCH}, {0: [0, 1], 1: []}, id="2.7 whole batches only, up to max_bytes"),
        pytest.param({"max_bytes": 3 * BATCH - 1}, {0: [0, 1], 1: []}, id="one byte less than three batches"),
        pytest.param(
            {"max_bytes": 4 * BATCH}, {0: [0, 1, 2], 1: [0]}, id="the second partition uses what is left of max_bytes"
        ),
        pytest.param({"partition_max_bytes": 1}, {0: [0], 1: []}, id="2.7 one batch above partition_max_bytes, once"),
        pytest.param({"partition_max_bytes": BATCH}, {0: [0], 1: [0]}, id="one batch from each"),
        pytest.param({"max_bytes": -1}, {0: [0], 1: []}, id="a negative limit"),
    ],
)
def test_a_response_ends_at_the_limits_in_bytes(
    cluster: Cluster, requester: Requester, limits: dict[str, Any], expected: dict[int, list[int]]
) -> None:
    for partition in (0, 0, 0, 1, 1):
        produce(cluster, partition)
    part_limit = {"partition_max_bytes": limits.pop("partition_max_bytes")} if "partition_max_bytes" in limits else {}
    parts = tuple(FetchRequest.Partition(partition=index, fetch_offset=0, **part_limit) for index in (0, 1))
    request = FetchRequest(topics=(FetchRequest.Topic(topic_id=topic_id(cluster), partitions=parts),), **limits)
    assert offsets(requester.ask(request, NEWEST)) == expected


def test_the_first_partition_with_records_may_exceed_max_bytes(cluster: Cluster, requester: Requester) -> None:
    produce(cluster, 1)
    assert offsets(requester.ask(fetch(cluster, (0, 0), (1, 0), max_bytes=1), NEWEST)) == {0: [], 1: [0]}


def test_fetch_max_bytes_of_the_broker_caps_a_response() -> None:
    with Cluster(brokers=1, config={"fetch.max.bytes": 1024}) as cluster:
        cluster.create_topic("orders")
        for _ in range(10):
            produce(cluster)
        assert offsets(Requester(cluster).ask(fetch(cluster, (0, 0)), NEWEST)) == {0: [0, 1, 2, 3, 4, 5]}


def test_a_batch_that_holds_the_offset_is_returned_whole(cluster: Cluster, requester: Requester) -> None:
    records: list[Any] = [(None, b"v%d" % i, (), cluster.now_ms) for i in range(5)]
    part = ProduceRequest.Partition(index=0, records=encode_batch(records))
    topic = ProduceRequest.Topic(topic_id=topic_id(cluster), partitions=(part,))
    requester.ask(ProduceRequest(topics=(topic,)), 13)
    found = one(requester.ask(fetch(cluster, (0, 3)), NEWEST))
    assert [record.offset for record in decode(found.records[0])] == [0, 1, 2, 3, 4]
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (5, 5, 0)
    assert found.aborted_transactions is None


# ---- waiting ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "appends", "waited_ms"),
    [
        pytest.param({"max_wait_ms": 0}, 0, 0, id="no max_wait"),
        pytest.param({"max_wait_ms": 300}, 0, 300, id="2.7 no append: an empty response after max_wait"),
        pytest.param({"max_wait_ms": 300}, 1, 100, id="2.7 an append ends the wait"),
        pytest.param(
            {"max_wait_ms": 300, "min_bytes": 2 * BATCH}, 1, 300, id="fewer than min_bytes: max_wait ends the wait"
        ),
        pytest.param({"max_wait_ms": 300, "min_bytes": 2 * BATCH}, 2, 200, id="the second append reaches min_bytes"),
        pytest.param({"max_wait_ms": 300, "min_bytes": 0}, 0, 0, id="min_bytes 0"),
        pytest.param({"max_wait_ms": 300, "min_bytes": 999, "max_bytes": 0}, 0, 0, id="max_bytes bounds min_bytes"),
        pytest.param({"max_wait_ms": 300, "parts": ()}, 0, 0, id="no partitions"),
    ],
)
def test_a_fetch_waits_for_min_bytes_or_max_wait(
    cluster: Cluster, requester: Requester, limits: dict[str, Any], appends: int, waited_ms: int
) -> None:
    begin = cluster.now_ms
    parts = limits.pop("parts", ((0, 0), (1, 0)))
    call = requester.send(fetch(cluster, *parts, **limits), NEWEST)
    for index in range(3):
        if not requester.answered(call):
            cluster.advance(100)
        if index < appends and not requester.answered(call):
            produce(cluster, index % 2)
    assert requester.answered(call)
    assert cluster.now_ms - begin == waited_ms
    assert sum(len(found) for found in offsets(requester.response(call)).values()) == appends


@pytest.mark.parametrize(
    ("partition_max_bytes", "waited_ms"),
    [
        pytest.param(BATCH - 1, 300, id="a batch counts up to partition_max_bytes"),
        pytest.param(BATCH, 0, id="the whole batch counts"),
    ],
)
def test_partition_max_bytes_cap_what_a_partition_counts_for_min_bytes(
    cluster: Cluster, requester: Requester, partition_max_bytes: int, waited_ms: int
) -> None:
    """The first batch is returned whatever its size, but counts for min_bytes only up to partition_max_bytes."""
    produce(cluster, 0)
    part = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=partition_max_bytes)
    topic = FetchRequest.Topic(topic_id=topic_id(cluster), partitions=(part,))
    call = requester.send(FetchRequest(topics=(topic,), min_bytes=BATCH, max_wait_ms=300), NEWEST)
    assert requester.answered(call) == (not waited_ms)
    cluster.advance(waited_ms)
    assert offsets(requester.response(call)) == {0: [0]}


def test_a_waiting_fetch_ends_when_its_topic_is_deleted(cluster: Cluster, requester: Requester) -> None:
    call = requester.send(fetch(cluster, (0, 0), max_wait_ms=20_000), NEWEST)
    deleted = DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name="orders"),))
    requester.ask(deleted, 6)
    cluster.advance(0)
    assert one(requester.response(call)).error_code is Errors.UNKNOWN_TOPIC_ID


def test_a_waiting_fetch_ends_when_the_leader_changes() -> None:
    with Cluster(brokers=2, seed=1) as cluster:
        cluster.create_topic("orders", replication_factor=2)
        requester = Requester(cluster)
        first = cluster.image.topics["orders"].partitions[0].leader
        cluster.kill_broker(first)
        cluster.start_broker(first)
        call = requester.send(fetch(cluster, (0, 0), max_wait_ms=20_000), NEWEST, 1 - first)
        assert not requester.answered(call)
        cluster.loop.enter(cluster._runtime.controller.elect_preferred_leaders)
        assert one(requester.response(call)).error_code is Errors.NOT_LEADER_OR_FOLLOWER
        assert [node.node_id for node in requester.response(call).node_endpoints] == [first]


def test_a_waiting_fetch_ends_with_its_connection(cluster: Cluster, requester: Requester) -> None:
    call = requester.send(fetch(cluster, (0, 0), max_wait_ms=500), NEWEST)
    fetcher = cluster._brokers[0]._fetcher
    assert fetcher.wake_at_ms == cluster.now_ms + 500
    cluster.loop.enter(lambda: cluster._runtime.network.disconnect(requester.connection_id))
    assert not cluster._brokers[0]._fetcher.wake_at_ms
    assert not requester.response(call).responses, "the request is over, though no client reads the response"
    assert not cluster._runtime.network._open[0]


@pytest.mark.parametrize("how", ["lost connection", "deleted topic", "append"])
def test_the_work_of_fetches_that_break_at_once_grows_with_their_number(cluster: Cluster, how: str) -> None:
    """In calls, ten times as many fetches take ten times as many: the end of one does not look at the others."""

    def calls(count: int) -> int:
        requester = Requester(cluster)
        end = cluster.log("orders", 0).log_end_offset
        sent = [requester.send(fetch(cluster, (0, end), max_wait_ms=60_000), NEWEST) for _ in range(count)]
        assert not any(requester.answered(call) for call in sent)
        profiled = Counter[str]()

        def profile(_: Any, event: str, __: Any) -> None:
            profiled[event] += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            if how == "lost connection":
                cluster.loop.enter(lambda: cluster._runtime.network.disconnect(requester.connection_id))
            elif how == "deleted topic":
                Requester(cluster).ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name="orders"),)), 6)
            else:
                produce(cluster)
        finally:
            sys.setprofile(None)
        assert all(requester.answered(call) for call in sent)
        if how == "deleted topic":
            cluster.create_topic("orders", 3)
        return profiled.total()

    few, many = calls(100), calls(1000)
    assert few > 100
    assert many < 11 * few


# ---- transactions ----------------------------------------------------------------------------------------------------


def test_read_committed_ends_at_the_last_stable_offset(cluster: Cluster, requester: Requester) -> None:
    made = Transactor(cluster)
    made.begin()
    options: dict[str, Any] = {"producer_id": made.producer_id, "producer_epoch": made.epoch}
    produce(cluster)
    produce(cluster, base_sequence=0, transactional=True, **options)
    produce(cluster)
    committed = fetch(cluster, (0, 0), isolation_level=1)
    found = one(requester.ask(committed, NEWEST))
    assert ([b.base_offset for b in found.records], found.last_stable_offset, found.high_watermark) == ([0], 1, 3)
    assert found.aborted_transactions == ()
    waiting = requester.send(fetch(cluster, (0, 1), isolation_level=1, max_wait_ms=500), NEWEST)
    assert made.end(commit=False) is Errors.NONE
    cluster.advance(50)
    found = one(requester.response(waiting))
    aborted = FetchResponse.AbortedTransaction(producer_id=made.producer_id, first_offset=1)
    assert ([b.base_offset for b in found.records], found.last_stable_offset) == ([1, 2, 3], 4)
    assert found.aborted_transactions == (aborted,)
    assert found.records[-1].is_control
    everything = one(requester.ask(fetch(cluster, (0, 0)), NEWEST))
    assert ([b.base_offset for b in everything.records], everything.aborted_transactions) == ([0, 1, 2, 3], None)
    assert one(requester.ask(fetch(cluster, (0, 4), isolation_level=1), NEWEST)).aborted_transactions == ()


# ---- the cost of waiting ---------------------------------------------------------------------------------------------


@pytest.fixture
def reads(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that fetches read, in order."""
    found: list[int] = []
    data = cluster._brokers[0]._data
    real = data.read

    def counting(at: TopicIdPartition, *args: Any, **more: Any) -> ReadResult:
        found.append(at.partition)
        read: ReadResult = real(at, *args, **more)
        return read

    monkeypatch.setattr(data, "read", counting)
    return found


def test_an_append_that_cannot_meet_the_minimum_reads_nothing(
    cluster: Cluster, requester: Requester, reads: list[int]
) -> None:
    calls = [
        requester.send(fetch(cluster, (0, 0), (1, 0), min_bytes=count * BATCH, max_wait_ms=500), NEWEST)
        for count in (2, 3, 4)
    ]
    reads.clear()
    produce(cluster, 0)
    cluster.advance(1)
    assert reads == []
    produce(cluster, 1)
    cluster.advance(1)
    assert [requester.answered(call) for call in calls] == [True, False, False]
    assert reads == [0, 1, 0, 1], "once to count, once to answer: of the first fetch alone"


def test_a_partition_at_its_limit_is_not_read_again(cluster: Cluster, requester: Requester, reads: list[int]) -> None:
    produce(cluster, 0)
    part = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=BATCH)
    topic = FetchRequest.Topic(topic_id=topic_id(cluster), partitions=(part,))
    call = requester.send(FetchRequest(topics=(topic,), min_bytes=2 * BATCH, max_wait_ms=500), NEWEST)
    reads.clear()
    for _ in range(3):
        produce(cluster, 0)
        cluster.advance(1)
    assert (reads, requester.answered(call)) == ([], False)


def test_an_open_transaction_makes_no_fetch_of_committed_records_read(
    cluster: Cluster, requester: Requester, reads: list[int]
) -> None:
    made = Transactor(cluster)
    made.begin()
    call = requester.send(fetch(cluster, (0, 0), isolation_level=1, max_wait_ms=500), NEWEST)
    reads.clear()
    options: dict[str, Any] = {"producer_id": made.producer_id, "producer_epoch": made.epoch}
    for sequence in range(3):
        produce(cluster, base_sequence=sequence, transactional=True, **options)
        cluster.advance(1)
    assert (reads, requester.answered(call)) == ([], False)
    assert made.end(commit=True) is Errors.NONE
    assert len(one(requester.response(call)).records) == 4


def test_a_change_of_other_topics_reads_nothing(cluster: Cluster, requester: Requester, reads: list[int]) -> None:
    call = requester.send(fetch(cluster, (0, 0), (1, 0), max_wait_ms=500), NEWEST)
    reads.clear()
    cluster.create_topic("payments", 3)
    requester.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name="payments"),)), 6)
    assert (reads, requester.answered(call)) == ([], False)


def test_an_answered_fetch_is_forgotten_at_once(cluster: Cluster, requester: Requester) -> None:
    fetcher = cluster._brokers[0]._fetcher
    calls = [requester.send(fetch(cluster, (0, 0), max_wait_ms=60_000), NEWEST) for _ in range(200)]
    assert len(fetcher._deadlines._heap) == 200
    produce(cluster)
    assert all(requester.answered(call) for call in calls)
    assert not fetcher._deadlines._entries
    assert not fetcher._waiting
    assert not fetcher._by_connection
    assert not fetcher._written
    assert fetcher.wake_at_ms is None
    assert not fetcher._deadlines._heap


# ---- by name -------------------------------------------------------------------------------------------------------


BY_NAME = 12


def by_name(*parts: tuple[int, int], topic: str = "orders", **fields: Any) -> FetchRequest:
    partitions = tuple(FetchRequest.Partition(partition=index, fetch_offset=offset) for index, offset in parts)
    given: dict[str, Any] = {"max_wait_ms": 0, "topics": (FetchRequest.Topic(topic=topic, partitions=partitions),)}
    return FetchRequest(**given | fields)


@pytest.mark.parametrize("version", [4, BY_NAME])
def test_a_fetch_by_name_waits_for_records(cluster: Cluster, requester: Requester, version: int) -> None:
    call = requester.send(by_name((0, 0), max_wait_ms=500), version)
    cluster.advance(100)
    assert not requester.answered(call)
    produce(cluster)
    response = requester.response(call)
    assert ([topic.topic for topic in response.responses], offsets(response)) == (["orders"], {0: [0]})


def test_a_waiting_fetch_by_name_reads_the_next_topic_of_that_name(cluster: Cluster, requester: Requester) -> None:
    """A session by name has no topic ids, so a topic that is created again goes on in it."""
    session = requester.ask(by_name((0, 0), session_epoch=0), BY_NAME).session_id
    waiting = requester.send(FetchRequest(session_id=session, session_epoch=1, max_wait_ms=500), BY_NAME)
    requester.ask(DeleteTopicsRequest(topics=(DeleteTopicsRequest.Topic(name="orders"),)), 6)
    cluster.advance(0)
    assert one(requester.response(waiting)).error_code is Errors.UNKNOWN_TOPIC_OR_PARTITION
    cluster.create_topic("orders", 1)
    produce(cluster)
    next_one = requester.ask(FetchRequest(session_id=session, session_epoch=2, max_wait_ms=0), BY_NAME)
    assert offsets(next_one) == {0: [0]}


def test_before_version_13_an_error_of_the_request_is_that_of_its_partitions(requester: Requester) -> None:
    response = requester.ask(by_name((0, 0), (1, 0), isolation_level=2), BY_NAME)
    errors = [part.error_code for topic in response.responses for part in topic.partitions]
    assert errors == [Errors.UNKNOWN_SERVER_ERROR] * 2


# ---- sessions --------------------------------------------------------------------------------------------------------


def in_session(cluster: Cluster, session: int, epoch: int, *parts: tuple[int, int], **more: Any) -> FetchRequest:
    return fetch(cluster, *parts, session_id=session, session_epoch=epoch, **more)


def test_an_incremental_fetch_returns_changed_partitions_only(cluster: Cluster, requester: Requester) -> None:
    produce(cluster, 0)
    first = requester.ask(in_session(cluster, 0, 0, (0, 0), (1, 0)), NEWEST)
    session = first.session_id
    assert session > 0
    assert offsets(first) == {0: [0], 1: []}, "a full response has exactly the requested partitions"
    assert offsets(requester.ask(in_session(cluster, session, 1, (0, 1)), NEWEST)) == {}, "nothing new"
    produce(cluster, 1)
    assert offsets(requester.ask(in_session(cluster, session, 2), NEWEST)) == {1: [0]}
    assert offsets(requester.ask(in_session(cluster, session, 3, (1, 1), (2, 0)), NEWEST)) == {2: []}, (
        "a partition new to the session"
    )
    cluster.log("orders", 0).delete_records(1)
    moved = requester.ask(in_session(cluster, session, 4), NEWEST)
    assert [(p.partition_index, p.log_start_offset) for t in moved.responses for p in t.partitions] == [(0, 1)]
    forgotten = (FetchRequest.ForgottenTopic(topic_id=topic_id(cluster), partitions=(0, 2)),)
    produce(cluster, 0)
    produce(cluster, 1)
    last = requester.ask(in_session(cluster, session, 5, forgotten_topics_data=forgotten), NEWEST)
    assert (offsets(last), last.session_id) == ({1: [1]}, session)


def test_a_full_fetch_returns_every_partition(cluster: Cluster, requester: Requester) -> None:
    for _ in range(2):
        assert offsets(requester.ask(in_session(cluster, 0, -1, (0, 0), (1, 0)), NEWEST)) == {0: [], 1: []}


def test_an_incremental_fetch_repeats_an_error_until_it_is_resolved(cluster: Cluster, requester: Requester) -> None:
    session = requester.ask(in_session(cluster, 0, 0, (0, 1)), NEWEST).session_id
    again = requester.ask(in_session(cluster, session, 1), NEWEST)
    assert one(again).error_code is Errors.OFFSET_OUT_OF_RANGE
    over = requester.ask(in_session(cluster, session, 2, (0, 0)), NEWEST)
    assert (one(over).error_code, one(over).high_watermark) == (Errors.NONE, 0)
    assert requester.ask(in_session(cluster, session, 3), NEWEST).responses == ()


@pytest.mark.parametrize(
    ("known", "epoch", "error"),
    [
        pytest.param(True, 2, Errors.INVALID_FETCH_SESSION_EPOCH, id="2.7 a later epoch"),
        pytest.param(True, 7, Errors.INVALID_FETCH_SESSION_EPOCH, id="2.7 any other epoch"),
        pytest.param(False, 1, Errors.FETCH_SESSION_ID_NOT_FOUND, id="2.7 an unknown session id"),
    ],
)
def test_session_errors_are_top_level_errors(
    cluster: Cluster, requester: Requester, known: bool, epoch: int, error: Errors
) -> None:
    session = requester.ask(in_session(cluster, 0, 0, (0, 0)), NEWEST).session_id
    answer = requester.ask(in_session(cluster, session if known else session + 1, epoch), NEWEST)
    assert answer == FetchResponse(error_code=error)
    assert requester.ask(in_session(cluster, session, 1), NEWEST).session_id == session, "the session is unchanged"


@pytest.mark.parametrize(
    ("epoch", "opens"),
    [pytest.param(0, True, id="2.7 (id, 0) replaces"), pytest.param(-1, False, id="2.7 (id, -1) closes")],
)
def test_a_final_epoch_closes_the_session(cluster: Cluster, requester: Requester, epoch: int, opens: bool) -> None:
    session = requester.ask(in_session(cluster, 0, 0, (0, 0)), NEWEST).session_id
    answer = requester.ask(in_session(cluster, session, epoch, (0, 0)), NEWEST)
    assert (offsets(answer), answer.session_id > 0) == ({0: []}, opens)
    refused = requester.ask(in_session(cluster, session, 1), NEWEST)
    assert refused.error_code is Errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_without_partitions_is_closed(cluster: Cluster, requester: Requester) -> None:
    session = requester.ask(in_session(cluster, 0, 0, (0, 0)), NEWEST).session_id
    forgotten = (FetchRequest.ForgottenTopic(topic_id=topic_id(cluster), partitions=(0,)),)
    answer = requester.ask(in_session(cluster, session, 1, forgotten_topics_data=forgotten), NEWEST)
    assert answer == FetchResponse()
    assert requester.ask(in_session(cluster, session, 2), NEWEST).error_code is Errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_second_fetch_of_a_session_ends_the_first(cluster: Cluster, requester: Requester) -> None:
    """The client gave up the first fetch: its response must not be taken for the response of the second."""
    session = requester.ask(in_session(cluster, 0, 0, (0, 0)), NEWEST).session_id
    first = requester.send(in_session(cluster, session, 1, max_wait_ms=500), NEWEST)
    second = requester.send(in_session(cluster, session, 2, max_wait_ms=500), NEWEST)
    produce(cluster)
    cluster.advance(0)
    assert requester.response(first) == FetchResponse(error_code=Errors.INVALID_FETCH_SESSION_EPOCH)
    assert offsets(requester.response(second)) == {0: [0]}


def test_partitions_of_a_session_take_turns(cluster: Cluster, requester: Requester) -> None:
    for partition in (0, 1, 2):
        produce(cluster, partition)
        produce(cluster, partition)
    answer = requester.ask(in_session(cluster, 0, 0, (0, 0), (1, 0), (2, 0), max_bytes=1), NEWEST)
    session, at, returned = answer.session_id, {0: 1, 1: 0, 2: 0}, [0]
    for epoch in range(1, 6):
        last = returned[-1]
        answer = requester.ask(in_session(cluster, session, epoch, (last, at[last]), max_bytes=1), NEWEST)
        ((partition, _),) = ((p, found) for p, found in offsets(answer).items() if found)
        at[partition] += 1
        returned.append(partition)
    assert sorted(returned) == [0, 0, 1, 1, 2, 2]
    assert set(returned[1:4]) == {0, 1, 2}, "a partition that returned records moves to the end of the queue"


def test_session_epochs_wrap_to_one() -> None:
    assert [next_epoch(0), next_epoch(1), next_epoch(2**31 - 1)] == [1, 2, 1]


def test_only_idle_sessions_are_evicted_from_a_full_cache() -> None:
    sessions = FetchSessions(random.Random(1), slots=2)
    request = FetchRequest(session_epoch=0)
    read: dict[Any, ReadResult] = {}

    def open_at(now_ms: int) -> int:
        turn = sessions.enter(request, now_ms, ClusterImage())
        assert not isinstance(turn, Errors)
        return sessions.leave(turn, read, now_ms)[1]

    first, second = open_at(0), open_at(1)
    assert 0 not in (first, second)
    assert open_at(EVICTION_MS - 1) == 0, "no room: the session id is 0, which means full fetches"
    assert open_at(EVICTION_MS) > 0
    assert len(sessions) == 2
    refused = sessions.enter(FetchRequest(session_id=first, session_epoch=1), EVICTION_MS, ClusterImage())
    assert refused is Errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_holds_no_more_partitions_than_can_be_meant(cluster: Cluster, requester: Requester) -> None:
    """Each empty fetch of a session looks at every partition in it."""
    exist = sum(len(topic.partitions) for topic in cluster.image.topics.values())
    room = exist + SPARE_SESSION_PARTITIONS
    most = fetch(cluster, *[(index, 0) for index in range(room)], session_epoch=0)
    opened = requester.ask(most, NEWEST)
    assert (opened.error_code, opened.session_id > 0) == (Errors.NONE, True)
    again = in_session(cluster, opened.session_id, 1, (0, 0), (room - 1, 0))
    assert requester.ask(again, NEWEST).error_code is Errors.NONE
    more = in_session(cluster, opened.session_id, 2, (0, 0), (room, 0))
    assert requester.ask(more, NEWEST).error_code is Errors.INVALID_REQUEST
    beyond = fetch(cluster, *[(index, 0) for index in range(room + 1)], session_epoch=0)
    assert requester.ask(beyond, NEWEST).error_code is Errors.INVALID_REQUEST
    refused_changed_nothing = in_session(cluster, opened.session_id, 2)
    assert requester.ask(refused_changed_nothing, NEWEST).error_code is Errors.NONE
