"""Events of in-flight records, and of the window over them."""

from __future__ import annotations

from typing import NamedTuple

from shareq.model.messages.share_state import StateBatch


class Run(NamedTuple):
    """A run of in-flight records as a snapshot lists them: [first, end) in one state."""

    first: int
    end: int
    state: int
    delivery_count: int


class SharePartitionLoaded(NamedTuple):
    """A leader has loaded the share-partition. `runs` are all in-flight records, without gaps."""

    group_id: str
    topic: str
    partition: int
    spso: int
    window_end: int
    runs: tuple[Run, ...]
    state_epoch: int
    leader_epoch: int
    delivery_count_limit: int
    max_record_locks: int
    lock_duration_ms: int


class SharePartitionDropped(NamedTuple):
    """The leader dropped the share-partition from memory; a later leader loads it from durable state."""

    group_id: str
    topic: str
    partition: int
    reason: str


class RecordsChanged(NamedTuple):
    """The records [first, end) are now in `state`. One event for every change of a run.

    `cause` is a RecordEvent, or "prepared" (a write is under way that would make it `to_state`; the state stays),
    "settled" (the write succeeded), "abandoned" (it failed). `member_id`, `deadline_ms` where ACQUIRED; `write_id`,
    `to_state` while a write is under way. `deadline_ms` where AVAILABLE: the record rests until then, which the cause
    "rested" ends (an experiment). Records new to the window begin ACQUIRED, AVAILABLE, or as expired ones (an
    experiment). Causes of another experiment are "staged", the acknowledgement `why` waits for the end of a transaction
    (`write_id` is its write, `to_state` ACQUIRED), and "txn_commit", the transaction was committed.
    """

    group_id: str
    topic: str
    partition: int
    cause: str
    first: int
    end: int
    state: int
    delivery_count: int
    member_id: str | None = None
    deadline_ms: int | None = None
    write_id: int | None = None
    to_state: int | None = None
    why: str | None = None
    """While a write is under way, and when it has settled: the RecordEvent that caused it."""


class KeyRange(NamedTuple):
    """Records [first, end) with one key, as text."""

    first: int
    end: int
    key: str


class KeysLearned(NamedTuple):
    """The leader has read the keys of records in the window, which it delivers in order by key (an experiment):
    at most `max_in_flight` of a key are held, by one member."""

    group_id: str
    topic: str
    partition: int
    keys: tuple[KeyRange, ...]
    max_in_flight: int


class ExpiredRecordsSkipped(NamedTuple):
    """The records [first, end) are too old to be delivered; the empty window passes them without reading them (an
    experiment)."""

    group_id: str
    topic: str
    partition: int
    first: int
    end: int


class WindowMoved(NamedTuple):
    """The window is now [spso, window_end), and empty if they are equal; otherwise the SPEO is `window_end` - 1.

    Records below the SPSO are in a terminal state.
    """

    group_id: str
    topic: str
    partition: int
    spso: int
    window_end: int


class StateWritePrepared(NamedTuple):
    """A state write was sent to the persister."""

    group_id: str
    topic: str
    partition: int
    write_id: int
    start_offset: int
    delivery_complete_count: int
    state_batches: tuple[StateBatch, ...]


class StateWriteSettled(NamedTuple):
    """`error` 0: the write is durable."""

    group_id: str
    topic: str
    partition: int
    write_id: int
    error: int


class DeadLettersWritten(NamedTuple):
    """The records [first, end) are in the dead-letter queue: from offset `queue_offset` of partition `queue_partition`
    of the topic `queue` on, `record_count` of them, in the same order. Offsets without a record (gaps, markers) have
    none there."""

    group_id: str
    topic: str
    partition: int
    first: int
    end: int
    queue: str
    queue_partition: int
    queue_offset: int
    record_count: int


class DeadLettersSent(NamedTuple):
    """A produce request takes `record_count` records, that of offset `first` before the others, to partition
    `queue_partition` of the topic `queue`. A request that is repeated has the event again."""

    group_id: str
    topic: str
    partition: int
    first: int
    queue: str
    queue_partition: int
    record_count: int


class DeadLettersRefused(NamedTuple):
    """A produce request with the records from `first` on has failed. `final`: Apache Kafka sends them no more, because
    of the error or after this many attempts."""

    group_id: str
    topic: str
    partition: int
    first: int
    error: int
    final: bool


class DeadLettersWaiting(NamedTuple):
    """The ARCHIVING records of the share-partition from `first` on wait for the dead-letter queue, for this reason."""

    group_id: str
    topic: str
    partition: int
    first: int
    reason: str


class DeadLettersGivenUp(NamedTuple):
    """The records [first, end) are archived without a copy in the dead-letter queue, for this reason."""

    group_id: str
    topic: str
    partition: int
    first: int
    end: int
    reason: str


class AcknowledgementRefused(NamedTuple):
    """The acknowledgement for the partition was refused as a whole; no record changed."""

    group_id: str
    topic: str
    partition: int
    member_id: str
    error: int


class ShareSessionOpened(NamedTuple):
    group_id: str
    member_id: str


class ShareSessionClosed(NamedTuple):
    """`reason` such as "closed", "connection lost", "replaced"."""

    group_id: str
    member_id: str
    reason: str
