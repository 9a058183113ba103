"""The effects of a keeper of share state on the logs that its broker leads: hidden appends, recovery, a look."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shareq.broker.data_plane import DataPlane, below_min_isr
from shareq.broker.host import Host
from shareq.broker.loop import EventLoop
from shareq.log.memory import MemoryLog
from shareq.model.actor import Appended, AppendRecords, ReadRecords, RecordsRead
from shareq.model.errors import Errors
from shareq.model.ids import SHARE_STATE_TOPIC, TopicPartition
from shareq.model.log_looks import LogSeen, LookAtLog

STATE_WRITES = TopicPartition(SHARE_STATE_TOPIC, 0)
"""Faults and delays of state writes have the name of the state topic, whatever the persister."""


class ShareStateLog:
    """Carries the effects out. `answer(host, at, result)` delivers the result of an append; `grew(at, first, end)` the
    append itself, if its records are not hidden."""

    def __init__(
        self,
        data: DataPlane,
        loop: EventLoop,
        answer: Callable[[Host, TopicPartition, Appended], None],
        grew: Callable[[TopicPartition, int, int], None],
    ) -> None:
        self._data = data
        self._loop = loop
        self._answer = answer
        self._grew = grew
        self.carriers: dict[type, Callable[[Host, Any], None]] = {
            AppendRecords: self._append,
            ReadRecords: self._read,
            LookAtLog: self._look,
        }

    def _append(self, host: Host, effect: AppendRecords) -> None:
        """Append each record in a batch of its own. Replicas in sync may be fewer than the topic requires."""
        topic, partition = effect.topic_partition
        error, log, leader_epoch = self._data.led_log(topic, partition)
        if log is not None and below_min_isr(self._data.image.topics[topic].partitions[partition], log):
            error = Errors.NOT_ENOUGH_REPLICAS
        error = error or self._data.storage.next_fault(SHARE_STATE_TOPIC)
        offset = -1
        if log is not None and not error:
            error, offset = _append_all(log, effect, self._loop.now_ms(), leader_epoch)
            if not error and not log.hides_share_state:
                self._grew(effect.topic_partition, offset, offset + len(effect.records))
        self._answer(host, STATE_WRITES, Appended(effect.id, error, offset))

    def _read(self, host: Host, effect: ReadRecords) -> None:
        """All that recovery needs, from the index."""
        error, log, _ = self._data.led_log(*effect.topic_partition)
        records = log.hidden.recovery() if log is not None else []
        self._loop.post(host.deliver, RecordsRead(effect.id, error, records, done=True))

    def _look(self, host: Host, effect: LookAtLog) -> None:
        _, log, _ = self._data.led_log(*effect.topic_partition)
        seen = LogSeen(effect.id)
        if log is not None:
            end = log.high_watermark
            seen = LogSeen(effect.id, log.log_start_offset, end, tuple(log.hidden.runs(effect.first, end)))
        self._loop.post(host.deliver, seen)


def _append_all(log: MemoryLog, effect: AppendRecords, now_ms: int, leader_epoch: int) -> tuple[Errors, int]:
    """The error, and the offset of the first record."""
    results = [log.append_share_state(record, now_ms=now_ms, leader_epoch=leader_epoch) for record in effect.records]
    return next((result.error for result in results if result.error), Errors.NONE), results[0].base_offset
