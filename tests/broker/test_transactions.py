"""Transactions in a cluster: responses to clients of three generations, and the loss of brokers.

Numbers in ids are sections of shareq/broker/BEHAVIOUR.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.coordinator.transactions.decisions import LAST_EPOCH
from shareq.coordinator.transactions.records import Transaction, encode_transaction
from shareq.log.records import decode, encode_coordinator_records
from shareq.model.errors import Errors
from shareq.model.events import TransactionChanged
from shareq.model.ids import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition, partition_for
from shareq.model.messages.cluster import CoordinatorType
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.offsets import OffsetCommitRequest, OffsetFetchRequest
from shareq.model.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
)
from shareq.model.states import IsolationLevel
from shareq.producer import Producer
from tests.broker.transactor import FLOWS, JAVA_OLD, LIBRDKAFKA, NEW, ClientFlow, Transactor


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=11) as made:
        made.create_topic("orders", partitions=3, replication_factor=3)
        yield made


@pytest.fixture(params=[pytest.param(flow, id=name) for name, flow in FLOWS.items()])
def each_client(request: pytest.FixtureRequest, cluster: Cluster) -> Transactor:
    """A producer of each generation, initialized."""
    made = Transactor(cluster, flow=request.param)
    assert made.begin() is Errors.NONE
    return made


def ready(cluster: Cluster, flow: ClientFlow = NEW, transactional_id: str = "t", **options: Any) -> Transactor:
    made = Transactor(cluster, transactional_id, flow, **options)
    assert made.begin() is Errors.NONE
    return made


def committed(cluster: Cluster, partition: int = 0) -> list[str]:
    """Values that a reader of committed records returns."""
    log = cluster.log("orders", partition)
    read = log.read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_COMMITTED)
    aborted = {(a.producer_id, a.first_offset, a.last_offset) for a in read.aborted}
    return [
        (record.value or b"").decode()
        for batch in read.batches
        if not batch.is_control
        and not any(p == batch.producer_id and first <= batch.base_offset <= last for p, first, last in aborted)
        for record in decode(batch)
    ]


def state_of(cluster: Cluster, transactional_id: str = "t") -> DescribeTransactionsResponse.TransactionState:
    requester = Transactor(cluster, transactional_id)
    request = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
    (state,) = requester.coordinate(request, 0).transaction_states
    assert isinstance(state, DescribeTransactionsResponse.TransactionState)
    return state


def coordinator_of(cluster: Cluster, transactional_id: str = "t") -> int:
    return Transactor(cluster, transactional_id).find(transactional_id, CoordinatorType.TRANSACTION)


def settled(cluster: Cluster, transactional_id: str = "t") -> str:
    """State of the transaction after all markers are written."""
    done = ("Empty", "CompleteCommit", "CompleteAbort")
    while (state := state_of(cluster, transactional_id)).transaction_state not in done:
        cluster.advance(10)
    return state.transaction_state


# ---- life cycle ------------------------------------------------------------------------------------------------------


def test_records_of_an_open_transaction_are_not_readable(cluster: Cluster, each_client: Transactor) -> None:
    assert each_client.write("a", "b") is Errors.NONE
    log = cluster.log("orders", 0)
    assert (log.last_stable_offset, log.high_watermark) == (0, 2)
    assert committed(cluster) == []
    assert each_client.end(commit=True) is Errors.NONE
    assert settled(cluster) == "CompleteCommit"
    assert (log.last_stable_offset, log.high_watermark) == (3, 3)
    assert committed(cluster) == ["a", "b"]


def test_aborted_records_are_not_readable(cluster: Cluster, each_client: Transactor) -> None:
    each_client.write("a")
    each_client.end(commit=False)
    settled(cluster)
    each_client.write("b")
    each_client.end(commit=True)
    assert settled(cluster) == "CompleteCommit"
    assert committed(cluster) == ["b"]


def test_a_transaction_ends_in_all_its_partitions(cluster: Cluster, each_client: Transactor) -> None:
    for partition in range(3):
        assert each_client.write(f"p{partition}", partition=partition) is Errors.NONE
    reached = state_of(cluster)
    assert (reached.transaction_state, [(t.topic, t.partitions) for t in reached.topics]) == (
        "Ongoing",
        [("orders", (0, 1, 2))],
    )
    each_client.end()
    settled(cluster)
    assert [committed(cluster, partition) for partition in range(3)] == [["p0"], ["p1"], ["p2"]]
    assert state_of(cluster).topics == ()


def test_epochs_and_sequences_after_each_end(cluster: Cluster, each_client: Transactor) -> None:
    """EndTxn 5 raises the epoch and restarts sequences at 0; older versions continue both."""
    bumps = each_client.flow is NEW
    for _ in range(3):
        each_client.write("x")
        each_client.end()
        settled(cluster)
    batches = cluster.log("orders", 0).read(0, max_bytes=1 << 20, isolation=IsolationLevel.READ_UNCOMMITTED).batches
    epochs = [(b.is_control, b.producer_epoch, b.base_sequence) for b in batches]
    assert epochs == [
        *((False, 0, 0), (True, int(bumps), -1)),
        *((False, int(bumps), int(not bumps)), (True, 2 * bumps, -1)),
        *((False, 2 * bumps, 2 * (not bumps)), (True, 3 * bumps, -1)),
    ]


def test_transactions_of_several_producers_are_independent(cluster: Cluster) -> None:
    producers = [ready(cluster, flow, f"t{n}") for n, flow in enumerate((NEW, JAVA_OLD, LIBRDKAFKA, NEW))]
    for n, producer in enumerate(producers):
        producer.write(str(n))
    log = cluster.log("orders", 0)
    for n in (2, 0, 3):
        producers[n].end(commit=n != 3)
        settled(cluster, f"t{n}")
        assert log.last_stable_offset == (0 if n == 2 else 1)
    producers[1].end()
    settled(cluster, "t1")
    assert log.last_stable_offset == log.high_watermark == 8
    assert committed(cluster) == ["0", "1", "2"]


# ---- partitions that do not belong to the transaction ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(10, Errors.INVALID_TXN_STATE, id="Produce 10: INVALID_TXN_STATE"),
        pytest.param(11, Errors.TRANSACTION_ABORTABLE, id="Produce 11: TRANSACTION_ABORTABLE"),
        pytest.param(12, Errors.NONE, id="Produce 12: added"),
        pytest.param(13, Errors.NONE, id="Produce 13: added"),
    ],
)
def test_error_of_a_batch_on_a_partition_that_was_not_added(cluster: Cluster, version: int, error: Errors) -> None:
    producer = ready(cluster, NEW._replace(produce=version))
    assert producer.produce("x").error_code is error
    assert state_of(cluster).transaction_state == ("Empty" if error else "Ongoing")
    assert cluster.log("orders", 0).log_end_offset == (0 if error else 1)


def test_only_partitions_outside_the_transaction_are_refused(cluster: Cluster) -> None:
    cluster.create_topic("near", partitions=2, replication_factor=1)
    producer = ready(cluster, LIBRDKAFKA)
    near = [TopicPartition("near", p) for p in range(2)]
    leaders = cluster.image.topics["near"].partitions
    cluster.elect_preferred_leaders()
    assert producer.add(near[0]) is Errors.NONE
    for at in near:
        part = ProduceRequest.Partition(index=at.partition, records=producer.batch("x", sequence=0))
        topic = ProduceRequest.Topic(topic_id=cluster.image.topics["near"].topic_id, partitions=(part,))
        request = ProduceRequest(transactional_id="t", topics=(topic,))
        got = producer.ask(request, 10, leaders[at.partition].leader).responses[0].partitions[0].error_code
        assert got is (Errors.NONE if at == near[0] else Errors.INVALID_TXN_STATE)


def test_a_plain_batch_in_an_open_transaction_is_refused(cluster: Cluster, each_client: Transactor) -> None:
    each_client.write("a")
    assert each_client.produce("b", transactional=False).error_code is Errors.INVALID_TXN_STATE


def test_batches_of_two_producers_in_one_request_are_refused(cluster: Cluster) -> None:
    one, two = ready(cluster), ready(cluster, transactional_id="u")
    for broker in (1, 2):
        cluster.kill_broker(broker)
    parts = tuple(
        ProduceRequest.Partition(index=p, records=producer.batch("x", sequence=0))
        for p, producer in enumerate((one, two))
    )
    topic = ProduceRequest.Topic(topic_id=cluster.image.topics["orders"].topic_id, partitions=parts)
    response = one.ask(ProduceRequest(transactional_id="t", topics=(topic,)), 13, 0)
    assert {p.error_code for p in response.responses[0].partitions} == {Errors.INVALID_PRODUCER_ID_MAPPING}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        pytest.param({"epoch": -1}, Errors.INVALID_PRODUCER_EPOCH, id="an older epoch"),
        pytest.param({"epoch": +1}, Errors.INVALID_PRODUCER_EPOCH, id="a later epoch"),
        pytest.param({"producer_id": +1}, Errors.INVALID_PRODUCER_ID_MAPPING, id="another producer id"),
    ],
)
@pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
def test_a_batch_of_another_producer_is_refused(
    cluster: Cluster, flow: ClientFlow, change: dict[str, int], error: Errors
) -> None:
    producer = ready(cluster, flow)
    producer.begin()
    if flow.announces:
        producer.add(TopicPartition("orders", 0))
    for name, by in change.items():
        setattr(producer, name, getattr(producer, name) + by)
    assert producer.produce("x").error_code is error


def test_a_batch_with_an_unknown_transactional_id_is_refused(cluster: Cluster, each_client: Transactor) -> None:
    each_client.transactional_id = "none"
    assert each_client.produce("x").error_code is Errors.INVALID_PRODUCER_ID_MAPPING


def test_without_a_coordinator_every_client_version_retries(cluster: Cluster) -> None:
    """No FindCoordinator request was sent, so the coordinators' topic does not exist."""
    for flow in FLOWS.values():
        producer = Transactor(cluster, flow=flow)
        producer.producer_id, producer.epoch = 7, 0
        assert producer.produce("x").error_code is Errors.NOT_ENOUGH_REPLICAS


