"""A shard that a process leads, and what is written again if its topic is deleted. BEHAVIOUR.md, 3.11."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from shareq.broker.backend.shard_log import ShardLog
from shareq.model.actor import Appended, AppendRecords
from shareq.model.errors import Errors
from shareq.model.ids import TopicId
from shareq.model.records import CoordinatorRecord

_log = logging.getLogger("shareq.backend")

BATCH_BYTES = 500_000
"""The size from which on a batch of records gets no further one. The backend takes batches of a megabyte."""


class Kept(NamedTuple):
    """What a shard had in the topic with this id."""

    topic_id: TopicId
    records: Sequence[CoordinatorRecord]


class LedShard:
    """A shard with its log, which is in the topic with this id. `elected`: the log is open, and the coordinator has the
    shard. `loaded`: the coordinator has read all of it."""

    def __init__(self, log: ShardLog, topic_id: TopicId) -> None:
        self.log = log
        self.topic_id = topic_id
        self.elected = self.loaded = False
        self._newest: dict[bytes, bytes] = {}

    def take(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Note records that are in the log, in their order."""
        for key, value in records:
            self._newest.pop(key, None)
            if value is not None:
                self._newest[key] = value

    @property
    def newest_records(self) -> list[CoordinatorRecord]:
        """The last record of each key, in the order in which compaction would keep them."""
        return [CoordinatorRecord(*found) for found in self._newest.items()]


def write_again(log: ShardLog, records: Sequence[CoordinatorRecord], done: Callable[[Errors], object]) -> None:
    """Append records of a log that is gone to its successor; `done` gets the first error."""
    count, size = 0, 0
    for key, value in records:
        count, size = count + 1, size + len(key) + len(value or b"")
        if size >= BATCH_BYTES:
            break
    if not count:
        done(Errors.NONE)
        return

    def appended(result: Appended) -> None:
        if result.error:
            done(result.error)
        else:
            write_again(log, records[count:], done)

    _log.warning("%s: its topic was deleted, %d records are written again", log.shard, count)
    log.append(AppendRecords(0, log.shard, tuple(records[:count])), appended)
