"""The periodic tasks of the transaction coordinator: abort timed-out transactions, delete expired transactional ids.

Both run at fixed intervals, as in Kafka, so a transaction may exceed its timeout by up to one interval. A task whose
append fails or times out is repeated in the next round.
Source: Kafka's TransactionStateManager (startup of the expiration tasks).
"""

from __future__ import annotations

from shareq.coordinator.runtime.turn import Append, Turn, no_result
from shareq.coordinator.transactions.context import TransactionContext
from shareq.coordinator.transactions.decisions import abort
from shareq.coordinator.transactions.markers import Endings
from shareq.coordinator.transactions.records import Transaction, tombstone
from shareq.coordinator.transactions.states import TRANSITIONS, TransactionEvent, TransactionState
from shareq.model.configs import BrokerConfig
from shareq.model.workflow import Workflow


def is_timed_out(known: Transaction, now_ms: int) -> bool:
    """True if the transaction is open for longer than its transaction timeout."""
    return known.state is TransactionState.ONGOING and known.start_ms + known.timeout_ms < now_ms


def abort_timed_out(
    context: TransactionContext, endings: Endings, partition: int, transactional_id: str
) -> Workflow[None]:
    """Abort a timed-out transaction, unless it has ended before the turn."""
    shard = yield Turn(partition, no_result)
    known = shard.transactions.get(transactional_id)
    if known is not None and is_timed_out(known, context.day_ms):
        yield from abort(context, endings, known, shard)


def delete_expired(context: TransactionContext, partition: int, expiration_ms: int) -> Workflow[None]:
    """Delete all transactional ids at rest that were not updated for `expiration_ms`."""
    shard = yield Turn(partition, no_result)
    oldest_ms = context.day_ms - expiration_ms
    yield Append(
        [
            tombstone(known.transactional_id)
            for known in shard.transactions.values()
            if (known.state, TransactionEvent.EXPIRED) in TRANSITIONS and known.last_update_ms <= oldest_ms
        ]
    )


class Housekeeping:
    """The periodic rounds of one coordinator. `wake_at_ms` is None if there are no transactional ids to check."""

    def __init__(self, context: TransactionContext, endings: Endings) -> None:
        self._context = context
        self._endings = endings
        self._config = BrokerConfig()
        self._abort_due_ms: int | None = None
        self._expiry_due_ms: int | None = None

    @property
    def _abort_interval_ms(self) -> int:
        interval_ms: int = self._config["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        return interval_ms

    @property
    def _expiry_interval_ms(self) -> int:
        interval_ms: int = self._config["transaction.remove.expired.transaction.cleanup.interval.ms"]
        return interval_ms

    @property
    def wake_at_ms(self) -> int | None:
        shards = [shard for _, shard in self._context.runtime.active()]
        times = [
            self._abort_due_ms if any(shard.open for shard in shards) else None,
            self._expiry_due_ms if any(shard.transactions for shard in shards) else None,
        ]
        return min((t for t in times if t is not None), default=None)

    def configure(self, config: BrokerConfig, now_ms: int) -> None:
        """Set the intervals. The first call starts the rounds; later calls change the intervals of later rounds."""
        self._config = config
        if self._abort_due_ms is None or self._expiry_due_ms is None:
            self._abort_due_ms = now_ms + self._abort_interval_ms
            self._expiry_due_ms = now_ms + self._expiry_interval_ms

    def tick(self, now_ms: int) -> None:
        """Run the rounds that are due. Several missed rounds are made up by one."""
        if self._abort_due_ms is not None and self._abort_due_ms <= now_ms:
            self._abort_due_ms = _next(self._abort_due_ms, self._abort_interval_ms, now_ms)
            self._abort_all_timed_out()
        if self._expiry_due_ms is not None and self._expiry_due_ms <= now_ms:
            self._expiry_due_ms = _next(self._expiry_due_ms, self._expiry_interval_ms, now_ms)
            self._delete_all_expired()

    def _abort_all_timed_out(self) -> None:
        context = self._context
        for partition, shard in context.runtime.active():
            late = sorted(id_ for id_ in shard.open if is_timed_out(shard.transactions[id_], context.day_ms))
            for transactional_id in late:
                context.runtime.start(abort_timed_out(context, self._endings, partition, transactional_id))

    def _delete_all_expired(self) -> None:
        expiration_ms: int = self._config["transactional.id.expiration.ms"]
        for partition, _ in self._context.runtime.active():
            self._context.runtime.start(delete_expired(self._context, partition, expiration_ms))


def _next(due_ms: int, interval_ms: int, now_ms: int) -> int:
    """The first round after now, a whole number of intervals after `due_ms`."""
    return due_ms + ((now_ms - due_ms) // interval_ms + 1) * interval_ms
