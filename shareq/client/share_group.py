"""The member of a share group whose records a producer acknowledges in its transaction (an experiment)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from shareq.model.ids import Place, TopicId

HandOver = Callable[[Mapping[Place, Collection[int]]], Mapping[Place, TopicId]]
"""Takes records away from a consumer: their offsets by place. Returns the topic ids. IllegalStateException, and nothing
is taken, if the consumer does not hold one of them."""


@dataclass(frozen=True, slots=True)
class ShareGroupMetadata:
    """The result of `ShareConsumer.share_group_metadata()`, for `Producer.send_share_acknowledgements_to_transaction`.

    `hand_over`: of the consumer that holds the records.
    """

    group_id: str
    member_id: str
    member_epoch: int
    hand_over: HandOver = field(repr=False, compare=False)
