"""The log against a list of records that does everything the slow way."""

from dataclasses import dataclass, field
from itertools import pairwise

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.log.records import decode, encode_batch
from shareq.log.results import AppendResult, ReadResult
from shareq.model.errors import Errors
from tests.log.support import COMMITTED, EVERYTHING, NOW, UNCOMMITTED, visible

LONG = 1 << 40
CONFIGS = [
    LogConfig(segment_bytes=300, retention_ms=400, segment_ms=200),
    LogConfig(segment_bytes=300, retention_bytes=700),
    LogConfig(message_timestamp_type="LogAppendTime", retention_ms=300, segment_bytes=200),
    *(
        LogConfig(
            cleanup_policy=policy,
            min_cleanable_dirty_ratio=0,
            segment_bytes=200,
            delete_retention_ms=delete_retention_ms,
            retention_ms=500,
        )
        for policy in ("compact", "compact,delete")
        for delete_retention_ms in (0, LONG)
    ),
]
PLAIN = -1

keys = st.sampled_from([b"a", b"b", b"c", b"d"])
entries = st.lists(st.tuples(keys, st.booleans(), st.integers(-60, 60)), min_size=1, max_size=5)


@dataclass
class Line:
    """One record. `transaction` is the number of the transaction that it is in; `segment` where it was put."""

    offset: int
    key: bytes
    value: bytes | None
    timestamp: int
    segment: int
    transaction: int | None = None


@dataclass
class Segment:
    base_offset: int
    first_timestamp: int
    bytes: list[tuple[int, int, int]] = field(default_factory=list)
    """(last offset, size, largest timestamp) of each batch as it was appended."""


