"""Java's share consumer with the interface that the ledger uses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

from tests.proxy.members import ACCEPT, Got, JavaError, JavaMember


class At(NamedTuple):
    partition: int


class JavaConsumer:
    """A consumer of the Java process."""

    def __init__(self, member: JavaMember) -> None:
        self._member = member
        self._polled: set[int] = set()

    def poll(self, timeout_s: float) -> list[Any]:
        return [_message(got) for got in self._member.poll(timeout_s)]

    def acknowledge(self, message: Any) -> None:
        self._polled.add(message.partition())
        self._member.acknowledge(message.got, ACCEPT)

    def commit_sync(self, timeout_s: float) -> dict[Any, str | None]:
        """The errors of the partitions; a call that throws has one for all of them."""
        del timeout_s
        partitions, self._polled = self._polled, set()
        try:
            found = self._member.commit_sync()
        except JavaError as problem:
            found = dict.fromkeys(partitions, str(problem))
        return {At(partition): None if error == "NONE" else error for partition, error in found.items()}


def _message(got: Got) -> Any:
    count = got.delivery_count
    return SimpleNamespace(
        got=got, partition=lambda: got.partition, offset=lambda: got.offset, delivery_count=lambda: count
    )
