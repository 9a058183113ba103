"""The content of the picture of a cluster: what each broker leads and coordinates for the group, changes, messages."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import Final, Literal, NamedTuple

from shareq.model.events import BrokerStarted, BrokerStopped, LeaderElected
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, Place, SharePartitionKey, TopicId
from shareq.trace.analysis.groups import ClusterFold
from shareq.trace.journal import Entry
from shareq.trace.journal.event_text import event_text
from shareq_widgets.instant import Instant
from shareq_widgets.pictures.group_content import SILENT, MemberState, member_states
from shareq_widgets.pictures.partitions import PartitionContent, group_partitions
from shareq_widgets.pictures.recent_messages import MessageContent, recent_messages

MAX_CHANGES: Final = 20
RECENT_MS: Final = 2_000
"""Changes and messages are shown for this time at least, so that a live picture, drawn many times a second, can be
read."""

BrokerState = Literal["running", "stopped", "killed", "not known"]


class BrokerContent(NamedTuple):
    """A broker. `since_ms`: the time of its last start or stop; None: not known.

    `coordinates`: it coordinates the group. `state_of`: the partitions whose state it keeps as share coordinator.
    `partitions`: those of the group that it leads; `others`: the number of partitions of other topics that it leads.
    """

    broker_id: int
    state: BrokerState
    since_ms: int | None
    coordinates: bool
    state_of: tuple[Place, ...]
    partitions: tuple[PartitionContent, ...]
    others: int

    @property
    def down(self) -> bool:
        return self.state in ("stopped", "killed")


class ClientContent(NamedTuple):
    """A member at the edge of the picture."""

    member_id: str
    letter: str
    name: str
    colour: str
    state: MemberState = "alive"

    @property
    def there(self) -> bool:
        return self.state not in (*SILENT, "gone")


class ClusterChange(NamedTuple):
    """A broker's start or stop: `what` alone; or an election: `what`, such as "broker 2 leads", and `names`, the
    partitions that it is about.

    `at`: the group's partition with a new leader. `alarming`: a broker was killed, or a partition has no leader.
    """

    order: int
    what: str
    alarming: bool
    names: tuple[str, ...] = ()
    at: Place | None = None

    @property
    def text(self) -> str:
        return f"{self.what} {', '.join(self.names)}".rstrip()


class ClusterContent(NamedTuple):
    """A cluster at a moment, as the group uses it. `leaderless`: the group's partitions without a leader.

    `changes` and `messages` are those since another moment, oldest first. `traced`: messages are recorded. `observed`:
    seen from outside; which brokers run and coordinate is not known then. `traceable`: the reader of the picture can
    make the cluster record messages.
    """

    group_id: str
    observed: bool
    traced: bool
    brokers: tuple[BrokerContent, ...]
    leaderless: tuple[PartitionContent, ...]
    members: tuple[ClientContent, ...]
    changes: tuple[ClusterChange, ...]
    messages: tuple[MessageContent, ...]
    traceable: bool = False


def content(instant: Instant, since: int, *, recent_ms: int = RECENT_MS) -> ClusterContent:
    """The cluster at a moment, and what has happened in the entries with an order in [since, instant.until), and in
    the last `recent_ms`."""
    since = min(since, _first_after(instant, instant.now_ms - recent_ms))
    found, cluster = group_partitions(instant), instant.history.cluster(instant.until)
    roles = _Roles(instant.history.group_id, cluster, [one.at for one in found.partitions])
    led: defaultdict[int | None, list[PartitionContent]] = defaultdict(list)
    for one in found.partitions:
        led[one.leader].append(one)
    broker_ids = {*cluster.brokers, *(broker for broker in led if broker is not None and broker >= 0)}
    brokers = [_broker(broker_id, cluster, roles, tuple(led[broker_id])) for broker_id in sorted(broker_ids)]
    recent = recent_messages(instant, since)
    return ClusterContent(
        group_id=instant.history.group_id,
        observed=found.observed,
        traced=recent.traced,
        brokers=tuple(brokers),
        leaderless=tuple(led[-1]),
        members=_members(instant, recent.messages, member_states(instant, observed=found.observed)),
        changes=tuple(_changes(instant, since, roles)),
        messages=recent.messages,
    )


def _members(
    instant: Instant, messages: tuple[MessageContent, ...], states: dict[str, MemberState]
) -> tuple[ClientContent, ...]:
    """The members, and former members with messages, by letter."""
    former = {one.identity for message in messages for one in (message.source, message.target) if one.kind == "member"}
    return tuple(
        ClientContent(member, letter, instant.name(member), instant.colour(member), states.get(member, "gone"))
        for (_, letter), member in sorted((_place(instant.letter(one)), one) for one in {*states, *former})
    )


def _first_after(instant: Instant, time_ms: int) -> int:
    """The order of the first entry after a time; that of the moment if there is none."""
    entries, dropped = instant.history.journal.entries(), instant.history.journal.dropped
    end = max(instant.until - dropped, 0)
    return dropped + bisect_right(entries, time_ms, hi=end, key=lambda entry: entry.time_ms)


class _Roles:
    """The partitions of coordinators' topics that matter to the group, and the brokers that lead them."""

    def __init__(self, group_id: str, cluster: ClusterFold, partitions: list[Place]) -> None:
        self.coordinator = cluster.coordinator(GROUP_METADATA_TOPIC, group_id)
        self.group_at = cluster.coordinating_partition(GROUP_METADATA_TOPIC, group_id)
        self.partitions = frozenset(partitions)
        self.state_at: defaultdict[int, list[Place]] = defaultdict(list)
        self.state_of: defaultdict[int, list[Place]] = defaultdict(list)
        for topic, partition in partitions:
            if topic in cluster.topic_ids:
                key = str(SharePartitionKey(group_id, TopicId(cluster.topic_ids[topic]), partition))
                at = cluster.coordinating_partition(SHARE_STATE_TOPIC, key)
                if at is not None:
                    self.state_at[at].append((topic, partition))
                    self.state_of[cluster.topics[SHARE_STATE_TOPIC][at].leader].append((topic, partition))

    def election(self, event: LeaderElected) -> tuple[str, tuple[str, ...]] | None:
        """An election in words, and the partitions of the group that it is about; None if there are none."""
        leader = f"broker {event.leader}" if event.leader >= 0 else "no broker"
        if (event.topic, event.partition) in self.partitions:
            return f"{leader} leads", (f"{event.topic}-{event.partition}",)
        if event.topic == GROUP_METADATA_TOPIC and event.partition == self.group_at:
            return f"{leader} coordinates the group", ()
        if event.topic == SHARE_STATE_TOPIC and event.partition in self.state_at:
            names = tuple(f"{topic}-{number}" for topic, number in self.state_at[event.partition])
            return f"{leader} keeps the state of", names
        return None


