"""Reads the records that the letters of a lane refer to."""

from __future__ import annotations

from shareq.broker.dead_letters.lane import Lane
from shareq.broker.dead_letters.source_records import SourceRecords, Stretch
from shareq.model.actor import LogRead, ReadLog
from shareq.model.errors import Errors
from shareq.model.ids import TopicPartition
from shareq.model.workflow import Workflow

READ_BYTES = 1 << 20


def read_source(lane: Lane) -> Workflow[Errors]:
    """Read what is not known yet. Returns the first error that another attempt may not have."""
    at = TopicPartition(lane.topic, lane.key.partition)
    for letter in tuple(lane.letters):
        while not lane.stopping:
            position = lane.source.first_unknown(letter.first, letter.end)
            if position == letter.end:
                break
            read = yield ReadLog(0, at, position, READ_BYTES, end_offset=letter.end)
            error = _take(lane.source, read, position, letter.end)
            if error:
                return error
    return Errors.NONE


def _take(source: SourceRecords, read: LogRead, position: int, end: int) -> Errors:
    """Keep the result of a read from `position`."""
    if read.error is Errors.OFFSET_OUT_OF_RANGE:
        gone_end = read.log_start_offset if read.log_start_offset > position else end
        source.add(Stretch(position, min(gone_end, end), None, lost=True))
        return Errors.NONE
    if read.error:
        return read.error
    for batch in read.batches:
        if position < batch.base_offset:
            source.add(Stretch(position, batch.base_offset, None))
            position = batch.base_offset
        if position <= batch.last_offset:
            source.add(Stretch(position, batch.last_offset + 1, batch))
            position = batch.last_offset + 1
    if position < end and not read.batches:
        source.add(Stretch(position, end, None))
    return Errors.NONE
