"""Random histories of a consumer group: members join, heartbeat, revoke late, change topics, stop, leave and rejoin;
topics are created, grow and are deleted; appends fail, the coordinator moves, responses are lost.

Safety after each step: no partition has two owners, in the coordinator and among the clients, and replaying the log
gives the coordinator's state. Liveness at the end, without faults: each member has its target, each partition an owner,
and heartbeats write no more records.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shareq.coordinator.consumer_group.state import ConsumerGroup, ConsumerGroupState
from shareq.coordinator.group_coordinator import new_shard
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.messages.consumer_group import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from shareq.model.messages.share_group import MemberAssignment
from tests.coordinator.groups.stage import ConsumerStage
from tests.coordinator.quiet import check_group_coordinator
from tests.coordinator.share_group.stage import GROUP

MEMBERS = "ABCDE"
TOPICS = "t1", "t2", "u1"
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"subscribed_topic_names": ("t1",), "subscribed_topic_regex": ""},
    {"subscribed_topic_names": ("t1", "t2"), "subscribed_topic_regex": ""},
    {"subscribed_topic_names": ("u1",), "subscribed_topic_regex": "t.*"},
    {"subscribed_topic_names": (), "subscribed_topic_regex": "[tu].*"},
]
REJOIN = {Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_MEMBER_EPOCH, Errors.GROUP_ID_NOT_FOUND}
REBALANCE_TIMEOUT_MS = 20_000
Partitions = frozenset[tuple[TopicId, int]]


class Client:
    """A member that behaves as a client library: it revokes before it uses new partitions, and reports what it owns."""

    def __init__(self, member: str, subscription: dict[str, Any]) -> None:
        self.member = member
        self.subscription = subscription
        self.epoch = 0
        self.owned: Partitions = frozenset()
        self.assigned: Partitions = frozenset()

    def request(self) -> ConsumerGroupHeartbeatRequest:
        by_topic: dict[TopicId, list[int]] = {}
        for topic_id, partition in sorted(self.owned):
            by_topic.setdefault(topic_id, []).append(partition)
        owned = MemberAssignment.TopicPartitions
        return ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.member,
            member_epoch=self.epoch,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            topic_partitions=tuple(owned(topic_id=t, partitions=tuple(p)) for t, p in by_topic.items()),
            **self.subscription,
        )

    def take(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.error_code in REJOIN:
            self.epoch, self.owned, self.assigned = 0, frozenset(), frozenset()
        if answer.error_code:
            return
        assert answer.member_epoch >= self.epoch
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            listed = answer.assignment.topic_partitions
            self.assigned = frozenset((topic.topic_id, index) for topic in listed for index in topic.partitions)

    def reconcile(self) -> None:
        """Revoke partitions that are not assigned; if there are none, use the assigned ones."""
        self.owned = self.assigned if self.owned <= self.assigned else self.owned & self.assigned


class ConsumerGroupMachine(RuleBasedStateMachine):
    @initialize(traced=st.booleans())
    def begin(self, traced: bool) -> None:
        self.stage = ConsumerStage(t1=2, u1=1, traced=traced)
        self.clients: dict[str, Client] = {}

    # ---- members -----------------------------------------------------------------------------------------------------

    @rule(member=st.sampled_from(MEMBERS), subscription=st.sampled_from(SUBSCRIPTIONS))
    def join(self, member: str, subscription: dict[str, Any]) -> None:
        client = self.clients.setdefault(member, Client(member, subscription))
        client.subscription = subscription
        self.heartbeat(client)

    @rule(member=st.sampled_from(MEMBERS), lost=st.booleans(), wait_ms=st.sampled_from([0, 300, 1000]))
    def beat(self, member: str, lost: bool, wait_ms: int) -> None:
        self.stage.wait(wait_ms)
        if client := self.clients.get(member):
            client.reconcile()
            self.heartbeat(client, lost=lost)

    @rule(member=st.sampled_from(MEMBERS))
    def revoke_late(self, member: str) -> None:
        """A heartbeat that still reports partitions to revoke."""
        if client := self.clients.get(member):
            self.heartbeat(client)

    @rule(member=st.sampled_from(MEMBERS))
    def leave(self, member: str) -> None:
        if client := self.clients.pop(member, None):
            self.stage.exchange(self.stage.request(client.member, -1))

    @rule(member=st.sampled_from(MEMBERS))
    def stop(self, member: str) -> None:
        """The client stops without leaving; it owns nothing any more, but its session goes on."""
        self.clients.pop(member, None)

    def heartbeat(self, client: Client, *, lost: bool = False) -> None:
        answer = self.stage.ask(client.request(), ConsumerGroupHeartbeatResponse)
        if not lost:
            client.take(answer)

    # ---- environment -------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(TOPICS), count=st.integers(1, 4))
    def change_topic(self, name: str, count: int) -> None:
        topic = self.stage.image.topics.get(name)
        if topic is None:
            self.stage.create_topic(name, count)
        elif count > len(topic.partitions):
            self.stage.grow_topic(name, count)
        else:
            self.stage.delete_topic(name)

    @rule(wait_ms=st.sampled_from([100, 5000, 12_000, 46_000]))
    def wait(self, wait_ms: int) -> None:
        """Clients whose sessions expire own nothing any more."""
        self.stage.wait(wait_ms)
        for client in list(self.clients.values()):
            if client.member not in self.members():
                client.take(ConsumerGroupHeartbeatResponse(error_code=Errors.UNKNOWN_MEMBER_ID))

    @rule()
    def fail_over(self) -> None:
        self.stage.fail_over()

    @rule(error=st.sampled_from([Errors.NONE, Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR]))
    def set_append_error(self, error: Errors) -> None:
        self.stage.append_error = error

    # ---- safety ------------------------------------------------------------------------------------------------------

    def group(self) -> ConsumerGroup | None:
        _, shard = next((p, s) for p, s in self.stage.coordinator._runtime.active() if p == self.stage.shard_of())
        return shard.find(ConsumerGroup, GROUP)

    def members(self) -> set[str]:
        group = self.group()
        return set(group.members) if group else set()

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        used = Counter(p for client in self.clients.values() if client.member in self.members() for p in client.owned)
        assert all(count == 1 for count in used.values())
        group = self.group()
        if group is None:
            return
        owned = Counter(partition for member in group.members.values() for partition in member.owned())
        assert all(count == 1 for count in owned.values())
        assert set(owned) == {(topic, index) for topic, owners in group.owners.items() for index in owners}
        for client in self.clients.values():
            if member := group.members.get(client.member):
                assert client.owned <= set(member.owned()), "the coordinator has an owner for each used partition"

    @invariant()
    def replaying_the_log_gives_the_state(self) -> None:
        replayed = new_shard()
        for offset, (key, value) in enumerate(self.stage.logs[self.stage.shard_of()]):
            replayed.replay(offset, key, value, self.stage.now_ms)
        restored, known = replayed.find(ConsumerGroup, GROUP), self.group()
        assert (restored is None) == (known is None)
        for slot in set(ConsumerGroup.__slots__) - {"refresh_at_ms", "topics_are_new", "owners"}:
            assert getattr(restored, slot, None) == getattr(known, slot, None), slot

    # ---- liveness ----------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "stage"):
            return
        self.stage.append_error = Errors.NONE
        silent = self.members() - set(self.clients)
        for _ in range(60 if silent else 25):
            self.stage.wait(1000)
            for client in self.clients.values():
                client.reconcile()
                self.heartbeat(client)
        check_group_coordinator(self.stage.coordinator)
        self.check_settled()

    def check_settled(self) -> None:
        group = self.group()
        if group is None or not self.clients:
            assert not self.members()
            return
        assert set(group.members) == set(self.clients)
        assert group.state is ConsumerGroupState.STABLE
        topics = self.stage.image.topics
        names = {name for member in group.members.values() for name in group.names_of(member) if name in topics}
        wanted = {(topics[name].topic_id, index) for name in names for index in range(len(topics[name].partitions))}
        assert {partition for client in self.clients.values() for partition in client.owned} == wanted
        offset = len(self.stage.logs[self.stage.shard_of()])
        for client in self.clients.values():
            self.heartbeat(client)
        assert len(self.stage.logs[self.stage.shard_of()]) == offset, "heartbeats of a stable group write nothing"


ConsumerGroupMachine.TestCase.settings = settings(stateful_step_count=40)
TestConsumerGroup = ConsumerGroupMachine.TestCase
