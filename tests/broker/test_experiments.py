"""The experiments on a cluster, with shareq's own client: BEHAVIOUR.md in leader/experiments, and for assignors in
coordinator/share_group/experiments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.consumer import AcknowledgeType
from shareq.leader.experiments.keyed_share_partition import KeyedSharePartition
from shareq.model.errors import ConfigException, KafkaException
from shareq.model.events import ExpiredRecordsSkipped, RecordsChanged
from shareq.model.states import RESTED
from shareq.trace.views.view import view
from shareq_widgets.words import Chip, chips

ENABLED = {"shareq.experiments.enable": True}
EXPLICIT = {"share.acknowledgement.mode": "explicit"}
BACKOFF = "shareq.release.backoff.ms"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        made.create_topic("t", replication_factor=3)
        made.configure_group("g", {"share.auto.offset.reset": "earliest"})
        yield made


def produce(cluster: Cluster, *values: str) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for value in values:
            producer.produce("t", value)
        assert producer.flush() == 0


def consumer(cluster: Cluster, **conf: Any) -> ShareConsumer:
    made = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", **EXPLICIT, **conf})
    made.subscribe(["t"])
    return made


def poll(member: ShareConsumer) -> list[tuple[bytes | None, int | None]]:
    """The values and delivery counts of the next records."""
    messages = member.poll(60)
    return [(message.value(), message.delivery_count()) for message in messages]


# ---- 0.1, 0.2: the switch --------------------------------------------------------------------------------------------


def test_without_the_switch_the_configurations_are_unknown() -> None:
    with Cluster(brokers=1, seed=7) as cluster, Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        with pytest.raises(KafkaException, match=r"shareq\.release\.backoff\.ms='1000': unknown group configuration"):
            admin.alter_group_configs("g", {BACKOFF: 1000})
        described = [*admin.describe_configs("group", "g"), *admin.describe_configs("broker", "0")]
        assert [key for key in described if str(key).startswith("shareq.")] == []
        with pytest.raises(KafkaException, match=r"shareq\.experiments\.enable: is read when the cluster starts"):
            admin.incremental_alter_configs("broker", "", {"shareq.experiments.enable": True})


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        ({BACKOFF: -1}, r"shareq\.release\.backoff\.ms='-1': must be 0\.\.3600000"),
        ({BACKOFF: "soon"}, r"shareq\.release\.backoff\.ms='soon': must be a whole number, 0\.\.3600000"),
        ({BACKOFF: 61_000}, r"shareq\.release\.backoff\.max\.ms=60000: must be 61000\.\.3600000"),
    ],
)
def test_values_out_of_range_are_refused(cluster: Cluster, configs: dict[str, object], error: str) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, pytest.raises(KafkaException, match=error):
        admin.alter_group_configs("g", configs)


def test_a_key_of_groups_is_no_key_of_brokers() -> None:
    with pytest.raises(ConfigException, match="a configuration of a group"):
        Cluster(config=ENABLED | {BACKOFF: 1000})


# ---- 1: back-off on release ------------------------------------------------------------------------------------------


def test_a_released_record_rests(cluster: Cluster) -> None:
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", BACKOFF: 1000})
    produce(cluster, "a", "b")
    with consumer(cluster) as member:
        first, second = member.poll(60)
        member.acknowledge(first, AcknowledgeType.RELEASE)
        member.acknowledge(second)
        member.commit_sync()
        released_ms = cluster.now_ms
        assert not member.poll(0.9)
        assert poll(member) == [(b"a", 2)]
        assert 1000 <= cluster.now_ms - released_ms < 1100
    rests = [
        (entry.time_ms, entry.event)
        for entry in cluster.journal
        if isinstance(entry.event, RecordsChanged)
        and entry.event.cause in ("settled", RESTED)
        and entry.event.first == 0
    ]
    (begun_ms, begun), (ended_ms, ended) = rests[0], rests[1]
    assert begun.deadline_ms == begun_ms + 1000 == ended_ms
    assert (ended.cause, ended.deadline_ms) == (RESTED, None)


def test_the_application_requests_a_rest(cluster: Cluster) -> None:
    produce(cluster, "a", "b", "c")
    with consumer(cluster) as member:
        first, second, third = member.poll(60)
        member.acknowledge(first, AcknowledgeType.RELEASE, delay_ms=5000)
        member.acknowledge(second, "RELEASE", delay_ms=2000)
        member.acknowledge(third, AcknowledgeType.RELEASE, delay_ms=3000)
        member.acknowledge(third, AcknowledgeType.RELEASE)
        member.commit_sync()
        assert [poll(member) for _ in range(1)] == [[(b"c", 2)]], "a later acknowledgement replaces the delay, too"
        began_ms = cluster.now_ms
        member.acknowledge(third)
        assert poll(member) == [(b"b", 2)]
        assert 1900 <= cluster.now_ms - began_ms <= 2100


def test_a_rest_beyond_the_groups_maximum_fails_the_acknowledgement(cluster: Cluster) -> None:
    produce(cluster, "a")
    with consumer(cluster) as member:
        (message,) = member.poll(60)
        member.acknowledge(message, AcknowledgeType.RELEASE, delay_ms=60_001)
        (error,) = member.commit_sync().values()
        assert error is not None
        assert error.error.name() == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("ack_type", "delay_ms", "error"),
    [
        ("ACCEPT", 5, r"delay_ms=5: only RELEASE \(2\) has a delay"),
        ("RELEASE", -1, r"delay_ms=-1: must be 0\.\.3600000"),
        ("RELEASE", 3_600_001, r"delay_ms=3600001: must be 0\.\.3600000"),
        ("RELEASE", "5", r"delay_ms='5': must be an int"),
    ],
)
def test_a_delay_that_cannot_be_requested(cluster: Cluster, ack_type: str, delay_ms: Any, error: str) -> None:
    produce(cluster, "a")
    with consumer(cluster) as member:
        (message,) = member.poll(60)
        with pytest.raises((TypeError, ValueError), match=error):
            member.acknowledge(message, ack_type, delay_ms=delay_ms)


def test_a_new_leader_does_not_know_rests(cluster: Cluster) -> None:
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", BACKOFF: 60_000})
    produce(cluster, "a")
    with consumer(cluster) as member:
        (message,) = member.poll(60)
        member.acknowledge(message, AcknowledgeType.RELEASE)
        member.commit_sync()
        cluster.kill_broker(cluster.image.topics["t"].partitions[0].leader)
        assert poll(member) == [(b"a", 2)]


# ---- 2: order by key -------------------------------------------------------------------------------------------------


def keyed(cluster: Cluster, **more: object) -> None:
    configs = {"share.auto.offset.reset": "earliest", "shareq.key.ordering": "key", **more}
    cluster.configure_group("g", configs)


def produce_keyed(cluster: Cluster, **conf: str) -> None:
    """200 records with 20 keys."""
    with Producer({"bootstrap.servers": cluster.bootstrap_servers, **conf}) as producer:
        for number in range(200):
            producer.produce("t", f"{number}", key=f"k{number % 20}")
        assert producer.flush() == 0


def work(member: ShareConsumer, chance: Random) -> tuple[set[bytes], list[tuple[bytes, int]]]:
    """Poll once, release a twentieth, accept the rest: the keys in hand, and what is accepted (key, number)."""
    keys, accepted = set(), []
    for message in member.poll(0.2):
        key, value = message.key(), message.value()
        assert key is not None
        assert value is not None
        keys.add(key)
        released = chance.random() < 0.05 and (message.delivery_count() or 0) < 4
        member.acknowledge(message, "RELEASE" if released else "ACCEPT")
        if not released:
            accepted.append((key, int(value)))
    return keys, accepted


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_records_of_a_key_have_one_holder_and_are_accepted_in_order(cluster: Cluster, compression: str) -> None:
    keyed(cluster)
    produce_keyed(cluster, **{"compression.type": compression})
    chance, done = Random(7), defaultdict[bytes, list[int]](list)
    with ExitStack() as stack:
        members = [stack.enter_context(consumer(cluster)) for _ in range(4)]
        while sum(map(len, done.values())) < 200:
            rounds = [work(member, chance) for member in members]
            keys = [key for held, _ in rounds for key in held]
            assert len(keys) == len(set(keys)), "two members hold records of one key"
            for member, (_, accepted) in zip(members, rounds, strict=True):
                member.commit_sync()
                for key, number in accepted:
                    done[key].append(number)
    assert all(numbers == sorted(numbers) for numbers in done.values())


def test_records_of_a_key_are_accepted_in_order_over_failovers(cluster: Cluster) -> None:
    """A new leader has no locks of the former one: records are delivered again, none before an unfinished one."""
    keyed(cluster)
    produce_keyed(cluster)
    chance, done = Random(7), defaultdict[bytes, list[int]](list)
    with ExitStack() as stack:
        members = [stack.enter_context(consumer(cluster)) for _ in range(3)]
        kills = [60, 130]
        while sum(map(len, done.values())) < 200:
            for member in members:
                _, accepted = work(member, chance)
                if not any(member.commit_sync().values()):
                    for key, number in accepted:
                        done[key].append(number)
            if kills and sum(map(len, done.values())) > kills[0]:
                kills.pop(0)
                leader = cluster.image.topics["t"].partitions[0].leader
                cluster.kill_broker(leader)
                cluster.advance(1000)
                cluster.start_broker(leader)
    assert kills == []
    assert all(numbers == sorted(numbers) for numbers in done.values())


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        ({"shareq.key.ordering": "value"}, r"shareq\.key\.ordering='value': must be none, key"),
        ({"shareq.key.max.in.flight": 0}, r"shareq\.key\.max\.in\.flight='0': must be 1\.\.1000"),
        ({"shareq.key.cut.batches.enable": 1}, r"shareq\.key\.cut\.batches\.enable='1': must be true or false"),
    ],
)
def test_2_1_values_out_of_range_are_refused(cluster: Cluster, configs: dict[str, object], error: str) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, pytest.raises(KafkaException, match=error):
        admin.alter_group_configs("g", configs)


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("cuts", [False, True], ids=["whole", "cut"])
def test_2_13_members_get_the_records_that_they_have_acquired(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, cuts: bool, codec: str
) -> None:
    """One batch has ten records of each of ten keys: whole, it is sent with each of them."""
    sent: list[int] = []

    def counted(self: KeyedSharePartition, *args: Any, **kwargs: Any) -> Any:
        acquired, batches = acquire(self, *args, **kwargs)
        sent.extend(batch.record_count for batch in batches)
        return acquired, batches

    acquire = KeyedSharePartition.acquire
    monkeypatch.setattr(KeyedSharePartition, "acquire", counted)
    keyed = {"shareq.key.ordering": "key", "shareq.key.cut.batches.enable": cuts}
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", **keyed})
    with Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec}) as producer:
        for number in range(100):
            producer.produce("t", f"{number}", f"{number % 10}")
        assert producer.flush() == 0
    values: list[bytes | None] = []
    with consumer(cluster) as member:
        while len(values) < 100:
            for message in member.poll(60):
                values.append(message.value())
                member.acknowledge(message)
            member.commit_sync()
    assert sorted(int(value or b"") for value in values) == list(range(100))
    assert sent == [10 if cuts else 100] * 10


# ---- 4: time to live -------------------------------------------------------------------------------------------------

TTL = "shareq.record.ttl.ms"


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        ({TTL: 999}, r"shareq\.record\.ttl\.ms='999': must be -1 or >= 1000"),
        ({TTL: -2}, r"shareq\.record\.ttl\.ms='-2': must be -1 or >= 1000"),
        ({"shareq.record.ttl.deadletter.enable": "yes"}, r"deadletter\.enable='yes': must be true or false"),
    ],
)
def test_4_1_values_out_of_range_are_refused(cluster: Cluster, configs: dict[str, object], error: str) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, pytest.raises(KafkaException, match=error):
        admin.alter_group_configs("g", configs)


def test_4_records_are_delivered_until_their_time_to_live_is_over(cluster: Cluster) -> None:
    """Old records are passed, which is durable; a returned one expires, and does not count in the lag."""
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", TTL: 10_000})
    produce(cluster, "a", "b")
    cluster.advance(9_000)
    produce(cluster, "c")
    cluster.advance(2_000)
    with consumer(cluster) as member, Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        (message,) = member.poll(60)
        assert message.value() == b"c"
        cluster.advance(10_000)
        member.acknowledge(message, "RELEASE")
        member.commit_sync()
        assert not member.poll(5)
        (offset,) = admin.list_share_group_offsets("g").values()
        assert (offset.start_offset, offset.lag) == (2, 0)
    passed = [entry.event for entry in cluster.journal if isinstance(entry.event, ExpiredRecordsSkipped)]
    assert [(event.first, event.end) for event in passed] == [(0, 2)]


def test_4_5_a_window_begins_at_the_batch_of_the_first_young_record(cluster: Cluster) -> None:
    """The records of a compressed batch have their own timestamps: the first one is old, the last one is not."""
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", TTL: 10_000})
    produce(cluster, "old")
    began_ms = cluster.now_ms
    with Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": "lz4"}) as producer:
        for number in range(3):
            producer.produce("t", f"{number}", timestamp=began_ms + number * 8_000)
        assert producer.flush() == 0
    cluster.advance(12_000)
    with consumer(cluster) as member:
        assert poll(member) == [(b"0", 1), (b"1", 1), (b"2", 1)]


def test_4_4_expired_records_are_in_the_dead_letter_queue(cluster: Cluster) -> None:
    cluster.create_topic("dlq.t", configs={"errors.deadletterqueue.group.enable": "true"})
    queue = {"errors.deadletterqueue.topic.name": "dlq.t", "shareq.record.ttl.deadletter.enable": True}
    cluster.configure_group("g", {"share.auto.offset.reset": "earliest", TTL: 10_000, **queue})
    produce(cluster, "a", "b")
    cluster.advance(10_000)
    with consumer(cluster) as member:
        assert not member.poll(10)
    cluster.configure_group("h", {"share.auto.offset.reset": "earliest"})
    with ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "h"}) as reader:
        reader.subscribe(["dlq.t"])
        reasons = [dict(message.headers() or ())["__dlq.errors.message"] for message in reader.poll(60)]
    assert reasons == [b"Record expired."] * 2


# ---- 5: pause and priority -------------------------------------------------------------------------------------------

DELIVERY, PRIORITIES = "shareq.delivery.enable", "shareq.topic.priorities"


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        ({DELIVERY: "no"}, r"shareq\.delivery\.enable='no': must be true or false"),
        ({PRIORITIES: "a"}, r"shareq\.topic\.priorities='a': must be a list of topic:priority, each topic once"),
        ({PRIORITIES: "a:101"}, r"shareq\.topic\.priorities='a:101': .*, with priorities of 0\.\.100"),
        ({PRIORITIES: "a:1,a:2"}, r"shareq\.topic\.priorities='a:1,a:2': must be a list"),
        ({PRIORITIES: "a b:1"}, r"shareq\.topic\.priorities='a b:1': must be a list"),
        ({PRIORITIES: ","}, r"shareq\.topic\.priorities=',': must be a list"),
    ],
)
def test_5_values_out_of_range_are_refused(cluster: Cluster, configs: dict[str, object], error: str) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, pytest.raises(KafkaException, match=error):
        admin.alter_group_configs("g", configs)


def test_5_a_paused_group_drains_and_its_offsets_can_be_altered(cluster: Cluster) -> None:
    produce(cluster, "a", "b", "c")
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        with consumer(cluster, **{"max.poll.records": 1, "share.acquire.mode": "record_limit"}) as member:
            (message,) = member.poll(60)
            admin.alter_group_configs("g", {DELIVERY: False})
            member.acknowledge(message)
            member.commit_sync()
            assert not member.poll(60), "not after its lock has ended, either"
            assert "the group is paused: shareq.delivery.enable=false" in repr(view(cluster, "g", "t", 0))
            assert Chip("paused", hot=True) in chips(view(cluster, "g", "t", 0).snapshot())
        cluster.advance(60_000)
        admin.alter_share_group_offsets("g", {("t", 0): 2})
        admin.alter_group_configs("g", {DELIVERY: True})
        with consumer(cluster) as member:
            assert poll(member) == [(b"c", 1)]


def test_5_topics_of_a_higher_priority_are_read_first() -> None:
    """And the others in every eighth fetch of the session, so that none starves."""
    with Cluster(brokers=1, seed=7, config=ENABLED) as cluster:
        for topic in "t", "urgent":
            cluster.create_topic(topic)
        cluster.configure_group("g", {"share.auto.offset.reset": "earliest", PRIORITIES: "urgent:10"})
        with Producer({"bootstrap.servers": cluster.bootstrap_servers, "batch.num.messages": 1}) as producer:
            for number in range(80):
                producer.produce("urgent" if number % 2 else "t", f"{number}")
            assert producer.flush() == 0
        polled: list[str | None] = []
        with consumer(cluster, **{"max.poll.records": 1, "share.acquire.mode": "record_limit"}) as member:
            member.subscribe(["t", "urgent"])
            while len(polled) < 80:
                for message in member.poll(60):
                    polled.append(message.topic())
                    member.acknowledge(message)
    turns = [number for number, topic in enumerate(polled[:40]) if topic == "t"]
    assert {later - earlier for earlier, later in pairwise(turns[1:])} == {8}, (
        "the first fetch finds one of them loaded"
    )


# ---- the assignor of a group -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("configs", "error"),
    [
        ({"shareq.assignor": "cute"}, r'shareq\.assignor=.*cute.*: must be "", simple, all_to_all, cut'),
        ({"shareq.assignor.lag.interval.ms": 999}, r"shareq\.assignor\.lag\.interval\.ms='999': must be >= 1000"),
    ],
)
def test_assignors_and_intervals_that_do_not_exist_are_refused(
    cluster: Cluster, configs: dict[str, object], error: str
) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin, pytest.raises(KafkaException, match=error):
        admin.alter_group_configs("g", configs)


def test_a_group_is_cut_by_the_lags_of_its_partitions(cluster: Cluster) -> None:
    """The coordinator reads them over the brokers: partitions of three leaders, states of the share coordinators."""
    cluster.create_topic("skewed", 3)
    earliest = {"share.auto.offset.reset": "earliest"}
    cluster.configure_group("g", earliest | {"shareq.assignor": "cut", "share.partition.max.record.locks": 100})
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "batch.num.messages": 10}
    with Producer(conf) as producer, ExitStack() as stack:
        members = [stack.enter_context(consumer(cluster, **{"max.poll.records": 10})) for _ in range(3)]
        for member in members:
            member.subscribe(["skewed"])
            assert not member.poll(0)
        cluster.advance(20_000)
        assert sorted(len(member.assignment()) for member in members) == [1, 1, 1]
        for number in range(1000):
            producer.produce("skewed", f"{number}", partition=1 if number % 10 else number % 3)
        assert producer.flush() == 0
        for member in members:
            for message in member.poll(10):
                member.acknowledge(message)
            member.commit_sync()
        cluster.advance(20_000)
        held = [{partition.partition for partition in member.assignment()} for member in members]
    assert all(1 in partitions for partitions in held)
    assert set().union(*held) == {0, 1, 2}
    assert sum(map(len, held)) <= 3 + 3 - 1
