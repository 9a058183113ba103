"""Idempotence and transactions: all states and events, ids, sequences, commits, aborts. BEHAVIOUR.md, 13 to 16."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from shareq.log.batches import parse_batch
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.cluster import CoordinatorType, FindCoordinatorRequest, FindCoordinatorResponse
from shareq.model.messages.data import ProduceRequest
from shareq.model.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
)
from shareq.producer import Producer
from shareq.producer.transaction import TRANSITIONS, ProducerTransactionEvent, ProducerTransactionState
from tests.client.fake import Fake, Later
from tests.producer.stage import Reports, places, transactional, with_coordinator

S, E = ProducerTransactionState, ProducerTransactionEvent

LEGAL = {
    S.UNINITIALIZED: {E.INIT: S.INITIALIZING},
    S.INITIALIZING: {E.INIT: S.INITIALIZING, E.INITIALIZED: S.READY},
    S.READY: {E.BEGIN: S.IN_TRANSACTION},
    S.IN_TRANSACTION: {E.RECORD_FAILED: S.ABORTABLE, E.COMMIT: S.COMMITTING, E.ABORT: S.ABORTING},
    S.ABORTABLE: {E.RECORD_FAILED: S.ABORTABLE, E.ABORT: S.ABORTING},
    S.COMMITTING: {E.RECORD_FAILED: S.ABORTABLE, E.COMMIT: S.COMMITTING, E.ENDED: S.READY},
    S.ABORTING: {E.ABORT: S.ABORTING, E.ENDED: S.READY},
    S.FATAL: {},
}


@pytest.mark.parametrize(("state", "event"), [pytest.param(s, e, id=f"{s} {e}") for s, e in product(S, E)])
def test_transition_of_every_pair_of_state_and_event(
    state: ProducerTransactionState, event: ProducerTransactionEvent
) -> None:
    assert TRANSITIONS.get((state, event)) == (LEGAL[state] | {E.REFUSED: S.FATAL}).get(event)


# ---- idempotence -----------------------------------------------------------------------------------------------------


def test_batches_have_sequences_by_partition() -> None:
    fake, leader, _, producer = with_coordinator(enable_idempotence=True)
    for count in (2, 1):
        for value in range(count):
            producer.produce("t", str(value), partition=0)
        producer.flush()
    producer.produce("t", "x", partition=1)
    producer.flush()
    assert places(leader) == [(7, 0, 0, False), (7, 0, 2, False), (7, 0, 0, False)]
    assert len(fake.requests(InitProducerIdRequest)) == 1


def test_without_idempotence_batches_have_no_sequence() -> None:
    fake, leader, _, producer = with_coordinator()
    producer.produce("t", "a")
    producer.flush()
    assert places(leader) == [(-1, -1, -1, False)]
    assert fake.requests(InitProducerIdRequest) == []


def test_a_retry_sends_the_same_bytes() -> None:
    fake, leader, _, producer = with_coordinator(enable_idempotence=True)
    leader.errors = [Errors.NETWORK_EXCEPTION]
    producer.produce("t", "a", partition=0)
    producer.flush()
    first, second = (request.topics[0].partitions[0].records for request in fake.requests(ProduceRequest))
    assert first == second
    assert parse_batch(first).base_sequence == 0


def test_sequences_restart_at_the_next_epoch_after_a_refused_batch() -> None:
    fake, leader, _, producer = with_coordinator(enable_idempotence=True)
    leader.errors = [Errors.INVALID_RECORD]
    for value in "ab":
        producer.produce("t", value, partition=0)
        producer.flush()
    assert places(leader) == [(7, 1, 0, False)]
    assert len(fake.requests(InitProducerIdRequest)) == 1


def test_records_wait_for_the_producer_id() -> None:
    fake, leader, coordinator, producer = with_coordinator(enable_idempotence=True)
    coordinator.errors = [Errors.COORDINATOR_LOAD_IN_PROGRESS] * 3
    producer.produce("t", "a", partition=0)
    assert producer.flush() == 0
    assert leader.values() == [b"a"]
    assert 500 < fake.now_ms - 1_000_000 < 1000


# ---- transactions ----------------------------------------------------------------------------------------------------


def test_commit_delivers_all_records_and_each_transaction_has_its_epoch() -> None:
    _, leader, coordinator, producer = transactional()
    reports = Reports()
    producer.produce("t", "a", partition=0, on_delivery=reports)
    producer.commit_transaction()
    assert (leader.values(), reports, coordinator.ended) == ([b"a"], [(None, 0, 0)], [True])
    producer.begin_transaction()
    producer.produce("t", "b", partition=0)
    producer.commit_transaction()
    assert places(leader) == [(7, 0, 0, True), (7, 1, 0, True)]


def test_commit_waits_for_records_in_flight() -> None:
    fake, leader, coordinator, producer = transactional()
    fake.answers[ProduceRequest] = lambda f, n, request: Later(700, leader.produce(f, n, request))
    producer.produce("t", "a", partition=0)
    began_ms = fake.now_ms
    producer.commit_transaction()
    assert (fake.now_ms - began_ms, coordinator.ended) == (700, [True])


def test_abort_drops_waiting_records() -> None:
    _, leader, coordinator, producer = transactional()
    reports = Reports()
    producer.produce("t", "a", partition=0)
    producer.flush()
    producer.produce("t", "b", partition=0, on_delivery=reports)
    producer.abort_transaction()
    assert (leader.values(), coordinator.ended) == ([b"a"], [False])
    assert reports == [(KafkaError._PURGE_QUEUE, 0, -1001)]
    producer.begin_transaction()


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_transaction_without_records_sends_no_request(commit: bool) -> None:
    fake, _, _, producer = transactional()
    (producer.commit_transaction if commit else producer.abort_transaction)()
    assert fake.requests(EndTxnRequest) == []
    producer.begin_transaction()


def test_a_failed_record_requires_an_abort() -> None:
    _, leader, coordinator, producer = transactional()
    leader.errors = [Errors.NONE, Errors.INVALID_RECORD]
    producer.produce("t", "a", partition=0)
    producer.flush()
    producer.produce("t", "b", partition=0)
    with pytest.raises(KafkaException, match="abort_transaction"):
        producer.commit_transaction()
    producer.abort_transaction()
    assert coordinator.ended == [False]


def test_a_commit_that_timed_out_can_be_repeated() -> None:
    fake, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    end = fake.answers[EndTxnRequest]
    fake.answers[EndTxnRequest] = lambda f, n, request: Later(3000, end(f, n, request))
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(1)
    assert raised.value.error == KafkaError._TIMED_OUT
    producer.commit_transaction()
    assert coordinator.ended == [True]


@pytest.mark.parametrize(
    ("errors", "fatal"),
    [
        pytest.param([Errors.CONCURRENT_TRANSACTIONS, Errors.COORDINATOR_NOT_AVAILABLE], None, id="retriable"),
        pytest.param([Errors.PRODUCER_FENCED], Errors.PRODUCER_FENCED, id="fenced"),
        pytest.param([Errors.INVALID_PRODUCER_ID_MAPPING], Errors.INVALID_PRODUCER_ID_MAPPING, id="unknown id"),
    ],
)
def test_errors_of_end_txn(errors: list[Errors], fatal: Errors | None) -> None:
    _, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    producer.flush()
    coordinator.errors = errors
    if fatal is None:
        producer.commit_transaction()
        assert coordinator.ended == [True]
        return
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction()
    assert (raised.value.error.code(), raised.value.error.fatal()) == (fatal, True)


def test_a_refused_id_is_fatal() -> None:
    _, _, coordinator, producer = with_coordinator(transactional_id="x")
    coordinator.errors = [Errors.INVALID_TRANSACTION_TIMEOUT]
    with pytest.raises(KafkaException) as raised:
        producer.init_transactions()
    assert raised.value.error == Errors.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda p: p.begin_transaction(), id="begin before init"),
        pytest.param(lambda p: p.commit_transaction(), id="commit before init"),
        pytest.param(lambda p: p.abort_transaction(), id="abort before init"),
        pytest.param(lambda p: (p.init_transactions(), p.commit_transaction()), id="commit before begin"),
        pytest.param(lambda p: (p.init_transactions(), p.init_transactions()), id="init twice"),
    ],
)
def test_calls_out_of_order_are_refused(call: Any) -> None:
    _, _, _, producer = with_coordinator(transactional_id="x")
    with pytest.raises(IllegalStateException, match="is not possible"):
        call(producer)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(Producer.begin_transaction, id="begin"),
        pytest.param(Producer.commit_transaction, id="commit"),
        pytest.param(Producer.abort_transaction, id="abort"),
        pytest.param(lambda producer: producer.produce("t", "b"), id="produce"),
    ],
)
def test_a_fatal_error_is_raised_by_every_later_call(call: Callable[[Producer], object]) -> None:
    _, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    coordinator.errors = [Errors.PRODUCER_FENCED]
    for later in (Producer.commit_transaction, call):
        with pytest.raises(KafkaException) as raised:
            later(producer)
        assert raised.value.error == Errors.PRODUCER_FENCED
        assert raised.value.error.fatal()


def test_a_commit_after_a_lost_record_is_refused() -> None:
    """The application cannot find out whether the record was lost before its call or during it."""
    _, leader, coordinator, producer = transactional()
    leader.errors = [Errors.INVALID_RECORD]
    producer.produce("t", "a", partition=0)
    producer.flush()
    for _ in range(2):
        with pytest.raises(KafkaException, match="abort_transaction") as raised:
            producer.commit_transaction()
        assert raised.value.error == Errors.INVALID_TXN_STATE
    producer.abort_transaction()
    assert coordinator.ended == [False]


def test_produce_requires_an_open_transaction() -> None:
    _, _, _, producer = with_coordinator(transactional_id="x")
    with pytest.raises(KafkaException, match="begin_transaction") as raised:
        producer.produce("t", "a")
    assert raised.value.error == KafkaError._STATE


def test_transactions_require_a_transactional_id() -> None:
    _, _, _, producer = with_coordinator()
    with pytest.raises(IllegalStateException, match=r"transactional\.id"):
        producer.init_transactions()


def test_close_aborts_an_open_transaction() -> None:
    fake, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    producer.flush()
    producer.close()
    assert (coordinator.ended, fake.closed) == ([False], True)


# ---- the coordinator -------------------------------------------------------------------------------------------------


def nodes_of(fake: Fake, kind: type[Any]) -> list[int]:
    return [sent.node for sent in fake.sent if isinstance(sent.request, kind)]


def coordinators(fake: Fake, *nodes: int) -> None:
    """Look-ups return one node after the other; the last one repeatedly."""
    left = list(nodes)

    def find(fake: Fake, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        assert (request.key_type, request.coordinator_keys) == (CoordinatorType.TRANSACTION, ("x",))
        found = left.pop(0) if len(left) > 1 else left[0]
        return FindCoordinatorResponse(coordinators=(FindCoordinatorResponse.Coordinator(key="x", node_id=found),))

    fake.answers[FindCoordinatorRequest] = find


def test_requests_go_to_the_coordinator_of_the_transactional_id() -> None:
    fake, _, coordinator, producer = with_coordinator(transactional_id="x")
    coordinators(fake, 4)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", "a", partition=0)
    producer.commit_transaction()
    assert (nodes_of(fake, InitProducerIdRequest), nodes_of(fake, EndTxnRequest)) == ([4], [4])
    assert len(fake.requests(FindCoordinatorRequest)) == 1
    assert coordinator.ended == [True]


def test_without_transactions_any_broker_gives_a_producer_id() -> None:
    fake, _, _, producer = with_coordinator(enable_idempotence=True)
    producer.produce("t", "a", partition=0)
    producer.flush()
    assert nodes_of(fake, InitProducerIdRequest) == [-1]
    assert fake.requests(FindCoordinatorRequest) == []


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.NETWORK_EXCEPTION])
def test_a_moved_coordinator_is_looked_up(error: Errors) -> None:
    fake, _, coordinator, producer = with_coordinator(transactional_id="x")
    coordinators(fake, 4, 5)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", "a", partition=0)
    producer.flush()
    end, errors = fake.answers[EndTxnRequest], [error]

    def moved(fake: Fake, node: int, request: EndTxnRequest) -> Any:
        if not errors:
            return end(fake, node, request)
        found = errors.pop()
        return found if found is Errors.NETWORK_EXCEPTION else EndTxnResponse(error_code=found)

    fake.answers[EndTxnRequest] = moved
    producer.commit_transaction()
    assert (nodes_of(fake, EndTxnRequest), coordinator.ended) == ([4, 5], [True])


def test_a_final_error_of_the_coordinator_lookup_is_fatal() -> None:
    fake, _, _, producer = with_coordinator(transactional_id="x")
    refused = FindCoordinatorResponse.Coordinator(
        key="x", error_code=Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error_message="not yours"
    )
    fake.answers[FindCoordinatorRequest] = lambda f, n, r: FindCoordinatorResponse(coordinators=(refused,))
    with pytest.raises(KafkaException, match="not yours") as raised:
        producer.init_transactions()
    assert raised.value.error == Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert raised.value.error.fatal()


def test_a_broker_without_transaction_version_2_is_an_error() -> None:
    fake, _, _, producer = with_coordinator(transactional_id="x")
    fake.answers[InitProducerIdRequest] = lambda f, n, r: Errors.UNSUPPORTED_VERSION
    with pytest.raises(KafkaException) as raised:
        producer.init_transactions()
    assert raised.value.error == Errors.UNSUPPORTED_VERSION


def test_records_of_an_idempotent_producer_fail_without_a_producer_id() -> None:
    fake, _, _, producer = with_coordinator(enable_idempotence=True)
    fake.answers[InitProducerIdRequest] = lambda f, n, r: Errors.UNSUPPORTED_VERSION
    reports = Reports()
    producer.produce("t", "a", partition=0, on_delivery=reports)
    assert producer.flush(1) == 0
    assert reports == [(Errors.UNSUPPORTED_VERSION, 0, -1001)]


def test_a_commit_is_refused_if_only_an_abort_is_possible() -> None:
    _, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    producer.flush()
    coordinator.errors = [Errors.TRANSACTION_ABORTABLE]
    with pytest.raises(KafkaException, match="abort_transaction"):
        producer.commit_transaction()
    producer.abort_transaction()
    assert coordinator.ended == [False]


def test_an_abort_cannot_be_answered_with_another_abort() -> None:
    _, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    producer.flush()
    coordinator.errors = [Errors.TRANSACTION_ABORTABLE]
    with pytest.raises(KafkaException) as raised:
        producer.abort_transaction()
    assert raised.value.error.fatal()


def test_a_fenced_producer_can_be_closed() -> None:
    fake, _, coordinator, producer = transactional()
    producer.produce("t", "a", partition=0)
    producer.flush()
    coordinator.errors = [Errors.PRODUCER_FENCED]
    producer.close()
    assert fake.closed
