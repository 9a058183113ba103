"""What can be known of a share-partition from outside, where no journal of its leader can be read."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.events.share_partition import Run


class DurableStateRead(NamedTuple):
    """What the share coordinator keeps of a share-partition now, as a whole.

    `spso` -1: it keeps nothing, or the start is not decided yet. `runs` are the durable ones, as of the last write:
    the terminal ones are so for good, those that are AVAILABLE have been returned after so many deliveries and may be
    held again. `delivery_complete_count` -1: not counted.
    """

    group_id: str
    topic: str
    partition: int
    spso: int
    runs: tuple[Run, ...]
    delivery_complete_count: int
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int


class RecordsHeld(NamedTuple):
    """A member that can be heard has been delivered the records [first, end), and holds them as far as is known."""

    group_id: str
    topic: str
    partition: int
    member_id: str
    first: int
    end: int
    delivery_count: int


class ObservationDisturbed(NamedTuple):
    """Something cannot be seen any more, and why; `reason` "": all of it can be seen again."""

    reason: str
