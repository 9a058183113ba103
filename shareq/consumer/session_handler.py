"""The client's side of a share session: the partitions of one broker's session, and the requests that change them.

Source: KIP-932, "Share sessions". The epoch counts requests, so that a lost request is detected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from shareq.consumer.acknowledgements import Acknowledgements, AcknowledgeRun, MemberIdentity, encode, merge_runs
from shareq.model.ids import TopicId, TopicIdPartition
from shareq.model.messages.share_fetch import (
    FINAL_EPOCH,
    AcknowledgementBatch,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from shareq.model.states import AcquireMode

INITIAL_EPOCH = 0
MAX_EPOCH = (1 << 31) - 1
NO_PARTITIONS: frozenset[TopicIdPartition] = frozenset()


class FetchLimits(NamedTuple):
    """The limits of a fetch. `max_records` is also sent as the batch size."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    acquire_mode: AcquireMode


class ShareSessionHandler:
    """One broker's session. `epoch`: of the next request; `members`: the partitions in the broker's session.

    At most one request is in progress (`busy`), because each carries the next epoch.
    """

    __slots__ = (
        "_added",
        "_forgotten",
        "busy",
        "epoch",
        "failures",
        "members",
        "node",
        "not_before_ms",
        "sent_at_ms",
        "waiting",
        "wanted",
    )

    def __init__(self, node: int) -> None:
        self.node = node
        self.epoch = INITIAL_EPOCH
        self.members: set[TopicIdPartition] = set()
        self.wanted: frozenset[TopicIdPartition] = NO_PARTITIONS
        self.waiting: deque[Acknowledgements] = deque()
        self.busy = False
        self.failures = 0
        self.not_before_ms = 0
        self.sent_at_ms = 0
        self._added: frozenset[TopicIdPartition] | set[TopicIdPartition] = NO_PARTITIONS
        self._forgotten: frozenset[TopicIdPartition] | set[TopicIdPartition] = NO_PARTITIONS

    def want(self, wanted: frozenset[TopicIdPartition]) -> None:
        """Set the partitions to fetch; the next fetch request contains the changes."""
        self.wanted = wanted
        self._added = wanted - self.members
        self._forgotten = self.members - wanted

    @property
    def opened(self) -> bool:
        """True if the broker has a session of this client."""
        return self.epoch != INITIAL_EPOCH

    @property
    def has_changes(self) -> bool:
        """True if there is a partition to fetch, or one to remove from the broker's session."""
        return bool(self.wanted or (self._forgotten and self.opened))

    @property
    def idle(self) -> bool:
        """True if the broker has a session of this client without partitions, and no request for it is due."""
        return self.opened and not (self.busy or self.wanted or self.members or self.waiting)

    def answered(self) -> None:
        """A response has arrived: the broker has counted the request."""
        self.busy = False
        self.epoch = self.epoch + 1 if self.epoch < MAX_EPOCH else 1

    def lost(self) -> None:
        """The broker has no such session, or its state is unknown: the next fetch opens a new one."""
        self.busy = False
        self.epoch = INITIAL_EPOCH
        self.members.clear()
        self.want(self.wanted)

    def take_waiting(self) -> list[Acknowledgements]:
        """Remove the waiting acknowledgements that fit in one request, in order: each offset of a partition once."""
        taken: list[Acknowledgements] = []
        runs: dict[TopicIdPartition, list[Sequence[AcknowledgeRun]]] = {}
        while self.waiting:
            theirs = runs.setdefault(self.waiting[0].key, [])
            theirs.append(self.waiting[0].runs)
            if len(theirs) > 1 and merge_runs(theirs) is None:
                break
            taken.append(self.waiting.popleft())
        return taken

    def fetch(
        self, identity: MemberIdentity, limits: FetchLimits, piggybacked: Sequence[Acknowledgements]
    ) -> ShareFetchRequest:
        """A fetch request with the changes since the last one, and with acknowledgements."""
        partitions: dict[TopicId, list[ShareFetchRequest.Partition]] = {}
        batches = _batches(piggybacked)
        for topic_id, index in sorted({*self._added, *batches}):
            acknowledged = batches.get(TopicIdPartition(topic_id, index), ())
            partitions.setdefault(topic_id, []).append(
                ShareFetchRequest.Partition(partition_index=index, acknowledgement_batches=acknowledged)
            )
        request = _fetch(
            identity,
            self.epoch,
            limits,
            topics=tuple(ShareFetchRequest.Topic(topic_id=t, partitions=tuple(p)) for t, p in partitions.items()),
            forgotten_topics_data=_forgotten(self._forgotten),
        )
        if self._added or self._forgotten:
            self.members = set(self.wanted)
            self._added = self._forgotten = NO_PARTITIONS
        return request

    def end(self, identity: MemberIdentity, limits: FetchLimits) -> ShareFetchRequest:
        """A fetch request without content that ends the session."""
        return _fetch(identity, FINAL_EPOCH, limits)

    def acknowledge(
        self, identity: MemberIdentity, taken: Sequence[Acknowledgements], *, final: bool = False
    ) -> ShareAcknowledgeRequest:
        """A request with acknowledgements only; `final` closes the session, which releases all locked records."""
        partitions: dict[TopicId, list[ShareAcknowledgeRequest.Partition]] = {}
        for (topic_id, index), batches in _batches(taken).items():
            partitions.setdefault(topic_id, []).append(
                ShareAcknowledgeRequest.Partition(partition_index=index, acknowledgement_batches=batches)
            )
        return ShareAcknowledgeRequest(
            group_id=identity.group_id,
            member_id=identity.member_id,
            share_session_epoch=FINAL_EPOCH if final else self.epoch,
            is_renew_ack=any(acknowledgements.renews for acknowledgements in taken),
            topics=tuple(ShareAcknowledgeRequest.Topic(topic_id=t, partitions=tuple(p)) for t, p in partitions.items()),
        )


def _batches(taken: Sequence[Acknowledgements]) -> dict[TopicIdPartition, tuple[AcknowledgementBatch, ...]]:
    runs: dict[TopicIdPartition, list[Sequence[AcknowledgeRun]]] = {}
    for acknowledgements in taken:
        runs.setdefault(acknowledgements.key, []).append(acknowledgements.runs)
    encoded = {}
    for key, several in runs.items():
        together = merge_runs(several) if len(several) > 1 else several[0]
        assert together is not None, "take_waiting keeps overlapping runs apart"
        encoded[key] = encode(together)
    return encoded


def _fetch(identity: MemberIdentity, epoch: int, limits: FetchLimits, **content: Any) -> ShareFetchRequest:
    return ShareFetchRequest(
        group_id=identity.group_id,
        member_id=identity.member_id,
        share_session_epoch=epoch,
        max_wait_ms=limits.max_wait_ms,
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        max_records=limits.max_records,
        batch_size=limits.max_records,
        share_acquire_mode=limits.acquire_mode,
        **content,
    )


def _forgotten(partitions: Iterable[TopicIdPartition]) -> tuple[ShareFetchRequest.ForgottenTopic, ...]:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, index in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(index)
    return tuple(ShareFetchRequest.ForgottenTopic(topic_id=t, partitions=tuple(p)) for t, p in by_topic.items())


def partitions_of(response: ShareFetchResponse | ShareAcknowledgeResponse) -> dict[TopicIdPartition, Any]:
    """The partitions of a response by topic id and index."""
    return {
        TopicIdPartition(topic.topic_id, partition.partition_index): partition
        for topic in response.responses
        for partition in topic.partitions
    }