# ---- while the previous transaction completes ------------------------------------------------------------------------


def slow(cluster: Cluster, producer: Transactor) -> Callable[[], None]:
    """Hold back the markers of the open transaction: orders-1 has no reachable leader. Returns a call that ends it."""
    image = cluster.image.topics["orders"].partitions
    assert producer.write("held", partition=1) is Errors.NONE
    leader = cluster._brokers[image[1].leader]._verification
    leader.alive = False

    def release() -> None:
        leader.alive = True

    return release


def test_a_new_client_waits_while_the_previous_transaction_completes(cluster: Cluster) -> None:
    """The broker retries Produce 12 and later for up to 100 ms, so that a client rarely receives the error."""
    producer = ready(cluster)
    producer.write("a")
    producer.end_once()
    producer.epoch += 1
    result = producer.answer_to(producer.produce_later(producer.batch("b", sequence=0)))
    assert result.error_code is Errors.NONE


@pytest.mark.parametrize(
    ("flow", "error", "after_ms"),
    [
        pytest.param(NEW, Errors.CONCURRENT_TRANSACTIONS, 100, id="new: CONCURRENT_TRANSACTIONS after 100 ms"),
        pytest.param(JAVA_OLD, Errors.NOT_ENOUGH_REPLICAS, 0, id="Java, old: NOT_ENOUGH_REPLICAS without waiting"),
        pytest.param(LIBRDKAFKA, Errors.NOT_ENOUGH_REPLICAS, 0, id="librdkafka: NOT_ENOUGH_REPLICAS without waiting"),
    ],
)
def test_clients_retry_when_completion_outlasts_the_backoff(
    cluster: Cluster, flow: ClientFlow, error: Errors, after_ms: int
) -> None:
    producer = ready(cluster, flow)
    release = slow(cluster, producer)
    producer.write("a")
    producer.end_once()
    producer.epoch += flow is NEW
    producer.sequences.clear()
    begun_ms = cluster.now_ms
    assert producer.produce("b", partition=2, sequence=0).error_code is error
    assert cluster.now_ms - begun_ms == after_ms
    assert state_of(cluster).transaction_state == "PrepareCommit"
    release()
    cluster.advance(40_000)
    assert settled(cluster) == "CompleteCommit"


