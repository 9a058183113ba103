"""What the answers of a story are made of: figures from the journal."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from shareq.model.events import RecordsChanged, WindowMoved
from shareq.model.states import SETTLED, RecordEvent, RecordState
from shareq.trace.analysis.share_partition_state import SharePartitionState
from shareq_widgets.steering.steering import Steering

GROUP, TOPIC = "crew", "jobs"

E = TypeVar("E")


class Timed(NamedTuple):
    """A change of records, and its time since the start of the journal."""

    time_ms: int
    change: RecordsChanged

    @property
    def offsets(self) -> range:
        return range(self.change.first, self.change.end)


class Evidence:
    """The journal of a story: since a step began (`since`, an order), and as a whole. Read it at once: it grows.

    All times are ms since the start of the journal. The story's topic has one partition.
    """

    def __init__(self, steering: Steering, since: int) -> None:
        self.steering = steering
        self.since = since
        steering.history.refresh()

    # ---- events ------------------------------------------------------------------------------------------------------

    def events(self, kind: type[E], *, whole: bool = False) -> list[tuple[int, E]]:
        """(time, event) of one type: since the step began, or in the whole story."""
        journal = self.steering.cluster.journal
        return [
            (entry.time_ms - journal.origin_ms, entry.event)
            for entry in journal.since(0 if whole else self.since)
            if isinstance(entry.event, kind)
        ]

    def name(self, member_id: str | None) -> str:
        """The name of a consumer."""
        return next((w.name for w in self.steering.team if w.consumer.member_id() == member_id), str(member_id))

    @property
    def state(self) -> SharePartitionState:
        """The share-partition now."""
        history = self.steering.history
        return history.share_partition(TOPIC, 0, history.total)

    @property
    def log_end(self) -> int:
        """The offset of the next record."""
        return self.steering.cluster.log(TOPIC, 0).log_end_offset

    # ---- records -----------------------------------------------------------------------------------------------------

    def changes(self, cause: str, *, whole: bool = False) -> list[Timed]:
        """The changes of records with a cause."""
        changes = self.events(RecordsChanged, whole=whole)
        return [Timed(time_ms, change) for time_ms, change in changes if change.cause == cause]

    def acquisitions(self, name: str | None = None, *, whole: bool = False) -> list[Timed]:
        """The acquisitions, of all consumers or of one."""
        found = self.changes(RecordEvent.ACQUIRE, whole=whole)
        return [timed for timed in found if name in (None, self.name(timed.change.member_id))]

    def timeouts(self, *, whole: bool = False) -> list[Timed]:
        """The locks that ran out."""
        return self.changes(RecordEvent.LOCK_TIMEOUT, whole=whole)

    def ended(self, state: RecordState, *, whole: bool = False) -> dict[int, Timed]:
        """The records that reached a final state, by offset."""
        settled = self.changes(SETTLED, whole=whole)
        return {offset: timed for timed in settled if timed.change.state == state for offset in timed.offsets}

    def accepted(self, *, whole: bool = False) -> dict[int, Timed]:
        """The acknowledged records, by offset."""
        return self.ended(RecordState.ACKNOWLEDGED, whole=whole)

    def held(self, name: str) -> list[int]:
        """The offsets that a consumer holds now."""
        return [
            offset
            for first, end, status in self.state.runs
            if status.state == RecordState.ACQUIRED and self.name(status.member_id) == name
            for offset in range(first, end)
        ]

    def spso_moves(self) -> list[tuple[int, int]]:
        """(time, new SPSO) of each move of the SPSO since the step began."""
        before, moves = None, []
        for time_ms, event in self.events(WindowMoved):
            if event.spso != before:
                moves.append((time_ms, event.spso))
            before = event.spso
        return moves


def count(offsets: list[Timed]) -> int:
    """The number of records of several changes."""
    return sum(len(timed.offsets) for timed in offsets)


def times(number: int) -> str:
    """How often, as text: "once", "5 times"."""
    return "once" if number == 1 else f"{number} times"


def later(ms: int) -> str:
    """A delay as text: "at once", "0.5 s later"."""
    return f"{seconds(ms)} later" if ms else "at once"


def seconds(ms: float) -> str:
    """A duration or time as text: "30 s", "0.5 s"."""
    return f"{ms / 1000:,.3f}".rstrip("0").rstrip(".") + " s"


def span(offsets: list[int] | range) -> str:
    """Offsets that follow each other, as text: "5", "110–113", "none"."""
    if not offsets:
        return "none"
    return str(offsets[0]) if len(offsets) == 1 else f"{offsets[0]}–{offsets[-1]}"


def window(state: SharePartitionState) -> str:
    """The window as text; SPEO is the last offset in flight."""
    return f"SPSO {state.spso}, the window is empty" if state.speo is None else f"SPSO {state.spso}, SPEO {state.speo}"