def _broker(
    broker_id: int, cluster: ClusterFold, roles: _Roles, partitions: tuple[PartitionContent, ...]
) -> BrokerContent:
    change = cluster.broker_changes.get(broker_id)
    running = cluster.brokers.get(broker_id)
    state: BrokerState = "running" if running else "not known"
    if running is False and change is not None:
        state = "killed" if change.killed else "stopped"
    leads = sum(view.leader == broker_id for views in cluster.own_topics().values() for view in views)
    return BrokerContent(
        broker_id=broker_id,
        state=state,
        since_ms=change.time_ms if change else None,
        coordinates=roles.coordinator == broker_id,
        state_of=tuple(sorted(roles.state_of.get(broker_id, ()))),
        partitions=partitions,
        others=max(leads - len(partitions), 0),
    )


def _changes(instant: Instant, since: int, roles: _Roles) -> list[ClusterChange]:
    """The newest changes, oldest first."""
    found: list[ClusterChange] = []
    for entry in reversed(instant.history.cluster_entries(since, instant.until)):
        change = _change(entry, roles)
        if change is not None:
            found.append(change)
        if len(found) == MAX_CHANGES:
            break
    return found[::-1]


def _change(entry: Entry, roles: _Roles) -> ClusterChange | None:
    """The change of an entry; the first leader of a new partition is none."""
    event = entry.event
    if isinstance(event, (BrokerStarted, BrokerStopped)):
        killed = isinstance(event, BrokerStopped) and event.killed
        return ClusterChange(entry.order, event_text(entry.broker_id, event), killed)
    election = roles.election(event) if isinstance(event, LeaderElected) and event.leader_epoch > 0 else None
    if election is None or not isinstance(event, LeaderElected):
        return None
    at = (event.topic, event.partition)
    return ClusterChange(
        entry.order, election[0], event.leader < 0, election[1], at if at in roles.partitions else None
    )


def _place(letter: str) -> tuple[int, str]:
    return len(letter), letter