class AgainstOracle(RuleBasedStateMachine):
    """Every rule does the same to the log and to the list of lines, and compares the answers."""

    @initialize(config=st.sampled_from(CONFIGS))
    def begin(self, config: LogConfig) -> None:
        self.log = MemoryLog(config)
        self.config = config
        self.now = NOW
        self.lines: list[Line] = []
        self.end = self.start = 0
        self.segments: list[Segment] = []
        self.sent: dict[int, list[tuple[int, int, int]]] = {}
        self.epochs: dict[int, int] = {}
        self.open: dict[int, tuple[int, int]] = {}
        self.aborted: set[int] = set()
        self.transactions = 0
        self.values = 0

    # What both sides do

    def encode(self, rows: list[tuple[bytes, bool, int]], producer: int, sequence: int, transactional: bool) -> bytes:
        self.now += 7
        records = []
        for key, is_tombstone, delta in rows:
            self.values += 1
            records.append((key, None if is_tombstone else b"%d" % self.values, (), self.now + delta))
        return encode_batch(
            records,
            producer_id=producer,
            producer_epoch=self.epochs.get(producer, 0) if producer != PLAIN else -1,
            base_sequence=sequence,
            transactional=transactional,
        )

    def append(self, data: bytes, epoch: int = 0) -> AppendResult:
        return self.log.append(data, now_ms=self.now, leader_epoch=epoch)

    def wrote(self, data: bytes, result: AppendResult, transaction: int | None = None) -> None:
        """The lines of an append that must have worked."""
        records = decode(data)
        stamped = self.config.log_append_time
        assert result[:5] == (
            Errors.NONE,
            self.end,
            self.end + len(records) - 1,
            self.now if stamped else -1,
            self.start,
        )
        times = [self.now if stamped else record.timestamp for record in records]
        self.place(len(data), max(times), len(records))
        for record, timestamp in zip(records, times, strict=True):
            assert record.key is not None
            self.lines.append(Line(self.end, record.key, record.value, timestamp, len(self.segments) - 1, transaction))
            self.end += 1

    def place(self, size: int, largest: int, count: int) -> None:
        active = self.segments[-1] if self.segments and self.start < self.end else None
        if (
            active is None
            or sum(b[1] for b in active.bytes) + size > self.config.segment_bytes
            or largest - active.first_timestamp > self.config.segment_ms
        ):
            active = Segment(self.end, largest)
            self.segments.append(active)
        active.bytes.append((self.end + count - 1, size, largest))

    @rule(rows=entries)
    def plain(self, rows: list[tuple[bytes, bool, int]]) -> None:
        data = self.encode(rows, PLAIN, -1, False)
        self.wrote(data, self.append(data))

    @rule(producer=st.sampled_from([1, 2]), rows=entries)
    def idempotent(self, producer: int, rows: list[tuple[bytes, bool, int]]) -> None:
        self.send(producer, rows, None)

    @rule(producer=st.sampled_from([3, 4]), rows=entries)
    def transactional(self, producer: int, rows: list[tuple[bytes, bool, int]]) -> None:
        if producer not in self.open:
            self.transactions += 1
            self.open[producer] = (self.transactions, self.end)
        self.send(producer, rows, self.open[producer][0])

    def send(self, producer: int, rows: list[tuple[bytes, bool, int]], transaction: int | None) -> None:
        sent = self.sent.setdefault(producer, [])
        sequence = sent[-1][1] + 1 if sent else 0
        data = self.encode(rows, producer, sequence, transaction is not None)
        sent.append((sequence, sequence + len(rows) - 1, self.end))
        self.wrote(data, self.append(data), transaction)

    @rule(producer=st.sampled_from([1, 2]), back=st.integers(1, 8))
    def send_again(self, producer: int, back: int) -> None:
        """A retry is known as one if it is among the last five, and else out of order."""
        sent = self.sent.get(producer, [])
        if back > len(sent):
            return
        first, last, base_offset = sent[-back]
        result = self.append(self.encode([(b"a", False, 0)] * (last - first + 1), producer, first, False))
        if back <= 5:
            assert (result.error, result.base_offset) == (Errors.NONE, base_offset)
        else:
            assert result.error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(producer=st.sampled_from([1, 2]), ahead=st.integers(1, 3))
    def send_too_early(self, producer: int, ahead: int) -> None:
        sent = self.sent.get(producer)
        if sent:
            data = self.encode([(b"a", False, 0)], producer, sent[-1][1] + 1 + ahead, False)
            assert self.append(data).error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(producer=st.sampled_from([1, 2]))
    def raise_epoch(self, producer: int) -> None:
        if producer in self.sent:
            old = self.encode([(b"a", False, 0)], producer, self.sent[producer][-1][1] + 1, False)
            self.epochs[producer] = self.epochs.get(producer, 0) + 1
            self.sent[producer] = []
            self.send(producer, [(b"b", False, 0)], None)
            assert self.append(old).error is Errors.INVALID_PRODUCER_EPOCH

    @precondition(lambda self: self.open)
    @rule(data=st.data(), committed=st.booleans(), bumps=st.booleans())
    def end_transaction(self, data: st.DataObject, committed: bool, bumps: bool) -> None:
        producer = data.draw(st.sampled_from(sorted(self.open)))
        self.now += 7
        if bumps:
            self.epochs[producer] = self.epochs.get(producer, 0) + 1
            self.sent[producer] = []
        result = self.log.append_control(
            committed=committed,
            producer_id=producer,
            producer_epoch=self.epochs.get(producer, 0),
            coordinator_epoch=0,
            now_ms=self.now,
            leader_epoch=0,
        )
        assert result == AppendResult(Errors.NONE, self.end, self.end, -1, self.start)
        number, _ = self.open.pop(producer)
        if not committed:
            self.aborted.add(number)
        self.place(78, self.now, 1)
        self.end += 1

    @rule(offset=st.integers(-2, 120))
    def delete_records(self, offset: int) -> None:
        error = self.log.delete_records(offset)
        if not self.config.delete:
            assert error is Errors.POLICY_VIOLATION
        elif offset < -1 or offset > self.end:
            assert error is Errors.OFFSET_OUT_OF_RANGE
        else:
            assert error is Errors.NONE
            self.start = max(self.start, self.end if offset == -1 else offset)

    @rule(later_ms=st.integers(0, 300))
    def clean(self, later_ms: int) -> None:
        self.now += later_ms
        if self.config.compact:
            self.compact()
        left_before = {b.base_offset for b in self.read(UNCOMMITTED).batches}
        sizes = self.log.size_in_bytes
        if self.config.delete and not self.config.compact:
            self.retain()
        elif self.config.delete:  # sizes after compaction are the log's to know, so here it is believed
            self.start = max(self.start, self.log.clean(self.now))
        assert self.log.clean(self.now) == self.start
        assert self.log.size_in_bytes <= sizes
        assert {b.base_offset for b in self.read(UNCOMMITTED).batches} <= left_before

    def retain(self) -> None:
        """Whole segments go from the front, while they are too old or what is left without them is enough."""
        left = sum(size for s in self.segments for last, size, _ in s.bytes if last >= self.start)
        for index, segment in enumerate(self.segments):
            live = [(size, largest) for last, size, largest in segment.bytes if last >= self.start]
            if not live:
                continue
            size = sum(one for one, _ in live)
            too_old = 0 <= self.config.retention_ms < self.now - max(largest for _, largest in live)
            too_much = 0 <= self.config.retention_bytes <= left - size
            if not (too_old or too_much):
                break
            left -= size
            self.start = self.segments[index + 1].base_offset if index + 1 < len(self.segments) else self.end

    def compact(self) -> None:
        """Line by line: a line stays if no later line below the bound has its key, unless it is a tombstone."""
        bound = 0
        ends = [segment.base_offset for segment in self.segments[1:]]
        if self.start < self.end:
            bound = max((end for end in ends if end <= self.stable()), default=0)
        below = [line for line in self.lines if line.offset < bound and line.transaction not in self.aborted]
        latest = {line.key: line.offset for line in below}
        self.lines = [
            line
            for line in self.lines
            if line.offset >= bound
            or (
                line.transaction not in self.aborted
                and latest[line.key] == line.offset
                and (line.value is not None or self.config.delete_retention_ms > 0)
            )
        ]

    # What readers see

    def stable(self) -> int:
        return max(self.start, min((first for _, first in self.open.values()), default=self.end))

    def read(self, isolation: int, offset: int | None = None, max_bytes: int = EVERYTHING) -> ReadResult:
        at = self.start if offset is None else offset
        return self.log.read(at, max_bytes=max_bytes, isolation=UNCOMMITTED if isolation == 0 else COMMITTED)

    @rule(offset=st.integers(0, 120), max_bytes=st.integers(0, 500), committed=st.booleans())
    def read_anywhere(self, offset: int, max_bytes: int, committed: bool) -> None:
        isolation = COMMITTED if committed else UNCOMMITTED
        read = self.read(isolation, offset, max_bytes)
        assert read[2:5] == (self.end, self.start, self.stable())
        if not self.start <= offset <= self.end:
            assert (read.error, read.batches) == (Errors.OFFSET_OUT_OF_RANGE, ())
            return
        assert read.error is Errors.NONE
        found = read.batches
        assert len(found) <= 1 or sum(b.size for b in found) <= max_bytes
        whole = self.read(isolation, offset).batches
        assert found == whole[: len(found)]
        assert len(found) == len(whole) or (found and sum(b.size for b in whole[: len(found) + 1]) > max_bytes)
        bound = self.stable() if committed else self.end
        upto = found[-1].last_offset + 1 if len(found) < len(whole) else bound
        wanted = [
            (line.offset, line.key, line.value, line.timestamp)
            for line in self.lines
            if offset <= line.offset < upto and not (committed and line.transaction in self.aborted)
        ]
        assert list(visible(read, offset)) == wanted

    @rule(timestamp=st.integers(-60, 800), committed=st.booleans())
    def find_timestamp(self, timestamp: int, committed: bool) -> None:
        self.find(NOW + timestamp, committed)

    @rule(committed=st.booleans())
    def find_largest_timestamp(self, committed: bool) -> None:
        self.find(max((t for _, t in self.timeline()), default=LONG), committed, asked=-3)

    def find(self, timestamp: int, committed: bool, asked: int | None = None) -> None:
        bound = self.stable() if committed else self.end
        isolation = COMMITTED if committed else UNCOMMITTED
        found = self.log.offset_for_timestamp(timestamp if asked is None else asked, isolation)
        wanted = next(((o, t) for o, t in self.timeline() if t >= timestamp), (-1, -1))
        assert (found.offset, found.timestamp) == (wanted if wanted[0] < bound else (-1, -1))

    def timeline(self) -> list[tuple[int, int]]:
        """(offset, timestamp) of all that is there; of markers the log is believed, as the oracle keeps none."""
        markers = [(b.base_offset, b.max_timestamp) for b in self.read(UNCOMMITTED).batches if b.is_control]
        lines = [(line.offset, line.timestamp) for line in self.lines if line.offset >= self.start]
        return sorted(markers + lines)

    @invariant()
    def the_books_are_in_order(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset) == (
            self.start,
            self.end,
            self.stable(),
        )
        found = self.read(UNCOMMITTED).batches
        assert log.size_in_bytes == sum(batch.size for batch in found)
        spans = [(batch.base_offset, batch.last_offset) for batch in found]
        assert all(last < base for (_, last), (base, _) in pairwise(spans))
        assert all(base <= last for base, last in spans)


TestAgainstOracle = AgainstOracle.TestCase
