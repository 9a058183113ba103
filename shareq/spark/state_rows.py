"""The log of `__share_group_state` as rows: the contents of each record, and the share-partition's state after it.

The share coordinator's own shard replays the log, so that both merge records alike. This module is independent of
Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from shareq.coordinator.runtime.shard import UnreadableRecordError
from shareq.coordinator.share_state.records import (
    NO_INDEX,
    StateRecord,
    StateSnapshot,
    StateTombstone,
    StateUpdate,
    decode_state_record,
)
from shareq.coordinator.share_state.state import KeyState, StateShard
from shareq.log.batches import CorruptBatch, split_batches
from shareq.log.records import Record, decode
from shareq.model.ids import SHARE_STATE_TOPIC, SharePartitionKey
from shareq.model.image import ClusterImage

_EPOCH = datetime.fromtimestamp(0, UTC)
_TIME = pa.timestamp("us", tz="UTC")
_BATCH = pa.struct(
    [
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("delivery_state", pa.int8()),
        ("delivery_count", pa.int16()),
    ]
)
_PLACE = [("state_partition", pa.int32()), ("offset", pa.int64()), ("timestamp", _TIME), ("kind", pa.string())]
_KEY = [("group_id", pa.string()), ("topic_id", pa.string()), ("topic", pa.string()), ("partition", pa.int32())]
_STATE = [
    ("snapshot_epoch", pa.int32()),
    ("state_epoch", pa.int32()),
    ("leader_epoch", pa.int32()),
    ("start_offset", pa.int64()),
    ("delivery_complete_count", pa.int32()),
    ("state_batches", pa.list_(_BATCH)),
    ("create_timestamp", _TIME),
    ("write_timestamp", _TIME),
]
_FENCES = [("leader_epoch_fence", pa.int32()), ("state_epoch_fence", pa.int32())]

RECORDS = pa.schema([*_PLACE, *_KEY, *_STATE, ("error", pa.string())])
"""A record of the log. Kind: snapshot, update or tombstone; on a compacted topic snapshots are its checkpoints, delta
and null delta the changes and their deletions; staged: an update in a producer's transaction (an experiment); unknown:
the key has another type, which Kafka ignores; unreadable: `error` is the cause. Columns that a kind does not have are
null."""

STATES = pa.schema([*_PLACE, *_KEY, ("complete", pa.bool_()), *_STATE, *_FENCES])
"""The state of a share-partition after a record of that kind; null after a tombstone. `complete`: all records of the
state are known, and none was pruned."""


_KINDS = {StateSnapshot: "snapshot", StateUpdate: "update", StateTombstone: "tombstone"}
_DELTA_KINDS = {StateUpdate: "delta", StateTombstone: "null delta"}
_TIMES = frozenset({"create_timestamp", "write_timestamp"})
_STATE_NAMES = frozenset(name for name, _ in _STATE + _FENCES)

Names = Mapping[str, str]
"""Topic names by id."""


def kind_of(record: StateRecord) -> str:
    """The kind of a decoded record; "staged" is an update in a producer's transaction (an experiment)."""
    if isinstance(record, StateUpdate) and record.stage is not None:
        return "staged"
    is_about_a_delta = not isinstance(record, StateSnapshot) and record.delta_index != NO_INDEX
    return (_DELTA_KINDS if is_about_a_delta else _KINDS)[type(record)]


class Raw(NamedTuple):
    """An undecoded record of one partition of the log."""

    offset: int
    timestamp_us: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """The end of a read of the log: at offset `end`, or at `ends` by partition, and not beyond `time_us`."""

    end: int | None = None
    ends: Mapping[int, int] | None = None
    time_us: int | None = None

    @staticmethod
    def of(at: int | Mapping[int, int] | datetime | None) -> ReadEnd:
        """From an offset, offsets by partition, a datetime (without zone: local time) or None. ValueError otherwise."""
        if isinstance(at, datetime):
            return ReadEnd(time_us=(at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1))
        if isinstance(at, Mapping):
            return ReadEnd(ends=dict(at))
        if at is None or (isinstance(at, int) and not isinstance(at, bool)):
            return ReadEnd(end=at)
        raise ValueError(f"at={at!r}: must be an offset, offsets by partition, or a datetime")

    def includes(self, partition: int, raw: Raw) -> bool:
        end = self.end if self.ends is None else self.ends.get(partition, 0)
        return (end is None or raw.offset < end) and (self.time_us is None or raw.timestamp_us <= self.time_us)


class StateFold:
    """One partition of the state topic, replayed record by record from its first one.

    A state consists of its key's last snapshot and the updates since. If records are missing, below the first one, in
    between, or because they are unreadable, keys are incomplete until their next snapshot. A key with staged updates is
    incomplete, because the ends of their transactions are not among the records.
    """

    def __init__(self) -> None:
        self._shard = StateShard(ClusterImage)
        self._snapshots: dict[SharePartitionKey, int] = {}
        self._staged: set[SharePartitionKey] = set()
        self._whole_from = 0
        self._next = 0

    def take_in(self, raw: Raw) -> StateRecord | None:
        """The decoded record; None if it is not about a share-partition."""
        if raw.offset != self._next:
            self._whole_from = raw.offset
        self._next = raw.offset + 1
        if raw.key is None:
            return None
        try:
            record = decode_state_record(raw.key, raw.value)
        except UnreadableRecordError:
            self._whole_from = self._next
            return None
        if record is not None:
            self._shard.replay(raw.offset, raw.key, raw.value, 0)
            kind = kind_of(record)
            if kind == "staged":
                self._staged.add(record.key)
            elif kind in ("snapshot", "tombstone"):
                self._snapshots[record.key] = raw.offset
        return record

    def state(self, key: SharePartitionKey) -> KeyState | None:
        """The state of the key; None if there is none, or after its deletion."""
        return self._shard.states.get(key)

    def is_complete(self, key: SharePartitionKey) -> bool:
        if key in self._staged:
            return False
        return self._whole_from == 0 or self._snapshots.get(key, -1) >= self._whole_from


