"""The steps of a workflow on a shard, performed by `ShardRuntime`.

shard = yield Turn(partition, failure)    # the committed state, read-only
error = yield Append(records)             # appends all records or none
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.records import NO_PRODUCER_ID, CoordinatorRecord

NO_PARTITION = -1
"""The partition of a turn if the coordinator's topic does not exist yet."""


def no_result(error: Errors) -> None:
    """The failure of a workflow without result."""
    del error


def itself(error: Errors) -> Errors:
    """The failure of a workflow whose result is an error code."""
    return error


class Turn:
    """Wait for the shard of `partition`. The result of the step is the shard.

    If the shard is not active, or the deadline passes, the result of the workflow is `failure(error)`. `timeout_ms`:
    the time until the deadline; None: the runtime's `write_timeout_ms`.
    """

    __slots__ = ("deadline_ms", "failure", "is_over", "is_watched", "partition", "task", "timeout_ms")

    in_background = False

    deadline_ms: int
    task: Any
    """Set by the runtime, as is `deadline_ms`."""

    def __init__(self, partition: Any, failure: Callable[[Errors], Any], timeout_ms: int | None = None) -> None:
        self.partition = partition
        self.failure = failure
        self.timeout_ms = timeout_ms
        self.is_over = False
        self.is_watched = False
        """True if the runtime ends the turn at its deadline."""


class BackgroundTurn(Turn):
    """A turn of work that no client waits for and that must be done. It has no deadline: a slow log delays it. It fails
    only if the shard is not active or resigns; the next coordinator then repeats the work from its log."""

    __slots__ = ()

    in_background = True

    def __init__(self, partition: Any, failure: Callable[[Errors], Any] = no_result) -> None:
        super().__init__(partition, failure)


class Append(NamedTuple):
    """Append records atomically to the shard of the turn; with a producer id, as part of that producer's transaction.

    The result is the error; NONE after the records are committed and replayed, or at once without records.
    """

    records: Sequence[CoordinatorRecord]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1


class Look(NamedTuple):
    """Look at the log of a partition that has share state. The result is a `LogSeen`."""

    at: TopicPartition
    first: int = 0


class Retry:
    """Take the background turn again after the runtime's backoff. The result is the shard."""

    __slots__ = ()
