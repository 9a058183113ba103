"""Three `shareq serve --backend` share the work; any of them may be killed, paused and started again at any time.

The ledger is kept by the clients' side alone. SHAREQ_KILLS is the number of kills.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, combinations
from random import Random
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

import shareq
from shareq import Admin, NewTopic
from shareq.broker.backend.lease import SESSION_MS
from shareq.broker.backend.processes import NODES, owner
from shareq.broker.backend.topics import IN_BACKEND
from shareq.kafka import LocalKafka
from shareq.model.errors import Errors
from shareq.model.messages.api_versions import ApiVersionsRequest
from shareq.model.messages.cluster import MetadataRequest
from shareq.model.messages.describe import DescribeQuorumRequest
from shareq.model.messages.share_fetch import ShareFetchRequest
from shareq.model.messages.topics import CreateTopicsRequest
from tests.backend.serving import RECOVERY_S, Serving, Work, serving
from tests.backend.test_faults import may_be_repeated
from tests.polling import PATIENCE_S, eventually
from tests.wire.named_nodes import assert_nodes_are_checked
from tests.wire.raw import Raw

KILLS = int(os.environ.get("SHAREQ_KILLS", "3"))
ROUNDS = int(os.environ.get("SHAREQ_KILLS", "1"))
"""Of the drill: `make kills` has many."""
BURST = 30
PARTITIONS = 6
BEGINS_ANEW = "the processes on the backend have gone on without this one, which begins anew"

Fresh = Callable[[str], str]


class Three:
    """Three processes, and what clients see of them."""

    def __init__(self, kafka: LocalKafka, stack: ExitStack) -> None:
        self.kafka = kafka
        self.processes = [stack.enter_context(serving(kafka.bootstrap_servers)) for _ in range(3)]

    @property
    def servers(self) -> str:
        return ",".join(process.address for process in self.processes)

    def leaders(self, topic: str, asked: Serving) -> list[int]:
        """The slots of the processes that lead the partitions of a topic, in the metadata of one process."""
        with Admin({"bootstrap.servers": asked.address}) as admin:
            described = admin.describe_topics([topic])[topic]
        return [partition.leader // NODES for partition in described.partitions]

    def slot(self, process: Serving) -> int:
        """The slot of a process, by its address in the metadata."""
        brokers = AdminClient({"bootstrap.servers": self.servers}).list_topics(timeout=PATIENCE_S).brokers
        (node,) = (node for node, at in brokers.items() if f"{at.host}:{at.port}" == process.address)
        return int(node) // NODES

    def may_move(self, topic: str, *processes: Serving) -> set[int]:
        """The partitions of a topic that can get another leader while any of these processes are away."""
        away = [self.slot(process) for process in processes]
        absent = chain.from_iterable(combinations(away, count) for count in range(1, len(away) + 1))
        layouts = [tuple(slot for slot in range(3) if slot not in some) for some in absent]
        return {
            index
            for index in range(PARTITIONS)
            if any(owner(topic, index, (0, 1, 2)) != owner(topic, index, workers) for workers in layouts)
        }

    def await_shared(self, topic: str) -> list[int]:
        """Wait until all three lead partitions, and the metadata of each show it."""
        for process in self.processes:
            eventually(lambda asked=process: sorted(set(self.leaders(topic, asked))), [0, 1, 2])  # type: ignore[misc]
        return self.leaders(topic, self.processes[0])


@pytest.fixture(scope="module")
def three(kafka: LocalKafka) -> Iterator[Three]:
    """A test that ends a process starts it again."""
    with ExitStack() as stack:
        yield Three(kafka, stack)


@pytest.fixture
def work(three: Three, fresh: Fresh) -> Iterator[Work]:
    with ExitStack() as stack:
        names, processes = (fresh("topic"), fresh("group")), three.processes
        yield Work(three.kafka, three.servers, *names, stack, partitions=PARTITIONS, processes=processes)


@pytest.fixture
def shared(three: Three, fresh: Fresh) -> None:
    """All three lead partitions of a topic. Tests that consume nothing open no consumer: librdkafka's share consumer
    may wait for ever in its `close` if it has not polled, with Apache Kafka, too."""
    topic = fresh("topic")
    with Admin({"bootstrap.servers": three.servers}) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS)]).check()
    three.await_shared(topic)


def test_each_leads_some_partitions_and_any_can_be_asked(three: Three, work: Work) -> None:
    assert sorted(three.await_shared(work.topic)) == [0, 0, 1, 1, 2, 2]
    for process in three.processes:
        work.produce(PARTITIONS, through=process.address)
    with work.running():
        work.until_done()
    work.ledger.check()


@pytest.mark.usefixtures("shared")
def test_each_process_knows_a_new_topic_when_a_fetch_names_it(three: Three, fresh: Fresh) -> None:
    """Each reads the metadata once a second. A leader that did not know the id when it was added to a session would
    answer UNKNOWN_TOPIC_ID until the client adds it again, which no client does."""
    first, *others = (int(process.address.rpartition(":")[2]) for process in three.processes)
    for _ in range(3):
        name = fresh("topic")
        with Raw(first) as creator:
            wanted = CreateTopicsRequest.Topic(name=name, num_partitions=PARTITIONS, replication_factor=1)
            (created,) = creator.ask(CreateTopicsRequest(topics=(wanted,), timeout_ms=int(PATIENCE_S * 1000))).topics
        listed = tuple(ShareFetchRequest.Partition(partition_index=index) for index in range(PARTITIONS))
        for port in others:
            with Raw(port) as member:
                named = ShareFetchRequest.Topic(topic_id=created.topic_id, partitions=listed)
                fetch = ShareFetchRequest(
                    group_id=f"group-{name}", member_id="m", share_session_epoch=0, max_wait_ms=0, topics=(named,)
                )
                (answered,) = member.ask(fetch).responses
            errors = {part.error_code for part in answered.partitions}
            assert errors == {Errors.NONE, Errors.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.usefixtures("shared")
def test_each_process_is_the_node_that_its_clients_expect(three: Three) -> None:
    """Java's clients since 4.4 name the node that they want to reach, and begin anew at any other."""
    ports = [int(process.address.rpartition(":")[2]) for process in three.processes]
    with Raw(ports[0]) as asked:
        metadata = asked.ask(MetadataRequest())
    nodes = {broker.node_id: broker.port for broker in metadata.brokers}
    assert sorted(nodes.values()) == sorted(ports)
    for port in ports:
        with Raw(port) as client:
            wanted = {"client_software_name": "a", "client_software_version": "1", "cluster_id": metadata.cluster_id}
            found = {node: client.ask(ApiVersionsRequest(**wanted, node_id=node)).error_code for node in nodes}
        refused = Errors.REBOOTSTRAP_REQUIRED
        assert found == {node: Errors.NONE if at == port else refused for node, at in nodes.items()}
    assert_nodes_are_checked(three.servers)


