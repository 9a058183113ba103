"""The ledger: what became of every record, counted exactly from the journal.

Vectorised by runs: a journal of a few hundred thousand records is read in well under a second. A record that a lost
leader had made durable but could not tell of is recognised by the next leader's window, and entered as what its write
had intended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shareq.model.events import RecordsAppended, RecordsChanged, SharePartitionDropped, SharePartitionLoaded
from shareq.model.states import RecordState
from shareq.trace.journal import Entry, Journal

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEVER_SEEN = -1


class _Page:
    """One share-partition by offset; the arrays grow with the log."""

    def __init__(self) -> None:
        import numpy as np

        self.state: NDArray[Any] = np.full(0, NEVER_SEEN, np.int8)
        self.intended: NDArray[Any] = np.full(0, NEVER_SEEN, np.int8)
        self.delivery_count: NDArray[Any] = np.zeros(0, np.int16)
        self.accepted: NDArray[Any] = np.zeros(0, np.int16)
        self.end = 0

    def reach(self, end: int) -> None:
        """Make room up to `end`."""
        import numpy as np

        self.end = max(self.end, end)
        missing = self.end - len(self.state)
        if missing > 0:
            more = max(missing, len(self.state))
            self.state = np.append(self.state, np.full(more, NEVER_SEEN, np.int8))
            self.intended = np.append(self.intended, np.full(more, NEVER_SEEN, np.int8))
            self.delivery_count = np.append(self.delivery_count, np.zeros(more, np.int16))
            self.accepted = np.append(self.accepted, np.zeros(more, np.int16))

    def changed(self, event: RecordsChanged) -> None:
        self.reach(event.end)
        where = slice(event.first, event.end)
        if event.state == RecordState.ACKNOWLEDGED:
            self.accepted[where] += 1
        self.state[where] = event.state
        self.intended[where] = NEVER_SEEN if event.to_state is None else event.to_state
        self.delivery_count[where] = event.delivery_count

    def loaded(self, event: SharePartitionLoaded) -> None:
        """What is durable counts: below the window all is done, in it the runs say what is."""
        self.reach(event.speo)
        self._assume_done(0, event.spso)
        for run in event.runs:
            if run.state == RecordState.ACKNOWLEDGED:
                known = self.state[run.first : run.end] == RecordState.ACKNOWLEDGED
                self.accepted[run.first : run.end] += ~known
            self.state[run.first : run.end] = run.state
            self.delivery_count[run.first : run.end] = run.delivery_count

    def _assume_done(self, first: int, end: int) -> None:
        open_states = (RecordState.ACQUIRED, RecordState.AVAILABLE)
        state, intended = self.state[first:end], self.intended[first:end]
        unseen = ((state == open_states[0]) | (state == open_states[1])) & (intended != NEVER_SEEN)
        self.accepted[first:end] += unseen & (intended == RecordState.ACKNOWLEDGED)
        state[unseen] = intended[unseen]

    def dropped(self) -> None:
        """The leader's locks are gone; the intentions stay, in case they had become durable."""
        window = self.state[: self.end]
        window[window == RecordState.ACQUIRED] = RecordState.AVAILABLE

    def trimmed(self) -> _Page:
        for name in ("state", "intended", "delivery_count", "accepted"):
            setattr(self, name, getattr(self, name)[: self.end])
        return self


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of the records of one topic in one group.

    `state`, `delivery_count` and `times_accepted` hold an array by offset for each partition; a state of -1 is a record
    that was never delivered.
    """

    group: str
    topic: str
    state: dict[int, Any]
    delivery_count: dict[int, Any]
    times_accepted: dict[int, Any]

    def _count(self, state: int) -> int:
        return sum(int((page == state).sum()) for page in self.state.values())

    @property
    def records(self) -> int:
        return sum(len(page) for page in self.state.values())

    @property
    def accepted(self) -> int:
        return self._count(RecordState.ACKNOWLEDGED)

    @property
    def archived(self) -> int:
        return self._count(RecordState.ARCHIVED)

    @property
    def in_flight(self) -> int:
        """Delivered, but not done with."""
        return self._count(RecordState.ACQUIRED) + self._count(RecordState.AVAILABLE)

    @property
    def never_delivered(self) -> int:
        return self._count(NEVER_SEEN)

    @property
    def unfinished(self) -> int:
        """What still has to be done: delivered or not."""
        return self.in_flight + self.never_delivered

    @property
    def accepted_twice(self) -> int:
        return sum(int((page > 1).sum()) for page in self.times_accepted.values())

    @property
    def attempts(self) -> dict[int, int]:
        """How many records took 1, 2, 3, ... deliveries."""
        counts: Counter[int] = Counter()
        for page in self.delivery_count.values():
            counts.update(page[page > 0].tolist())
        return dict(sorted(counts.items()))

    def _rows(self) -> list[tuple[str, int]]:
        return [
            ("records", self.records),
            ("accepted", self.accepted),
            ("archived", self.archived),
            ("in flight", self.in_flight),
            ("never delivered", self.never_delivered),
            ("accepted twice", self.accepted_twice),
        ]

    def __repr__(self) -> str:
        width = max(len(f"{value:,}") for _, value in self._rows())
        lines = [f"  {name:<16}{value:>{width},}" for name, value in self._rows()]
        return "\n".join([f"Ledger of {self.group} on {self.topic}", *lines])


def ledger(source: Any, group: str, topic: str) -> Ledger:
    """Count what became of each record. `source` is a journal, or has one; KeyError where it knows no such pair."""
    journal: Journal = getattr(source, "journal", source)
    pages: dict[int, _Page] = {}
    delivered = False
    for event in _events(journal, group, topic):
        page = pages.setdefault(event.partition, _Page())
        if isinstance(event, RecordsChanged):
            page.changed(event)
            delivered = True
        elif isinstance(event, SharePartitionLoaded):
            page.loaded(event)
            delivered = True
        elif isinstance(event, SharePartitionDropped):
            page.dropped()
        else:
            page.reach(event.end)
    if not delivered:
        raise KeyError(f"the journal knows nothing of group {group!r} on topic {topic!r}")
    done = {partition: page.trimmed() for partition, page in sorted(pages.items())}
    return Ledger(
        group,
        topic,
        {p: page.state for p, page in done.items()},
        {p: page.delivery_count for p, page in done.items()},
        {p: page.accepted for p, page in done.items()},
    )


def _events(journal: Iterable[Entry], group: str, topic: str) -> Iterable[Any]:
    """What concerns the records of the topic, in order."""
    of_group = (RecordsChanged, SharePartitionLoaded, SharePartitionDropped)
    for entry in journal:
        event = entry.event
        if isinstance(event, of_group):
            if event.group_id == group and event.topic == topic:
                yield event
        elif isinstance(event, RecordsAppended) and event.topic == topic:
            yield event
