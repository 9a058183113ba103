"""Transactions over TCP: equal requests have equal responses from a shareq cluster and from Apache Kafka.

The expected results are written once for both. The last tests use the producers of confluent-kafka and of shareq.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import shareq
from shareq.model.errors import Errors
from shareq.model.messages.transactions import InitProducerIdRequest, ListTransactionsRequest
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S
from tests.wire.transactor import WireTransactor

E = Errors
WRONG, FENCED, STALE = E.INVALID_TXN_STATE, E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH
Fresh = Callable[[str], str]


@pytest.fixture
def producer(broker: Reachable, fresh: Fresh) -> Iterator[WireTransactor]:
    """A producer with epoch 0."""
    with WireTransactor(broker.bootstrap_servers, fresh("orders"), fresh("id")) as made:
        assert made.init() == 0
        yield made


# ---- EndTxn ----------------------------------------------------------------------------------------------------------


def reach(producer: WireTransactor, state: str, *, new: bool) -> int:
    """Bring the transaction into the state; returns the current epoch."""
    if state == "Empty":
        return 0
    epoch = 0
    if new:
        assert producer.produce(0) is E.NONE
    else:
        assert producer.add(0, 0) == [E.NONE]
        assert producer.produce(0, version=11) is E.NONE
    if state != "Ongoing":
        commit = state == "CompleteCommit"
        ended = producer.end(0, commit=commit, version=5 if new else 4)
        assert ended == (1 if new else E.NONE)
        assert producer.settle() == state
        epoch = int(new)
    return epoch


V5: dict[str, tuple[Errors | str, ...]] = {
    "Empty": (WRONG, FENCED, "next", FENCED),
    "Ongoing": ("next", FENCED, "next", FENCED),
    "CompleteCommit": (WRONG, "same", "next", WRONG),
    "CompleteAbort": (WRONG, WRONG, "next", "same"),
}
END_REQUESTS = {"commit": (True, 0), "commit, retry": (True, 1), "abort": (False, 0), "abort, retry": (False, 1)}


@pytest.mark.parametrize(
    ("state", "commit", "behind", "expected"),
    [
        pytest.param(state, *end_request, V5[state][column], id=f"{state}: {title}")
        for state in V5
        for column, (title, end_request) in enumerate(END_REQUESTS.items())
    ],
)
def test_end_txn_v5_results(
    producer: WireTransactor, state: str, commit: bool, behind: int, expected: Errors | str
) -> None:
    epoch = reach(producer, state, new=True)
    result = {"next": epoch + 1, "same": epoch}.get(str(expected), expected)
    assert producer.end(epoch - behind, commit=commit) == result


V4: dict[str, tuple[Errors, Errors]] = {
    "Empty": (WRONG, WRONG),
    "Ongoing": (E.NONE, E.NONE),
    "CompleteCommit": (E.NONE, WRONG),
    "CompleteAbort": (WRONG, E.NONE),
}


@pytest.mark.parametrize(
    ("state", "commit", "expected"),
    [
        pytest.param(state, commit, V4[state][not commit], id=f"{state}: {'commit' if commit else 'abort'}")
        for state in V4
        for commit in (True, False)
    ],
)
def test_end_txn_v4_results(producer: WireTransactor, state: str, commit: bool, expected: Errors) -> None:
    epoch = reach(producer, state, new=False)
    assert producer.end(epoch, commit=commit, version=4) is expected


@pytest.mark.parametrize(
    ("version", "error"),
    [pytest.param(1, STALE, id="v1"), pytest.param(2, FENCED, id="v2"), pytest.param(4, FENCED, id="v4")],
)
def test_end_with_another_epoch_is_refused(producer: WireTransactor, version: int, error: Errors) -> None:
    producer.init()
    assert producer.end(0, version=version) is error
    assert producer.end(7, version=version) is error


@pytest.mark.parametrize("version", [1, 4, 5], ids=lambda v: f"v{v}")
def test_end_of_another_producer_is_refused(producer: WireTransactor, version: int) -> None:
    producer.producer_id += 1
    assert producer.end(0, version=version) is E.INVALID_PRODUCER_ID_MAPPING
    producer.transactional_id += "-unknown"
    assert producer.end(0, version=version) is E.INVALID_PRODUCER_ID_MAPPING


# ---- InitProducerId --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        pytest.param({"transactional_id": ""}, E.INVALID_REQUEST, id="empty id"),
        pytest.param({"producer_id": 5}, E.INVALID_REQUEST, id="no epoch"),
        pytest.param({"producer_epoch": 5}, E.INVALID_REQUEST, id="no producer id"),
        pytest.param({"transaction_timeout_ms": 0}, E.INVALID_TRANSACTION_TIMEOUT, id="timeout 0"),
        pytest.param(
            {"transaction_timeout_ms": 900_001}, E.INVALID_TRANSACTION_TIMEOUT, id="timeout above the maximum"
        ),
        pytest.param({"transactional_id": None, "transaction_timeout_ms": -1}, E.NONE, id="idempotent"),
    ],
)
def test_init_producer_id_fields_are_checked(producer: WireTransactor, fields: dict[str, Any], error: Errors) -> None:
    request = InitProducerIdRequest(**{"transactional_id": producer.transactional_id, **fields})
    assert producer.raw.ask(request).error_code is error


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_init_by_a_continuing_producer_raises_the_epoch(producer: WireTransactor, state: str) -> None:
    epoch = reach(producer, state, new=True)
    mine = producer.producer_id
    assert producer.init(mine, epoch) == epoch + 1
    assert producer.init(mine, epoch) == epoch + 1, "a repeated request"
    assert producer.init(mine, epoch + 1) == epoch + 2
    assert producer.init(mine, epoch) is FENCED
    assert producer.init(mine + 1, epoch + 2) is FENCED
    assert producer.init(mine, epoch + 3) is FENCED
    assert producer.init() == epoch + 3
    assert producer.init(mine, epoch + 2) is FENCED, "another producer has taken over"


def test_init_aborts_the_open_transaction_and_is_repeated(producer: WireTransactor) -> None:
    reach(producer, "Ongoing", new=True)
    assert producer.init() is E.CONCURRENT_TRANSACTIONS
    assert producer.settle() == "CompleteAbort"
    assert producer.state().producer_epoch == 1
    assert producer.init() == 2
    assert producer.produce(0, 1) is STALE
    assert producer.end(0) is FENCED


def test_init_by_a_producer_with_an_open_transaction_aborts_it(producer: WireTransactor) -> None:
    reach(producer, "Ongoing", new=True)
    assert producer.init(producer.producer_id, 0) is E.CONCURRENT_TRANSACTIONS
    assert producer.settle() == "CompleteAbort"
    assert producer.init(producer.producer_id, 0) == 1
    assert producer.init() == 2


def test_init_after_a_lost_end_response_returns_the_current_epoch(producer: WireTransactor) -> None:
    reach(producer, "CompleteCommit", new=True)
    assert producer.init(producer.producer_id, 0) == 1


# ---- adding partitions -----------------------------------------------------------------------------------------------


def test_one_unknown_partition_refuses_all_partitions(producer: WireTransactor) -> None:
    assert producer.add(0, 0, 1, 9) == [E.OPERATION_NOT_ATTEMPTED] * 2 + [E.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.state().transaction_state == "Empty"


@pytest.mark.parametrize(("version", "error"), [pytest.param(0, STALE, id="v0"), pytest.param(3, FENCED, id="v3")])
def test_add_with_another_epoch_is_refused(producer: WireTransactor, version: int, error: Errors) -> None:
    assert producer.add(1, 0, version=version) == [error]
    producer.producer_id += 1
    assert producer.add(0, 0, version=version) == [E.INVALID_PRODUCER_ID_MAPPING]


@pytest.mark.parametrize(
    ("version", "error"),
    [
        pytest.param(10, WRONG, id="v10"),
        pytest.param(11, E.TRANSACTION_ABORTABLE, id="v11"),
        pytest.param(12, E.NONE, id="v12"),
        pytest.param(13, E.NONE, id="v13"),
    ],
)
def test_error_of_produce_to_a_partition_that_was_not_added(
    producer: WireTransactor, version: int, error: Errors
) -> None:
    assert producer.produce(0, version=version) is error
    assert producer.state().transaction_state == ("Empty" if error else "Ongoing")
    added = [topic.partitions for topic in producer.state().topics]
    assert added == ([] if error else [(0,)])


@pytest.mark.parametrize("version", [10, 11, 12, 13], ids=lambda v: f"v{v}")
@pytest.mark.parametrize("change", ["older epoch", "later epoch", "producer id"])
def test_produce_by_another_producer_is_refused(producer: WireTransactor, version: int, change: str) -> None:
    producer.init()
    if version < 12:
        assert producer.add(1, 0) == [E.NONE]
    if change == "producer id":
        producer.producer_id += 1
        assert producer.produce(1, version=version) is E.INVALID_PRODUCER_ID_MAPPING
    else:
        assert producer.produce(0 if change == "older epoch" else 2, version=version) is STALE


def test_a_plain_batch_in_an_open_transaction_is_refused(producer: WireTransactor) -> None:
    reach(producer, "Ongoing", new=True)
    assert producer.produce(0, 1, transactional=False) is WRONG


@pytest.mark.parametrize(
    ("new", "version", "error"),
    [
        pytest.param(True, 13, STALE, id="new"),
        pytest.param(False, 11, E.TRANSACTION_ABORTABLE, id="Java, old"),
        pytest.param(False, 10, WRONG, id="librdkafka"),
    ],
)
def test_a_duplicate_batch_after_the_end_is_refused(
    producer: WireTransactor, new: bool, version: int, error: Errors
) -> None:
    reach(producer, "CompleteCommit", new=new)
    assert producer.produce(0, 0, version=version) is error


@pytest.mark.parametrize("new", [True, False], ids=["new", "old"])
def test_sequences_after_an_end_restart_or_continue_by_version(producer: WireTransactor, new: bool) -> None:
    epoch = reach(producer, "CompleteCommit", new=new)
    if not new:
        assert producer.add(epoch, 0) == [E.NONE]
    version = 13 if new else 11
    right = 0 if new else 1
    assert producer.produce(epoch, 2, version=version) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(epoch, right, version=version) is E.NONE
    assert producer.produce(epoch, right, version=version) is E.NONE, "a duplicate"


# ---- offsets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 4, 5], ids=lambda v: f"v{v}")
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_offsets_take_effect_when_the_transaction_is_committed(
    producer: WireTransactor, fresh: Fresh, version: int, commit: bool
) -> None:
    group = fresh("g")
    if version < 5:
        assert producer.add_offsets(0, group) is E.NONE
    assert producer.commit_offset(0, group, 7, version=version) is E.NONE
    assert producer.committed_offset(group) == -1
    assert producer.committed_offset(group, require_stable=True) is E.UNSTABLE_OFFSET_COMMIT
    producer.end(0, commit=commit, version=version)
    producer.settle()
    assert producer.committed_offset(group, require_stable=True) == (7 if commit else -1)


@pytest.mark.parametrize(
    ("version", "error"),
    [pytest.param(3, WRONG, id="v3"), pytest.param(4, E.TRANSACTION_ABORTABLE, id="v4")],
)
def test_offsets_of_a_group_not_added_to_the_transaction_are_refused(
    producer: WireTransactor, fresh: Fresh, version: int, error: Errors
) -> None:
    assert producer.commit_offset(0, fresh("g"), 7, version=version) is error


@pytest.mark.parametrize("version", [3, 4, 5], ids=lambda v: f"v{v}")
def test_offsets_of_another_producer_are_refused(producer: WireTransactor, fresh: Fresh, version: int) -> None:
    group = fresh("g")
    assert producer.commit_offset(1, group, 7, version=version) is STALE
    producer.producer_id += 1
    assert producer.commit_offset(0, group, 7, version=version) is E.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize(("version", "error"), [pytest.param(0, STALE, id="v0"), pytest.param(4, FENCED, id="v4")])
def test_add_offsets_with_another_epoch_is_refused(
    producer: WireTransactor, fresh: Fresh, version: int, error: Errors
) -> None:
    assert producer.add_offsets(1, fresh("g"), version=version) is error


# ---- describing and listing ------------------------------------------------------------------------------------------


def test_a_transaction_is_described_and_listed(producer: WireTransactor) -> None:
    reach(producer, "Ongoing", new=True)
    state = producer.state()
    assert (state.transaction_state, state.transaction_timeout_ms, state.producer_epoch) == ("Ongoing", 60_000, 0)
    assert [(t.topic, t.partitions) for t in state.topics] == [(producer.topic, (0,))]
    request = ListTransactionsRequest(state_filters=("Ongoing", "Asleep"), producer_id_filters=(producer.producer_id,))
    listed = producer.raw.ask(request)
    assert [t.transactional_id for t in listed.transaction_states] == [producer.transactional_id]
    assert listed.unknown_state_filters == ("Asleep",)
    producer.transactional_id += "-unknown"
    assert producer.state().error_code is E.TRANSACTIONAL_ID_NOT_FOUND


def test_an_empty_transactional_id_is_refused(producer: WireTransactor) -> None:
    producer.transactional_id = ""
    assert producer.end(0) is E.INVALID_REQUEST
    assert producer.state().error_code is E.INVALID_REQUEST
    assert producer.add(0, 0) == [E.INVALID_REQUEST]


# ---- client libraries ------------------------------------------------------------------------------------------------


class Reader:
    """A consumer of committed records."""

    def __init__(self, servers: str, topic: str) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"reader-of-{topic}",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.topic = topic

    def values(self, count: int) -> list[str]:
        """Read until at least `count` values are received and the last stable offset is reached; the values, sorted."""
        partitions = [TopicPartition(self.topic, p, OFFSET_BEGINNING) for p in range(3)]
        self.consumer.assign(partitions)
        found: list[str] = []
        until = time.monotonic() + PATIENCE_S
        while len(found) < count or not self._at_end(partitions):
            assert time.monotonic() < until, found
            message = self.consumer.poll(0.05)
            if message is not None and message.error() is None:
                value = message.value()
                assert value is not None
                found.append(value.decode())
        return sorted(found)

    def _at_end(self, partitions: list[TopicPartition]) -> bool:
        positions = {p.partition: p.offset for p in self.consumer.position(partitions)}
        ends = {p.partition: self.consumer.get_watermark_offsets(p)[1] for p in partitions}
        return all(end == 0 or positions[partition] == end for partition, end in ends.items())


Make = Callable[..., Any]
MAKERS: dict[str, Make] = {
    "librdkafka": confluent_kafka.Producer,
    "shareq": shareq.Producer,
}


@pytest.fixture(params=list(MAKERS.values()), ids=list(MAKERS))
def make(request: pytest.FixtureRequest, broker: Reachable) -> Iterator[Make]:
    """Makes producers of a library with a transactional id."""
    made: list[Any] = []

    def new(transactional_id: str) -> Any:
        conf = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id}
        made.append(request.param(conf))
        made[-1].init_transactions(PATIENCE_S)
        return made[-1]

    yield new
    made.clear()


@pytest.fixture
def topic(broker: Reachable, fresh: Fresh) -> str:
    return create(broker, fresh("orders"))


def create(broker: Reachable, name: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(PATIENCE_S)
    return name


def test_only_committed_records_are_read(broker: Reachable, make: Make, topic: str, fresh: Fresh) -> None:
    producer = make(fresh("id"))
    kept = []
    for number in range(12):
        commit = number % 3 != 1
        producer.begin_transaction()
        for partition in range(3):
            value = f"{number}-{partition}"
            producer.produce(topic, value, partition=partition)
            kept += [value] if commit else []
        # Aborted records are in the log, too. (librdkafka can end a transaction whose partitions no broker has added
        # yet while the previous one is still completing: INVALID_TXN_STATE.)
        assert producer.flush(PATIENCE_S) == 0
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    assert Reader(broker.bootstrap_servers, topic).values(len(kept)) == sorted(kept)


def refusal(call: Callable[[float], None]) -> Any:
    """The error that the call raises."""
    with pytest.raises((confluent_kafka.KafkaException, shareq.KafkaException)) as refused:
        call(PATIENCE_S)
    return refused.value.args[0]


def test_a_new_producer_fences_the_former_one(broker: Reachable, make: Make, topic: str, fresh: Fresh) -> None:
    name = fresh("id")
    zombie = make(name)
    zombie.begin_transaction()
    zombie.produce(topic, "lost", partition=0)
    zombie.flush(PATIENCE_S)
    successor = make(name)
    successor.begin_transaction()
    successor.produce(topic, "kept", partition=0)
    successor.commit_transaction(PATIENCE_S)
    zombie.produce(topic, "late", partition=0)
    refused = [refusal(zombie.commit_transaction), refusal(zombie.abort_transaction)]
    # in shareq and in Java an abortable error precedes the fencing
    assert any(error.fatal() for error in refused), refused
    assert Reader(broker.bootstrap_servers, topic).values(1) == ["kept"]


def test_offsets_are_committed_with_the_produced_records(broker: Reachable, topic: str, fresh: Fresh) -> None:
    """Consume, transform, produce: an aborted round has no effect, so its input is read again."""
    conf: dict[str, Any] = {"bootstrap.servers": broker.bootstrap_servers}
    group, output, source = fresh("g"), topic, create(broker, fresh("source"))
    plain = confluent_kafka.Producer(conf)
    for number in range(4):
        plain.produce(source, str(number), partition=0)
    plain.flush(PATIENCE_S)
    reader = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    for round_, commit in enumerate((False, True)):
        consumer = Consumer({**conf, **reader})
        consumer.subscribe([source])
        producer = confluent_kafka.Producer({**conf, "transactional.id": fresh("id")})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        for _ in range(4):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            value = message.value()
            assert value is not None
            producer.produce(output, value + b"!%d" % round_, partition=0)
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), PATIENCE_S)
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
        consumer.close()
    assert Reader(broker.bootstrap_servers, output).values(4) == ["0!1", "1!1", "2!1", "3!1"]
    (committed,) = Consumer({**conf, **reader}).committed([TopicPartition(source, 0)], PATIENCE_S)
    assert committed.offset == 4