# ---- a slow log ------------------------------------------------------------------------------------------------------


def test_an_initialization_may_take_the_timeout_of_the_transaction(cluster: Cluster) -> None:
    """A repeated one would raise the epoch again, and never end if the log always takes longer than the answer."""
    cluster.delay_appends(TRANSACTION_STATE_TOPIC, 8_000)
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t", "transaction.timeout.ms": 10_000}
    with Producer(conf) as producer:
        producer.init_transactions(20)
    changes = [entry.event for entry in cluster.journal.select(TransactionChanged)]
    assert [change.producer_epoch for change in changes if isinstance(change, TransactionChanged)] == [0]


# ---- fenced producers and timeouts -----------------------------------------------------------------------------------


def test_a_second_initialization_aborts_the_transaction_and_fences_its_producer(
    cluster: Cluster, each_client: Transactor
) -> None:
    each_client.write("lost")
    successor = ready(cluster, each_client.flow)
    assert cluster.log("orders", 0).last_stable_offset == 2
    assert (successor.producer_id, successor.epoch) == (each_client.producer_id, 2)
    assert each_client.produce("late").error_code is Errors.INVALID_PRODUCER_EPOCH
    fenced = Errors.INVALID_PRODUCER_EPOCH if each_client.flow is LIBRDKAFKA else Errors.PRODUCER_FENCED
    assert each_client.end() is fenced
    assert successor.write("mine") is Errors.NONE
    assert successor.end() is Errors.NONE
    settled(cluster)
    assert committed(cluster) == ["mine"]


