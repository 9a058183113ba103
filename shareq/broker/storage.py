"""The storage of the cluster: one log per partition. It outlives broker processes.

Replication is synchronous and in process, so all replicas of a partition share one log and its high watermark is the
log end.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable

from shareq.broker.free_memory import WORTH_IT_BYTES, give_back
from shareq.log.config import LogConfig
from shareq.log.memory import MemoryLog
from shareq.model.actor import Effect, isolated
from shareq.model.errors import ConfigException, Errors, KafkaError, KafkaException
from shareq.model.events import Event, LogStartMoved
from shareq.model.ids import INTERNAL_TOPICS, TopicId, TopicPartition
from shareq.model.image import ClusterImage, TopicImage
from shareq.model.numbers import plain

MAX_DELAY_MS = 3_600_000


def check_delay(topic: object, ms: object, image: ClusterImage) -> None:
    """ConfigException unless a delay of appends is of a topic that exists, or of an internal one, and within its
    range."""
    if not isinstance(topic, str) or (topic not in INTERNAL_TOPICS and topic not in image.topics):
        raise ConfigException(f"topic={topic!r}: must be a topic, or one of {', '.join(sorted(INTERNAL_TOPICS))}")
    ms = plain(ms)
    if isinstance(ms, bool) or not isinstance(ms, int) or not 0 <= ms <= MAX_DELAY_MS:
        raise ConfigException(f"ms={ms!r}: must be a whole number in 0..{MAX_DELAY_MS}")


class Storage:
    """Holds the logs of all partitions, runs retention and compaction, and injects faults into appends."""

    def __init__(self, record: Callable[[Event], None]) -> None:
        self._logs: dict[tuple[TopicId, int], MemoryLog] = {}
        self._image = ClusterImage()
        self._record = record
        self._faults: dict[str, deque[Errors]] = defaultdict(deque)
        self.delays_ms: dict[str, int] = {}
        """By topic: how much longer an append of a producer, or of the topic's coordinator, takes."""

    def image_changed(self, image: ClusterImage) -> None:
        """Remove the logs of deleted topics, and apply changed configurations."""
        before, self._image = self._image, image
        if self._logs:
            for topic_id, partition in [k for k in self._logs if k[0] not in image.topics_by_id]:
                del self._logs[topic_id, partition]
        for (topic_id, partition), log in self._logs.items():
            topic = image.topics_by_id[topic_id]
            old = before.topics_by_id.get(topic_id)
            if old is None or old.configs is not topic.configs or before.broker_config is not image.broker_config:
                log.config = LogConfig.effective(topic.configs, image.broker_config)
            log.begin_epoch(topic.partitions[partition].leader_epoch)

    def log(self, topic: str, partition: int) -> MemoryLog | None:
        """The log of a partition; None if the partition does not exist."""
        found = self._image.topics.get(topic)
        if found is None or not 0 <= partition < len(found.partitions):
            return None
        return self.log_of(found, partition)

    def existing_log(self, topic: str, partition: int) -> MemoryLog:
        """The log of a partition. KafkaException if the partition does not exist."""
        found = self.log(topic, partition)
        if found is None:
            why = f"{topic}-{partition} does not exist"
            raise KafkaException(KafkaError(Errors.UNKNOWN_TOPIC_OR_PARTITION, why))
        return found

    def log_of(self, topic: TopicImage, partition: int) -> MemoryLog | None:
        """The log of a topic's partition; None if the topic was deleted after `topic` was read from an image."""
        key = (topic.topic_id, partition)
        log = self._logs.get(key)
        if log is None and (current := self._image.topics_by_id.get(topic.topic_id)):
            log = self._logs[key] = MemoryLog(LogConfig.effective(current.configs, self._image.broker_config))
            log.begin_epoch(current.partitions[partition].leader_epoch)
        return log

    def break_appends(self, topic: str, error: Errors, times: int) -> None:
        """Inject `error` into the next `times` appends to `topic`, whatever the partition.
        ConfigException unless `times` is at least 1."""
        if times < 1:
            raise ConfigException(f"times={times!r}: must be >= 1")
        self._faults[topic].extend([error] * times)

    def clear_faults(self) -> None:
        self._faults.clear()
        self.delays_ms.clear()

    def next_fault(self, topic: str) -> Errors:
        """The injected error of the next append to `topic`; NONE without one."""
        faults = self._faults.get(topic)
        return faults.popleft() if faults else Errors.NONE

    def clean(self, now_ms: int) -> list[Effect]:
        """Run retention and compaction of every log, as Kafka's cleaner does every few minutes. Returns a `Failed` for
        each log that could not be cleaned."""
        failed: list[Effect] = []
        before_bytes = self._size_in_bytes
        for (topic_id, partition), log in self._logs.items():
            isolated(failed, self._clean, self._image.topics_by_id[topic_id].name, partition, log, now_ms)
        if before_bytes - self._size_in_bytes >= WORTH_IT_BYTES:
            give_back()
        return failed

    def _clean(self, topic: str, partition: int, log: MemoryLog, now_ms: int) -> None:
        before = log.log_start_offset
        log.clean(now_ms)
        log.clean_share_state()
        if log.log_start_offset != before:
            self._record(LogStartMoved(topic, partition, log.log_start_offset))

    @property
    def _size_in_bytes(self) -> int:
        return sum(log.size_in_bytes for log in self._logs.values())

    def delete_records(self, at: TopicPartition, offset: int) -> tuple[Errors, int]:
        """Raise the log start to `offset` (-1: the high watermark). Returns the error and the new log start."""
        log = self.log(at.topic, at.partition)
        if log is None:
            return Errors.UNKNOWN_TOPIC_OR_PARTITION, -1
        before = log.log_start_offset
        error = log.delete_records(offset)
        if log.log_start_offset != before:
            self._record(LogStartMoved(at.topic, at.partition, log.log_start_offset))
        return error, -1 if error else log.log_start_offset
