"""The interface of a shard, and its lifecycle.

A shard is the state stored in one partition of a coordinator's topic; `runtime` loads it and runs workflows on it.
Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, TypeVar, runtime_checkable

from shareq.model.errors import Errors

R = TypeVar("R")


class UnreadableRecordError(ValueError):
    """A record of the coordinator's log is invalid. A shard whose log contains one fails to load."""


class ShardState(StrEnum):
    """The state of a shard on this broker. Only an ACTIVE shard serves requests."""

    CLOSED = "closed"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"


class ShardEvent(StrEnum):
    """The events that change the state of a shard."""

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
"""The next state by state and event. A re-election (a higher leader epoch) is a resignation and an election."""

REFUSAL = {
    ShardState.CLOSED: Errors.NOT_COORDINATOR,
    ShardState.LOADING: Errors.COORDINATOR_LOAD_IN_PROGRESS,
    ShardState.ACTIVE: Errors.NONE,
    ShardState.FAILED: Errors.NOT_COORDINATOR,
}
"""The error of requests to a shard, by its state."""

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
    """The error for a client if an append to the coordinator's log fails with `error`; others than these stay."""
    return _COORDINATOR_ERROR.get(error, error)


class Shard(Protocol):
    """The state stored in one partition of the coordinator's topic. Only replay changes it."""

    def replay(self, offset: int, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Replay one committed record; skip unknown types. Raises UnreadableRecordError if the record is invalid."""
        ...


@runtime_checkable
class TransactionalShard(Shard, Protocol):
    """A shard whose records may belong to transactions; such a record takes effect with the marker of a commit."""

    def replay_transactional(self, offset: int, key: bytes, value: bytes | None, producer_id: int, now_ms: int) -> None:
        """Keep one record of the producer's open transaction until its marker."""
        ...

    def replay_marker(self, producer_id: int, committed: bool, now_ms: int) -> None:
        """End the producer's transaction: apply its records if committed, else drop them."""
        ...


ShardT = TypeVar("ShardT", bound=Shard)