def test_a_fenced_producer_cannot_write_to_a_partition_new_to_the_transaction(cluster: Cluster) -> None:
    zombie = ready(cluster)
    ready(cluster)
    assert zombie.produce("late", partition=2).error_code is Errors.INVALID_PRODUCER_EPOCH
    assert cluster.log("orders", 2).log_end_offset == 0


def test_a_timed_out_transaction_is_aborted_at_the_next_scan(cluster: Cluster) -> None:
    producer = ready(cluster, timeout_ms=15_000)
    cluster.advance(5_000 - (cluster.now_ms - cluster.origin_ms))
    producer.write("forgotten")
    cluster.advance(24_900 - (cluster.now_ms - cluster.origin_ms))
    assert state_of(cluster).transaction_state == "Ongoing"
    cluster.advance(100)
    assert state_of(cluster).transaction_state == "Ongoing", "overdue, but the next scan is later"
    cluster.advance(30_000 - (cluster.now_ms - cluster.origin_ms))
    assert (state_of(cluster).transaction_state, state_of(cluster).producer_epoch) == ("CompleteAbort", 1)
    assert committed(cluster) == []
    assert cluster.log("orders", 0).last_stable_offset == 2


def test_errors_of_a_producer_after_its_transaction_timed_out(cluster: Cluster) -> None:
    producer = ready(cluster, timeout_ms=1000)
    producer.write("forgotten")
    cluster.advance(20_000)
    assert producer.produce("late").error_code is Errors.INVALID_PRODUCER_EPOCH
    assert producer.end_once(commit=True).error_code is Errors.INVALID_TXN_STATE
    aborted = producer.end_once(commit=False)
    assert (aborted.error_code, aborted.producer_epoch) == (Errors.NONE, 1)
    producer._now(aborted.producer_id, aborted.producer_epoch)
    assert producer.write("again") is Errors.NONE


def test_unused_transactional_ids_expire(cluster: Cluster) -> None:
    ready(cluster)
    cluster.advance(6 * 86_400_000)
    assert state_of(cluster).error_code is Errors.NONE
    cluster.advance(86_400_000 + 3_600_000)
    assert state_of(cluster).error_code is Errors.TRANSACTIONAL_ID_NOT_FOUND
    again = ready(cluster)
    assert again.epoch == 0


# ---- retries ---------------------------------------------------------------------------------------------------------


def test_a_duplicate_batch_is_written_once(cluster: Cluster, each_client: Transactor) -> None:
    each_client.write("a")
    batch = each_client.batch("b", sequence=1)
    offsets = [each_client.answer_to(each_client.produce_later(batch)).base_offset for _ in range(3)]
    assert offsets == [1, 1, 1]
    each_client.end()
    settled(cluster)
    assert committed(cluster) == ["a", "b"]


def test_a_duplicate_batch_after_the_end_is_not_written(cluster: Cluster, each_client: Transactor) -> None:
    """With EndTxn 5 the epoch of the batch is too old; before, the partition is not part of the next transaction."""
    each_client.write("a")
    batch = each_client.batch("a", sequence=0)
    old = each_client.flow
    each_client.end()
    settled(cluster)
    expected = {
        NEW: Errors.INVALID_PRODUCER_EPOCH,
        JAVA_OLD: Errors.TRANSACTION_ABORTABLE,
        LIBRDKAFKA: Errors.INVALID_TXN_STATE,
    }
    assert each_client.answer_to(each_client.produce_later(batch)).error_code is expected[old]
    assert committed(cluster) == ["a"]


