"""Fetched records that no poll has returned, in pieces within one record batch each.

The poll that returns a batch decodes it, in the application's thread; an intact batch is decoded only when a record is
read. A buffered batch costs a few objects, whatever its record count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from shareq.client.message import Fields, Message, Origin, ReceivedMessage
from shareq.consumer.acknowledgements import Acknowledgements, OffsetRange, subtract_ranges
from shareq.consumer.lazy_messages import BatchMessages, decodable_later
from shareq.consumer.unacknowledged import drop_within
from shareq.log.batches import CODEC_MASK
from shareq.log.records import CorruptBatch, Record, crc_matches, decode
from shareq.model.errors import KafkaError
from shareq.model.ids import TopicIdPartition
from shareq.model.messages.share_fetch import AcquiredRecords
from shareq.model.records import RecordBatch
from shareq.model.states import AcknowledgeType

_offset_of = attrgetter("offset")
_first_of = itemgetter(0)


NEVER_MS = 1 << 62


class AcquiredPiece(NamedTuple):
    """Acquired offsets [first, end) of one batch; `batch` None: the response has no batch for them.

    `journalled`: an interrupted poll has already recorded the delivery in the journal. `lock_until_ms`: the lock has
    ended then, or earlier, because it began before the response arrived.
    """

    key: TopicIdPartition
    topic: str
    node: int
    first: int
    end: int
    delivery_count: int
    batch: RecordBatch | None
    journalled: bool = False
    lock_until_ms: int = NEVER_MS


class UnpackedPiece(NamedTuple):
    """A piece with its messages. `verdict`: the acknowledge type of broken records, which the application may
    replace."""

    piece: AcquiredPiece
    messages: Sequence[Message]
    ranges: Sequence[OffsetRange]
    gaps: Sequence[OffsetRange]
    verdict: int | None = None


def cut_at_batches(
    key: TopicIdPartition,
    topic: str,
    node: int,
    acquired: Sequence[AcquiredRecords],
    batches: Sequence[RecordBatch],
    *,
    lock_until_ms: int = NEVER_MS,
) -> Iterator[AcquiredPiece]:
    """Split acquired ranges at record batches. Both ascend; the cost follows their numbers."""
    at = 0
    for acquisition in acquired:
        cursor, end, count = acquisition.first_offset, acquisition.last_offset + 1, acquisition.delivery_count
        while cursor < end:
            while at < len(batches) and batches[at].last_offset < cursor:
                at += 1
            batch = batches[at] if at < len(batches) and batches[at].base_offset < end else None
            if batch is None:
                yield AcquiredPiece(key, topic, node, cursor, end, count, None, False, lock_until_ms)
                break
            if batch.base_offset > cursor:
                yield AcquiredPiece(key, topic, node, cursor, batch.base_offset, count, None, False, lock_until_ms)
                cursor = batch.base_offset
            piece_end = min(end, batch.last_offset + 1)
            yield AcquiredPiece(key, topic, node, cursor, piece_end, count, batch, False, lock_until_ms)
            cursor = piece_end


def without_acknowledged(
    pieces: Iterable[AcquiredPiece], waiting: Sequence[Acknowledgements]
) -> Iterator[AcquiredPiece]:
    """Acquired pieces of a partition, without the offsets whose acknowledgements wait to be sent to the same node:
    those apply to the new locks. A record with a waiting renewal is kept; the renewal does not return its old copy."""
    renew = AcknowledgeType.RENEW
    answered = sorted((first, end) for each in waiting for first, end, kind, _ in each.runs if kind != renew)
    for piece in pieces:
        for each in waiting:
            drop_within(each.renewing, piece.first, piece.end)
        for first, end in subtract_ranges([(piece.first, piece.end)], answered):
            yield piece._replace(first=first, end=end)


class FetchBuffer:
    """Pieces in order of arrival. `fresh`: pieces were added since the flag was cleared."""

    def __init__(self, *, check_crcs: bool) -> None:
        self.fresh = False
        self._pieces: deque[AcquiredPiece] = deque()
        self._check_crcs = check_crcs
        self._decoded: tuple[RecordBatch | None, list[Record]] = (None, [])

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def extend(self, pieces: Iterable[AcquiredPiece]) -> bool:
        """Append the pieces. False if there are none."""
        before = len(self._pieces)
        self._pieces.extend(pieces)
        added = len(self._pieces) > before
        self.fresh |= added
        return added

    def put_back(self, pieces: Iterable[AcquiredPiece]) -> None:
        """Return the pieces that an interrupted poll took."""
        self._pieces.extendleft(piece._replace(journalled=True) for piece in reversed([*pieces]))
        self.fresh = True

    def holds(self, node: int) -> bool:
        """True if a node delivered some of the pieces."""
        return any(piece.node == node for piece in self._pieces)

    def drop(self, unwanted: Callable[[AcquiredPiece], bool]) -> list[AcquiredPiece]:
        """Remove and return all pieces for which `unwanted` is true."""
        dropped = [piece for piece in self._pieces if unwanted(piece)]
        if dropped:
            self._pieces = deque(piece for piece in self._pieces if not unwanted(piece))
        return dropped

    def drop_expired(self, now_ms: int) -> None:
        """Drop the first pieces whose locks have ended: the group delivers their records again."""
        pieces = self._pieces
        while pieces and pieces[0].lock_until_ms <= now_ms:
            pieces.popleft()

    def take_held(self, key: TopicIdPartition, node: int, held: Sequence[OffsetRange]) -> list[UnpackedPiece]:
        """Remove and unpack the parts within `held` (ascending), wherever they are in the buffer."""
        kept: deque[AcquiredPiece] = deque()
        taken: list[AcquiredPiece] = []
        for piece in self._pieces:
            if piece.key != key or piece.node != node or not _overlap(piece, held):
                kept.append(piece)
                continue
            outside = subtract_ranges([(piece.first, piece.end)], held)
            inside = subtract_ranges([(piece.first, piece.end)], outside)
            kept.extend(piece._replace(first=first, end=end) for first, end in outside)
            taken += [piece._replace(first=first, end=end) for first, end in inside]
        self._pieces = kept
        return [self._unpack(piece) for piece in taken]

    def take(self, max_records: int) -> Iterator[UnpackedPiece]:
        """Unpack pieces until `max_records` are reached, up to the end of that record batch."""
        taken = 0
        last: RecordBatch | None = None
        while self._pieces and (taken < max_records or (last is not None and self._pieces[0].batch is last)):
            piece = self._pieces.popleft()
            last = piece.batch
            unpacked = self._unpack(piece)
            taken += len(unpacked.messages)
            yield unpacked
        if not self._pieces:
            self._decoded = (None, [])

    def _unpack(self, piece: AcquiredPiece) -> UnpackedPiece:
        if piece.batch is None or piece.batch.is_control:
            return UnpackedPiece(piece, (), (), [(piece.first, piece.end)])
        origin = Origin(piece.topic, piece.key.partition, piece.delivery_count, piece.batch.leader_epoch)
        if decodable_later(piece.batch):
            later = BatchMessages(piece.batch, piece.first, piece.end, origin)
            return UnpackedPiece(piece, later, [(piece.first, piece.end)], ())
        try:
            records = self._records(piece.batch)
        except CorruptBatch as error:
            return self._broken(piece, piece.batch, error)
        if piece.first > piece.batch.base_offset or piece.end <= piece.batch.last_offset:
            low = bisect_left(records, piece.first, key=_offset_of)
            records = records[low : bisect_left(records, piece.end, lo=low, key=_offset_of)]
        messages = BatchMessages(piece.batch, piece.first, piece.end, origin, records)
        if len(records) == piece.end - piece.first:
            return UnpackedPiece(piece, messages, [(piece.first, piece.end)], ())
        ranges, gaps = _with_gaps(piece, records)
        return UnpackedPiece(piece, messages, ranges, gaps)

    def _records(self, batch: RecordBatch) -> list[Record]:
        if self._decoded[0] is not batch:
            self._decoded = (batch, decode(batch, check_crc=self._check_crcs))
        return self._decoded[1]

    def _broken(self, piece: AcquiredPiece, batch: RecordBatch, error: CorruptBatch) -> UnpackedPiece:
        """Messages with an error, one per acquired offset: rejected if the bytes are damaged; otherwise released, since
        another consumer may support the compression."""
        damaged = self._check_crcs and not crc_matches(batch.data)
        packed = batch.attributes & CODEC_MASK and not damaged
        failure = KafkaError(KafkaError._BAD_COMPRESSION if packed else KafkaError._BAD_MSG, str(error))
        origin = Origin(piece.topic, piece.key.partition, piece.delivery_count, batch.leader_epoch, failure)
        messages = [ReceivedMessage(Fields(offset), origin) for offset in range(piece.first, piece.end)]
        verdict = AcknowledgeType.REJECT if damaged else AcknowledgeType.RELEASE
        return UnpackedPiece(piece, messages, [(piece.first, piece.end)], (), verdict)


def _overlap(piece: AcquiredPiece, held: Sequence[OffsetRange]) -> bool:
    at = bisect_left(held, piece.end, key=_first_of)
    return at > 0 and held[at - 1][1] > piece.first


def _with_gaps(piece: AcquiredPiece, records: Sequence[Record]) -> tuple[list[OffsetRange], list[OffsetRange]]:
    """The ranges with records, and the gaps between them that compaction has left."""
    ranges: list[OffsetRange] = []
    gaps: list[OffsetRange] = []
    cursor = first = piece.first
    for record in records:
        if record.offset != cursor:
            if first != cursor:
                ranges.append((first, cursor))
            gaps.append((cursor, record.offset))
            first = record.offset
        cursor = record.offset + 1
    if first != cursor:
        ranges.append((first, cursor))
    if cursor < piece.end:
        gaps.append((cursor, piece.end))
    return ranges, gaps
