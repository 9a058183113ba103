"""Events of an observer: the state of a share-partition as seen from outside, without the journal of its leader."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.events.share_partition import Run


class DurableStateRead(NamedTuple):
    """The complete state that the share coordinator stores for a share-partition.

    `spso` -1: there is no state, or the start offset is not decided yet. `runs` are the durable runs, as of the last
    write: terminal runs are final; AVAILABLE runs were returned after `delivery_count` deliveries and may have been
    acquired again since. `delivery_complete_count` -1: not counted.
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
    """The records [first, end) were delivered to a member of this process, which holds them until a later event."""

    group_id: str
    topic: str
    partition: int
    member_id: str
    first: int
    end: int
    delivery_count: int


class ObservationDisturbed(NamedTuple):
    """The observer cannot see a part of the cluster, because of `reason`; "": it sees the whole cluster again."""

    reason: str
