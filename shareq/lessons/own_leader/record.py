"""What the lab asks of a share-partition leader: a small part of what `shareq.leader.SharePartition` has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class Record:
    """One record of the window. `state`: "available", "acquired", "acknowledged" or "archived". `count`: of its
    deliveries. `member` and `deadline_ms`: the holder and the end of the lock while it is acquired, else None."""

    state: str = "available"
    count: int = 0
    member: str | None = None
    deadline_ms: int | None = None


class Leader(Protocol):
    """A leader of one share-partition, made with the duration of a lock, the limit of deliveries and the record locks.

    `records` has the records from `spso` to the end of the window, by offset; lower ones are not looked at. Each call
    has the time as an argument, in ms; a leader has no clock.
    """

    @property
    def records(self) -> dict[int, Record]: ...

    @property
    def spso(self) -> int: ...

    def acquire(self, member: str, most: int, log_end: int, now_ms: int) -> list[tuple[int, int]]:
        """Acquire up to `most` records for a member: available ones first, then new ones below `log_end`, in order of
        offset. Returns their offsets and delivery counts."""

    def acknowledge(self, member: str, offsets: Sequence[int], kind: str, now_ms: int) -> str:
        """Acknowledge records, all or none. `kind`: "accept", "release", "reject" or "renew"; offsets ascend.
        Returns "ok" or "INVALID_RECORD_STATE"."""

    def expire(self, now_ms: int) -> None:
        """End the locks whose deadline has come."""
