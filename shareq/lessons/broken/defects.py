"""Ten share-partition leaders, each without one rule of `shareq/leader/BEHAVIOUR.md`, whose number its docstring has.

A defect is a subclass, and exists only in the brokers that are made with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from shareq.leader.in_flight_state import InFlightState
from shareq.leader.share_partition import PreparedWrite, SharePartition
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_fetch import AcknowledgementBatch
from shareq.model.states import AcknowledgeType, RecordState

Result = Errors | PreparedWrite | None
ACCEPT, RELEASE, RENEW = (
    int(kind) for kind in (AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.RENEW)
)


class AcceptedComeAgain(SharePartition):
    """Rule 2: an accepted record is acknowledged. Here it is available again."""

    __slots__ = ()

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Result:
        released = [
            replace(
                batch, acknowledge_types=tuple(RELEASE if kind == ACCEPT else kind for kind in batch.acknowledge_types)
            )
            for batch in batches
        ]
        return super().acknowledge(member_id, released, config, now_ms)


class AnyMemberAcknowledges(SharePartition):
    """Rule 33 (e): a record is acknowledged by its holder. Here any member may acknowledge it."""

    __slots__ = ()

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Result:
        held = _held(self, batches)
        return super().acknowledge(held[0].member_id or member_id if held else member_id, batches, config, now_ms)


class LocksEndEarly(SharePartition):
    """Rule 24: a lock lasts for `share.record.lock.duration.ms`. Here it ends after half of it."""

    __slots__ = ()

    def acquire(self, *values: Any, config: GroupConfig, **more: Any) -> Any:
        half_ms = config.record_lock_duration_ms // 2
        return super().acquire(*values, config=replace(config, record_lock_duration_ms=half_ms), **more)


class RenewalsAreForgotten(SharePartition):
    """Rule 34: a renewal takes effect at once. Here it is answered, and the lock ends as before."""

    __slots__ = ()

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Result:
        for in_flight in _held(self, batches):
            if batches[0].acknowledge_types == (RENEW,) and in_flight.deadline_ms is not None:
                config = replace(config, record_lock_duration_ms=in_flight.deadline_ms - now_ms)
        return super().acknowledge(member_id, batches, config, now_ms)


class NoDeliveryLimit(SharePartition):
    """Rule 2: a record that returns at the delivery count limit is archived. Here it is available for ever."""

    __slots__ = ()

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Result:
        return super().acknowledge(member_id, batches, _unlimited(config), now_ms)

    def release_member(self, member_id: str, config: GroupConfig) -> PreparedWrite | None:
        return super().release_member(member_id, _unlimited(config))

    def expire(self, now_ms: int, config: GroupConfig) -> PreparedWrite | None:
        return super().expire(now_ms, _unlimited(config))


class TimeoutsDoNotCount(SharePartition):
    """Rule 3: only an acquisition changes the delivery count. Here a time-out takes one away."""

    __slots__ = ()

    def expire(self, now_ms: int, config: GroupConfig) -> PreparedWrite | None:
        window = self._window
        for first, end, in_flight in list(window.states.runs()):
            if in_flight.expired(now_ms):
                fewer = in_flight._replace(delivery_count=in_flight.delivery_count - 1)
                window.states.assign(first, end, fewer)
        return super().expire(now_ms, config)


class LocksLastTooLong(SharePartition):
    """Rule 24: as for `LocksEndEarly`. Here a lock lasts for ten minutes."""

    __slots__ = ()

    def acquire(self, *values: Any, config: GroupConfig, **more: Any) -> Any:
        return super().acquire(*values, config=replace(config, record_lock_duration_ms=600_000), **more)


class AcceptsLikeACommit(SharePartition):
    """Rule 33: an acknowledgement concerns the offsets that it names. Here an accept is like the commit of a consumer
    group: it finishes what the member holds below, too."""

    __slots__ = ()

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], config: GroupConfig, now_ms: int
    ) -> Result:
        accepted = [batch.last_offset for batch in batches if batch.acknowledge_types == (ACCEPT,)]
        below = [
            AcknowledgementBatch(first_offset=first, last_offset=end - 1, acknowledge_types=(ACCEPT,))
            for first, end, in_flight in self._window.states.runs()
            if in_flight.member_id == member_id and end <= max(accepted, default=0)
        ]
        return super().acknowledge(member_id, [*below, *batches], config, now_ms)


class WindowWithoutLimit(SharePartition):
    """Rules 13 and 17: `share.partition.max.record.locks` bounds the window. Here nothing does."""

    __slots__ = ()

    def can_acquire(self, max_record_locks: int) -> bool:
        return super().can_acquire(max_record_locks * 1_000)

    def acquire(self, *values: Any, config: GroupConfig, **more: Any) -> Any:
        locks = config.partition_max_record_locks * 1_000
        return super().acquire(*values, config=replace(config, partition_max_record_locks=locks), **more)


class ClosedSessionsKeepRecords(SharePartition):
    """Rule 43: a closed session releases the records of its member. Here they stay locked."""

    __slots__ = ()

    def release_member(self, member_id: str, config: GroupConfig) -> None:  # noqa: ARG002 - it releases nothing
        return None


def _held(partition: SharePartition, batches: Sequence[AcknowledgementBatch]) -> list[InFlightState]:
    """The states of the named records that a member holds."""
    found = [
        in_flight
        for batch in batches
        for _, _, in_flight in partition._window.states.overlap(batch.first_offset, batch.last_offset + 1)  # noqa: SLF001
    ]
    return [in_flight for in_flight in found if in_flight.state is RecordState.ACQUIRED]


def _unlimited(config: GroupConfig) -> GroupConfig:
    return replace(config, delivery_count_limit=1_000_000)


DEFECTS: Final = MappingProxyType(
    dict(
        enumerate(
            (
                SharePartition,
                AcceptedComeAgain,
                LocksEndEarly,
                AnyMemberAcknowledges,
                NoDeliveryLimit,
                RenewalsAreForgotten,
                TimeoutsDoNotCount,
                LocksLastTooLong,
                AcceptsLikeACommit,
                ClosedSessionsKeepRecords,
                WindowWithoutLimit,
            )
        )
    )
)
"""The number of a broker -> its leader; 0 is the sound one."""
