"""Random lives of one transactional id against a model that is a handful of variables.

The model knows no states by name: whether something is open, whether it is being completed, how it last ended, and the
epoch in force. Brokers change at any time, appends fail, leaders fall silent.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shareq.coordinator.other.transaction.markers import RETRY_BACKOFF_MS
from shareq.coordinator.other.transaction.states import AT_REST, TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from tests.coordinator.other.transaction.stage import BLOCK, Stage
from tests.coordinator.quiet import check_transaction_coordinator

E = Errors
_partitions = st.integers(0, 2).map(lambda index: TopicPartition("orders", index))
_epochs = st.sampled_from([-2, -1, 0, 0, 0, 0, 1])
"""How far from the epoch in force a producer believes to be."""


class Life(RuleBasedStateMachine):
    """`epoch` in force; `reached` partitions, None while nothing is open; `decision` under way; `last` decision.
    `completing`: the markers of the decision are written, and that could not be stored yet."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.epoch = 0
        self.reached: set[TopicPartition] | None = None
        self.decision: bool | None = None
        self.last: bool | None = None
        self.completing = False
        self.expected_markers: list[tuple[TopicPartition, bool, int]] = []

    @initialize()
    def begin(self) -> None:
        assert self.stage.init().producer_epoch == 0

    def decide(self, commit: bool, *, bump: bool) -> None:
        """What is open has ended in the model."""
        self.epoch += bump
        self.expected_markers += [(at, commit, self.epoch) for at in sorted(self.reached or ())]
        self.reached, self.last = None, commit
        self.decision = commit if self.stage.kept else None

    @rule(at=_partitions, off=_epochs)
    def add(self, at: TopicPartition, off: int) -> None:
        error = self.stage.add(at, epoch=self.epoch + off)
        expected = E.PRODUCER_FENCED if off else E.CONCURRENT_TRANSACTIONS if self.decision is not None else E.NONE
        assert error is expected
        if not error:
            self.reached = (self.reached or set()) | {at}

    @rule(commit=st.booleans(), off=_epochs)
    def end(self, commit: bool, off: int) -> None:
        """EndTxn 5."""
        response = self.stage.end(self.epoch + off, commit=commit)
        if off not in (0, -1):
            assert response.error_code is E.PRODUCER_FENCED
        elif off == -1:
            self._end_again(commit, response.error_code, response.producer_epoch)
        elif self.decision is not None:
            assert response.error_code is E.PRODUCER_FENCED
        elif commit and self.reached is None:
            assert response.error_code is E.INVALID_TXN_STATE
        else:
            self.decide(commit, bump=True)
            assert (response.error_code, response.producer_epoch) == (E.NONE, self.epoch)

    def _end_again(self, commit: bool, error: Errors, epoch: int) -> None:
        """A repeated request: what it finds is the end that it asked for, another end, or something newer."""
        if self.decision is not None:
            assert error is (E.CONCURRENT_TRANSACTIONS if commit == self.decision else E.INVALID_TXN_STATE)
        elif self.reached is not None or self.last is None:
            assert error is E.PRODUCER_FENCED
        elif commit == self.last:
            assert (error, epoch) == (E.NONE, self.epoch)
        else:
            assert error is E.INVALID_TXN_STATE

    @rule(commit=st.booleans(), off=_epochs)
    def end_as_of_old(self, commit: bool, off: int) -> None:
        """EndTxn 4."""
        error = self.stage.end(self.epoch + off, commit=commit, version=4).error_code
        if off:
            assert error is E.PRODUCER_FENCED
        elif self.decision is not None:
            assert error is (E.CONCURRENT_TRANSACTIONS if commit == self.decision else E.INVALID_TXN_STATE)
        elif self.reached is None:
            assert error is (E.NONE if self.last is commit else E.INVALID_TXN_STATE)
        else:
            self.decide(commit, bump=False)
            assert error is E.NONE

    @rule()
    def take_over(self) -> None:
        """A new producer: what is open is aborted first."""
        response = self.stage.init()
        if self.decision is not None:
            assert response.error_code is E.CONCURRENT_TRANSACTIONS
        elif self.reached is not None:
            assert response.error_code is E.CONCURRENT_TRANSACTIONS
            self.decide(False, bump=True)
        else:
            self.epoch += 1
            self.last = None
            assert (response.error_code, response.producer_epoch) == (E.NONE, self.epoch)

    @rule()
    def fall_silent(self) -> None:
        self.stage.silent = True

    @rule()
    def speak(self) -> None:
        """What could not be stored is stored with the next attempt."""
        self.stage.speak()
        self.stage.advance(RETRY_BACKOFF_MS)
        self.completing, self.decision = False, None

    @precondition(lambda self: self.decision is not None)
    @rule(error=st.sampled_from([E.NOT_ENOUGH_REPLICAS, E.KAFKA_STORAGE_ERROR]))
    def a_completion_that_cannot_be_stored(self, error: Errors) -> None:
        """All markers are written, and the decision stays until time passes."""
        self.stage.append_error = error
        self.stage.speak()
        self.stage.append_error = E.NONE
        self.completing = True

    @rule()
    def another_coordinator(self) -> None:
        """It knows the log and nothing else, and sends again what it finds decided."""
        self.stage.start()
        self.completing = False
        if not self.stage.kept:
            self.decision = None

    @rule()
    def a_minute_passes(self) -> None:
        """Time-outs are a minute: what is open now is overdue at the second scan from here."""
        self.stage.advance(80_000)
        if self.completing:
            self.completing, self.decision = False, None
        if self.reached is not None:
            self.decide(False, bump=True)

    @precondition(lambda self: self.reached is not None)
    @rule()
    def a_decision_that_cannot_be_stored(self) -> None:
        self.stage.append_error = E.NOT_ENOUGH_REPLICAS
        assert self.stage.end(self.epoch).error_code is E.COORDINATOR_NOT_AVAILABLE
        self.stage.append_error = E.NONE

    @invariant()
    def the_log_says_the_same(self) -> None:
        if not self.stage.history():
            return
        known = self.stage.known()
        assert (known.producer_id, known.producer_epoch) == (BLOCK, self.epoch)
        assert (known.state is TransactionState.ONGOING) == (self.reached is not None)
        assert known.state.is_preparing == (self.decision is not None)
        if known.state in AT_REST:
            assert not known.partitions

    @invariant()
    def markers_are_those_of_decisions_in_their_order(self) -> None:
        """Written at least once each, never for anything else; one is repeated only by another coordinator."""
        written = [(at, commit, epoch) for at, commit, _, epoch in self.stage.marked]
        assert set(written) <= set(self.expected_markers)
        if self.decision is None:
            assert set(written) == set(self.expected_markers)

    def teardown(self) -> None:
        """In the end everything is complete: what is open is aborted in its time, and nothing is pending."""
        self.stage.speak()
        self.stage.advance(80_000)
        if self.stage.history():
            assert self.stage.known().state in AT_REST
        check_transaction_coordinator(self.stage.coordinator)


TestLife = Life.TestCase
