"""What the transaction coordinator does unasked: abort transactions that are open for too long, forget ids out of use.

Both look around at fixed intervals, as Kafka does, so a transaction may outlive its time-out by up to one interval.
What fails, or times out behind a log that stalls, is done in the next round.
Source: Kafka's TransactionStateManager (startup of the expiration tasks).
"""

from __future__ import annotations

from functools import partial

from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.shard import Operation, Outcome, itself, no_answer
from shareq.coordinator.transaction.decisions import Means, abort
from shareq.coordinator.transaction.records import Transaction, tombstone
from shareq.coordinator.transaction.state import TransactionShard
from shareq.coordinator.transaction.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.actor import Effect
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors


def overdue(known: Transaction, now_ms: int) -> bool:
    """Whether the transaction is open for longer than its producer allowed."""
    return known.state is TransactionState.ONGOING and known.start_ms + known.timeout_ms < now_ms


def abort_overdue(transactional_id: str, means: Means, shard: TransactionShard, now_ms: int) -> Outcome[Errors]:
    """Abort it, unless somebody was quicker."""
    known = shard.transactions.get(transactional_id)
    if known is None or not overdue(known, now_ms):
        return Outcome(Errors.NONE)
    return abort(known, means, shard, now_ms)


def forget_unused(expiration_ms: int, shard: TransactionShard, now_ms: int) -> Outcome[Errors]:
    """End all ids at rest that nobody has used for so long."""
    return Outcome(
        Errors.NONE,
        [
            tombstone(known.transactional_id)
            for known in shard.transactions.values()
            if (known.state, TransactionEvent.EXPIRED) in TRANSITIONS and known.last_update_ms <= now_ms - expiration_ms
        ],
    )


class Housekeeping:
    """The rounds of one coordinator. It wants to be woken only while there is something to look at."""

    def __init__(self, runtime: ShardRuntime[TransactionShard], means: Means) -> None:
        self._runtime = runtime
        self._means = means
        self._config = BrokerConfig()
        self._abort_due_ms: int | None = None
        self._forget_due_ms: int | None = None

    @property
    def _abort_interval_ms(self) -> int:
        interval_ms: int = self._config["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        return interval_ms

    @property
    def _forget_interval_ms(self) -> int:
        interval_ms: int = self._config["transaction.remove.expired.transaction.cleanup.interval.ms"]
        return interval_ms

    @property
    def wake_at_ms(self) -> int | None:
        shards = [shard for _, shard in self._runtime.active()]
        times = [
            self._abort_due_ms if any(shard.open for shard in shards) else None,
            self._forget_due_ms if any(shard.transactions for shard in shards) else None,
        ]
        return min((t for t in times if t is not None), default=None)

    def configure(self, config: BrokerConfig, now_ms: int) -> None:
        """Start the rounds, in the broker's first moment; later ones find new intervals."""
        self._config = config
        if self._abort_due_ms is None or self._forget_due_ms is None:
            self._abort_due_ms = now_ms + self._abort_interval_ms
            self._forget_due_ms = now_ms + self._forget_interval_ms

    def tick(self, now_ms: int) -> list[Effect]:
        """Hold the rounds that are due. Rounds that nobody needed are made up for by a single one."""
        effects: list[Effect] = []
        if self._abort_due_ms is not None and self._abort_due_ms <= now_ms:
            self._abort_due_ms = _next(self._abort_due_ms, self._abort_interval_ms, now_ms)
            effects += self._abort_all_overdue(now_ms)
        if self._forget_due_ms is not None and self._forget_due_ms <= now_ms:
            self._forget_due_ms = _next(self._forget_due_ms, self._forget_interval_ms, now_ms)
            effects += self._forget_all_unused(now_ms)
        return effects

    def _abort_all_overdue(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        for partition, shard in self._runtime.active():
            late = sorted(id_ for id_ in shard.open if overdue(shard.transactions[id_], now_ms))
            for transactional_id in late:
                operation = Operation(partial(abort_overdue, transactional_id, self._means), itself, no_answer)
                effects += self._runtime.schedule(partition, operation, now_ms)
        return effects

    def _forget_all_unused(self, now_ms: int) -> list[Effect]:
        expiration_ms: int = self._config["transactional.id.expiration.ms"]
        effects: list[Effect] = []
        for partition, _ in self._runtime.active():
            operation = Operation(partial(forget_unused, expiration_ms), itself, no_answer)
            effects += self._runtime.schedule(partition, operation, now_ms)
        return effects


def _next(due_ms: int, interval_ms: int, now_ms: int) -> int:
    """The first round after now; rounds keep their pace."""
    return due_ms + ((now_ms - due_ms) // interval_ms + 1) * interval_ms
