"""What the transaction coordinator does unasked: abort transactions that are open for too long, forget ids out of use.

Both look around at fixed intervals, as Kafka does, so a transaction may outlive its time-out by up to one interval.
What fails, or times out behind a log that stalls, is done in the next round.
Source: Kafka's TransactionStateManager (startup of the expiration tasks).
"""

from __future__ import annotations

from shareq.coordinator.other.transaction.context import Context
from shareq.coordinator.other.transaction.decisions import abort
from shareq.coordinator.other.transaction.markers import Endings
from shareq.coordinator.other.transaction.records import Transaction, tombstone
from shareq.coordinator.other.transaction.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.coordinator.turn import Append, Turn, no_result
from shareq.model.configs import BrokerConfig
from shareq.model.workflow import Workflow


def overdue(known: Transaction, now_ms: int) -> bool:
    """True if the transaction is open for longer than its producer allowed."""
    return known.state is TransactionState.ONGOING and known.start_ms + known.timeout_ms < now_ms


def abort_overdue(context: Context, endings: Endings, partition: int, transactional_id: str) -> Workflow[None]:
    """Abort it, unless it has ended before the turn."""
    shard = yield Turn(partition, no_result)
    known = shard.transactions.get(transactional_id)
    if known is not None and overdue(known, context.now_ms):
        yield from abort(context, endings, known, shard)


def forget_unused(context: Context, partition: int, expiration_ms: int) -> Workflow[None]:
    """End all ids at rest that were not used for so long."""
    shard = yield Turn(partition, no_result)
    oldest_ms = context.now_ms - expiration_ms
    yield Append(
        [
            tombstone(known.transactional_id)
            for known in shard.transactions.values()
            if (known.state, TransactionEvent.EXPIRED) in TRANSITIONS and known.last_update_ms <= oldest_ms
        ]
    )


class Housekeeping:
    """The rounds of one coordinator. It wants to be woken only while there is something to look at."""

    def __init__(self, context: Context, endings: Endings) -> None:
        self._context = context
        self._endings = endings
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
        shards = [shard for _, shard in self._context.runtime.active()]
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

    def tick(self, now_ms: int) -> None:
        """Hold the rounds that are due. Rounds that were not needed are made up for by a single one."""
        if self._abort_due_ms is not None and self._abort_due_ms <= now_ms:
            self._abort_due_ms = _next(self._abort_due_ms, self._abort_interval_ms, now_ms)
            self._abort_all_overdue(now_ms)
        if self._forget_due_ms is not None and self._forget_due_ms <= now_ms:
            self._forget_due_ms = _next(self._forget_due_ms, self._forget_interval_ms, now_ms)
            self._forget_all_unused()

    def _abort_all_overdue(self, now_ms: int) -> None:
        context = self._context
        for partition, shard in context.runtime.active():
            late = sorted(id_ for id_ in shard.open if overdue(shard.transactions[id_], now_ms))
            for transactional_id in late:
                context.runtime.start(abort_overdue(context, self._endings, partition, transactional_id))

    def _forget_all_unused(self) -> None:
        expiration_ms: int = self._config["transactional.id.expiration.ms"]
        for partition, _ in self._context.runtime.active():
            self._context.runtime.start(forget_unused(self._context, partition, expiration_ms))


def _next(due_ms: int, interval_ms: int, now_ms: int) -> int:
    """The first round after now; rounds keep their pace."""
    return due_ms + ((now_ms - due_ms) // interval_ms + 1) * interval_ms