def test_a_repeated_end_has_the_same_result(cluster: Cluster, each_client: Transactor) -> None:
    each_client.write("a")
    first = each_client.end_once()
    settled(cluster)
    assert each_client.end_once() == first
    other = each_client.end_once(commit=False)
    assert other.error_code is Errors.INVALID_TXN_STATE


def test_an_exhausted_epoch_gives_a_new_producer_id(cluster: Cluster) -> None:
    producer = ready(cluster)
    first_id = producer.producer_id
    exhaust(cluster, producer)
    assert producer.write("a") is Errors.NONE
    assert producer.end() is Errors.NONE
    assert producer.producer_id != first_id
    assert producer.epoch == 0
    successor = producer.producer_id, producer.epoch
    producer.producer_id, producer.epoch = first_id, LAST_EPOCH
    assert producer.produce("late", sequence=1).error_code is Errors.INVALID_PRODUCER_EPOCH
    producer._now(*successor)
    assert producer.write("b") is Errors.NONE
    assert producer.end(commit=False) is Errors.NONE
    settled(cluster)
    assert committed(cluster) == ["a"]


def exhaust(cluster: Cluster, producer: Transactor) -> None:
    """Append a state to the coordinator's log in which the producer's epochs are nearly used up, and reload it."""
    count = len(cluster.image.topics[TRANSACTION_STATE_TOPIC].partitions)
    partition = partition_for(producer.transactional_id, count)
    nearly_exhausted = Transaction(
        producer.transactional_id, producer.producer_id, LAST_EPOCH, 60_000, last_update_ms=0
    )
    log = cluster.log(TRANSACTION_STATE_TOPIC, partition)
    log.append(encode_coordinator_records([encode_transaction(nearly_exhausted)], 0), now_ms=0, leader_epoch=0)
    node = coordinator_of(cluster)
    cluster.kill_broker(node)
    cluster.start_broker(node)
    producer.epoch = LAST_EPOCH


# ---- loss of brokers -------------------------------------------------------------------------------------------------


def test_a_transaction_continues_after_the_loss_of_its_coordinator(cluster: Cluster, each_client: Transactor) -> None:
    leader = cluster.image.topics["orders"].partitions[0].leader
    if coordinator_of(cluster) == leader:
        each_client.transactional_id = "another"
        each_client.begin()
    each_client.write("a")
    cluster.kill_broker(coordinator_of(cluster, each_client.transactional_id))
    assert each_client.write("b") is Errors.NONE
    assert each_client.write("c", partition=1) is Errors.NONE
    assert each_client.end() is Errors.NONE
    settled(cluster, each_client.transactional_id)
    assert (committed(cluster, 0), committed(cluster, 1)) == (["a", "b"], ["c"])


def test_a_transaction_continues_after_the_loss_of_a_leader(cluster: Cluster, each_client: Transactor) -> None:
    each_client.write("a")
    cluster.kill_broker(cluster.image.topics["orders"].partitions[0].leader)
    cluster.advance(10)
    assert each_client.write("b") is Errors.NONE
    assert each_client.end() is Errors.NONE
    settled(cluster)
    assert committed(cluster) == ["a", "b"]


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_recorded_decision_survives_a_coordinator_failover(
    cluster: Cluster, each_client: Transactor, commit: bool
) -> None:
    """The coordinator is killed after its response, before any marker is written; its successor writes the markers."""
    release = slow(cluster, each_client)
    each_client.end_once(commit=commit)
    assert state_of(cluster).transaction_state == ("PrepareCommit" if commit else "PrepareAbort")
    leader = cluster.image.topics["orders"].partitions[1].leader
    coordinator = coordinator_of(cluster)
    cluster.kill_broker(coordinator)
    if coordinator != leader:
        release()
    assert settled(cluster) == ("CompleteCommit" if commit else "CompleteAbort")
    assert committed(cluster, 1) == (["held"] if commit else [])


