"""A share group as a stream of Spark's.

At least once. Spark's offset has the ranges of a batch; a batch that is planned again after a restart reads exactly
those, even if other members have locked them by then. It is acknowledged when Spark has recorded its end, which is
known when `latestOffset(start)` has it as `start`. The locks of a driver that dies before expire, and its records are
delivered again, to any query of the group: sinks key on (topic, partition, offset).

Unreadable records block no query: see `member`. They are in no batch; warnings name their offsets, and the offset in
the query's progress counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from shareq.admin import Admin
from shareq.model.states import AcknowledgeType
from shareq.spark.acknowledge import LetterBox
from shareq.spark.held import Held
from shareq.spark.member import Member
from shareq.spark.options import Options
from shareq.spark.ranges import NO_BATCH, Batch, from_json, merged, to_json
from shareq.spark.reader import read
from shareq.spark.tasks import Share, places_of, tasks_of

WAIT_MS = 500
"""How long a query without records waits for some before Spark continues."""

PATIENCE_S = 60
"""How long at least what is available now may be out of reach: the place of a dead member in the group is its own for
45 s by default, its locks for 30."""

_ON_FAILURE = {"release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`. One lives in a process beside the driver; copies of it, without a member, go to tasks."""

    def __init__(self, options: Options, verdicts: str) -> None:
        self._options = options
        self._verdicts = verdicts
        self._member: Member | None = None
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
        """Limit the query to records below the present ends of the logs."""
        with Admin(self._options.connection) as admin:
            ends = admin.list_offsets(dict.fromkeys(places_of(admin, self._options.topics), "latest"))
        self._ends = {(at.topic, at.partition): row.offset or 0 for at, row in ends.items()}

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Acknowledge the batch that `start` describes, acquire the next one. `start` again where nothing came."""
        done = from_json(start)
        if self._planned.number > done.number:  # planned, and never run
            return to_json(self._planned)
        self._acknowledge(done.number)
        self._letters().empty()  # types for a batch that is repeated after a restart: its records are not locked
        most = getattr(limit, "max_rows", self._options.max_records)
        self._held = self._acquire(most)
        if not self._held:
            return to_json(done)
        unreadable = done.unreadable + self._joined().take_unreadable()
        self._planned = Batch(done.number + 1, merged(held.range for held in self._held), unreadable)
        return to_json(self._planned)

    def _acquire(self, limit: int) -> tuple[Held, ...]:
        """Records to read. Where only what is available now counts, wait for what others may have locked."""
        member = self._joined()
        if self._ends is None:
            return member.acquire(limit, WAIT_MS)
        begun = monotonic()
        while not (held := member.acquire(limit, WAIT_MS, self._ends)):
            if self._is_finished() or monotonic() - begun > max(PATIENCE_S, 2 * member.lock_duration_ms / 1000):
                break
        return held

    def _is_finished(self) -> bool:
        """True if the group has finished all records below those ends: its lag is at most what was appended since."""
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

    def _joined(self) -> Member:
        if self._member is None:
            self._member = Member(
                self._options.conf,
                self._options.topics,
                renews=self._options.lock_renewal,
                on_failure=_ON_FAILURE[self._options.on_failure],
            )
        return self._member

    def _letters(self) -> LetterBox:
        """The letter box into which `acknowledge` writes."""
        if self._box is None:
            self._box = LetterBox(self._verdicts, self._options.group)
        return self._box

    # ---- reading -----------------------------------------------------------------------------------------------------

    def partitions(self, start: object, end: Mapping[str, Any]) -> Sequence[InputPartition]:  # noqa: ARG002    # as above
        """The tasks of the batch that `end` describes, which may be one of before a restart."""
        batch = from_json(end)
        self._begun = batch.number
        self._letters()  # after a restart the box must exist before the member joins
        return tasks_of(self._options, batch.ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return read(self._options.connection, partition.ranges)

    # ---- settling ----------------------------------------------------------------------------------------------------

    def commit(self, end: Mapping[str, Any]) -> None:
        """Spark is done with the batch `end`. Mostly `latestOffset` has known that before."""
        self._acknowledge(from_json(end).number)

    def _acknowledge(self, number: int) -> None:
        """Accept what is held of batches up to `number`, verdicts apart."""
        if self._held and self._planned.number <= number and self._member is not None:
            held, self._held = self._held, ()
            self._member.settle(held, AcknowledgeType.ACCEPT, self._letters().empty())

    def stop(self) -> None:
        """What is held of a batch that is not known to be done gets onFailure's verdict.

        A batch that Spark never began is given back in any case: no restart would read it again.
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
