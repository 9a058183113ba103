"""Transactional producers with request versions of three client generations, on a cluster whose brokers are killed and
restarted.

After a fault phase comes a quiet phase in which every transaction ends. The test records which values were written and
which transactions were committed. Readers of committed records must return exactly those values at their offsets, and
no partition may keep an open transaction.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from shareq.broker import Cluster
from shareq.log.records import decode
from shareq.model.errors import Errors
from shareq.model.ids import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from shareq.model.messages.transactions import EndTxnRequest
from shareq.model.states import IsolationLevel
from tests.broker.test_transactions import offset_of, settled
from tests.broker.transactor import COORDINATOR_MOVES, FLOWS, Transactor
from tests.budgets import cases

RUNS = cases(5, 8)
ACTIONS = 120
PARTITIONS = 3
PRODUCERS = 4


class Written(NamedTuple):
    partition: int
    offset: int
    value: str


class TransactionStage:
    """Transactional producers on a cluster, and random faults from one generator."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        config = {"transaction.state.log.min.isr": 1}  # one broker of three may be the only one alive
        self.cluster = Cluster(brokers=3, seed=seed, config=config, latency_ms=self.rng.choice([0, 0, 2]))
        self.cluster.create_topic("orders", PARTITIONS, replication_factor=3)
        self.producers = [self.producer(f"t{n}") for n in range(PRODUCERS)]
        self.open: dict[str, list[Written]] = {p.transactional_id: [] for p in self.producers}
        self.offsets: dict[str, int] = {}
        self.kept: list[Written] = []
        self.committed_offset = -1
        self.count = 0

    def producer(self, transactional_id: str) -> Transactor:
        flow = self.rng.choice(list(FLOWS.values()))
        made = Transactor(self.cluster, transactional_id, flow, timeout_ms=900_000)
        assert made.begin() is Errors.NONE
        return made

    # ---- actions -----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Retry until the batch is written, as clients do; a partition that the broker refuses is added again."""
        producer = self.rng.choice(self.producers)
        self.count += 1
        partition, value = self.rng.randrange(PARTITIONS), f"v{self.count}"
        at = TopicPartition("orders", partition)
        for _ in range(50):
            if producer.flow.announces and at not in producer.announced:
                if producer.add(at):
                    self.cluster.advance(20)
                    continue
                producer.announced.add(at)
            if self.cluster.image.topics["orders"].partitions[partition].leader < 0:
                return
            result = producer.produce(value, partition=partition)
            if not result.error_code:
                self.open[producer.transactional_id].append(Written(partition, result.base_offset, value))
                return
            assert result.error_code.retriable, result.error_code.name
            self.cluster.advance(20)
        raise AssertionError("a batch could not be written")

    def commit_offset(self) -> None:
        producer = self.producers[0]  # only the first, so that the last committed offset is certain
        self.count += 1
        for _ in range(50):
            error = producer.commit_offset(self.count)
            if not error:
                self.offsets[producer.transactional_id] = self.count
                return
            assert error.retriable or error in COORDINATOR_MOVES, error.name
            self.cluster.advance(20)
        raise AssertionError("an offset could not be committed")

    def end(self, producer: Transactor | None = None, *, commit: bool | None = None) -> None:
        producer = producer or self.rng.choice(self.producers)
        written = self.open[producer.transactional_id]
        offset = self.offsets.pop(producer.transactional_id, None)
        if not written and offset is None:
            return
        commits = self.rng.random() < 0.6 if commit is None else commit
        assert producer.end(commit=commits) is Errors.NONE
        if commits:
            self.kept += written
            self.committed_offset = self.committed_offset if offset is None else offset
        self.open[producer.transactional_id] = []

    def replace(self) -> None:
        """A new producer with the same transactional id aborts the open transaction and fences the former producer."""
        index = self.rng.randrange(PRODUCERS)
        zombie = self.producers[index]
        self.producers[index] = self.producer(zombie.transactional_id)
        self.open[zombie.transactional_id] = []
        self.offsets.pop(zombie.transactional_id, None)
        late = zombie.batch("late", sequence=zombie.sequences.get(TopicPartition("orders", 0), 0))
        leader = self.cluster.image.topics["orders"].partitions[0].leader
        if leader >= 0:
            assert zombie.answer_to(zombie.produce_later(late)).error_code
        request = EndTxnRequest(
            transactional_id=zombie.transactional_id,
            producer_id=zombie.producer_id,
            producer_epoch=zombie.epoch,
            committed=True,
        )
        assert zombie.coordinate(request, zombie.flow.end).error_code

    def kill(self) -> None:
        if len(self.cluster.brokers_alive) > 1:
            self.cluster.kill_broker(self.rng.choice(self.cluster.brokers_alive))

    def revive(self) -> None:
        dead = [b for b in self.cluster.image.brokers if b not in self.cluster.brokers_alive]
        if dead:
            self.cluster.start_broker(self.rng.choice(dead))

    def balance(self) -> None:
        self.cluster.elect_preferred_leaders()

    def fail(self) -> None:
        topic = self.rng.choice(["orders", TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC])
        self.cluster.fail_appends(topic, times=self.rng.randrange(1, 3))

    def wait(self) -> None:
        self.cluster.advance(self.rng.choice([1, 100, 12_000]))

    # ---- the run -----------------------------------------------------------------------------------------------------

    def faults(self) -> None:
        actions = [self.write, self.commit_offset, self.end, self.replace, self.kill, self.revive]
        actions += [self.balance, self.fail, self.wait]
        weights = [45, 6, 20, 4, 4, 8, 3, 4, 6]
        for action in self.rng.choices(actions, weights, k=ACTIONS):
            action()

    def complete_all(self) -> None:
        self.cluster.clear_faults()
        for _ in range(3):
            self.revive()
        for producer in self.producers:
            self.end(producer, commit=True)
            settled(self.cluster, producer.transactional_id)

    def check(self) -> None:
        for partition in range(PARTITIONS):
            log = self.cluster.log("orders", partition)
            assert log.last_stable_offset == log.high_watermark, "a transaction is still open"
            expected = sorted((w.offset, w.value) for w in self.kept if w.partition == partition)
            assert self.seen(partition) == expected
        if self.committed_offset >= 0:
            assert offset_of(self.producers[0], require_stable=True) == (self.committed_offset, Errors.NONE)

    def seen(self, partition: int) -> list[tuple[int, str]]:
        """Committed records of the partition, filtered by the returned list of aborted transactions."""
        log = self.cluster.log("orders", partition)
        read = log.read(0, max_bytes=1 << 24, isolation=IsolationLevel.READ_COMMITTED)
        aborted = list(read.aborted)
        found: list[tuple[int, str]] = []
        for batch in read.batches:
            lost = any(
                a.producer_id == batch.producer_id and a.first_offset <= batch.base_offset < a.last_offset
                for a in aborted
            )
            if not (batch.is_control or lost):
                found += [(record.offset, (record.value or b"").decode()) for record in decode(batch)]
        return found


@pytest.mark.parametrize("run", range(RUNS))
def test_readers_see_exactly_the_committed_records_after_random_faults(seed: int, run: int) -> None:
    stage = TransactionStage(seed + run)
    with stage.cluster:
        stage.faults()
        stage.complete_all()
        stage.check()
