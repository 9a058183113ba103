"""Seeded scenarios of dead-letter queues: what a member does with a record depends on its offset and delivery count
alone, so that the fate of each record is known, however a broker divides its deliveries: its letter, and its durable
states one after the other.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from shareq.coordinator.share_state.records import StateSnapshot, StateUpdate, decode_state_record
from shareq.model.ids import SHARE_STATE_TOPIC
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from tests.pairings.dead_letters import ACCEPT, COPY, REJECT, REJECTED, RELEASE, TOO_OFTEN, Letter, Stage
from tests.polling import PATIENCE_S

HOLD = 0
"""The member leaves without an acknowledgement: its session releases the record."""
LIMITS = (2, 3, 5)


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
        """The durable states of each offset, one after the other: (state, delivery count)."""
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
    actions = {place: rng.choices((ACCEPT, REJECT, RELEASE, HOLD), (3, 3, 5, 1))[0] for place in places}
    return Plan(limit, rng.random() < 0.5, batches, actions)


def run(stage: Stage, scenario: Plan) -> list[Letter]:
    """Play the scenario until each record has met its fate; the letters in the order of the queue."""
    stage.create(group={"share.delivery.count.limit": scenario.limit, **(COPY if scenario.copy else {})})
    offset = 0
    for size in scenario.batches:
        stage.write(*(f"v{number}" for number in range(offset, offset + size)))
        offset += size
    open_records = set(range(scenario.records))
    while open_records:
        actions = {place: scenario.actions[place] for place in stage.take(1)}
        stage.acknowledge_each({record: action for (record, _), action in actions.items() if action != HOLD})
        if HOLD in actions.values():
            stage.leave()
        open_records -= {
            record
            for (record, count), action in actions.items()
            if action in (ACCEPT, REJECT) or count == scenario.limit
        }
    stage.until_lag(0)
    return stage.letters()


def differences(scenario: Plan, letters: list[Letter], ways: Mapping[int, list[tuple[int, int]]]) -> list[str]:
    """What differs from what follows from a scenario, in words."""
    planned = scenario.ways()
    return [f"missing {letter}" for letter in scenario.letters() if letter not in letters] + [
        *[f"unexpected {letter}" for letter in letters if letter not in scenario.letters()],
        *[f"{len(letters)} letters" for _ in range(len(letters) != len(scenario.letters()))],
        *[f"offset {at}: {way}, planned {planned.get(at)}" for at, way in ways.items() if way != planned.get(at)],
        *[f"offset {at}: no state" for at in planned.keys() - ways.keys()],
    ]


def durable_ways(address: str) -> dict[str, dict[int, list[tuple[int, int]]]]:
    """By group, the durable states that each offset of partition 0 has had, from the records of the state topic. How
    the records are cut does not matter."""
    found: dict[str, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    reader = Consumer({"bootstrap.servers": address, "group.id": "reader of states", "enable.auto.commit": False})
    try:
        partitions = reader.list_topics(SHARE_STATE_TOPIC).topics[SHARE_STATE_TOPIC].partitions
        for partition in partitions:
            start, end = reader.get_watermark_offsets(TopicPartition(SHARE_STATE_TOPIC, partition))
            reader.assign([TopicPartition(SHARE_STATE_TOPIC, partition, start)])
            for _ in range(end - start):
                (message,) = reader.consume(1, PATIENCE_S)
                record = decode_state_record(message.key() or b"", message.value())
                if isinstance(record, StateUpdate | StateSnapshot):
                    _follow(found[record.key.group_id], record.state_batches, record.start_offset)
    finally:
        reader.close()
    return found


def _follow(ways: dict[int, list[tuple[int, int]]], batches: Iterable[StateBatch], start_offset: int) -> None:
    """A snapshot has no batches below its start offset, which passes a record on its way to the queue at the end."""
    for batch in batches:
        for offset in range(batch.first_offset, batch.last_offset + 1):
            now = batch.delivery_state, batch.delivery_count
            if ways[offset][-1:] != [now]:
                ways[offset].append(now)
    for offset, way in ways.items():
        if offset < start_offset and way[-1][0] == RecordState.ARCHIVING:
            way.append((RecordState.ARCHIVED, way[-1][1]))
