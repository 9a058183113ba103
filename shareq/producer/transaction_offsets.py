"""The offsets of a transaction: `send_offsets_to_transaction`.

TxnOffsetCommit goes to the group's coordinator, which itself adds the offsets to the transaction (KIP-890).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from shareq.client.arguments import INT32_MAX, INT64_MAX, items, text, whole
from shareq.client.calls import Backoff, Calls
from shareq.client.coordinator import CoordinatorLookup
from shareq.model.errors import Errors, KafkaError
from shareq.model.messages.base import Response
from shareq.model.messages.offsets import OffsetCommitRequest
from shareq.model.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from shareq.producer.transaction import COORDINATOR_MOVED, FATAL, ProducerIdentity

_LIBRDKAFKA = b"CGMDv2:"
"""The first bytes of confluent-kafka's `Consumer.consumer_group_metadata()`."""

_FATAL = FATAL | {Errors.UNSUPPORTED_VERSION}


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """The group of the offsets. With generation -1 and no member id, the coordinator does not check the membership."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None

    def __post_init__(self) -> None:
        text("group_id", self.group_id)
        whole("generation_id", self.generation_id, -1, INT32_MAX)
        text("member_id", self.member_id, empty=True)
        if self.group_instance_id is not None:
            text("group_instance_id", self.group_instance_id)

    @classmethod
    def of(cls, given: object) -> ConsumerGroupMetadata:
        """From a ConsumerGroupMetadata, or the result of confluent-kafka's `Consumer.consumer_group_metadata()`."""
        if isinstance(given, cls):
            return given
        if isinstance(given, bytes):
            return cls._from_librdkafka(given)
        raise TypeError(
            "group_metadata must be a ConsumerGroupMetadata, or what confluent-kafka's "
            f"Consumer.consumer_group_metadata() returns, not {type(given).__name__}"
        )

    @classmethod
    def _from_librdkafka(cls, data: bytes) -> ConsumerGroupMetadata:
        """Format: generation (native int32), group, member (zero-terminated), a byte that is set if there is no
        instance, instance."""
        try:
            (generation_id,) = struct.unpack_from("=i", data, len(_LIBRDKAFKA))
            group, member, rest = data[len(_LIBRDKAFKA) + 4 :].split(b"\0", 2)
            instance = None if rest[0] else rest[1:].rstrip(b"\0").decode()
            if not data.startswith(_LIBRDKAFKA):
                raise ValueError(f"must begin with {_LIBRDKAFKA!r}")
            return cls(group.decode(), generation_id, member.decode(), instance)
        except (ValueError, IndexError, struct.error) as why:
            raise ValueError(f"group_metadata={data!r}: must have librdkafka's format CGMDv2 ({why})") from None


class CommittedOffset(NamedTuple):
    """The committed offset of a partition."""

    offset: int
    leader_epoch: int
    metadata: str | None


def committed_offsets(positions: Iterable[object]) -> dict[tuple[str, int], CommittedOffset]:
    """Offsets by (topic, partition) from TopicPartitions, also those of confluent-kafka.

    Offsets below 0 are names such as OFFSET_INVALID; these partitions are left out.
    """
    found = {}
    for position in items("positions", positions):
        topic, partition, offset = (getattr(position, name, None) for name in ("topic", "partition", "offset"))
        if None in (topic, partition, offset):
            raise TypeError(f"positions must be TopicPartitions, not {type(position).__name__}")
        if whole("offset", offset, -INT64_MAX, INT64_MAX) < 0:
            continue
        place = text("topic", topic), whole("partition", partition, 0, INT32_MAX)
        epoch, metadata = getattr(position, "leader_epoch", None), getattr(position, "metadata", None)
        found[place] = CommittedOffset(
            whole("offset", offset, 0, INT64_MAX),
            -1 if epoch is None else whole("leader_epoch", epoch, -1, INT32_MAX),
            None if metadata is None else text("metadata", metadata, empty=True),
        )
    return found


class TransactionOffsetCommit:
    """One TxnOffsetCommit, retried until the coordinator accepts or refuses it; then `done`."""

    def __init__(
        self,
        calls: Calls,
        backoff: Backoff,
        identity: ProducerIdentity,
        group: ConsumerGroupMetadata,
        offsets: Mapping[tuple[str, int], CommittedOffset],
    ) -> None:
        self.done = not offsets
        self.error: KafkaError | None = None
        self._calls = calls
        self._backoff = backoff
        self._identity = identity
        self._request = _request(identity, group, offsets)
        self._coordinator = CoordinatorLookup(calls, backoff, group.group_id)
        self._under_way = False
        self._attempts = 0
        self._not_before_ms = 0

    @property
    def wake_at_ms(self) -> int | None:
        if self.done or self._under_way:
            return None
        return self._coordinator.wake_at_ms if self._coordinator.looking else self._not_before_ms

    def pump(self, now_ms: int) -> None:
        if self.done or self._under_way or now_ms < self._not_before_ms:
            return
        coordinator = self._coordinator
        if coordinator.fatal is not None:
            self._refused(*coordinator.fatal)
        elif coordinator.node is None:
            coordinator.want()
            coordinator.pump(now_ms)
        else:
            self._under_way = True
            self._identity.wrote = True
            self._calls.send(coordinator.node, self._request, self._answered)

    def _answered(self, response: Response | None, error: Errors, now_ms: int) -> None:
        self._under_way = False
        assert response is None or isinstance(response, TxnOffsetCommitResponse)
        failure = error if response is None else _worst(response)
        if not failure:
            self.done = True
        elif failure.retriable:
            if response is None or failure in COORDINATOR_MOVED:
                self._coordinator.forget()
            self._attempts += 1
            self._not_before_ms = now_ms + self._backoff.delay_ms(self._attempts)
        else:
            self._refused(failure, self._calls.reason if response is None else None)

    def _refused(self, error: Errors, reason: str | None) -> None:
        self.done = True
        self.error = self._identity.refused(error, reason, _FATAL)


def _request(
    identity: ProducerIdentity, group: ConsumerGroupMetadata, offsets: Mapping[tuple[str, int], CommittedOffset]
) -> TxnOffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequest.Partition]] = {}
    for (topic, index), (offset, leader_epoch, metadata) in sorted(offsets.items()):
        partition = OffsetCommitRequest.Partition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        topics.setdefault(topic, []).append(partition)
    assert identity.transactional_id is not None
    return TxnOffsetCommitRequest(
        transactional_id=identity.transactional_id,
        group_id=group.group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=tuple(
            OffsetCommitRequest.Topic(name=topic, partitions=tuple(partitions)) for topic, partitions in topics.items()
        ),
    )


def _worst(response: TxnOffsetCommitResponse) -> Errors:
    """The first error that is not retriable, else any error, else NONE."""
    errors = [partition.error_code for topic in response.topics for partition in topic.partitions]
    return next((error for error in errors if error and not error.retriable), max(errors, default=Errors.NONE))
