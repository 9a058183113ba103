"""What a view shows at one moment, as JSON values: the data of the widgets' traits.

`js/types.d.ts` of the widgets has the part of them that a page reads.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Run = list[Any]
"""[first, end, state, delivery count, member id, deadline (ms), write id, target state]: half-open; None is what a
record does not have. A run below the SPSO ends after the count."""


class Event(TypedDict):
    """`first` and `end`: the offsets that it changes, 0 for none."""

    order: int
    time_ms: int
    cause: str
    first: int
    end: int
    member: str | None
    text: str


class Step(TypedDict):
    """The events from `first` on, which have one cause."""

    first: int
    text: str


class Mark(TypedDict):
    """An event that a timeline marks; a lower `rank` is more important."""

    order: int
    time_ms: int
    kind: str
    rank: int
    text: str


class Snapshot(TypedDict):
    """A group after `order` of `total` events. `step`: None inside a step."""

    group: str
    now_ms: int
    origin_ms: int
    order: int
    total: int
    event: Event | None
    step: Step | None
    marks: list[Mark]


class Member(TypedDict):
    """A member that is in the group or holds records. `deadline_ms`: the first end of its locks. `alive`: it is in the
    group, and its program runs, as far as the journal has its crash. `frozen`: its program is stopped by a fault."""

    id: str
    name: str
    letter: str
    colour: str
    held: int
    deadline_ms: int | None
    alive: bool
    frozen: bool


class Write(TypedDict):
    """A state write under way, with the records and states that it writes."""

    id: int
    since_ms: int
    text: str


class Kept(TypedDict):
    """Since when cleaning by groups keeps the log, and for which group."""

    since_ms: int
    needed_by: str | None
    reason: str


class StripContent(TypedDict):
    """A share-partition. `observed`: an observer that does not see the deliveries of all members, so `window_end` is an
    upper bound; `tapped`: one that does. `disturbed`: why an observer has no new data, or empty. `waits`: what it waits
    for, a value of `Wait`; None if the journal does not show it."""

    group: str
    version: int
    topic: str
    partition: int
    leader: int
    loaded: bool
    observed: bool
    tapped: bool
    disturbed: str
    spso: int
    window_end: int
    log_start: int
    log_end: int
    delivery_count_limit: int
    max_record_locks: int
    lock_duration_ms: int
    in_flight: int | None
    lag: int | None
    runs: list[Run]
    past: list[Run]
    members: list[Member]
    writes: list[Write]
    waits: str | None
    text: str
    log_kept: NotRequired[Kept]


class StripSnapshot(StripContent, Snapshot):
    """A share-partition after `order` of the events that concern it."""
