"""Members, groups, subscriptions, topics that are created and deleted. All four pairings observe the same."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer

from shareq import Errors
from tests.pairings.stage import Stage, pairing, raised, seen, take_together, until, values
from tests.polling import PATIENCE_S, configure, take

# ---- members ---------------------------------------------------------------------------------------------------------


@pairing({"values": list(range(200)), "counts": {1}})
def test_members_share_the_work_on_one_partition(stage: Stage) -> Any:
    """Every member receives records: the batches are small, so that no member acquires all of them."""
    stage.create()
    members = [stage.consumer(max_poll_records=10) for _ in range(3)]
    until(lambda: _members_with_partitions(stage) == 3, *members)
    for start in range(0, 200, 10):
        stage.write_batch(*map(str, range(start, start + 10)))
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


def _members_with_partitions(stage: Stage) -> int:
    """Number of members of the group with a partition."""
    group = stage.admin.describe_share_groups([stage.group])[stage.group]
    return 0 if group.error else sum(bool(member.assignment) for member in group.members)


@pairing({"first": [("a", 1), ("b", 1)], "other while they are held": [], "other when the holder has left": [("b", 2)]})
def test_records_released_by_a_leaving_member_go_to_others(stage: Stage) -> Any:
    stage.create()
    first = stage.explicit()
    until(lambda: _members_with_partitions(stage) == 1, first)
    stage.write_batch("a", "b")
    held = take_together(first, 2)
    first.acknowledge(held[0])
    other = stage.consumer()
    waiting = seen(other.poll(1))
    first.close()
    return {
        "first": seen(held),
        "other while they are held": waiting,
        "other when the holder has left": seen(take(other, 1)),
    }


@pairing({"one": [("a", 1), ("b", 1)], "other": [("a", 1), ("b", 1)]})
def test_each_group_receives_every_record(stage: Stage) -> Any:
    stage.create()
    stage.write("a", "b")
    one = seen(take(stage.consumer(), 2))
    stage.group = stage.fresh("other")
    stage.configure()
    return {"one": one, "other": seen(take(stage.consumer(), 2))}


@pairing({"default": {"new"}, "earliest": ["old", "new"]})
def test_a_group_starts_at_latest_by_default(stage: Stage) -> Any:
    stage.create()
    stage.write("old")
    earliest, stage.group = stage.group, stage.fresh("late")
    configure(stage.admin, stage.group, {"share.heartbeat.interval.ms": 100})
    consumer = stage.consumer()
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE_S
    while not found:
        assert time.monotonic() < deadline
        stage.write("new")
        found += consumer.poll(0.3)
    stage.group = earliest
    return {"default": set(values(found)), "earliest": values(take(stage.consumer(), 2))[:2]}


# ---- subscriptions ---------------------------------------------------------------------------------------------------


@pairing({"none": "IllegalStateException", "first": ["a"], "second": ["b"], "both": ["a2", "b2"], "end": []})
def test_a_subscription_can_be_replaced(stage: Stage) -> Any:
    stage.create()
    other = stage.fresh("other")
    stage.admin.create_topics([other]).check()
    consumer = stage.consumer()
    consumer.unsubscribe()
    none = raised(consumer.poll, 0.1)
    found = []
    for topics, writes in (
        ([stage.topic], {stage.topic: "a"}),
        ([other], {other: "b"}),
        ([stage.topic, other], {stage.topic: "a2", other: "b2"}),
    ):
        consumer.subscribe(topics)
        assert sorted(consumer.subscription()) == sorted(topics)
        for topic, value in writes.items():
            stage.write(value, topic=topic)
        found.append(sorted(values(take(consumer, len(writes)))))
        consumer.commit_sync()
    consumer.unsubscribe()
    return {"none": none, "first": found[0], "second": found[1], "both": found[2], "end": consumer.subscription()}


@pairing({"commit": {0: None}, "poll": "IllegalStateException", "again": ["b"]})
def test_acquired_records_are_committed_after_unsubscribing(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    consumer = stage.consumer()
    take(consumer, 1)
    consumer.unsubscribe()
    commit = stage.results(consumer.commit_sync())
    poll = raised(consumer.poll, 0.1)
    stage.write("b")
    consumer.subscribe([stage.topic])
    return {"commit": commit, "poll": poll, "again": values(take(consumer, 1))}


# ---- topics ----------------------------------------------------------------------------------------------------------


@pairing({"before": [], "after": ["a"]})
def test_a_topic_created_after_subscribing_is_consumed(stage: Stage) -> Any:
    stage.configure()
    consumer = stage.consumer(topic_metadata_refresh_interval_ms=200)
    before = seen(consumer.poll(0.5))
    stage.create()
    stage.write("a")
    return {"before": before, "after": values(take(consumer, 1))}


@pairing({"existing": ["a"], "poll": []})
def test_a_missing_topic_does_not_affect_others(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    consumer = stage.consumer(stage.topic, stage.fresh("nowhere"))
    return {"existing": values(take(consumer, 1)), "poll": seen(consumer.poll(0.3))}


@pairing([])
def test_a_regular_expression_is_taken_as_a_topic_name(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    return seen(stage.consumer(f"^{stage.topic}.*").poll(1))


@pairing({"old": ["old"], "new": ["new"]})
def test_partitions_added_later_are_consumed(stage: Stage) -> Any:
    stage.create()
    consumer = stage.consumer(topic_metadata_refresh_interval_ms=200)
    stage.write("old")
    old = values(take(consumer, 1))
    stage.admin.create_partitions({stage.topic: 2}).check()
    stage.write("new", partition=1)
    return {"old": old, "new": values(take(consumer, 1))}


@pairing({"old": [("old", 1)], "new": [("new", 1)]})
def test_a_recreated_topic_is_consumed(stage: Stage) -> Any:
    stage.create()
    consumer = stage.consumer(topic_metadata_refresh_interval_ms=200)
    stage.write("old")
    old = seen(take(consumer, 1))
    consumer.commit_sync()
    _recreate(stage)
    stage.write("new")
    return {"old": old, "new": seen(take(consumer, 1))}


def _recreate(stage: Stage) -> None:
    stage.admin.delete_topics([stage.topic]).check()
    deadline = time.monotonic() + PATIENCE_S
    while stage.admin.create_topics([stage.topic])[stage.topic].error == Errors.TOPIC_ALREADY_EXISTS:
        assert time.monotonic() < deadline, "the old topic still exists"


@pairing({0: "UNKNOWN_TOPIC_ID"})
def test_commit_to_a_deleted_topic_has_an_error(stage: Stage) -> Any:
    stage.create()
    stage.write("a")
    consumer = stage.explicit()
    (message,) = take(consumer, 1)
    stage.admin.delete_topics([stage.topic]).check()
    until(lambda: stage.topic not in stage.admin.list_topics())
    consumer.acknowledge(message)
    return stage.results(consumer.commit_sync())


# ---- invalid groups --------------------------------------------------------------------------------------------------


@pairing({"poll": "KafkaException GROUP_ID_NOT_FOUND", "later": []})
def test_poll_of_a_consumer_group_s_id_is_refused(stage: Stage) -> Any:
    stage.create()
    consumer = Consumer({"bootstrap.servers": stage.address, "group.id": stage.group, "group.protocol": "consumer"})
    consumer.subscribe([stage.topic])
    deadline = time.monotonic() + PATIENCE_S
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    sharing = stage.consumer()
    poll = raised(sharing.poll, PATIENCE_S)
    later = seen(sharing.poll(0.3))
    consumer.close()
    return {"poll": poll, "later": later}


@pairing({"subscribe": "KafkaException -179", "poll": "IllegalStateException", "close": "KafkaException -179"})
def test_an_empty_group_id_is_refused(stage: Stage) -> Any:
    stage.create()
    consumer = stage.client.ShareConsumer({"bootstrap.servers": stage.address, "group.id": ""})
    return {
        "subscribe": raised(consumer.subscribe, [stage.topic]),
        "poll": raised(consumer.poll, PATIENCE_S),
        "close": raised(consumer.close),
    }
