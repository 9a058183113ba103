"""The controller: topics, elections, configurations; each change is a new image with its events."""

from __future__ import annotations

import logging
import random
import re
from typing import Any

import pytest

from shareq.broker.controller import Controller
from shareq.model.configs import BrokerConfig
from shareq.model.errors import Errors
from shareq.model.events import Event, LeaderElected, TopicCreated
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC
from shareq.model.image import NO_LEADER, BrokerImage, ClusterImage


class ControllerStage:
    """A controller, and the images and events that it has published."""

    def __init__(self, brokers: int = 3, **config: Any) -> None:
        self.images: list[ClusterImage] = []
        self.events: list[Event] = []
        images = {b: BrokerImage(broker_id=b, host="127.0.0.1", port=9092 + b) for b in range(brokers)}
        self.controller = Controller(
            images,
            BrokerConfig(config),
            random.Random(7),
            now_ms=lambda: 0,
            publish=self.images.append,
            record=self.events.append,
        )

    def leaders(self, topic: str) -> list[int]:
        return [p.leader for p in self.controller.image.topics[topic].partitions]

    def epochs(self, topic: str) -> list[int]:
        return [p.leader_epoch for p in self.controller.image.topics[topic].partitions]


@pytest.fixture
def stage() -> ControllerStage:
    made = ControllerStage()
    made.controller.create_topic("orders", 4, 2)
    return made


def test_a_topic_is_spread_over_the_brokers(stage: ControllerStage) -> None:
    topic = stage.controller.image.topics["orders"]
    assert [p.replicas for p in topic.partitions] == [(0, 1), (1, 2), (2, 0), (0, 1)]
    assert (stage.leaders("orders"), stage.epochs("orders")) == ([0, 1, 2, 0], [0, 0, 0, 0])
    assert stage.controller.image.topics_by_id[topic.topic_id] is topic
    assert stage.images[-1] is stage.controller.image
    assert stage.events[0] == TopicCreated("orders", topic.topic_id, 4)


def test_leadership_moves_off_a_stopped_broker_and_returns_only_by_election(stage: ControllerStage) -> None:
    stage.controller.broker_stopped(0, killed=True)
    assert (stage.leaders("orders"), stage.epochs("orders")) == ([1, 1, 2, 1], [1, 0, 0, 1])
    stage.controller.broker_started(0)
    assert stage.leaders("orders") == [1, 1, 2, 1]
    stage.controller.elect_preferred_leaders()
    assert (stage.leaders("orders"), stage.epochs("orders")) == ([0, 1, 2, 0], [2, 0, 0, 2])


def test_a_partition_without_a_live_replica_has_no_leader_until_one_restarts(stage: ControllerStage) -> None:
    stage.controller.broker_stopped(0, killed=True)
    stage.controller.broker_stopped(1, killed=False)
    assert stage.leaders("orders") == [NO_LEADER, 2, 2, NO_LEADER]
    stage.controller.broker_started(1)
    assert (stage.leaders("orders"), stage.epochs("orders")) == ([1, 2, 2, 1], [3, 1, 0, 3])
    assert stage.events[-1] == LeaderElected("orders", 3, 1, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        pytest.param(("orders",), Errors.TOPIC_ALREADY_EXISTS, "'orders' already exists", id="exists"),
        pytest.param(("", 1), Errors.INVALID_TOPIC_EXCEPTION, "1 to 249 characters", id="empty name"),
        pytest.param(("x" * 250, 1), Errors.INVALID_TOPIC_EXCEPTION, "1 to 249 characters", id="long name"),
        pytest.param(("..", 1), Errors.INVALID_TOPIC_EXCEPTION, "and not", id="dots"),
        pytest.param(("a b", 1), Errors.INVALID_TOPIC_EXCEPTION, "1 to 249 characters", id="space"),
        pytest.param(("new", 0), Errors.INVALID_PARTITIONS, "0 partitions: must be 1 or more", id="no partitions"),
        pytest.param(("new", -2), Errors.INVALID_PARTITIONS, "-2 partitions", id="negative partitions"),
        pytest.param(("new", 1, 0), Errors.INVALID_REPLICATION_FACTOR, r"factor 0: must be 1\.\.3", id="no replicas"),
        pytest.param(("new", 1, 4), Errors.INVALID_REPLICATION_FACTOR, r"factor 4: must be 1\.\.3", id="many replicas"),
        pytest.param(("new", 1, 1, {"colour": "red"}), Errors.INVALID_CONFIG, "colour", id="unknown config"),
        pytest.param(("new", 1, 1, {"retention.ms": "-2"}), Errors.INVALID_CONFIG, "retention.ms", id="bad config"),
    ],
)
def test_invalid_topics_are_refused(
    stage: ControllerStage, arguments: tuple[Any, ...], error: Errors, message: str
) -> None:
    before = stage.controller.image
    (code, message_given), topic = stage.controller.create_topic(*arguments)
    assert (code, topic, stage.controller.image) == (error, None, before)
    assert re.search(message, message_given or "")