def test_markers_wait_for_a_partition_without_a_leader(cluster: Cluster) -> None:
    cluster.create_topic("single", partitions=3, replication_factor=1)
    producer = ready(cluster)
    image = cluster.image.topics["single"]
    home = coordinator_of(cluster)
    index = next(i for i, p in enumerate(image.partitions) if p.leader != home)
    leader = image.partitions[index].leader
    part = ProduceRequest.Partition(index=index, records=producer.batch("x", sequence=0))
    topic = ProduceRequest.Topic(topic_id=image.topic_id, partitions=(part,))
    got = producer.ask(ProduceRequest(transactional_id="t", topics=(topic,)), 13, leader)
    assert got.responses[0].partitions[0].error_code is Errors.NONE
    cluster.kill_broker(leader)
    assert producer.end_once().error_code is Errors.NONE
    cluster.advance(5_000)
    assert state_of(cluster).transaction_state == "PrepareCommit"
    cluster.start_broker(leader)
    assert settled(cluster) == "CompleteCommit"
    assert cluster.log("single", index).last_stable_offset == 2


def test_a_deleted_topic_needs_no_marker(cluster: Cluster) -> None:
    producer = ready(cluster)
    producer.write("a")
    producer.write("b", partition=1)
    cluster.loop.enter(lambda: cluster._runtime.controller.delete_topic("orders"))
    assert producer.end_once().error_code is Errors.NONE
    assert settled(cluster) == "CompleteCommit"


def test_transactions_survive_the_loss_of_all_brokers(cluster: Cluster) -> None:
    producer = ready(cluster)
    producer.write("a")
    for broker in (0, 1, 2):
        cluster.kill_broker(broker)
    for broker in (0, 1, 2):
        cluster.start_broker(broker)
    cluster.advance(10)
    assert producer.write("b") is Errors.NONE
    assert producer.end() is Errors.NONE
    settled(cluster)
    assert committed(cluster) == ["a", "b"]


def test_a_failed_state_append_changes_nothing(cluster: Cluster) -> None:
    producer = ready(cluster)
    cluster.fail_appends(TRANSACTION_STATE_TOPIC, times=1)
    assert producer.produce("x").error_code is Errors.NOT_ENOUGH_REPLICAS
    assert producer.write("x") is Errors.NONE
    cluster.fail_appends(TRANSACTION_STATE_TOPIC, times=1)
    assert producer.end_once().error_code is Errors.COORDINATOR_NOT_AVAILABLE
    assert producer.end() is Errors.NONE
    cluster.fail_appends(TRANSACTION_STATE_TOPIC, times=1)
    assert settled(cluster) == "CompleteCommit"


@pytest.mark.parametrize("error", [Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR], ids=lambda e: e.name)
def test_a_completion_whose_append_fails_is_stored_by_a_retry(error: Errors) -> None:
    """The client receives the response of the commit before the markers are written."""
    with Cluster(brokers=3, seed=1, latency_ms=5) as cluster:
        cluster.create_topic("orders")
        options = {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "x"}
        producer = Producer(options)
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("orders", b"v")
        producer.flush(10)
        producer.commit_transaction(10)
        cluster.fail_appends(TRANSACTION_STATE_TOPIC, error, 3)
        cluster.advance(100)
        assert state_of(cluster, "x").transaction_state == "PrepareCommit"
        cluster.advance(1000)
        assert state_of(cluster, "x").transaction_state == "CompleteCommit"
        successor = Producer(options)
        successor.init_transactions(10)
        successor.begin_transaction()


# ---- offsets ---------------------------------------------------------------------------------------------------------


def offset_of(producer: Transactor, *, require_stable: bool = False) -> tuple[int, Errors]:
    group = OffsetFetchRequest.Group(
        group_id="g", topics=(OffsetFetchRequest.Topic(name="orders", partition_indexes=(0,)),)
    )
    request = OffsetFetchRequest(groups=(group,), require_stable=require_stable)
    found = producer.ask(request, 9, producer.find("g", CoordinatorType.GROUP)).groups[0].topics[0].partitions[0]
    return found.committed_offset, found.error_code


