"""A leader that loads a share-partition again: what the former leader had only in memory, and what was reloaded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from shareq.model.events import BrokerStopped, SharePartitionDropped, SharePartitionLoaded
from shareq.model.states import RecordState
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.runs import RecordStatus, Runs, StatusRun
from shareq.trace.journal import Entry

SEARCHED: Final = 1_000
"""The entries before a load in which its reason is looked for."""

Aligned = tuple[int, int, RecordStatus, RecordStatus | None]
"""(first, end, status on one side, status on the other); None: no run there."""


def aligned(one: Iterable[StatusRun], other: Runs) -> Iterator[Aligned]:
    """The runs of `one`, cut where the runs of `other` begin and end."""
    for first, end, status in one:
        position = first
        for f, e, beside in other.overlap(first, end):
            if position < f:
                yield position, f, status, None
            yield f, e, status, beside
            position = e
        if position < end:
            yield position, end, status, None


class LostLock(NamedTuple):
    """A member held [first, end); no leader knows of it any more."""

    member_id: str
    first: int
    end: int


class LostAttempts(NamedTuple):
    """The delivery count of [first, end) went back, because `before` was never written."""

    first: int
    end: int
    before: int
    after: int


class Losses(NamedTuple):
    """What the former leader had only in memory. `undone`: (first, end, state) of records that were final in memory.
    `survived`: records that were held, and whose state write turned out to be durable."""

    locks: tuple[LostLock, ...]
    attempts: tuple[LostAttempts, ...]
    undone: tuple[tuple[int, int, str], ...]
    survived: int


class Reload(NamedTuple):
    """A load after an earlier one. `reason`: why the former leader lost the share-partition; "" if it is not recorded.

    `lost`: None if the state was initialized again in between, then nothing can be compared. `loaded`: state -> number
    of reloaded records.
    """

    order: int
    time_ms: int
    broker_id: int
    from_broker: int
    reason: str
    leader_epoch: int
    spso: int
    lost: Losses | None
    loaded: dict[str, int]


def last_reload(timeline: PartitionTimeline, until: int) -> Reload | None:
    """The last load before `until` that followed an earlier one; None if there is none."""
    loads = timeline.loads
    count = bisect_left(loads, until, key=lambda entry: entry.order)
    if count < 2:
        return None
    former, entry = loads[count - 2 : count]
    event = entry.event
    assert isinstance(event, SharePartitionLoaded)
    position = timeline.count(entry.order)
    before = timeline.state(position).copy()
    after = timeline.state(position + 1)
    loaded: dict[str, int] = {}
    for first, end, status in after.runs:
        loaded[status.name] = loaded.get(status.name, 0) + end - first
    reset = before.state_epoch != event.state_epoch
    kept = before.runs.overlap(event.spso, max(before.runs.end, event.spso))
    return Reload(
        entry.order,
        entry.time_ms,
        entry.broker_id,
        former.broker_id,
        _reason(timeline, position, former),
        event.leader_epoch,
        event.spso,
        None if reset else _losses(kept, after.runs),
        loaded,
    )


def why_not_loaded(timeline: PartitionTimeline, until: int) -> str:
    """Why the last leader before `until` no longer has the share-partition in memory; "" if none had it, or if the
    reason is not recorded."""
    loads = timeline.loads
    count = bisect_left(loads, until, key=lambda entry: entry.order)
    return _reason(timeline, timeline.count(until), loads[count - 1]) if count else ""


def _losses(before: Iterable[StatusRun], after: Runs) -> Losses:
    """A durable AVAILABLE run was returned after its delivery count, so a lock of the same count had been given up."""
    locks: list[LostLock] = []
    attempts: list[LostAttempts] = []
    undone: list[tuple[int, int, str]] = []
    survived = 0
    for first, end, old, new in aligned(before, after):
        count = 0 if new is None else new.delivery_count
        held = old.state is RecordState.ACQUIRED
        if (new is not None and new.state.terminal) or (held and count >= old.delivery_count):
            survived += held * (end - first)
            continue
        if held and old.member_id is not None:
            _add(locks, LostLock(old.member_id, first, end))
        if old.state.terminal:
            undone.append((first, end, old.name))
        if count < old.delivery_count:
            _add(attempts, LostAttempts(first, end, old.delivery_count, count))
    return Losses(tuple(locks), tuple(attempts), tuple(undone), survived)


R = TypeVar("R", LostLock, LostAttempts)


def _add(ranges: list[R], new: R) -> None:
    """Append a range; join it with its neighbour if they differ in their bounds only."""
    last = ranges[-1] if ranges else None
    if last is not None and last.end == new.first and last._replace(first=new.first, end=new.end) == new:
        ranges[-1] = last._replace(end=new.end)
    else:
        ranges.append(new)


def _reason(timeline: PartitionTimeline, position: int, former: Entry) -> str:
    """Why the former leader no longer had the share-partition."""
    for entry in reversed(timeline.entries[max(position - SEARCHED, 0) : position]):
        event = entry.event
        if entry.order <= former.order:
            break
        if isinstance(event, BrokerStopped) and event.broker_id == former.broker_id:
            return f"broker {event.broker_id} {'was killed' if event.killed else 'stopped'}"
        if isinstance(event, SharePartitionDropped) and entry.broker_id == former.broker_id:
            return event.reason
    return ""
