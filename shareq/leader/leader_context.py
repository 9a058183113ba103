"""Shared by the actor's parts: the cluster image, the time, and the effects of the current message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from shareq.leader.deadlines import Deadlines
from shareq.leader.share_fetch import LedPartition, PendingRequest, ShareFetch
from shareq.model.actor import Effect, Incoming, Respond
from shareq.model.configs import GroupConfig
from shareq.model.image import ClusterImage
from shareq.model.rights import Rights
from shareq.model.time_of_day import TimeOfDay, same_time


class LeaderContext:
    """One per actor. `now_ms` and `effects` belong to the message that is being handled.

    What the message has caused, in order, for the parts above: `woken`: share-partitions whose waiting fetches may try;
    `lost`: dropped ones, whose waiting fetches end; `done`: requests of which a part is done.

    `sole`: no other broker can have led a partition between two images that show this one as its leader, and only
    images show that this one leads no more. `time_of_day` gives the time of day at a time of the actor, to compare
    with timestamps of records.
    """

    __slots__ = (
        "_ids",
        "broker_id",
        "deadlines",
        "done",
        "effects",
        "image",
        "lost",
        "now_ms",
        "sole",
        "time_of_day",
        "traced",
        "woken",
    )

    def __init__(self, broker_id: int, *, traced: bool, sole: bool = False, time_of_day: TimeOfDay = same_time) -> None:
        self.time_of_day = time_of_day
        self.broker_id = broker_id
        self.sole = sole
        self.traced = traced
        self.image = ClusterImage()
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.woken: deque[LedPartition] = deque()
        self.lost: deque[LedPartition] = deque()
        self.done: dict[PendingRequest, None] = {}
        self.deadlines: Deadlines[LedPartition | ShareFetch | Respond | Callable[[], None]] = Deadlines()
        self._ids = 0

    @property
    def day_ms(self) -> int:
        """The time of day."""
        return self.time_of_day(self.now_ms)

    def next_id(self) -> int:
        """A new id for an effect that is answered later."""
        self._ids += 1
        return self._ids

    def config(self, group_id: str) -> GroupConfig:
        """The current configuration of the group. Read it at each use; do not keep it."""
        return self.image.group_config(group_id)

    def rights(self, incoming: Incoming) -> Rights | None:
        """The rights of the sender of a request; None while everything is allowed."""
        if self.image.authorizer is None:
            return None
        return Rights(self.image, incoming.client, type(incoming.request), self.effects.append)
