"""A journal of as many events as wanted, 1,000 a second, as two leaders and four members of a group record it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import cycle, islice

from shareq.model.events import (
    BrokerStarted,
    Event,
    HeartbeatReceived,
    LeaderElected,
    MemberJoined,
    RecordsAppended,
    RecordsChanged,
    RecordsDelivered,
    SharePartitionLoaded,
    SharePartitionsInitialized,
    StateRecordWritten,
    StateWritePrepared,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.model.messages.share_state import StateBatch
from shareq.trace import Entry, Journal

GROUP, TOPIC = "payments", "flights"
ORIGIN_MS = 1_767_225_600_000
EVENTS_PER_S = 1_000
PARTITIONS, MEMBERS = 2, 4
BATCH, BEHIND = 20, 30
"""Records of a batch; a batch is acknowledged when this number of later ones has been acquired."""
LOCK_MS = 30_000


@cache
def long_entries(events: int) -> list[Entry]:
    """The entries of the journal. Do not change them."""
    made = islice(_history(), events)
    return [
        Entry(order, ORIGIN_MS + order * 1000 // EVENTS_PER_S, broker_id, event)
        for order, (broker_id, event) in enumerate(made)
    ]


def long_journal(events: int) -> Journal:
    """A journal that nothing has read yet."""
    return Journal.of(long_entries(events), ORIGIN_MS)


Recorded = tuple[int, Event]
"""(broker, event)."""


def _history() -> Iterator[Recorded]:
    """The events without end; the time of each follows from its place."""
    beginning = list(_beginning())
    yield from beginning
    order, partitions = len(beginning), [_Partition(number) for number in range(PARTITIONS)]
    for partition in cycle(partitions):
        for recorded in partition.next_batch(ORIGIN_MS + order * 1000 // EVENTS_PER_S):
            yield recorded
            order += 1


def _beginning() -> Iterator[Recorded]:
    for broker_id in range(PARTITIONS):
        yield broker_id, BrokerStarted(broker_id)
    yield -1, TopicCreated(TOPIC, "id", PARTITIONS)
    yield 0, SharePartitionsInitialized(GROUP, TOPIC, tuple(range(PARTITIONS)))
    for number in range(MEMBERS):
        yield 0, MemberJoined(GROUP, f"m{number}", f"clerk-{number}", (TOPIC,))
    for partition in range(PARTITIONS):
        yield partition, LeaderElected(TOPIC, partition, partition, 0)
        yield 0, StateRecordWritten(f"{GROUP}:id:{partition}", "snapshot", 0, 0, ())
        yield partition, SharePartitionLoaded(GROUP, TOPIC, partition, 0, 0, (), 1, 0, 5, 2_000, LOCK_MS)


class _Partition:
    """A share-partition, led by the broker of its number."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.where = (GROUP, TOPIC, number)
        self.batch = 0
        self.until_ms: list[int] = []

    def next_batch(self, now_ms: int) -> Iterator[Recorded]:
        """A batch is appended and acquired; an earlier one is acknowledged."""
        batch, self.batch = self.batch, self.batch + 1
        first, end, member = batch * BATCH, batch * BATCH + BATCH, batch % MEMBERS
        self.until_ms.append(now_ms + LOCK_MS)
        if batch % 200 == 0:
            yield from ((0, HeartbeatReceived(GROUP, f"m{number}", 1, 0)) for number in range(MEMBERS))
        yield self.number, RecordsAppended(TOPIC, self.number, first, end)
        yield self.number, RecordsChanged(*self.where, "acquire", first, end, 1, 1, f"m{member}", now_ms + LOCK_MS)
        yield self.number, WindowMoved(*self.where, max(batch - BEHIND, 0) * BATCH, end)
        yield -1, RecordsDelivered(GROUP, f"m{member}", f"clerk-{member}", TOPIC, self.number, first, end, BATCH, 1)
        if batch >= BEHIND:
            yield from self._acknowledge(batch - BEHIND, end, now_ms)

    def _acknowledge(self, batch: int, window_end: int, now_ms: int) -> Iterator[Recorded]:
        """A batch is accepted, but for one record; in every fiftieth, the lock has run out before."""
        where, broker_id, first, end = self.where, self.number, batch * BATCH, batch * BATCH + BATCH
        member, count, until_ms = batch % MEMBERS, 1, self.until_ms[batch]
        if batch % 50 == 0:
            yield broker_id, RecordsChanged(*where, "lock_timeout", first, end, 0, 1)
            member, count, until_ms = (batch + 1) % MEMBERS, 2, now_ms + LOCK_MS
            yield broker_id, RecordsChanged(*where, "acquire", first, end, 1, 2, f"m{member}", until_ms)
        runs = ((first, end - 5, 2, "accept"), (end - 5, end - 4, 4, "reject"), (end - 4, end, 2, "accept"))
        for f, e, state, why in runs:
            held = (*where, "prepared", f, e, 1, count, f"m{member}", until_ms)
            yield broker_id, RecordsChanged(*held, batch, state, why)
        batches = tuple(StateBatch(f, e - 1, state, count) for f, e, state, _ in runs)
        yield broker_id, StateWritePrepared(*where, batch, first, BATCH, batches)
        kind = "snapshot" if batch and batch % 500 == 0 else "update"
        yield 0, StateRecordWritten(f"{GROUP}:id:{self.number}", kind, batch // 500, first, batches)
        yield broker_id, StateWriteSettled(*where, batch, 0)
        for f, e, state, why in runs:
            settled = (*where, "settled", f, e, state, count)
            yield broker_id, RecordsChanged(*settled, None, None, None, None, why)
        yield broker_id, WindowMoved(*where, end, window_end)
