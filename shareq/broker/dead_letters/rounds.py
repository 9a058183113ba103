"""A round: the batch of one request to a dead-letter queue, and the offsets of the source that it covers.

Source: KIP-1191 for the headers; they stand in Kafka's order. Cost follows the records: each one becomes another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from shareq.broker.dead_letters.source_records import Content, SourceRecords
from shareq.log.records import BatchBuilder, Headers
from shareq.model.actor import DeadLetter, SendDeadLetters

REJECTED = b"Offset rejected by client."
DELIVERED_TOO_OFTEN = b"Offset delivery count exceeded the threshold."
EXPIRED = b"Record expired."


class ProducerState(NamedTuple):
    """The id, epoch and next sequence of the producer that writes a round: the log recognizes a repeated one."""

    producer_id: int
    epoch: int
    sequence: int


class Refused(NamedTuple):
    """A record that the queue can never take."""

    offset: int
    reason: str


class Round(NamedTuple):
    """`covered`: ranges of the source that need no further round, those without a record included; each with its
    number of records in the batch. `refused`: the record after them, at which the round ends. `batch` is None if there
    is no record."""

    batch: bytes | None
    covered: tuple[tuple[int, int, int], ...]
    record_count: int
    refused: Refused | None = None

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        return tuple((first, end) for first, end, _ in self.covered)


class QueueLimits(NamedTuple):
    """What a queue takes: batches up to `max_bytes`, and records without a key unless it `needs_keys`. `copy`: the
    group wants keys and values, too."""

    max_bytes: int
    needs_keys: bool
    copy: bool


class RoundMaker:
    """Makes a round for a queue. The timestamps of its records are `now_ms`."""

    def __init__(self, limits: QueueLimits, producer: ProducerState, now_ms: int) -> None:
        self._limits = limits
        self._producer = producer
        self._now_ms = now_ms

    def make(self, sent: SendDeadLetters, letters: Iterable[DeadLetter], source: SourceRecords) -> Round:
        """The first letters that fit in one batch, in order. A record that is too large with its content goes
        without. `sent` names the share-partition of the letters."""
        builder = self._builder()
        covered: list[tuple[int, int, int]] = []
        refused: Refused | None = None
        for letter in letters:
            before = builder.record_count
            end, refused = self._add(builder, sent, letter, source)
            if letter.first < end:
                covered.append((letter.first, end, builder.record_count - before))
            if end < letter.end:
                break
        batch = builder.build() if builder.record_count else None
        return Round(batch, tuple(covered), builder.record_count, refused)

    def _add(
        self, builder: BatchBuilder, sent: SendDeadLetters, letter: DeadLetter, source: SourceRecords
    ) -> tuple[int, Refused | None]:
        """Add the records of a letter as long as there is room. Returns the end of the part that is done, and the
        record after it if the queue can never take that."""
        headers, done = _Headers(sent, letter), letter.first
        copy, max_bytes = self._limits.copy, self._limits.max_bytes
        for content in source.contents(letter.first, letter.end, copy=copy, max_bytes=max_bytes):
            one = headers.of(content.offset)
            fitting = self._fitting(content, one)
            if isinstance(fitting, Refused):
                return done, fitting
            if not builder.append(fitting.key, fitting.value, one, self._now_ms):
                return done, None
            done = content.offset + 1
        return letter.end, None

    def _builder(self) -> BatchBuilder:
        producer_id, epoch, sequence = self._producer
        return BatchBuilder(
            self._limits.max_bytes, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )

    def _fitting(self, content: Content, headers: Headers) -> Content | Refused:
        """The record as the queue can take it, without its content if that is too large; or why it never can."""
        limits = self._limits
        if limits.needs_keys and content.key is None:
            return Refused(content.offset, "the dead-letter queue is compacted, and the record has no key")
        if self._fits(content, headers):
            return content
        bare = Content(content.offset)
        if not limits.needs_keys and self._fits(bare, headers):
            return bare
        return Refused(content.offset, f"the record is larger than max.message.bytes of the queue, {limits.max_bytes}")

    def _fits(self, content: Content, headers: Headers) -> bool:
        """True if a batch of this record alone is not too large; it is built only if that is in doubt."""
        size = _ROOM + len(content.key or b"") + len(content.value or b"")
        if size + sum(len(key) + len(value or b"") for key, value in headers) <= self._limits.max_bytes:
            return True
        alone = self._builder()
        alone.append(content.key, content.value, headers, self._now_ms)
        return len(alone.build()) <= self._limits.max_bytes


_ROOM = 256
"""More than the bytes that a batch and its first record need beside key, value and headers."""


class _Headers:
    """The headers of a letter's records, which differ only in the offset."""

    def __init__(self, sent: SendDeadLetters, letter: DeadLetter) -> None:
        self._before: Headers = (
            ("__dlq.errors.topic", sent.topic.encode()),
            ("__dlq.errors.partition", b"%d" % sent.key.partition),
        )
        self._after: Headers = (
            ("__dlq.errors.group", sent.key.group_id.encode()),
            ("__dlq.errors.delivery.count", b"%d" % letter.delivery_count),
            ("__dlq.errors.message", _reason(letter)),
        )

    def of(self, offset: int) -> Headers:
        return (*self._before, ("__dlq.errors.offset", b"%d" % offset), *self._after)


def _reason(letter: DeadLetter) -> bytes:
    if letter.expired:
        return EXPIRED
    return REJECTED if letter.rejected else DELIVERED_TOO_OFTEN


def after(letters: Sequence[DeadLetter], ranges: Sequence[tuple[int, int]]) -> Iterator[DeadLetter]:
    """The letters that remain when their first `ranges` are done: each range is the beginning of its letter."""
    for index, letter in enumerate(letters):
        if index >= len(ranges):
            yield letter
        elif ranges[index][1] < letter.end:
            yield letter._replace(first=ranges[index][1])
