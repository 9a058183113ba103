"""An observer of Apache Kafka: the durable state of its share coordinator, as the strip's text and as figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from shareq import AcknowledgeType, lag_plot, observe
from shareq.model.events import DurableStateRead, MemberLeft, StateRecordWritten
from shareq.observer import Observer
from shareq.trace import View
from tests.kafka.fixtures import Reachable
from tests.observer.stage import Stage
from tests.polling import PATIENCE_S, configure

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


class ObserverStage(Stage):
    """A topic of one batch, a group with short locks and three deliveries, and an observer of it."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        super().__init__(address, group, topic)
        self.create(1, **{"share.delivery.count.limit": 3, "share.record.lock.duration.ms": 60_000})
        self.observer = self.stack.enter_context(observe(address, group, [topic], interval_ms=50))
        self.view = self.observer.view(topic)
        self.seen = 0

    def expect(self, text: str) -> None:
        """Wait until the strip has shown the text since the last expected one: a lock may expire between two calls."""
        assert self.observer.wait(partial(self._shown, text), PATIENCE_S), self.view

    def _shown(self, text: str) -> bool:
        for order in range(self.seen, self.view.total() + 1):
            if self.view.snapshot(order)["text"] == text:
                self.seen = order
                return True
        return False


def names(view: View) -> list[str]:
    """Names of the members in the group."""
    return [member["name"] for member in view.snapshot()["members"] if member["alive"]]


@pytest.fixture
def stage(kafka: Reachable, fresh: Callable[[str], str]) -> Iterator[ObserverStage]:
    made = ObserverStage(kafka.bootstrap_servers, fresh("crew"), fresh("orders"))
    yield made
    made.close()


def test_the_strip_follows_accepts_releases_rejects_and_lock_timeouts(stage: ObserverStage) -> None:
    """The consumer is of this process; the broker keeps no journal."""
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
        stage.expect("SPSO 3 | ◌2 ✕ ✓ ✓ ✓ ✓ ✓ | log end 10")  # the lock ran out without an acknowledgement
        assert stage.view.snapshot()["lag"] == 1
        assert "1 in the end" in lag_plot(stage.observer, stage.group).text


def test_start_offset_lag_and_members_agree_with_kafka(stage: ObserverStage) -> None:
    """Start offset and lag equal those of DescribeShareGroupOffsets; members have names until they leave."""
    with stage.consumer("anna") as anna, stage.consumer("ben") as ben:
        messages = anna.poll(PATIENCE_S)
        assert not ben.poll(0)  # it joins, and finds no records left
        for message in messages[1::2]:
            anna.acknowledge(message, ACCEPT)
        anna.commit_sync()
        stage.expect("SPSO 0 | A ✓ A ✓ A ✓ A ✓ A ✓ | log end 10")
        assert stage.observer.wait(lambda: names(stage.view) == ["anna", "ben"], PATIENCE_S)
    stage.expect("SPSO 0 | ◌1 ✓ ◌1 ✓ ◌1 ✓ ◌1 ✓ ◌1 ✓ | log end 10")
    assert stage.observer.wait(lambda: len(stage.observer.journal.select(MemberLeft)) == 2, PATIENCE_S)
    lag = stage.admin.lag(stage.group)
    assert stage.view.snapshot()["lag"] == lag.total == 5
    durable = stage.observer.journal.select(DurableStateRead)[-1].event
    assert isinstance(durable, DurableStateRead)
    assert (durable.spso, durable.delivery_complete_count) == (0, 5)
    assert len(stage.observer.journal.select(StateRecordWritten)) > 1
    assert not stage.observer.trouble


def test_altered_offsets_and_a_deleted_group_are_observed(stage: ObserverStage) -> None:
    stage.admin.alter_share_group_offsets(stage.group, {(stage.topic, 0): 7}).check()
    stage.expect("SPSO 7 | ? ? ? | log end 10")
    stage.admin.alter_share_group_offsets(stage.group, {(stage.topic, 0): 2}).check()
    stage.expect("SPSO 2 | ?×8 | log end 10")
    stage.admin.delete_share_groups([stage.group]).check()
    stage.expect("SPSO 0 | empty | log end 10 (nothing durable)")


def test_an_observer_without_topics_finds_those_of_the_group(stage: ObserverStage) -> None:
    stage.admin.alter_share_group_offsets(stage.group, {(stage.topic, 0): 7}).check()
    with observe(stage.address, stage.group) as finder:
        assert isinstance(finder, Observer)
        assert finder.wait(lambda: (stage.topic, 0) in finder.places(), PATIENCE_S)
        assert stage.topic in finder._repr_html_()
