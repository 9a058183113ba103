"""The leaderships of share-partitions, and the times before the first ones in a journal."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shareq.spark.pipeline.one_pass.events import Event, Events, grouped

FOREVER: Final = 2**63 - 1

Key = tuple[str, str, int]
"""(group_id, topic, partition)."""


@dataclass(slots=True, eq=False)
class Leadership:
    """The orders [load, until) of one leadership; `load` is -1 before the first one in a journal, whose `leader` is
    unknown. `reached`: the highest SPSO."""

    key: Key
    load: int
    until: int
    leader: int | None
    until_ms: int | None
    ended: str | None
    topic_made: int | None
    next_made: int | None
    reached: int | None = None

    def has_topic(self, order: int) -> bool:
        """True if the topic existed then, and was the same one."""
        return self.since_topic < order < (FOREVER if self.next_made is None else self.next_made)

    @property
    def since_topic(self) -> int:
        """The order of the topic's creation; -1 if that precedes the journal."""
        return -1 if self.topic_made is None else self.topic_made


class Leaderships:
    """`rows`: those of the table `leaderships`."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._made = grouped(events.of("TopicCreated"), lambda event: event.topic)
        self.rows: list[tuple[Any, ...]] = []
        self._by_key: dict[Key, list[Leadership]] = {}
        loads = grouped(events.of("SharePartitionLoaded"), _key)
        for key, since in self._begun_before(loads).items():
            until = loads[key][0].order if key in loads else FOREVER
            self._by_key[key] = [Leadership(key, -1, until, None, None, None, *self._topic(key[1], since))]
        self._lead(loads)
        self._loads = {key: [leadership.load for leadership in found] for key, found in self._by_key.items()}
        for event in events.of("SharePartitionLoaded", "WindowMoved"):
            if leadership := self.of(event):
                leadership.reached = event.spso if leadership.reached is None else max(leadership.reached, event.spso)

    def of(self, event: Event) -> Leadership | None:
        """The leadership of an event, if its leader at that time has recorded it."""
        key = (event.group_id, event.topic, event.partition)
        place = bisect_right(self._loads.get(key, ()), event.order) - 1
        if place < 0:
            return None
        leadership = self._by_key[key][place]
        return leadership if leadership.leader is None or leadership.leader == event.broker else None

    def of_group(self, group_id: str) -> list[Leadership]:
        """All of a group."""
        return [leadership for key, found in self._by_key.items() if key[0] == group_id for leadership in found]

    def _begun_before(self, loads: dict[Key, list[Event]]) -> dict[Key, int]:
        """The order of the first change of each share-partition that no load in the journal precedes."""
        since: dict[Key, int] = {}
        for event in self._events.of("RecordsChanged", "WindowMoved"):
            since.setdefault((event.group_id, event.topic, event.partition), event.order)
        return {key: order for key, order in since.items() if key not in loads or order < loads[key][0].order}

    def _lead(self, loads: dict[Key, list[Event]]) -> None:
        stopped = grouped(self._events.of("BrokerStopped"), lambda event: event.broker_id)
        dropped = grouped(self._events.of("SharePartitionDropped"), lambda event: (*_key(event), event.broker))
        for key, mine in loads.items():
            for load, following in zip(mine, [*mine[1:], None], strict=True):
                ends = [
                    (event.order, event.time_ms, name)
                    for name, event in (
                        ("dropped", _after(dropped.get((*key, load.broker), ()), load.order)),
                        ("stopped", _after(stopped.get(load.broker, ()), load.order)),
                        ("superseded", following),
                    )
                    if event
                ]
                _, until_ms, ended = min(ends, default=(None, None, None))
                next_load = following.order if following else None
                topic = self._topic(load.topic, load.order)
                until = next_load or FOREVER
                leadership = Leadership(key, load.order, until, load.broker, until_ms, ended, *topic)
                self._by_key.setdefault(key, []).append(leadership)
                self.rows.append((
                    *key, load.order, next_load, load.broker, load.time_ms, until_ms, ended, load.spso,
                    load.window_end, load.max_record_locks, load.delivery_count_limit, load.lock_duration_ms,
                    load.state_epoch, load.leader_epoch, *topic,
                ))  # fmt: skip

    def _topic(self, topic: str, order: int) -> tuple[int | None, int | None]:
        """The orders of the creation of the topic that exists then, and of the next one with its name."""
        made = [event.order for event in self._made[topic]]
        place = bisect_left(made, order)
        return made[place - 1] if place else None, made[place] if place < len(made) else None


def _key(event: Event) -> Key:
    return event.group_id, event.topic, event.partition


def _after(events: Sequence[Event], order: int) -> Event | None:
    """The first of the events after an order."""
    place = bisect_right(events, order, key=lambda event: event.order)
    return events[place] if place < len(events) else None
