"""Events of an observer: the state of a share-partition as seen from outside, without the journal of its leader.

An observer sees a delivery and its end if the member is of its process, or is connected through its proxy.
"""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.events.share_partition import Run


class DurableStateRead(NamedTuple):
    """The complete state that the share coordinator stores for a share-partition.

    `spso` -1: there is no state, or the start offset is not decided yet. `runs` are the durable runs, as of the last
    write: terminal runs are final; AVAILABLE runs were returned after `delivery_count` deliveries and may have been
    acquired again since. `delivery_complete_count` -1: not counted. `passed`: terminal runs below the SPSO that were
    written since the last event, and that a write after them has passed.
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
    passed: tuple[Run, ...] = ()

    @property
    def named(self) -> tuple[Run, ...]:
        """All runs, those that the SPSO has passed first."""
        return self.passed + self.runs


class RecordsHeld(NamedTuple):
    """The records [first, end) were delivered to a member, which holds them until a later event.

    `deadline_ms`: the end of the lock, counted from the time of the response, so a few milliseconds late; None if it is
    not known. A second event with the same member and delivery count renews the lock.
    """

    group_id: str
    topic: str
    partition: int
    member_id: str
    first: int
    end: int
    delivery_count: int
    deadline_ms: int | None = None


class HoldEnded(NamedTuple):
    """The member no longer holds the records [first, end), which are now in `state`.

    `cause` is a RecordEvent. `inferred`: True if no response names the end: a lock that has run out, the end of a share
    session, or a release whose response is later than the next delivery; False for an acknowledgement that the leader
    has confirmed.
    """

    group_id: str
    topic: str
    partition: int
    member_id: str
    cause: str
    first: int
    end: int
    state: int
    delivery_count: int
    inferred: bool = False


class DeliveriesUnseen(NamedTuple):
    """The records [first, end) were delivered `first_count` to `last_count` times without passing the observer: the
    delivery count that a leader has named next is higher by more than one."""

    group_id: str
    topic: str
    partition: int
    first: int
    end: int
    first_count: int
    last_count: int


class MembersBypass(NamedTuple):
    """The members whose deliveries the observer cannot see, because they are not connected through it.

    None of them: every record that no member holds is held by no member.
    """

    group_id: str
    member_ids: tuple[str, ...]


class ObservationDisturbed(NamedTuple):
    """The observer cannot see a part of the cluster, because of `reason`; "": it sees the whole cluster again."""

    reason: str
