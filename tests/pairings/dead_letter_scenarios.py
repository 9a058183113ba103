"""Seeded scenarios of dead-letter queues: what a member does with a record depends on its offset and delivery count
alone, so that the fate of each record is known, however a broker divides its deliveries: its letter, and its durable
states one after the other.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from shareq import Cluster
from shareq.coordinator.share_state.records import StateSnapshot, StateUpdate, decode_state_record
from shareq.log.records import decode
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.states import IsolationLevel, RecordState
from tests.pairings.dead_letters import ACCEPT, COPY, REJECT, REJECTED, RELEASE, TOO_OFTEN, DeadLetterStage, Letter
from tests.polling import PATIENCE_S

LEAVE, EXPIRE = 0, -1
"""The member leaves without an acknowledgement, and its session releases the record; or it falls silent, and the lock
runs out."""
LIMITS = (2, 3, 5)
LOCK_MS = 30_000


class Plan(NamedTuple):
    """A scenario. `batches`: the numbers of records; `actions`: by offset and delivery count."""

    limit: int
    copy: bool
    batches: tuple[int, ...]
    actions: Mapping[tuple[int, int], int]

    @property
    def records(self) -> int:
        return sum(self.batches)

    def letters(self) -> list[Letter]:
        """The letters that follow from the actions, by offset."""
        found = []
        for offset in range(self.records):
            for count in range(1, self.limit + 1):
                action = self.actions[offset, count]
                if action == ACCEPT:
                    break
                if action == REJECT or count == self.limit:
                    message = REJECTED if action == REJECT else TOO_OFTEN
                    found.append(Letter(offset, count, None, f"v{offset}".encode() if self.copy else None, message))
                    break
        return found

    def ways(self) -> dict[int, list[tuple[int, int]]]:
        """The durable states of each offset, one after the other: (state, delivery count). Kafka's rules: an
        acknowledgement is durable as it is, a release, a session's end and a lock's end make a record available below
        the limit; a rejected record and one at the limit are archiving, then archived."""
        found = {}
        for offset in range(self.records):
            way = found[offset] = list[tuple[int, int]]()
            for count in range(1, self.limit + 1):
                action = self.actions[offset, count]
                if action == ACCEPT:
                    way.append((RecordState.ACKNOWLEDGED, count))
                    break
                if action == REJECT or count == self.limit:
                    way += [(RecordState.ARCHIVING, count), (RecordState.ARCHIVED, count)]
                    break
                way.append((RecordState.AVAILABLE, count))
        return found


def plan(seed: int | str) -> Plan:
    rng = random.Random(seed)
    batches = tuple(rng.randrange(1, 7) for _ in range(rng.randrange(1, 5)))
    limit = rng.choice(LIMITS)
    places = [(offset, count) for offset in range(sum(batches)) for count in range(1, limit + 1)]
    kinds = (ACCEPT, REJECT, RELEASE, LEAVE, EXPIRE)
    actions = {place: rng.choices(kinds, (3, 3, 5, 1, 1))[0] for place in places}
    return Plan(limit, rng.random() < 0.5, batches, actions)


def run(stage: DeadLetterStage, scenario: Plan, lock_ms: int = LOCK_MS) -> list[Letter]:
    """Play the scenario until each record has met its fate; the letters in the order of the queue. `lock_ms`: the
    duration of locks; in real time, longer than a stalled machine delays an acknowledgement."""
    limits = {"share.delivery.count.limit": scenario.limit, "share.record.lock.duration.ms": lock_ms}
    stage.create(group={**limits, **(COPY if scenario.copy else {})})
    offset = 0
    for size in scenario.batches:
        stage.write(*(f"v{number}" for number in range(offset, offset + size)))
        offset += size
    open_records = set(range(scenario.records))
    while open_records:
        actions = {place: scenario.actions[place] for place in stage.take(1)}
        stage.acknowledge_each({record: action for (record, _), action in actions.items() if action > 0})
        if EXPIRE in actions.values():
            stage.fall_silent()
        elif LEAVE in actions.values():
            stage.leave()
        open_records -= {
            record
            for (record, count), action in actions.items()
            if action in (ACCEPT, REJECT) or count == scenario.limit
        }
    stage.until_lag(0)
    return stage.letters()


class Durable:
    """What the records of the state topic have of partition 0: the states that each offset has had, one after the
    other, and the offsets in the order in which they became archiving."""

    def __init__(self) -> None:
        self.ways: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.order: list[int] = []

    def add(self, record: StateUpdate | StateSnapshot) -> None:
        """How the records are cut does not matter. A snapshot has no batches below its start offset, which passes a
        record on its way to the queue at the end."""
        for batch in record.state_batches:
            now = batch.delivery_state, batch.delivery_count
            for offset in range(batch.first_offset, batch.last_offset + 1):
                if self.ways[offset][-1:] != [now]:
                    self.ways[offset].append(now)
                    self.order += [offset] * (batch.delivery_state == RecordState.ARCHIVING)
        for offset, way in self.ways.items():
            if offset < record.start_offset and way[-1][0] == RecordState.ARCHIVING:
                way.append((RecordState.ARCHIVED, way[-1][1]))


def differing_letters(scenario: Plan, letters: list[Letter]) -> list[str]:
    """How the letters differ from those that follow from a scenario, in words. Their order does not count."""
    wanted = scenario.letters()
    return [
        *[f"missing {letter}" for letter in wanted if letter not in letters],
        *[f"unexpected {letter}" for letter in letters if letter not in wanted],
        *[f"{len(letters)} letters, planned {len(wanted)}" for _ in range(len(letters) != len(wanted))],
    ]


def differing_states(scenario: Plan, durable: Durable) -> list[str]:
    """How the states of records differ from those that follow from a scenario, in words."""
    planned, ways = scenario.ways(), durable.ways
    return [
        *[f"offset {at}: {way}, planned {planned.get(at)}" for at, way in ways.items() if way != planned.get(at)],
        *[f"offset {at}: no state" for at in planned.keys() - ways.keys()],
    ]


def disorder(letters: list[Letter], durable: Durable) -> list[str]:
    """The letters and their records in words, if their orders differ. In Kafka they may."""
    offsets = [letter.offset for letter in letters]
    return [] if offsets == durable.order else [f"the order of the queue is {offsets}, that of states {durable.order}"]


def folded(records: Iterable[tuple[bytes | None, bytes | None]]) -> dict[str, Durable]:
    """By group, what the records of a state topic have: keys and values, those of a group in order."""
    found: dict[str, Durable] = defaultdict(Durable)
    for key, value in records:
        record = decode_state_record(key or b"", value)
        if isinstance(record, StateUpdate | StateSnapshot):
            found[record.key.group_id].add(record)
    return found


def state_records(address: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """The records of the state topic of a broker."""
    reader = Consumer({"bootstrap.servers": address, "group.id": "reader of states", "enable.auto.commit": False})
    try:
        partitions = reader.list_topics(SHARE_STATE_TOPIC).topics[SHARE_STATE_TOPIC].partitions
        for partition in partitions:
            start, end = reader.get_watermark_offsets(TopicPartition(SHARE_STATE_TOPIC, partition))
            reader.assign([TopicPartition(SHARE_STATE_TOPIC, partition, start)])
            for _ in range(end - start):
                (message,) = reader.consume(1, PATIENCE_S)
                yield message.key(), message.value()
    finally:
        reader.close()


def state_records_of(cluster: Cluster) -> Iterator[tuple[bytes | None, bytes | None]]:
    """The records of the state topic of a cluster in this process."""
    for partition in range(len(cluster.image.topics[SHARE_STATE_TOPIC].partitions)):
        log = cluster.log(SHARE_STATE_TOPIC, partition)
        read = log.read(log.log_start_offset, max_bytes=1 << 30, isolation=IsolationLevel.READ_UNCOMMITTED)
        for batch in read.batches:
            yield from ((record.key, record.value) for record in decode(batch))
