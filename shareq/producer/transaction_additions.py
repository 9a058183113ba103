"""What the open transaction has beside its records: offsets of consumer groups, acknowledgements of share groups."""

from __future__ import annotations

from collections.abc import Mapping

from shareq.client.calls import Backoff, Calls, earliest
from shareq.client.metadata import Metadata
from shareq.client.share_group import ShareGroupMetadata
from shareq.model.errors import IllegalStateException
from shareq.model.ids import Place, TopicId
from shareq.producer.transaction import ProducerIdentity, ProducerTransactionState
from shareq.producer.transaction_offsets import CommittedOffset, ConsumerGroupMetadata, TransactionOffsetCommit
from shareq.producer.transaction_shares import ShareAcknowledgements, TransactionShareAcknowledgements


class TransactionAdditions:
    """The additions to the open transaction, one of each kind at a time."""

    def __init__(self, calls: Calls, backoff: Backoff, identity: ProducerIdentity, metadata: Metadata) -> None:
        self._calls = calls
        self._backoff = backoff
        self._identity = identity
        self._metadata = metadata
        self._offsets: TransactionOffsetCommit | None = None
        self._shares: TransactionShareAcknowledgements | None = None

    @property
    def wake_at_ms(self) -> int | None:
        return earliest(*[added.wake_at_ms for added in (self._offsets, self._shares) if added is not None])

    @property
    def settled(self) -> bool:
        """True if no acknowledgement is on its way: the transaction may end."""
        return self._shares is None or self._shares.done

    def pump(self, now_ms: int) -> None:
        for added in (self._offsets, self._shares):
            if added is not None:
                added.pump(now_ms)

    def step(self) -> None:
        """The transaction takes a step. An abort waits for no acknowledgement: one that arrives later is refused."""
        self._offsets = None
        if self._shares is not None and self._identity.state is ProducerTransactionState.ABORTING:
            self._shares.cancel()

    def send_offsets(
        self, group: ConsumerGroupMetadata, offsets: Mapping[tuple[str, int], CommittedOffset]
    ) -> TransactionOffsetCommit:
        """Add a group's offsets to the open transaction."""
        self._identity.check_open("send_offsets_to_transaction")
        self._offsets = TransactionOffsetCommit(self._calls, self._backoff, self._identity, group, offsets)
        return self._offsets

    def shares_under_way(self, wanted: ShareAcknowledgements) -> TransactionShareAcknowledgements | None:
        """The acknowledgements of a former call with the same content that are still in progress; None if there are
        none. IllegalStateException without an open transaction, and if others are in progress."""
        self._identity.check_open("send_share_acknowledgements_to_transaction")
        shares = self._shares
        if shares is None or shares.done:
            return None
        if shares.wanted != wanted:
            raise IllegalStateException("other acknowledgements are still in progress: call again with those")
        return shares

    def send_shares(
        self, group: ShareGroupMetadata, wanted: ShareAcknowledgements, topic_ids: Mapping[Place, TopicId]
    ) -> TransactionShareAcknowledgements:
        """Acknowledge records of a member in the open transaction. The consumer has handed them over."""
        self._identity.check_open("send_share_acknowledgements_to_transaction")
        self._shares = TransactionShareAcknowledgements(
            self._calls,
            self._backoff,
            self._identity,
            self._metadata,
            group=group,
            wanted=wanted,
            topic_ids=topic_ids,
        )
        return self._shares
