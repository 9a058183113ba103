"""What a shard is, the stations of its life, and what is done to it: operations.

A shard is the state kept in one partition of a coordinator's topic; `runtime` gives it its life.
Source: Kafka's CoordinatorRuntime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from shareq.model.actor import Effect
from shareq.model.errors import Errors
from shareq.model.records import NO_PRODUCER_ID, CoordinatorRecord

R = TypeVar("R")


class UnreadableRecordError(ValueError):
    """A record of the coordinator's own log cannot be understood: the shard that meets it fails to load."""


class ShardState(StrEnum):
    """Life of a shard on this broker. Only ACTIVE runs operations."""

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
"""What an operation is told where it cannot run."""

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
    """What a client is told when the coordinator's own log says `error`; what is not listed stays as it is."""
    return _COORDINATOR_ERROR.get(error, error)


def nothing_after(now_ms: int) -> Iterable[Effect]:
    """No effects follow the commit."""
    del now_ms
    return ()


def no_answer(error: Errors, now_ms: int) -> Iterable[Effect]:
    """The response goes to no one."""
    del error, now_ms
    return ()


def itself(error: Errors) -> Errors:
    """The response of an operation whose response is an error code."""
    return error


class Outcome(NamedTuple, Generic[R]):
    """What an operation would do to the state it was shown.

    `records` are appended atomically, with a producer id as part of that producer's transaction. `after(now_ms)` gives
    the effects that follow the commit (events, calls to others): they follow it also when nobody waits for the
    response any more.
    """

    response: R
    records: Sequence[CoordinatorRecord] = ()
    after: Callable[[int], Iterable[Effect]] = nothing_after
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1


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


class Operation(Generic[ShardT, R]):
    """One request to one shard, used once. Exactly one response is handed to `answer`.

    `compute(shard, now_ms)` must not change the shard. `failure(error)` is the response where the operation could not
    be run or committed; `answer(response, now_ms)` makes effects of a response, and may schedule further operations.
    """

    __slots__ = ("answer", "answered", "compute", "deadline_ms", "failure")

    is_background = False

    def __init__(
        self,
        compute: Callable[[ShardT, int], Outcome[R]],
        failure: Callable[[Errors], R],
        answer: Callable[[R, int], Iterable[Effect]],
    ) -> None:
        self.compute = compute
        self.failure = failure
        self.answer = answer
        self.answered = False
        self.deadline_ms = 0


class BackgroundOperation(Operation[ShardT, Errors]):
    """What a coordinator does unasked, and has to get done: no client waits for it, and its response is an error code.

    It has no deadline, so a log that stalls delays it and does not cancel it. While it fails, because its records could
    not be appended or because `compute` answered an error, the runtime repeats it, so `compute` may run several times.
    Only a shard that is resigned ends it, with NOT_COORDINATOR: the next coordinator finds in the log what is to be
    done.
    """

    __slots__ = ()

    is_background = True

    def __init__(
        self,
        compute: Callable[[ShardT, int], Outcome[Errors]],
        answer: Callable[[Errors, int], Iterable[Effect]] = no_answer,
    ) -> None:
        super().__init__(compute, itself, answer)
