"""Random histories of one transactional id, compared with a model of a few variables.

The model has no named states: it stores the open partitions, the decision under way, the last decision and the epoch.
Coordinators fail over at any time, appends fail, and leaders hold markers.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shareq.coordinator.transactions.markers import RETRY_BACKOFF_MS
from shareq.coordinator.transactions.states import AT_REST, TransactionState
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from tests.coordinator.quiet import check_transaction_coordinator
from tests.coordinator.transactions.stage import BLOCK, Stage

E = Errors
_partitions = st.integers(0, 2).map(lambda index: TopicPartition("orders", index))
_epochs = st.sampled_from([-2, -1, 0, 0, 0, 0, 1])
"""The difference between a producer's epoch and the present epoch."""


class TransactionMachine(RuleBasedStateMachine):
    """`epoch`: the present one. `reached`: the partitions of the open transaction, None without one. `decision`: the
    one under way. `last`: the last decision. `completing`: all markers are written, but the completion is not
    recorded."""

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
        """End the open transaction in the model."""
        self.epoch += bump
        self.expected_markers += [(at, commit, self.epoch) for at in sorted(self.reached or ())]
        self.reached, self.last = None, commit
        self.decision = commit if self.stage.held_markers else None

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
        """A repeated request finds the same decision, the other decision, or a newer transaction."""
        if self.decision is not None:
            assert error is (E.CONCURRENT_TRANSACTIONS if commit == self.decision else E.INVALID_TXN_STATE)
        elif self.reached is not None or self.last is None:
            assert error is E.PRODUCER_FENCED
        elif commit == self.last:
            assert (error, epoch) == (E.NONE, self.epoch)
        else:
            assert error is E.INVALID_TXN_STATE

    @rule(commit=st.booleans(), off=_epochs)
    def end_version_4(self, commit: bool, off: int) -> None:
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
        """A new producer: an open transaction is aborted first."""
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
    def hold_markers(self) -> None:
        self.stage.holding_markers = True

    @rule()
    def release_markers(self) -> None:
        """A completion that was not recorded is recorded with the next attempt."""
        self.stage.release_markers()
        self.stage.wait(RETRY_BACKOFF_MS)
        self.completing, self.decision = False, None

    @precondition(lambda self: self.decision is not None)
    @rule(error=st.sampled_from([E.NOT_ENOUGH_REPLICAS, E.KAFKA_STORAGE_ERROR]))
    def fail_completion(self, error: Errors) -> None:
        """All markers are written, but the append of the completion fails; it is repeated after the backoff."""
        self.stage.append_error = error
        self.stage.release_markers()
        self.stage.append_error = E.NONE
        self.completing = True

    @rule()
    def fail_over(self) -> None:
        """The new coordinator loads the log, and sends the markers of recorded decisions again."""
        self.stage.start()
        self.completing = False
        if not self.stage.held_markers:
            self.decision = None

    @rule()
    def time_out(self) -> None:
        """The transaction timeout of one minute passes: an open transaction is aborted."""
        self.stage.wait(80_000)
        if self.completing:
            self.completing, self.decision = False, None
        if self.reached is not None:
            self.decide(False, bump=True)

    @precondition(lambda self: self.reached is not None)
    @rule()
    def fail_decision(self) -> None:
        self.stage.append_error = E.NOT_ENOUGH_REPLICAS
        assert self.stage.end(self.epoch).error_code is E.COORDINATOR_NOT_AVAILABLE
        self.stage.append_error = E.NONE

    @invariant()
    def log_equals_model(self) -> None:
        if not self.stage.history():
            return
        known = self.stage.known()
        assert (known.producer_id, known.producer_epoch) == (BLOCK, self.epoch)
        assert (known.state is TransactionState.ONGOING) == (self.reached is not None)
        assert known.state.is_preparing == (self.decision is not None)
        if known.state in AT_REST:
            assert not known.partitions

    @invariant()
    def markers_are_those_of_the_decisions(self) -> None:
        """Each marker of a completed decision is written at least once, and no other marker."""
        written = [(at, commit, epoch) for at, commit, _, epoch in self.stage.marked]
        assert set(written) <= set(self.expected_markers)
        if self.decision is None:
            assert set(written) == set(self.expected_markers)

    def teardown(self) -> None:
        """At the end an open transaction times out, and nothing is pending."""
        self.stage.release_markers()
        self.stage.wait(80_000)
        if self.stage.history():
            assert self.stage.known().state in AT_REST
        check_transaction_coordinator(self.stage.coordinator)


TestTransaction = TransactionMachine.TestCase
