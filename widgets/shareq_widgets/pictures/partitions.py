"""The partitions of a group at a moment: leaders, lag, windows, and the records that each member holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from shareq.model.ids import Place
from shareq.model.waits import WAITS_CALM, Wait
from shareq.trace.analysis.groups import ClusterFold
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq.trace.analysis.waits import waits_for
from shareq_widgets.instant import Instant


class PartitionContent(NamedTuple):
    """A partition that the group reads. None: not known.

    `leader` is -1 without a leader. `in_flight`: the offsets of the window; `max_in_flight`: the limit of record locks.
    `waits`: what the share-partition waits for.
    """

    topic: str
    partition: int
    leader: int | None = None
    leader_epoch: int | None = None
    lag: int | None = None
    in_flight: int | None = None
    max_in_flight: int | None = None
    waits: Wait | None = None

    @property
    def at(self) -> Place:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def full(self) -> bool:
        """True if the window is full: no record above it can be acquired."""
        return self.in_flight is not None and self.max_in_flight is not None and self.in_flight >= self.max_in_flight

    @property
    def alarming(self) -> bool:
        return self.full or self.leader == -1

    @property
    def words(self) -> str:
        """Lag and window in words."""
        if self.lag is None and self.in_flight is None:
            return "not fetched yet"
        lag = "lag not known" if self.lag is None else f"lag {self.lag:,}"
        return lag if self.in_flight is None else f"{lag} · {self.in_flight:,} in flight"

    @property
    def blocked_words(self) -> str:
        """Why no fetch can acquire records, though there are records; "" if one can, or if it is not known."""
        return "" if self.waits is None or self.waits in WAITS_CALM else self.waits.sentence

    @property
    def short_words(self) -> str:
        return "" if self.lag is None else f"lag {self.lag:,}"

    @property
    def leader_words(self) -> str:
        if self.leader is None:
            return "leader not known"
        return "no leader" if self.leader < 0 else f"broker {self.leader}"


class GroupPartitions(NamedTuple):
    """The partitions, sorted; `held`: the number of records that a member holds of a partition.

    `observed`: the source is an observer's journal, which has no events of leaders and coordinators.
    """

    partitions: list[PartitionContent]
    held: Counter[tuple[str, Place]]
    observed: bool


def group_partitions(instant: Instant) -> GroupPartitions:
    """The partitions of the topics that the group has initialized, or that its members subscribe to."""
    history, until = instant.history, instant.until
    cluster = history.cluster(until)
    initialized = {at for at in history.share_partitions(until) if at[0] in cluster.topics}
    found, held = [], Counter[tuple[str, Place]]()
    observed = bool(cluster.topics) and not cluster.brokers and not history.liveness(until).heartbeats
    for topic, partition in sorted(initialized | set(_subscribed(instant, cluster))):
        views = cluster.topics[topic]
        view = views[partition] if partition < len(views) else None
        leader = view.leader if view and view.leader_epoch >= 0 else None
        one = PartitionContent(topic, partition, leader, view.leader_epoch if leader is not None and view else None)
        if (topic, partition) in initialized:
            state = history.share_partition(topic, partition, until)
            observed = state.observed
            one = _with_state(one, state)
            _count_held(held, state)
        found.append(one)
    return GroupPartitions(found, held, observed)


def _subscribed(instant: Instant, cluster: ClusterFold) -> Iterator[Place]:
    members = instant.history.group(instant.until).members.values()
    for topic in {name for member in members for name in member.subscribed_topic_names}:
        for partition in range(len(cluster.topics.get(topic, ()))):
            yield topic, partition


def _with_state(one: PartitionContent, state: SharePartitionState) -> PartitionContent:
    """With lag and window, once a leader has loaded the share-partition, or its durable state is read."""
    if not state.loaded and state.state_epoch < 0:
        return one
    in_flight = None if state.uncertain else state.in_flight  # an observer knows only an upper bound of the window
    limit = state.max_record_locks
    return one._replace(lag=state.lag, in_flight=in_flight, max_in_flight=limit, waits=waits_for(state))


def _count_held(held: Counter[tuple[str, Place]], state: SharePartitionState) -> None:
    for first, end, status in state.runs:
        if status.member_id is not None:
            held[status.member_id, (state.topic, state.partition)] += end - first