def test_the_quorum_is_shown_as_the_backend_shows_it(three: Three) -> None:
    """BEHAVIOUR.md, 6.3: its controllers are no nodes."""
    part = DescribeQuorumRequest.Partition(partition_index=0)
    topic = DescribeQuorumRequest.Topic(topic_name="__cluster_metadata", partitions=(part,))
    found = []
    for address in (three.kafka.bootstrap_servers, *(process.address for process in three.processes)):
        with Raw(int(address.rpartition(":")[2])) as asked:
            response = asked.ask(DescribeQuorumRequest(topics=(topic,)))
        (quorum,) = response.topics[0].partitions
        found.append((quorum.error_code, quorum.leader_id, [one.replica_id for one in quorum.current_voters]))
    assert found == [(Errors.NONE, 0, [0])] * 4


def test_configurations_are_altered_through_any_process_and_seen_by_all(three: Three, fresh: Fresh) -> None:
    group = fresh("group")
    for number, process in enumerate(three.processes):
        wanted = str(20_000 + number)
        with Admin({"bootstrap.servers": process.address}) as admin:
            admin.alter_group_configs(group, {"share.record.lock.duration.ms": wanted})
        for asked in three.processes:
            with Admin({"bootstrap.servers": asked.address}) as admin:
                eventually(lambda a=admin: lock_duration(a, group), wanted)  # type: ignore[misc]


def test_groups_of_all_processes_are_listed_once(three: Three, fresh: Fresh) -> None:
    topic, classic, groups = fresh("topic"), fresh("classic"), [fresh("group") for _ in range(8)]
    conf: dict[str, Any] = {"bootstrap.servers": three.servers}
    with Admin(conf) as admin, ExitStack() as stack:
        admin.create_topics([topic]).check()
        for group in groups:
            consumer = stack.enter_context(shareq.ShareConsumer({**conf, "group.id": group}))
            consumer.subscribe([topic])
            consumer.poll(0)
        other = confluent_kafka.Consumer({**conf, "group.id": classic, "session.timeout.ms": 6_000})
        stack.callback(other.close)
        other.subscribe([topic])
        other.poll(0)
        wanted = sorted([*groups, classic])
        eventually(lambda: sorted(admin.list_groups().keys() & set(wanted)), wanted)
        client = AdminClient(conf)
        found = client.list_consumer_groups(request_timeout=PATIENCE_S).result().valid
        assert [one.group_id for one in found].count(classic) == 1


def lock_duration(admin: Admin, group: str) -> str | None:
    key = "share.record.lock.duration.ms"
    return admin.describe_configs("group", group, [key])[key].value


def settle(three: Three, work: Work, moved: set[int]) -> None:
    """Wait until all records are accepted and all three lead again, then judge what was delivered meanwhile."""
    work.until_done()
    three.await_shared(work.topic)
    work.drain()
    work.ledger.judge(moved)


