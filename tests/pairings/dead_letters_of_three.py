"""Worked examples of dead-letter queues whose letters must wait: test bodies for three brokers, of which one, that has
the only replica of the queue, is killed and started again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from shareq import NewTopic, ShareConsumer
from tests.pairings.dead_letters import ACCEPT, COPY, ENABLED, NAME, REJECT, RELEASE, DeadLetterStage, Letter
from tests.polling import configure, eventually, take

LEADER, OF_QUEUE = 0, 2
"""The brokers that lead the source, and that have the queue."""


class Brokers(Protocol):
    def kill_broker(self, broker_id: int) -> None: ...
    def start_broker(self, broker_id: int) -> None: ...


class WaitingStage(DeadLetterStage):
    """`brokers` are those at the address."""

    brokers: Brokers

    def create_waiting(self, *values: str, **group: object) -> None:
        """The source has these records, acquired; the broker of the queue is away."""
        self.admin.create_topics([NewTopic(self.queue, config=ENABLED, replica_assignment=[[OF_QUEUE]])]).check()
        self.create(queue=None, group=group, brokers=[LEADER])
        self.write(*values)
        self.take(len(values))
        self.brokers.kill_broker(OF_QUEUE)
        eventually(self._queue_has_a_leader, False)

    def end_of_wait(self) -> None:
        """Kafka gives up half a minute after the reject."""
        self.brokers.start_broker(OF_QUEUE)

    def until_letters(self, count: int) -> None:
        eventually(lambda: self._end_of(self.queue), count)

    def until_records_are_read(self) -> None:
        """Wait until the leader has read the records of the letters that wait, for their copies. It reads in the order
        of the rejects, after its response: a letter of another group, whose queue it has itself, is written then."""
        group, queue = f"group-of-{self.source}", f"dlq.group-of-{self.source}"
        self.admin.create_topics([NewTopic(queue, config=ENABLED, replica_assignment=[[LEADER]])]).check()
        configure(self.admin, group, {"share.auto.offset.reset": "earliest", NAME: queue, **COPY})
        mode = {"share.acknowledgement.mode": "explicit"}
        with ShareConsumer({"bootstrap.servers": self.address, "group.id": group, **mode}) as consumer:
            consumer.subscribe([self.source])
            rejected = take(consumer, 1)
            for message in rejected:
                consumer.acknowledge(message, REJECT)
            assert not any(consumer.commit_sync().values())
            eventually(lambda: self._end_of(queue), len(rejected))

    def _end_of(self, queue: str) -> int | None:
        (row,) = self.admin.list_offsets({(queue, 0): "latest"}).values()
        return row.offset

    def _queue_has_a_leader(self) -> bool:
        (place,) = self.admin.describe_topics([self.queue])[self.queue].partitions
        return place.leader is not None and place.leader >= 0


Body = Callable[[WaitingStage], Any]
OF_THREE: dict[str, tuple[Body, Any]] = {}
"""Name -> the body, and what it observes on every broker."""


def example(expected: Any) -> Callable[[Body], Body]:
    """Register a body with its expected observation."""

    def registered(body: Body) -> Body:
        OF_THREE[body.__name__] = body, expected
        return body

    return registered


@example([Letter(offset, 1) for offset in range(3)])
def examples_20_and_26_others_go_on_while_letters_wait(stage: WaitingStage) -> Any:
    """The records are answered, and stay in the lag until their letters are written with a retry. In Kafka each has
    retries of its own, and the order is random."""
    stage.create_waiting(*"abcdef")
    stage.acknowledge(REJECT, 0, 1, 2)
    assert stage.lag() == 6
    stage.acknowledge(ACCEPT, 3, 4, 5)
    stage.until_lag(3)
    stage.write("g")
    assert stage.take(1) == [(6, 1)]
    stage.acknowledge(ACCEPT, 6)
    stage.until_lag(3)
    stage.end_of_wait()
    stage.until_lag(0)
    return sorted(stage.letters(), key=lambda letter: letter.offset)


def reload_while_letters_wait(stage: WaitingStage) -> None:
    """The leader of the source is killed, and starts again."""
    stage.create_waiting(*"abcdef")
    stage.acknowledge_each({0: REJECT, 1: REJECT, 2: REJECT, 3: ACCEPT})
    stage.fall_silent()
    stage.brokers.kill_broker(LEADER)
    stage.brokers.start_broker(LEADER)


@example([Letter(offset, 1) for offset in range(3)])
def example_21_letters_go_on_after_a_restart(stage: WaitingStage) -> Any:
    reload_while_letters_wait(stage)
    assert stage.take(2) == [(4, 1), (5, 1)]
    stage.end_of_wait()
    stage.until_lag(2)
    return stage.letters()


@example([])
def example_22_the_queue_is_taken_away_before_a_restart(stage: WaitingStage) -> Any:
    reload_while_letters_wait(stage)
    stage.configure({NAME: ""})
    assert stage.take(2) == [(4, 1), (5, 1)]
    stage.until_lag(2)
    stage.end_of_wait()
    return stage.letters()


@example({Letter(offset, 1) for offset in range(4)})
def example_23_the_last_member_leaves(stage: WaitingStage) -> Any:
    """Kafka writes the letters twice, each time when the retries of one share-partition allow it."""
    stage.create_waiting(*"abcd")
    stage.acknowledge(REJECT, 0, 1, 2, 3)
    stage.leave()
    stage.write("e")
    assert stage.take(1) == [(4, 1)]
    stage.end_of_wait()
    stage.until_lag(1)
    return set(stage.letters())


@example([Letter(offset, 1, None, value) for offset, value in enumerate([b"a", b"b", b"c"])])
def example_24_letters_keep_what_the_log_has_lost(stage: WaitingStage) -> Any:
    """The start offset passes their records, which are no part of the lag then."""
    stage.create_waiting(*"abcdefg", **COPY)
    stage.acknowledge_each({**dict.fromkeys((0, 1, 2), REJECT), **dict.fromkeys((3, 4, 5), RELEASE), 6: ACCEPT})
    stage.until_records_are_read()
    stage.admin.delete_records({(stage.source, 0): 5})
    assert stage.take(1) == [(5, 2)]
    stage.acknowledge(ACCEPT, 5)
    stage.end_of_wait()
    stage.until_letters(3)
    return sorted(stage.letters(), key=lambda letter: letter.offset)


@example([Letter(offset, 1) for offset in range(100)])
def example_25_letters_count_as_locks(stage: WaitingStage) -> Any:
    stage.create_waiting(*map(str, range(100)), **{"share.partition.max.record.locks": 100})
    stage.acknowledge(REJECT, *range(100))
    stage.write(*map(str, range(100, 120)))
    assert stage.nothing_comes()
    stage.end_of_wait()
    assert stage.take(20) == [(offset, 1) for offset in range(100, 120)]
    stage.until_lag(20)
    return stage.letters()
