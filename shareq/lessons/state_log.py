"""The durable state of a bench's share-partition: the records of the state topic, as events and in words."""

from __future__ import annotations

from collections.abc import Iterable

from shareq.lessons.bench import Bench
from shareq.lessons.checks import with_count
from shareq.log.memory import MemoryLog
from shareq.model.events import StateRecordWritten
from shareq.model.messages.share_state import StateBatch
from shareq.model.states import RecordState
from shareq.trace.journal.event_text import range_text

STATE_TOPIC = "__share_group_state"


def state_records(bench: Bench) -> list[StateRecordWritten]:
    """The records that were written for the bench's share-partition, oldest first; retention does not shorten it."""
    entries = bench.cluster.journal.select(StateRecordWritten)
    return [entry.event for entry in entries if isinstance(entry.event, StateRecordWritten)]


def state_log(bench: Bench) -> MemoryLog:
    """The partition of the state topic that has the records."""
    return bench.cluster.log(STATE_TOPIC, state_partition(bench))


def state_partition(bench: Bench) -> int:
    """The index of that partition: the only one of a bench that is not empty."""
    count = len(bench.cluster.image.topics[STATE_TOPIC].partitions)
    return next(index for index in range(count) if bench.cluster.log(STATE_TOPIC, index).log_end_offset)


def in_words(record: StateRecordWritten) -> str:
    """One line: the kind of a record, its start offset, and its state batches."""
    return f"{record.kind:<8}  start {record.start_offset:>3}  {batches_in_words(record.state_batches)}"


def batches_in_words(batches: Iterable[StateBatch]) -> str:
    """State batches: "0–3 acknowledged (delivered 1×), 5 available (delivered 2×)"."""
    return ", ".join(map(_batch, batches)) or "–"


def _batch(batch: StateBatch) -> str:
    state = RecordState(batch.delivery_state).name.lower()
    return f"{range_text(batch.first_offset, batch.last_offset + 1)} {with_count(state, batch.delivery_count)}"
