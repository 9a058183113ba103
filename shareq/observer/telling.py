"""From what a look saw to events: only what is new is told, and only what is known."""

from __future__ import annotations

from collections import deque
from threading import Lock

from shareq.coordinator.share.rules import event_of
from shareq.coordinator.share.state import KeyState
from shareq.model.events import (
    AcknowledgementsSent,
    ConfigChanged,
    DurableStateRead,
    Event,
    GroupDeleted,
    GroupEpochBumped,
    LeaderElected,
    LogStartMoved,
    MemberJoined,
    MemberLeft,
    MemberReconciled,
    ObservationDisturbed,
    PartitionsAdded,
    RecordsAppended,
    RecordsDelivered,
    RecordsHeld,
    Run,
    TopicCreated,
    TopicDeleted,
)
from shareq.model.messages.cluster import MetadataResponse
from shareq.model.messages.share_group import ShareGroupDescribeResponse
from shareq.observer.looking import Look, Place
from shareq.trace import Journal

PATIENCE_MS = 60_000
"""How long the event of a member waits for the group's coordinator to describe the member."""

Member = ShareGroupDescribeResponse.Member


class Teller:
    """Writes one group's journal: looks in the observer's thread, clients' events in any."""

    def __init__(self, journal: Journal, group: str) -> None:
        self.journal = journal
        self._group = group
        self._lock = Lock()
        self._now_ms = 0
        self.trouble = self._told = ""
        """Why the last look did not see all, and what has been told of that."""
        self._epoch = -1
        self._members: dict[str, Member] = {}
        self._configs: dict[str, str] = {}
        self._topics: dict[str, tuple[str, int]] = {}
        self._leaders: dict[Place, tuple[int, int]] = {}
        self._states: dict[Place, DurableStateRead] = {}
        self._starts: dict[Place, int] = {}
        self._ends: dict[Place, int] = {}
        self._unplaced: deque[tuple[int, RecordsDelivered | AcknowledgementsSent]] = deque(maxlen=10_000)

    def _tell(self, event: Event) -> None:
        self.journal.record(self._now_ms, -1, event)

    def _turn_to(self, now_ms: int) -> None:
        """A journal's time does not run backwards, whoever reads the clock first."""
        self._now_ms = max(self._now_ms, now_ms)

    def saw(self, look: Look, now_ms: int) -> None:
        """Tell what is new. Who leads and who is there comes before what became of records."""
        with self._lock:
            self._turn_to(now_ms)
            self._tell_trouble(look.trouble, at_once=look.blind)
            for name, topic in look.topics.items():
                self._tell_topic(name, topic)
            self._tell_configs(look.configs)
            if look.group_heard:
                self._tell_group(look.group)
            for record in look.records:
                self._tell(event_of(record))
            for place, state in look.states.items():
                self._tell_state(place, state)
            for place, offset in look.log_starts.items():
                if offset != self._starts.get(place, 0):
                    self._starts[place] = offset
                    self._tell(LogStartMoved(*place, offset))
            for place, end in look.log_ends.items():
                self._tell_end(place, end)
            self._place_waiting(now_ms)

    def failed(self, reason: str, now_ms: int) -> None:
        """A look came to nothing."""
        with self._lock:
            self._turn_to(now_ms)
            self._tell_trouble(reason, at_once=True)

    def heard(self, now_ms: int, event: Event) -> None:
        """A client of this process told something. It counts when the coordinator knows its member: then the client
        is of this cluster and not of another one with a group of the same name.
        """
        if isinstance(event, (RecordsDelivered, AcknowledgementsSent)) and event.group_id == self._group:
            with self._lock:
                self._turn_to(now_ms)
                if event.member_id in self._members:
                    self._tell_client(event)
                else:
                    self._unplaced.append((now_ms, event))

    # ---- the cluster -------------------------------------------------------------------------------------------------

    def _tell_trouble(self, trouble: str, *, at_once: bool) -> None:
        """Leaders and coordinators move in the time of a look or two: what is mended at once is not told."""
        lasts = at_once or not trouble or self.trouble
        self.trouble = trouble
        if lasts and trouble != self._told:
            self._told = trouble
            self._tell(ObservationDisturbed(trouble))

    def _tell_topic(self, name: str, topic: MetadataResponse.Topic | None) -> None:
        told = self._topics.get(name)
        now = None if topic is None else (topic.topic_id, len(topic.partitions))
        if told is not None and (now is None or now[0] != told[0]):
            self._forget(name)
            self._tell(TopicDeleted(name, told[0]))
            told = None
        if topic is None or now is None:
            return
        self._topics[name] = now
        if told is None:
            self._tell(TopicCreated(name, *now))
        elif now != told:
            self._tell(PartitionsAdded(name, *now))
        for partition in topic.partitions:
            place, leader = (name, partition.partition_index), (partition.leader_id, partition.leader_epoch)
            if self._leaders.get(place) != leader:
                self._leaders[place] = leader
                self._tell(LeaderElected(*place, *leader))

    def _forget(self, name: str) -> None:
        """A topic is gone: what was told of it is over."""
        del self._topics[name]
        for told in (self._leaders, self._states, self._starts, self._ends):
            for place in [place for place in told if place[0] == name]:
                del told[place]

    def _tell_end(self, place: Place, end: int) -> None:
        told = self._ends.get(place, self._starts.get(place, 0))
        self._ends[place] = end
        if end > told:
            self._tell(RecordsAppended(*place, told, end))

    # ---- the group ---------------------------------------------------------------------------------------------------

    def _tell_configs(self, configs: dict[str, str]) -> None:
        for key, value in configs.items():
            if self._configs.get(key) != value:
                self._configs[key] = value
                self._tell(ConfigChanged(f"group:{self._group}", key, value))

    def _tell_group(self, group: ShareGroupDescribeResponse.DescribedGroup | None) -> None:
        members = {member.member_id: member for member in group.members} if group else {}
        for member_id in [known for known in self._members if known not in members]:
            del self._members[member_id]
            self._tell(MemberLeft(self._group, member_id, "not described any more"))
        if group is None:
            if self._epoch >= 0:
                self._epoch = -1
                self._tell(GroupDeleted(self._group))
            return
        if group.group_epoch != self._epoch:
            self._epoch = group.group_epoch
            self._tell(GroupEpochBumped(self._group, group.group_epoch, "as its coordinator describes it"))
        for member in members.values():
            self._tell_member(member)

    def _tell_member(self, member: Member) -> None:
        told = self._members.get(member.member_id)
        self._members[member.member_id] = member
        if told is None:
            names = member.subscribed_topic_names
            self._tell(MemberJoined(self._group, member.member_id, member.client_id, names))
        if told is None or (told.member_epoch, told.assignment) != (member.member_epoch, member.assignment):
            held = tuple((topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions)
            self._tell(MemberReconciled(self._group, member.member_id, member.member_epoch, held))

    # ---- records -----------------------------------------------------------------------------------------------------

    def _tell_state(self, place: Place, state: KeyState | None) -> None:
        told = _durable(self._group, place, state)
        if self._states.get(place) != told:
            self._states[place] = told
            self._tell(told)

    def _place_waiting(self, now_ms: int) -> None:
        """Clients' events whose member is known now; those that have waited too long are of somebody else."""
        waiting, self._unplaced = self._unplaced, deque(maxlen=self._unplaced.maxlen)
        for heard_ms, event in waiting:
            if event.member_id in self._members:
                self._tell_client(event)
            elif now_ms - heard_ms < PATIENCE_MS:
                self._unplaced.append((heard_ms, event))

    def _tell_client(self, event: RecordsDelivered | AcknowledgementsSent) -> None:
        if event.topic not in self._topics:
            return
        self._tell(event)
        if isinstance(event, RecordsDelivered) and event.delivery_count > 0:
            place = (event.group_id, event.topic, event.partition)
            self._tell(RecordsHeld(*place, event.member_id, event.first, event.end, event.delivery_count))


def _durable(group: str, place: Place, state: KeyState | None) -> DurableStateRead:
    if state is None:
        return DurableStateRead(group, *place, -1, (), -1, -1, -1, -1)
    runs = tuple(Run(b.first_offset, b.last_offset + 1, *b[2:]) for b in state.state_batches)
    epochs = state.snapshot_epoch, state.state_epoch, state.leader_epoch
    return DurableStateRead(group, *place, state.start_offset, runs, state.delivery_complete_count, *epochs)
