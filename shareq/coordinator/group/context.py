"""What the parts of the group coordinator share: the image, the shards, the deadlines, and a way to call others."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from shareq.coordinator.group.deadlines import Deadlines, Due, What
from shareq.coordinator.group.metadata_hash import MetadataHash
from shareq.coordinator.group.shard import GroupShard
from shareq.coordinator.runtime import ShardRuntime
from shareq.coordinator.shard import BackgroundOperation, Operation, Outcome, itself, no_answer
from shareq.model.actor import Answer, Call, Effect, Persist
from shareq.model.errors import Errors
from shareq.model.events import Event
from shareq.model.ids import GROUP_METADATA_TOPIC, partition_for
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request

R = TypeVar("R")
Compute = Callable[[GroupShard, int], Outcome[R]]
Then = Callable[[R, int], Iterable[Effect]]
"""What to do with a result when it is there: (result, now_ms) -> effects."""

_partition_for = lru_cache(maxsize=1 << 14)(partition_for)


def when_there(then: Then[R]) -> Then[R | None]:
    """For results that may follow later, which None tells."""

    def unless_held(result: R | None, now_ms: int) -> Iterable[Effect]:
        return () if result is None else then(result, now_ms)

    return unless_held


class Context:
    """Shared by all parts of one coordinator; every part gets it and keeps nothing itself."""

    def __init__(self, runtime: ShardRuntime[GroupShard], rng: random.Random, *, traced: bool) -> None:
        self.runtime = runtime
        self.rng = rng
        self.traced = traced
        self.image = ClusterImage()
        self.deadlines = Deadlines()
        self.metadata_hash = MetadataHash()
        self._calls: dict[int, Then[Answer]] = {}
        self._retries: dict[Due, Callable[[int], Iterable[Effect]]] = {}

    # ---- operations --------------------------------------------------------------------------------------------------

    def partition_count(self) -> int:
        """How many partitions the coordinator's topic has; 0 as long as it does not exist."""
        topic = self.image.topics.get(GROUP_METADATA_TOPIC)
        return len(topic.partitions) if topic else 0

    def partition_of(self, group_id: str) -> int:
        """The partition of the coordinator's topic that holds the group; the topic must exist."""
        return _partition_for(group_id, self.partition_count())

    def keeps(self, group_id: str) -> bool:
        """Whether this broker keeps the group now: its shard is loaded here."""
        count = self.partition_count()
        return bool(count) and not self.runtime.refusal(_partition_for(group_id, count))

    def shard_of(self, group_id: str) -> GroupShard | None:
        """The committed state around the group, where this broker keeps it now."""
        count = self.partition_count()
        return self.runtime.shard(_partition_for(group_id, count)) if count else None

    def schedule(
        self, group_id: str, compute: Compute[R], failure: Callable[[Errors], R], then: Then[R], now_ms: int
    ) -> list[Effect]:
        """Run an operation on the shard of `group_id`. `failure` makes the result where it could not be."""
        count = self.partition_count()
        if not count:
            return list(then(failure(Errors.COORDINATOR_NOT_AVAILABLE), now_ms))
        return self.runtime.schedule(_partition_for(group_id, count), Operation(compute, failure, then), now_ms)

    def attempt(self, group_id: str, compute: Compute[Errors], now_ms: int) -> list[Effect]:
        """Run an operation that no client waits for, and that is due again by itself if it fails or times out."""
        return self.schedule(group_id, compute, itself, no_answer, now_ms)

    def get_done(
        self, group_id: str, compute: Compute[Errors], now_ms: int, then: Then[Errors] = no_answer
    ) -> list[Effect]:
        """Run a background operation on the shard of `group_id`; `then` gets NONE, or why it cannot be done here."""
        count = self.partition_count()
        if not count:
            return list(then(Errors.COORDINATOR_NOT_AVAILABLE, now_ms))
        return self.runtime.schedule(_partition_for(group_id, count), BackgroundOperation(compute, then), now_ms)

    def when_due(self, due: Due, compute: Compute[Errors], now_ms: int) -> list[Effect]:
        """Get the operation of a deadline done, unless the deadline is put off before the operation runs."""

        def in_time(shard: GroupShard, now_ms: int) -> Outcome[Errors]:
            return compute(shard, now_ms) if self.deadlines.is_over(due, now_ms) else Outcome(Errors.NONE)

        def then(error: Errors, now_ms: int) -> Iterable[Effect]:
            del now_ms
            if error:
                self.deadlines.forget(due)  # the coordinator that loads the group next begins its deadlines anew
            return ()

        return self.get_done(due.group_id, in_time, now_ms, then)

    # ---- calls to others ---------------------------------------------------------------------------------------------

    def persist(self, request: Request, then: Then[Answer]) -> Persist:
        """Ask this broker's persister."""
        return Persist(self._expect(then), request)

    def call(self, node: int, request: Request, then: Then[Answer]) -> Call:
        """Ask a broker."""
        return Call(self._expect(then), node, request)

    def _expect(self, then: Then[Answer]) -> int:
        call_id = self.runtime.next_id()
        self._calls[call_id] = then
        return call_id

    def answered(self, answer: Answer, now_ms: int) -> list[Effect]:
        """An answer came; a second one to the same call is ignored."""
        then = self._calls.pop(answer.id, None)
        return list(then(answer, now_ms)) if then else []

    def retry(self, what: Callable[[int], Iterable[Effect]], at_ms: int) -> None:
        """Do something again, later: `what(now_ms)`."""
        due = Due(What.RETRY, str(self.runtime.next_id()))
        self._retries[due] = what
        self.deadlines.restart(due, at_ms)

    def retry_due(self, due: Due, now_ms: int) -> list[Effect]:
        """The time has come."""
        self.deadlines.forget(due)
        return list(self._retries.pop(due)(now_ms))

    def trace(self, events: Iterable[Event]) -> list[Effect]:
        """The events, where anybody wants to know."""
        return list(events) if self.traced else []