@pytest.mark.parametrize(
    "other",
    ["g", "another", None],
    ids=["the group has another offset", "another group has an offset", "no other offset"],
)
def test_offsets_of_an_open_transaction_are_dropped_with_their_topic(other: str | None) -> None:
    """A recreated topic of the same name starts without the offsets."""
    with Cluster(brokers=1, seed=1, config={"offsets.topic.num.partitions": 1}) as cluster:
        cluster.create_topic("orders")
        cluster.create_topic("x")
        producer = ready(cluster)
        if other:
            place = OffsetCommitRequest.Partition(partition_index=0, committed_offset=1)
            request = OffsetCommitRequest(
                group_id=other, topics=(OffsetCommitRequest.Topic(name="x", partitions=(place,)),)
            )
            producer.ask(request, 9, producer.find(other, CoordinatorType.GROUP))
        assert producer.commit_offset(5) is Errors.NONE
        Admin({"bootstrap.servers": cluster.bootstrap_servers}).delete_topics(["orders"])
        cluster.advance(1000)
        assert producer.end() is Errors.NONE
        cluster.advance(1000)
        cluster.create_topic("orders")
        cluster.advance(1000)
        assert offset_of(producer) == (-1, Errors.NONE)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_offsets_take_effect_when_the_transaction_is_committed(
    cluster: Cluster, each_client: Transactor, commit: bool
) -> None:
    assert each_client.commit_offset(7) is Errors.NONE
    assert offset_of(each_client) == (-1, Errors.NONE)
    assert offset_of(each_client, require_stable=True)[1] is Errors.UNSTABLE_OFFSET_COMMIT
    at = TopicPartition(GROUP_METADATA_TOPIC, partition_for("g", 50))
    assert [(t.topic, t.partitions) for t in state_of(cluster).topics] == [(at.topic, (at.partition,))]
    each_client.end(commit=commit)
    settled(cluster)
    assert offset_of(each_client, require_stable=True) == (7 if commit else -1, Errors.NONE)


def test_transactional_offsets_survive_a_coordinator_failover(cluster: Cluster, each_client: Transactor) -> None:
    assert each_client.commit_offset(7) is Errors.NONE
    cluster.kill_broker(each_client.find("g", CoordinatorType.GROUP))
    assert offset_of(each_client, require_stable=True)[1] is Errors.UNSTABLE_OFFSET_COMMIT
    assert each_client.end() is Errors.NONE
    settled(cluster)
    assert offset_of(each_client, require_stable=True) == (7, Errors.NONE)
    cluster.kill_broker(each_client.find("g", CoordinatorType.GROUP))
    assert offset_of(each_client, require_stable=True) == (7, Errors.NONE)


@pytest.mark.parametrize(
    ("flow", "error"),
    [
        pytest.param(LIBRDKAFKA, Errors.INVALID_TXN_STATE, id="v3"),
        pytest.param(JAVA_OLD, Errors.TRANSACTION_ABORTABLE, id="v4"),
    ],
)
def test_offsets_of_a_group_not_added_to_the_transaction_are_refused(
    cluster: Cluster, flow: ClientFlow, error: Errors
) -> None:
    assert ready(cluster, flow).commit_offset(7, announce=False) is error


# ---- describing and listing ------------------------------------------------------------------------------------------


def test_transactions_are_described_and_listed(cluster: Cluster) -> None:
    ready(cluster, transactional_id="idle")
    ready(cluster, transactional_id="busy").write("x")
    listed = {}
    requester = Transactor(cluster)
    for node in cluster.brokers_alive:
        response = requester.ask(ListTransactionsRequest(), 2, node)
        listed.update({t.transactional_id: t.transaction_state for t in response.transaction_states})
    assert listed == {"idle": "Empty", "busy": "Ongoing"}
    assert state_of(cluster, "none").error_code is Errors.TRANSACTIONAL_ID_NOT_FOUND


# ---- shareq's producer -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["the leader", "the coordinator", "none"])
def test_a_transactional_producer_survives_the_loss_of_any_broker(cluster: Cluster, lost: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(30)
    expected = []
    for number in range(6):
        producer.begin_transaction()
        producer.produce("orders", f"{number}", partition=0)
        producer.flush(30)
        if number == 3 and lost != "none":
            leader = cluster.image.topics["orders"].partitions[0].leader
            cluster.kill_broker(leader if lost == "the leader" else coordinator_of(cluster))
        producer.produce("orders", f"{number}!", partition=0)
        if number % 2:
            producer.commit_transaction(30)
            expected += [f"{number}", f"{number}!"]
        else:
            producer.abort_transaction(30)
    settled(cluster)
    assert committed(cluster) == expected