def test_accepted_records_stay_accepted_when_any_process_is_killed(three: Three, work: Work, seed: int) -> None:
    rng = Random(seed)
    work.consumer(shareq)
    took = []
    with work.running():
        for number in range(KILLS):
            layout = three.await_shared(work.topic)
            work.produce(BURST)
            killed = three.processes[number % 3]
            slot, moved = three.slot(killed), three.may_move(work.topic, killed)
            led = {index for index, one in enumerate(layout) if one == slot}
            killed.kill()
            when, before = time.monotonic(), set(work.produced)
            work.produce(BURST)
            work.until_done()
            took.append(work.ledger.first_delivery(r for r in work.produced - before if r[0] in led) - when)
            if rng.random() < 0.5:
                work.produce(BURST)
            killed.start()
            settle(three, work, moved)
    work.ledger.check()
    print(f"{KILLS} kills, {len(work.produced)} records, {len(work.ledger.unknown)} acceptances with an unknown result")
    print(f"the next delivery came after {[round(seconds, 1) for seconds in took]} s")
    assert max(took) < RECOVERY_S


@pytest.mark.parametrize("least_s", [0, 60])
def test_a_paused_process_neither_answers_nor_writes_when_it_continues(three: Three, work: Work, least_s: int) -> None:
    """It reports once that the others have gone on, and leads again as a new member. The pause lasts until they have,
    and at least for `least_s`."""
    three.await_shared(work.topic)
    paused = three.processes[1]
    before = paused.errors.count(BEGINS_ANEW)
    with work.running():
        work.produce(BURST)
        work.until_done()
        moved = three.may_move(work.topic, paused)
        paused.signal(signal.SIGSTOP)
        over = threading.Timer(least_s, lambda: None)
        over.start()
        try:
            work.produce(BURST)
            work.until_done()
            over.join()
        finally:
            paused.signal(signal.SIGCONT)
        work.produce(BURST)
        settle(three, work, moved)
    work.ledger.check()
    assert paused.errors.count(BEGINS_ANEW) == before + 1


def test_processes_continue_when_the_backend_restarts(three: Three, work: Work) -> None:
    """The group on the backend keeps its members, so that no process begins anew."""
    three.await_shared(work.topic)
    with work.running():
        work.produce(BURST)
        three.kafka.stop_broker(0)
        three.kafka.start_broker(0)
        work.produce(BURST)
        work.until_done()
    work.ledger.check()
    three.await_shared(work.topic)


def test_accepted_records_stay_accepted_whatever_is_paused_killed_or_restarted(
    three: Three, work: Work, seed: int
) -> None:
    """Pauses end before and after the lease; a process may be killed while another one is paused."""
    rng = Random(seed)
    work.consumer(shareq)
    drawn: Counter[str] = Counter()
    with work.running():
        for _ in range(ROUNDS):
            three.await_shared(work.topic)
            work.produce(BURST)
            paused, killed = rng.sample(three.processes, 2)
            faults = rng.choice((["pause"], ["pause", "kill"], ["pause", "restart"]))
            drawn.update(faults)
            moved = three.may_move(work.topic, paused, *([killed] if "kill" in faults else []))
            with paused.standing_still(rng.uniform(0, 2 * SESSION_MS / 1000)):
                if "kill" in faults:
                    killed.restart()
                if "restart" in faults:
                    three.kafka.stop_broker(0)
                    three.kafka.start_broker(0)
                work.produce(BURST)
            settle(three, work, moved)
    work.ledger.check()
    print(f"{dict(drawn)}, {len(work.produced)} records, {len(work.ledger.unknown)} acceptances with an unknown result")


@pytest.mark.parametrize("name", IN_BACKEND)
def test_processes_continue_when_a_topic_of_the_coordinators_is_deleted(three: Three, work: Work, name: str) -> None:
    """No lock ends, and what was accepted before and after is so when all processes have been killed."""
    three.await_shared(work.topic)
    ledger = work.ledger
    with work.running():
        work.produce(BURST)
        work.until_done()
        with Admin({"bootstrap.servers": three.kafka.bootstrap_servers}) as admin:
            admin.delete_topics([IN_BACKEND[name]]).check()
        work.produce(BURST)
        settle(three, work, set())
    ledger.check()
    assert [error for error in ledger.errors if not may_be_repeated(error)] == []
    with Admin({"bootstrap.servers": three.servers}) as admin:
        eventually(lambda: admin.list_share_group_offsets(work.group).total, 0)
    before = dict(ledger.deliveries)
    for process in three.processes:
        process.kill()
    for process in three.processes:
        process.start()
    with work.running():
        work.produce(BURST)
        settle(three, work, set(range(PARTITIONS)))
    assert {record for record, times in before.items() if ledger.deliveries[record] > times} == set()


def test_processes_leave_and_join_while_clients_work(three: Three, work: Work) -> None:
    three.await_shared(work.topic)
    left = three.processes[2]
    moved = three.may_move(work.topic, left)
    with work.running():
        work.produce(BURST)
        left.end()
        for process in three.processes[:2]:
            eventually(lambda asked=process: len(set(three.leaders(work.topic, asked))), 2)  # type: ignore[misc]
        work.produce(BURST)
        work.until_done()
        left.start()
        work.produce(BURST)
        three.await_shared(work.topic)
        work.produce(BURST)
        settle(three, work, moved)
    work.ledger.check()
