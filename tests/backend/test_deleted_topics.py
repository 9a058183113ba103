"""Topics of the backend are deleted, and created again at once or later, while processes work: nothing is lost, clients
get errors that they may retry at most, and no process is started again. BEHAVIOUR.md, 1.4 and 3.11."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import confluent_kafka
import pytest

import shareq
from shareq import Admin, Cluster, NewTopic
from shareq.broker.backend.metadata_mirror import MetadataMirror
from shareq.broker.backend.topics import GROUP_CONFIGS_TOPIC, IN_BACKEND
from shareq.kafka import LocalKafka
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import AcknowledgeType
from tests.backend.serving import CLIENT
from tests.backend.stage import GROUP, Stage, finish, seen
from tests.backend.test_faults import may_be_repeated
from tests.polling import eventually, take

Fresh = Callable[[str], str]


@pytest.fixture
def admin(kafka: LocalKafka) -> Iterator[Admin]:
    with Admin({"bootstrap.servers": kafka.bootstrap_servers}) as made:
        yield made


def delete(admin: Admin, name: str) -> None:
    if name in admin.list_topics():
        admin.delete_topics([name]).check()
        eventually(lambda: name in admin.list_topics(), False)


@pytest.fixture(params=[None, "compacted-topic"], ids=["state topic", "compacted topic"])
def stage(kafka: LocalKafka, fresh: Fresh, admin: Admin, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """Work with one of the persisters whose states are in the state topic, which has none before and after it."""
    made = Stage(kafka, fresh, request.param)
    delete(admin, IN_BACKEND[SHARE_STATE_TOPIC])
    with made.stack:
        yield made
    delete(admin, IN_BACKEND[SHARE_STATE_TOPIC])


def id_of(cluster: Cluster, name: str) -> str | None:
    """The id of a topic of this project, as the process knows it."""
    if name == GROUP_CONFIGS_TOPIC:
        mirror: MetadataMirror = cast(Any, cluster)._runtime.mirror
        return mirror.group_configs_id
    topic = cluster.image.topics.get(name)
    return None if topic is None else topic.topic_id


def replace_topic(cluster: Cluster, admin: Admin, name: str, created: Mapping[str, str] | None) -> None:
    """Delete a topic of this project, and wait until the process knows another one. `created`: by another program,
    with these configurations."""
    before, in_backend = id_of(cluster, name), IN_BACKEND.get(name, name)
    admin.delete_topics([in_backend]).check()
    if created is not None:
        admin.create_topics([NewTopic(in_backend, 1 if name == GROUP_CONFIGS_TOPIC else 4, 1, config=created)])
    eventually(lambda: {None, before} & {id_of(cluster, name)}, set())


@pytest.mark.parametrize("created", [False, True], ids=["deleted", "created again at once"])
@pytest.mark.parametrize("name", [*IN_BACKEND, GROUP_CONFIGS_TOPIC])
def test_nothing_is_lost_with_a_topic_of_this_project(stage: Stage, admin: Admin, name: str, created: bool) -> None:
    """Neither what a working group has done nor the state of an idle one; nor is it after a later start."""
    cluster = stage.prepared()
    stage.produce("a", "b", "c", "d")
    idle = Stage(stage.kafka, lambda what: stage.topic if what == "topic" else f"{stage.group}-idle", stage.persister)
    cluster.configure_group(idle.group, {"share.auto.offset.reset": "earliest"})
    with idle.stack:
        reader = idle.consumer(cluster)
        finish(reader, take(reader, 4)[:2])
    consumer = stage.consumer(cluster)
    a, b, c, d = take(consumer, 4)
    finish(consumer, [a, c])
    finish(consumer, [d], AcknowledgeType.RELEASE)
    configs = {"cleanup.policy": "delete" if name == SHARE_STATE_TOPIC and not stage.persister else "compact"}
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as asked:
        members = members_of(asked, stage.group)
        for _ in range(2):
            replace_topic(cluster, admin, name, configs if created else None)
        finish(consumer, [b])
        again = take(consumer, 1)
        assert seen(again) == [(b"d", 2)]
        finish(consumer, again)
        eventually(lambda: stage.lag(cluster), 0)
        assert members_of(asked, stage.group) == members
    eventually(lambda: idle.lag(cluster), 2)  # a shard that is not written again is lost with the process: 3.11
    consumer.close()
    cluster.close()
    later = stage.cluster()
    assert later.image.group_configs[stage.group] == {key: str(value) for key, value in GROUP.items()}
    stage.produce("e")
    assert seen(take(stage.consumer(later), 1)) == [(b"e", 1)]
    assert idle.lag(later) == 3
    with idle.stack:
        assert seen(take(idle.consumer(later), 3)) == [(b"c", 2), (b"d", 2), (b"e", 1)]


def members_of(admin: Admin, group: str) -> list[str]:
    return [member.member_id for member in admin.describe_share_groups([group])[group].members]


@pytest.mark.parametrize("library", [shareq, confluent_kafka], ids=["shareq", "confluent"])
def test_a_topic_that_is_created_again_at_once_is_a_new_one(kafka: LocalKafka, fresh: Fresh, library: Any) -> None:
    """Under a consumer that holds a record: its acceptance is refused, and it gets the records of the new topic."""
    stage = Stage(kafka, fresh)
    with stage.stack, Admin({"bootstrap.servers": kafka.bootstrap_servers}) as admin:
        cluster = stage.prepared()
        server = stage.stack.enter_context(cluster.serve())
        conf = {"bootstrap.servers": server.bootstrap_servers, "group.id": stage.group, **CLIENT}
        consumer = stage.stack.enter_context(library.ShareConsumer(conf))
        consumer.subscribe([stage.topic])
        stage.produce("a", "b")
        (first, held) = take(consumer, 2)
        consumer.acknowledge(first)
        consumer.acknowledge(held, AcknowledgeType.RELEASE)
        assert set(consumer.commit_sync().values()) == {None}
        (held,) = take(consumer, 1)
        before = id_of(cluster, stage.topic)
        admin.delete_topics([stage.topic]).check()
        eventually(lambda: created(admin, stage.topic), True)
        eventually(lambda: id_of(cluster, stage.topic) not in {before, None}, True)  # until then it accepts the record
        stage.produce("new")
        consumer.acknowledge(held)
        (error,) = consumer.commit_sync().values()
        assert may_be_repeated(error)
        messages = take(consumer, 1)
        assert [(message.offset(), *one) for message, one in zip(messages, seen(messages), strict=True)] == [
            (0, b"new", 1)
        ]
        finish(consumer, messages)
        eventually(lambda: stage.lag(cluster), 0)


def created(admin: Admin, name: str) -> bool:
    """False while the topic of this name is being deleted."""
    (found,) = admin.create_topics([name]).values()
    return found.error is None
