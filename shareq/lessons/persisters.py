"""The three persisters beside each other: the KIP's example, record by record, and what the same work costs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shareq.consumer import Message, ShareConsumer
from shareq.coordinator.share_state.control_records import decode_control_record
from shareq.coordinator.share_state.control_shard import folded
from shareq.coordinator.share_state.records import StateRecord, StateSnapshot, StateUpdate, decode_state_record
from shareq.lessons.bench import Bench, settle
from shareq.lessons.state_log import STATE_TOPIC, batches_in_words, state_log
from shareq.log.hidden_batches import hidden_batch
from shareq.log.memory import MemoryLog
from shareq.log.records import decode_key_values
from shareq.model.events import CoordinatorLoaded
from shareq.model.messages.share_state import StateBatch
from shareq.model.records import CoordinatorRecord, RecordBatch
from shareq.model.state_designs import StateDesign
from shareq.model.states import AcknowledgeType, IsolationLevel
from shareq.trace.journal.event_text import count_text

__all__ = [
    "PERSISTERS",
    "Recovery",
    "StateEntry",
    "Step",
    "Walk",
    "Work",
    "beside",
    "control_records_in_a_quiet_minute",
    "folded",
    "state_entries",
]

PERSISTERS = (StateDesign.STATE_TOPIC, StateDesign.CONTROL_RECORDS, StateDesign.COMPACTED_TOPIC)
"""Those that keep states: Kafka's, KIP-932's first design, and its rejected alternative."""


class StateEntry(NamedTuple):
    """A record of share state in its log: kind, epoch, index of a delta on a compacted topic (else -1), start offset
    (-1: not written), state batches, bytes with its record batch."""

    offset: int
    kind: str
    epoch: int
    delta_index: int
    start_offset: int
    state_batches: tuple[StateBatch, ...]
    size: int

    @property
    def name(self) -> str:
        """Kind, epoch and index: "delta 0, index 3"."""
        return f"{self.kind} {self.epoch}" + (f", index {self.delta_index}" if self.delta_index >= 0 else "")

    def __str__(self) -> str:
        start = f"start {self.start_offset:>3}" if self.start_offset >= 0 else "         "
        return f"{self.offset:>4}  {self.name:<17}  {start}  {batches_in_words(self.state_batches)}"


def state_entries(bench: Bench) -> list[StateEntry]:
    """The records of share state that are in the log now, oldest first."""
    if bench.persister is StateDesign.CONTROL_RECORDS:
        topic_id = bench.cluster.image.topics[bench.topic].topic_id
        hidden = bench.cluster.log(bench.topic, 0).hidden.batches
        return list(_entries(hidden, lambda key, value: decode_control_record(key, value, topic_id, 0), bench))
    log = state_log(bench)
    read = log.read(log.log_start_offset, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED)
    return list(_entries(read.batches, decode_state_record, bench))


def _entries(
    batches: Iterable[RecordBatch], decoded: Callable[[bytes, bytes | None], StateRecord | None], bench: Bench
) -> Iterator[StateEntry]:
    own = bench.persister is StateDesign.STATE_TOPIC
    names = ("snapshot", "update") if own else ("checkpoint", "delta")
    for batch in batches:
        for offset, key, value in decode_key_values(batch):
            record = decoded(key, value)
            if isinstance(record, StateSnapshot | StateUpdate):
                kind = names[isinstance(record, StateUpdate)]
                index = record.delta_index if isinstance(record, StateUpdate) else -1
                state = record.start_offset, record.state_batches
                yield StateEntry(offset, kind, record.snapshot_epoch, index, *state, batch.size)


# ---- the KIP's example -----------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """What happened, and the records that were written for it."""

    title: str
    entries: list[StateEntry]


@dataclass
class Walk:
    """The example of KIP-932 under one persister: 130 records, and a group that begins at offset 100."""

    persister: StateDesign
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bench = Bench(100, 10, 3, 7, 10, start=100, persister=self.persister)
        self._note("initialize at 100")
        ann, bob, carl, dan = (self.bench.consumer(name, most=1) for name in ("ann", "bob", "carl", "dan"))
        self._settle("accept 100–109", ann, ann.poll(1))
        held = ann.poll(1)
        self.bench.cluster.advance(10_000)
        later = bob.poll(1)
        self._settle("release 110", ann, held[:1], AcknowledgeType.RELEASE)
        self._settle("accept 119", bob, later[6:])
        self.bench.cluster.advance(20_000)
        self._note("111–112 time out")
        self._settle("accept 113–118", bob, later[:6])
        again = carl.poll(1)
        self._settle("accept 110", carl, again[:1])
        self._settle("accept 111–112", carl, again[1:])
        dan.poll(1)
        self._note("120–129 acquired")

    def _settle(
        self, title: str, consumer: ShareConsumer, messages: Iterable[Message],
        verdict: AcknowledgeType = AcknowledgeType.ACCEPT,
    ) -> None:  # fmt: skip
        settle(consumer, messages, verdict)
        self._note(title)

    def _note(self, title: str) -> None:
        noted = sum(len(step.entries) for step in self.steps)
        self.steps.append(Step(title, state_entries(self.bench)[noted:]))

    @property
    def entries(self) -> list[StateEntry]:
        return [entry for step in self.steps for entry in step.entries]


def beside(walks: Sequence[Walk]) -> str:
    """A table of the steps of several walks: the records that each has written, with their bytes."""
    rows = [["", *(str(walk.persister) for walk in walks)]]
    alike = zip(*(walk.steps for walk in walks), strict=True)
    rows += [[steps[0].title, *(_cell(step.entries) for step in steps)] for steps in alike]
    rows.append(["together", *(f"{sum(entry.size for entry in walk.entries)} B" for walk in walks)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def _cell(entries: Iterable[StateEntry]) -> str:
    return "; ".join(f"{entry.offset}: {entry.name}, {entry.size} B" for entry in entries) or "–"


# ---- the same work ---------------------------------------------------------------------------------------------------

_SMALL: dict[str, object] = {
    "share.coordinator.state.topic.num.partitions": 1,
    "share.coordinator.state.topic.segment.bytes": 4096,
    "log.segment.bytes": 4096,
    "log.cleaner.min.cleanable.ratio": 0,
}
"""Small segments: cleaning and pruning have something to remove after a few thousand records already."""

_EARLIEST: dict[str, object] = {"share.auto.offset.reset": "earliest"}


class Recovery(NamedTuple):
    """What a leader that is elected now reads."""

    records: int
    size: int

    def __str__(self) -> str:
        return f"{count_text(self.records, 'record')}, {self.size:,} bytes"


@dataclass
class Work:
    """Four consumers accept `jobs`, which are produced meanwhile, in any order and a few in each commit; 15 % of the
    deliveries are released. The same seed is the same work under each persister."""

    persister: StateDesign
    jobs: int = 1800
    seed: int = 932
    verdicts: int = 0

    def __post_init__(self) -> None:
        self.bench = Bench(brokers=3, persister=self.persister, configs=_EARLIEST, config=_SMALL)
        self._run()
        entries = state_entries(self.bench)
        self.appends = len(entries)
        self.whole = sum(entry.kind in ("snapshot", "checkpoint") for entry in entries)
        self.state_bytes = sum(entry.size for entry in entries)
        self.recovery = self.to_recover()

    def _run(self) -> None:
        rng, left = random.Random(self.seed), self.jobs
        team = [self.bench.consumer(f"w{n}", most=10, share_acquire_mode="record_limit") for n in range(4)]
        while True:
            self.bench.produce(*[10] * min(4, left // 10))
            left -= min(40, left)
            polls = [list(worker.poll(1)) for worker in team]
            if not any(polls):
                break
            for worker, messages in zip(team, polls, strict=True):
                rng.shuffle(messages)
                self._settle_some(rng, worker, messages)
        for worker in team:
            worker.close()

    def _settle_some(self, rng: random.Random, worker: ShareConsumer, messages: list[Message]) -> None:
        """Acknowledge the messages, one to four in each commit."""
        while messages:
            size = rng.randint(1, 4)
            for message in messages[:size]:
                released = rng.random() < 0.15
                worker.acknowledge(message, AcknowledgeType.RELEASE if released else AcknowledgeType.ACCEPT)
                self.verdicts += 1
            worker.commit_sync()
            del messages[:size]

    @property
    def log(self) -> MemoryLog:
        """The jobs' log."""
        return self.bench.cluster.log(self.bench.topic, 0)

    @property
    def stretches(self) -> int:
        """The stretches of jobs without a control record between them: a broker sends each in one piece."""
        ends = [end for _, end in self.log.hidden.runs(0, self.log.high_watermark)]
        return 1 + sum(0 < end < self.log.high_watermark for end in ends)

    def to_recover(self) -> Recovery:
        """What a leader reads that is elected now."""
        if self.persister is StateDesign.CONTROL_RECORDS:
            found = [CoordinatorRecord(key, value) for _, key, value in self.log.hidden.recovery()]
            return Recovery(len(found), sum(len(hidden_batch(record)) for record in found))
        log = state_log(self.bench)
        return Recovery(len(state_entries(self.bench)), log.size_in_bytes)

    def clean(self) -> None:
        """Let time pass until the logs have been cleaned and pruned."""
        self.bench.cluster.advance(600_000)
        self.bench.cluster.clean_logs()

    def fail_over(self) -> int:
        """Kill the broker that keeps the states; the records that the next one has read to recover them."""
        cluster = self.bench.cluster
        topic = self.bench.topic if self.persister is StateDesign.CONTROL_RECORDS else STATE_TOPIC
        cluster.kill_broker(cluster.image.topics[topic].partitions[0].leader)
        cluster.advance(40_000)
        self.bench.produce(1)
        taker = self.bench.consumer("next")
        settle(taker, taker.poll(30))
        loads: list[Any] = [entry.event for entry in cluster.journal.select(CoordinatorLoaded)]
        return int(next(load.record_count for load in reversed(loads) if load.topic == topic))

    def polls_of_a_late_group(self, count: int) -> list[int]:
        """The records in the first polls of a group that begins now at the earliest offset, `max.poll.records` 250."""
        cluster = self.bench.cluster
        cluster.configure_group("late", _EARLIEST)
        conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "late", "max.poll.records": 250}
        with ShareConsumer({**conf, "share.acquire.mode": "record_limit"}) as consumer:
            consumer.subscribe([self.bench.topic])
            while not (first := len(consumer.poll(5))):
                pass
            return [first, *(len(consumer.poll(5)) for _ in range(count - 1))]

    def __str__(self) -> str:
        return (
            f"{self.persister:<16} {self.state_bytes / self.verdicts:>4.0f} bytes a verdict, {self.appends:,} appends, "
            f"{self.whole} of them whole states; to recover: {self.recovery}"
        )


def control_records_in_a_quiet_minute(*, hidden: bool) -> int:
    """How many control records a group writes in a minute without work, behind a network of 50 ms. `hidden`: the
    brokers hide them from the readers of the log."""
    bench = Bench(10, configs=_EARLIEST, persister=StateDesign.CONTROL_RECORDS, latency_ms=50)
    log = bench.cluster.log(bench.topic, 0)
    log.hides_share_state = hidden
    ann = bench.consumer("ann")
    settle(ann, ann.poll(5))
    before = log.log_end_offset
    for _ in range(60):
        ann.poll(1)
    return log.log_end_offset - before
