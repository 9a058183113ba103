"""The acknowledgements of a transaction: `send_share_acknowledgements_to_transaction` (an experiment).

TxnShareAcknowledge goes to the leaders of the share-partitions, which add what they write to the transaction. Rules:
`leader/experiments/BEHAVIOUR.md`, "Transactional acknowledgements".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import index
from typing import SupportsIndex

from shareq.client.arguments import items
from shareq.client.calls import Backoff, Calls
from shareq.client.message import Message
from shareq.client.metadata import NO_LEADER, Metadata, Topic
from shareq.client.share_group import ShareGroupMetadata
from shareq.model.errors import Errors, KafkaError
from shareq.model.ids import Place, TopicId
from shareq.model.messages.base import Response
from shareq.model.messages.share_fetch import AcknowledgementBatch, ShareAcknowledgeRequest
from shareq.model.messages.share_transactions import TxnShareAcknowledgeRequest, TxnShareAcknowledgeResponse
from shareq.model.states import AcknowledgeType
from shareq.producer.transaction import ProducerIdentity

ShareAcknowledgements = Mapping[Place, Mapping[int, int]]
"""Acknowledge types by offset, by topic and partition."""

_LOST = frozenset({Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.UNKNOWN_TOPIC_ID, Errors.FENCED_LEADER_EPOCH})
"""Retriable errors after which a retry cannot succeed: the locks are void."""

_UNKNOWN_API = (
    "transactional acknowledgements need brokers of shareq with shareq.experiments.enable=true and the persister "
    "state-topic, and no backend"
)

_TYPES = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)


def share_acknowledgements(given: Iterable[object]) -> ShareAcknowledgements:
    """The acknowledgements of Messages, which accept, and of pairs of a Message and its type.

    TypeError for anything else; ValueError for another type than ACCEPT and REJECT, for a message without a position,
    and for two types of one record.
    """
    found: dict[Place, dict[int, int]] = {}
    for item in items("acknowledgements", given):
        message, ack_type = item if isinstance(item, tuple) and len(item) == 2 else (item, AcknowledgeType.ACCEPT)
        if not isinstance(message, Message):
            what = type(message).__name__
            raise TypeError(f"acknowledgements must be Messages, or pairs of a Message and its type, not {what}")
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if topic is None or partition is None or offset is None:
            raise ValueError(f"topic={topic!r}, partition={partition!r}, offset={offset!r} is not a record's position")
        kind = _transactional_type(ack_type)
        if found.setdefault((topic, partition), {}).setdefault(offset, kind) != kind:
            raise ValueError(f"{topic} [{partition}] offset {offset}: has two acknowledge types")
    return found


def _transactional_type(given: object) -> int:
    if isinstance(given, str):
        kind = AcknowledgeType.__members__.get(given.upper())
    else:
        kind = next((k for k in _TYPES if isinstance(given, SupportsIndex) and index(given) == k), None)
    if kind not in _TYPES:
        raise ValueError(f"ack_type={given!r}: must be ACCEPT (1) or REJECT (3) in a transaction")
    assert kind is not None
    return int(kind)


class TransactionShareAcknowledgements:
    """The acknowledgements of one call, until all leaders have staged them or one has refused; then `done`."""

    def __init__(
        self,
        calls: Calls,
        backoff: Backoff,
        identity: ProducerIdentity,
        metadata: Metadata,
        *,
        group: ShareGroupMetadata,
        wanted: ShareAcknowledgements,
        topic_ids: Mapping[Place, TopicId],
    ) -> None:
        self.wanted = wanted
        self.error: KafkaError | None = None
        self._calls = calls
        self._backoff = backoff
        self._identity = identity
        self._metadata = metadata
        self._group = group
        self._topic_ids = topic_ids
        self._waiting = set(wanted)
        self._outdated: dict[str, Topic] = {}
        """Topics as they were when a broker did not lead one of their partitions any more."""
        self._under_way = 0
        self._over = not wanted
        self._attempts = 0
        self._not_before_ms: int | None = None
        """The end of the back-off after a retriable error. Without one, what waits does so for metadata."""

    @property
    def done(self) -> bool:
        return self._over

    @property
    def wake_at_ms(self) -> int | None:
        return None if self.done else self._not_before_ms

    def cancel(self) -> None:
        """The transaction is being aborted: nothing more is sent, and answers have no effect."""
        self._over = True

    def pump(self, now_ms: int) -> None:
        if self.done or (self._not_before_ms is not None and now_ms < self._not_before_ms):
            return
        self._not_before_ms = None
        nodes: dict[int, list[Place]] = {}
        for place in sorted(self._waiting):
            node = self._leader(place)
            if self.done:
                return
            if node != NO_LEADER:
                nodes.setdefault(node, []).append(place)
        for node, places in nodes.items():
            self._send(node, places)

    def _leader(self, place: Place) -> int:
        """The leader of the partition; NO_LEADER while it is not known. A topic that was created again has other
        records."""
        name, partition = place
        topic = self._metadata.topics.get(name)
        error = self._metadata.errors.get(name)
        if topic is None or topic is self._outdated.get(name):
            if error and (error in _LOST or not error.retriable):
                self._refused(error, self._metadata.reason)
            self._metadata.want_names((name,))
            return NO_LEADER
        if topic.topic_id != self._topic_ids[place] or partition >= len(topic.leaders):
            self._refused(Errors.UNKNOWN_TOPIC_ID, f"topic {name!r} was created again")
            return NO_LEADER
        node = topic.leaders[partition][0]
        if node == NO_LEADER:
            self._outdated[name] = topic
            self._metadata.want_names((name,))
        return node

    def _send(self, node: int, places: list[Place]) -> None:
        self._waiting -= set(places)
        self._under_way += 1
        self._identity.wrote = True
        request = self._request(places)
        self._calls.send(node, request, lambda response, error, now_ms: self._answered(places, response, error, now_ms))

    def _request(self, places: list[Place]) -> TxnShareAcknowledgeRequest:
        identity = self._identity
        assert identity.transactional_id is not None
        return TxnShareAcknowledgeRequest(
            transactional_id=identity.transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            group_id=self._group.group_id,
            member_id=self._group.member_id,
            member_epoch=self._group.member_epoch,
            topics=tuple(
                ShareAcknowledgeRequest.Topic(
                    topic_id=topic_id,
                    partitions=tuple(
                        ShareAcknowledgeRequest.Partition(
                            partition_index=place[1], acknowledgement_batches=tuple(_batches(self.wanted[place]))
                        )
                        for place in of_topic
                    ),
                )
                for topic_id, of_topic in groupby(places, self._topic_ids.__getitem__)
            ),
        )

    # ---- responses ---------------------------------------------------------------------------------------------------

    def _answered(self, places: list[Place], response: Response | None, error: Errors, now_ms: int) -> None:
        self._under_way -= 1
        if self._over:
            return
        if response is None:  # it is not known whether the acknowledgements are staged
            self._refused(error, _UNKNOWN_API if error is Errors.UNSUPPORTED_VERSION else self._calls.reason)
            return
        assert isinstance(response, TxnShareAcknowledgeResponse)
        if response.error_code:
            results = dict.fromkeys(places, (response.error_code, response.error_message))
        else:
            results = {
                (place[0], place[1]): (part.error_code, part.error_message)
                for topic in response.responses
                for part in topic.partitions
                for place in places
                if (self._topic_ids[place], place[1]) == (topic.topic_id, part.partition_index)
            }
        for place in places:
            self._take(place, *results.get(place, (Errors.UNKNOWN_SERVER_ERROR, None)))
        if self._waiting and not self._over:
            self._attempts += 1
            self._not_before_ms = now_ms + self._backoff.delay_ms(self._attempts)
        self._over = self._over or not (self._waiting or self._under_way)

    def _take(self, place: Place, error: Errors, reason: str | None) -> None:
        """The result of one share-partition. After a retriable error nothing is staged there."""
        if error is Errors.NOT_LEADER_OR_FOLLOWER:
            topic = self._metadata.topics.get(place[0])
            if topic is not None:
                self._outdated[place[0]] = topic
            self._waiting.add(place)
        elif error.retriable and error not in _LOST:
            self._waiting.add(place)
        elif error:
            self._refused(error, reason)

    def _refused(self, error: Errors, reason: str | None) -> None:
        if self._over:
            return
        self._over = True
        self.error = self._identity.refused(error, reason)


def _batches(types: Mapping[int, int]) -> Iterator[AcknowledgementBatch]:
    """One batch for each run of offsets with the same type."""
    first = last = kind = -1
    for offset in sorted(types):
        if offset != last + 1 or types[offset] != kind:
            if kind >= 0:
                yield AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
            first, kind = offset, types[offset]
        last = offset
    if kind >= 0:
        yield AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
