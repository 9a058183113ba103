"""A share group as a stream of Spark.

Delivery is at least once. Spark's offset has the ranges of a batch; a batch that is repeated after a restart reads
exactly those, even if other members have locked them in the meantime. A batch is acknowledged when Spark has recorded
its end, that is, when it passes its offset to `latestOffset(start)`. If the driver dies, its locks expire, and the
records are delivered again, to any query of the group: sinks should use (topic, partition, offset) as key.

Unreadable records do not block a query; see `member`. They are in no batch; warnings name their offsets, and the offset
in the query's progress counts them.

Spark starts a process for the reader of each query. What only some queries or only tasks need is imported there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from shareq.model.states import AcknowledgeType
from shareq.spark.acknowledge import LetterBox
from shareq.spark.held import Held
from shareq.spark.member import SourceMember
from shareq.spark.options import Options
from shareq.spark.ranges import NO_BATCH, Batch, from_json, merged, to_json
from shareq.spark.tasks import Share, places_of, tasks_of

if TYPE_CHECKING:
    import pyarrow as pa

WAIT_MS = 500
"""How long a query waits for records before it returns control to Spark."""

PATIENCE_S = 60
"""How long, at least, records that are available now may be unreachable: by default a dead member stays in the group
for 45 s, and its locks last for 30."""

_ON_FAILURE = {"release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`. One instance runs in a process beside the driver; tasks get copies without a member."""

    def __init__(self, options: Options, verdicts: str) -> None:
        self._options = options
        self._verdicts = verdicts
        self._member: SourceMember | None = None
        self._box: LetterBox | None = None
        self._planned = NO_BATCH
        self._begun = 0
        self._held: tuple[Held, ...] = ()
        self._ends: dict[tuple[str, int], int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options}

    # ---- planning ----------------------------------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802    # Spark's name, as below
        return to_json(NO_BATCH)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.max_records)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Limit the query to records below the current ends of the logs."""
        from shareq.admin import Admin

        with Admin(self._options.connection) as admin:
            ends = admin.list_offsets(dict.fromkeys(places_of(admin, self._options.topics), "latest"))
        self._ends = {(at.topic, at.partition): row.offset or 0 for at, row in ends.items()}

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Acknowledge the batch of `start` and acquire the next one. Returns `start` if there are no records."""
        done = from_json(start)
        if self._planned.number > done.number:  # planned, but never run
            return to_json(self._planned)
        self._acknowledge(done.number)
        self._letters().empty()  # types of a batch that was repeated after a restart: its records are not locked
        most = getattr(limit, "max_rows", self._options.max_records)
        self._held = self._acquire(most)
        if not self._held:
            return to_json(done)
        unreadable = done.unreadable + self._joined().take_unreadable()
        self._planned = Batch(done.number + 1, merged(held.range for held in self._held), unreadable)
        return to_json(self._planned)

    def _acquire(self, limit: int) -> tuple[Held, ...]:
        """Records to read. With `availableNow`, also wait for records that other members may have locked."""
        member = self._joined()
        if self._ends is None:
            return member.acquire(limit, WAIT_MS)
        begun = monotonic()
        while not (held := member.acquire(limit, WAIT_MS, self._ends)):
            if self._is_finished() or monotonic() - begun > max(PATIENCE_S, 2 * member.lock_duration_ms / 1000):
                break
        return held

    def _is_finished(self) -> bool:
        """True if the group has finished all records below the ends: its lag is at most the number appended since."""
        from shareq.admin import Admin

        assert self._ends is not None
        with Admin(self._options.connection) as admin:
            rows = admin.list_offsets(dict.fromkeys(self._ends, "latest")).check()
            lags = admin.list_share_group_offsets(self._options.group)
        since = {(at.topic, at.partition): (row.offset or 0) for at, row in rows.items()}
        lag = {(at.topic, at.partition): row.lag for at, row in lags.items()}
        return all(
            end == 0 or ((known := lag.get(place)) is not None and known <= since[place] - end)
            for place, end in self._ends.items()
        )

    def _joined(self) -> SourceMember:
        if self._member is None:
            self._member = SourceMember(
                self._options.conf,
                self._options.topics,
                renews=self._options.lock_renewal,
                on_failure=_ON_FAILURE[self._options.on_failure],
            )
        return self._member

    def _letters(self) -> LetterBox:
        """The inbox of `acknowledge`."""
        if self._box is None:
            self._box = LetterBox(self._verdicts, self._options.group)
        return self._box

    # ---- reading -----------------------------------------------------------------------------------------------------

    def partitions(self, start: object, end: Mapping[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002    # as above
        """The tasks of the batch of `end`, which may be from before a restart."""
        batch = from_json(end)
        self._begun = batch.number
        self._letters()  # after a restart the inbox must exist before the member joins
        return tasks_of(self._options, batch.ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from shareq.spark.reader import read

        assert isinstance(partition, Share)
        return read(self._options.connection, partition.ranges)

    # ---- settling ----------------------------------------------------------------------------------------------------

    def commit(self, end: Mapping[str, Any]) -> None:
        """Spark has recorded the end of the batch. Usually `latestOffset` has acknowledged it before."""
        self._acknowledge(from_json(end).number)

    def _acknowledge(self, number: int) -> None:
        """Accept the held records of batches up to `number`, except those with another acknowledge type."""
        if self._held and self._planned.number <= number and self._member is not None:
            held, self._held = self._held, ()
            self._member.settle(held, AcknowledgeType.ACCEPT, self._letters().empty())

    def stop(self) -> None:
        """Leave the group. A batch that is not known to be done gets the acknowledge type of `onFailure`.

        A batch that Spark never began is released in any case: no restart would repeat it.
        """
        if self._member is not None:
            if self._held:
                begun = self._planned.number <= self._begun
                verdict = _ON_FAILURE[self._options.on_failure] if begun else AcknowledgeType.RELEASE
                self._member.settle(self._held, verdict, self._letters().empty())
                self._held = ()
            self._member.close()
            self._member = None
        if self._box is not None:
            self._box.close()
            self._box = None
