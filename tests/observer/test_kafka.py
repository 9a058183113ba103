"""An observer of an Apache Kafka: what its share coordinator keeps, as the strip's text and in figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from shareq import AcknowledgeType, Admin, NewTopic, Producer, ShareConsumer, lag_plot, observe
from shareq.model.events import DurableStateRead, MemberLeft, StateRecordWritten
from shareq.observer import Observer
from shareq.trace import View
from tests.kafka.fixtures import Reachable
from tests.polling import PATIENCE_S, configure

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
RECORDS = 10


class Stage:
    """A topic of one batch, a group with short locks and three deliveries, and an observer of it."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        self.address, self.group, self.topic = {"bootstrap.servers": address}, group, topic
        self.admin = Admin(self.address)
        self.admin.create_topics([NewTopic(topic, 1)]).check()
        configs = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 3}
        configure(self.admin, group, {**configs, "share.record.lock.duration.ms": 60_000})
        self.produce()
        self.observer = observe(address, group, [topic], interval_ms=50)
        self.view = self.observer.view(topic)
        self.seen = 0

    def produce(self) -> None:
        with Producer(self.address) as producer:
            for number in range(RECORDS):
                producer.produce(self.topic, f"{number}")

    def consumer(self, name: str) -> ShareConsumer:
        conf = {"group.id": self.group, "client.id": name, "share.acknowledgement.mode": "explicit"}
        consumer = ShareConsumer({**self.address, **conf})
        consumer.subscribe([self.topic])
        return consumer

    def expect(self, text: str) -> None:
        """The strip comes to say so, or has said so since it said what was expected before: locks may run out while
        nobody looks."""
        assert self.observer.wait(partial(self._said, text), PATIENCE_S), self.view

    def _said(self, text: str) -> bool:
        for order in range(self.seen, self.view.total() + 1):
            if self.view.snapshot(order)["text"] == text:
                self.seen = order
                return True
        return False

    def close(self) -> None:
        self.observer.close()
        self.admin.close()


def names(view: View) -> list[str]:
    """Who is in the group."""
    return [member["name"] for member in view.snapshot()["members"] if member["alive"]]


@pytest.fixture
def stage(kafka: Reachable, fresh: Callable[[str], str]) -> Iterator[Stage]:
    made = Stage(kafka.bootstrap_servers, fresh("crew"), fresh("orders"))
    yield made
    made.close()


def test_the_strip_follows_accepts_releases_rejects_and_locks_that_run_out(stage: Stage) -> None:
    """A consumer of this process, on a broker that keeps no journal."""
    stage.expect("SPSO 0 | empty | log end 10 (nothing durable)")
    with stage.consumer("anna") as anna:
        messages = anna.poll(PATIENCE_S)
        stage.expect("SPSO 0 | A×10 | log end 10 (nothing durable)")
        for offset, verdict in {0: ACCEPT, 1: ACCEPT, 3: RELEASE, 4: REJECT, 6: ACCEPT}.items():
            anna.acknowledge(messages[offset], verdict)
        assert not any(anna.commit_sync().values())
        stage.expect("SPSO 2 | A ◌1 ✕ A ✓ A A A | log end 10")
        assert stage.view.snapshot()["past"] == [[0, 2, "acknowledged", 1]]
        for offset in (2, 5, 7, 8, 9):
            anna.acknowledge(messages[offset], ACCEPT)
        assert not any(anna.commit_sync().values())
        stage.expect("SPSO 3 | ◌1 ✕ ✓ ✓ ✓ ✓ ✓ | log end 10")
        configure(stage.admin, stage.group, {"share.record.lock.duration.ms": 2000})
        assert [message.offset() for message in anna.poll(PATIENCE_S)] == [3]
        stage.expect("SPSO 3 | A2 ✕ ✓ ✓ ✓ ✓ ✓ | log end 10")
        stage.expect("SPSO 3 | ◌2 ✕ ✓ ✓ ✓ ✓ ✓ | log end 10")  # nobody said anything: the lock ran out
        assert stage.view.snapshot()["lag"] == 1
        assert "1 in the end" in lag_plot(stage.observer, stage.group).text


def test_what_is_read_is_what_kafka_says_of_the_group(stage: Stage) -> None:
    """Start offset and lag as DescribeShareGroupOffsets tells them; members by name until they leave."""
    with stage.consumer("anna") as anna, stage.consumer("ben") as ben:
        messages = anna.poll(PATIENCE_S)
        assert not ben.poll(0)  # it joins; there is nothing left for it
        for message in messages[1::2]:
            anna.acknowledge(message, ACCEPT)
        anna.commit_sync()
        stage.expect("SPSO 0 | A ✓ A ✓ A ✓ A ✓ A ✓ | log end 10")
        assert stage.observer.wait(lambda: names(stage.view) == ["anna", "ben"], PATIENCE_S)
    stage.expect("SPSO 0 | ◌1 ✓ ◌1 ✓ ◌1 ✓ ◌1 ✓ ◌1 ✓ | log end 10")
    assert stage.observer.wait(lambda: len(stage.observer.journal.select(MemberLeft)) == 2, PATIENCE_S)
    told = stage.admin.lag(stage.group)
    assert stage.view.snapshot()["lag"] == told.total == 5
    durable = stage.observer.journal.select(DurableStateRead)[-1].event
    assert isinstance(durable, DurableStateRead)
    assert (durable.spso, durable.delivery_complete_count) == (0, 5)
    assert len(stage.observer.journal.select(StateRecordWritten)) > 1
    assert not stage.observer.trouble


def test_offsets_that_are_altered_and_groups_that_are_deleted(stage: Stage) -> None:
    stage.admin.alter_share_group_offsets(stage.group, {(stage.topic, 0): 7}).check()
    stage.expect("SPSO 7 | ? ? ? | log end 10")
    stage.admin.alter_share_group_offsets(stage.group, {(stage.topic, 0): 2}).check()
    stage.expect("SPSO 2 | ?×8 | log end 10")
    stage.admin.delete_share_groups([stage.group]).check()
    stage.expect("SPSO 0 | empty | log end 10 (nothing durable)")


def test_an_observer_that_names_no_topics_finds_them(stage: Stage) -> None:
    stage.admin.alter_share_group_offsets(stage.group, {(stage.topic, 0): 7}).check()
    with observe(stage.address["bootstrap.servers"], stage.group) as finder:
        assert isinstance(finder, Observer)
        assert finder.wait(lambda: (stage.topic, 0) in finder.places(), PATIENCE_S)
        assert stage.topic in finder._repr_html_()
