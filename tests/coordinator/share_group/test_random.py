"""Random histories of a share group: members join and leave, topics are created, grow and are deleted, the persister
and appends fail, the coordinator moves. Safety is checked after each step, liveness at the end, without faults."""

import os
import random
import subprocess
import sys
from collections.abc import Callable

import pytest

from shareq.coordinator.group_coordinator import new_shard
from shareq.coordinator.share_group.state import ShareGroup
from shareq.model.errors import Errors
from shareq.model.messages.base import Request
from shareq.model.messages.cluster import DeleteGroupsRequest
from shareq.model.messages.share_group import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.coordinator.quiet import check_group_coordinator
from tests.coordinator.share_group.stage import GROUP, Stage

MEMBERS = tuple("ABCDEFG")
TOPICS = "t1", "t2", "t3"
STEPS = 150
REJOIN = {Errors.UNKNOWN_MEMBER_ID, Errors.FENCED_MEMBER_EPOCH, Errors.GROUP_ID_NOT_FOUND}


class Client:
    """A member that behaves as a client library. One request is under way at a time."""

    def __init__(self, member: str, topics: tuple[str, ...]) -> None:
        self.member = member
        self.topics = topics
        self.epoch = 0
        self.held: frozenset[tuple[str, int]] = frozenset()
        self.request_id: int | None = None

    def request(self) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id=self.member, member_epoch=self.epoch, subscribed_topic_names=self.topics
        )

    def take(self, answer: ShareGroupHeartbeatResponse) -> None:
        self.request_id = None
        if answer.error_code in REJOIN:
            self.epoch, self.held = 0, frozenset()
        elif not answer.error_code:
            assert self.epoch <= answer.member_epoch
            self.epoch = answer.member_epoch
            assert answer.assignment is not None, "a request with topics gets the assignment"
            self.held = frozenset((t.topic_id, i) for t in answer.assignment.topic_partitions for i in t.partitions)


