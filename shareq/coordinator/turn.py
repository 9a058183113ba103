"""How a workflow works on a shard: the steps that `ShardRuntime` performs besides questions and pauses.

shard = yield Turn(partition, failure)    # the committed state, to be read only
error = yield Append(records)             # all of the records or none
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from shareq.model.errors import Errors
from shareq.model.records import NO_PRODUCER_ID, CoordinatorRecord

NO_PARTITION = -1
"""In a turn: the coordinator's topic does not exist yet."""


def no_result(error: Errors) -> None:
    """What a workflow comes to whose result is not wanted."""
    del error


def itself(error: Errors) -> Errors:
    """The failure of a workflow whose result is an error code."""
    return error


class Turn:
    """Wait for the shard of `partition`; the result is the shard. Where that cannot be had, or the deadline passes
    before the turn is over, the workflow's result is `failure(error)`."""

    __slots__ = ("deadline_ms", "failure", "is_over", "is_watched", "partition", "task")

    in_background = False

    deadline_ms: int
    task: Any
    """Both are set by the runtime."""

    def __init__(self, partition: int, failure: Callable[[Errors], Any]) -> None:
        self.partition = partition
        self.failure = failure
        self.is_over = False
        self.is_watched = False
        """True if the runtime ends the turn at its deadline."""


class BackgroundTurn(Turn):
    """A turn of what a coordinator does unasked, and has to get done: a log that stalls delays it and does not cancel
    it. Only a shard that is resigned ends it, with NOT_COORDINATOR: the next coordinator finds in the log what is to be
    done."""

    __slots__ = ()

    in_background = True

    def __init__(self, partition: int, failure: Callable[[Errors], Any] = no_result) -> None:
        super().__init__(partition, failure)


class Append(NamedTuple):
    """Append records atomically to the shard whose turn it is, with a producer id as part of that producer's
    transaction. The result is an error: NONE once they are committed and replayed, and where there are no records."""

    records: Sequence[CoordinatorRecord]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1


class Retry:
    """Take the background turn again, after the runtime's back-off; the result is the shard."""

    __slots__ = ()
