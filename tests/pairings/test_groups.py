"""Members, groups, subscriptions, topics that are created and deleted. All four pairings observe the same."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer

from shareq import Errors
from tests.pairings.scene import Scene, pairing, raised, seen, take_together, until, values
from tests.polling import PATIENCE_S, configure, take

# ---- members ---------------------------------------------------------------------------------------------------------


@pairing({"values": list(range(200)), "counts": {1}})
def test_members_share_the_work_on_one_partition(scene: Scene) -> Any:
    """Every member receives records: the batches are small, so that no member acquires all of them."""
    scene.create()
    members = [scene.consumer(max_poll_records=10) for _ in range(3)]
    until(lambda: _members_with_partitions(scene) == 3, *members)
    for start in range(0, 200, 10):
        scene.write_batch(*map(str, range(start, start + 10)))
    found = {member: take(member, 1) for member in members}  # each member has records before any member polls again
    deadline = time.monotonic() + PATIENCE_S
    while sum(map(len, found.values())) < 200:
        assert time.monotonic() < deadline
        for member in members:
            found[member] += member.poll(0.05)
    everything = [message for part in found.values() for message in part]
    return {
        "values": sorted(map(int, values(everything))),
        "counts": {message.delivery_count() for message in everything},
    }


def _members_with_partitions(scene: Scene) -> int:
    """Number of members of the group with a partition."""
    group = scene.admin.describe_share_groups([scene.group])[scene.group]
    return 0 if group.error else sum(bool(member.assignment) for member in group.members)


@pairing({"first": [("a", 1), ("b", 1)], "other while they are held": [], "other when the holder has left": [("b", 2)]})
def test_records_released_by_a_leaving_member_go_to_others(scene: Scene) -> Any:
    scene.create()
    first = scene.explicit()
    until(lambda: _members_with_partitions(scene) == 1, first)
    scene.write_batch("a", "b")
    held = take_together(first, 2)
    first.acknowledge(held[0])
    other = scene.consumer()
    waiting = seen(other.poll(1))
    first.close()
    return {
        "first": seen(held),
        "other while they are held": waiting,
        "other when the holder has left": seen(take(other, 1)),
    }


@pairing({"one": [("a", 1), ("b", 1)], "other": [("a", 1), ("b", 1)]})
def test_each_group_receives_every_record(scene: Scene) -> Any:
    scene.create()
    scene.write("a", "b")
    one = seen(take(scene.consumer(), 2))
    scene.group = scene.fresh("other")
    scene.configure()
    return {"one": one, "other": seen(take(scene.consumer(), 2))}


@pairing({"default": {"new"}, "earliest": ["old", "new"]})
def test_a_group_starts_at_latest_by_default(scene: Scene) -> Any:
    scene.create()
    scene.write("old")
    earliest, scene.group = scene.group, scene.fresh("late")
    configure(scene.admin, scene.group, {"share.heartbeat.interval.ms": 100})
    consumer = scene.consumer()
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while not found:
        assert time.monotonic() < deadline
        scene.write("new")
        found += consumer.poll(0.3)
    scene.group = earliest
    return {"default": set(values(found)), "earliest": values(take(scene.consumer(), 2))[:2]}


# ---- subscriptions ---------------------------------------------------------------------------------------------------


@pairing({"none": "IllegalStateException", "first": ["a"], "second": ["b"], "both": ["a2", "b2"], "end": []})
def test_a_subscription_can_be_replaced(scene: Scene) -> Any:
    scene.create()
    other = scene.fresh("other")
    scene.admin.create_topics([other]).check()
    consumer = scene.consumer()
    consumer.unsubscribe()
    none = raised(consumer.poll, 0.1)
    found = []
    for topics, writes in (
        ([scene.topic], {scene.topic: "a"}),
        ([other], {other: "b"}),
        ([scene.topic, other], {scene.topic: "a2", other: "b2"}),
    ):
        consumer.subscribe(topics)
        assert sorted(consumer.subscription()) == sorted(topics)
        for topic, value in writes.items():
            scene.write(value, topic=topic)
        found.append(sorted(values(take(consumer, len(writes)))))
        consumer.commit_sync()
    consumer.unsubscribe()
    return {"none": none, "first": found[0], "second": found[1], "both": found[2], "end": consumer.subscription()}


@pairing({"commit": {0: None}, "poll": "IllegalStateException", "again": ["b"]})
def test_acquired_records_are_committed_after_unsubscribing(scene: Scene) -> Any:
    scene.create()
    scene.write("a")
    consumer = scene.consumer()
    take(consumer, 1)
    consumer.unsubscribe()
    commit = scene.results(consumer.commit_sync())
    poll = raised(consumer.poll, 0.1)
    scene.write("b")
    consumer.subscribe([scene.topic])
    return {"commit": commit, "poll": poll, "again": values(take(consumer, 1))}


# ---- topics ----------------------------------------------------------------------------------------------------------


@pairing({"before": [], "after": ["a"]})
def test_a_topic_created_after_subscribing_is_consumed(scene: Scene) -> Any:
    scene.configure()
    consumer = scene.consumer(topic_metadata_refresh_interval_ms=200)
    before = seen(consumer.poll(0.5))
    scene.create()
    scene.write("a")
    return {"before": before, "after": values(take(consumer, 1))}


@pairing({"existing": ["a"], "poll": []})
def test_a_missing_topic_does_not_affect_others(scene: Scene) -> Any:
    scene.create()
    scene.write("a")
    consumer = scene.consumer(scene.topic, scene.fresh("nowhere"))
    return {"existing": values(take(consumer, 1)), "poll": seen(consumer.poll(0.3))}


@pairing([])
def test_a_regular_expression_is_taken_as_a_topic_name(scene: Scene) -> Any:
    scene.create()
    scene.write("a")
    return seen(scene.consumer(f"^{scene.topic}.*").poll(1))


@pairing({"old": ["old"], "new": ["new"]})
def test_partitions_added_later_are_consumed(scene: Scene) -> Any:
    scene.create()
    consumer = scene.consumer(topic_metadata_refresh_interval_ms=200)
    scene.write("old")
    old = values(take(consumer, 1))
    scene.admin.create_partitions({scene.topic: 2}).check()
    scene.write("new", partition=1)
    return {"old": old, "new": values(take(consumer, 1))}


@pairing({"old": [("old", 1)], "new": [("new", 1)]})
def test_a_recreated_topic_is_consumed(scene: Scene) -> Any:
    scene.create()
    consumer = scene.consumer(topic_metadata_refresh_interval_ms=200)
    scene.write("old")
    old = seen(take(consumer, 1))
    consumer.commit_sync()
    _recreate(scene)
    scene.write("new")
    return {"old": old, "new": seen(take(consumer, 1))}


def _recreate(scene: Scene) -> None:
    scene.admin.delete_topics([scene.topic]).check()
    deadline = time.monotonic() + PATIENCE_S
    while scene.admin.create_topics([scene.topic])[scene.topic].error == Errors.TOPIC_ALREADY_EXISTS:
        assert time.monotonic() < deadline, "the old topic still exists"


@pairing({0: "UNKNOWN_TOPIC_ID"})
def test_commit_to_a_deleted_topic_has_an_error(scene: Scene) -> Any:
    scene.create()
    scene.write("a")
    consumer = scene.explicit()
    (message,) = take(consumer, 1)
    scene.admin.delete_topics([scene.topic]).check()
    until(lambda: scene.topic not in scene.admin.list_topics())
    consumer.acknowledge(message)
    return scene.results(consumer.commit_sync())


# ---- invalid groups --------------------------------------------------------------------------------------------------


@pairing({"poll": "KafkaException GROUP_ID_NOT_FOUND", "later": []})
def test_poll_of_a_consumer_group_s_id_is_refused(scene: Scene) -> Any:
    scene.create()
    consumer = Consumer({"bootstrap.servers": scene.address, "group.id": scene.group, "group.protocol": "consumer"})
    consumer.subscribe([scene.topic])
    deadline = time.monotonic() + PATIENCE_S
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    sharing = scene.consumer()
    poll = raised(sharing.poll, PATIENCE_S)
    later = seen(sharing.poll(0.3))
    consumer.close()
    return {"poll": poll, "later": later}


@pairing({"subscribe": "KafkaException -179", "poll": "IllegalStateException", "close": "KafkaException -179"})
def test_an_empty_group_id_is_refused(scene: Scene) -> Any:
    scene.create()
    consumer = scene.client.ShareConsumer({"bootstrap.servers": scene.address, "group.id": ""})
    return {
        "subscribe": raised(consumer.subscribe, [scene.topic]),
        "poll": raised(consumer.poll, PATIENCE_S),
        "close": raised(consumer.close),
    }