class Trial:
    """One run. `clients`: the live members; other members of the group have stopped and will expire."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.stage = self.make_stage()
        self.clients: dict[str, Client] = {}
        self.request_ids: list[int] = []
        self.epochs = 0
        self.moving = True

    def make_stage(self) -> Stage:
        return Stage(t1=2, traced=False)

    # ---- one step ----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        actions = [self.beat] * 12 + [self.wait] * 4 + [self.join] * 4 + [self.resubscribe, self.stop, self.leave]
        actions += [self.change_topics] * 2 + [self.begin_faults, self.end_faults, self.end_faults]
        actions += [self.fail_over, self.administer, *self.more_actions()]
        self.rng.choice(actions)()
        self.collect()
        self.check()

    def more_actions(self) -> list[Callable[[], None]]:
        """The actions of an experiment."""
        return []

    def join(self) -> None:
        member = self.rng.choice(MEMBERS)
        if member not in self.clients:
            self.clients[member] = Client(member, self.some_topics())

    def some_topics(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(TOPICS, self.rng.randint(1, 3)))

    def resubscribe(self) -> None:
        if self.clients:
            self.rng.choice(list(self.clients.values())).topics = self.some_topics()

    def stop(self) -> None:
        if self.clients:
            self.clients.pop(self.rng.choice(list(self.clients)))

    def leave(self) -> None:
        if self.clients:
            client = self.clients.pop(self.rng.choice(list(self.clients)))
            client.epoch = -1
            self.send(client.request())

    def beat(self) -> None:
        idle = [client for client in self.clients.values() if client.request_id is None]
        if idle:
            client = self.rng.choice(idle)
            client.request_id = self.send(client.request())

    def wait(self) -> None:
        self.stage.wait(self.rng.choice([1, 200, 1000, 1000, 6000, 31_000]))

    def change_topics(self) -> None:
        stage, name = self.stage, self.rng.choice(TOPICS)
        topic = stage.image.topics.get(name)
        if topic is None:
            stage.create_topic(name, self.rng.randint(1, 4))
        elif self.rng.random() < 0.4:
            stage.delete_topic(name)
        else:
            stage.grow_topic(name, len(topic.partitions) + self.rng.randint(1, 2))

    def begin_faults(self) -> None:
        stage, rng = self.stage, self.rng
        stage.appending, stage.persisting = rng.random() < 0.6, rng.random() < 0.6
        stage.append_error = rng.choice([Errors.NONE, Errors.NOT_ENOUGH_REPLICAS, Errors.KAFKA_STORAGE_ERROR])
        failing = rng.choice([-1, 0, 1])
        stage.persister = lambda _, index: Errors.NETWORK_EXCEPTION if index == failing else Errors.NONE
        stage.persister_error = rng.choice([Errors.NONE, Errors.NONE, Errors.COORDINATOR_NOT_AVAILABLE])

    def end_faults(self) -> None:
        stage = self.stage
        stage.append_error = stage.persister_error = Errors.NONE
        stage.persister = lambda _, index: Errors.NONE
        stage.release()

    def fail_over(self) -> None:
        if self.moving:
            self.stage.fail_over()

    def administer(self) -> None:
        """An admin request; most are refused because the group has members."""
        alter, delete, describe = (
            AlterShareGroupOffsetsRequest,
            DeleteShareGroupOffsetsRequest,
            DescribeShareGroupOffsetsRequest,
        )
        partitions = (alter.Partition(partition_index=self.rng.randint(0, 3), start_offset=5),)
        requests: list[Request] = [
            alter(group_id=GROUP, topics=(alter.Topic(topic_name=self.rng.choice(TOPICS), partitions=partitions),)),
            delete(group_id=GROUP, topics=(delete.Topic(topic_name=self.rng.choice(TOPICS)),)),
            describe(groups=(describe.Group(group_id=GROUP),)),
        ]
        if not self.clients:
            requests.append(DeleteGroupsRequest(groups_names=(GROUP,)))
        self.send(self.rng.choice(requests))

    # ---- safety ------------------------------------------------------------------------------------------------------

    def send(self, request: Request) -> int:
        request_id = self.stage.send(request)
        self.request_ids.append(request_id)
        return request_id

    def collect(self) -> None:
        """Pass the responses to the clients. Requests held by a former coordinator are not answered."""
        for client in self.clients.values():
            if client.request_id is None:
                continue
            answer = self.stage.answers.get(client.request_id)
            if answer:
                assert isinstance(answer, ShareGroupHeartbeatResponse)
                client.take(answer)

    def group(self) -> ShareGroup | None:
        shard = self.stage.coordinator._runtime.shard(self.stage.shard_of())
        return shard.find(ShareGroup, GROUP) if shard else None

    def check(self) -> None:
        group = self.group()
        if group is None:
            self.epochs = 0  # deleted, or its log is not loaded yet
            return
        assert group.group_epoch >= self.epochs, "the group epoch decreased"
        self.epochs = group.group_epoch
        assert group.assignment_epoch <= group.group_epoch
        for member in group.members.values():
            assert member.previous_member_epoch < member.member_epoch <= group.assignment_epoch
        counted: dict[str, int] = {}
        for member in group.members.values():
            for name in member.subscribed_topic_names:
                counted[name] = counted.get(name, 0) + 1
        assert group.subscriptions == counted
        assert group.targets.keys() <= group.members.keys()
        self.check_replay(group)

    def check_replay(self, group: ShareGroup) -> None:
        """Replaying the log gives the same group."""
        shard = new_shard()
        for offset, (key, value) in enumerate(self.stage.logs[self.stage.shard_of()]):
            shard.replay(offset, key, value, 0)
        again = shard.groups[GROUP]
        soft = {"pending", "refresh_at_ms", "uninitialized_at_ms", "recorded_at_ms"}
        for slot in set(ShareGroup.__slots__) - soft:
            assert getattr(again, slot) == getattr(group, slot), slot

    # ---- liveness ----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        self.end_faults()
        self.configure(share_assignment_interval_ms=1000)
        self.collect()
        for client in self.clients.values():
            client.request_id = None
        for _ in range(60):
            self.stage.wait(5000)
            for client in self.clients.values():
                client.request_id = self.send(client.request())
            self.collect()
            self.check()

    def configure(self, **configs: object) -> None:
        self.stage.configure_group(**configs)

    def check_settled(self) -> None:
        check_group_coordinator(self.stage.coordinator)
        group = self.group()
        if not self.clients:
            assert group is None or group.members == {}
            return
        assert group is not None
        assert group.members.keys() == self.clients.keys()
        assert group.share_partitions is not None or not any(n in self.stage.image.topics for n in group.subscriptions)
        for client in self.clients.values():
            assert client.epoch == group.group_epoch == group.assignment_epoch
        self.check_coverage()

    def check_coverage(self) -> None:
        """Each partition of a subscribed topic has a subscriber, no other member has it, and the shares are
        balanced."""
        equal = len({frozenset(client.topics) for client in self.clients.values()}) == 1
        for name in TOPICS:
            topic = self.stage.image.topics.get(name)
            if topic is None:
                continue
            subscribers = [client for client in self.clients.values() if name in client.topics]
            mine = {c.member: {i for t, i in c.held if t == topic.topic_id} for c in self.clients.values()}
            held = set().union(*mine.values())
            assert held == (set(range(len(topic.partitions))) if subscribers else set())
            assert not any(mine[client.member] for client in self.clients.values() if client not in subscribers)
            if subscribers and not equal:
                sizes = [len(mine[client.member]) for client in subscribers]
                assert max(sizes) - min(sizes) <= 1
        if equal:
            sizes = [len(client.held) for client in self.clients.values()]
            assert max(sizes) - min(sizes) <= 1

    def answered(self) -> bool:
        """True if each request has its response."""
        return self.stage.answers.keys() >= set(self.request_ids)


def run(trial: Trial, *, moving: bool) -> None:
    trial.moving = moving
    for _ in range(STEPS):
        trial.step()
    trial.settle()
    trial.check_settled()


@pytest.mark.parametrize("round_number", range(12))
def test_random_history_ends_in_a_stable_group(seed: int, round_number: int) -> None:
    run(Trial(seed + round_number), moving=True)


@pytest.mark.parametrize("round_number", range(6))
def test_each_request_has_one_response_without_failovers(seed: int, round_number: int) -> None:
    trial = Trial(seed * 31 + round_number)
    run(trial, moving=False)
    assert trial.answered()


def test_records_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "from tests.coordinator.share_group.test_random import Trial, run\n"
        "import hashlib\n"
        "trial = Trial(5)\n"
        "run(trial, moving=True)\n"
        "print(hashlib.sha256(repr(trial.stage.logs).encode()).hexdigest())\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(printed) == 1
