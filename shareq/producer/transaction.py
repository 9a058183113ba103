"""The producer's id and epoch, and the states of its transactions."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from shareq.client.calls import Backoff, Calls
from shareq.client.coordinator import CoordinatorLookup
from shareq.model.actor import ANY_NODE
from shareq.model.errors import Errors, IllegalStateException, KafkaError, KafkaException
from shareq.model.messages.base import Response
from shareq.model.messages.cluster import CoordinatorType
from shareq.model.messages.transactions import (
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)


class ProducerTransactionState(StrEnum):
    """FATAL: the producer is fenced, or a broker has refused it with a final error."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in_transaction"
    ABORTABLE = "abortable_error"
    COMMITTING = "committing"
    ABORTING = "aborting"
    FATAL = "fatal"


class ProducerTransactionEvent(StrEnum):
    INIT = "init"
    INITIALIZED = "initialized"
    BEGIN = "begin"
    RECORD_FAILED = "record_failed"
    COMMIT = "commit"
    ABORT = "abort"
    ENDED = "ended"
    REFUSED = "refused"


_S, _E = ProducerTransactionState, ProducerTransactionEvent

_OF_CALLERS = frozenset({_E.BEGIN, _E.COMMIT, _E.ABORT})
_FIRST = {
    _S.UNINITIALIZED: "call init_transactions()",
    _S.READY: "call begin_transaction()",
    _S.IN_TRANSACTION: "call commit_transaction() or abort_transaction()",
}
"""The call that leads on."""

TRANSITIONS: dict[tuple[ProducerTransactionState, ProducerTransactionEvent], ProducerTransactionState] = {
    (_S.UNINITIALIZED, _E.INIT): _S.INITIALIZING,
    (_S.INITIALIZING, _E.INIT): _S.INITIALIZING,
    (_S.INITIALIZING, _E.INITIALIZED): _S.READY,
    (_S.READY, _E.BEGIN): _S.IN_TRANSACTION,
    (_S.IN_TRANSACTION, _E.RECORD_FAILED): _S.ABORTABLE,
    (_S.ABORTABLE, _E.RECORD_FAILED): _S.ABORTABLE,
    (_S.COMMITTING, _E.RECORD_FAILED): _S.ABORTABLE,
    (_S.IN_TRANSACTION, _E.COMMIT): _S.COMMITTING,
    (_S.COMMITTING, _E.COMMIT): _S.COMMITTING,
    (_S.IN_TRANSACTION, _E.ABORT): _S.ABORTING,
    (_S.ABORTABLE, _E.ABORT): _S.ABORTING,
    (_S.ABORTING, _E.ABORT): _S.ABORTING,
    (_S.COMMITTING, _E.ENDED): _S.READY,
    (_S.ABORTING, _E.ENDED): _S.READY,
    **{(state, _E.REFUSED): _S.FATAL for state in _S},
}
"""A missing row is an illegal call; see `ProducerIdentity.move`. A call that timed out may be repeated."""


LAST_EPOCH = (1 << 15) - 1

COORDINATOR_MOVED = frozenset({Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE})


def abort_required() -> KafkaException:
    """The error of a transaction that lacks a record."""
    why = "a record of the transaction was not delivered: abort_transaction() is required"
    return KafkaException(KafkaError(Errors.INVALID_TXN_STATE, why))


