"""The outcomes of acquisitions: one walk along the offsets of each leadership and delivery count.

Within a leadership a record has each delivery count at most once. So the runs of acquisitions are disjoint, and those
of their ends are, too.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from shareq.spark.pipeline.one_pass.events import Event, Events
from shareq.spark.pipeline.one_pass.leaderships import Leadership, Leaderships
from shareq.spark.pipeline.tables import DURABLE, ENDED, GONE

_KINDS = {"renew": "renewed", **dict.fromkeys(GONE, "gone"), **dict.fromkeys(ENDED, "ended")}


class Attempt(NamedTuple):
    """A row of the table `attempts`."""

    group_id: str
    topic: str
    partition: int
    load: int
    order: int
    leader: int
    first: int
    end: int
    records: int
    delivery_count: int
    member_id: str
    appended_ms: int | None
    acquired_ms: int
    renewals: int
    ended_ms: int | None
    outcome: str
    state: str | None


def attempts(events: Events, leaderships: Leaderships, appended: dict[tuple[str, int], list[Event]]) -> list[Attempt]:
    """All attempts of a journal. `appended`: its appends by topic and partition."""
    logs = _Logs(appended)
    changes: dict[tuple[Leadership, int], _Changes] = {}
    for event in events.of("RecordsChanged"):
        kind = "begun" if event.cause == "acquire" and event.state == "acquired" else _KINDS.get(event.cause)
        if kind and (leadership := leaderships.of(event)):
            found = changes.setdefault((leadership, event.delivery_count), _Changes(leadership))
            found.by_kind[kind].append(event)
    return [attempt for found in changes.values() for attempt in found.pieces(logs)]


class _Logs:
    """The appends to the logs of a journal."""

    def __init__(self, appended: dict[tuple[str, int], list[Event]]) -> None:
        self._appended = appended
        self._known: dict[tuple[Any, ...], tuple[list[Event], list[int]]] = {}

    def between(self, leadership: Leadership, low: int, high: int) -> list[Event]:
        """The appends of offsets in [low, high) to the log of a leadership: a topic created again has another one."""
        _, topic, partition = leadership.key
        log = topic, partition, leadership.topic_made
        if log not in self._known:
            mine = [event for event in self._appended[topic, partition] if leadership.has_topic(event.order)]
            mine.sort(key=attrgetter("first", "order"))
            self._known[log] = mine, list(accumulate((event.end for event in mine), max))
        events, ends = self._known[log]
        return events[bisect_right(ends, low) : bisect_left(events, high, key=attrgetter("first"))]


class _Changes:
    """The changes of records with one delivery count, in one leadership."""

    def __init__(self, leadership: Leadership) -> None:
        self.leadership = leadership
        self.by_kind: dict[str, list[Event]] = defaultdict(list)

    def pieces(self, logs: _Logs) -> Iterator[Attempt]:
        """The attempts, cut where anything changes."""
        if not (begun := self.by_kind["begun"]):
            return
        low, high = min(event.first for event in begun), max(event.end for event in begun)
        self.by_kind["appended"] = logs.between(self.leadership, low, high)
        starts = [(event.first, kind, event) for kind, events in self.by_kind.items() for event in events]
        starts.sort(key=lambda start: start[0])
        cuts = {offset for first, _, event in starts for offset in (first, event.end)}
        if self.leadership.reached is not None:
            cuts.add(self.leadership.reached)
        current: dict[str, Event] = {}
        renewed, place, ordered = list[int](), 0, sorted(cuts)
        for first, end in pairwise(ordered):
            while place < len(starts) and starts[place][0] <= first:
                _, kind, event = starts[place]
                current[kind] = event
                if kind == "renewed":
                    renewed.append(event.end)
                place += 1
            renewed = [until for until in renewed if until > first]
            if (now := current.get("begun")) and now.end > first:
                yield self._attempt(first, end, now, current, len(renewed))

    def _attempt(self, first: int, end: int, begun: Event, current: dict[str, Event], renewals: int) -> Attempt:
        leadership = self.leadership

        def at_first(kind: str) -> Event | None:
            event = current.get(kind)
            return event if event and event.end > first else None

        ended, appended = at_first("ended") or at_first("gone"), at_first("appended")
        passed = leadership.reached is not None and leadership.reached > first
        if ended:
            outcome = ended.why if ended.cause in DURABLE else ended.cause
        else:
            outcome = "passed" if passed else "held" if leadership.ended is None else "lost"
        ended_ms = ended.time_ms if ended else None if passed else leadership.until_ms
        return Attempt(
            *leadership.key, leadership.load, begun.order, begun.broker, first, end, end - first, begun.delivery_count,
            begun.member_id, appended and appended.time_ms, begun.time_ms, renewals, ended_ms, outcome,
            ended and ended.state,
        )  # fmt: skip
