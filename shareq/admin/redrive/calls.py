"""The calls of an Admin that a redrive makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from shareq.admin.arguments import PartitionLike
from shareq.admin.record_reader import PartitionBatches, Span
from shareq.admin.results import ConfigEntry, CreatedTopic, Results, TopicDescription
from shareq.admin.topics import NewTopic


class AdminCalls(Protocol):
    """An `Admin`, which imports this package: two modules do not import each other."""

    def dead_letter_queue(self, group_id: str, *, timeout: float) -> str: ...
    def describe_topics(self, names: Iterable[str], *, timeout: float) -> Results[str, TopicDescription]: ...
    def create_topics(self, new_topics: Iterable[NewTopic | str], *, timeout: float) -> Results[str, CreatedTopic]: ...
    def describe_configs(
        self, kind: str, name: str, keys: Iterable[str] | None, *, timeout: float
    ) -> Results[str, ConfigEntry]: ...
    def read_batches(
        self, spans: Mapping[PartitionLike, Sequence[Span]], *, timeout: float
    ) -> Iterator[PartitionBatches]: ...