def test_names_that_differ_only_in_dot_and_underscore_collide(stage: ControllerStage) -> None:
    stage.controller.create_topic("a.b", 1)
    (error, why), _ = stage.controller.create_topic("a_b", 1)
    why_not = "topic 'a_b' collides with 'a.b': '.' and '_' are equal in metrics"
    assert (error, why) == (Errors.INVALID_TOPIC_EXCEPTION, why_not)


def test_validate_only_changes_nothing(stage: ControllerStage) -> None:
    before, events = stage.controller.image, len(stage.events)
    (error, _), topic = stage.controller.create_topic("new", 3, validate_only=True)
    assert not error
    assert topic is not None
    assert (stage.controller.image, len(stage.events)) == (before, events)


@pytest.mark.parametrize(
    ("name", "count", "error"),
    [
        ("orders", 4, Errors.INVALID_PARTITIONS),
        ("orders", 1, Errors.INVALID_PARTITIONS),
        ("none", 5, Errors.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_invalid_partition_counts_are_refused(stage: ControllerStage, name: str, count: int, error: Errors) -> None:
    assert stage.controller.create_partitions(name, count)[0] == error


def test_added_partitions_continue_the_striped_placement(stage: ControllerStage) -> None:
    assert not stage.controller.create_partitions("orders", 6)[0]
    assert stage.leaders("orders") == [0, 1, 2, 0, 1, 2]


def test_deleting_and_creating_again_gives_a_new_id(stage: ControllerStage) -> None:
    first = stage.controller.image.topics["orders"].topic_id
    assert not stage.controller.delete_topic("orders")[0]
    assert stage.controller.delete_topic("orders")[0] == Errors.UNKNOWN_TOPIC_OR_PARTITION
    stage.controller.create_topic("orders", 1)
    assert stage.controller.image.topics["orders"].topic_id != first
    assert first not in stage.controller.image.topics_by_id


@pytest.mark.parametrize(("brokers", "replicas"), [(1, 1), (2, 2), (5, 3)])
def test_internal_topics_have_as_many_replicas_as_brokers_permit(brokers: int, replicas: int) -> None:
    stage = ControllerStage(brokers)
    for name in (SHARE_STATE_TOPIC, GROUP_METADATA_TOPIC):
        stage.controller.create_internal_topic(name)
        version = stage.controller.image.version
        stage.controller.create_internal_topic(name)
        topic = stage.controller.image.topics[name]
        assert (len(topic.partitions), len(topic.partitions[0].replicas)) == (50, replicas)
        assert stage.controller.image.version == version


@pytest.mark.every_persister
def test_the_state_topic_is_configured_as_kafka_does(persister: str) -> None:
    stage = ControllerStage(**{"share.coordinator.state.topic.num.partitions": 3})
    stage.controller.create_internal_topic(SHARE_STATE_TOPIC)
    topic = stage.controller.image.topics[SHARE_STATE_TOPIC]
    assert len(topic.partitions) == 3
    assert dict(topic.configs) == {
        "cleanup.policy": "compact" if persister == "compacted-topic" else "delete",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
        "min.insync.replicas": "2",
    }


def test_a_change_of_a_group_validates_all_its_configurations(stage: ControllerStage) -> None:
    controller = stage.controller
    assert not controller.alter_group_configs("g", {"share.delivery.count.limit": "7"})[0]
    assert controller.image.group_config("g").delivery_count_limit == 7
    assert not controller.alter_broker_configs({"group.share.max.delivery.count.limit": "6"})[0]
    assert controller.image.group_config("g").delivery_count_limit == 6  # clamped
    error, message_given = controller.alter_group_configs("g", {"share.isolation.level": "read_committed"})
    assert error == Errors.INVALID_CONFIG  # the stale value blocks an unrelated change, as in Kafka
    assert message_given is not None
    assert "share.delivery.count.limit='7': must be 2..6" in message_given
    assert not controller.alter_group_configs("g", {"share.delivery.count.limit": None})[0]
    assert controller.image.group_config("g").delivery_count_limit == 5
    assert controller.alter_group_configs("", {})[0] == Errors.INVALID_REQUEST


def test_a_clamped_group_value_logs_one_warning(stage: ControllerStage, caplog: pytest.LogCaptureFixture) -> None:
    """The warning is logged once per group, key and value, also if the bounds change again."""
    controller = stage.controller
    controller.alter_group_configs("g", {"share.delivery.count.limit": "7", "share.session.timeout.ms": "50000"})
    controller.alter_group_configs("h", {"share.delivery.count.limit": "7"})
    with caplog.at_level(logging.WARNING, "shareq.broker"):
        for most in ("9", "6", "5", "8", "6"):
            controller.alter_broker_configs({"group.share.max.delivery.count.limit": most})
    bounds = "2..6 (group.share.min.delivery.count.limit, group.share.max.delivery.count.limit)"
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "shareq.broker",
            "WARNING",
            f"group {group!r}: share.delivery.count.limit=7 is outside {bounds}; the effective value is 6",
        )
        for group in ("g", "h")
    ]
    caplog.clear()
    controller.alter_broker_configs({"group.share.max.delivery.count.limit": "10"})
    controller.alter_group_configs("g", {"share.delivery.count.limit": "8"})
    controller.alter_broker_configs({"group.share.max.delivery.count.limit": "5"})
    assert [record.getMessage().partition(" is ")[0] for record in caplog.records] == [
        "group 'g': share.delivery.count.limit=8"
    ], "another value logs its own warning"


def test_topic_and_broker_configurations(stage: ControllerStage) -> None:
    controller = stage.controller
    assert not controller.alter_topic_configs("orders", {"retention.ms": "1000"})[0]
    assert controller.alter_topic_configs("orders", {"retention.ms": "soon"})[0] == Errors.INVALID_CONFIG
    assert controller.alter_topic_configs("none", {})[0] == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert dict(controller.image.topics["orders"].configs) == {"retention.ms": "1000"}
    assert controller.alter_broker_configs({"group.share.max.size": "0"})[0] == Errors.INVALID_REQUEST


# ---- many changes together -------------------------------------------------------------------------------------------


def test_changes_in_one_block_are_one_image(stage: ControllerStage) -> None:
    before = len(stage.images)
    with stage.controller.together():
        for index in range(20):
            assert stage.controller.create_topic(f"t{index}")[0][0] is Errors.NONE
        assert stage.controller.delete_topic("t3")[0] is Errors.NONE
        assert stage.controller.create_topic("t4")[0][0] is Errors.TOPIC_ALREADY_EXISTS
        assert stage.controller.alter_topic_configs("t5", {"retention.ms": "1"})[0] is Errors.NONE
        assert stage.controller.alter_group_configs("g", {"share.delivery.count.limit": "3"})[0] is Errors.NONE
        assert len(stage.images) == before
    (image,) = stage.images[before:]
    assert image is stage.controller.image
    assert sorted(image.topics) == sorted(["orders", *(f"t{i}" for i in range(20) if i != 3)])
    assert {t.name for t in image.topics_by_id.values()} == set(image.topics)
    assert image.topics["t5"].configs == {"retention.ms": "1"}
    assert image.group_configs["g"] == {"share.delivery.count.limit": "3"}


def test_the_changes_before_an_error_are_published(stage: ControllerStage) -> None:
    with pytest.raises(ZeroDivisionError), stage.controller.together():  # noqa: PT012
        stage.controller.create_topic("kept")
        raise ZeroDivisionError
    assert "kept" in stage.images[-1].topics


def test_a_block_without_changes_publishes_nothing(stage: ControllerStage) -> None:
    before = len(stage.images)
    with stage.controller.together():
        stage.controller.create_topic("orders")
    assert len(stage.images) == before


def test_a_name_is_free_in_metrics_when_its_topic_is_deleted(stage: ControllerStage) -> None:
    assert stage.controller.create_topic("a.b")[0][0] is Errors.NONE
    refused, why = stage.controller.create_topic("a_b")[0]
    assert (refused, why) == (
        Errors.INVALID_TOPIC_EXCEPTION,
        "topic 'a_b' collides with 'a.b': '.' and '_' are equal in metrics",
    )
    stage.controller.delete_topic("a.b")
    assert stage.controller.create_topic("a_b")[0][0] is Errors.NONE
