"""What a shard is, and the stations of its life.

A shard is the state kept in one partition of a coordinator's topic; `runtime` gives it its life.
Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

from shareq.model.errors import Errors

R = TypeVar("R")


class UnreadableRecordError(ValueError):
    """A record of the coordinator's own log cannot be understood: the shard that meets it fails to load."""


class ShardState(StrEnum):
    """Life of a shard on this broker. Only an ACTIVE one has turns."""

    CLOSED = "closed"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class ShardEvent(StrEnum):
    """What can happen to a shard."""

    ELECTED = "elected"
    LOADED = "loaded"
    LOAD_FAILED = "load_failed"
    RESIGNED = "resigned"


_CLOSED, _LOADING, _ACTIVE, _FAILED = ShardState

TRANSITIONS: dict[tuple[ShardState, ShardEvent], ShardState] = {
    (_CLOSED, ShardEvent.ELECTED): _LOADING,
    (_LOADING, ShardEvent.LOADED): _ACTIVE,
    (_LOADING, ShardEvent.LOAD_FAILED): _FAILED,
    (_LOADING, ShardEvent.RESIGNED): _CLOSED,
    (_ACTIVE, ShardEvent.RESIGNED): _CLOSED,
    (_FAILED, ShardEvent.RESIGNED): _CLOSED,
}
"""Where a shard goes. A re-election (a higher leader epoch) is a resignation and an election."""

REFUSAL = {
    ShardState.CLOSED: Errors.NOT_COORDINATOR,
    ShardState.LOADING: Errors.COORDINATOR_LOAD_IN_PROGRESS,
    ShardState.ACTIVE: Errors.NONE,
    ShardState.FAILED: Errors.NOT_COORDINATOR,
}
"""Why a shard has no turns."""

_COORDINATOR_ERROR = {
    Errors.NETWORK_EXCEPTION: Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.UNKNOWN_TOPIC_OR_PARTITION: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_ENOUGH_REPLICAS: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_LEADER_OR_FOLLOWER: Errors.NOT_COORDINATOR,
    Errors.KAFKA_STORAGE_ERROR: Errors.NOT_COORDINATOR,
    Errors.MESSAGE_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.RECORD_LIST_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.INVALID_FETCH_SIZE: Errors.UNKNOWN_SERVER_ERROR,
}


def coordinator_error(error: Errors) -> Errors:
    """The error for a client when the coordinator's own log answers `error`; what is not listed stays as it is."""
    return _COORDINATOR_ERROR.get(error, error)


class Shard(Protocol):
    """The state kept in one partition of the coordinator's topic. It changes by replay and in no other way."""

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Take in one committed record. Raises UnreadableRecordError; records of unknown types are to be skipped."""
        ...


@runtime_checkable
class TransactionalShard(Shard, Protocol):
    """A shard whose records may belong to transactions: they count once the marker of a commit follows them."""

    def replay_transactional(self, offset: int, key: bytes, value: bytes | None, producer_id: int, now_ms: int) -> None:
        """Take in one record of the producer's open transaction, for later."""
        ...

    def replay_marker(self, producer_id: int, committed: bool, now_ms: int) -> None:
        """The producer's transaction is over: what was kept for it counts now, or never."""
        ...


ShardT = TypeVar("ShardT", bound=Shard)
