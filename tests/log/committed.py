"""What a reader of committed records sees of a log."""

from __future__ import annotations

from shareq.log.memory import MemoryLog
from shareq.log.records import decode
from shareq.model.states import IsolationLevel


def committed_values(log: MemoryLog) -> list[str]:
    """The values of the records up to the last stable offset, without those of aborted transactions."""
    found: list[str] = []
    read = log.read(log.log_start_offset, max_bytes=1 << 24, isolation=IsolationLevel.READ_COMMITTED)
    for batch in read.batches:
        aborted = any(
            a.producer_id == batch.producer_id and a.first_offset <= batch.base_offset < a.last_offset
            for a in read.aborted
        )
        if not (batch.is_control or aborted):
            found += [(record.value or b"").decode() for record in decode(batch)]
    return found
