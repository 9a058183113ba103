"""Ledger of a topic in a group: for every record its final state, and how often it was delivered and completed.

The ledger is exact, and derived from the journal alone. That of a tap is in `tapped_ledger`; the following is about
brokers of shareq. When a leader is lost, so are its changes that are not durable:
the state that the next leader loads is the true one, and all records below its SPSO are complete. A write that
succeeded without a settled event of the lost leader is part of that loaded state, and is counted then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shareq.extras import require
from shareq.model.errors import ConfigException
from shareq.model.events import (
    DeliveriesUnseen,
    DurableStateRead,
    ExpiredRecordsSkipped,
    MembersBypass,
    RecordsAppended,
    RecordsChanged,
    RecordsHeld,
    SharePartitionDropped,
    SharePartitionLoaded,
    StateWriteSettled,
    TopicCreated,
    WindowMoved,
)
from shareq.model.states import PREPARED, RecordState
from shareq.trace.analysis.groups import groups_of
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.analysis.tally import is_delivery
from shareq.trace.analysis.tapped_ledger import NEVER, UNFINISHED, UNKNOWN, TappedLedger
from shareq.trace.journal import Entry, Journal, journal_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AVAILABLE, _ACQUIRED = int(RecordState.AVAILABLE), int(RecordState.ACQUIRED)
_ACKNOWLEDGED, _ARCHIVED = int(RecordState.ACKNOWLEDGED), int(RecordState.ARCHIVED)
_ARCHIVING = int(RecordState.ARCHIVING)

Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLedger:
    """One partition. The arrays have an item for each offset in [base, base + records).

    `state`: the final RecordState, NEVER, or UNKNOWN. `delivery_count`: the last one that a leader recorded.
    `deliveries`: number of acquisitions; `times_accepted`, `times_archived`: how often the record became ACKNOWLEDGED,
    ARCHIVED.
    """

    partition: int
    base: int
    spso: int
    state: NDArray[Any]
    delivery_count: NDArray[Any]
    deliveries: NDArray[Any]
    times_accepted: NDArray[Any]
    times_archived: NDArray[Any]

    @property
    def records(self) -> int:
        """Number of appended offsets."""
        return len(self.state)

    @property
    def accepted(self) -> int:
        return int((self.state == _ACKNOWLEDGED).sum())

    @property
    def archived(self) -> int:
        """Records archived by a leader, passed as too old, or delivered and then passed by the SPSO when the log start
        moved."""
        return int((self.state == _ARCHIVED).sum())

    @property
    def in_flight(self) -> int:
        """Records that were delivered at least once and are not complete: available again, acquired, or archiving."""
        held = (self.state == _ACQUIRED) | (self.state == _ARCHIVING)
        return int((held | ((self.state == _AVAILABLE) & (self.deliveries > 0))).sum())

    @property
    def never_delivered(self) -> int:
        """Records at or above the SPSO that were never acquired."""
        finished = self.accepted + self.archived + self.passed_over + self.unknown
        return self.records - finished - self.in_flight

    @property
    def passed_over(self) -> int:
        """Offsets below the SPSO that were never acquired: below the group's start, lost from the log, or gaps."""
        below = min(max(self.spso - self.base, 0), self.records)
        return int((self.state[:below] == NEVER).sum())

    @property
    def unknown(self) -> int:
        """Finished records of a tapped group of which is not known if they were accepted or archived."""
        return int((self.state == UNKNOWN).sum())

    @property
    def accepted_twice(self) -> int:
        return int((self.times_accepted > 1).sum())

    @property
    def attempts(self) -> dict[int, int]:
        """Delivery count -> number of delivered records with that count."""
        import numpy as np

        counts = np.bincount(self.delivery_count[self.deliveries > 0])
        return {count: int(n) for count, n in enumerate(counts) if n}


