"""Messages of a record batch that are created on access and not kept.

The cost of a poll follows the record batches, not their records. An application that reads messages one by one keeps
one alive at a time; otherwise the garbage collector would cost more than decoding. A message that was changed is kept;
two messages of the same record are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from shareq.client.message import Message, Origin, ReceivedMessage
from shareq.log.batches import CODEC_MASK, crc_matches
from shareq.log.records import Record, decode, stream
from shareq.model.records import RecordBatch


class BatchMessage(ReceivedMessage):
    """A message of `home`, which keeps it after a change."""

    __slots__ = ("_home",)

    def __init__(self, record: Record, origin: Origin, home: BatchMessages) -> None:
        self._record = record
        self._origin = origin
        self._home = home

    def _changing(self) -> None:
        self._home.changed[self._record.offset or 0] = self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BatchMessage) and self._home is other._home:
            return self._record.offset == other._record.offset
        return super().__eq__(other)

    __hash__ = ReceivedMessage.__hash__


class BatchMessages(Sequence[Message]):
    """The records of the offsets [first, end) of one batch: already decoded, or with `records` None decoded on access.

    None requires a batch that is `decodable_later`.
    """

    __slots__ = ("_batch", "_end", "_first", "_origin", "_records", "changed")

    def __init__(
        self, batch: RecordBatch, first: int, end: int, origin: Origin, records: Sequence[Record] | None = None
    ) -> None:
        self.changed: dict[int, Message] = {}
        self._batch = batch
        self._first = first
        self._end = end
        self._origin = origin
        self._records = records

    def __len__(self) -> int:
        return self._end - self._first if self._records is None else len(self._records)

    def __iter__(self) -> Iterator[Message]:
        first, end, origin, changed = self._first, self._end, self._origin, self.changed
        for record in stream(self._batch) if self._records is None else self._records:
            if record.offset >= end:
                break
            if record.offset >= first:
                message = changed.get(record.offset)
                yield BatchMessage(record, origin, self) if message is None else message

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return list(self)[index]
        if self._records is None:
            skipped = self._first - self._batch.base_offset
            self._records = decode(self._batch)[skipped : skipped + len(self)]
        record = self._records[index]
        message = self.changed.get(record.offset)
        return BatchMessage(record, self._origin, self) if message is None else message


def decodable_later(batch: RecordBatch) -> bool:
    """True if a batch certainly has a valid record for each of its offsets: its CRC is intact, so the records are those
    that the broker has checked."""
    dense = batch.record_count == batch.last_offset - batch.base_offset + 1
    return dense and not batch.attributes & CODEC_MASK and crc_matches(batch.data)
