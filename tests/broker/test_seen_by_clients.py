"""Share groups under random faults, as their clients see them: kills, partitions, lost and late messages, slow and
failed writes, jumps of the clock, with and without a dead-letter queue. `client_view.py` has the rules.

`make faults` runs a thousand seeds; `SHAREQ_FAULTS` sets their number.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from random import Random
from typing import Any, ClassVar

import pytest

from shareq.consumer import Message, Messages, ShareConsumer
from shareq.log.records import decode
from shareq.model.errors import KafkaException
from shareq.model.ids import GROUP_METADATA_TOPIC, SHARE_STATE_TOPIC, TopicIdPartition
from shareq.model.states import AcknowledgeType, IsolationLevel
from shareq.producer import Producer
from tests.broker.client_view import Letter, Sight
from tests.broker.stage import GROUP, FaultyStage
from tests.budgets import cases

RUNS = cases(6, 16, "SHAREQ_FAULTS")
ACTIONS = 80
SOURCE, QUEUE = "orders", "dlq.orders"
PARTITIONS = 3
LOCK_MS, LIMIT = 30_000, 5
PATIENCE_MS = 200_000
"""Milliseconds after the last fault within which some lag changes: time-outs of requests, locks, back-offs."""

ACCEPT, RELEASE, REJECT, RENEW = list(AcknowledgeType)[1:]
VERDICTS = {ACCEPT: 60, RELEASE: 18, REJECT: 8, RENEW: 14}


class SightStage(FaultyStage):
    """The rules of what clients may see are checked on each call."""

    WEIGHTS: ClassVar = {
        "produce": 12, "work": 28, "hold": 8, "join": 3, "leave": 2, "crash": 2, "wait": 4,
        "kill_broker": 3, "start_broker": 4, "fail_writes": 4, "slow_writes": 2, "disturb": 2, "cut": 1, "heal": 2,
        "jump": 2,
    }  # fmt: skip
    MEMBERS = 4

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        self.queued = rng.random() < 0.5
        group: dict[str, object] = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": LIMIT}
        if self.queued:
            group["errors.deadletterqueue.topic.name"] = QUEUE
        super().__init__(rng, topics={SOURCE: {"partitions": PARTITIONS}}, group=group, seed=seed)
        if self.queued:
            self.cluster.create_topic(QUEUE, 2, configs={"errors.deadletterqueue.group.enable": "true"})
        self.sight = Sight(lambda: self.cluster.now_ms, LOCK_MS, LIMIT)
        self.delivered: dict[tuple[int, int], str] = {}
        self.produced: dict[tuple[int, int], str] = {}
        self.numbers = 0
        self.producer = Producer({**self.conf, "enable.idempotence": True})
        for _ in range(2):
            self.join()

    def consumer(self, **conf: Any) -> ShareConsumer:
        made = super().consumer(**conf)
        self.sight.watch(made)
        return made

    # ---- work --------------------------------------------------------------------------------------------------------

    def produce(self) -> None:
        partition = self.rng.randrange(PARTITIONS)
        for _ in range(self.rng.randrange(1, 30)):
            self.produce_to(partition)
        self.producer.flush(self.rng.choice([0, 1, 40]))

    def produce_to(self, partition: int) -> None:
        self.numbers += 1
        self.producer.produce(SOURCE, str(self.numbers), partition=partition, on_delivery=self.wrote)

    def wrote(self, error: object, message: Message) -> None:
        if error is None:
            assert place_of(message) not in self.produced
            self.produced[place_of(message)] = (message.value() or b"").decode()

    def work(self) -> None:
        """Poll, pause (sometimes for longer than locks last), acknowledge, and commit by one of several calls."""
        if self.consumers:
            consumer = self.rng.choice(self.consumers)
            messages = self.poll(consumer)
            self.cluster.advance(self.rng.choices([0, 5000, 40_000], [18, 2, 1])[0])
            self.acknowledge(consumer, messages)

    def hold(self) -> None:
        """Hold the records of a poll for a while, in which the other members poll. Where one of their calls fails, the
        holder goes on all the same: its next poll needs the acknowledgements."""
        if len(self.consumers) > 1:
            holder, *others = self.rng.sample(self.consumers, len(self.consumers))
            held = self.poll(holder)
            try:
                for other in others:
                    self.cluster.advance(self.rng.choice([1000, 8000]))
                    self.acknowledge(other, self.poll(other))
            finally:
                self.acknowledge(holder, held)

    def poll(self, consumer: ShareConsumer) -> Messages:
        messages = consumer.poll(self.rng.choice([0, 0.1, 2.0]))
        for message in messages:
            place, value = place_of(message), (message.value() or b"").decode()
            assert self.delivered.setdefault(place, value) == value, f"{place} has two values"
        return messages

    def acknowledge(self, consumer: ShareConsumer, messages: Messages) -> None:
        for message in messages:
            consumer.acknowledge(message, self.rng.choices(list(VERDICTS), list(VERDICTS.values()))[0])
        self.commit(consumer)

    def part(self, consumer: ShareConsumer, *, crash: bool) -> None:
        self.sight.ended(consumer.member_id(), last=not self.consumers)
        if crash:
            self.cluster.crash(consumer)
        else:
            consumer.close(5)

    # ---- faults ------------------------------------------------------------------------------------------------------

    def leaders_change(self) -> None:
        self.sight.leaders_change()

    def slow_writes(self) -> None:
        topic = self.rng.choice([SHARE_STATE_TOPIC, GROUP_METADATA_TOPIC])
        self.cluster.delay_appends(topic, self.rng.choice([0, 50, 3000, 12_000]))

    def disturb(self) -> None:
        loss = self.rng.choice([0.0, 0.0, 0.02, 0.2])
        self.cluster.messages.disturb(loss=loss, delay_ms=self.rng.choice([0, 20, 400]))

    def cut(self) -> None:
        first, second = self.rng.sample(range(self.BROKERS), 2)
        self.cluster.messages.cut(first, second)

    def heal(self) -> None:
        self.cluster.messages.heal()

    def jump(self) -> None:
        """The clock jumps ahead: what was due meanwhile happens late."""
        self.cluster.jump_clock(self.rng.choice([100, 20_000, 40_000, 100_000]))

    # ---- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """All faults end; the remaining members accept every record, and a last one of each partition, until the group
        has no lag. Without the last one a lag may stay, as in Kafka: a write whose result the leader does not know may
        have finished a record that the count of the next write leaves out."""
        self.heal()
        self.end_faults()
        for partition in self.written():
            self.produce_to(partition)
        self.producer.flush(300)
        if not self.consumers:
            self.join()
        progress_ms, before = self.cluster.now_ms, None
        while True:
            for consumer in self.consumers:
                with suppress(KafkaException):  # an error that a fault left for the next poll
                    for message in consumer.poll(2.0):
                        consumer.acknowledge(message)
                    consumer.commit_sync(5)
            lags = {place.partition: row.lag for place, row in self.admin.lag(GROUP).items()}
            if all(lags.get(partition) == 0 for partition in self.written()):
                break
            if lags != before:
                progress_ms, before = self.cluster.now_ms, lags
            assert self.cluster.now_ms < progress_ms + PATIENCE_MS, f"records are left: {lags}"
        self.check_end()

    def written(self) -> list[int]:
        """The partitions with records: in others no start offset is chosen."""
        return [partition for partition in range(PARTITIONS) if self.cluster.log(SOURCE, partition).high_watermark]

    def values(self, topic: str, partition: int) -> dict[int, tuple[str, dict[str, str]]]:
        """The values and headers of a log, by offset."""
        batches = (
            self.cluster.log(topic, partition)
            .read(0, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED)
            .batches
        )
        return {
            record.offset: (
                (record.value or b"").decode(),
                {name: (value or b"").decode() for name, value in record.headers},
            )
            for batch in batches
            if not batch.is_control
            for record in decode(batch)
        }

    def letters(self) -> dict[int, dict[int, list[Letter]]]:
        """By partition and offset of the source."""
        found: dict[int, dict[int, list[Letter]]] = defaultdict(lambda: defaultdict(list))
        for partition in range(2):
            for _, headers in self.values(QUEUE, partition).values():
                about = {name.removeprefix("__dlq.errors."): text for name, text in headers.items()}
                letter = Letter(int(about["delivery.count"]), "exceeded" in about["message"])
                found[int(about["partition"])][int(about["offset"])].append(letter)
        return found

    def check_end(self) -> None:
        self.sight.check_finished_once()
        letters = self.letters() if self.queued else None
        topic_id = self.cluster.image.topics[SOURCE].topic_id
        for partition in range(PARTITIONS):
            values = {offset: value for offset, (value, _) in self.values(SOURCE, partition).items()}
            assert len(set(values.values())) == len(values), "a value was written twice"
            mine = {
                offset: value for (at, offset), value in {**self.produced, **self.delivered}.items() if at == partition
            }
            assert mine.items() <= values.items()
            theirs = None if letters is None else letters[partition]
            self.sight.check_nothing_is_left(TopicIdPartition(topic_id, partition), values.keys(), theirs)
        self.check()

    def check(self) -> None:
        assert not self.sight.broken, "\n".join(self.sight.broken[:10])


def place_of(message: Message) -> tuple[int, int]:
    """Partition and offset."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


@pytest.mark.parametrize("run", range(RUNS))
def test_clients_see_no_broken_rule_under_random_faults(seed: int, run: int) -> None:
    print(f"run {run} of seed {seed}")
    stage = SightStage(seed + run)
    with stage.cluster:
        for _ in range(ACTIONS):
            stage.step()
            stage.check()
        stage.finish()