class TopicLedger(Mapping[int, PartitionLedger]):
    """Ledgers of a topic by partition; the sums over all partitions are attributes.

    Always: accepted + archived + in_flight + never_delivered + passed_over + unknown == records. `unknown` is 0 but for
    a tap, and is shown only then.
    """

    FIGURES = ("records", "accepted", "archived", "in_flight", "never_delivered", "passed_over", "accepted_twice")
    SUMS = (*FIGURES, "unknown")

    records: int
    accepted: int
    archived: int
    in_flight: int
    never_delivered: int
    passed_over: int
    accepted_twice: int
    unknown: int

    def __init__(self, group: str, topic: str, partitions: Iterable[PartitionLedger]) -> None:
        self.group, self.topic = group, topic
        self._partitions = {p.partition: p for p in partitions}
        for figure in self.SUMS:
            setattr(self, figure, sum(getattr(p, figure) for p in self._partitions.values()))
        self.attempts: dict[int, int] = {}
        """Delivery count -> number of delivered records with that count."""
        for partition in self._partitions.values():
            for count, records in partition.attempts.items():
                self.attempts[count] = self.attempts.get(count, 0) + records
        self.attempts = dict(sorted(self.attempts.items()))

    def __getitem__(self, partition: int) -> PartitionLedger:
        return self._partitions[partition]

    def __iter__(self) -> Any:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def shown(self) -> tuple[str, ...]:
        """The names of the figures to show."""
        return self.SUMS if self.unknown else self.FIGURES

    def __repr__(self) -> str:
        figures = ", ".join(f"{f.replace('_', ' ')} {getattr(self, f):,}" for f in self.shown)
        return f"<Ledger {self.group} on {self.topic}: {figures}>"

    def to_frame(self) -> Any:
        """One row for each record, as a pandas DataFrame. The state of a record is missing if it is unknown."""
        require("lab", "pandas")
        import numpy as np
        import pandas as pd

        names = np.array(["never", *(state.name.lower() for state in RecordState)])
        parts = [
            pd.DataFrame(
                {
                    "partition": p.partition,
                    "offset": np.arange(p.base, p.base + p.records),
                    "state": pd.Categorical.from_codes(p.state + 1, categories=names),
                    "delivery_count": p.delivery_count,
                    "deliveries": p.deliveries,
                    "times_accepted": p.times_accepted,
                    "times_archived": p.times_archived,
                }
            )
            for p in self._partitions.values()
        ]
        return pd.concat(parts, ignore_index=True)


def partition_ledgers(source: Any, group: str, topic: str) -> list[PartitionLedger]:
    """The ledger of each partition of a topic in a group. `source`: a `Journal`, or an object that has one as
    `.journal`.

    Needs numpy, and the whole journal: ConfigException if a bounded journal has dropped entries, has no such topic or
    group, or is that of an observer that does not see all deliveries.
    """
    require("lab", "numpy")
    journal = journal_of(source)
    if journal.dropped:
        raise ConfigException(f"journal={journal!r}: must be complete, but entries were dropped")
    partitions = partitions_of(journal, topic)
    if not partitions:
        raise ConfigException(f"topic={topic!r}: must have entries in the journal")
    if group not in (known := groups_of(journal)):
        has = f"it has {', '.join(map(repr, known[:10]))}" if known else "it has none"
        raise ConfigException(f"group={group!r}: the journal has no such group, {has}")
    if journal.select(DurableStateRead, RecordsHeld, group=group, topic=topic):
        _check_complete(journal, group)
        return [_tapped(journal, group, topic, p) for p in partitions]
    return [_LedgerBuilder(journal, group, topic, p).build() for p in partitions]


def _check_complete(journal: Journal, group: str) -> None:
    """A tap sees all deliveries if all members are connected through it; an observer without a tap does not."""
    found = [entry.event for entry in journal.select(MembersBypass, group=group)]
    if not found:
        raise ConfigException(f"journal={journal!r}: must be a cluster's, not an observer's, which is incomplete")
    bypass = sorted({member for event in found if isinstance(event, MembersBypass) for member in event.member_ids})
    if bypass:
        raise ConfigException(
            f"journal={journal!r}: must have all deliveries, but members of {group!r} were not connected through the "
            f"tap: {', '.join(bypass)}"
        )


def _tapped(journal: Journal, group: str, topic: str, partition: int) -> PartitionLedger:
    timeline = PartitionTimeline(journal, group, topic, partition)
    entries = timeline.refresh()
    mine = _since_created(entries)
    begun = mine[0].order if mine else 0
    found = journal.select(DeliveriesUnseen, group=group, topic=topic, partition=partition)
    unseen = [e.event for e in found if e.order >= begun and isinstance(e.event, DeliveriesUnseen)]
    made, spso = TappedLedger(mine, unseen), timeline.state(len(entries)).spso
    made.finish(spso)
    return PartitionLedger(
        partition,
        made.base,
        spso,
        made.state,
        made.delivery_count,
        made.deliveries,
        made.times_accepted,
        made.times_archived,
    )


def _since_created(entries: list[Entry]) -> list[Entry]:
    """A topic created again is another topic."""
    created = [i for i, entry in enumerate(entries) if isinstance(entry.event, TopicCreated)]
    return entries[created[-1] :] if created else entries


def partitions_of(journal: Journal, topic: str) -> list[int]:
    """The partitions of a topic that have entries in the journal."""
    return sorted({s.partition for s in journal.subjects() if s.topic == topic and s.partition is not None})