FATAL = frozenset(
    {
        Errors.INVALID_PRODUCER_EPOCH,
        Errors.INVALID_PRODUCER_ID_MAPPING,
        Errors.PRODUCER_FENCED,
        Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors of additions to a transaction that end the producer."""


class ProducerIdentity:
    """Producer id and epoch, requested when needed. Without idempotence there is no id.

    Any broker assigns an id; for a transactional.id, its transaction coordinator does, and also ends the transactions.
    A partition joins a transaction with the first write (KIP-890), without a request of its own. `on_change()` is
    called after a new id or epoch: sequences restart.
    """

    def __init__(
        self,
        calls: Calls,
        backoff: Backoff,
        *,
        transactional_id: str | None,
        idempotent: bool,
        timeout_ms: int,
        on_change: Callable[[], None],
    ) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self.transactional_id = transactional_id
        self.idempotent = idempotent
        self.state = ProducerTransactionState.UNINITIALIZED
        self.error: KafkaError | None = None
        self.wrote = False
        """True if the open transaction has reached a broker; otherwise it ends without a request."""
        self._calls = calls
        self._backoff = backoff
        self._timeout_ms = timeout_ms
        self._on_change = on_change
        self._coordinator: CoordinatorLookup | None = None
        if transactional_id is not None:
            self._coordinator = CoordinatorLookup(calls, backoff, transactional_id, CoordinatorType.TRANSACTION)
        self._under_way = False
        self._attempts = 0
        self._not_before_ms = 0

    @property
    def known(self) -> bool:
        """True if batches may be sent."""
        return not self.idempotent or self.producer_id >= 0

    @property
    def settled(self) -> bool:
        """True if no request to the transaction coordinator is pending."""
        return self.state not in (_S.INITIALIZING, _S.COMMITTING, _S.ABORTING)

    def move(self, event: ProducerTransactionEvent) -> None:
        """Apply an event. An illegal event raises the fatal error if there is one; INVALID_TXN_STATE if the transaction
        must be aborted; otherwise IllegalStateException."""
        if self.transactional_id is None:
            raise IllegalStateException("transactions need transactional.id in the configuration")
        state = TRANSITIONS.get((self.state, event))
        if state is None:
            raise self._refusal(event)
        self.state = state

    def _refusal(self, call: str) -> Exception:
        """The exception for a call that is illegal in this state."""
        if self.error is not None:
            return KafkaException(self.error)
        if self.state is _S.ABORTABLE and call not in (_E.INIT, _E.BEGIN):
            return abort_required()
        first = f": {_FIRST[self.state]} first" if self.state in _FIRST and call in _OF_CALLERS else ""
        return IllegalStateException(f"{call} is not possible: the state of the transaction is {self.state}{first}")

    def bump(self) -> None:
        """Go to the next epoch after a batch was dropped that may still be in flight: brokers refuse it (KIP-360).

        Without a transactional.id the producer itself counts epochs; after the last one it requests a new id. With a
        transactional.id the transaction is aborted, and the coordinator counts the epoch.
        """
        if not self.idempotent or self.transactional_id is not None:
            return
        if self.producer_epoch < LAST_EPOCH:
            self.producer_epoch += 1
        else:
            self.producer_id = self.producer_epoch = -1
        self._on_change()

    def check_open(self, call: str) -> None:
        """Raise an exception unless a transaction is open: its fatal error, or IllegalStateException."""
        if self.transactional_id is None:
            raise IllegalStateException("transactions need transactional.id in the configuration")
        if self.state is not _S.IN_TRANSACTION:
            raise self._refusal(call)

    def record_failed(self) -> None:
        """A record has failed: an open transaction must be aborted."""
        if (self.state, _E.RECORD_FAILED) in TRANSITIONS:
            self.state = TRANSITIONS[self.state, _E.RECORD_FAILED]

    def wake_at_ms(self, *, wanted: bool, drained: Callable[[], bool]) -> int | None:
        if self._question(wanted=wanted, drained=drained) is None:
            return None
        coordinator = self._coordinator
        if coordinator is not None and coordinator.looking:
            return coordinator.wake_at_ms
        return self._not_before_ms

    def pump(self, now_ms: int, *, wanted: bool, drained: Callable[[], bool]) -> None:
        """Request an id if one is `wanted`, and end the transaction once all its records are `drained()`."""
        question = self._question(wanted=wanted, drained=drained)
        if question is None or now_ms < self._not_before_ms:
            return
        coordinator = self._coordinator
        if coordinator is None:
            question(ANY_NODE)
        elif coordinator.node is not None:
            question(coordinator.node)
        elif coordinator.fatal is not None:
            self.fail(*coordinator.fatal)
        else:
            coordinator.want()
            coordinator.pump(now_ms)

    def _question(self, *, wanted: bool, drained: Callable[[], bool]) -> Callable[[int], None] | None:
        """The request that is due, as a function of the node; None if there is none."""
        if self._under_way or self.state is _S.FATAL:
            return None
        if self.state is _S.INITIALIZING or (wanted and not self.known and self.transactional_id is None):
            return self._init
        return self._end if self.state in (_S.COMMITTING, _S.ABORTING) and drained() else None

    def _init(self, node: int) -> None:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms)
        self._ask(node, request)

    def _end(self, node: int) -> None:
        if not self.wrote:
            self.move(_E.ENDED)
            return
        assert self.transactional_id is not None
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=self.state is _S.COMMITTING,
        )
        self._ask(node, request)

    def _ask(self, node: int, request: InitProducerIdRequest | EndTxnRequest) -> None:
        self._under_way = True
        self._calls.send(node, request, self._answered)

    def _answered(self, response: Response | None, error: Errors, now_ms: int) -> None:
        self._under_way = False
        assert response is None or isinstance(response, InitProducerIdResponse | EndTxnResponse)
        failure = error if response is None else response.error_code
        if self._coordinator is not None and (response is None or failure in COORDINATOR_MOVED):
            self._coordinator.forget()
        if failure.retriable:
            self._attempts += 1
            self._not_before_ms = now_ms + self._backoff.delay_ms(self._attempts)
            return
        self._attempts = 0
        if failure is Errors.TRANSACTION_ABORTABLE and self.state is _S.COMMITTING:
            self.record_failed()
            return
        if response is None or failure:
            self.fail(failure, self._calls.reason)
            return
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self.wrote = False
        if self.transactional_id is not None:
            self.move(_E.INITIALIZED if self.state is _S.INITIALIZING else _E.ENDED)
        self._on_change()

    def fail(self, error: Errors, reason: str | None) -> None:
        """Enter the state FATAL, in which the producer can only be closed."""
        self.error = KafkaError(error, reason or None, fatal=True)
        self.state = _S.FATAL

    def refused(self, error: Errors, reason: str | None, fatal: frozenset[Errors] = FATAL) -> KafkaError:
        """The error of a call that adds to the transaction: the producer ends after those of `fatal`; after all others
        the transaction must be aborted."""
        if error in fatal:
            self.fail(error, reason)
            assert self.error is not None
            return self.error
        self.record_failed()
        return KafkaError(error, f"{reason or error.name}: abort_transaction() is required")
