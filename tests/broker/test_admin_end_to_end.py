"""Administration of a running cluster: successful operations and refused ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from shareq.admin import Admin
from shareq.broker import Cluster
from shareq.consumer import ShareConsumer
from shareq.model.errors import Errors, KafkaException
from shareq.producer import Producer

pytestmark = pytest.mark.every_persister


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, seed=7) as made:
        made.create_topic("orders", 2)
        producer = Producer({"bootstrap.servers": made.bootstrap_servers})
        for number in range(10):
            producer.produce("orders", str(number), partition=number % 2)
            producer.flush()
            made.advance(1000)
        yield made


@pytest.fixture
def admin(cluster: Cluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap_servers})


def consume(cluster: Cluster, count: int, **config: Any) -> list[str]:
    """Join, take `count` records, accept them, leave."""
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", **config}
    got: list[str] = []
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        for _ in range(20):
            if len(got) < count:
                got += [m.value().decode() for m in consumer.poll(2)]
        consumer.commit_sync()
    return sorted(got, key=int)


def refusal(call: Any) -> Errors:
    """The code of the KafkaException that the call raises."""
    with pytest.raises(KafkaException) as caught:
        call()
    return Errors(caught.value.error.code())


def test_an_emptied_group_is_listed_described_and_deleted(cluster: Cluster, admin: Admin, persister: str) -> None:
    admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
    assert consume(cluster, 10) == [str(n) for n in range(10)]
    (listing,) = admin.list_groups().values()
    assert (listing.group_id, listing.type.lower(), listing.state) == ("g", "share", "Empty")
    description = admin.describe_share_groups(["g"])["g"]
    assert (description.state, description.members, description.assignor) == ("Empty", (), "simple")
    # The stored start offset precedes the last acknowledgement, except with control records; the count of completed
    # records corrects the lag.
    start = 5 if persister == "control-records" else 0
    found = {place.partition: (o.start_offset, o.lag) for place, o in admin.lag("g").items()}
    assert found == {0: (start, 0), 1: (start, 0)}
    assert admin.delete_share_groups(["g"])["g"].error is None
    assert not admin.list_groups()


def test_a_group_with_members_cannot_be_reset_or_deleted(cluster: Cluster, admin: Admin) -> None:
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(8)
        members = admin.describe_share_groups(["g"])["g"].members
        assert [(m.member_id, len(m.assignment)) for m in members] == [(consumer.member_id(), 2)]
        assert refusal(lambda: admin.alter_share_group_offsets("g", {("orders", 0): 0})) is Errors.NON_EMPTY_GROUP
        assert refusal(lambda: admin.delete_share_group_offsets("g", ["orders"])) is Errors.NON_EMPTY_GROUP
        failed = admin.delete_share_groups(["g"])["g"].error
        assert failed is not None
        assert failed.code() == Errors.NON_EMPTY_GROUP


@pytest.mark.parametrize(
    ("spec", "first"),
    [
        pytest.param("earliest", "0", id="earliest"),
        pytest.param(3, "6", id="offset"),
        pytest.param("latest", None, id="latest"),
    ],
)
def test_altered_offsets_set_the_next_record_of_a_group(
    cluster: Cluster, admin: Admin, spec: int | str, first: str | None
) -> None:
    admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
    consume(cluster, 10)
    altered = admin.alter_share_group_offsets("g", {("orders", 0): spec, ("orders", 1): "latest"})
    assert all(item.error is None for item in altered.values())
    got = consume(cluster, 1)
    assert got[:1] == ([first] if first else [])


def test_deleted_offsets_restart_the_group_from_the_beginning(cluster: Cluster, admin: Admin) -> None:
    admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
    consume(cluster, 10)
    assert admin.delete_share_group_offsets("g", ["orders"])["orders"].error is None
    assert not admin.lag("g")
    assert len(consume(cluster, 10)) == 10


def test_partitions_added_to_a_topic_are_read_from_the_beginning(cluster: Cluster, admin: Admin) -> None:
    """share.auto.offset.reset is latest, but a partition that is added later is read from its first record."""
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"}
    with ShareConsumer(conf) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll(8)
        admin.create_partitions({"orders": 3})
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        producer.produce("orders", "new", partition=2)
        producer.flush()
        got = [m.value() for _ in range(6) for m in consumer.poll(5)]
    assert got == [b"new"]


def test_a_recreated_topic_starts_without_share_group_state(cluster: Cluster, admin: Admin) -> None:
    admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
    assert len(consume(cluster, 10)) == 10
    admin.delete_topics(["orders"])
    assert not admin.lag("g")
    admin.create_topics(["orders"])
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("orders", "100")
    producer.flush()
    assert consume(cluster, 1) == ["100"]


def test_lag_counts_unacknowledged_records(cluster: Cluster, admin: Admin) -> None:
    admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
    consumer = ShareConsumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "share.acknowledgement.mode": "explicit",
        }
    )
    consumer.subscribe(["orders"])
    messages = consumer.poll(10)
    for message in messages[1:]:  # the first record holds the window back
        consumer.acknowledge(message)
    consumer.commit_sync()
    lags: dict[int | None, int | None] = {place.partition: offset.lag for place, offset in admin.lag("g").items()}
    assert lags.pop(messages[0].partition()) == 5 - len(messages[1:])
    assert list(lags.values()) == [None]  # the group has no stored offset of the other partition yet


def test_invalid_admin_calls_have_errors(cluster: Cluster, admin: Admin) -> None:
    created = admin.create_topics(["orders", "bad name"])
    assert [r.error.name() for r in created.values() if r.error] == ["TOPIC_ALREADY_EXISTS", "INVALID_TOPIC_EXCEPTION"]
    with pytest.raises((KafkaException, ValueError), match=r"share\.delivery\.count\.limit"):
        admin.alter_group_configs("g", {"share.delivery.count.limit": 99})
    missing = admin.describe_share_groups(["none"])["none"].error
    assert missing is not None
    assert missing.code() == Errors.GROUP_ID_NOT_FOUND
    assert not admin.lag("none")
    with pytest.raises(ValueError, match="timeout=-1"):
        admin.list_groups(timeout=-1)


def test_admin_calls_succeed_after_brokers_are_killed(cluster: Cluster, admin: Admin) -> None:
    admin.alter_group_configs("g", {"share.auto.offset.reset": "earliest"})
    consume(cluster, 10)
    for broker in (0, 1):
        cluster.kill_broker(broker)
        assert [o.lag for o in admin.lag("g").values()] == [0, 0]
        assert admin.describe_share_groups(["g"])["g"].state == "Empty"


def test_a_consumer_that_is_closed_at_any_moment_of_joining_leaves(cluster: Cluster, admin: Admin) -> None:
    for elapsed_ms in range(0, 2000, 50):
        consumer = ShareConsumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
        consumer.subscribe(["orders"])
        consumer.poll(elapsed_ms / 1000)
        began_ms = cluster.now_ms
        consumer.close()
        assert cluster.now_ms - began_ms < 1000
        if elapsed_ms:
            assert admin.describe_share_groups(["g"])["g"].members == ()