class _LedgerBuilder:
    """Builds the ledger of one partition. Ranges are indices into the arrays, half-open."""

    def __init__(self, journal: Journal, group: str, topic: str, partition: int) -> None:
        import numpy as np

        self._entries = _since_created(PartitionTimeline(journal, group, topic, partition).refresh())
        self._partition = partition
        events = [entry.event for entry in self._entries]
        ranged = RecordsAppended, RecordsChanged, ExpiredRecordsSkipped
        ranges = [(e.first, e.end) for e in events if isinstance(e, ranged)]
        self.base = min((first for first, _ in ranges), default=0)
        size = max((end for _, end in ranges), default=0) - self.base
        self.state = np.full(size, NEVER, np.int8)
        self.delivery_count = np.zeros(size, np.int16)
        self.times_accepted = np.zeros(size, np.int32)
        self.times_archived = np.zeros(size, np.int32)
        self.acquired: Ranges = []
        self.accepted: Ranges = []
        self.archived: Ranges = []
        self.unsettled: dict[int, list[tuple[int, int, int]]] = {}
        """Write id -> (first, end, target state) of writes in progress and failed ones: both may be durable."""
        self.spso, self.loaded_by = 0, -1

    def build(self) -> PartitionLedger:
        """Process all entries and return the ledger."""
        import numpy as np

        for entry in self._entries:
            event = entry.event
            if isinstance(event, RecordsChanged):
                if entry.broker_id == self.loaded_by:
                    self._change(event)
            elif isinstance(event, ExpiredRecordsSkipped):
                if entry.broker_id == self.loaded_by:
                    self._skip(event.first - self.base, event.end - self.base)
            elif isinstance(event, (SharePartitionLoaded, SharePartitionDropped, StateWriteSettled, WindowMoved)):
                self._change_leadership(entry, event)
        below = self.state[: max(self.spso - self.base, 0)]
        below[np.isin(below, UNFINISHED)] = _ARCHIVED  # KIP-932: records below the SPSO are archived
        return PartitionLedger(
            self._partition,
            self.base,
            self.spso,
            self.state,
            self.delivery_count,
            self._times(self.acquired),
            self.times_accepted + self._times(self.accepted),
            self.times_archived + self._times(self.archived),
        )

    def _change(self, event: RecordsChanged) -> None:
        first, end = event.first - self.base, event.end - self.base
        if event.cause == PREPARED:
            if event.to_state in (_ACKNOWLEDGED, _ARCHIVED):
                self.unsettled.setdefault(event.write_id or 0, []).append((first, end, event.to_state))
            return
        self.state[first:end] = event.state
        self.delivery_count[first:end] = event.delivery_count
        if event.state == _ACKNOWLEDGED:
            self.accepted.append((first, end))
        elif event.state == _ARCHIVED:
            self.archived.append((first, end))
        elif is_delivery(event):
            self.acquired.append((first, end))

    def _skip(self, first: int, end: int) -> None:
        self.state[first:end] = _ARCHIVED
        self.archived.append((first, end))

    def _change_leadership(
        self,
        entry: Entry,
        event: SharePartitionLoaded | SharePartitionDropped | StateWriteSettled | WindowMoved,
    ) -> None:
        if isinstance(event, SharePartitionLoaded):
            self._load(event)
            self.loaded_by = entry.broker_id
        elif entry.broker_id == self.loaded_by:
            if isinstance(event, WindowMoved):
                self.spso = event.spso
            elif isinstance(event, SharePartitionDropped):
                self.loaded_by = -1
            elif not event.error:
                self.unsettled.pop(event.write_id, None)

    def _load(self, event: SharePartitionLoaded) -> None:
        """Replace the state by the durable state. A record below the new SPSO is complete: of its unsettled writes, the
        latest one has succeeded.
        """
        import numpy as np

        size, below = len(self.state), max(event.spso - self.base, 0)
        for first, end, to_state in [change for _, changes in sorted(self.unsettled.items()) for change in changes][
            ::-1
        ]:
            end = max(min(end, below), first)
            state = self.state[first:end]
            self._become(first, end, to_state, np.isin(state, UNFINISHED))
        loaded = np.full(size, NEVER, np.int8)
        for run in event.runs:
            loaded[max(run.first - self.base, 0) : run.end - self.base] = run.state
        lost = (loaded == NEVER) & (self.state != NEVER)
        lost[:below] = False
        self.state[lost] = np.where(self.delivery_count[lost] > 0, _AVAILABLE, NEVER)
        for run in event.runs:
            first, end = max(run.first - self.base, 0), run.end - self.base
            self._become(first, end, run.state, self.state[first:end] != run.state)
            self.delivery_count[first:end] = run.delivery_count
        self.unsettled, self.spso = {}, event.spso

    def _become(self, first: int, end: int, state: int, which: NDArray[Any]) -> None:
        """Set the state of the records `which` of [first, end), and count them."""
        if state == _ACKNOWLEDGED:
            self.times_accepted[first:end] += which
        elif state == _ARCHIVED:
            self.times_archived[first:end] += which
        self.state[first:end][which] = state

    def _times(self, ranges: Ranges) -> NDArray[Any]:
        """For each offset, the number of ranges that contain it."""
        import numpy as np

        edges = np.zeros(len(self.state) + 1, np.int32)
        if ranges:
            firsts, ends = np.array(ranges).T
            np.add.at(edges, firsts, 1)
            np.add.at(edges, ends, -1)
        return np.cumsum(edges[:-1], dtype=np.int32)
