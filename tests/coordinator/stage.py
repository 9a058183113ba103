"""What the test environments of all coordinators have in common: messages, the log, elections, time and requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from shareq.model.actor import (
    IN_PROCESS,
    Appended,
    AppendRecords,
    ClientContext,
    Effect,
    ImageChanged,
    Incoming,
    Message,
    Respond,
    ShardElected,
    ShardResigned,
    Tick,
)
from shareq.model.errors import Errors
from shareq.model.image import ClusterImage
from shareq.model.messages.base import Request
from shareq.model.records import CoordinatorRecord


class CoordinatorStage(ABC):
    """Passes messages to a coordinator and performs the effects that follow, in order. `shards`: how many partitions
    its topic has. With an `append_error` every append fails; `held` effects have not been performed."""

    coordinator: Any

    def __init__(self, image: ClusterImage, shards: int, now_ms: int = 0) -> None:
        self.image = image
        self.shards = shards
        self.now_ms = now_ms
        self.logs: dict[int, list[CoordinatorRecord]] = {}
        self.append_error = Errors.NONE
        self.held: list[Any] = []
        self.answers: dict[int, Any] = {}
        self.events: list[Any] = []
        self.epoch = 0
        self.last_id = 0
        self.coordinator = self.new_coordinator()

    @abstractmethod
    def new_coordinator(self) -> Any:
        """A coordinator without state."""

    def start(self) -> None:
        """Start a new coordinator on the existing logs. Held effects are lost."""
        self.held.clear()
        self.coordinator = self.new_coordinator()
        self.handle(ImageChanged(self.image))
        self.elect()

    def elect(self, *partitions: int) -> None:
        """Elect the broker in these partitions or in all, with the next leader epoch."""
        self.epoch += 1
        for partition in partitions or range(self.shards):
            self.handle(ShardElected(partition, self.epoch))

    def resign(self, *partitions: int) -> None:
        for partition in partitions or range(self.shards):
            self.handle(ShardResigned(partition))

    def change(self, image: ClusterImage) -> None:
        self.image = image
        self.handle(ImageChanged(image))

    def handle(self, message: Message) -> None:
        todo = self.coordinator.handle(message, self.now_ms)
        while todo:
            for answer in self.perform(todo.pop(0)):
                todo += self.coordinator.handle(answer, self.now_ms)

    def perform(self, effect: Effect) -> Iterable[Message]:
        if isinstance(effect, Respond):
            assert effect.id not in self.answers, f"two responses to request {effect.id}"
            self.answers[effect.id] = effect.response
        elif isinstance(effect, AppendRecords):
            yield self.append(effect, self.append_error)
        else:
            self.events.append(effect)

    def append(self, effect: AppendRecords, error: Errors) -> Appended:
        if error:
            return Appended(effect.id, error)
        log = self.logs.setdefault(effect.topic_partition.partition, [])
        log.extend(effect.records)
        return Appended(effect.id, Errors.NONE, len(log) - len(effect.records))

    def wait(self, duration_ms: int) -> None:
        """Let time pass, with a Tick at each `wake_at_ms` of the coordinator."""
        until_ms = self.now_ms + duration_ms
        while (wake_at_ms := self.coordinator.wake_at_ms) is not None and wake_at_ms <= until_ms:
            self.now_ms = max(self.now_ms, wake_at_ms)
            self.handle(Tick())
        self.now_ms = until_ms

    def send(self, request: Request, client: ClientContext = IN_PROCESS) -> int:
        """Send a request; returns its id, the key of the response in `answers`."""
        self.last_id += 1
        self.handle(Incoming(self.last_id, request, client))
        return self.last_id
