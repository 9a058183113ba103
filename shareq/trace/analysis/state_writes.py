"""The state writes of a share-partition's leaders: what each wrote, how, in what time, and with what result."""

from __future__ import annotations

from typing import Final, NamedTuple

from shareq.model.events import SharePartitionLoaded, StateRecordWritten, StateWritePrepared, StateWriteSettled
from shareq.model.state_batches import combine
from shareq.trace.analysis.durable_state import CHANGES, WHOLE, DurableTimeline
from shareq.trace.analysis.partition_timeline import PartitionTimeline
from shareq.trace.journal import Entry

SEARCHED: Final = 4_000
"""The last entries of a share-partition in which writes are looked for."""


class StateWrite(NamedTuple):
    """A state write. `kind`: that of the record which the share coordinator wrote ("update", ...), "" if there is none.

    `took_ms`, `error`: of the answer; None if it has not arrived. `ended`: it never will, because the leader was
    stopped, or dropped the share-partition.
    """

    order: int
    time_ms: int
    broker_id: int
    write: StateWritePrepared
    kind: str
    took_ms: int | None
    error: int | None
    ended: bool


def latest_writes(timeline: PartitionTimeline, durable: DurableTimeline, until: int, limit: int) -> list[StateWrite]:
    """The last writes that were sent before `until`, at most `limit`, oldest first."""
    found: list[StateWrite] = []
    answers: dict[tuple[int, int], Entry] = {}
    end = timeline.count(until)
    open_writes = [event for _, event in timeline.state(end).writes.values()]
    for position in range(end - 1, max(end - SEARCHED, 0) - 1, -1):
        entry = timeline.entries[position]
        event = entry.event
        if isinstance(event, StateWriteSettled):
            answers[entry.broker_id, event.write_id] = entry
        elif isinstance(event, SharePartitionLoaded):  # the ids of this leader begin again
            answers = {key: answer for key, answer in answers.items() if key[0] != entry.broker_id}
        elif isinstance(event, StateWritePrepared):
            answer = answers.pop((entry.broker_id, event.write_id), None)
            kind = _kind(durable, event, entry.order, until if answer is None else answer.order)
            ended = answer is None and not any(event is other for other in open_writes)
            found.append(_answered(entry, event, kind, answer)._replace(ended=ended))
            if len(found) == limit:
                break
    return found[::-1]


def _answered(entry: Entry, event: StateWritePrepared, kind: str, answer: Entry | None) -> StateWrite:
    sent = StateWrite(entry.order, entry.time_ms, entry.broker_id, event, kind, None, None, False)
    if answer is None:
        return sent
    assert isinstance(answer.event, StateWriteSettled)
    return sent._replace(took_ms=answer.time_ms - entry.time_ms, error=answer.event.error)


def _kind(durable: DurableTimeline, write: StateWritePrepared, begin: int, end: int) -> str:
    """The kind of the record of a write, among those that were written before its answer.

    A record of a change has the batches of its write, from its start on; among control records, from that before the
    write on. One with the whole state is the record of a write if no other is.
    """
    entries = durable.entries[durable.count(begin) : durable.count(end)]
    records = [entry.event for entry in entries if isinstance(entry.event, StateRecordWritten)]
    for record in records:
        starts = {record.start_offset, write.start_offset}
        same = any(record.state_batches == combine((), write.state_batches, start) for start in starts)
        if record.kind in CHANGES and same:
            return record.kind
    return next((record.kind for record in records if record.kind in WHOLE), "")
