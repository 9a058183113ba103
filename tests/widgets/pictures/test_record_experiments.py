"""Strip and biography give the reason why no fetch may acquire an available record now."""

from __future__ import annotations

from shareq import Cluster, Producer, ShareConsumer
from shareq.trace.analysis.group_history import GroupHistory
from shareq.trace.views.view import view
from shareq_widgets.instant import instant_of
from shareq_widgets.pictures.record import RecordContent, content

EARLIEST = {"share.auto.offset.reset": "earliest"}
GROUP = {"share.auto.offset.reset": "earliest", "shareq.release.backoff.ms": 1000}


def record(cluster: Cluster, offset: int) -> RecordContent:
    return content(instant_of(GroupHistory(cluster.journal, "g")), "t", 0, offset)


def test_a_resting_record() -> None:
    with Cluster(brokers=1, seed=7, config={"shareq.experiments.enable": True}) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", GROUP)
        to = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(to) as producer:
            for value in "ab":
                producer.produce("t", value)
        with ShareConsumer(to | {"group.id": "g", "share.acknowledgement.mode": "explicit"}) as member:
            member.subscribe(["t"])
            first, second = member.poll(60)
            member.acknowledge(first, "RELEASE")
            member.acknowledge(second)
            member.commit_sync()
            resting = record(cluster, 0)
            assert resting.place.name == "available"
            assert resting.place.why == (
                "It rests until 0:06.085, and no fetch may acquire it before, because shareq released it at 0:05.085, "
                "in delivery 1."
            )
            assert resting.chapters[-1].title == "resting"
            assert "~" in repr(view(cluster, "g", "t", 0))
            cluster.advance(1000)
            assert record(cluster, 0).chapters[-1].title == "available again"
            assert member.poll(60)
            assert "resting" in [chapter.title for chapter in record(cluster, 0).chapters]


def test_records_whose_time_to_live_is_over() -> None:
    """The window has passed one that was never delivered; another one has expired after its return."""
    with Cluster(brokers=1, seed=7, config={"shareq.experiments.enable": True}) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", EARLIEST | {"shareq.record.ttl.ms": 10_000})
        to = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(to) as producer:
            for value in "abc":
                producer.produce("t", value)
                producer.flush()
                cluster.advance(3_000)
        with ShareConsumer(to | {"group.id": "g", "share.acknowledgement.mode": "explicit"}) as member:
            member.subscribe(["t"])
            (third,) = member.poll(60)
            passed = record(cluster, 0)
            assert passed.place.name == "archived"
            assert passed.place.why.startswith("It is done: its time to live was over when a fetch reached it at 0:1")
            cluster.advance(2_000)
            member.acknowledge(third, "RELEASE")
            member.commit_sync()
            assert not member.poll(1)
            returned = record(cluster, 2)
            assert returned.place.why.startswith("It is done: its time to live was over when a fetch reached it at 0:1")
            assert "its time to live was over" in str(returned.chapters)


def test_records_of_a_paused_group() -> None:
    with Cluster(brokers=1, seed=7, config={"shareq.experiments.enable": True}) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", EARLIEST)
        to = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(to) as producer:
            producer.produce("t", "a")
        with ShareConsumer(to | {"group.id": "g", "share.acknowledgement.mode": "explicit"}) as member:
            member.subscribe(["t"])
            (first,) = member.poll(60)
            cluster.configure_group("g", EARLIEST | {"shareq.delivery.enable": False})
            with Producer(to) as producer:
                producer.produce("t", "b")
            member.acknowledge(first, "RELEASE")
            member.commit_sync()
            paused = "the group is paused: shareq.delivery.enable=false."
            assert record(cluster, 0).place.why == f"No fetch may acquire it: {paused}"
            assert record(cluster, 1).place.why == f"No fetch reaches it: {paused}"
            cluster.configure_group("g", {"shareq.delivery.enable": None})
            assert "waits for the next fetch" in record(cluster, 0).place.why


def test_a_record_that_waits_for_its_key() -> None:
    with Cluster(brokers=1, seed=7, config={"shareq.experiments.enable": True}) as cluster:
        cluster.create_topic("t")
        cluster.configure_group("g", EARLIEST | {"shareq.key.ordering": "key", "shareq.release.backoff.ms": 1000})
        to = {"bootstrap.servers": cluster.bootstrap_servers}
        with Producer(to) as producer:
            for key in "aab":
                producer.produce("t", "v", key=key)
        config = to | {"group.id": "g", "client.id": "worker", "share.acknowledgement.mode": "explicit"}
        with ShareConsumer(config) as member:
            member.subscribe(["t"])
            first, third = member.poll(60)
            waits = "No fetch may acquire it before offset 0 of its key 'a' is done"
            assert record(cluster, 1).place.why == f"{waits}, which worker holds."
            member.acknowledge(first, "RELEASE")
            member.acknowledge(third)
            member.commit_sync()
            assert record(cluster, 1).place.why == f"{waits}."
            (first,) = member.poll(60)
            member.acknowledge(first)
            member.commit_sync()
            assert "waits for the next fetch" in record(cluster, 1).place.why