# ---- columns ---------------------------------------------------------------------------------------------------------


def raw_records(table: pa.Table | pa.RecordBatch) -> Iterator[Raw]:
    """The rows of the columns offset, timestamp, key and value."""
    times = pc.cast(table.column("timestamp"), pa.int64())
    columns = (table.column("offset"), times, table.column("key"), table.column("value"))
    return map(Raw._make, zip(*(column.to_pylist() for column in columns), strict=True))


def segments(files: Iterable[pa.RecordBatch], topic: str = SHARE_STATE_TOPIC) -> Iterator[pa.RecordBatch]:
    """Raw columns of the record batches in files of the topic. An incomplete batch at the end of a file is ignored: it
    was being written.

    ValueError names the file if its bytes are not record batches, or are damaged.
    """
    folder = re.compile(rf"/{re.escape(topic)}-(\d+)/[^/]+$")
    for batch in files:
        for path, content in zip(batch.column("path").to_pylist(), batch.column("content"), strict=True):
            found = folder.search(path)
            if found is None:
                raise ValueError(f"{path}: is not in a folder named {topic}-N")
            try:
                for each in split_batches(content.as_buffer()):
                    yield _raw_columns(int(found[1]), [] if each.is_control else decode(each, check_crc=True))
            except CorruptBatch as error:
                raise ValueError(f"{path}: {error}") from error


def _raw_columns(partition: int, found: Sequence[Record]) -> pa.RecordBatch:
    times = pa.array([record.timestamp * 1000 for record in found], pa.int64())
    columns = {
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), len(found)),
        "offset": pa.array([record.offset for record in found], pa.int64()),
        "timestamp": times.cast(_TIME),
        "key": pa.array([record.key for record in found], pa.binary()),
        "value": pa.array([record.value for record in found], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _place(partition: int, raw: Raw, kind: str) -> dict[str, Any]:
    return {"state_partition": partition, "offset": raw.offset, "timestamp": raw.timestamp_us, "kind": kind}


def _fields(key: SharePartitionKey, values: Mapping[str, Any], names: Names) -> dict[str, Any]:
    """A key and its values. Times become microseconds."""
    known = {name: value for name, value in values.items() if name in _STATE_NAMES}
    return {
        **key._asdict(),
        "topic": names.get(key.topic_id),
        **{name: value * 1000 if name in _TIMES else value for name, value in known.items()},
    }


def records(batches: Iterable[pa.RecordBatch], names: Names) -> Iterator[pa.RecordBatch]:
    """The rows of RECORDS from raw columns, which also have the `partition` of the state topic."""
    for batch in batches:
        partitions = batch.column("partition").to_pylist()
        rows = [_row(partition, raw, names) for partition, raw in zip(partitions, raw_records(batch), strict=True)]
        yield pa.RecordBatch.from_pylist(rows, RECORDS)


def _row(partition: int, raw: Raw, names: Names) -> dict[str, Any]:
    try:
        record = None if raw.key is None else decode_state_record(raw.key, raw.value)
    except UnreadableRecordError as error:
        return {**_place(partition, raw, "unreadable"), "error": str(error)}
    if record is None:
        return _place(partition, raw, "unknown")
    return {**_place(partition, raw, kind_of(record)), **_fields(record.key, record._asdict(), names)}


def history(table: pa.Table, *, names: Names) -> pa.Table:
    """The rows of STATES after each record of one partition of the state topic."""
    fold = StateFold()
    partition = table.column("partition")[0].as_py()
    rows = [
        _state_row(fold, partition, raw, record, names)
        for raw in raw_records(table.sort_by("offset"))
        if (record := fold.take_in(raw)) is not None
    ]
    return pa.Table.from_pylist(rows, STATES)


def states(table: pa.Table, *, moment: ReadEnd, names: Names) -> pa.Table:
    """The rows of STATES of one partition of the state topic at a moment, without deleted keys."""
    fold = StateFold()
    partition = table.column("partition")[0].as_py()
    last: dict[SharePartitionKey, tuple[Raw, StateRecord]] = {}
    for raw in raw_records(table.sort_by("offset")):
        if not moment.includes(partition, raw):
            break
        record = fold.take_in(raw)
        if record is not None:
            last[record.key] = raw, record
    rows = [_state_row(fold, partition, *at, names) for key, at in last.items() if fold.state(key) is not None]
    return pa.Table.from_pylist(rows, STATES)


def _state_row(fold: StateFold, partition: int, raw: Raw, record: StateRecord, names: Names) -> dict[str, Any]:
    state = fold.state(record.key)
    values = {} if state is None else {name: getattr(state, name) for name in _STATE_NAMES}
    return {
        **_place(partition, raw, kind_of(record)),
        **_fields(record.key, values, names),
        "complete": fold.is_complete(record.key),
    }
