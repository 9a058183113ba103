"""Cleaning by groups: shareq/leader/experiments/BEHAVIOUR.md, rules 6.1 to 6.8 and their examples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

from shareq import Admin, Cluster, Producer, ShareConsumer
from shareq.broker.group_retention import GroupRetention
from shareq.model.actor import Answer, Call, CleanByGroups, DeleteRecordsBefore, ImageChanged
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors, KafkaException
from shareq.model.events import LogKept, LogStartMoved
from shareq.model.experiments import BY_GROUPS
from shareq.model.ids import GROUP_METADATA_TOPIC, TopicId, TopicPartition
from shareq.model.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from shareq.model.messages.cluster import ListGroupsRequest, ListGroupsResponse
from shareq.model.messages.offsets import OffsetFetchResponse
from shareq.model.messages.share_group import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from shareq.trace.views.view import view
from shareq_widgets.words import chips

ENABLED = {"shareq.experiments.enable": True}
EARLIEST = {"share.auto.offset.reset": "earliest"}
AT = TopicPartition("t", 0)

# ---- the actor -------------------------------------------------------------------------------------------------------


def image(*, epoch: int = 0, coordinator: int = 1, policy: str = "delete", wanted: str = "true") -> ClusterImage:
    """Broker 0 leads t-0, broker 1 all groups."""

    def topic(name: str, leader: int, leader_epoch: int, configs: dict[str, str]) -> TopicImage:
        part = PartitionImage(leader=leader, leader_epoch=leader_epoch, replicas=(0, 1), isr=(0, 1))
        return TopicImage(name=name, topic_id=TopicId(name[0] * 22), partitions=(part,), configs=configs)

    topics = {
        "t": topic("t", 0, 0, {BY_GROUPS: wanted, "cleanup.policy": policy}),
        GROUP_METADATA_TOPIC: topic(GROUP_METADATA_TOPIC, coordinator, epoch, {}),
    }
    brokers = {i: BrokerImage(broker_id=i, host=f"b{i}", port=9092 + i) for i in (0, 1)}
    return ClusterImage(
        broker_config=BrokerConfig(ENABLED),
        brokers=brokers,
        topics=topics,
        topics_by_id={t.topic_id: t for t in topics.values()},
    )


class Round:
    """One round. `shares`, `consumers`: offsets of t-0 by group; a text is an error."""

    def __init__(self, before: ClusterImage | None = None) -> None:
        self.actor = GroupRetention(0)
        self.actor.handle(ImageChanged(before or image()), 0)
        self.effects: list[Any] = self.actor.handle(CleanByGroups(), 0)

    def answer(self, shares: dict[str, int | str], consumers: dict[str, int | str] | None = None) -> str:
        """Answer all calls; returns the offset below which records are deleted, and why the rest is kept."""
        while calls := [effect for effect in self.effects if isinstance(effect, Call)]:
            self.effects = []
            for call in calls:
                self.effects += self.actor.handle(self._reply(call, shares, consumers or {}), 0)
        return self.result

    @property
    def result(self) -> str:
        deleted = [f"below {e.offset}" for e in self.effects if isinstance(e, DeleteRecordsBefore)]
        return ", ".join(deleted + [e.reason for e in self.effects if isinstance(e, LogKept)])

    def _reply(self, call: Call, shares: dict[str, int | str], consumers: dict[str, int | str]) -> Answer:
        assert call.node == 1
        response: Any
        if isinstance(call.request, ListGroupsRequest):
            kinds = dict.fromkeys(shares, "share") | dict.fromkeys(consumers, "consumer")
            shown = ListGroupsResponse.Group
            groups = [
                shown(group_id=g, protocol_type="", group_state="Stable", group_type=kind) for g, kind in kinds.items()
            ]
            return Answer(call.id, ListGroupsResponse(groups=tuple(groups)))
        (asked,) = call.request.groups  # type: ignore[attr-defined]
        known, group_id = (shares | consumers)[asked.group_id], asked.group_id
        error = Errors[known] if isinstance(known, str) else Errors.NONE
        at = -1 if isinstance(known, str) else known
        if isinstance(call.request, DescribeShareGroupOffsetsRequest):
            share = DescribeShareGroupOffsetsResponse
            topic: Any = share.Topic(
                topic_name="t",
                topic_id=TopicId("t" * 22),
                partitions=(share.Partition(partition_index=0, start_offset=at),),
            )
            response = share(groups=(share.Group(group_id=group_id, topics=(topic,), error_code=error),))
        else:
            commits = OffsetFetchResponse
            part = commits.Partition(partition_index=0, committed_offset=at, error_code=error)
            topic = commits.Topic(name="t", partitions=(part,))
            response = commits(groups=(commits.Group(group_id=group_id, topics=(topic,)),))
        return Answer(call.id, response)


@pytest.mark.parametrize(
    ("shares", "consumers", "result"),
    [
        pytest.param({"a": 5, "b": 9}, {}, "below 5, group a is not further", id="example 1"),
        pytest.param({"a": 5, "b": 9, "c": -1}, {}, "group c has no durable start there", id="example 3"),
        pytest.param({}, {"c": 7}, "", id="example 4"),
        pytest.param({}, {}, "", id="no group"),
        pytest.param({"a": 9}, {"c": 3}, "below 3, group c is not further", id="example 5"),
        pytest.param({"a": 9}, {"c": -1}, "below 9, group a is not further", id="no commit"),
        pytest.param(
            {"a": 9}, {"c": "UNSTABLE_OFFSET_COMMIT"}, "group c has a commit under way", id="open transaction"
        ),
        pytest.param(
            {"a": 9, "b": "COORDINATOR_NOT_AVAILABLE"},
            {},
            "group b does not return its offsets",
            id="an error keeps all",
        ),
    ],
)
def test_6_2_what_no_group_needs_is_deleted(
    shares: dict[str, int | str], consumers: dict[str, int | str], result: str
) -> None:
    assert Round().answer(shares, consumers) == result


@pytest.mark.parametrize("given", [image(wanted="false"), image(policy="compact"), image(policy="compact,delete")])
def test_6_1_only_topics_that_want_it_and_are_not_compacted_are_cleaned(given: ClusterImage) -> None:
    assert Round(given).effects == []


def test_6_3_nothing_is_deleted_if_a_coordinator_is_away_or_has_moved() -> None:
    away = Round(image(coordinator=-1))
    assert away.result == "a group coordinator is not available"
    moved = Round()
    moved.actor.handle(ImageChanged(image(epoch=1)), 0)
    assert moved.answer({"a": 5}) == "a group coordinator has moved meanwhile"


def test_6_3_one_round_at_a_time() -> None:
    begun = Round()
    assert begun.actor.handle(CleanByGroups(), 0) == []
    assert begun.answer({"a": 5}) == "below 5, group a is not further"
    assert len(begun.actor.handle(CleanByGroups(), 0)) == 1


def test_6_6_the_reason_is_recorded_when_it_changes() -> None:
    begun = Round()
    begun.answer({"a": 5})
    begun.effects = begun.actor.handle(CleanByGroups(), 0)
    assert begun.answer({"a": 8}) == "below 8"
    begun.effects = begun.actor.handle(CleanByGroups(), 0)
    assert begun.answer({"a": 8, "b": 3}) == "below 3, group b is not further"


# ---- the cluster -----------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=7, config=ENABLED) as made:
        made.create_topic("t", replication_factor=3, configs={BY_GROUPS: True})
        for group in "gh":
            made.configure_group(group, EARLIEST)
        yield made


def produce(cluster: Cluster, *values: str) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap_servers, "batch.num.messages": 1}) as producer:
        for value in values:
            producer.produce("t", value)
        assert producer.flush() == 0


def member_of(cluster: Cluster, group: str, **conf: Any) -> ShareConsumer:
    explicit = {"share.acknowledgement.mode": "explicit", "group.id": group}
    made = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, **explicit, **conf})
    made.subscribe(["t"])
    return made


def clean(cluster: Cluster) -> int:
    """The start of the log after a round."""
    cluster.clean_logs()
    cluster.advance(1000)
    return cluster.log("t", 0).log_start_offset


def test_6_1_without_the_switch_the_configuration_is_unknown() -> None:
    with Cluster(brokers=1, seed=7) as plain, Admin({"bootstrap.servers": plain.bootstrap_servers}) as admin:
        with pytest.raises(KafkaException, match=r"by\.groups\.enable=.*unknown topic configuration"):
            plain.create_topic("t", configs={BY_GROUPS: True})
        plain.create_topic("t")
        assert BY_GROUPS not in admin.describe_configs("topic", "t")


def test_6_1_a_value_that_is_no_boolean_is_refused(cluster: Cluster) -> None:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        assert admin.describe_configs("topic", "t")[BY_GROUPS].value == "true"
        with pytest.raises(KafkaException, match=r"groups\.enable='maybe': must be true or false"):
            admin.incremental_alter_configs("topic", "t", {BY_GROUPS: "maybe"})


def test_6_2_the_durable_start_counts_and_not_that_in_memory(cluster: Cluster) -> None:
    """Example 2. The log starts at the least durable start of two groups, each time that retention runs."""
    produce(cluster, *"abcdefgh")
    with member_of(cluster, "g") as first, member_of(cluster, "h") as second:
        accept(first, first.poll(60))
        messages = second.poll(60)
        assert clean(cluster) == 0
        assert [event.reason for event in kept(cluster)] == ["group h has no durable start there"]
        accept(second, messages[:5])
        accept(second, messages[5:])
        for letter in "ij":
            produce(cluster, letter)
            accept(first, first.poll(60))
            accept(second, second.poll(60))
        cluster.advance(300_000)
        least = min(start_of(cluster, "g"), start_of(cluster, "h"))
        assert cluster.log("t", 0).log_start_offset == least > 0


def accept(member: ShareConsumer, messages: Any) -> None:
    for message in messages:
        member.acknowledge(message)
    assert not any(member.commit_sync().values())


def start_of(cluster: Cluster, group: str) -> int:
    """The durable start of the share-partition; 0: there is none yet."""
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        offsets = admin.list_share_group_offsets(group)
    return max(0, *(offset.start_offset or 0 for offset in offsets.values())) if offsets else 0


def kept(cluster: Cluster) -> list[LogKept]:
    return [entry.event for entry in cluster.journal if isinstance(entry.event, LogKept)]


def test_6_4_a_record_on_its_way_to_the_dead_letter_queue_is_kept(cluster: Cluster) -> None:
    """Example 6: the queue is not there; the records after it are done."""
    cluster.configure_group("g", EARLIEST | {"errors.deadletterqueue.topic.name": "dlq.t"})
    produce(cluster, *"abcdef")
    with member_of(cluster, "g") as member:
        for _ in range(2):
            for message in member.poll(60):
                member.acknowledge(message, "REJECT" if message.offset() == 4 else "ACCEPT")
            member.commit_sync()
            produce(cluster, "more")
        assert clean(cluster) <= 4
        assert "log kept for g since 0:05" in [
            "".join(chip[:3]) for chip in chips(view(cluster, "g", "t", 0).snapshot())
        ]


def test_6_5_records_are_deleted_when_every_group_has_finished_them_over_failovers(cluster: Cluster, seed: int) -> None:
    """C1: the log never starts above a durable start. C2: each record is accepted in each group, though brokers are
    killed, groups lag, and the log is cleaned all the time. An acceptance whose answer is lost may be durable."""
    chance, sent, accepted = Random(seed), 0, {"g": set[bytes](), "h": set[bytes]()}
    for group in accepted:
        cluster.configure_group(group, EARLIEST | {"share.delivery.count.limit": 10})
    with ExitStack() as stack:
        members = {group: [stack.enter_context(member_of(cluster, group)) for _ in range(2)] for group in accepted}
        for _ in range(500):
            if sent < 200:
                produce(cluster, *(f"{sent + number}" for number in range(10)))
                sent += 10
            elif not any(lag_of(cluster, group) for group in accepted):
                break
            for group, team in members.items():
                member = chance.choice(team)
                for message in member.poll(0.5):
                    accepts = chance.random() < 0.9
                    member.acknowledge(message, "ACCEPT" if accepts else "RELEASE")
                    accepted[group] |= {message.value() or b""} if accepts else set()
                member.commit_sync()
            start = clean(cluster)
            assert start <= min(start_of(cluster, "g"), start_of(cluster, "h"))
            if chance.random() < 0.15:
                broker = chance.randrange(3)
                cluster.kill_broker(broker)
                cluster.clean_logs()
                cluster.advance(500)
                cluster.start_broker(broker)
                cluster.advance(3000)
    assert {group: len(values) for group, values in accepted.items()} == {"g": 200, "h": 200}
    assert [entry for entry in cluster.journal if isinstance(entry.event, LogStartMoved)], "records were deleted"


def lag_of(cluster: Cluster, group: str) -> int:
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        return admin.list_share_group_offsets(group).total
