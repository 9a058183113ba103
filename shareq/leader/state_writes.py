"""State writes: what goes to the persister, and how its answer changes the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from shareq.leader.in_flight_state import InFlightChange, archiving
from shareq.leader.window import Window
from shareq.model.actor import DeadLetter
from shareq.model.configs import GroupConfig
from shareq.model.errors import Errors
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordEvent, RecordState


class PreparedWrite(NamedTuple):
    """A state write for the persister. Pass its id and the result to `settle`.

    `start_offset` is the current SPSO: the SPSO moves only after the write has succeeded.
    """

    write_id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class StateWrites:
    """The writes under way, and the changes that no write contains yet.

    `prepare` writes changes that take effect when the write settles. `prepare_unwritten` writes changes that already
    took effect because no request waits for them (time-outs, records missing from the log). `request_write`
    requests a write without changes.

    `dead_letters`: records may become ARCHIVING; set once the group has had a dead-letter queue. When the write of such
    records has settled, they are `letters` for the writer of the queue.
    """

    __slots__ = (
        "_archiving",
        "_under_way",
        "_unwritten",
        "_window",
        "dead_letters",
        "letters",
        "next_id",
        "unwritten_since_ms",
    )

    def __init__(self, window: Window) -> None:
        self._window = window
        self._under_way: dict[int, list[InFlightChange]] = {}
        self._unwritten: list[tuple[int, int]] = []
        self._archiving: dict[int, list[tuple[int, int]]] = {}
        self.dead_letters = False
        self.letters: list[DeadLetter] = []
        self.unwritten_since_ms: int | None = None
        self.next_id = 0

    def prepare(self, changes: list[InFlightChange]) -> PreparedWrite:
        """Mark the records with the write that is to change them."""
        window = self._window
        window.tag(changes)
        spso = window.spso
        # Release and time-out also change records held below the SPSO, which need not be stored.
        stored = changes if changes[0][0] >= spso else [change for change in changes if change[0] >= spso]
        return self._begin(changes, stored)

    def note_unwritten(self, ranges: Sequence[tuple[int, int]], now_ms: int) -> None:
        """These ranges have changed and no write contains them yet."""
        if ranges:
            self._unwritten += ranges
            self.unwritten_since_ms = now_ms

    def request_write(self, now_ms: int) -> None:
        """Request a write without changes, so that the SPSO can move when it settles."""
        if not self._under_way and self.unwritten_since_ms is None:
            self.unwritten_since_ms = now_ms

    def prepare_unwritten(self) -> PreparedWrite | None:
        """A write of all noted ranges that no member holds now, each offset once; None if no write is due."""
        if self.unwritten_since_ms is None:
            return None
        stored: list[InFlightChange] = []
        spso = position = self._window.spso
        below = [(first, min(end, spso)) for first, end in self._unwritten if first < spso]
        for first, end in sorted(self._unwritten):
            if position < end:
                runs = self._window.states.overlap(max(first, position), end)
                stored += [
                    (f, e, in_flight, in_flight)
                    for f, e, in_flight in runs
                    if in_flight.state is not RecordState.ACQUIRED
                ]
                position = end
        self._unwritten = []
        self.unwritten_since_ms = None
        return self._begin([], stored, below)

    def _begin(
        self, changes: list[InFlightChange], stored: Sequence[InFlightChange], below: Sequence[tuple[int, int]] = ()
    ) -> PreparedWrite:
        """`below`: ranges below the SPSO that have changed, too, and need not be stored."""
        window, write_id = self._window, self.next_id
        self.next_id += 1
        self._under_way[write_id] = changes
        write = PreparedWrite(write_id, window.spso, window.delivery_complete_count, state_batches(stored))
        if self.dead_letters:
            archiving_batches = [batch for batch in write.state_batches if batch[2] is RecordState.ARCHIVING]
            self._archiving[write_id] = [*below, *((first, last + 1) for first, last, _, _ in archiving_batches)]
        if window.recorder is not None:
            window.recorder.prepared(*write)
        return write

    def settle(self, write_id: int, error: Errors, config: GroupConfig, now_ms: int) -> bool:
        """Apply the persister's answer. Returns True if the SPSO moved. KeyError for a write that is not under way."""
        window, changes = self._window, self._under_way.pop(write_id)
        if window.recorder is not None:
            window.recorder.settled(write_id, error)
        archiving_ranges = self._archiving.pop(write_id, ())
        if changes and error:
            self.dead_letters |= config.dead_letter_queue
            self._abandon(changes, config, now_ms)
            return False
        window.commit(changes)
        for first, end in archiving_ranges:
            self.note_letters(first, end)
        return window.advance()

    def note_letters(self, first: int, end: int) -> None:
        """The ARCHIVING records of [first, end) are durable: they are letters from now on, each record once."""
        for f, e, in_flight in self._window.states.overlap(first, end):
            state, _, count, _, _, _, event = in_flight
            if state is RecordState.ARCHIVING and event is not RecordEvent.DEAD_LETTERED:
                self._window.states.assign(f, e, archiving(count, RecordEvent.DEAD_LETTERED))
                expired = event is RecordEvent.EXPIRED
                self.letters.append(DeadLetter(f, e, count, event is RecordEvent.REJECT, expired))

    def _abandon(self, changes: list[InFlightChange], config: GroupConfig, now_ms: int) -> None:
        """Hold the records as before; release those whose lock has expired meanwhile.

        Records without the write's id were archived by the log start or by compaction, and stay archived.
        """
        window = self._window
        for change_first, change_end, _, tagged in changes:
            for first, end, in_flight in window.states.overlap(change_first, change_end):
                if in_flight.write_id == tagged.write_id:
                    held = window.abandon(first, end, in_flight)
                    if held.expired(now_ms):
                        window.release(first, end, held, RecordEvent.LOCK_TIMEOUT, config)
                        self.note_unwritten([(first, end)], now_ms)


def state_batches(changes: Sequence[InFlightChange]) -> tuple[StateBatch, ...]:
    """The state batches of a write: one batch for adjacent ranges with the same target state and count."""
    batches: list[StateBatch] = []
    at, state, count = -1, RecordState.AVAILABLE, -1
    for first, end, _, in_flight in changes:
        to_state, delivery_count = in_flight[1], in_flight[2]
        if first == at and to_state is state and delivery_count == count:
            batches[-1] = StateBatch(batches[-1].first_offset, end - 1, state, count)
        else:
            state, count = to_state, delivery_count
            batches.append(StateBatch(first, end - 1, state, count))
        at = end
    return tuple(batches)
