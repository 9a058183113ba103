"""What the parts of the actor share: the cluster's picture, the time, and the effects of the message being handled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shareq.leader.deadlines import Deadlines
from shareq.model.actor import Effect, Respond
from shareq.model.configs import GroupConfig
from shareq.model.image import ClusterImage

if TYPE_CHECKING:
    from shareq.leader.led_partition import LedPartition
    from shareq.leader.share_fetch import ShareFetch


class LeaderContext:
    """One for each actor; `now_ms` and `effects` belong to the message that is being handled."""

    __slots__ = ("_ids", "broker_id", "deadlines", "effects", "image", "now_ms", "traced")

    def __init__(self, broker_id: int, *, traced: bool) -> None:
        self.broker_id = broker_id
        self.traced = traced
        self.image = ClusterImage()
        self.now_ms = 0
        self.effects: list[Effect] = []
        self.deadlines: Deadlines[LedPartition | ShareFetch | Respond] = Deadlines()
        self._ids = 0

    def next_id(self) -> int:
        """A fresh id for an effect that will be answered."""
        self._ids += 1
        return self._ids

    def config(self, group_id: str) -> GroupConfig:
        """The group's configuration as it is now: it is read at each use, never kept."""
        return self.image.group_config(group_id)
